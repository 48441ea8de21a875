//! The locks of one tree in one shard: who holds which keys and ranges, who waits for them, and who
//! is in whose way.

use super::deadlock::Blocker;
use super::holders::{Holder, Holders};
use super::lock::{Mode, OwnedSpan, Span, TxnId};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// The bounds of a range of keys, which all shards share.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub(super) lower: Arc<[u8]>,
    pub(super) upper: Option<Arc<[u8]>>,
}

impl Bounds {
    /// Of a range from `lower` to `upper`.
    pub fn new(lower: &[u8], upper: Option<&[u8]>) -> Bounds {
        Bounds { lower: lower.into(), upper: upper.map(Into::into) }
    }
}

/// A range of keys that is held.
#[derive(Debug)]
pub(super) struct RangeLock {
    pub(super) owner: TxnId,
    pub(super) mode: Mode,
    pub(super) lower: Arc<[u8]>,
    pub(super) upper: Option<Arc<[u8]>>,
    /// The last one that its owner was granted: it can be taken back, so it is not merged yet.
    pub(super) fresh: bool,
}

impl RangeLock {
    pub(super) fn span(&self) -> Span<'_> {
        Span::Range(&self.lower, self.upper.as_deref())
    }

    pub(super) fn covers(&self, span: Span<'_>) -> bool {
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
    pub(super) fn touches(&self, lower: &[u8], upper: Option<&[u8]>) -> bool {
        upper.is_none_or(|upper| *self.lower <= *upper)
            && self.upper.as_deref().is_none_or(|own| lower <= own)
    }

    pub(super) fn bytes(&self) -> usize {
        RANGE_BYTES + self.lower.len() + self.upper.as_ref().map_or(0, |upper| upper.len())
    }
}

/// What somebody waits for.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) owner: TxnId,
    pub(super) span: OwnedSpan,
    pub(super) mode: Mode,
    /// Whether it is all that the owner asks for.
    pub(super) whole: bool,
    /// The earlier requests that it does not wait for: these wait for its owner.
    pub(super) passes: Vec<TxnId>,
}

/// What a held key takes beside its bytes: its position in the tree, the counts of the shared key,
/// and its position in the holder's list.
pub const KEY_BYTES: usize = 112;
/// What a held range takes beside its bounds.
const RANGE_BYTES: usize = size_of::<RangeLock>();

/// The locks of a tree, and who waits for them.
#[derive(Debug, Default)]
pub(super) struct TreeLocks {
    pub(super) keys: BTreeMap<Arc<[u8]>, Holders>,
    pub(super) ranges: Vec<RangeLock>,
    /// In the order in which they came.
    pub(super) queue: Vec<Request>,
}

impl TreeLocks {
    /// Tells `found` of the others who hold what conflicts, until it answers false.
    pub(super) fn conflicts(
        &self,
        owner: TxnId,
        span: Span<'_>,
        mode: Mode,
        found: &mut dyn FnMut(TxnId) -> bool,
    ) {
        #[cfg(all(test, not(feature = "shuttle")))]
        looks::count();
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
        self.range_conflicts(owner, span, mode, found);
    }

    /// The same of ranges only.
    fn range_conflicts(
        &self,
        owner: TxnId,
        span: Span<'_>,
        mode: Mode,
        found: &mut dyn FnMut(TxnId) -> bool,
    ) {
        for range in &self.ranges {
            if range.owner != owner
                && range.mode.conflicts(mode)
                && range.span().overlaps(span)
                && !found(range.owner)
            {
                return;
            }
        }
    }

    /// Whether another holds a range that conflicts.
    pub(super) fn has_range_conflict(&self, owner: TxnId, span: Span<'_>, mode: Mode) -> bool {
        let mut found = false;
        self.range_conflicts(owner, span, mode, &mut |_| {
            found = true;
            false
        });
        found
    }

    /// Whether another holds what conflicts.
    fn has_conflict(&self, owner: TxnId, span: Span<'_>, mode: Mode) -> bool {
        let mut found = false;
        self.conflicts(owner, span, mode, &mut |_| {
            found = true;
            false
        });
        found
    }

