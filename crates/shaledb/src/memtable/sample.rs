//! How many entries of a list a range has, and some of them.

use super::node::{Node, Sample, Target, link, next_before, node_entry, node_key};
use super::skiplist::SkipList;
use crate::base::key::{self, SEQ_MAX};
use crate::base::sync::atomic::Ordering;
use std::ptr;

/// If a level has at least so many nodes in a range, their number tells how many levels of it may
/// be skipped.
const FEW: usize = 8;

/// So many times what was asked for is too much: another level would do.
const TOO_MANY: usize = 8;

impl SkipList {
    /// Where a sample begins, and on how many levels: at a landmark, if the range has few of them.
    fn begin_sample(
        &self,
        lower: &Target<'_>,
        upper: Option<&[u8]>,
        count: usize,
    ) -> (*const Node, usize) {
        let (near, levels) = self.begin(lower);
        let upper = upper.map(|upper| Target::at(upper, SEQ_MAX));
        let is_wide = || {
            // SAFETY: they are of this list.
            let marks = self.landmarks.get().map(|all| unsafe { all.between(lower, upper) });
            marks.is_none_or(|marks| marks > count)
        };
        if is_wide() { (self.head(), self.height()) } else { (near, levels) }
    }

    /// About how many entries have keys from `lower` up to (not including) `upper`, and a part of
    /// them, spread evenly: `count` or a little more; all of them if they are fewer.
    pub(super) fn sample(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        count: usize,
    ) -> (u64, Vec<Sample<'_>>) {
        let (at, level) = self.begin_sample(&Target::at(lower, SEQ_MAX), upper, count);
        // Many may have come since the landmarks were made: a search from the top takes no longer.
        self.sample_from(at, level, lower, upper, count, TOO_MANY * count)
            .or_else(|| {
                self.sample_from(self.head(), self.height(), lower, upper, count, usize::MAX)
            })
            .unwrap_or_default()
    }

    /// From where a search for `lower` may begin, on so many levels; `None` if that is more than
    /// `most` on one of them.
    fn sample_from(
        &self,
        mut at: *const Node,
        mut level: usize,
        lower: &[u8],
        upper: Option<&[u8]>,
        count: usize,
        most: usize,
    ) -> Option<(u64, Vec<Sample<'_>>)> {
        let target = Target::at(lower, SEQ_MAX);
        let upper_head = upper.map_or(u64::MAX, key::head);
        let inside = |key: &[u8]| upper.is_none_or(|upper| key < upper);
        let mut found = Vec::new();
        // Nodes are taken from levels below this one only.
        let mut below = level;
        // Known to be at or after the lower bound, and after the upper one.
        let mut stop: *const Node = ptr::null();
        let mut end: *const Node = ptr::null();
        // SAFETY: as in `SkipList::find_splice`; nodes live as long as the list.
        unsafe {
            while level > 0 {
                level -= 1;
                while let Some(next) = next_before(at, level, &target, &mut stop) {
                    at = next;
                }
                if level >= below {
                    continue;
                }
                let mut way = link(at, level);
                found.clear();
                loop {
                    // Whose head is beyond the bound is not looked at.
                    let next = way.next.load(Ordering::Acquire).cast_const();
                    if way.head.load(Ordering::Acquire) > upper_head
                        || next.is_null()
                        || next == end
                    {
                        break;
                    }
                    let key = node_key(next);
                    if !inside(key) {
                        end = next;
                        break;
                    }
                    // While it is being inserted a node may be taken for a later one.
                    if key >= lower {
                        let entry = node_entry(next);
                        found.push(Sample { key, seq: entry.seq, kind: entry.kind });
                        if found.len() > most {
                            return None;
                        }
                    }
                    way = link(next, level);
                }
                if found.len() >= count {
                    break;
                }
                // Of a level's nodes about half are on the next one up, at random: few nodes tell
                // on which level there will be enough.
                below = level;
                let mut expected = found.len();
                while expected >= FEW && 2 * expected < count {
                    expected *= 2;
                    below -= usize::from(below > 1);
                }
            }
        }
        Some(((found.len() as u64) << level, found))
    }
}
