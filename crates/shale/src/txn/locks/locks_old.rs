//! The lock table: shards behind mutexes, and those who wait.
//!
//! What nobody disputes costs one shard's mutex. Whoever has to wait takes the one mutex of the
//! waits first, so that beginnings of waits come one after the other and each sees all earlier
//! ones: then a deadlock is found when its last member begins to wait, and not later. Nobody holds
//! a mutex while he waits. Mutexes are taken in this order: waits, a shard (to merge locks, all in
//! their order), a transaction's slot.
//!
//! A range is asked for in one shard after the other. If one refuses, what the others have granted
//! is taken back, and the request waits in all of them: who waits holds nothing of what he waits
//! for. So do a row and the gap before it, which scans ask for together. Who holds many keys gets
//! ranges instead: see `escalate`.
//!
//! Who has nobody to wait beside him (a simulation in one thread) asks with [`Wait::Step`]: the
//! request stays in the queue, and asking for the same again tells what has become of it.

use super::deadlock::Report;
use super::interrupt::Interrupt;
use super::live::{About, Live, Registry, Seen};
use super::observer::Observed;
use super::refusal::Refusal;
use super::shard::{Decision, KEY_BYTES, Left, Lock, Mode, Shard, Span, TxnId};
use crate::base::coding;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Arc, Condvar, Mutex};
use crate::fs::Clock;
use crate::version::TreeId;
use cell::Place;
use std::time::Duration;

/// How many shards there are. A range is in all of them, so more would make ranges dear.
const SHARDS: usize = 16;

/// The longest wait without a look at the clock.
const SLICE: Duration = Duration::from_millis(50);

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

/// What has become of a request.
#[derive(Debug, Default)]
enum Outcome {
    #[default]
    Open,
    Granted(Option<std::sync::Arc<[u8]>>),
    Deadlock(Arc<Report>),
}

/// Where a transaction that waits is told, and what others may know of it.
#[derive(Debug, Default)]
struct Slot {
    outcome: Mutex<Outcome>,
    wake: Condvar,
    seen: Seen,
}

impl AsRef<Seen> for Slot {
    fn as_ref(&self) -> &Seen {
        &self.seen
    }
}

impl Slot {
    fn tell(&self, outcome: Outcome) {
        *self.outcome.lock() = outcome;
        self.wake.notify_all();
    }
}

/// A transaction as the lock table knows it. [`LockTable::release`] it at its end.
#[derive(Debug)]
pub struct Owner {
    id: TxnId,
    /// How many writes it has made.
    writes: u64,
    /// How often it has had to wait.
    waits: u64,
    /// Ends its waits from outside.
    pub interrupt: Option<Interrupt>,
    keys: Vec<HeldKey>,
    /// What these take of the table's memory.
    key_bytes: usize,
    /// How many of them the last merge has left.
    keys_unmerged: usize,
    /// How many merges there were: each changes their order.
    merges: u64,
    /// The trees with ranges that it holds.
    ranges: Vec<TreeId>,
    /// The last range asked for by [`LockTable::claim`], if it can be told from the others.
    claim: Option<Claim>,
    slot: Arc<Slot>,
    pending: Option<waits::Pending>,
    /// Where it is among the live ones, if it is.
    live_at: Option<usize>,
}

/// See [`Owner::mark`].
#[derive(Clone, Copy, Debug)]
pub struct KeysMark {
    keys: usize,
    merges: u64,
}

#[derive(Debug)]
struct HeldKey {
    tree: TreeId,
    shard: u8,
    key: std::sync::Arc<[u8]>,
}

impl HeldKey {
    fn bytes(&self) -> usize {
        KEY_BYTES + self.key.len()
    }
}

/// A range of which the owner makes use from its beginning on.
#[derive(Debug)]
struct Claim {
    tree: TreeId,
    lower: Vec<u8>,
    upper: Vec<u8>,
    /// Up to where it has done so.
    used: Vec<u8>,
}

