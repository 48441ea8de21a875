//! What the engine did, counted where it happens and read by nobody on the way.
//!
//! Every thread has counters of its own, so that counting on a hot path is a plain load and store
//! of memory that no other core touches. [`Recorder::totals`] adds them up. Latencies are sampled
//! (one call in [`SAMPLE_EVERY`] per thread), since reading the clock twice costs as much as a
//! cached read; waits for back-pressure are always timed.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use thread_local::ThreadLocal;

/// One call in this many is timed.
pub const SAMPLE_EVERY: u32 = 32;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident => $text:literal,)*) => {
        /// A number that only grows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter { $($(#[$doc])* $name,)* }

        impl Counter {
            /// All counters, in order.
            pub const ALL: &'static [Counter] = &[$(Counter::$name,)*];

            /// The name used in texts and JSON.
            pub fn name(self) -> &'static str {
                match self { $(Counter::$name => $text,)* }
            }
        }
    };
}

counters! {
    /// Operations written: puts, deletes and range deletes.
    WriteOps => "write_ops",
    /// Bytes of keys and values handed in by the user.
    UserBytes => "user_bytes",
    /// Commits.
    Commits => "commits",
    /// Groups of commits that went to the log together.
    CommitGroups => "commit_groups",
    /// Bytes appended to the write-ahead log.
    WalBytes => "wal_bytes",
    /// Syncs of the write-ahead log.
    WalSyncs => "wal_syncs",
    /// Nanoseconds spent in syncs of the write-ahead log.
    WalSyncNanos => "wal_sync_ns",
    /// Bytes written to blob files.
    BlobBytes => "blob_bytes",
    /// Bytes written by ingest.
    IngestBytes => "ingest_bytes",
    /// Point reads.
    Gets => "gets",
    /// Point reads that found a value.
    GetHits => "get_hits",
    /// Point reads answered by a memtable.
    GetMemtable => "get_memtable",
    /// Seeks of scans.
    Seeks => "seeks",
    /// Rows that scans gave.
    ScanRows => "scan_rows",
    /// Data blocks found in the cache.
    DataHits => "data_block_hits",
    /// Data blocks read from files.
    DataMisses => "data_block_misses",
    /// Index and filter pairs found loaded.
    IndexHits => "index_hits",
    /// Index and filter pairs read from files.
    IndexMisses => "index_misses",
    /// Filters asked.
    FilterChecks => "filter_checks",
    /// Filters that spared a block read.
    FilterUseful => "filter_useful",
    /// Filters that let a key through which was not there.
    FilterFalse => "filter_false_positives",
    /// Bytes of tables read by users' reads.
    ReadBytes => "read_bytes",
    /// Nanoseconds of CPU in flushes.
    FlushCpuNanos => "flush_cpu_ns",
    /// Nanoseconds of CPU in compactions.
    CompactCpuNanos => "compact_cpu_ns",
    /// Nanoseconds writers waited for room in the memtables.
    StallMemtableNanos => "stall_memtable_ns",
    /// Nanoseconds writers were slowed for level 0.
    StallLevel0Nanos => "stall_level0_ns",
    /// Nanoseconds writers were slowed for other compaction debt.
    StallDebtNanos => "stall_debt_ns",
    /// Waits of writers of all causes.
    Stalls => "stalls",
    /// Files removed.
    FilesRemoved => "files_removed",
}

/// An operation whose latency is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Timed {
    /// A commit, its wait for back-pressure and its sync included.
    Write,
    /// A point read.
    Get,
    /// The seek of a scan.
    Seek,
    /// A sync of the write-ahead log.
    Sync,
    /// A wait for back-pressure.
    Stall,
}

impl Timed {
    /// All timed operations, in order.
    pub const ALL: [Timed; 5] = [Timed::Write, Timed::Get, Timed::Seek, Timed::Sync, Timed::Stall];

    /// The name used in texts and JSON.
    pub fn name(self) -> &'static str {
        ["write", "get", "seek", "sync", "stall"][self as usize]
    }
}

const COUNTERS: usize = Counter::ALL.len();
/// Eight buckets per power of two: percentiles are right to within an eighth.
const BUCKETS: usize = 40 * 8;

struct Local {
    counters: [AtomicU64; COUNTERS],
    latencies: [[AtomicU64; BUCKETS]; Timed::ALL.len()],
    max: [AtomicU64; Timed::ALL.len()],
    tick: AtomicU32,
}

impl Default for Local {
    fn default() -> Local {
        Local {
            counters: [const { AtomicU64::new(0) }; COUNTERS],
            latencies: [const { [const { AtomicU64::new(0) }; BUCKETS] }; Timed::ALL.len()],
            max: [const { AtomicU64::new(0) }; Timed::ALL.len()],
            tick: AtomicU32::new(0),
        }
    }
}

