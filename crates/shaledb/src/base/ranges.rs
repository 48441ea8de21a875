//! Range deletes, cut into fragments that do not overlap, so that "which delete covers this key"
//! is one binary search however many ranges there are.

use super::key::SeqNo;

/// Deletes all keys from `start` up to (not including) `end` older than `seq`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RangeDelete {
    /// The first key deleted.
    pub start: Vec<u8>,
    /// The first key not deleted.
    pub end: Vec<u8>,
    /// The delete's position in the commit order.
    pub seq: SeqNo,
}

/// A range of keys and the deletes that cover all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The first key covered.
    pub start: Vec<u8>,
    /// The first key not covered.
    pub end: Vec<u8>,
    /// The sequence numbers of the deletes, newest first; never empty.
    pub seqs: Vec<SeqNo>,
}

impl Fragment {
    /// The newest covering delete at or before `seq`, or 0.
    #[inline]
    pub fn newest_at(&self, seq: SeqNo) -> SeqNo {
        let first = self.seqs.partition_point(|&s| s > seq);
        self.seqs.get(first).copied().unwrap_or(0)
    }
}

/// A set of range deletes as sorted fragments that do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeDeletes {
    fragments: Vec<Fragment>,
}

impl RangeDeletes {
    /// Cuts `deletes` (in any order, overlapping or not) into fragments. Empty ranges vanish.
    pub fn new(deletes: impl IntoIterator<Item = RangeDelete>) -> RangeDeletes {
        let deletes = deletes.into_iter().filter(|delete| delete.start < delete.end);
        let parts: Vec<Fragment> = deletes
            .map(|RangeDelete { start, end, seq }| Fragment { start, end, seqs: vec![seq] })
            .collect();
        RangeDeletes::cut(parts.iter().collect())
    }

    /// Cuts parts (in any order, overlapping or not) where any of them begins or ends.
    fn cut(mut parts: Vec<&Fragment>) -> RangeDeletes {
        // This sort finds what is in order already.
        parts.sort_by(|a, b| a.start.cmp(&b.start));
        let mut cuts: Vec<&[u8]> =
            parts.iter().flat_map(|part| [part.start.as_slice(), part.end.as_slice()]).collect();
        cuts.sort();
        cuts.dedup();
        let mut fragments: Vec<Fragment> = Vec::new();
        // Those that reach over the current cut, and those that begin after it.
        let (mut open, mut rest): (Vec<&Fragment>, _) = (Vec::new(), parts.as_slice());
        for pair in cuts.windows(2) {
            let (start, end) = (pair[0], pair[1]);
            open.retain(|part| part.end.as_slice() > start);
            while let Some((part, others)) = rest.split_first()
                && *part.start == *start
            {
                open.push(part);
                rest = others;
            }
            #[cfg(test)]
            looks::add(1 + open.len());
            if open.is_empty() {
                continue;
            }
            let mut seqs = Vec::with_capacity(open.iter().map(|part| part.seqs.len()).sum());
            open.iter().for_each(|part| seqs.extend_from_slice(&part.seqs));
            // Runs that are in order already, too.
            seqs.sort_by(|a, b| b.cmp(a));
            seqs.dedup();
            match fragments.last_mut() {
                Some(last) if *last.end == *start && last.seqs == seqs => last.end = end.to_vec(),
                _ => fragments.push(Fragment { start: start.to_vec(), end: end.to_vec(), seqs }),
            }
        }
        assert!(rest.is_empty(), "each part has begun at a cut");
        RangeDeletes { fragments }.checked()
    }

    /// The set of these fragments, if they are those of a set.
    pub fn from_fragments(fragments: Vec<Fragment>) -> Option<RangeDeletes> {
        let set = RangeDeletes { fragments };
        set.is_in_order().then_some(set)
    }

    /// Whether fragments are disjoint and ascend, each with a length and its deletes newest first:
    /// what is found in it is found by binary search.
    fn is_in_order(&self) -> bool {
        let is_sound = |part: &Fragment| {
            let has_deletes = !part.seqs.is_empty() && part.seqs.is_sorted_by(|a, b| a > b);
            has_deletes && part.start < part.end
        };
        let parts = &self.fragments;
        parts.is_sorted_by(|a, b| a.end <= b.start) && parts.iter().all(is_sound)
    }

