//! The steps of the sysbench pattern, by the names of the module's table.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A step, written as in the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
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

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        let (name, range) = match text.split_once('.') {
            None => (text, None),
            Some((name, digits)) => {
                let range = digits.parse().ok().filter(|rows| (1..=1_000_000).contains(rows));
                let wrong = || format!("`{text}`: after the point come the rows of a range");
                (name, Some(range.ok_or_else(wrong)?))
            }
        };
        match (name, range) {
            ("read-write", range) => Ok(Step::ReadWrite(range.unwrap_or(RANGE))),
            ("read-only", range) => Ok(Step::ReadOnly(range.unwrap_or(RANGE))),
            ("load", None) => Ok(Step::Load),
            ("wait_idle", None) => Ok(Step::WaitIdle),
            ("update-index", None) => Ok(Step::UpdateIndex),
            ("update-nonindex", None) => Ok(Step::UpdateNonindex),
            ("point-query", None) => Ok(Step::PointQuery),
            ("select", None) => Ok(Step::Select),
            ("insert", None) => Ok(Step::Insert),
            _ => Err(format!(
                "`{text}` is none of load, wait_idle, update-index, update-nonindex, read-write, \
                 read-only.N, point-query, select, insert"
            )),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Load => f.write_str("load"),
            Step::WaitIdle => f.write_str("wait_idle"),
            Step::UpdateIndex => f.write_str("update-index"),
            Step::UpdateNonindex => f.write_str("update-nonindex"),
            Step::ReadWrite(RANGE) => f.write_str("read-write"),
            Step::ReadWrite(range) => write!(f, "read-write.{range}"),
            Step::ReadOnly(range) => write!(f, "read-only.{range}"),
            Step::PointQuery => f.write_str("point-query"),
            Step::Select => f.write_str("select"),
            Step::Insert => f.write_str("insert"),
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
