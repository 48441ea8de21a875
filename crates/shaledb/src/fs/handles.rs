//! Open files, of which a process may have so many. A database keeps some open that it could open
//! again, and closes those when the system refuses another: to it or, as it may be, to others.

use crate::base::error::Result;
use std::sync::{Arc, OnceLock};

/// Who can close files that are not in use.
#[derive(Clone, Default)]
pub struct Handles(Arc<OnceLock<Close>>);

/// Closes some; whether it has.
type Close = Box<dyn Fn() -> bool + Send + Sync>;

impl std::fmt::Debug for Handles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handles")
    }
}

impl Handles {
    /// How to close files that are not in use; it answers whether there were any. To be told once.
    pub fn close_by(&self, close: impl Fn() -> bool + Send + Sync + 'static) {
        let told = self.0.set(Box::new(close));
        assert!(told.is_ok(), "one database has these files");
    }

    /// Makes a call that opens a file; again, if it is refused for too many and some could be
    /// closed.
    pub(super) fn open<T>(&self, call: impl Fn() -> Result<T>) -> Result<T> {
        match call() {
            Err(error) if error.is_of_too_many_files() && self.close_unused() => {
                tracing::debug!(%error, "files that are not in use are closed");
                call()
            }
            other => other,
        }
    }

    fn close_unused(&self) -> bool {
        self.0.get().is_some_and(|close| close())
    }
}
