//! What comes of comparing the engine with the model.

use shaledb::Error;

/// Why a run ended early.
#[derive(Debug)]
pub enum Failure {
    /// The engine returned an error.
    Engine(Error),
    /// The engine gave a wrong answer.
    Wrong(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Engine(error) => write!(f, "error: {error}"),
            Failure::Wrong(what) => write!(f, "wrong: {what}"),
        }
    }
}

/// The result of what compares the engine with the model.
pub type Outcome<T> = std::result::Result<T, Failure>;

pub(crate) fn wrong<T>(what: impl Into<String>) -> Outcome<T> {
    Err(Failure::Wrong(what.into()))
}
