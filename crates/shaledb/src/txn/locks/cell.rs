//! A shard behind its mutex, and what is known of it without that.

use super::lock::TxnId;
use super::shard::Shard;
use super::waiter::{Outcome, Slot};
use crate::base::rank;
use crate::base::sync::atomic::{AtomicUsize, Ordering};
use crate::base::sync::{Arc, Mutex, MutexGuard};
use crate::version::TreeId;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// A shard, and the slots of those who wait in it.
#[derive(Debug, Default)]
pub(super) struct Cell {
    pub(super) shard: Shard,
    pub(super) slots: BTreeMap<TxnId, Arc<Slot>>,
}

impl Cell {
    /// Wakes those whose requests can be granted now; answers with those of whose parts that may be
    /// so, for [`super::table::LockTable::grant_parts`].
    #[must_use]
    pub(super) fn promote(&mut self, tree: TreeId) -> Vec<TxnId> {
        if !self.shard.has_waiters(tree) {
            return Vec::new();
        }
        let promoted = self.shard.promote(tree);
        for (owner, key) in promoted.granted {
            if let Some(slot) = self.slots.remove(&owner) {
                slot.tell(Outcome::Granted(key));
            }
        }
        promoted.parts
    }
}

/// A cell behind its mutex, on cache lines of its own: threads are in several at once.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct LockedCell {
    cell: Mutex<Cell, { rank::LOCK_SHARD }>,
    /// What the shard's locks take, as of the last time that anybody was in it.
    bytes: AtomicUsize,
}

impl LockedCell {
    #[inline]
    pub(super) fn lock(&self) -> Entered<'_> {
        Entered { cell: self.cell.lock(), bytes: &self.bytes }
    }

    /// How many bytes of memory all that is held takes; none if nothing is held. What others have
    /// locked before they have told this thread of it is in it.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }
}

/// A cell while nobody else is in it.
pub(super) struct Entered<'a> {
    cell: MutexGuard<'a, Cell>,
    bytes: &'a AtomicUsize,
}

impl Deref for Entered<'_> {
    type Target = Cell;

    #[inline]
    fn deref(&self) -> &Cell {
        &self.cell
    }
}

impl DerefMut for Entered<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Cell {
        &mut self.cell
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        let bytes = self.cell.shard.bytes();
        debug_assert_eq!(bytes == 0, self.cell.shard.holds_nothing());
        if self.bytes.load(Ordering::Relaxed) != bytes {
            self.bytes.store(bytes, Ordering::Release);
        }
    }
}