    /// Whether `owner` holds what one who asks for this has to wait for.
    fn holds_against(&self, owner: TxnId, span: Span<'_>, mode: Mode) -> bool {
        #[cfg(all(test, not(feature = "shuttle")))]
        looks::count();
        let of_owner = |holder: &Holder| holder.owner == owner && holder.mode.conflicts(mode);
        let key_held = match span {
            Span::Key(key) => {
                self.keys.get(key).is_some_and(|all| all.as_slice().iter().any(of_owner))
            }
            Span::Range(lower, Some(upper)) if upper <= lower => false,
            Span::Range(lower, upper) => {
                let end = upper.map_or(Bound::Unbounded, Bound::Excluded);
                let mut inside = self.keys.range::<[u8], _>((Bound::Included(lower), end));
                inside.any(|(_, holders)| holders.as_slice().iter().any(of_owner))
            }
        };
        let of_owner = |range: &&RangeLock| range.owner == owner && range.mode.conflicts(mode);
        key_held || self.ranges.iter().filter(of_owner).any(|range| range.span().overlaps(span))
    }

    /// Tells `found` of all whom this request of `owner` has to wait for, if those of the queue
    /// before `position` are earlier, until it answers false.
    pub(super) fn blockers(
        &self,
        owner: TxnId,
        (span, mode): (Span<'_>, Mode),
        position: usize,
        passes: &[TxnId],
        found: &mut dyn FnMut(Blocker) -> bool,
    ) {
        let mut continues = true;
        self.conflicts(owner, span, mode, &mut |id| {
            continues = found(Blocker { id, holds: true });
            continues
        });
        let mut asks = Asks::new(self, owner, (span, mode), passes);
        for earlier in self.queue.iter().take(position) {
            if !continues {
                return;
            }
            if asks.is_behind(earlier) {
                continues = found(Blocker { id: earlier.owner, holds: false });
            }
        }
    }

    pub(super) fn is_free(&self, owner: TxnId, span: Span<'_>, mode: Mode) -> bool {
        let mut free = true;
        self.blockers(owner, (span, mode), self.queue.len(), &[], &mut |_| {
            free = false;
            false
        });
        free
    }

    /// Whether what waits at a position of the queue is free.
    pub(super) fn is_free_at(&self, position: usize) -> bool {
        let mut free = true;
        self.blockers_at(position, &mut |_| {
            free = false;
            false
        });
        free
    }

    pub(super) fn blockers_at(&self, position: usize, found: &mut dyn FnMut(Blocker) -> bool) {
        if let Some(request) = self.queue.get(position) {
            let asked = (request.span.get(), request.mode);
            self.blockers(request.owner, asked, position, &request.passes, found);
        }
    }

    /// The positions of the queue at which an owner waits.
    pub(super) fn positions(&self, owner: TxnId) -> impl Iterator<Item = usize> + '_ {
        let all = self.queue.iter().enumerate();
        all.filter(move |(_, request)| request.owner == owner).map(|(position, _)| position)
    }

    /// Whether the owner has it already. From now on what it has is of an earlier call.
    pub(super) fn is_held_again(&mut self, owner: TxnId, span: Span<'_>, mode: Mode) -> bool {
        if let Span::Key(key) = span
            && let Some(held) = self.keys.get_mut(key).and_then(|holders| holders.of(owner))
        {
            held.kept = Some(held.mode);
            if held.mode >= mode {
                return true;
            }
        }
        self.is_in_range(owner, span, mode)
    }

    /// Whether a range that the owner holds in this mode or a stronger one has all of a span.
    pub(super) fn is_in_range(&self, owner: TxnId, span: Span<'_>, mode: Mode) -> bool {
        let covers = |range: &RangeLock| range.owner == owner && range.mode >= mode;
        self.ranges.iter().any(|range| covers(range) && range.covers(span))
    }

    /// Notes the lock; answers by how many bytes the memory taken has changed, and with a new key.
    pub(super) fn grant(
        &mut self,
        owner: TxnId,
        span: Span<'_>,
        mode: Mode,
    ) -> (isize, Option<Arc<[u8]>>) {
        debug_assert!(!self.has_conflict(owner, span, mode), "what is granted fits what is held");
        match span {
            Span::Key(key) => {
                let new = Holder { owner, mode, kept: None };
                if let Some(holders) = self.keys.get_mut(key) {
                    if let Some(held) = holders.of(owner) {
                        debug_assert!(held.mode < mode, "what is held is not granted again");
                        *held = Holder { kept: Some(held.mode), ..new };
                        return (0, None);
                    }
                    holders.add(new);
                    let key = self.keys.get_key_value(key).map(|(key, _)| key.clone());
                    (KEY_BYTES as isize, key)
                } else {
                    self.grant_new(owner, key, mode)
                }
            }
            Span::Range(lower, upper) => {
                (self.grant_range(owner, Bounds::new(lower, upper), mode), None)
            }
        }
    }

