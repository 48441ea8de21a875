//! The steps of the sysbench pattern, by the names of the module's table.

use crate::workloads::planned::{name_of, named};
use std::fmt;
use std::str::FromStr;

/// A step, written as in the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `load`.
    Load,
    /// `wait_idle`.
    WaitIdle,
    /// `update-index`.
    UpdateIndex,
    /// `update-nonindex`.
    UpdateNonindex,
    /// `read-write`; or `read-write.N`, with the rows of a range.
    ReadWrite(u32),
    /// `read-only.N`, with the rows of a range.
    ReadOnly(u32),
    /// `point-query`.
    PointQuery,
    /// `select`.
    Select,
    /// `insert`.
    Insert,
}

/// The rows of a range unless they are named.
const RANGE: u32 = 100;

/// The steps whose names have no number in them.
const NAMES: [(&str, Step); 8] = [
    ("load", Step::Load),
    ("wait_idle", Step::WaitIdle),
    ("update-index", Step::UpdateIndex),
    ("update-nonindex", Step::UpdateNonindex),
    ("read-write", Step::ReadWrite(RANGE)),
    ("point-query", Step::PointQuery),
    ("select", Step::Select),
    ("insert", Step::Insert),
];

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        let (name, range) = match text.split_once('.') {
            None => (text, None),
            Some((name, digits)) => {
                let range = digits.parse().ok().filter(|rows| (1..=1_000_000).contains(rows));
                let wrong =
                    || format!("`{text}`: the rows of a range are a number from 1 to 1000000");
                (name, Some(range.ok_or_else(wrong)?))
            }
        };
        match (name, range) {
            ("read-write", Some(range)) => Some(Step::ReadWrite(range)),
            ("read-only", range) => Some(Step::ReadOnly(range.unwrap_or(RANGE))),
            (_, Some(_)) => None,
            (_, None) => named(&NAMES, name),
        }
        .ok_or_else(|| {
            format!(
                "there is no step `{text}`; the steps are load, wait_idle, update-index, \
                 update-nonindex, read-write, read-only.N, point-query, select, insert"
            )
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::ReadWrite(range) if *range != RANGE => write!(f, "read-write.{range}"),
            Step::ReadOnly(range) => write!(f, "read-only.{range}"),
            _ => f.write_str(name_of(&NAMES, self)),
        }
    }
}

impl Step {
    /// Whether it is done once, not for each number of clients.
    pub fn is_once(self) -> bool {
        matches!(self, Step::Load | Step::WaitIdle)
    }

    /// Statements of a transaction, `begin` and `commit` among them: rates of queries are rates of
    /// transactions times this.
    pub fn statements(self) -> u64 {
        const SELECTS: u64 = POINT_SELECTS + 4;
        match self {
            Step::ReadWrite(_) => SELECTS + 4 + 2,
            Step::ReadOnly(_) => SELECTS + 2,
            _ => 1,
        }
    }
}

/// How many rows a transaction asks for by id.
pub const POINT_SELECTS: u64 = 10;
