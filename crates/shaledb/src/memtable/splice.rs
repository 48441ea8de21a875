//! The place of an insert: between which two nodes it is on each level.

use super::node::{HEIGHT_MAX, Node};
use std::ptr;

/// Where a search passed each level: `prev[i]` is before the target on level `i`, `next[i]` was
/// its next node. `prev[i]` is never behind `prev[i - 1]`.
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
