//! What one call asks for, what it does if others are in the way, and what is left of it then.

use super::deadlock::Waiting;
use super::lock::{Lock, Mode, OwnedSpan};
use std::ops::Range;

/// What is done if others are in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing: the request is refused.
    Never,
    /// Wait for so many nanoseconds.
    Nanos(u64),
    /// The request waits, the caller does not.
    Step,
}

/// What one call asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<'a> {
    pub(super) first: Lock<'a>,
    /// After a range, the key of a row.
    pub(super) row: Option<Lock<'a>>,
}

impl Ask<'_> {
    pub(super) fn locks(&self) -> Vec<Lock<'_>> {
        std::iter::once(self.first).chain(self.row).collect()
    }
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct Pending {
    /// What it was: the spans and modes of [`Ask`].
    pub(super) asked: Vec<(OwnedSpan, Mode)>,
    pub(super) waiting: Waiting,
    pub(super) shards: Range<usize>,
}

impl Pending {
    pub(super) fn is_for(&self, ask: Ask<'_>) -> bool {
        let locks = ask.locks();
        self.waiting.tree == ask.first.tree
            && locks.len() == self.asked.len()
            && locks
                .iter()
                .zip(&self.asked)
                .all(|(lock, (span, mode))| (lock.span, lock.mode) == (span.get(), *mode))
    }
}
