//! One shard of the lock table, as a value: who holds what, who waits for what, and what follows
//! when somebody asks or lets go. It neither waits nor wakes: that is for [`super::locks`].
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
//! nobody waits for a request that waits for a lock of his own: he would wait for himself.

use super::holders::{Holder, Holders};
use crate::version::TreeId;
use std::collections::BTreeMap;
use std::ops::Bound;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span<'a> {
    /// One key.
    Key(&'a [u8]),
    /// The keys from the first up to, not including, the second; without a second: to the end.
    Range(&'a [u8], Option<&'a [u8]>),
}

impl Span<'_> {
    fn has(self, key: &[u8]) -> bool {
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

#[derive(Debug)]
struct RangeLock {
    owner: TxnId,
    mode: Mode,
    lower: Box<[u8]>,
    upper: Option<Box<[u8]>>,
}

impl RangeLock {
    fn span(&self) -> Span<'_> {
        Span::Range(&self.lower, self.upper.as_deref())
    }

    fn covers(&self, span: Span<'_>) -> bool {
        match span {
            Span::Key(key) => self.span().has(key),
            Span::Range(lower, upper) => {
                *self.lower <= *lower
                    && match (&self.upper, upper) {
                        (None, _) => true,
                        (Some(_), None) => false,
                        (Some(own), Some(other)) => other <= &**own,
                    }
            }
        }
    }

    /// Whether the two make one range together.
    fn touches(&self, lower: &[u8], upper: Option<&[u8]>) -> bool {
        upper.is_none_or(|upper| *self.lower <= *upper)
            && self.upper.as_deref().is_none_or(|own| lower <= own)
    }

    fn bytes(&self) -> usize {
        RANGE_BYTES + self.lower.len() + self.upper.as_ref().map_or(0, |upper| upper.len())
    }
}

#[derive(Debug)]
struct Request {
    owner: TxnId,
    span: OwnedSpan,
    mode: Mode,
}

/// What a held key takes beside its bytes: its place in the tree, the counts of the shared key, and
/// its place in the holder's list.
pub(super) const KEY_BYTES: usize = 112;
/// What a held range takes beside its bounds.
const RANGE_BYTES: usize = size_of::<RangeLock>();

#[derive(Debug, Default)]
struct TreeLocks {
    keys: BTreeMap<Arc<[u8]>, Holders>,
    ranges: Vec<RangeLock>,
    /// In the order in which they came.
    queue: Vec<Request>,
}

impl TreeLocks {
    /// Tells `found` of the others who hold what conflicts, until it answers false.
    fn conflicts(
        &self,
        owner: TxnId,
        span: Span<'_>,
        mode: Mode,
        found: &mut dyn FnMut(TxnId) -> bool,
    ) {
        let in_the_way = |other: TxnId, held: Mode| other != owner && held.conflicts(mode);
        match span {
            Span::Key(key) => {
                let holders = self.keys.get(key).map(Holders::as_slice).unwrap_or_default();
                for holder in holders {
                    if in_the_way(holder.owner, holder.mode) && !found(holder.owner) {
                        return;
                    }
                }
            }
            Span::Range(lower, upper) => {
                let end = upper.map_or(Bound::Unbounded, Bound::Excluded);
                if upper.is_none_or(|upper| lower < upper) {
                    let inside = self.keys.range::<[u8], _>((Bound::Included(lower), end));
                    for holder in inside.flat_map(|(_, holders)| holders.as_slice()) {
                        if in_the_way(holder.owner, holder.mode) && !found(holder.owner) {
                            return;
                        }
                    }
                }
            }
        }
        for range in &self.ranges {
            if in_the_way(range.owner, range.mode)
                && range.span().overlaps(span)
                && !found(range.owner)
            {
                return;
            }
        }
    }

    /// Whether `owner` holds something that this conflicts with.
    fn is_held_up_by(&self, owner: TxnId, request: &Request) -> bool {
        let mut held_up = false;
        self.conflicts(request.owner, request.span.get(), request.mode, &mut |holder| {
            held_up = holder == owner;
            !held_up
        });
        held_up
    }

    /// Tells `found` of all whom this request of `owner` has to wait for, if it is at place `place`
    /// of the queue.
    fn blockers(
        &self,
        owner: TxnId,
        span: Span<'_>,
        mode: Mode,
        place: usize,
        found: &mut dyn FnMut(TxnId) -> bool,
    ) {
        let mut go_on = true;
        self.conflicts(owner, span, mode, &mut |holder| {
            go_on = found(holder);
            go_on
        });
        for earlier in self.queue.iter().take(place) {
            if !go_on {
                return;
            }
            if earlier.owner != owner
                && earlier.mode.conflicts(mode)
                && earlier.span.get().overlaps(span)
                && !self.is_held_up_by(owner, earlier)
            {
                go_on = found(earlier.owner);
            }
        }
    }

