//! The steps of the insert benchmark, by the names of the module's table.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A step of the benchmark, written as in the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
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

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        let rate = |digits: &str| digits.parse::<u32>().ok().filter(|rate| *rate <= 10_000_000);
        match text {
            "l.i0" => Ok(Step::Load { indexed: false }),
            "l.i" => Ok(Step::Load { indexed: true }),
            "l.x" => Ok(Step::Index),
            "l.i1" => Ok(Step::Insert { few: false }),
            "l.i2" => Ok(Step::Insert { few: true }),
            "wait_idle" => Ok(Step::WaitIdle),
            _ => {
                let point = text.starts_with("qp");
                let digits = text.strip_prefix("qp").or(text.strip_prefix("qr"));
                let rate = digits.and_then(rate).ok_or_else(|| {
                    format!(
                        "`{text}` is none of l.i0, l.i, l.x, l.i1, l.i2, wait_idle, qrN, qpN (N is \
                         the inserts per second, such as qr100)"
                    )
                })?;
                Ok(Step::Query { point, rate })
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Load { indexed: false } => f.write_str("l.i0"),
            Step::Load { indexed: true } => f.write_str("l.i"),
            Step::Index => f.write_str("l.x"),
            Step::Insert { few: false } => f.write_str("l.i1"),
            Step::Insert { few: true } => f.write_str("l.i2"),
            Step::Query { point: false, rate } => write!(f, "qr{rate}"),
            Step::Query { point: true, rate } => write!(f, "qp{rate}"),
            Step::WaitIdle => f.write_str("wait_idle"),
        }
    }
}

impl From<Step> for String {
    fn from(step: Step) -> String {
        step.to_string()
    }
}

impl TryFrom<String> for Step {
    type Error = String;

    fn try_from(text: String) -> Result<Step, String> {
        text.parse()
    }
}