impl Owner {
    fn new(id: TxnId, live_at: Option<usize>, slot: Arc<Slot>) -> Owner {
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
            claim: None,
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
    fn lock_count(&self) -> u64 {
        const LOOKED_AT: usize = 256;
        let mut trees = Vec::new();
        for held in self.keys.iter().take(LOOKED_AT) {
            if !trees.contains(&held.tree) {
                trees.push(held.tree);
            }
        }
        (trees.len() + self.ranges.len() + self.keys.len() / 100) as u64
    }

    fn interrupted(&self) -> bool {
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

    /// A place among the keys that it holds.
    pub fn mark(&self) -> KeysMark {
        KeysMark { keys: self.keys.len(), merges: self.merges }
    }

    /// Notes how many writes it has made, and what they take.
    pub fn note_writes(&mut self, writes: u64, bytes: u64) {
        self.writes = writes;
        self.slot.seen.note_writes(writes, bytes);
    }

    /// Makes use of what it has claimed up to `upper`, as far as `end`; false if it has not, or not
    /// any more.
    pub fn use_claim(&mut self, tree: TreeId, upper: &[u8], end: &[u8]) -> bool {
        let is_it = |claim: &&mut Claim| claim.tree == tree && claim.upper == upper;
        let Some(claim) = self.claim.as_mut().filter(is_it) else { return false };
        claim.used.clear();
        claim.used.extend_from_slice(end);
        true
    }

    fn hold(&mut self, key: HeldKey) {
        self.key_bytes += key.bytes();
        self.keys.push(key);
        self.slot.seen.note_keys(self.keys.len());
    }
}

/// What one call asks for.
#[derive(Clone, Copy, Debug)]
struct Ask<'a> {
    first: Lock<'a>,
    /// After a range, the key of a row.
    row: Option<Lock<'a>>,
}

/// All locks of a database.
#[derive(Debug)]
pub struct LockTable {
    cells: Vec<Place>,
    waits: Mutex<waits::Waits>,
    next: AtomicU64,
    /// What one shard may take.
    shard_bytes_max: usize,
    deadlocks: AtomicU64,
    escalations: AtomicU64,
    /// And when it was.
    last_deadlock: Mutex<Option<(Arc<Report>, u64)>>,
    live: Registry<Slot>,
    /// Is told of waits, when they begin and while they last; called without a mutex held.
    pub observed: Observed,
}

impl LockTable {
    /// An empty table that may take so many bytes.
    pub fn new(bytes_max: u64) -> LockTable {
        LockTable {
            cells: (0..SHARDS).map(|_| Place::default()).collect(),
            waits: Mutex::default(),
            next: AtomicU64::new(1),
            shard_bytes_max: (bytes_max as usize) / SHARDS,
            deadlocks: AtomicU64::new(0),
            escalations: AtomicU64::new(0),
            last_deadlock: Mutex::new(None),
            live: Registry::default(),
            observed: Observed::default(),
        }
    }

    /// A new transaction, which holds nothing.
    pub fn owner(&self) -> Owner {
        Owner::new(self.next.fetch_add(1, Ordering::Relaxed), None, Arc::default())
    }

    /// As [`LockTable::owner`], and shown by [`LockTable::live`] until it is released.
    pub fn live_owner(&self, about: About) -> Owner {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let slot = Slot { seen: Seen::new(about), ..Slot::default() };
        let (place, slot) = self.live.add(id, slot);
        Owner::new(id, Some(place), slot)
    }

    fn shard_of(tree: TreeId, key: &[u8]) -> usize {
        let hash = coding::hash(key) ^ u64::from(tree).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize % SHARDS
    }

    /// Gets a lock for `owner`, or says why not. What is granted stays until [`Self::release`].
    pub fn acquire(
        &self,
        owner: &mut Owner,
        lock: Lock<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        self.acquire_ask(owner, Ask { first: lock, row: None }, wait, clock)
    }

    /// Gets the lock of a row together with that of a range that leads to it, of the same tree: as
    /// long as one of the two has to wait, neither is held.
    pub fn acquire_row(
        &self,
        owner: &mut Owner,
        range: Lock<'_>,
        row: Lock<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        debug_assert!(matches!((range.span, row.span), (Span::Range(..), Span::Key(_))));
        self.acquire_ask(owner, Ask { first: range, row: Some(row) }, wait, clock)
    }