    fn is_free(&self, owner: TxnId, span: Span<'_>, mode: Mode, place: usize) -> bool {
        let mut free = true;
        self.blockers(owner, span, mode, place, &mut |_| {
            free = false;
            false
        });
        free
    }

    /// Whether the owner has it already. From now on two calls rely on it.
    fn is_held_again(&mut self, owner: TxnId, span: Span<'_>, mode: Mode) -> bool {
        if let Span::Key(key) = span
            && let Some(held) = self.keys.get_mut(key).and_then(|holders| holders.of(owner))
        {
            held.once = false;
            if held.mode >= mode {
                return true;
            }
        }
        let covers = |range: &RangeLock| range.owner == owner && range.mode >= mode;
        self.ranges.iter().any(|range| covers(range) && range.covers(span))
    }

    /// Notes the lock; answers by how many bytes the memory taken has changed, and with a new key.
    fn grant(&mut self, owner: TxnId, span: Span<'_>, mode: Mode) -> (isize, Option<Arc<[u8]>>) {
        match span {
            Span::Key(key) => {
                let new = Holder { owner, mode, once: mode != Mode::Write };
                if let Some(holders) = self.keys.get_mut(key) {
                    if let Some(held) = holders.of(owner) {
                        *held = Holder { once: false, ..new };
                        return (0, None);
                    }
                    holders.add(new);
                    let key = self.keys.get_key_value(key).map(|(key, _)| key.clone());
                    (KEY_BYTES as isize, key)
                } else {
                    let key: Arc<[u8]> = key.into();
                    self.keys.insert(key.clone(), Holders::One(new));
                    ((KEY_BYTES + key.len()) as isize, Some(key))
                }
            }
            Span::Range(lower, upper) => {
                let mut new =
                    RangeLock { owner, mode, lower: lower.into(), upper: upper.map(Into::into) };
                let mut bytes = 0;
                while let Some(at) = self.ranges.iter().position(|range| {
                    range.owner == owner
                        && range.mode == mode
                        && range.touches(&new.lower, new.upper.as_deref())
                }) {
                    let old = self.ranges.swap_remove(at);
                    bytes -= old.bytes() as isize;
                    new.lower = new.lower.min(old.lower);
                    new.upper = match (new.upper, old.upper) {
                        (Some(a), Some(b)) => Some(a.max(b)),
                        _ => None,
                    };
                }
                bytes += new.bytes() as isize;
                self.ranges.push(new);
                (bytes, None)
            }
        }
    }
}

/// The locks of those keys whose hashes fall here.
#[derive(Debug, Default)]
pub struct Shard {
    trees: BTreeMap<TreeId, TreeLocks>,
    bytes: usize,
}

impl Shard {
    /// Grants a lock if nobody is in the way and the shard then takes at most `bytes_max`.
    #[inline]
    pub fn request(&mut self, owner: TxnId, lock: Lock<'_>, bytes_max: usize) -> Decision {
        let Lock { tree, span, mode } = lock;
        let locks = self.trees.entry(tree).or_default();
        if locks.is_held_again(owner, span, mode) {
            return Decision::Held;
        }
        if !locks.is_free(owner, span, mode, locks.queue.len()) {
            return Decision::Busy;
        }
        if self.bytes > bytes_max {
            return Decision::Full;
        }
        let (bytes, key) = locks.grant(owner, span, mode);
        self.bytes = self.bytes.saturating_add_signed(bytes);
        Decision::Granted(key)
    }

    /// Whether nobody else holds or waits for what this conflicts with, but for those who wait for
    /// the owner.
    pub fn is_free(&self, owner: TxnId, lock: Lock<'_>) -> bool {
        self.trees
            .get(&lock.tree)
            .is_none_or(|locks| locks.is_free(owner, lock.span, lock.mode, locks.queue.len()))
    }

