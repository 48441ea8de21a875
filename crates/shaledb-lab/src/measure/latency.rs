//! Latencies and rates as the client sees them.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Latencies of one thread, in nanoseconds, with three significant digits. It is as large as its
/// longest latency wants (80 KB for 100 ms): there is one for each kind of operation of each
/// client, and they are in the measured memory.
pub struct Latencies(Histogram<u32>);

/// What takes longer counts as this: an hour.
const LONGEST_NANOS: u64 = 3_600_000_000_000;

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

impl Latencies {
    /// Empty, for up to an hour.
    pub fn new() -> Latencies {
        Latencies(Histogram::new(3).expect("three digits are few"))
    }

    /// Adds one.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        self.record_many(latency, 1);
    }

    /// Adds one that stands for `count` equal ones.
    #[inline]
    pub fn record_many(&mut self, latency: Duration, count: u64) {
        let nanos = (latency.as_nanos() as u64).min(LONGEST_NANOS);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.0.record_n(nanos, count).expect("it grows for what is longer");
    }

    /// How many were recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Adds another thread's.
    pub fn merge(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("it grows for what is longer");
    }

    /// As a report shows them.
    pub fn summary(&self) -> LatencySummary {
        let at = |quantile| self.0.value_at_quantile(quantile) as f64 / 1e3;
        LatencySummary {
            mean: self.0.mean() / 1e3,
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: self.0.max() as f64 / 1e3,
        }
    }
}

/// Response times in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencySummary {
    /// The arithmetic mean.
    pub mean: f64,
    /// Half are at most this.
    pub p50: f64,
    /// 95 of 100 are at most this.
    pub p95: f64,
    /// 99 of 100 are at most this.
    pub p99: f64,
    /// 999 of 1000 are at most this.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// Rates of the intervals of a step, in operations per second: each is the rate that a share of
/// the intervals reached.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RateSummary {
    /// How many whole intervals there were.
    pub intervals: usize,
    /// Half of them reached it.
    pub p50: f64,
    /// 75 of 100 reached it.
    pub p75: f64,
    /// 95 of 100 reached it.
    pub p95: f64,
    /// 99 of 100 reached it.
    pub p99: f64,
    /// The lowest.
    pub worst: f64,
}

impl RateSummary {
    /// From the rate of each interval.
    pub fn of(rates: &[f64]) -> RateSummary {
        let mut falling = rates.to_vec();
        falling.sort_by(|a, b| b.total_cmp(a));
        let reached = |share: f64| {
            let at = (falling.len() as f64 * share).ceil() as usize;
            falling.get(at.saturating_sub(1)).copied().unwrap_or(0.0)
        };
        RateSummary {
            intervals: rates.len(),
            p50: reached(0.5),
            p75: reached(0.75),
            p95: reached(0.95),
            p99: reached(0.99),
            worst: falling.last().copied().unwrap_or(0.0),
        }
    }
}

/// A counter of one thread's operations, alone on its cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counter(AtomicU64);

impl Counter {
    /// Sets it; only its own thread does.
    #[inline]
    pub fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    /// As last set.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_summed_up() {
        let mut one = Latencies::new();
        let mut two = Latencies::new();
        for micros in 1..=1000 {
            one.record(Duration::from_micros(micros));
        }
        two.record(Duration::from_millis(50));
        one.merge(&two);
        let summary = one.summary();
        assert_eq!(one.count(), 1001);
        assert!((498.0..503.0).contains(&summary.p50), "{summary:?}");
        assert!((49_900.0..50_100.0).contains(&summary.max), "{summary:?}");
    }

    #[test]
    fn one_record_may_stand_for_several() {
        let mut latencies = Latencies::new();
        latencies.record_many(Duration::from_micros(10), 99);
        latencies.record(Duration::from_micros(1000));
        assert_eq!(latencies.count(), 100);
        assert!((9.9..10.1).contains(&latencies.summary().p99), "{:?}", latencies.summary());
    }

    #[test]
    fn latencies_grow_up_to_an_hour() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::from_nanos(100));
        latencies.record(Duration::from_secs(3));
        let mut all = Latencies::new();
        all.merge(&latencies);
        all.record(Duration::from_secs(5000));
        let summary = all.summary();
        assert!((2_990_000.0..3_010_000.0).contains(&summary.p50), "{summary:?}");
        assert!((3.59e9..3.61e9).contains(&summary.max), "{summary:?}");
    }

    #[test]
    fn rates_reached() {
        let rates: Vec<f64> = (1..=100).map(f64::from).collect();
        let summary = RateSummary::of(&rates);
        assert_eq!((summary.p50, summary.p95, summary.worst), (51.0, 6.0, 1.0));
        assert_eq!(RateSummary::of(&[]).worst, 0.0);
    }
}