    /// Locks the gaps of a range, if nobody is in the way, of which the owner is going to make use
    /// from its beginning on ([`Owner::use_claim`]). It is given up beyond what is in use as soon
    /// as the owner waits for anything: nobody is to wait for one who has not come to the place and
    /// cannot.
    pub fn claim(
        &self,
        owner: &mut Owner,
        tree: TreeId,
        (lower, upper): (&[u8], &[u8]),
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        let lock = Lock { tree, span: Span::Range(lower, Some(upper)), mode: Mode::Gap };
        self.acquire(owner, lock, Wait::Never, clock)?;
        let (lower, upper) = (lower.to_vec(), upper.to_vec());
        owner.claim = Some(Claim { tree, used: lower.clone(), lower, upper });
        Ok(())
    }

    fn acquire_ask(
        &self,
        owner: &mut Owner,
        ask: Ask<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        if owner.pending.is_some() && self.settle(owner, ask)? {
            return Ok(());
        }
        let before = owner.keys.len();
        let mut result = self.acquire_all(owner, ask, wait, clock);
        if matches!(result, Err(Refusal::Full { .. }))
            && self.may_escalate(owner)
            && self.escalate(owner, escalate::FEW)
        {
            result = self.acquire_all(owner, ask, wait, clock);
        }
        if owner.keys.len() > before && self.is_crowded(owner) {
            self.escalate(owner, escalate::FEW);
        }
        result
    }

    #[inline]
    fn acquire_all(
        &self,
        owner: &mut Owner,
        ask: Ask<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        let lock = ask.first;
        let Span::Key(key) = lock.span else {
            return self.acquire_range(owner, ask, wait, clock);
        };
        match self.request(owner, Self::shard_of(lock.tree, key), lock) {
            Some(result) => result,
            None => self.wait(owner, ask, wait, clock),
        }
    }

    fn acquire_range(
        &self,
        owner: &mut Owner,
        ask: Ask<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        let range = ask.first;
        // Noted before, so that what is granted in part is let go of at the end.
        if !owner.ranges.contains(&range.tree) {
            owner.ranges.push(range.tree);
        }
        // It becomes one with what the owner has.
        owner.claim.take_if(|claim| claim.tree == range.tree);
        let mut new = 0;
        let mut refused = None;
        for (shard, cell) in self.cells.iter().enumerate() {
            match cell.lock().shard.request(owner.id, range, self.shard_bytes_max) {
                Decision::Held => {}
                Decision::Granted(_) => new |= 1 << shard,
                other => {
                    refused = Some(self.note(owner, shard, range.tree, other));
                    break;
                }
            }
        }
        if let (None, Some(row)) = (&refused, ask.row)
            && let Span::Key(key) = row.span
        {
            refused = Some(self.request(owner, Self::shard_of(row.tree, key), row));
        }
        match refused {
            None | Some(Some(Ok(()))) => return Ok(()),
            _ => self.take_back(owner, range.tree, new),
        }
        match refused {
            Some(Some(result)) => result,
            _ => self.wait(owner, ask, wait, clock),
        }
    }

    /// Lets go of the range granted last, in the shards of a set.
    #[cold]
    fn take_back(&self, owner: &Owner, tree: TreeId, shards: u32) {
        let mut parts = Vec::new();
        for (shard, cell) in self.cells.iter().enumerate() {
            if shards & (1 << shard) != 0 {
                let mut cell = cell.lock();
                cell.shard.take_back(owner.id, tree);
                parts.append(&mut cell.promote(tree));
            }
        }
        self.grant_parts(parts);
    }

    #[inline]
    fn request(
        &self,
        owner: &mut Owner,
        shard: usize,
        lock: Lock<'_>,
    ) -> Option<Result<(), Refusal>> {
        let decision = self.cells[shard].lock().shard.request(owner.id, lock, self.shard_bytes_max);
        self.note(owner, shard, lock.tree, decision)
    }

