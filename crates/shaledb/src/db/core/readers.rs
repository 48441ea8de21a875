//! Whether users read: for background work, which leaves them processor and disk if nobody waits
//! for it.

use crate::base::stats::{Counter, Recorder};
use crate::base::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How long a look at the counters is good for, in nanoseconds.
const LOOK_NANOS: u64 = 20_000_000;

/// How long users count as reading after a look that has found them to: steps of a scan are counted
/// by the thousand.
const ACTIVE_NANOS: u64 = 300_000_000;

/// From how many reads a second on users count as reading.
const READS_PER_SECOND: u64 = 100;

/// What counts as a read.
const READS: [Counter; 4] = [Counter::Gets, Counter::MultiGets, Counter::Seeks, Counter::ScanSteps];

/// The last look at how much is read.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    looked_at: AtomicU64,
    seen: AtomicU64,
    active_until: AtomicU64,
}

impl Readers {
    /// Whether users read, as of `now` or a moment ago.
    pub fn are_active(&self, recorder: &Recorder, now: u64) -> bool {
        let before = self.looked_at.load(Relaxed);
        let elapsed = now.saturating_sub(before);
        // One of the threads that ask looks.
        if elapsed >= LOOK_NANOS
            && self.looked_at.compare_exchange(before, now, Relaxed, Relaxed).is_ok()
        {
            let reads = recorder.sum_of(&READS);
            let new = reads.saturating_sub(self.seen.swap(reads, Relaxed));
            let least = u128::from(READS_PER_SECOND) * u128::from(elapsed) / 1_000_000_000;
            if new > 0 && u128::from(new) >= least {
                self.active_until.store(now + ACTIVE_NANOS, Relaxed);
            }
        }
        now < self.active_until.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_the_last_moment_count() {
        const SECOND: u64 = 1_000_000_000;
        let (recorder, readers) = (Recorder::new(), Readers::default());
        let mut now = SECOND;
        let mut look = |reads: u64, nanos: u64| {
            recorder.add(Counter::Gets, reads);
            now += nanos;
            readers.are_active(&recorder, now)
        };
        assert!(!look(0, SECOND));
        assert!(!look(99, SECOND));
        assert!(look(100, SECOND));
        assert!(look(0, ACTIVE_NANOS - 1), "a moment ago");
        assert!(!look(0, 1), "none came");
        assert!(!look(1, 3 * LOOK_NANOS));
        assert!(look(2, LOOK_NANOS));
        // Writes are none.
        recorder.add(Counter::Commits, 1000);
        assert!(!look(0, SECOND));
    }
}
