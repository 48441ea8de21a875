//! The steps of the TPC-C pattern, by the names of the module's table.

use crate::workloads::planned::{name_of, named};
use std::fmt;
use std::str::FromStr;

/// A step, written as in the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `load`.
    Load,
    /// `run`, once for each number of clients.
    Run,
    /// `check`.
    Check,
    /// `wait_idle`.
    WaitIdle,
}

const NAMES: [(&str, Step); 4] = [
    ("load", Step::Load),
    ("run", Step::Run),
    ("check", Step::Check),
    ("wait_idle", Step::WaitIdle),
];

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        named(&NAMES, text).ok_or_else(|| {
            format!("there is no step `{text}`; the steps are load, run, check, wait_idle")
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&NAMES, self))
    }
}
