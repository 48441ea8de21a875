//! The lock table itself: its shards, who waits in them, and who is under way.

use super::cell::LockedCell;
use super::deadlock::Report;
use super::live::{About, Registry, Seen};
use super::lock::{Lock, Span};
use super::observer::Observed;
use super::owner::Owner;
use super::waiter::{Slot, Waits};
use crate::base::coding;
use crate::base::rank;
use crate::base::shards::Padded;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};
use crate::version::TreeId;
use std::ops::Range;

/// How many shards there are at most. A range is in all of them, so more would make ranges dear.
const SHARDS_MAX: usize = 16;

/// How many are enough for threads on so many cores: few are in one at a time. A power of two.
fn shards_for(cores: usize) -> usize {
    match cores {
        0..=2 => 4,
        3..=4 => 8,
        _ => SHARDS_MAX,
    }
}

/// All locks of a database.
#[derive(Debug)]
pub struct LockTable {
    pub(super) cells: Vec<LockedCell>,
    pub(super) waits: Mutex<Waits, { rank::LOCK_WAITS }>,
    /// The number of the next transaction. Each that begins changes it, and each lock reads what
    /// is beside it.
    next: Padded<AtomicU64>,
    /// What one shard may take.
    pub(super) shard_bytes_max: usize,
    pub(super) deadlocks: AtomicU64,
    pub(super) escalations: AtomicU64,
    /// And when it was.
    pub(super) last_deadlock: Mutex<Option<(Arc<Report>, u64)>, { rank::LAST_DEADLOCK }>,
    pub(super) live: Registry<Slot>,
    /// Nobody waits any more.
    closed: AtomicBool,
    /// Is told of waits, when they begin and while they last; called without a mutex held.
    pub observed: Observed,
}

impl LockTable {
    /// An empty table that may take so many bytes, with as many shards as one has at most.
    pub fn new(bytes_max: u64) -> LockTable {
        // A call keeps the shards that it was granted in as bits of 32.
        const { assert!(SHARDS_MAX.is_power_of_two() && SHARDS_MAX <= u32::BITS as usize) };
        LockTable {
            cells: (0..SHARDS_MAX).map(|_| LockedCell::default()).collect(),
            waits: Mutex::default(),
            next: Padded(AtomicU64::new(1)),
            shard_bytes_max: (bytes_max as usize) / SHARDS_MAX,
            deadlocks: AtomicU64::new(0),
            escalations: AtomicU64::new(0),
            last_deadlock: Mutex::new(None),
            live: Registry::default(),
            closed: AtomicBool::new(false),
            observed: Observed::default(),
        }
    }

    /// Has as many shards from now on as are of use on so many cores. Nobody has locked anything.
    pub fn fit(&mut self, cores: usize) {
        self.set_shards(shards_for(cores));
    }

    /// Has so many shards from now on, a power of two; not one: what is in one shard is a key.
    pub(super) fn set_shards(&mut self, shards: usize) {
        assert!(shards.is_power_of_two() && (2..=SHARDS_MAX).contains(&shards), "{shards} shards");
        assert!(self.bytes() == 0, "nothing is locked yet");
        self.shard_bytes_max = self.bytes_max() / shards;
        self.cells = (0..shards).map(|_| LockedCell::default()).collect();
    }

    /// How many bytes all shards together may take.
    pub(super) fn bytes_max(&self) -> usize {
        self.shard_bytes_max * self.cells.len()
    }

    /// Ends the waits of all, within 50 milliseconds: they are refused as if interrupted. Who
    /// observes them is told no more.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.observed.end();
    }

    /// Whether nobody waits any more.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// A new transaction, which holds nothing.
    pub fn owner(&self) -> Owner {
        Owner::new(self.next.0.fetch_add(1, Ordering::Relaxed), None, Arc::default())
    }

    /// As [`LockTable::owner`], and shown by [`LockTable::live`] until it is released.
    pub fn live_owner(&self, about: About) -> Owner {
        let id = self.next.0.fetch_add(1, Ordering::Relaxed);
        let slot = Slot { seen: Seen::new(about), ..Slot::default() };
        let (list_at, slot) = self.live.add(id, slot);
        Owner::new(id, Some(list_at), slot)
    }

    pub(super) fn shard_of(&self, tree: TreeId, key: &[u8]) -> usize {
        let hash = coding::hash(key) ^ u64::from(tree).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Their number is a power of two.
        (hash >> 32) as usize & (self.cells.len() - 1)
    }

    /// The shards that a lock is in.
    pub(super) fn shards_of(&self, lock: Lock<'_>) -> Range<usize> {
        match lock.span {
            Span::Key(key) => {
                let shard = self.shard_of(lock.tree, key);
                shard..shard + 1
            }
            Span::Range(..) => 0..self.cells.len(),
        }
    }

    /// How many deadlocks there were, and the last one and when it was, in clock nanoseconds.
    pub fn deadlocks(&self) -> (u64, Option<(Arc<Report>, u64)>) {
        (self.deadlocks.load(Ordering::Relaxed), self.last_deadlock.lock().clone())
    }

    /// How often locks of keys were made ranges.
    pub fn escalations(&self) -> u64 {
        self.escalations.load(Ordering::Relaxed)
    }
}
