//! One shard of the lock table, as a value: who holds what, who waits for what, and what follows
//! when somebody asks or lets go. It neither waits nor wakes: that is for [`super::waits`].
//!
//! A lock is on a key or on a range of keys of a tree, whether or not there are rows, and has one
//! of four modes. Locks of two transactions whose spans overlap conflict as follows:
//!
//! ```text
//!             gap   shared   exclusive   write
//! gap          -      -          -         x
//! shared       -      -          x         x
//! exclusive    -      x          x         x
//! write        x      x          x         x
//! ```
//!
//! A gap lock keeps others from writing in a range, so that a locking scan meets no phantoms; gap
//! locks do not disturb each other, nor those who lock rows that are there. Keys are spread over
//! the shards by hash and a range is in all of them, so each shard decides on its own.
//!
//! Requests are served in the order in which they came: one that conflicts with an earlier one that
//! still waits has to wait as well, or a stream of shared locks would starve an exclusive one. But
//! nobody waits for a request that waits for a lock of his own: he would wait for himself. Where
//! that is so by way of others, or of another shard, the request is told to pass
//! ([`Shard::pass`]).
//!
//! A request may have parts, in several shards or several of one: none is held before all are free.
//! The shard then says only that its own are, see [`Promoted`].

use super::deadlock::Blocker;
use super::holders::{Holder, Holders};
use super::lock::{Lock, Mode, OwnedSpan, Span, TxnId};
use super::tree_locks::{Bounds, KEY_BYTES, RangeLock, Request, TreeLocks};
use crate::version::TreeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// So many trees of which nothing is held are no burden.
const TREES_KEPT: usize = 64;

/// What a request comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is held, and was before.
    Held,
    /// It is held now. For a key: the key, which the shard and the holder share.
    Granted(Option<Arc<[u8]>>),
    /// Others are in the way.
    Busy,
    /// The shard may hold no more.
    Full,
}

/// What is left of a lock after some of it was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// All of it; nobody gains.
    All,
    /// A weaker mode.
    Less,
    /// Nothing.
    Nothing,
}

/// What has become free.
#[derive(Debug, Default)]
pub struct Promoted {
    /// Who has got what was waited for, and the key if it is a new one.
    pub granted: Vec<(TxnId, Option<Arc<[u8]>>)>,
    /// Whose parts are free here; they are in the queue as before.
    pub parts: Vec<TxnId>,
}

/// The locks of those keys whose hashes fall here.
#[derive(Debug, Default)]
pub struct Shard {
    pub(super) trees: BTreeMap<TreeId, TreeLocks>,
    bytes: usize,
    /// With more trees than these it is looked for some that can be forgotten.
    trees_looked: usize,
}

impl Shard {
    /// Grants a lock if nobody is in the way and the shard then takes at most `bytes_max`.
    #[inline]
    pub fn request(&mut self, owner: TxnId, lock: Lock<'_>, bytes_max: usize) -> Decision {
        let Lock { tree, span, mode } = lock;
        let Span::Key(key) = span else {
            return self.request_range(owner, lock, &mut None, bytes_max);
        };
        let locks = self.trees.entry(tree).or_default();
        // A statement of many rows asks for keys that nobody holds: no more is looked up for these.
        let is_new = !locks.keys.contains_key(key);
        let is_held = match is_new {
            true => locks.is_in_range(owner, span, mode),
            false => locks.is_held_again(owner, span, mode),
        };
        if is_held {
            return Decision::Held;
        }
        let is_free = match is_new && locks.queue.is_empty() {
            true => !locks.has_range_conflict(owner, span, mode),
            false => locks.is_free(owner, span, mode),
        };
        if !is_free {
            return Decision::Busy;
        }
        if self.bytes > bytes_max {
            return Decision::Full;
        }
        let (bytes, key) = match is_new {
            true => locks.grant_new(owner, key, mode),
            false => locks.grant(owner, span, mode),
        };
        self.bytes = self.bytes.saturating_add_signed(bytes);
        Decision::Granted(key)
    }

    /// As [`Shard::request`], of a range; what all shards share of it is made by the first that
    /// needs it.
    pub fn request_range(
        &mut self,
        owner: TxnId,
        lock: Lock<'_>,
        bounds: &mut Option<Bounds>,
        bytes_max: usize,
    ) -> Decision {
        let Lock { tree, span, mode } = lock;
        let Span::Range(lower, upper) = span else {
            return self.request(owner, lock, bytes_max);
        };
        let locks = self.trees.entry(tree).or_default();
        // Most shards have nothing of a tree.
        if !locks.is_vacant() {
            if locks.is_held_again(owner, span, mode) {
                return Decision::Held;
            }
            if !locks.is_free(owner, span, mode) {
                return Decision::Busy;
            }
        }
        if self.bytes > bytes_max {
            return Decision::Full;
        }
        let bounds = bounds.get_or_insert_with(|| Bounds::new(lower, upper)).clone();
        let bytes = locks.grant_range(owner, bounds, mode);
        self.bytes = self.bytes.saturating_add_signed(bytes);
        Decision::Granted(None)
    }

