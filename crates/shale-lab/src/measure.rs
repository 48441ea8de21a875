//! What a step cost: CPU, bytes, memory and size as the system counts them; latencies and rates as
//! the client sees them.
//!
//! Linux only counts some of this; elsewhere those measures are zero.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What the process has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU seconds outside the system.
    pub user_seconds: f64,
    /// CPU seconds inside the system.
    pub system_seconds: f64,
    /// Bytes that went to storage, or will when the page cache is written back.
    pub written_bytes: u64,
    /// Bytes that came from storage.
    pub read_bytes: u64,
}

impl Usage {
    /// As of now, the whole process, threads that have ended included.
    pub fn now() -> Usage {
        // SAFETY: all-zero bytes are a valid rusage.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is valid for writing for the length of the call.
        let answer = unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
        if answer != 0 {
            return Usage::default();
        }
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        let (read_bytes, written_bytes) =
            io_bytes().unwrap_or((usage.ru_inblock as u64 * 512, usage.ru_oublock as u64 * 512));
        Usage {
            user_seconds: seconds(usage.ru_utime),
            system_seconds: seconds(usage.ru_stime),
            written_bytes,
            read_bytes,
        }
    }

    /// What was used since `earlier`.
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user_seconds: self.user_seconds - earlier.user_seconds,
            system_seconds: self.system_seconds - earlier.system_seconds,
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
        }
    }

    /// All CPU seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }
}

fn io_bytes() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    Some((field(&text, "read_bytes:")?, field(&text, "write_bytes:")?))
}

fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Resident memory now and at its peak since [`reset_peak`], in bytes.
pub fn resident_bytes() -> (u64, u64) {
    let Ok(text) = std::fs::read_to_string("/proc/self/status") else {
        return (0, 0);
    };
    let kib = |name| field(&text, name).unwrap_or(0) * 1024;
    (kib("VmRSS:"), kib("VmHWM:"))
}

/// Lets the peak of resident memory begin anew. Where the system refuses, the peak goes on.
pub fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Bytes that the files under a folder take on disk: allocated blocks, so that holes are not
/// counted; hard links once.
pub fn disk_bytes(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut total = 0;
    let mut seen = std::collections::BTreeSet::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            // A file may go away between the listing and the look at it.
            let Ok(meta) = entry.path().symlink_metadata() else { continue };
            if meta.is_dir() {
                folders.push(entry.path());
            } else if meta.nlink() < 2 || seen.insert((meta.dev(), meta.ino())) {
                total += meta.blocks() * 512;
            }
        }
    }
    total
}

/// Latencies of one thread, in nanoseconds, with three significant digits.
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

impl Latencies {
    /// Empty, for up to an hour.
    pub fn new() -> Latencies {
        let histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3)
            .expect("the bounds are in order and three digits are few");
        Latencies(histogram)
    }

    /// Adds one.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(latency.as_nanos() as u64);
    }

    /// Adds another thread's.
    pub fn merge(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("both histograms have the same bounds");
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

/// Rates of the intervals of a step: the rate that was held for that share of the intervals.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RateSummary {
    /// How many whole seconds there were.
    pub intervals: usize,
    /// Held in half of the seconds.
    pub p50: f64,
    /// Held in 75 of 100 seconds.
    pub p75: f64,
    /// Held in 95 of 100 seconds.
    pub p95: f64,
    /// Held in 99 of 100 seconds.
    pub p99: f64,
    /// The worst second.
    pub worst: f64,
}

impl RateSummary {
    /// From the rate of each interval.
    pub fn of(rates: &[f64]) -> RateSummary {
        let mut falling = rates.to_vec();
        falling.sort_by(|a, b| b.total_cmp(a));
        let held = |share: f64| {
            let at = (falling.len() as f64 * share).ceil() as usize;
            falling.get(at.saturating_sub(1)).copied().unwrap_or(0.0)
        };
        RateSummary {
            intervals: rates.len(),
            p50: held(0.5),
            p75: held(0.75),
            p95: held(0.95),
            p99: held(0.99),
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
    fn usage_grows() {
        let before = Usage::now();
        let mut at = 0u64;
        while Usage::now().since(&before).cpu_seconds() < 0.002 {
            at = std::hint::black_box(at + 1);
        }
        let (rss, peak) = resident_bytes();
        assert!(rss > 0 && peak >= rss / 2);
    }

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
        assert!((498.0..503.0).contains(&summary.p50), "{summary:?}");
        assert!((49_900.0..50_100.0).contains(&summary.max), "{summary:?}");
    }

    #[test]
    fn rates_held() {
        let rates: Vec<f64> = (1..=100).map(f64::from).collect();
        let summary = RateSummary::of(&rates);
        assert_eq!((summary.p50, summary.p95, summary.worst), (51.0, 6.0, 1.0));
        assert_eq!(RateSummary::of(&[]).worst, 0.0);
    }

    #[test]
    fn hard_links_count_once() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), vec![1u8; 10_000]).unwrap();
        let alone = disk_bytes(dir.path());
        std::fs::hard_link(dir.path().join("a"), dir.path().join("b")).unwrap();
        assert_eq!(disk_bytes(dir.path()), alone);
        assert!(alone >= 10_000);
    }
}