    /// How the owner holds a key.
    pub fn mode_of(&mut self, owner: TxnId, tree: TreeId, key: &[u8]) -> Option<Mode> {
        let holders = self.trees.get_mut(&tree)?.keys.get_mut(key)?;
        holders.of(owner).map(|held| held.mode)
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

    /// Puts a request that was found busy at the end of the queue. An owner has one at a time.
    pub fn enqueue(&mut self, owner: TxnId, lock: Lock<'_>) {
        let locks = self.trees.entry(lock.tree).or_default();
        debug_assert!(!locks.queue.iter().any(|request| request.owner == owner));
        let span = OwnedSpan::new(lock.span);
        locks.queue.push(Request { owner, span, mode: lock.mode });
    }

    /// Whom the request that `owner` has in the queue of a tree waits for; nobody if it has none.
    pub fn blockers(&self, owner: TxnId, tree: TreeId) -> Vec<TxnId> {
        let mut all = Vec::new();
        let Some(locks) = self.trees.get(&tree) else { return all };
        let Some(place) = locks.queue.iter().position(|request| request.owner == owner) else {
            return all;
        };
        let request = &locks.queue[place];
        locks.blockers(owner, request.span.get(), request.mode, place, &mut |blocker| {
            if !all.contains(&blocker) {
                all.push(blocker);
            }
            true
        });
        all
    }

    /// Takes the request of `owner` out of the queue; answers whether it was there. Others may be
    /// free to go then: see [`Shard::promote`].
    pub fn cancel(&mut self, owner: TxnId, tree: TreeId) -> bool {
        let Some(locks) = self.trees.get_mut(&tree) else { return false };
        let before = locks.queue.len();
        locks.queue.retain(|request| request.owner != owner);
        locks.queue.len() < before
    }

    /// Lets go of a key.
    pub fn release(&mut self, owner: TxnId, tree: TreeId, key: &[u8]) {
        let Some(locks) = self.trees.get_mut(&tree) else { return };
        let Some(holders) = locks.keys.get_mut(key) else { return };
        let Some(nobody_left) = holders.remove(owner) else { return };
        let mut freed = KEY_BYTES;
        if nobody_left {
            locks.keys.remove(key);
            freed += key.len();
        }
        self.bytes = self.bytes.saturating_sub(freed);
    }

    /// Lets go of a key that was asked for once only, and not to write; answers whether it did.
    pub fn release_once(&mut self, owner: TxnId, tree: TreeId, key: &[u8]) -> bool {
        let holders = self.trees.get_mut(&tree).and_then(|locks| locks.keys.get_mut(key));
        let held = holders.and_then(|holders| holders.of(owner));
        let once = held.is_some_and(|held| held.once);
        if once {
            self.release(owner, tree, key);
        }
        once
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

    /// Lets go of all ranges of a tree.
    pub fn release_ranges(&mut self, owner: TxnId, tree: TreeId) {
        let Some(locks) = self.trees.get_mut(&tree) else { return };
        let mut freed = 0;
        locks.ranges.retain(|range| {
            let keep = range.owner != owner;
            freed += if keep { 0 } else { range.bytes() };
            keep
        });
        self.bytes = self.bytes.saturating_sub(freed);
    }

    /// Whether anybody waits for something in this tree.
    #[inline]
    pub fn has_waiters(&self, tree: TreeId) -> bool {
        self.trees.get(&tree).is_some_and(|locks| !locks.queue.is_empty())
    }

    /// Grants what can be granted of what is waited for in a tree, in order. Answers with those who
    /// got it, and the keys that they got.
    pub fn promote(&mut self, tree: TreeId) -> Vec<(TxnId, Option<Arc<[u8]>>)> {
        let mut done = Vec::new();
        let Some(locks) = self.trees.get_mut(&tree) else { return done };
        let mut place = 0;
        while let Some(request) = locks.queue.get(place) {
            let span = request.span.get();
            if !locks.is_free(request.owner, span, request.mode, place) {
                place += 1;
                continue;
            }
            let request = locks.queue.remove(place);
            let (bytes, key) = locks.grant(request.owner, request.span.get(), request.mode);
            self.bytes = self.bytes.saturating_add_signed(bytes);
            done.push((request.owner, key));
        }
        done
    }

    /// About how many bytes of memory all that is held takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets trees of which nothing is held, if there are many.
    pub fn tidy(&mut self) {
        const TREES_KEPT: usize = 64;
        if self.trees.len() > TREES_KEPT {
            self.trees.retain(|_, locks| {
                !(locks.keys.is_empty() && locks.ranges.is_empty() && locks.queue.is_empty())
            });
        }
    }

    /// How many keys and ranges are held, and how many requests wait.
    pub fn counts(&self) -> (usize, usize, usize) {
        let mut sums = (0, 0, 0);
        for locks in self.trees.values() {
            sums.0 += locks.keys.values().map(|h| h.as_slice().len()).sum::<usize>();
            sums.1 += locks.ranges.len();
            sums.2 += locks.queue.len();
        }
        sums
    }
}

#[cfg(test)]
#[path = "shard_tests.rs"]
mod tests;
