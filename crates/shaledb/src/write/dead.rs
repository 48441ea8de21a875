//! Whether a memtable is sealed before it is full, since scans pass the same dead entries in it
//! again and again: rows that were changed or deleted since it began, and their deletes.
//!
//! A flush drops them. Whether scans will go on passing them nobody knows; so it is made once what
//! they have lost is what it costs. Then no more than twice the least is ever spent.

use crate::base::key::SeqNo;

/// What a scan loses by passing an entry, in nanoseconds: a cache miss or two. Measured in a
/// memtable of 800,000 small entries on a busy machine: 130 forward, 195 backward; in one that the
/// processor's caches hold it is less.
const PASS_NANOS: u64 = 100;

/// What a flush and the merges after it cost for each entry, in nanoseconds. An estimate: measured
/// of small entries above one level were 190 and 58; a tree of more levels merges them more often.
const ENTRY_NANOS: u64 = 1_000;

/// What a flush costs however little there is: files, syncs, an edit. An estimate, too.
const FLUSH_NANOS: u64 = 10_000_000;

/// How many dead entries scans pass in a memtable of so many entries until a flush is worth it.
pub fn worth(entries: u64) -> u64 {
    entries.saturating_mul(ENTRY_NANOS).saturating_add(FLUSH_NANOS) / PASS_NANOS
}

/// An active memtable, and what keeps a flush from being of use.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// How many entries it has.
    pub entries: u64,
    /// How many dead ones scans have passed.
    pub dead: u64,
    /// The first number of its entries.
    pub first_seq: SeqNo,
    /// The last one.
    pub last_seq: SeqNo,
    /// The oldest number that a reader sees the tree at.
    pub oldest_reader: SeqNo,
    /// Whether flushes or merges of the tree are behind.
    pub is_behind: bool,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Too little was lost by now.
    GoesOn,
    /// A flush is worth it.
    Sealed,
    /// It would be, but is of no use or comes at a bad time: what is passed is counted anew, so
    /// that this is seldom asked.
    CountedAnew,
}

/// What becomes of an active memtable.
pub fn decide(passed: &Passed) -> Verdict {
    debug_assert!(passed.first_seq <= passed.last_seq, "it has entries");
    if passed.dead < worth(passed.entries) {
        return Verdict::GoesOn;
    }
    // For a reader of before most of it was written a flush keeps what has died since.
    let middle = passed.first_seq.midpoint(passed.last_seq);
    if passed.is_behind || passed.oldest_reader < middle {
        return Verdict::CountedAnew;
    }
    Verdict::Sealed
}

#[cfg(test)]
mod tests {
    use super::Verdict::{CountedAnew, GoesOn, Sealed};
    use super::*;

    #[test]
    fn what_was_lost_is_weighed_against_a_flush() {
        // A flush alone is 100,000 entries passed; each of its entries ten.
        assert_eq!([0, 3, 30_000, 3_000_000].map(worth), [100_000, 100_030, 400_000, 30_100_000]);
        let decisions = [
            // Entries, dead ones passed, the oldest reader of what is written at 1000 to 2000.
            (10, 50_000, 2000, false, GoesOn),
            (10, 100_099, 2000, false, GoesOn),
            (10, 100_100, 2000, false, Sealed),
            (1_000_000, 5_000_000, 2000, false, GoesOn),
            (1_000_000, 11_000_000, 2000, false, Sealed),
            // An old reader, for whom most is kept.
            (10, 200_000, 1600, false, Sealed),
            (10, 200_000, 1500, false, Sealed),
            (10, 200_000, 1499, false, CountedAnew),
            (10, 200_000, 7, false, CountedAnew),
            (10, 100_000, 7, false, GoesOn),
            // Merges are behind.
            (10, 200_000, 2000, true, CountedAnew),
            (10, 100_000, 2000, true, GoesOn),
        ];
        for (entries, dead, oldest_reader, is_behind, verdict) in decisions {
            let (first_seq, last_seq) = (1000, 2000);
            let passed = Passed { entries, dead, first_seq, last_seq, oldest_reader, is_behind };
            assert_eq!(decide(&passed), verdict, "{passed:?}");
        }
    }
}
