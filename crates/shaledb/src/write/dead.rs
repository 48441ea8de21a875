//! Whether a memtable is sealed before it is full, since scans pass the same dead entries in it
//! again and again: old versions of rows that were changed or deleted since it began.
//!
//! A flush drops them, and mostly their deletes as well. A delete of what is in tables it keeps:
//! that does not count. Whether scans will go on passing dead entries nobody knows; so a flush is
//! made once what they have lost is what it costs. Then no more than twice the least is ever spent.
//! Where dead entries are back at once (one row that is changed all the time) more is waited for
//! each time ([`Patience`]).

use crate::base::key::SeqNo;
use crate::base::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What a scan loses by passing an old version with the delete that hides it, in nanoseconds: a few
/// cache misses. Measured in a memtable of 800,000 small entries on a busy machine: 130 forward and
/// 195 backward for each of the two; in one that the processor's caches hold it is less.
const PASS_NANOS: u64 = 200;

/// What a flush and the merges after it cost for each entry, in nanoseconds. An estimate: measured
/// of small entries above one level were 190 and 58; a tree of more levels merges them more often.
const ENTRY_NANOS: u64 = 1_000;

/// What a flush costs however little there is: files, syncs, an edit. An estimate, too.
const FLUSH_NANOS: u64 = 10_000_000;

/// A tree whose next memtable has as much dead so soon gained little by the flush of the last one.
const SOON_NANOS: u64 = 2_000_000_000;

/// The most that is waited for: so many times what a flush costs, as a power of two.
const PATIENCE_MAX: u32 = 16;

/// How many dead entries scans pass in a memtable of so many entries until a flush is worth it.
pub fn worth(entries: u64) -> u64 {
    entries.saturating_mul(ENTRY_NANOS).saturating_add(FLUSH_NANOS) / PASS_NANOS
}

/// How much more than [`worth`] is waited for in a tree.
#[derive(Debug, Default)]
pub struct Patience {
    doublings: AtomicU32,
    /// When a memtable of it was last sealed for this.
    sealed_nanos: AtomicU64,
}

impl Patience {
    /// How many dead entries are waited for.
    pub fn worth(&self, entries: u64) -> u64 {
        worth(entries).saturating_mul(1 << self.doublings.load(Ordering::Relaxed))
    }

    /// Notes that a memtable is sealed now. One thread at a time calls it.
    pub fn note_sealed(&self, now_nanos: u64) {
        let last = self.sealed_nanos.swap(now_nanos, Ordering::Relaxed);
        let doublings = self.doublings.load(Ordering::Relaxed);
        let doublings = match last > 0 && now_nanos.saturating_sub(last) < SOON_NANOS {
            true => (doublings + 1).min(PATIENCE_MAX),
            false => doublings.saturating_sub(1),
        };
        self.doublings.store(doublings, Ordering::Relaxed);
    }
}

/// An active memtable, and what keeps a flush from being of use.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// How many dead entries scans have passed.
    pub dead: u64,
    /// How many are waited for.
    pub worth: u64,
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
    /// It would be, but is of no use or comes at a bad time: what is passed is counted anew, and
    /// twice as much is waited for in this memtable, so that this is seldom asked.
    CountedAnew,
}

/// What becomes of an active memtable.
pub fn decide(passed: &Passed) -> Verdict {
    debug_assert!(passed.first_seq <= passed.last_seq, "it has entries");
    if passed.dead < passed.worth {
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
        // A flush alone is 50,000 entries passed; each of its entries five.
        assert_eq!([0, 3, 30_000, 3_000_000].map(worth), [50_000, 50_015, 200_000, 15_050_000]);
        let decisions = [
            // Entries, dead ones passed, the oldest reader of what is written at 1000 to 2000.
            (10, 20_000, 2000, false, GoesOn),
            (10, 50_049, 2000, false, GoesOn),
            (10, 50_050, 2000, false, Sealed),
            (1_000_000, 5_000_000, 2000, false, GoesOn),
            (1_000_000, 6_000_000, 2000, false, Sealed),
            // An old reader, for whom most is kept.
            (10, 200_000, 1600, false, Sealed),
            (10, 200_000, 1500, false, Sealed),
            (10, 200_000, 1499, false, CountedAnew),
            (10, 200_000, 7, false, CountedAnew),
            (10, 50_000, 7, false, GoesOn),
            // Merges are behind.
            (10, 200_000, 2000, true, CountedAnew),
            (10, 50_000, 2000, true, GoesOn),
        ];
        for (entries, dead, oldest_reader, is_behind, verdict) in decisions {
            let (first_seq, last_seq) = (1000, 2000);
            let worth = worth(entries);
            let passed = Passed { dead, worth, first_seq, last_seq, oldest_reader, is_behind };
            assert_eq!(decide(&passed), verdict, "{entries}: {passed:?}");
        }
    }

    #[test]
    fn what_gained_little_is_waited_for_longer() {
        let patience = Patience::default();
        let mut now = 1;
        for doublings in [0, 1, 2, 3] {
            patience.note_sealed(now);
            assert_eq!(patience.worth(10), 50_050 << doublings);
            now += SOON_NANOS - 1;
        }
        for doublings in [2, 1, 0, 0] {
            now += SOON_NANOS;
            patience.note_sealed(now);
            assert_eq!(patience.worth(10), 50_050 << doublings);
        }
        (0..100).for_each(|_| patience.note_sealed(now));
        assert_eq!(patience.worth(10), 50_050 << PATIENCE_MAX);
    }
}
