//! What is asked for: a key or a range of keys of a tree, and how others are to be kept out.

use crate::version::TreeId;
use std::sync::Arc;

/// The number of a transaction; a later one has a larger number.
pub type TxnId = u64;

/// How a lock excludes others; each mode excludes all that the one before it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Others may not write there.
    Gap,
    /// What is there stays as it is.
    Shared,
    /// Nobody else locks it.
    Exclusive,
    /// Nobody else locks it or a gap that it is in: it is going to be written.
    Write,
}

impl Mode {
    /// Whether two transactions cannot have these at once.
    #[inline]
    pub fn conflicts(self, other: Mode) -> bool {
        use Mode::{Gap, Shared, Write};
        match (self, other) {
            (Gap, other) | (other, Gap) => other == Write,
            (Shared, Shared) => false,
            _ => true,
        }
    }

    /// As messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Gap => "a gap lock",
            Mode::Shared => "a shared lock",
            Mode::Exclusive => "an exclusive lock",
            Mode::Write => "a lock to write",
        }
    }
}

/// The keys that a lock is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Span<'a> {
    /// One key.
    Key(&'a [u8]),
    /// The keys from the first up to, not including, the second; without a second: to the end.
    Range(&'a [u8], Option<&'a [u8]>),
}

impl Span<'_> {
    /// Whether a key is in it.
    pub fn has(self, key: &[u8]) -> bool {
        match self {
            Span::Key(own) => own == key,
            Span::Range(lower, upper) => lower <= key && upper.is_none_or(|upper| key < upper),
        }
    }

    /// Whether there is a key in both.
    pub fn overlaps(self, other: Span<'_>) -> bool {
        match (self, other) {
            (Span::Key(key), other) | (other, Span::Key(key)) => other.has(key),
            (Span::Range(a, a_end), Span::Range(b, b_end)) => {
                a_end.is_none_or(|end| b < end) && b_end.is_none_or(|end| a < end)
            }
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock<'a> {
    /// In which tree.
    pub tree: TreeId,
    /// On which keys.
    pub span: Span<'a>,
    /// How.
    pub mode: Mode,
}

/// A span that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedSpan {
    /// One key.
    Key(Arc<[u8]>),
    /// A range of keys.
    Range(Box<[u8]>, Option<Box<[u8]>>),
}

impl OwnedSpan {
    /// A copy.
    pub fn new(span: Span<'_>) -> OwnedSpan {
        match span {
            Span::Key(key) => OwnedSpan::Key(key.into()),
            Span::Range(lower, upper) => OwnedSpan::Range(lower.into(), upper.map(Into::into)),
        }
    }

    /// It, borrowed.
    pub fn get(&self) -> Span<'_> {
        match self {
            OwnedSpan::Key(key) => Span::Key(key),
            OwnedSpan::Range(lower, upper) => Span::Range(lower, upper.as_deref()),
        }
    }
}
