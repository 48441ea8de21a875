//! The steps of LinkBench, by the names of the module's table.

use crate::workloads::planned::{name_of, named};
use std::fmt;
use std::str::FromStr;

/// A step, written as in the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `load`.
    Load,
    /// `q1` and so on.
    Query(u32),
    /// `drop`.
    Drop,
}

/// The steps whose names have no number in them.
const NAMES: [(&str, Step); 2] = [("load", Step::Load), ("drop", Step::Drop)];

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        let query = || text.strip_prefix('q')?.parse().ok().map(Step::Query);
        named(&NAMES, text)
            .or_else(query)
            .ok_or_else(|| format!("there is no step `{text}`; the steps are load, qN and drop"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Query(number) => write!(f, "q{number}"),
            _ => f.write_str(name_of(&NAMES, self)),
        }
    }
}
