//! What an optimistic serializable transaction has read: keys and ranges, whether there were rows
//! or not. Bounded: when it takes too much, a tree's keys become the one range that has them all,
//! so that more counts as read than was.

use crate::version::TreeId;
use std::collections::{BTreeMap, BTreeSet};

/// What a key takes beside its bytes.
const KEY_BYTES: usize = 48;

/// From a key up to, not including, another; without the other: to the end.
pub type KeyRange = (Vec<u8>, Option<Vec<u8>>);

#[derive(Debug, Default)]
struct TreeReads {
    keys: BTreeSet<Box<[u8]>>,
    /// Sorted by their lower bounds; none touches another.
    ranges: Vec<KeyRange>,
}

impl TreeReads {
    fn covers(&self, key: &[u8]) -> bool {
        let after = self.ranges.partition_point(|range| range.0.as_slice() <= key);
        after > 0 && self.ranges[after - 1].1.as_ref().is_none_or(|end| key < end.as_slice())
    }

    fn add_range(&mut self, lower: &[u8], upper: Option<&[u8]>) {
        let mut new = (lower.to_vec(), upper.map(<[u8]>::to_vec));
        let touches = |range: &KeyRange| {
            upper.is_none_or(|upper| range.0.as_slice() <= upper)
                && range.1.as_ref().is_none_or(|end| lower <= end.as_slice())
        };
        for old in self.ranges.extract_if(.., |range| touches(range)) {
            new.0 = new.0.min(old.0);
            new.1 = match (new.1, old.1) {
                (Some(a), Some(b)) => Some(a.max(b)),
                _ => None,
            };
        }
        let at = self.ranges.partition_point(|range| range.0 < new.0);
        self.ranges.insert(at, new);
        let apart = |a: &KeyRange, b: &KeyRange| a.1.as_ref().is_some_and(|end| *end < b.0);
        debug_assert!(self.ranges.is_sorted_by(apart), "ranges are in order and apart");
    }
}

/// Keys and ranges that were read.
#[derive(Debug)]
pub struct ReadSet {
    trees: BTreeMap<TreeId, TreeReads>,
    bytes: usize,
    bytes_max: usize,
}

impl ReadSet {
    /// An empty set that takes about so many bytes at most.
    pub fn new(bytes_max: usize) -> ReadSet {
        ReadSet { trees: BTreeMap::new(), bytes: 0, bytes_max }
    }

    /// Notes a key.
    pub fn add_key(&mut self, tree: TreeId, key: &[u8]) {
        let reads = self.trees.entry(tree).or_default();
        if !reads.covers(key) && reads.keys.insert(key.into()) {
            self.bytes += key.len() + KEY_BYTES;
            if self.bytes > self.bytes_max {
                self.coarsen();
            }
        }
    }

    /// Notes a range.
    pub fn add_range(&mut self, tree: TreeId, lower: &[u8], upper: Option<&[u8]>) {
        if upper.is_some_and(|upper| upper <= lower) {
            return;
        }
        self.trees.entry(tree).or_default().add_range(lower, upper);
        self.bytes += lower.len() + upper.map_or(0, <[u8]>::len) + KEY_BYTES;
        if self.bytes > self.bytes_max {
            self.coarsen();
        }
    }

    /// Makes one range of all that was read of each tree.
    fn coarsen(&mut self) {
        self.bytes = 0;
        for reads in self.trees.values_mut() {
            let keys = std::mem::take(&mut reads.keys);
            if let (Some(first), Some(last)) = (keys.first(), keys.last()) {
                reads.add_range(first, Some(&[last, &[0][..]].concat()));
            }
            let first = reads.ranges.first().map(|range| range.0.clone());
            let open = reads.ranges.iter().any(|range| range.1.is_none());
            let end = reads.ranges.iter().filter_map(|range| range.1.clone()).max();
            if let Some(lower) = first {
                let upper = if open { None } else { end };
                self.bytes += lower.len() + upper.as_ref().map_or(0, Vec::len) + KEY_BYTES;
                reads.ranges = vec![(lower, upper)];
            }
            debug_assert!(reads.keys.is_empty() && reads.ranges.len() < 2, "one range has all");
        }
    }

    /// All keys, by tree.
    pub fn keys(&self) -> impl Iterator<Item = (TreeId, &[u8])> {
        self.trees.iter().flat_map(|(tree, reads)| reads.keys.iter().map(|key| (*tree, &**key)))
    }

    /// All ranges, by tree.
    pub fn ranges(&self) -> impl Iterator<Item = (TreeId, &KeyRange)> {
        self.trees.iter().flat_map(|(tree, reads)| reads.ranges.iter().map(|range| (*tree, range)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut reads = ReadSet::new(1 << 20);
        for (lower, upper) in [("a", "c"), ("e", "g"), ("c", "d"), ("x", "y"), ("d", "f")] {
            reads.add_range(1, lower.as_bytes(), Some(upper.as_bytes()));
        }
        reads.add_range(1, b"k", Some(b"k"));
        let ranges: Vec<KeyRange> = reads.ranges().map(|(_, range)| range.clone()).collect();
        let range = |lower: &[u8], upper: &[u8]| (lower.to_vec(), Some(upper.to_vec()));
        assert_eq!(ranges, [range(b"a", b"g"), range(b"x", b"y")]);
        reads.add_key(1, b"f");
        assert_eq!(reads.keys().count(), 0, "it is in a range");
        reads.add_key(1, b"g");
        reads.add_key(2, b"f");
        let keys: Vec<(TreeId, &[u8])> = reads.keys().collect();
        assert_eq!(keys, [(1, &b"g"[..]), (2, &b"f"[..])]);
        reads.add_range(1, b"f", None);
        assert_eq!(reads.ranges().last().unwrap().1.1, None);
    }

    #[test]
    fn too_many_keys_become_a_range_that_has_them() {
        let mut reads = ReadSet::new(1000);
        for n in 0..100u8 {
            reads.add_key(1, &[n]);
        }
        assert!(reads.keys().count() < 25);
        let covered = |key: u8| {
            reads.keys().any(|found| found.1 == [key])
                || reads.ranges().any(|(_, range)| {
                    range.0.as_slice() <= &[key][..]
                        && range.1.as_ref().is_none_or(|end| &[key][..] < end.as_slice())
                })
        };
        assert!((0..100).all(covered));
        assert!(!covered(200));
    }
}
