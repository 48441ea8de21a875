//! Waiting for a lock: getting into the queues, breaking circles, and out again.
//!
//! Who begins to wait takes all shards, so that what is decided holds for all of them. A circle has
//! edges of two kinds: to one who holds what is waited for, and to one who has merely asked for it
//! before. An edge of the second kind is no reason to give way: the request passes the earlier one,
//! which waits for it in any case. So a circle is a deadlock only if all of it is held. Such a one
//! is looked for first: who has given way leaves fewer others to pass.

use super::ask::{Ask, Pending, Wait};
use super::cell::{Entered, LockedCell};
use super::chains::Chains;
use super::deadlock::{self, Blocker, Blockers, Edge, Link, Report, Waiting};
use super::lock::{Lock, OwnedSpan, Span, TxnId};
use super::owner::{HeldKey, Owner};
use super::refusal::Refusal;
use super::table::LockTable;
use super::waiter::{Outcome, Waiter, Waits};
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::fs::Clock;
use crate::version::TreeId;
use std::ops::Range;
use std::time::Duration;

/// The longest wait without a look at the clock.
const SLICE: Duration = Duration::from_millis(50);

/// All shards, while nobody else is at them.
struct All<'a> {
    cells: Vec<Entered<'a>>,
}

impl All<'_> {
    /// One whom a request waits for; 0 if there is none.
    fn blocker(&self, id: TxnId, tree: TreeId, shards: Range<usize>) -> TxnId {
        let found = self.cells[shards].iter().find_map(|cell| cell.shard.blocker(id, tree));
        found.unwrap_or(0)
    }

    /// A circle of those who wait, through `start`; with `held`, one all of which is held.
    fn circle(&self, waits: &Waits, start: TxnId, held: bool) -> Option<Vec<Link>> {
        let shards = self.cells.iter().map(|cell| &cell.shard).collect();
        let circle = Chains::new(shards, waits).circle(start, held)?;
        assert!(circle.len() > 1, "nobody waits for himself");
        Some(circle)
    }

    /// Grants what one waits for, if all of it is free.
    fn try_grant(&mut self, waits: &Waits, id: TxnId) {
        let Some(Waiter { shards, waiting, slot }) = waits.get(&id) else { return };
        let cells = &mut self.cells[shards.clone()];
        let waits_on = |cell: &Entered<'_>| cell.shard.is_queued(id, waiting.tree);
        if !cells.iter().any(waits_on)
            || !cells.iter().all(|cell| cell.shard.is_clear(id, waiting.tree))
        {
            return;
        }
        let mut key = None;
        for cell in cells {
            cell.slots.remove(&id);
            key = key.or(cell.shard.grant_all(id, waiting.tree));
        }
        slot.tell(Outcome::Granted(key));
    }

    /// Takes a request out of the queues; answers whether it was there.
    fn cancel(&mut self, shards: Range<usize>, id: TxnId, tree: TreeId) -> bool {
        let mut was_there = false;
        for cell in &mut self.cells[shards] {
            cell.slots.remove(&id);
            was_there |= cell.shard.cancel(id, tree);
        }
        was_there
    }

    /// Wakes those who can go on.
    fn promote(&mut self, waits: &Waits, shards: Range<usize>, tree: TreeId) {
        for shard in shards {
            for part in self.cells[shard].promote(tree) {
                self.try_grant(waits, part);
            }
        }
    }
}

