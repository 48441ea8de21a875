//! The steps of the insert benchmark, by the names of the module's table.

use crate::workloads::planned::{name_of, named};
use std::fmt;
use std::str::FromStr;

/// A step of the benchmark, written as in the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `l.i0`, or `l.i` if `indexed`.
    Load {
        /// Whether the secondary indexes are there from the start.
        indexed: bool,
    },
    /// `l.x`.
    Index,
    /// `l.i1`, or `l.i2` if `few`.
    Insert {
        /// Whether a commit has a tenth of the rows.
        few: bool,
    },
    /// `qrN` and `qpN`.
    Query {
        /// Point queries, not range queries.
        point: bool,
        /// Rows that each client's writer inserts per second; 0 is no writer.
        rate: u32,
    },
    /// `wait_idle`.
    WaitIdle,
}

/// The steps whose names have no number in them.
const NAMES: [(&str, Step); 6] = [
    ("l.i0", Step::Load { indexed: false }),
    ("l.i", Step::Load { indexed: true }),
    ("l.x", Step::Index),
    ("l.i1", Step::Insert { few: false }),
    ("l.i2", Step::Insert { few: true }),
    ("wait_idle", Step::WaitIdle),
];

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        let rate = |digits: &str| digits.parse::<u32>().ok().filter(|rate| *rate <= 10_000_000);
        let query = || {
            let point = text.starts_with("qp");
            let digits = text.strip_prefix("qp").or(text.strip_prefix("qr"));
            digits.and_then(rate).map(|rate| Step::Query { point, rate })
        };
        named(&NAMES, text).or_else(query).ok_or_else(|| {
            format!(
                "there is no step `{text}`; the steps are l.i0, l.i, l.x, l.i1, l.i2, wait_idle, \
                 qrN and qpN, where N is the inserts per second, at most 10 million: qr100"
            )
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Query { point: false, rate } => write!(f, "qr{rate}"),
            Step::Query { point: true, rate } => write!(f, "qp{rate}"),
            _ => f.write_str(name_of(&NAMES, self)),
        }
    }
}
