//! What an insert leaves for the next one, so that it need not search from the top of the list.
//! Of it only one thread at a time knows: who holds the finger of the list.
//!
//! Each insert writes here. The order of the fields is fixed, so that the end is written least:
//! after it comes what every search reads (see [`super::skiplist::SkipList`]).

use super::hints::Hints;
use super::node::{HEIGHT_MAX, Node};
use std::ptr;

/// Where a search passed each level: `prev[i]` is before the target on level `i`, `next[i]` was
/// its next node. `prev[i]` is never behind `prev[i - 1]`. What is on the highest levels, which are
/// hardly ever written, comes last.
#[repr(C)]
pub(super) struct Splice {
    pub(super) height: usize,
    pub(super) prev: [*mut Node; HEIGHT_MAX],
    /// The greatest of the heads in the links that led to `prev[i]`: mostly that of `prev[i]`.
    /// Every search for a target after `prev[i]` and with at least this head gets there.
    pub(super) prev_head: [u64; HEIGHT_MAX],
    pub(super) next: [*mut Node; HEIGHT_MAX],
    pub(super) next_head: [u64; HEIGHT_MAX],
}

impl Splice {
    pub(super) const EMPTY: Splice = Splice {
        height: 0,
        prev: [ptr::null_mut(); HEIGHT_MAX],
        prev_head: [0; HEIGHT_MAX],
        next: [ptr::null_mut(); HEIGHT_MAX],
        next_head: [u64::MAX; HEIGHT_MAX],
    };
}

/// What spares inserts the search from the top.
#[repr(C)]
pub(super) struct Finger {
    /// For those that are not close to the one before.
    pub(super) hints: Hints,
    /// Where an insert went lately: the next one is often close.
    pub(super) splice: Splice,
}
