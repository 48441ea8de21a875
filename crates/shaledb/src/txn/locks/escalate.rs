//! Locks of a transaction of any size: many locks of keys become few of ranges.
//!
//! Neighbours are merged into the range that covers them, with the strongest of their modes, but
//! never over what somebody else holds or waits for: a merge neither waits nor makes anybody wait
//! who did not. So it can bring no deadlock, and leaves the keys beside others' locks as they are.

use super::cell::{Entered, LockedCell};
use super::lock::{Lock, Mode, Span, TxnId};
use super::owner::{HeldKey, Owner};
use super::table::LockTable;
use crate::base::sync::atomic::Ordering;
use crate::version::TreeId;

/// How many ranges a merge leaves where nobody is in the way. Every request looks through those of
/// its tree.
const RANGES: usize = 32;
/// So many times wider than the mean a gap has to be for the ranges to stop at it.
const WIDE: u64 = 8;
/// Fewer neighbours are not worth a range.
pub(super) const FEW: usize = 8;
/// With fewer new ranges of gaps there is little to be gained.
const GAPS: usize = 256;
/// With so many every request, which looks through all of them in each shard, takes 100 us.
const GAPS_MANY: usize = 4096;
/// With fewer keys there is nothing to be gained.
const MANY: usize = 64;

/// What is held of a tree: a key, or a range of keys.
struct Part {
    lower: std::sync::Arc<[u8]>,
    /// The end, not included; of a key the least that is above it.
    upper: Option<Box<[u8]>>,
    mode: Mode,
    /// Its index among the owner's keys.
    key: Option<usize>,
}

impl Part {
    /// The range that covers neighbours, and the strongest of their modes.
    fn cover(parts: &[Part]) -> (&[u8], Option<&[u8]>, Mode) {
        let lower = parts.first().map_or(&[][..], |part| &part.lower);
        let ends = || parts.iter().map(|part| part.upper.as_deref());
        let open = ends().any(|upper| upper.is_none());
        let upper = if open { None } else { ends().flatten().max() };
        let mode = parts.iter().map(|part| part.mode).max().unwrap_or(Mode::Gap);
        (lower, upper, mode)
    }
}

/// Eight bytes of a key after those that all share, as a number; of one that is beyond, the most.
fn number_of_key(key: &[u8], shared: &[u8]) -> u64 {
    let Some(rest) = key.strip_prefix(shared) else { return u64::MAX };
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(rest) {
        *to = *from;
    }
    u64::from_be_bytes(bytes)
}

/// Where neighbours are far apart: the indexes of those that a range had better begin with, in
/// order, at most `most`. They are in the order of their lower bounds.
fn wide_gaps(parts: &[Part], most: usize) -> Vec<usize> {
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Vec::new() };
    let same = first.lower.iter().zip(last.lower.iter()).take_while(|(a, b)| a == b).count();
    let shared = &first.lower[..same];
    let mut end = 0;
    let mut gaps: Vec<(u64, usize)> = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            gaps.push((number_of_key(&part.lower, shared).saturating_sub(end), at));
        }
        let upper = part.upper.as_deref().map_or(u64::MAX, |upper| number_of_key(upper, shared));
        end = end.max(upper);
    }
    let sum: u128 = gaps.iter().map(|(gap, _)| u128::from(*gap)).sum();
    let mean = (sum / parts.len() as u128) as u64;
    gaps.retain(|(gap, _)| gap / WIDE > mean);
    gaps.sort_unstable_by_key(|gap| std::cmp::Reverse(*gap));
    gaps.truncate(most);
    let mut at: Vec<usize> = gaps.into_iter().map(|(_, at)| at).collect();
    at.sort_unstable();
    at
}