    /// Whether nobody else holds or waits for what this conflicts with, but for those who wait for
    /// the owner.
    pub fn is_free(&self, owner: TxnId, lock: Lock<'_>) -> bool {
        self.trees.get(&lock.tree).is_none_or(|locks| locks.is_free(owner, lock.span, lock.mode))
    }

    /// How the owner holds a key.
    pub fn mode_of(&mut self, owner: TxnId, tree: TreeId, key: &[u8]) -> Option<Mode> {
        let holders = self.trees.get_mut(&tree)?.keys.get_mut(key)?;
        holders.of(owner).map(|held| held.mode)
    }

    /// Whether the owner holds a key, or a range that it is in, in this mode or a stronger one.
    pub fn holds(&self, owner: TxnId, tree: TreeId, key: &[u8], mode: Mode) -> bool {
        let Some(locks) = self.trees.get(&tree) else { return false };
        let holders = locks.keys.get(key).map(Holders::as_slice).unwrap_or_default();
        holders.iter().any(|held| held.owner == owner && held.mode >= mode)
            || locks.is_in_range(owner, Span::Key(key), mode)
    }

    /// Tells of the ranges of a tree that the owner holds.
    pub fn each_range(&self, owner: TxnId, tree: TreeId, found: &mut dyn FnMut(Lock<'_>)) {
        let ranges = self.trees.get(&tree).map(|locks| locks.ranges.as_slice());
        for range in ranges.unwrap_or_default().iter().filter(|range| range.owner == owner) {
            found(Lock { tree, span: range.span(), mode: range.mode });
        }
    }

    /// Grants a range that is free; those of the owner that it covers go, however much is taken.
    pub fn cover(&mut self, owner: TxnId, lock: Lock<'_>) {
        let locks = self.trees.entry(lock.tree).or_default();
        let (mut bytes, _) = locks.grant(owner, lock.span, lock.mode);
        bytes += locks.merge_fresh(owner);
        if let Some(new) = locks.ranges.pop() {
            locks.ranges.retain(|old| {
                let covered = old.owner == owner && old.mode <= new.mode && new.covers(old.span());
                bytes -= if covered { old.bytes() as isize } else { 0 };
                !covered
            });
            locks.ranges.push(new);
        }
        self.bytes = self.bytes.saturating_add_signed(bytes);
    }

    /// Takes back the range that the owner was granted last. Others may be free to go then.
    pub fn take_back(&mut self, owner: TxnId, tree: TreeId) {
        let Some(locks) = self.trees.get_mut(&tree) else { return };
        let is_fresh = |range: &RangeLock| range.owner == owner && range.fresh;
        if let Some(at) = locks.ranges.iter().position(is_fresh) {
            let range = locks.ranges.swap_remove(at);
            debug_assert!(self.bytes >= range.bytes(), "what goes was counted");
            self.bytes = self.bytes.saturating_sub(range.bytes());
        }
    }

    /// Puts a request at the end of the queue, unless what it asks for is held. An owner has one at
    /// a time, in one tree; without `whole` it is one of its parts.
    pub fn enqueue(&mut self, owner: TxnId, lock: Lock<'_>, whole: bool) {
        let Lock { tree, span, mode } = lock;
        let locks = self.trees.entry(tree).or_default();
        if locks.is_held_again(owner, span, mode) {
            return;
        }
        debug_assert!(!locks.queue.iter().any(|other| other.owner == owner && whole));
        let span = OwnedSpan::new(span);
        locks.queue.push(Request { owner, span, mode, whole, passes: Vec::new() });
    }

    /// Tells of those whom what `owner` has in the queue of a tree waits for, until `found` answers
    /// false.
    pub fn blockers(&self, owner: TxnId, tree: TreeId, found: &mut dyn FnMut(Blocker) -> bool) {
        let Some(locks) = self.trees.get(&tree) else { return };
        let mut continues = true;
        for position in locks.positions(owner) {
            locks.blockers_at(position, &mut |blocker| {
                debug_assert_ne!(blocker.id, owner, "nobody waits for himself");
                continues = found(blocker);
                continues
            });
            if !continues {
                return;
            }
        }
    }

    /// One of those whom what `owner` has in the queue of a tree waits for.
    pub fn blocker(&self, owner: TxnId, tree: TreeId) -> Option<TxnId> {
        let mut first = None;
        self.blockers(owner, tree, &mut |blocker| {
            first = Some(blocker.id);
            false
        });
        first
    }

    /// From now on what `owner` has in the queue does not wait for what `other` has there.
    pub fn pass(&mut self, owner: TxnId, tree: TreeId, other: TxnId) {
        debug_assert_ne!(owner, other, "nobody waits for himself");
        let Some(locks) = self.trees.get_mut(&tree) else { return };
        for request in locks.queue.iter_mut().filter(|request| request.owner == owner) {
            request.passes.push(other);
        }
    }

    /// Whether nobody is in the way of what `owner` has in the queue.
    pub fn is_clear(&self, owner: TxnId, tree: TreeId) -> bool {
        let Some(locks) = self.trees.get(&tree) else { return true };
        locks.positions(owner).all(|position| locks.is_free_at(position))
    }

    /// Grants all that `owner` has in the queue, which is clear; answers with a new key.
    pub fn grant_all(&mut self, owner: TxnId, tree: TreeId) -> Option<Arc<[u8]>> {
        debug_assert!(self.is_clear(owner, tree), "all parts are free before one is held");
        let locks = self.trees.get_mut(&tree)?;
        let mut new = None;
        while let Some(position) = locks.queue.iter().position(|request| request.owner == owner) {
            let request = locks.queue.remove(position);
            let (bytes, key) = locks.grant(owner, request.span.get(), request.mode);
            self.bytes = self.bytes.saturating_add_signed(bytes);
            new = new.or(key);
        }
        new
    }

    /// Whether `owner` waits for something in a tree.
    pub fn is_queued(&self, owner: TxnId, tree: TreeId) -> bool {
        self.trees.get(&tree).is_some_and(|locks| locks.positions(owner).next().is_some())
    }

    /// One who holds what a request conflicts with.
    pub fn holder(&self, owner: TxnId, lock: Lock<'_>) -> Option<TxnId> {
        let mut holder = None;
        self.holders(owner, lock, &mut |id| {
            holder = Some(id);
            false
        });
        holder
    }

    /// Tells of those who hold what a request conflicts with, until `found` answers false.
    pub fn holders(&self, owner: TxnId, lock: Lock<'_>, found: &mut dyn FnMut(TxnId) -> bool) {
        if let Some(locks) = self.trees.get(&lock.tree) {
            locks.conflicts(owner, lock.span, lock.mode, found);
        }
    }

    /// Takes the request of `owner` out of the queue; answers whether it was there. Others may be
    /// free to go then: see [`Shard::promote`].
    pub fn cancel(&mut self, owner: TxnId, tree: TreeId) -> bool {
        let Some(locks) = self.trees.get_mut(&tree) else { return false };
        let before = locks.queue.len();
        locks.queue.retain(|request| request.owner != owner);
        locks.queue.len() < before
    }

    /// Lets go of a key; answers whether it was held.
    pub fn release(&mut self, owner: TxnId, tree: TreeId, key: &[u8]) -> bool {
        let Some(locks) = self.trees.get_mut(&tree) else { return false };
        let Some(holders) = locks.keys.get_mut(key) else { return false };
        let Some(nobody_left) = holders.remove(owner) else { return false };
        let mut freed = KEY_BYTES;
        if nobody_left {
            locks.keys.remove(key);
            freed += key.len();
        }
        debug_assert!(self.bytes >= freed, "what goes was counted");
        self.bytes = self.bytes.saturating_sub(freed);
        true
    }

    /// Gives up what the last call has got of a key, unless it was to write.
    pub fn give_up_last(&mut self, owner: TxnId, tree: TreeId, key: &[u8]) -> Left {
        match self.held(owner, tree, key).copied() {
            Some(Holder { mode: Mode::Write, .. }) | None => Left::All,
            Some(Holder { kept: None, .. }) => {
                self.release(owner, tree, key);
                Left::Nothing
            }
            Some(Holder { kept: Some(mode), .. }) => self.hold_less(owner, tree, key, mode),
        }
    }

    /// Lets go of a key that was asked for once only, to write; answers whether it did.
    pub fn release_undone(&mut self, owner: TxnId, tree: TreeId, key: &[u8]) -> bool {
        let is_free = |held: &mut Holder| held.kept.is_none() && held.mode == Mode::Write;
        let free = self.held(owner, tree, key).is_some_and(is_free);
        if free {
            self.release(owner, tree, key);
        }
        free
    }

    /// What the last call has got of a key is held in this mode from now on, or in that of the
    /// calls before it, if that is stronger.
    pub fn keep_as(&mut self, owner: TxnId, tree: TreeId, key: &[u8], mode: Mode) -> Left {
        let kept = self.held(owner, tree, key).and_then(|held| held.kept);
        self.hold_less(owner, tree, key, kept.map_or(mode, |kept| kept.max(mode)))
    }

    fn held(&mut self, owner: TxnId, tree: TreeId, key: &[u8]) -> Option<&mut Holder> {
        let held = self.trees.get_mut(&tree)?.keys.get_mut(key)?.of(owner)?;
        debug_assert!(held.kept.is_none_or(|kept| kept <= held.mode), "what is kept is held");
        Some(held)
    }

    fn hold_less(&mut self, owner: TxnId, tree: TreeId, key: &[u8], mode: Mode) -> Left {
        let Some(held) = self.held(owner, tree, key) else { return Left::All };
        let less = mode < held.mode;
        held.mode = held.mode.min(mode);
        held.kept = Some(held.mode);
        if less { Left::Less } else { Left::All }
    }

    /// Tells `found` of what is held (false) and waited for (true), until it answers false.
    pub fn each(&self, found: &mut dyn FnMut(TxnId, Lock<'_>, bool) -> bool) {
        for (&tree, locks) in &self.trees {
            for (key, holders) in &locks.keys {
                for holder in holders.as_slice() {
                    let lock = Lock { tree, span: Span::Key(key), mode: holder.mode };
                    if !found(holder.owner, lock, false) {
                        return;
                    }
                }
            }
            for range in &locks.ranges {
                let lock = Lock { tree, span: range.span(), mode: range.mode };
                if !found(range.owner, lock, false) {
                    return;
                }
            }
            for request in &locks.queue {
                let lock = Lock { tree, span: request.span.get(), mode: request.mode };
                if !found(request.owner, lock, true) {
                    return;
                }
            }
        }
    }

    /// Lets go of the ranges of a tree, with `written` also of those that are to write; answers
    /// whether anybody waits for something in it.
    pub fn release_ranges(&mut self, owner: TxnId, tree: TreeId, written: bool) -> bool {
        let Some(locks) = self.trees.get_mut(&tree) else { return false };
        let mut freed = 0;
        locks.ranges.retain(|range| {
            let keep = range.owner != owner || (!written && range.mode == Mode::Write);
            freed += if keep { 0 } else { range.bytes() };
            keep
        });
        debug_assert!(self.bytes >= freed, "what goes was counted");
        self.bytes = self.bytes.saturating_sub(freed);
        !locks.queue.is_empty()
    }

    /// Whether anybody waits for something in this tree.
    #[inline]
    pub fn has_waiters(&self, tree: TreeId) -> bool {
        self.trees.get(&tree).is_some_and(|locks| !locks.queue.is_empty())
    }

    /// Grants what can be granted of what is waited for in a tree, in order.
    pub fn promote(&mut self, tree: TreeId) -> Promoted {
        let mut done = Promoted::default();
        let Some(locks) = self.trees.get_mut(&tree) else { return done };
        let mut position = 0;
        while let Some(request) = locks.queue.get(position) {
            let (owner, whole) = (request.owner, request.whole);
            if !locks.is_free_at(position) {
                position += 1;
                continue;
            }
            if !whole {
                done.parts.push(owner);
                position += 1;
                continue;
            }
            let request = locks.queue.remove(position);
            let (bytes, key) = locks.grant(owner, request.span.get(), request.mode);
            self.bytes = self.bytes.saturating_add_signed(bytes);
            done.granted.push((owner, key));
        }
        done
    }

    /// About how many bytes of memory all that is held takes; none if nothing is held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nobody holds anything, by a look at all trees.
    pub fn holds_nothing(&self) -> bool {
        self.trees.values().all(|locks| locks.keys.is_empty() && locks.ranges.is_empty())
    }

    /// Forgets trees of which nothing is held, if there are many more than at the last look: all
    /// looks together take as long as what they look at took to come.
    pub fn tidy(&mut self) {
        if self.trees.len() > self.trees_looked.max(TREES_KEPT) {
            self.trees.retain(|_, locks| !locks.is_vacant());
            self.trees_looked = 2 * self.trees.len();
        }
    }

    /// How many keys and ranges are held; adds those who wait.
    pub fn counts(&self, waiting: &mut BTreeSet<TxnId>) -> (usize, usize) {
        let mut sums = (0, 0);
        for locks in self.trees.values() {
            sums.0 += locks.keys.values().map(|h| h.as_slice().len()).sum::<usize>();
            sums.1 += locks.ranges.len();
            waiting.extend(locks.queue.iter().map(|request| request.owner));
        }
        sums
    }
}

#[cfg(test)]
#[path = "shard_tests.rs"]
mod tests;
