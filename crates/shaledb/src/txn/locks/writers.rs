//! Where others write: what a scan that locks no gaps comes upon beside the rows that it sees.
//!
//! A look at keys that are held is short: it ends after so many, with the place that it has come
//! to. So one who holds a million of them himself does not walk through all of them with each scan.

use super::holders::Holder;
use super::lock::{Mode, Span, TxnId};
use super::shard::Shard;
use super::tree_locks::TreeLocks;
use crate::version::TreeId;
use std::ops::Bound;

/// So many held keys of a shard are looked at.
const LOOKED_AT: usize = 32;

/// The first place of a range, from one of its ends, at which another holds a lock to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writers {
    /// There is none.
    Nowhere,
    /// There is none before this key; of the key itself another holds the lock. (Of a range that
    /// another holds, one of its keys.)
    At(Vec<u8>),
    /// There is none before this key, which is inside the range. It is to be asked anew from there:
    /// with the key, or towards lower keys, without it.
    UpTo(Vec<u8>),
}

/// What one shard, or several, know of a range so far.
#[derive(Debug)]
pub(super) struct Search<'a> {
    owner: TxnId,
    lower: &'a [u8],
    upper: Option<&'a [u8]>,
    backward: bool,
    nearest: Option<(Edge, Writers)>,
}

/// Where a find begins, seen from the end of the range that the search is from.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    /// Beyond all keys.
    open: bool,
    key: Vec<u8>,
    /// The key too, and not only what is below it.
    itself: bool,
}

impl<'a> Search<'a> {
    /// From the lower end, or `backward` from the upper one.
    pub(super) fn new(
        owner: TxnId,
        (lower, upper): (&'a [u8], Option<&'a [u8]>),
        backward: bool,
    ) -> Search<'a> {
        Search { owner, lower, upper, backward, nearest: None }
    }

    /// What was found.
    pub(super) fn end(self) -> Writers {
        self.nearest.map_or(Writers::Nowhere, |(_, found)| found)
    }

    fn note(&mut self, edge: Edge, found: Writers) {
        let nearer = match &self.nearest {
            None => true,
            Some((nearest, _)) if self.backward => edge > *nearest,
            Some((nearest, _)) => edge < *nearest,
        };
        if nearer {
            self.nearest = Some((edge, found));
        }
    }

    fn look_at_keys(&mut self, locks: &TreeLocks) {
        let upper = self.upper.map_or(Bound::Unbounded, Bound::Excluded);
        let mut keys = locks.keys.range::<[u8], _>((Bound::Included(self.lower), upper));
        for looked_at in 0.. {
            let next = if self.backward { keys.next_back() } else { keys.next() };
            let Some((key, holders)) = next else { return };
            let writes = |holder: &Holder| holder.mode == Mode::Write && holder.owner != self.owner;
            let found = if holders.as_slice().iter().any(writes) {
                Writers::At(key.to_vec())
            } else if looked_at == LOOKED_AT {
                Writers::UpTo(key.to_vec())
            } else {
                continue;
            };
            return self.note(Edge { open: false, key: key.to_vec(), itself: true }, found);
        }
    }

    fn look_at_ranges(&mut self, locks: &TreeLocks) {
        let all = Span::Range(self.lower, self.upper);
        for range in &locks.ranges {
            let writes = range.mode == Mode::Write && range.owner != self.owner;
            if !writes || !range.span().overlaps(all) {
                continue;
            }
            let first = self.lower.max(&range.lower).to_vec();
            let end = [self.upper, range.upper.as_deref()].into_iter().flatten().min();
            let edge = match end {
                _ if !self.backward => Edge { open: false, key: first.clone(), itself: true },
                Some(end) => Edge { open: false, key: end.to_vec(), itself: false },
                None => Edge { open: true, key: Vec::new(), itself: false },
            };
            self.note(edge, Writers::At(first));
        }
    }
}

impl Shard {
    /// Looks for writers in a tree; of a range, which is in all shards, one is to look.
    pub(super) fn look_for_writers(&self, tree: TreeId, search: &mut Search<'_>, at_ranges: bool) {
        let Some(locks) = self.trees.get(&tree) else { return };
        search.look_at_keys(locks);
        if at_ranges {
            search.look_at_ranges(locks);
        }
    }
}
