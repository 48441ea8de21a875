//! The range deletes that a transaction has written to one tree.
//!
//! Nobody looks at what is between two of them, so of those that cover a key only the newest counts
//! here. They are kept as a few sets, each at least twice as large as the next, so that adding n of
//! them costs O(n log n) in all, and a look at a key goes into O(log n) sets.

use crate::base::key::{SEQ_MAX, SeqNo};
use crate::base::ranges::{RangeDelete, RangeDeletes};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Deletes {
    /// In the order in which they were written.
    all: Vec<RangeDelete>,
    /// The newest of these where they overlap, and from how many each set is; the largest first.
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
        while let [.., (large, older), (small, newer)] = self.sets.as_slice()
            && *large < 2 * *small
        {
            let merged = RangeDeletes::union([&**older, &**newer]).newest();
            let count = large + small;
            self.sets.truncate(self.sets.len() - 2);
            self.sets.push((count, Arc::new(merged)));
        }
    }

    /// All that were written, in order.
    pub fn all(&self) -> &[RangeDelete] {
        &self.all
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

    /// Forgets those from this number on.
    pub fn undo_from(&mut self, seq: SeqNo) {
        let kept = self.all.partition_point(|delete| delete.seq < seq);
        if kept < self.all.len() {
            self.all.truncate(kept);
            self.sets.clear();
            for delete in self.all.clone() {
                self.add_to_sets(delete);
            }
        }
    }
}