    fn checked(self) -> RangeDeletes {
        debug_assert!(self.is_in_order(), "fragments are in order");
        self
    }

    /// The deletes of several sets together, however many these are. The cost is that of the
    /// result: many deletes of one range are never taken apart.
    pub fn union<'a>(sets: impl IntoIterator<Item = &'a RangeDeletes>) -> RangeDeletes {
        let mut sets: Vec<&RangeDeletes> = sets.into_iter().collect();
        sets.retain(|set| !set.is_empty());
        match sets.as_slice() {
            [only] => RangeDeletes::clone(only),
            sets => RangeDeletes::cut(sets.iter().flat_map(|set| set.fragments()).collect()),
        }
    }

    /// The same with the newest delete of each range only.
    pub fn newest(self) -> RangeDeletes {
        self.newest_from(0)
    }

    /// The same with only the newest of those deletes of each range whose number is `seq` or more.
    pub fn newest_from(self, seq: SeqNo) -> RangeDeletes {
        let mut fragments: Vec<Fragment> = Vec::with_capacity(self.fragments.len());
        for mut fragment in self.fragments {
            let newer = fragment.seqs.partition_point(|&of| of >= seq);
            if newer > 1 {
                fragment.seqs.drain(1..newer);
                fragment.seqs.shrink_to_fit();
            }
            match fragments.last_mut() {
                Some(last) if last.end == fragment.start && last.seqs == fragment.seqs => {
                    last.end = fragment.end;
                }
                _ => fragments.push(fragment),
            }
        }
        RangeDeletes { fragments }.checked()
    }

    /// Each (fragment, sequence number) as a range delete of its own, in order.
    pub fn deletes(&self) -> impl Iterator<Item = RangeDelete> + '_ {
        self.fragments.iter().flat_map(|fragment| {
            fragment.seqs.iter().map(|&seq| RangeDelete {
                start: fragment.start.clone(),
                end: fragment.end.clone(),
                seq,
            })
        })
    }

    /// Whether there is no delete.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// The fragments, sorted.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// The fragment that covers `key`, if any.
    #[inline]
    pub fn covering(&self, key: &[u8]) -> Option<&Fragment> {
        let after = self.fragments.partition_point(|fragment| fragment.start.as_slice() <= key);
        let fragment = self.fragments.get(after.checked_sub(1)?)?;
        (key < fragment.end.as_slice()).then_some(fragment)
    }

    /// The newest delete at or before `seq` that covers `key`, or 0 if none does.
    #[inline]
    pub fn newest_covering(&self, key: &[u8], seq: SeqNo) -> SeqNo {
        self.covering(key).map_or(0, |fragment| fragment.newest_at(seq))
    }

    /// The fragments that have keys from `start` up to (not including) `end`.
    pub fn meeting<'a>(
        &'a self,
        start: &[u8],
        end: Option<&'a [u8]>,
    ) -> impl Iterator<Item = &'a Fragment> {
        let first = self.fragments.partition_point(|fragment| fragment.end.as_slice() <= start);
        let meets = move |part: &&Fragment| end.is_none_or(|end| part.start.as_slice() < end);
        self.fragments[first..].iter().take_while(meets)
    }

    /// The same ranges, with `seq` as the one number of all.
    pub fn numbered(&self, seq: SeqNo) -> RangeDeletes {
        RangeDeletes::new(self.deletes().map(|delete| RangeDelete { seq, ..delete }))
    }

    /// The part of the set inside `start` (included) to `end` (excluded; `None` = no bound).
    pub fn clip(&self, start: &[u8], end: Option<&[u8]>) -> RangeDeletes {
        debug_assert!(end.is_none_or(|end| start < end), "a range has a length");
        let first = self.fragments.partition_point(|fragment| fragment.end.as_slice() <= start);
        let mut fragments = Vec::new();
        for fragment in &self.fragments[first..] {
            if end.is_some_and(|end| fragment.start.as_slice() >= end) {
                break;
            }
            let mut fragment = fragment.clone();
            if fragment.start.as_slice() < start {
                fragment.start = start.to_vec();
            }
            if let Some(end) = end
                && fragment.end.as_slice() > end
            {
                fragment.end = end.to_vec();
            }
            fragments.push(fragment);
        }
        RangeDeletes { fragments }.checked()
    }

    /// About how many bytes of memory the set takes.
    pub fn memory_bytes(&self) -> usize {
        self.fragments
            .iter()
            .map(|f| f.start.capacity() + f.end.capacity() + 8 * f.seqs.capacity() + 72)
            .sum()
    }
}