/// Those that are to become one range each, where nobody is in the way. They are in the order of
/// their lower bounds.
fn neighbors(parts: &[Part]) -> Vec<&[Part]> {
    let mut open = Vec::with_capacity(RANGES);
    let mut from = 0;
    for cut in wide_gaps(parts, RANGES - 1).into_iter().chain([parts.len()]) {
        open.push(&parts[from..cut]);
        from = cut;
    }
    open
}

impl LockTable {
    /// How many bytes all shards together may still take, by the looks of one.
    fn free_bytes(&self, shard: usize) -> usize {
        self.shard_bytes_max.saturating_sub(self.cells[shard].bytes()) * self.cells.len()
    }

    /// Whether the keys of an owner take more than half of what is left: with any number of large
    /// transactions each then has its part, and a small one finds room.
    #[inline]
    pub(super) fn is_crowded(&self, owner: &Owner) -> bool {
        let keys = owner.keys.len();
        if !keys.is_multiple_of(MANY) || keys < owner.keys_unmerged * 2 {
            return false;
        }
        match owner.keys.last() {
            Some(last) => owner.key_bytes > self.free_bytes(usize::from(last.shard)) / 2,
            None => false,
        }
    }

    /// Makes ranges of an owner's locks of keys, tree by tree, each of at least `few`, where nobody
    /// is in the way; answers whether there are fewer now.
    #[cold]
    pub fn escalate(&self, owner: &mut Owner, few: usize) -> bool {
        if owner.pending.is_some() {
            return false;
        }
        // They could not be told from the ranges that come.
        self.give_up_claims(owner);
        let before = owner.keys.len();
        let mut keys = std::mem::take(&mut owner.keys);
        keys.sort_unstable_by(|a, b| (a.tree, &a.key).cmp(&(b.tree, &b.key)));
        let mut rest = keys.into_iter().peekable();
        while let Some(tree) = rest.peek().map(|held| held.tree) {
            let mut of_tree = Vec::new();
            while let Some(held) = rest.next_if(|held| held.tree == tree) {
                of_tree.push(held);
            }
            if of_tree.len() >= few {
                of_tree = self.merge(owner, tree, of_tree, few);
            }
            owner.keys.append(&mut of_tree);
        }
        owner.key_bytes = owner.keys.iter().map(HeldKey::bytes).sum();
        owner.keys_unmerged = owner.keys.len();
        owner.merges += 1;
        debug_assert!(owner.keys.len() <= before, "escalation adds no keys");
        owner.slot.seen.note_keys(owner.keys.len());
        let merged = owner.keys.len() < before;
        if merged {
            self.escalations.fetch_add(1, Ordering::Relaxed);
        }
        merged
    }

    /// Whether it is worth while to merge once more before a request is refused for want of memory.
    pub(super) fn may_escalate(&self, owner: &Owner) -> bool {
        owner.keys.len() >= owner.keys_unmerged + MANY
    }

    /// Whether ranges of gaps are to be merged: that keeps others from places in between, so only
    /// if memory is short, or they are very many.
    #[inline]
    pub(super) fn has_many_gaps(&self, owner: &Owner) -> bool {
        if owner.gaps_new < GAPS.max(owner.gaps_left) {
            return false;
        }
        owner.gaps_new >= GAPS_MANY || self.cells[0].bytes() > self.shard_bytes_max / 2
    }

    /// Makes few ranges of an owner's locks of gaps, where nobody is in the way. Else one who looks
    /// into many places where nothing is would have as many, in each shard, and look through all of
    /// them each time.
    #[cold]
    pub(super) fn merge_gaps(&self, owner: &mut Owner) {
        if owner.pending.is_some() {
            return;
        }
        // Else it would become one with the others.
        self.give_up_claims(owner);
        let left = owner.ranges.iter().map(|tree| self.merge_gaps_of(owner.id, *tree));
        owner.gaps_left = left.sum();
        owner.gaps_new = 0;
    }