    /// As [`TreeLocks::grant`], of a range.
    pub(super) fn grant_range(&mut self, owner: TxnId, bounds: Bounds, mode: Mode) -> isize {
        let mut bytes = self.merge_fresh(owner);
        debug_assert!(!self.ranges.iter().any(|range| range.owner == owner && range.fresh));
        let Bounds { lower, upper } = bounds;
        let new = RangeLock { owner, mode, lower, upper, fresh: true };
        bytes += new.bytes() as isize;
        self.ranges.push(new);
        bytes
    }

    /// Whether nothing is held and nobody waits.
    #[inline]
    pub(super) fn is_vacant(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty() && self.queue.is_empty()
    }

    /// As [`TreeLocks::grant`], of a key that nobody holds.
    pub(super) fn grant_new(
        &mut self,
        owner: TxnId,
        key: &[u8],
        mode: Mode,
    ) -> (isize, Option<Arc<[u8]>>) {
        let key: Arc<[u8]> = key.into();
        let before =
            self.keys.insert(key.clone(), Holders::One(Holder { owner, mode, kept: None }));
        assert!(before.is_none(), "nobody held the key");
        ((KEY_BYTES + key.len()) as isize, Some(key))
    }

    /// The last range that the owner was granted becomes one with those that it touches; answers
    /// by how many bytes the memory taken has changed.
    pub(super) fn merge_fresh(&mut self, owner: TxnId) -> isize {
        let is_fresh = |range: &RangeLock| range.owner == owner && range.fresh;
        let Some(at) = self.ranges.iter().position(is_fresh) else { return 0 };
        let mut new = self.ranges.swap_remove(at);
        new.fresh = false;
        let mut bytes = -(new.bytes() as isize);
        while let Some(at) = self.ranges.iter().position(|range| {
            range.owner == owner
                && range.mode == new.mode
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
        bytes
    }
}

/// A request beside earlier ones, one after the other.
pub(super) struct Asks<'a> {
    locks: &'a TreeLocks,
    owner: TxnId,
    span: Span<'a>,
    mode: Mode,
    passes: &'a [TxnId],
    /// What the one before asked for, and whether it waits for the owner: many ask for the same.
    last: Option<(Span<'a>, Mode, bool)>,
}

impl<'a> Asks<'a> {
    pub(super) fn new(
        locks: &'a TreeLocks,
        owner: TxnId,
        (span, mode): (Span<'a>, Mode),
        passes: &'a [TxnId],
    ) -> Asks<'a> {
        Asks { locks, owner, span, mode, passes, last: None }
    }

    /// Of a request in the queue.
    pub(super) fn of(locks: &'a TreeLocks, request: &'a Request) -> Asks<'a> {
        let Request { owner, span, mode, passes, .. } = request;
        Asks::new(locks, *owner, (span.get(), *mode), passes)
    }

    /// Whether it has to wait for an earlier one.
    pub(super) fn is_behind(&mut self, earlier: &'a Request) -> bool {
        earlier.owner != self.owner
            && !self.passes.contains(&earlier.owner)
            && self.is_behind_those(earlier.span.get(), earlier.mode)
    }

    /// Whether it has to wait for earlier ones who ask for this, but for those that it passes.
    pub(super) fn is_behind_those(&mut self, span: Span<'a>, mode: Mode) -> bool {
        #[cfg(all(test, not(feature = "shuttle")))]
        looks::count();
        mode.conflicts(self.mode) && span.overlaps(self.span) && !self.holds_up(span, mode)
    }

    /// Whether the owner holds what earlier ones wait for.
    fn holds_up(&mut self, span: Span<'a>, mode: Mode) -> bool {
        if let Some((last_span, last_mode, holds)) = self.last
            && (last_span, last_mode) == (span, mode)
        {
            return holds;
        }
        let holds = self.locks.holds_against(self.owner, span, mode);
        self.last = Some((span, mode, holds));
        holds
    }
}

/// How much was looked at, for tests of what waits cost.
#[cfg(all(test, not(feature = "shuttle")))]
pub(super) mod looks {
    use std::cell::Cell;

    thread_local! {
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        COUNT.set(COUNT.get() + 1);
    }

    /// Since the last call, by this thread.
    pub(in super::super) fn take() -> u64 {
        COUNT.take()
    }
}