/// Only the owning thread writes, so a load and a store do.
#[inline]
fn bump(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

#[inline]
fn bucket(nanos: u64) -> usize {
    let nanos = nanos.max(8);
    let power = 63 - nanos.leading_zeros() as usize;
    let within = (nanos >> (power - 3)) as usize & 7;
    ((power - 3) * 8 + within).min(BUCKETS - 1)
}

/// The middle of a bucket, in nanoseconds.
fn bucket_nanos(index: usize) -> u64 {
    let (power, within) = (index / 8 + 3, (index % 8) as u64);
    let low = (1u64 << power) + (within << (power - 3));
    low + (1u64 << (power - 3)) / 2
}

/// The counters of one database.
#[derive(Default)]
pub struct Recorder {
    locals: ThreadLocal<Box<Local>>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorder")
    }
}

impl Recorder {
    /// All zero.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    #[inline]
    fn local(&self) -> &Local {
        self.locals.get_or_default()
    }

    /// Adds to a counter.
    #[inline]
    pub fn add(&self, counter: Counter, by: u64) {
        bump(&self.local().counters[counter as usize], by);
    }

    /// Adds to several counters with one look-up of the thread's own.
    #[inline]
    pub fn add_all<const N: usize>(&self, adds: [(Counter, u64); N]) {
        let local = self.local();
        for (counter, by) in adds {
            bump(&local.counters[counter as usize], by);
        }
    }

    /// Whether this call is one that is to be timed.
    #[inline]
    pub fn sample(&self) -> bool {
        let local = self.local();
        let tick = local.tick.load(Relaxed).wrapping_add(1);
        local.tick.store(tick, Relaxed);
        tick.is_multiple_of(SAMPLE_EVERY)
    }

    /// Records how long an operation took.
    pub fn time(&self, what: Timed, nanos: u64) {
        let local = self.local();
        bump(&local.latencies[what as usize][bucket(nanos)], 1);
        let max = &local.max[what as usize];
        if nanos > max.load(Relaxed) {
            max.store(nanos, Relaxed);
        }
    }

    /// The sums over all threads.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals {
            counters: [0; COUNTERS],
            latencies: std::array::from_fn(|_| vec![0; BUCKETS]),
            max: [0; Timed::ALL.len()],
        };
        for local in &self.locals {
            for (sum, cell) in totals.counters.iter_mut().zip(&local.counters) {
                *sum += cell.load(Relaxed);
            }
            for (sums, cells) in totals.latencies.iter_mut().zip(&local.latencies) {
                for (sum, cell) in sums.iter_mut().zip(cells) {
                    *sum += cell.load(Relaxed);
                }
            }
            for (max, cell) in totals.max.iter_mut().zip(&local.max) {
                *max = (*max).max(cell.load(Relaxed));
            }
        }
        totals
    }
}

/// Sums of counters and latencies at one moment.
#[derive(Clone, Debug)]
pub struct Totals {
    counters: [u64; COUNTERS],
    latencies: [Vec<u64>; Timed::ALL.len()],
    max: [u64; Timed::ALL.len()],
}

impl Totals {
    /// The value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    /// How many calls of an operation were timed.
    pub fn samples(&self, what: Timed) -> u64 {
        self.latencies[what as usize].iter().sum()
    }

    /// A percentile (0 to 100) of the timed calls in nanoseconds; 0 if there are none.
    pub fn percentile(&self, what: Timed, percent: f64) -> u64 {
        let buckets = &self.latencies[what as usize];
        let count: u64 = buckets.iter().sum();
        if count == 0 {
            return 0;
        }
        let rank = ((count as f64 * percent / 100.0).ceil() as u64).clamp(1, count);
        let mut seen = 0;
        for (index, &here) in buckets.iter().enumerate() {
            seen += here;
            if seen >= rank {
                return bucket_nanos(index).min(self.max(what));
            }
        }
        self.max(what)
    }

    /// The longest timed call in nanoseconds.
    pub fn max(&self, what: Timed) -> u64 {
        self.max[what as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_threads_add_up() {
        let recorder = Recorder::new();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        recorder.add_all([(Counter::Gets, 1), (Counter::GetHits, 2)]);
                    }
                });
            }
        });
        assert_eq!(recorder.totals().get(Counter::Gets), 3000);
        assert_eq!(recorder.totals().get(Counter::GetHits), 6000);
    }

    #[test]
    fn percentiles_are_right_to_an_eighth() {
        let recorder = Recorder::new();
        for nanos in 1..=100_000u64 {
            recorder.time(Timed::Get, nanos);
        }
        let totals = recorder.totals();
        for percent in [10.0, 50.0, 99.0, 99.9] {
            let exact = 1000.0 * percent;
            let got = totals.percentile(Timed::Get, percent) as f64;
            assert!((got / exact - 1.0).abs() <= 0.125, "{percent}: {got} for {exact}");
        }
        assert_eq!(totals.percentile(Timed::Get, 100.0), 100_000);
        assert_eq!(totals.percentile(Timed::Write, 50.0), 0);
    }
}