    /// Notes what was granted; `None` if others are in the way.
    fn note(
        &self,
        owner: &mut Owner,
        shard: usize,
        tree: TreeId,
        decision: Decision,
    ) -> Option<Result<(), Refusal>> {
        match decision {
            Decision::Busy => None,
            Decision::Full => {
                let bytes_max = (self.shard_bytes_max * SHARDS) as u64;
                Some(Err(Refusal::Full { bytes_max }))
            }
            Decision::Held | Decision::Granted(None) => Some(Ok(())),
            Decision::Granted(Some(key)) => {
                owner.hold(HeldKey { tree, shard: shard as u8, key });
                Some(Ok(()))
            }
        }
    }

    /// Lets go of everything, and takes back what is waited for.
    pub fn release(&self, owner: &mut Owner) {
        if owner.pending.is_some() && !self.give_up(owner) {
            // Decided meanwhile: what was granted is let go of with the rest.
            let _ = self.end_wait(owner);
        }
        (owner.key_bytes, owner.keys_unmerged) = (0, 0);
        owner.claim = None;
        let mut parts = Vec::new();
        for held in owner.keys.drain(..) {
            let mut cell = self.cells[usize::from(held.shard)].lock();
            cell.shard.release(owner.id, held.tree, &held.key);
            add_new(&mut parts, cell.promote(held.tree));
        }
        owner.slot.seen.note_keys(0);
        if let Some(place) = owner.live_at.take() {
            self.live.remove(owner.id, place);
        }
        for tree in owner.ranges.drain(..) {
            for cell in &self.cells {
                let mut cell = cell.lock();
                cell.shard.release_ranges(owner.id, tree);
                add_new(&mut parts, cell.promote(tree));
                cell.shard.tidy();
            }
        }
        self.grant_parts(parts);
    }

    /// Gives up what the last call has got of a key, unless it was to write: what the owner had of
    /// it before, it has again. Answers whether it has nothing now.
    pub fn give_up_last(&self, owner: &mut Owner, tree: TreeId, key: &[u8]) -> bool {
        let mut cell = self.cells[Self::shard_of(tree, key)].lock();
        let left = cell.shard.give_up_last(owner.id, tree, key);
        let parts = if left == Left::All { Vec::new() } else { cell.promote(tree) };
        drop(cell);
        self.grant_parts(parts);
        let released = left == Left::Nothing;
        let is_it = |held: &HeldKey| held.tree == tree && *held.key == *key;
        if released && let Some(at) = owner.keys.iter().rposition(is_it) {
            // Mostly the last; the order stays, for marks.
            let held = owner.keys.remove(at);
            owner.key_bytes = owner.key_bytes.saturating_sub(held.bytes());
            owner.slot.seen.note_keys(owner.keys.len());
        }
        released
    }

    /// Lets go of the keys that were got to write since a mark and that no other call has asked
    /// for: what was written there has been undone.
    pub fn release_undone(&self, owner: &mut Owner, mark: KeysMark) {
        if owner.merges != mark.merges {
            return;
        }
        let mut parts = Vec::new();
        let since = owner.keys.split_off(mark.keys.min(owner.keys.len()));
        for held in since {
            let mut cell = self.cells[usize::from(held.shard)].lock();
            if cell.shard.release_undone(owner.id, held.tree, &held.key) {
                add_new(&mut parts, cell.promote(held.tree));
                owner.key_bytes = owner.key_bytes.saturating_sub(held.bytes());
            } else {
                owner.keys.push(held);
            }
        }
        owner.slot.seen.note_keys(owner.keys.len());
        self.grant_parts(parts);
    }

    /// Holds a key, which the last call has got to write, in a weaker mode to the end, or in that
    /// which the owner had it in before.
    pub fn keep_as(&self, owner: &Owner, tree: TreeId, key: &[u8], mode: Mode) {
        let mut cell = self.cells[Self::shard_of(tree, key)].lock();
        let left = cell.shard.keep_as(owner.id, tree, key, mode);
        let parts = if left == Left::All { Vec::new() } else { cell.promote(tree) };
        drop(cell);
        self.grant_parts(parts);
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

/// Adds those that are not there.
fn add_new(all: &mut Vec<TxnId>, more: Vec<TxnId>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

#[path = "cell.rs"]
mod cell;
#[path = "escalate.rs"]
mod escalate;
#[path = "views.rs"]
mod views;
#[path = "waits.rs"]
mod waits;

#[cfg(test)]
#[path = "locks_tests.rs"]
mod tests;