/// How many parts were looked at, for tests of what it costs.
#[cfg(test)]
pub(crate) mod looks {
    use std::cell::Cell;

    thread_local! {
        static COUNT: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn add(more: usize) {
        COUNT.set(COUNT.get() + more);
    }

    /// Since the last call, by this thread.
    pub(crate) fn take() -> usize {
        COUNT.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delete(start: &str, end: &str, seq: SeqNo) -> RangeDelete {
        RangeDelete { start: start.into(), end: end.into(), seq }
    }

    #[test]
    fn overlapping_ranges_become_fragments() {
        let set =
            RangeDeletes::new([delete("c", "g", 7), delete("a", "e", 3), delete("x", "x", 9)]);
        let shown: Vec<String> = set
            .fragments()
            .iter()
            .map(|f| {
                let (start, end) =
                    (String::from_utf8_lossy(&f.start), String::from_utf8_lossy(&f.end));
                format!("{start}-{end}:{:?}", f.seqs)
            })
            .collect();
        assert_eq!(shown, ["a-c:[3]", "c-e:[7, 3]", "e-g:[7]"]);
        assert_eq!(set.newest_covering(b"d", 100), 7);
        assert_eq!(set.newest_covering(b"d", 6), 3);
        assert_eq!(set.newest_covering(b"d", 2), 0);
        assert_eq!(set.newest_covering(b"g", 100), 0);
        assert_eq!(RangeDeletes::union([&set, &set]), set);
    }

    #[test]
    fn clipping_keeps_what_is_inside() {
        let set = RangeDeletes::new([delete("b", "d", 1), delete("f", "h", 2)]);
        let clipped = set.clip(b"c", Some(b"g"));
        assert_eq!(clipped, RangeDeletes::new([delete("c", "d", 1), delete("f", "g", 2)]));
        assert_eq!(set.clip(b"d", None), RangeDeletes::new([delete("f", "h", 2)]));
    }

    /// Of many sets, as of a tree with many tables that have a delete each, those are looked at that
    /// cover a place.
    #[test]
    fn a_union_of_many_sets_looks_at_those_that_cover_a_place() {
        const SETS: u32 = 1000;
        let key = |n: u32| n.to_be_bytes().to_vec();
        let set = |n: u32| {
            // Each meets the next, in any order.
            let start = n * 7 % SETS * 10;
            RangeDeletes::new([RangeDelete { start: key(start), end: key(start + 15), seq: 5 }])
        };
        let mut sets: Vec<RangeDeletes> = (0..SETS).map(set).collect();
        sets.push(RangeDeletes::new([RangeDelete { start: key(0), end: key(20_000), seq: 3 }]));
        looks::take();
        let all = RangeDeletes::union(&sets);
        let looks = looks::take();
        assert_eq!((all.fragments().len(), all.newest_covering(&key(9_999), 9)), (2, 5));
        assert!(looks <= 4 * 2 * SETS as usize + 8, "{looks}");
    }

    #[test]
    fn equals_a_naive_search() {
        let mut state = 12345u64;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for _ in 0..50 {
            let deletes: Vec<RangeDelete> = (1..20)
                .map(|seq| RangeDelete {
                    start: vec![random(30) as u8],
                    end: vec![random(30) as u8],
                    seq,
                })
                .collect();
            let set = RangeDeletes::new(deletes.clone());
            let parts: Vec<RangeDeletes> =
                deletes.chunks(5).map(|part| RangeDeletes::new(part.to_vec())).collect();
            assert_eq!(RangeDeletes::union(&parts), set);
            let newest = set.clone().newest();
            assert!(newest.fragments().iter().all(|fragment| fragment.seqs.len() == 1));
            for key in 0..32u8 {
                let of = |set: &RangeDeletes| set.newest_covering(&[key], 100);
                assert_eq!(of(&newest), of(&set));
            }
            for key in 0..32u8 {
                for at in 0..22 {
                    let naive = deletes
                        .iter()
                        .filter(|d| d.start[0] <= key && key < d.end[0] && d.seq <= at)
                        .map(|d| d.seq)
                        .max();
                    assert_eq!(set.newest_covering(&[key], at), naive.unwrap_or(0));
                }
            }
        }
    }
}
