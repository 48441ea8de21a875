//! The steps of LinkBench, by the names of the module's table.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A step, written as in the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Step {
    /// `load`.
    Load,
    /// `q1` and so on.
    Query(u32),
    /// `drop`.
    Drop,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Load => f.write_str("load"),
            Step::Query(number) => write!(f, "q{number}"),
            Step::Drop => f.write_str("drop"),
        }
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        match text {
            "load" => Ok(Step::Load),
            "drop" => Ok(Step::Drop),
            _ => {
                let number = text.strip_prefix('q').and_then(|digits| digits.parse().ok());
                number.map(Step::Query).ok_or_else(|| format!("`{text}` is none of load, qN, drop"))
            }
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