impl LockTable {
    fn freeze(&self) -> All<'_> {
        // One after the other in their order; who holds one does not ask for another.
        All { cells: self.cells.iter().map(LockedCell::lock).collect() }
    }

    /// Grants what these wait for, parts of which have become free, where all of it is.
    pub(super) fn grant_parts(&self, ids: Vec<TxnId>) {
        if ids.is_empty() {
            return;
        }
        let waits = self.waits.lock();
        let mut all = self.freeze();
        for id in ids {
            all.try_grant(&waits, id);
        }
    }

    /// Who is in the way of a request for a key, as one sees at once.
    fn holder_of(&self, owner: &Owner, ask: Ask<'_>, shard: usize) -> Option<TxnId> {
        self.cells[shard].lock().shard.holder(owner.id, ask.first)
    }

    #[cold]
    pub(super) fn wait(
        &self,
        owner: &mut Owner,
        ask: Ask<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        assert!(owner.pending.is_none(), "a transaction waits for one request at a time");
        let tree = ask.first.tree;
        let shards = self.shards_of(ask.first);
        if wait == Wait::Never
            && shards.len() == 1
            && let Some(holder) = self.holder_of(owner, ask, shards.start)
        {
            return Err(Refusal::Timeout { holder });
        }
        if wait != Wait::Never {
            owner.waits += 1;
            self.give_up_claims(owner);
        }
        let mut waits = self.waits.lock();
        let mut all = self.freeze();
        *owner.slot.outcome.lock() = Outcome::Open;
        let waiting = self.enqueue(&mut all, owner, ask, &shards);
        let slot = owner.slot.clone();
        let waiter = Waiter { shards: shards.clone(), waiting: waiting.clone(), slot };
        let before = waits.insert(owner.id, waiter);
        debug_assert!(before.is_none(), "a transaction waits once");
        let asked = ask.locks().into_iter().map(|lock| (OwnedSpan::new(lock.span), lock.mode));
        owner.pending = Some(Pending { asked: asked.collect(), waiting, shards: shards.clone() });
        all.try_grant(&waits, owner.id);
        // Nobody waits for one who holds nothing, and whose request is the last of all.
        if !owner.keys.is_empty() || !owner.ranges.is_empty() {
            self.break_circles(owner.id, &mut waits, &mut all, wait, clock);
        }
        let holder = all.blocker(owner.id, tree, shards.clone());
        if wait == Wait::Never && all.cancel(shards, owner.id, tree) {
            waits.remove(&owner.id);
            owner.pending = None;
            return Err(Refusal::Timeout { holder });
        }
        drop((all, waits));
        self.tell_observer(owner);
        match wait {
            Wait::Nanos(nanos) => {
                let outcome = self.block(owner, nanos, clock, holder);
                self.observed.tell_end(owner.id);
                outcome
            }
            Wait::Step | Wait::Never => {
                let open = matches!(*owner.slot.outcome.lock(), Outcome::Open);
                if open { Err(Refusal::Queued { holder }) } else { self.end_wait(owner) }
            }
        }
    }

    /// Puts what is asked for into the queues; answers with what is in the way, for reports.
    fn enqueue(
        &self,
        all: &mut All<'_>,
        owner: &Owner,
        ask: Ask<'_>,
        shards: &Range<usize>,
    ) -> Waiting {
        let (tree, whole) = (ask.first.tree, shards.len() == 1);
        for cell in &mut all.cells[shards.clone()] {
            cell.shard.enqueue(owner.id, ask.first, whole);
            if whole {
                cell.slots.insert(owner.id, owner.slot.clone());
            }
        }
        let mut reported = ask.first;
        if let Some(row) = ask.row
            && let Span::Key(key) = row.span
        {
            let cell = &mut all.cells[self.shard_of(tree, key)];
            if cell.shard.holder(owner.id, row).is_some() {
                reported = row;
            }
            cell.shard.enqueue(owner.id, row, whole);
        }
        Waiting::new(reported, owner.writes, owner.lock_count())
    }

    /// Whom a request waits for now.
    fn blockers_of(&self, id: TxnId, tree: TreeId, shards: Range<usize>) -> Vec<TxnId> {
        let mut found = Blockers::default();
        for cell in &self.cells[shards] {
            cell.lock().shard.blockers(id, tree, &mut |new| {
                found.add(new);
                true
            });
        }
        found.ids()
    }

    /// Whom one who waits waits for.
    pub(super) fn blockers(&self, waits: &Waits, id: TxnId) -> Vec<TxnId> {
        let Some(waiter) = waits.get(&id) else { return Vec::new() };
        self.blockers_of(id, waiter.waiting.tree, waiter.shards.clone())
    }

    /// Tells the observer who is in the owner's way.
    fn tell_observer(&self, owner: &Owner) {
        let Some(pending) = &owner.pending else { return };
        // The shards are free again when the observer is called.
        self.observed.tell(owner.id, || {
            self.blockers_of(owner.id, pending.waiting.tree, pending.shards.clone())
        });
    }

    /// Tells the observer, who knows all that came before, which of them hold what the owner waits
    /// for now. So that a thousand who wait for one key do not look through all of them each time.
    pub(super) fn tell_of_holders(&self, owner: &Owner) {
        let Some(pending) = &owner.pending else { return };
        self.observed.tell(owner.id, || {
            let mut found = Blockers::default();
            for (span, mode) in &pending.asked {
                let lock = Lock { tree: pending.waiting.tree, span: span.get(), mode: *mode };
                for cell in &self.cells[self.shards_of(lock)] {
                    cell.lock().shard.holders(owner.id, lock, &mut |id| {
                        found.add(Blocker { id, holds: true });
                        true
                    });
                }
            }
            found.ids()
        });
    }

    /// While `start` is in a circle of waits, makes one of the circle give way, or, where all of it
    /// is not held, one pass another who does not hold anything that it waits for. Who does not
    /// wait gives no reason for the former.
    fn break_circles(
        &self,
        start: TxnId,
        waits: &mut Waits,
        all: &mut All<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) {
        loop {
            if let Some(circle) = all.circle(waits, start, true) {
                if wait == Wait::Never {
                    return;
                }
                if self.give_way(&circle, waits, all, clock) {
                    continue;
                }
                return;
            }
            let Some(circle) = all.circle(waits, start, false) else { return };
            let merely_asked = circle.iter().position(|link| !link.holds);
            assert!(merely_asked.is_some(), "there is none all of which is held");
            let Some(at) = merely_asked else { return };
            let (waiter, other) = (circle[at].waiter, circle[(at + 1) % circle.len()].waiter);
            let Some(Waiter { shards, waiting, .. }) = waits.get(&waiter) else { return };
            for cell in &mut all.cells[shards.clone()] {
                cell.shard.pass(waiter, waiting.tree, other);
            }
            all.try_grant(waits, waiter);
        }
    }

    /// Makes one of a circle give way; answers whether it did.
    fn give_way(
        &self,
        circle: &[Link],
        waits: &mut Waits,
        all: &mut All<'_>,
        clock: &dyn Clock,
    ) -> bool {
        let next = circle.iter().cycle().skip(1);
        let edges = circle.iter().zip(next).filter_map(|(link, next)| {
            let waiting = waits.get(&link.waiter)?.waiting.clone();
            Some(Edge { waiter: link.waiter, waiting, holder: next.waiter })
        });
        let edges: Vec<Edge> = edges.collect();
        assert_eq!(edges.len(), circle.len(), "each of a circle waits");
        let Some(victim) = deadlock::victim(&edges) else { return false };
        let Some(Waiter { shards, waiting, slot }) = waits.remove(&victim) else { return false };
        let was_there = all.cancel(shards.clone(), victim, waiting.tree);
        debug_assert!(was_there, "who is in a circle is in a queue");
        let report = Arc::new(Report { edges, victim });
        slot.tell(Outcome::Deadlock(report.clone()));
        self.deadlocks.fetch_add(1, Ordering::Relaxed);
        *self.last_deadlock.lock() = Some((report, clock.now_nanos()));
        all.promote(waits, shards, waiting.tree);
        true
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
            let interrupted = owner.interrupted() || self.is_closed();
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
            // Others may hold it by now.
            self.tell_of_holders(owner);
        }
    }

    /// Takes the owner's request back; false if it has been decided meanwhile.
    pub(super) fn give_up(&self, owner: &mut Owner) -> bool {
        let Some(Pending { waiting, shards, .. }) = &owner.pending else { return false };
        let mut waits = self.waits.lock();
        let mut all = self.freeze();
        let given_up = all.cancel(shards.clone(), owner.id, waiting.tree);
        if given_up {
            waits.remove(&owner.id);
            all.promote(&waits, shards.clone(), waiting.tree);
            drop(all);
            owner.pending = None;
        }
        given_up
    }

    /// Takes note of how the owner's request was decided.
    pub(super) fn end_wait(&self, owner: &mut Owner) -> Result<(), Refusal> {
        let Some(pending) = owner.pending.take() else { return Ok(()) };
        self.waits.lock().remove(&owner.id);
        let outcome = std::mem::take(&mut *owner.slot.outcome.lock());
        match outcome {
            Outcome::Deadlock(report) => Err(Refusal::Deadlock(report)),
            Outcome::Granted(Some(key)) => {
                let tree = pending.waiting.tree;
                let shard = self.shard_of(tree, &key) as u8;
                owner.hold(HeldKey { tree, shard, key });
                Ok(())
            }
            Outcome::Granted(None) | Outcome::Open => Ok(()),
        }
    }

    /// Ends the request that an earlier call left in the queue, or says that it still waits.
    /// Answers whether it was granted and is what `ask` asks for now.
    pub(super) fn resume_pending(&self, owner: &mut Owner, ask: Ask<'_>) -> Result<bool, Refusal> {
        let Some(pending) = &owner.pending else { return Ok(false) };
        let is_it = pending.is_for(ask);
        if matches!(*owner.slot.outcome.lock(), Outcome::Open) {
            if is_it {
                let (tree, shards) = (pending.waiting.tree, pending.shards.clone());
                let blocker = |cell: &LockedCell| cell.lock().shard.blocker(owner.id, tree);
                if let Some(holder) = self.cells[shards].iter().find_map(blocker) {
                    return Err(Refusal::Queued { holder });
                }
            }
            if self.give_up(owner) {
                return Ok(false);
            }
        }
        self.end_wait(owner).map(|()| is_it)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "waits_tests.rs"]
mod tests;
