//! A transaction as the lock table knows it: what it holds, and what it waits for.

use super::ask::{Ask, Pending};
use super::interrupt::Interrupt;
use super::lock::{Lock, TxnId};
use super::tree_locks::KEY_BYTES;
use super::waiter::Slot;
use crate::base::sync::Arc;
use crate::version::TreeId;

/// A transaction as the lock table knows it. [`super::LockTable::release`] it at its end.
#[derive(Debug)]
pub struct Owner {
    pub(super) id: TxnId,
    /// How many writes it has made.
    pub(super) writes: u64,
    /// How often it has had to wait.
    pub(super) waits: u64,
    /// Ends its waits from outside.
    pub interrupt: Option<Interrupt>,
    pub(super) keys: Vec<HeldKey>,
    /// What these take of the table's memory.
    pub(super) key_bytes: usize,
    /// How many of them the last merge has left.
    pub(super) keys_unmerged: usize,
    /// How many merges there were: each changes their order.
    pub(super) merges: u64,
    /// The trees with ranges that it holds.
    pub(super) ranges: Vec<TreeId>,
    /// Whether the range asked for last was not held before.
    pub(super) range_is_new: bool,
    /// How many ranges of gaps it has got since they were merged, and how many were left then.
    pub(super) gaps_new: usize,
    pub(super) gaps_left: usize,
    /// The ranges got by [`super::LockTable::claim`] that can be given up: one of a tree, which is
    /// the last that was got of it.
    pub(super) claims: Vec<Claim>,
    /// How many claims it has made.
    pub(super) claims_made: u64,
    pub(super) slot: Arc<Slot>,
    pub(super) pending: Option<Pending>,
    /// Where it is among the live ones, if it is.
    pub(super) live_at: Option<usize>,
}

/// See [`Owner::mark`].
#[derive(Clone, Copy, Debug)]
pub struct KeysMark {
    pub(super) keys: usize,
    pub(super) merges: u64,
}

#[derive(Debug)]
pub(super) struct HeldKey {
    pub(super) tree: TreeId,
    pub(super) shard: u8,
    pub(super) key: std::sync::Arc<[u8]>,
}

impl HeldKey {
    pub(super) fn bytes(&self) -> usize {
        KEY_BYTES + self.key.len()
    }
}

/// A range of which the owner makes use from its beginning on.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) number: u64,
    pub(super) tree: TreeId,
    pub(super) lower: Vec<u8>,
    pub(super) upper: Vec<u8>,
    /// Up to where it has done so.
    pub(super) used: Vec<u8>,
}

impl Owner {
    pub(super) fn new(id: TxnId, live_at: Option<usize>, slot: Arc<Slot>) -> Owner {
        Owner {
            id,
            writes: 0,
            waits: 0,
            interrupt: None,
            keys: Vec::new(),
            key_bytes: 0,
            keys_unmerged: 0,
            merges: 0,
            ranges: Vec::new(),
            range_is_new: false,
            gaps_new: 0,
            gaps_left: 0,
            claims: Vec::new(),
            claims_made: 0,
            slot,
            pending: None,
            live_at,
        }
    }

    /// Its number.
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// How many locks it has, as they weigh in a deadlock: one for the keys of a tree and one for
    /// its ranges, and one for each hundred keys. InnoDB, whose choice users rely on, counts the
    /// locks of one page together.
    pub(super) fn lock_count(&self) -> u64 {
        const LOOKED_AT: usize = 256;
        let mut trees = Vec::new();
        for held in self.keys.iter().take(LOOKED_AT) {
            if !trees.contains(&held.tree) {
                trees.push(held.tree);
            }
        }
        (trees.len() + self.ranges.len() + self.keys.len() / 100) as u64
    }

    pub(super) fn interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(Interrupt::is_set)
    }

    /// How often it has had to wait: others have come and gone meanwhile.
    pub fn waits(&self) -> u64 {
        self.waits
    }

    /// How many keys it holds.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// A position among the keys that it holds.
    pub fn mark(&self) -> KeysMark {
        KeysMark { keys: self.keys.len(), merges: self.merges }
    }

    /// Notes how many writes it has made, and what they take.
    pub fn note_writes(&mut self, writes: u64, bytes: u64) {
        self.writes = writes;
        self.slot.seen.note_writes(writes, bytes);
    }

    /// Makes use of what it has claimed by this number, as far as `end`; false if it has not, or
    /// not any more. What is in use stays so.
    pub fn use_claim(&mut self, number: u64, end: &[u8]) -> bool {
        let is_it = |claim: &&mut Claim| claim.number == number;
        let Some(claim) = self.claims.iter_mut().find(is_it) else { return false };
        debug_assert!(end <= claim.upper.as_slice(), "it uses what it has claimed");
        if claim.used.as_slice() < end {
            claim.used.clear();
            claim.used.extend_from_slice(end);
        }
        true
    }

    pub(super) fn hold(&mut self, key: HeldKey) {
        self.key_bytes += key.bytes();
        self.keys.push(key);
        self.slot.seen.note_keys(self.keys.len());
    }

    /// Whether an earlier call has left a request for this, and for nothing else.
    pub fn has_asked(&self, lock: Lock<'_>) -> bool {
        let ask = Ask { first: lock, row: None };
        self.pending.as_ref().is_some_and(|pending| pending.is_for(ask))
    }
}
