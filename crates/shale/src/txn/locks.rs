//! The lock table: shards behind mutexes, and those who wait.
//!
//! What nobody disputes costs one shard's mutex. Whoever has to wait takes the one mutex of the
//! waits first, so that beginnings of waits come one after the other and each sees all earlier
//! ones: then a deadlock is found when its last member begins to wait, and not later. Nobody holds
//! a mutex while he waits. Mutexes are taken in this order: waits, a shard (to merge locks, all in
//! their order), a transaction's slot.
//!
//! A range is asked for in one shard after the other; what has been granted so far stays. Who holds
//! many keys gets ranges instead: see `escalate`.
//!
//! Who has nobody to wait beside him (a simulation in one thread) asks with [`Wait::Step`]: the
//! request stays in the queue, and asking for the same again tells what has become of it.

use super::deadlock::{self, Edge, Report, Waiting};
use super::interrupt::Interrupt;
use super::live::{About, Live, Registry, Seen};
use super::observer::Observed;
use super::refusal::Refusal;
use super::shard::{Decision, KEY_BYTES, Lock, Shard, Span, TxnId};
use crate::base::coding;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Arc, Condvar, Mutex};
use crate::fs::Clock;
use crate::version::TreeId;
use std::collections::BTreeMap;
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
    /// How many writes it has made: what it would cost to undo it.
    writes: u64,
    /// Ends its waits from outside.
    pub interrupt: Option<Interrupt>,
    keys: Vec<HeldKey>,
    /// What these take of the table's memory.
    key_bytes: usize,
    /// How many of them the last merge has left.
    keys_unmerged: usize,
    /// The trees with ranges that it holds.
    ranges: Vec<TreeId>,
    slot: Arc<Slot>,
    pending: Option<Pending>,
    /// Where it is among the live ones, if it is.
    live_at: Option<usize>,
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

/// A request that waits.
#[derive(Debug)]
struct Pending {
    waiting: Waiting,
    shard: usize,
}

impl Owner {
    fn new(id: TxnId, live_at: Option<usize>, slot: Arc<Slot>) -> Owner {
        Owner {
            id,
            writes: 0,
            interrupt: None,
            keys: Vec::new(),
            key_bytes: 0,
            keys_unmerged: 0,
            ranges: Vec::new(),
            slot,
            pending: None,
            live_at,
        }
    }

    /// Its number.
    pub fn id(&self) -> TxnId {
        self.id
    }

    fn interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(Interrupt::is_set)
    }

    /// How many keys it holds.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Notes how many writes it has made, and what they take.
    pub fn note_writes(&mut self, writes: u64, bytes: u64) {
        self.writes = writes;
        self.slot.seen.note_writes(writes, bytes);
    }

    fn hold(&mut self, key: HeldKey) {
        self.key_bytes += key.bytes();
        self.keys.push(key);
        self.slot.seen.note_keys(self.keys.len());
    }
}

/// A shard, and the slots of those who wait in it.
#[derive(Debug, Default)]
struct Cell {
    shard: Shard,
    slots: BTreeMap<TxnId, Arc<Slot>>,
}

impl Cell {
    /// Wakes those whose requests can be granted now.
    fn promote(&mut self, tree: TreeId) {
        if self.shard.has_waiters(tree) {
            for (owner, key) in self.shard.promote(tree) {
                if let Some(slot) = self.slots.remove(&owner) {
                    slot.tell(Outcome::Granted(key));
                }
            }
        }
    }

    fn cancel(&mut self, owner: TxnId, tree: TreeId) -> bool {
        self.slots.remove(&owner);
        let was_there = self.shard.cancel(owner, tree);
        self.promote(tree);
        was_there
    }
}

/// Who waits, where, and for what.
type Waits = BTreeMap<TxnId, (usize, Waiting)>;

/// All locks of a database.
#[derive(Debug)]
pub struct LockTable {
    cells: Vec<Mutex<Cell>>,
    waits: Mutex<Waits>,
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
            cells: (0..SHARDS).map(|_| Mutex::default()).collect(),
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
        if owner.pending.is_some() {
            self.settle(owner, lock)?;
        }
        let before = owner.keys.len();
        let mut result = self.acquire_all(owner, lock, wait, clock);
        if matches!(result, Err(Refusal::Full { .. }))
            && self.may_escalate(owner)
            && self.escalate(owner, escalate::FEW)
        {
            result = self.acquire_all(owner, lock, wait, clock);
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
        lock: Lock<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        if let Span::Key(key) = lock.span {
            return self.acquire_in(owner, Self::shard_of(lock.tree, key), lock, wait, clock);
        }
        // Noted before, so that what is granted in part is let go of at the end.
        if !owner.ranges.contains(&lock.tree) {
            owner.ranges.push(lock.tree);
        }
        (0..SHARDS).try_for_each(|shard| self.acquire_in(owner, shard, lock, wait, clock))
    }

