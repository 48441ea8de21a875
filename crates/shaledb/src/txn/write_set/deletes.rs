//! The range deletes that a transaction has written to one tree.
//!
//! Nobody looks at what is between two of them, so of those that cover a key only the newest counts
//! here. They are kept as sets of 1, 2, 4, .. deletes, at most two of each size: so adding n costs
//! O(n log n) in all, and a look at a key goes into O(log n) sets. Which sets there are does not
//! follow from n: when a third of a size has made one of the two before it, two more must come
//! until that happens again. So a delete that comes and is undone again and again, as in
//! statements that fail, seldom makes large sets or takes them apart.

use crate::base::key::{SEQ_MAX, SeqNo};
use crate::base::ranges::{Fragment, RangeDelete, RangeDeletes};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Deletes {
    /// In the order in which they were written.
    all: Vec<RangeDelete>,
    /// The newest of these where they overlap, and from how many each set is; the oldest first,
    /// which are the largest.
    sets: Vec<(usize, Arc<RangeDeletes>)>,
}

impl Deletes {
    /// Adds one that is newer than all before it.
    pub fn add(&mut self, delete: RangeDelete) {
        debug_assert!(self.all.last().is_none_or(|last| last.seq < delete.seq), "in their order");
        self.all.push(delete.clone());
        self.add_to_sets(delete);
    }

    fn add_to_sets(&mut self, delete: RangeDelete) {
        self.sets.push((1, Arc::new(RangeDeletes::new([delete]))));
        let mut end = self.sets.len();
        while let [.., (first, older), (second, newer), (third, _)] = &self.sets[..end]
            && first == third
        {
            let merged = RangeDeletes::union([&**older, &**newer]).newest();
            let merged = (first + second, Arc::new(merged));
            self.sets.splice(end - 3..end - 1, [merged]);
            end -= 2;
        }
        debug_assert!(self.sets.is_sorted_by(|older, newer| older.0 >= newer.0), "sizes descend");
    }

    /// All that were written, in order.
    pub fn all(&self) -> &[RangeDelete] {
        &self.all
    }

    /// Those from this number on.
    pub fn since(&self, seq: SeqNo) -> &[RangeDelete] {
        &self.all[self.all.partition_point(|delete| delete.seq < seq)..]
    }

    /// The newest that covers `key`, or 0.
    pub fn covering(&self, key: &[u8]) -> SeqNo {
        let newest = self.sets.iter().map(|(_, set)| set.newest_covering(key, SEQ_MAX));
        newest.max().unwrap_or(0)
    }

    /// Sets that have them together.
    pub fn sets(&self) -> Vec<Arc<RangeDeletes>> {
        self.sets.iter().map(|(_, set)| Arc::clone(set)).collect()
    }

    /// The newest of them where they overlap, as one set.
    pub fn newest(&self) -> RangeDeletes {
        RangeDeletes::union(self.sets.iter().map(|(_, set)| &**set)).newest()
    }

    /// Forgets those from this number on. A set that has some of them and older ones as well is
    /// made anew of the older ones, as smaller sets.
    pub fn undo_from(&mut self, seq: SeqNo) {
        let mut in_sets = self.all.len();
        self.all.truncate(in_sets - self.since(seq).len());
        while in_sets > self.all.len() {
            in_sets -= self.sets.pop().map_or(in_sets, |(count, _)| count);
        }
        for at in in_sets..self.all.len() {
            self.add_to_sets(self.all[at].clone());
        }
    }
}

/// About how many bytes of memory a delete takes: in the list, and in a set.
pub(super) fn memory_bytes(delete: &RangeDelete) -> u64 {
    let keys = 2 * (delete.start.len() + delete.end.len());
    (keys + size_of::<RangeDelete>() + size_of::<Fragment>() + size_of::<SeqNo>()) as u64
}
