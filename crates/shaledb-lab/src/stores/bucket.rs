//! How long bytes wait for a device of a bounded rate. Pure: time is told.

/// A device that was idle does so much at once, in nanoseconds of its work.
const BURST_NANOS: u64 = 10_000_000;

/// A device that does so many bytes a second, in the order in which it is asked.
#[derive(Debug)]
pub(super) struct Bucket {
    bytes_per_second: f64,
    /// When it will have done all that it was asked for, in nanoseconds.
    free_at: u64,
}

impl Bucket {
    /// A device that was idle before.
    pub(super) fn new(bytes_per_second: u64) -> Bucket {
        Bucket { bytes_per_second: bytes_per_second.max(1) as f64, free_at: 0 }
    }

    /// Asks for `bytes` at the time `now`; answers with how long they wait.
    pub(super) fn take(&mut self, now: u64, bytes: u64) -> u64 {
        let work = (bytes as f64 * 1e9 / self.bytes_per_second) as u64;
        self.free_at = self.free_at.max(now.saturating_sub(BURST_NANOS)) + work;
        self.free_at.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    #[test]
    fn bytes_wait_for_those_before_them() {
        let mut bucket = Bucket::new(1_000_000);
        // A kilobyte is a millisecond. Ten of them come at once after a time of rest.
        let now = 1000 * MILLI;
        assert_eq!(bucket.take(now, 10_000), 0);
        assert_eq!(bucket.take(now, 5_000), 5 * MILLI);
        assert_eq!(bucket.take(now + MILLI, 1_000), 5 * MILLI);
        assert_eq!(bucket.take(now + 6 * MILLI, 1_000), MILLI);
        // Rest does not add up beyond the burst.
        assert_eq!(bucket.take(9000 * MILLI, 12_000), 2 * MILLI);
    }

    #[test]
    fn no_more_goes_through_than_the_rate_and_one_burst() {
        for (rate, piece) in [(60 << 20, 16_384), (1 << 20, 100), (64 << 10, 65_536)] {
            let (mut bucket, mut now, begin) = (Bucket::new(rate), 5000 * MILLI, 5000 * MILLI);
            let mut done = 0;
            while now < begin + 2000 * MILLI {
                now += bucket.take(now, piece);
                done += piece;
                // Whoever sleeps is woken somewhat late: that is made up for.
                now += 40_000;
            }
            let seconds = (now - begin) as f64 / 1e9;
            let allowed = rate as f64 * (seconds + 0.01) + piece as f64;
            assert!(done as f64 <= allowed, "{done} of {allowed} at {rate}");
            // Who asks again at once gets nearly all of it.
            if piece as f64 / rate as f64 > 60e-6 {
                assert!(done as f64 >= 0.95 * rate as f64 * seconds, "{done} at {rate}");
            }
        }
    }
}