    #[inline]
    fn acquire_in(
        &self,
        owner: &mut Owner,
        shard: usize,
        lock: Lock<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        let decision = self.cells[shard].lock().shard.request(owner.id, lock, self.shard_bytes_max);
        match self.note(owner, shard, lock.tree, decision) {
            Some(result) => result,
            None => self.wait(owner, shard, lock, wait, clock),
        }
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

    #[cold]
    fn wait(
        &self,
        owner: &mut Owner,
        shard: usize,
        lock: Lock<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        let mut waits = self.waits.lock();
        let holder = {
            let mut cell = self.cells[shard].lock();
            let decision = cell.shard.request(owner.id, lock, self.shard_bytes_max);
            if let Some(result) = self.note(owner, shard, lock.tree, decision) {
                return result;
            }
            *owner.slot.outcome.lock() = Outcome::Open;
            cell.shard.enqueue(owner.id, lock);
            let holder = cell.shard.blockers(owner.id, lock.tree).first().copied().unwrap_or(0);
            if wait == Wait::Never {
                cell.shard.cancel(owner.id, lock.tree);
                return Err(Refusal::Timeout { holder });
            }
            cell.slots.insert(owner.id, owner.slot.clone());
            holder
        };
        let waiting = Waiting::new(lock, owner.writes);
        waits.insert(owner.id, (shard, waiting.clone()));
        self.break_circles(owner.id, &mut waits, clock);
        drop(waits);
        owner.pending = Some(Pending { waiting, shard });
        self.tell_observer(owner);
        match wait {
            Wait::Nanos(nanos) => self.block(owner, nanos, clock, holder),
            Wait::Step | Wait::Never => {
                let open = matches!(*owner.slot.outcome.lock(), Outcome::Open);
                if open { Err(Refusal::Queued { holder }) } else { self.end_wait(owner) }
            }
        }
    }

    fn tell_observer(&self, owner: &Owner) {
        let Some(pending) = &owner.pending else { return };
        // The shard is free again when the observer is called.
        self.observed.tell(owner.id, || {
            self.cells[pending.shard].lock().shard.blockers(owner.id, pending.waiting.tree)
        });
    }

    /// While `start` is in a circle of waits, makes one of the circle give way.
    fn break_circles(&self, start: TxnId, waits: &mut Waits, clock: &dyn Clock) {
        loop {
            let blockers = |id: TxnId| match waits.get(&id) {
                Some((shard, waiting)) => {
                    self.cells[*shard].lock().shard.blockers(id, waiting.tree)
                }
                None => Vec::new(),
            };
            let Some(circle) = deadlock::find_circle(start, blockers) else { return };
            let next = circle.iter().copied().cycle().skip(1);
            let edges: Vec<Edge> = circle
                .iter()
                .zip(next)
                .filter_map(|(&waiter, holder)| {
                    let waiting = waits.get(&waiter)?.1.clone();
                    Some(Edge { waiter, waiting, holder })
                })
                .collect();
            let Some(victim) = deadlock::victim(&edges) else { return };
            let Some((shard, waiting)) = waits.get(&victim).cloned() else { return };
            let report = Arc::new(Report { edges, victim });
            let mut cell = self.cells[shard].lock();
            let slot = cell.slots.get(&victim).cloned();
            // If it has been granted just now, there is no circle any more.
            if cell.cancel(victim, waiting.tree)
                && let Some(slot) = slot
            {
                slot.tell(Outcome::Deadlock(report.clone()));
                waits.remove(&victim);
                self.deadlocks.fetch_add(1, Ordering::Relaxed);
                *self.last_deadlock.lock() = Some((report, clock.now_nanos()));
            }
        }
    }

    /// Waits until the owner's request is decided or the time is up.
    fn block(
        &self,
        owner: &mut Owner,
        nanos: u64,
        clock: &dyn Clock,
        holder: TxnId,
    ) -> Result<(), Refusal> {
        let mut before = clock.now_nanos();
        let mut left = nanos;
        loop {
            let interrupted = owner.interrupted();
            let mut outcome = owner.slot.outcome.lock();
            if matches!(*outcome, Outcome::Open) && left > 0 && !interrupted {
                let slice = SLICE.min(Duration::from_nanos(left));
                outcome = owner.slot.wake.wait_timeout(outcome, slice);
                let now = clock.now_nanos();
                // A clock that stands still would make this wait for ever.
                let passed = if now > before { now - before } else { slice.as_nanos() as u64 };
                (before, left) = (now, left.saturating_sub(passed));
            }
            let open = matches!(*outcome, Outcome::Open);
            drop(outcome);
            if !open {
                return self.end_wait(owner);
            }
            if left == 0 || interrupted {
                // It may be granted at this very moment.
                return match self.give_up(owner) {
                    true if interrupted => Err(Refusal::Interrupted { holder }),
                    true => Err(Refusal::Timeout { holder }),
                    false => self.end_wait(owner),
                };
            }
            // Others may have come into its way meanwhile.
            self.tell_observer(owner);
        }
    }

    /// Takes the owner's request back; false if it has been decided meanwhile.
    fn give_up(&self, owner: &mut Owner) -> bool {
        let Some(pending) = &owner.pending else { return false };
        let given_up = self.cells[pending.shard].lock().cancel(owner.id, pending.waiting.tree);
        if given_up {
            self.waits.lock().remove(&owner.id);
            owner.pending = None;
        }
        given_up
    }

    /// Takes note of how the owner's request was decided.
    fn end_wait(&self, owner: &mut Owner) -> Result<(), Refusal> {
        let Some(pending) = owner.pending.take() else { return Ok(()) };
        self.waits.lock().remove(&owner.id);
        let outcome = std::mem::take(&mut *owner.slot.outcome.lock());
        match outcome {
            Outcome::Deadlock(report) => Err(Refusal::Deadlock(report)),
            Outcome::Granted(Some(key)) => {
                let (tree, shard) = (pending.waiting.tree, pending.shard as u8);
                owner.hold(HeldKey { tree, shard, key });
                Ok(())
            }
            Outcome::Granted(None) | Outcome::Open => Ok(()),
        }
    }

    /// Looks after the request that an earlier call left in the queue; `lock` is asked for now.
    fn settle(&self, owner: &mut Owner, lock: Lock<'_>) -> Result<(), Refusal> {
        let Some(pending) = &owner.pending else { return Ok(()) };
        if matches!(*owner.slot.outcome.lock(), Outcome::Open) {
            let waiting = &pending.waiting;
            let (tree, mode) = (waiting.tree, waiting.mode);
            if (tree, waiting.span.get(), mode) == (lock.tree, lock.span, lock.mode) {
                let cell = self.cells[pending.shard].lock();
                let holder = cell.shard.blockers(owner.id, tree).first().copied().unwrap_or(0);
                if holder != 0 {
                    return Err(Refusal::Queued { holder });
                }
            }
            if self.give_up(owner) {
                return Ok(());
            }
        }
        self.end_wait(owner)
    }

    /// Lets go of everything, and takes back what is waited for.
    pub fn release(&self, owner: &mut Owner) {
        if owner.pending.is_some() && !self.give_up(owner) {
            // Decided meanwhile: what was granted is let go of with the rest.
            let _ = self.end_wait(owner);
        }
        (owner.key_bytes, owner.keys_unmerged) = (0, 0);
        for held in owner.keys.drain(..) {
            let mut cell = self.cells[usize::from(held.shard)].lock();
            cell.shard.release(owner.id, held.tree, &held.key);
            cell.promote(held.tree);
        }
        owner.slot.seen.note_keys(0);
        if let Some(place) = owner.live_at.take() {
            self.live.remove(owner.id, place);
        }
        for tree in owner.ranges.drain(..) {
            for cell in &self.cells {
                let mut cell = cell.lock();
                cell.shard.release_ranges(owner.id, tree);
                cell.promote(tree);
                cell.shard.tidy();
            }
        }
    }

    /// Lets go of a key that the owner has asked for once only, and not to write; answers whether
    /// it did.
    pub fn release_once(&self, owner: &mut Owner, tree: TreeId, key: &[u8]) -> bool {
        let mut cell = self.cells[Self::shard_of(tree, key)].lock();
        let released = cell.shard.release_once(owner.id, tree, key);
        if released {
            cell.promote(tree);
        }
        drop(cell);
        let is_it = |held: &HeldKey| held.tree == tree && *held.key == *key;
        if released && let Some(at) = owner.keys.iter().rposition(is_it) {
            let held = owner.keys.swap_remove(at);
            owner.key_bytes = owner.key_bytes.saturating_sub(held.bytes());
            owner.slot.seen.note_keys(owner.keys.len());
        }
        released
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

#[path = "escalate.rs"]
mod escalate;
#[path = "views.rs"]
mod views;

#[cfg(test)]
#[path = "locks_tests.rs"]
mod tests;