    /// Merges those of one tree; answers how many are left.
    fn merge_gaps_of(&self, owner: TxnId, tree: TreeId) -> usize {
        let mut cells: Vec<Entered<'_>> = self.cells.iter().map(LockedCell::lock).collect();
        let mut parts = Vec::new();
        cells[0].shard.each_range(owner, tree, &mut |lock| {
            if let Span::Range(lower, upper) = lock.span
                && lock.mode == Mode::Gap
            {
                let (lower, upper) = (lower.into(), upper.map(Into::into));
                parts.push(Part { lower, upper, mode: lock.mode, key: None });
            }
        });
        parts.sort_by(|a, b| a.lower.cmp(&b.lower));
        let mut left = parts.len();
        let mut open = neighbors(&parts);
        while let Some(part) = open.pop() {
            if part.len() < 2 {
                continue;
            }
            let (lower, upper, mode) = Part::cover(part);
            let lock = Lock { tree, span: Span::Range(lower, upper), mode };
            if cells.iter().all(|cell| cell.shard.is_free(owner, lock)) {
                cells.iter_mut().for_each(|cell| cell.shard.cover(owner, lock));
                left -= part.len() - 1;
            } else {
                let (a, b) = part.split_at(part.len() / 2);
                open.extend([a, b]);
            }
        }
        left
    }

    /// Merges the locks of one tree; answers with the keys that are left.
    fn merge(
        &self,
        owner: &mut Owner,
        tree: TreeId,
        keys: Vec<HeldKey>,
        few: usize,
    ) -> Vec<HeldKey> {
        // One after the other in their order; nobody else ever holds two.
        let mut cells: Vec<Entered<'_>> = self.cells.iter().map(LockedCell::lock).collect();
        let mut parts = Vec::with_capacity(keys.len());
        for (at, held) in keys.iter().enumerate() {
            let cell = &mut cells[usize::from(held.shard)];
            let Some(mode) = cell.shard.mode_of(owner.id, tree, &held.key) else { continue };
            let upper = Some([&*held.key, &[0]].concat().into());
            parts.push(Part { lower: held.key.clone(), upper, mode, key: Some(at) });
        }
        cells[0].shard.each_range(owner.id, tree, &mut |lock| {
            // Those of gaps stay: they would come to mean more.
            if let Span::Range(lower, upper) = lock.span
                && lock.mode > Mode::Gap
            {
                let (lower, upper) = (lower.into(), upper.map(Into::into));
                parts.push(Part { lower, upper, mode: lock.mode, key: None });
            }
        });
        parts.sort_by(|a, b| a.lower.cmp(&b.lower));
        let mut gone = vec![false; keys.len()];
        let mut open = neighbors(&parts);
        while let Some(part) = open.pop() {
            let has_range = part.iter().any(|part| part.key.is_none());
            if part.len() < if has_range { 2 } else { few } {
                continue;
            }
            let (lower, upper, mode) = Part::cover(part);
            debug_assert!(part.iter().all(|part| part.mode <= mode), "no lock gets weaker");
            let lock = Lock { tree, span: Span::Range(lower, upper), mode };
            if !cells.iter().all(|cell| cell.shard.is_free(owner.id, lock)) {
                let (a, b) = part.split_at(part.len() / 2);
                open.extend([a, b]);
                continue;
            }
            for at in part.iter().filter_map(|part| part.key) {
                let held = &keys[at];
                debug_assert!(
                    lock.span.has(&held.key),
                    "the range has the keys that it stands for"
                );
                let was_held =
                    cells[usize::from(held.shard)].shard.release(owner.id, tree, &held.key);
                debug_assert!(was_held, "a transaction lists only keys that it holds");
                gone[at] = true;
            }
            for cell in &mut cells {
                cell.shard.cover(owner.id, lock);
            }
            if !owner.ranges.contains(&tree) {
                owner.ranges.push(tree);
            }
        }
        keys.into_iter().zip(gone).filter(|(_, gone)| !gone).map(|(held, _)| held).collect()
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "escalate_tests.rs"]
mod tests;
