//! What the engine did, counted where it happens and read by nobody on the way.
//!
//! Every thread has counters of its own, so that counting on a hot path is a plain load and store
//! of memory that no other core touches. [`Recorder::totals`] adds them up. Latencies and CPU are
//! sampled ([`super::activity`] says how), since reading a clock twice costs as much as a cached
//! read; waits for back-pressure and for the log's syncs are always timed.

use super::activity::{ACTIVITIES, Activity, Dice, Measured, Spent};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use thread_local::ThreadLocal;

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
    /// Memtables sealed before they were full, since scans passed many dead entries in them.
    SealedForScans => "memtables_sealed_for_scans",
    /// Bytes written to blob files.
    BlobBytes => "blob_bytes",
    /// Bytes written by ingest.
    IngestBytes => "ingest_bytes",
    /// Keys looked up by point reads.
    Gets => "gets",
    /// Keys that point reads found a value for.
    GetHits => "get_hits",
    /// Point reads of several keys at once.
    MultiGets => "multi_gets",
    /// Blocks that [`Tree::prefetch`](crate::Tree::prefetch) has asked for.
    BlocksPrefetched => "blocks_prefetched",
    /// Scans made.
    Scans => "scans",
    /// Seeks of scans.
    Seeks => "seeks",
    /// Steps of scans from row to row; a scan counts them when it is dropped, or before.
    ScanSteps => "scan_steps",
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
    /// Bytes of tables and of blob files read by users' reads.
    ReadBytes => "read_bytes",
    /// Nanoseconds writers waited for room in the memtables.
    StallMemtableNanos => "stall_memtable_ns",
    /// Nanoseconds writers were slowed for level 0.
    StallLevel0Nanos => "stall_level0_ns",
    /// Nanoseconds writers were slowed for other compaction debt.
    StallDebtNanos => "stall_debt_ns",
    /// Nanoseconds writers were slowed, or waited, for room on the disk.
    StallSpaceNanos => "stall_space_ns",
    /// Waits of writers of all causes.
    Stalls => "stalls",
    /// Files of tables and large values removed.
    FilesRemoved => "files_removed",
    /// Nanoseconds that background threads were at flushes and compactions.
    BackgroundNanos => "background_ns",
    /// Nanoseconds of CPU that they used for it.
    BackgroundCpuNanos => "background_cpu_ns",
    /// Bytes that they wrote to tables.
    TableWriteBytes => "table_write_bytes",
    /// Nanoseconds that those writes and the syncs after them took.
    TableWriteNanos => "table_write_ns",
    /// Nanoseconds of CPU that they used.
    TableWriteCpuNanos => "table_write_cpu_ns",
    /// Bytes that they read from tables.
    TableReadBytes => "table_read_bytes",
    /// Nanoseconds that those reads took.
    TableReadNanos => "table_read_ns",
    /// Nanoseconds of CPU that they used.
    TableReadCpuNanos => "table_read_cpu_ns",
    /// Bytes of blocks that users' reads of single blocks read.
    BlockReadBytes => "block_read_bytes",
    /// Nanoseconds that those reads took.
    BlockReadNanos => "block_read_ns",
}

/// An operation whose latency is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Timed {
    /// A commit, or one of its two phases: with its wait for back-pressure and its sync.
    Write,
    /// A point read.
    Get,
    /// A point read of several keys.
    MultiGet,
    /// The seek of a scan.
    Seek,
    /// A sync of the write-ahead log.
    Sync,
    /// A wait for back-pressure.
    Stall,
}

impl Timed {
    /// All timed operations, in order.
    pub const ALL: [Timed; 6] =
        [Timed::Write, Timed::Get, Timed::MultiGet, Timed::Seek, Timed::Sync, Timed::Stall];

    /// The name used in texts and JSON.
    pub fn name(self) -> &'static str {
        ["write", "get", "multi_get", "seek", "sync", "stall"][self as usize]
    }

    /// The latency that sampled calls of an activity are recorded as.
    pub fn of(activity: Activity) -> Option<Timed> {
        match activity {
            Activity::Write => Some(Timed::Write),
            Activity::Get => Some(Timed::Get),
            Activity::MultiGet => Some(Timed::MultiGet),
            Activity::Seek => Some(Timed::Seek),
            _ => None,
        }
    }
}

const COUNTERS: usize = Counter::ALL.len();

// Counters and latencies are found by number.
const _: () = {
    assert!(ACTIVITIES <= u32::BITS as usize, "`postponed` has a bit for each");
    assert!(Counter::ALL[COUNTERS - 1] as usize == COUNTERS - 1);
    let mut at = 0;
    while at < Timed::ALL.len() {
        assert!(Timed::ALL[at] as usize == at);
        at += 1;
    }
};
/// Eight buckets per power of two: percentiles are right to within an eighth.
const BUCKETS: usize = 40 * 8;

struct Local {
    counters: [AtomicU64; COUNTERS],
    latencies: [[AtomicU64; BUCKETS]; Timed::ALL.len()],
    max: [AtomicU64; Timed::ALL.len()],
    /// How many calls until the next one that is looked at, that one included; 0: not drawn yet.
    due: [AtomicU32; ACTIVITIES],
    /// Activities whose next sample has its CPU measured in any case, a bit each.
    postponed: AtomicU32,
    dice: AtomicU64,
    short: [Cpu; ACTIVITIES],
    long: [Cpu; ACTIVITIES],
}

/// What was measured of one activity by one clock.
#[derive(Default)]
struct Cpu {
    samples: AtomicU64,
    nanos: AtomicU64,
    /// The bits of an f64: squares of a second in nanoseconds would soon overflow a sum.
    squares: AtomicU64,
}

impl Cpu {
    fn add_to(&self, sum: &mut Measured) {
        sum.samples += self.samples.load(Relaxed);
        sum.nanos += self.nanos.load(Relaxed);
        sum.squares += f64::from_bits(self.squares.load(Relaxed));
    }
}

impl Local {
    fn new(seed: u64) -> Local {
        Local {
            counters: [const { AtomicU64::new(0) }; COUNTERS],
            latencies: [const { [const { AtomicU64::new(0) }; BUCKETS] }; Timed::ALL.len()],
            max: [const { AtomicU64::new(0) }; Timed::ALL.len()],
            due: [const { AtomicU32::new(0) }; ACTIVITIES],
            postponed: AtomicU32::new(0),
            dice: AtomicU64::new(Dice::new(seed).state()),
            short: std::array::from_fn(|_| Cpu::default()),
            long: std::array::from_fn(|_| Cpu::default()),
        }
    }

    #[inline]
    fn sample(&self, activity: Activity) -> Option<Sample> {
        let due = &self.due[activity as usize];
        match due.load(Relaxed) {
            left @ 0..=1 => self.come_due(activity, left == 1),
            left => {
                due.store(left - 1, Relaxed);
                None
            }
        }
    }

    fn roll<T>(&self, draw: impl FnOnce(&mut Dice) -> T) -> T {
        let mut dice = Dice::resume(self.dice.load(Relaxed));
        let drawn = draw(&mut dice);
        self.dice.store(dice.state(), Relaxed);
        drawn
    }

    /// The call that a countdown has come to, or whose countdown has yet to be drawn.
    #[cold]
    fn come_due(&self, activity: Activity, drawn: bool) -> Option<Sample> {
        let left = if drawn { 1 } else { self.roll(|dice| dice.gap(activity.every())) };
        let (sample, next) = match left {
            1 => {
                let (sample, next) = self.draw(activity);
                (Some(sample), next)
            }
            left => (None, left - 1),
        };
        self.due[activity as usize].store(next, Relaxed);
        sample
    }

    /// How a call that is due is sampled, and how many calls it is to the next one.
    fn draw(&self, activity: Activity) -> (Sample, u32) {
        let (postponed, bit) = (self.postponed.load(Relaxed), 1 << activity as u32);
        self.postponed.store(postponed & !bit, Relaxed);
        self.roll(|dice| {
            let cpu = dice.one_in(activity.every_of_those()) || postponed & bit != 0;
            (Sample { cpu }, dice.gap(activity.every()))
        })
    }
}

/// A call that is to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Whether its CPU is to be measured, not only how long it takes.
    pub cpu: bool,
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
    let index = ((power - 3) * 8 + within).min(BUCKETS - 1);
    debug_assert!(
        index == BUCKETS - 1 || bucket_nanos(index).abs_diff(nanos) <= nanos / 8,
        "a bucket stands for what is put in it"
    );
    index
}

/// The middle of a bucket, in nanoseconds.
fn bucket_nanos(index: usize) -> u64 {
    let (power, within) = (index / 8 + 3, (index % 8) as u64);
    let low = (1u64 << power) + (within << (power - 3));
    low + (1u64 << (power - 3)) / 2
}

/// What a thread has for as long as it lives.
struct Lives;

impl Drop for Lives {
    fn drop(&mut self) {}
}

/// The counters of one database.
#[derive(Default)]
pub struct Recorder {
    locals: ThreadLocal<Box<Local>>,
    /// That of threads that have lost theirs, as they end: a scan may end when its thread does. Of
    /// two at once one may not be counted.
    of_ended: OnceLock<Box<Local>>,
    /// How many threads have counted so far.
    threads: AtomicU64,
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
        match self.locals.get() {
            Some(local) => local,
            None => self.new_local(),
        }
    }

    #[cold]
    fn new_local(&self) -> &Local {
        thread_local! { static LIVES: Lives = const { Lives }; }
        let new = || Box::new(Local::new(self.threads.fetch_add(1, Relaxed)));
        // Just before the thread gets its number of `ThreadLocal`, which ends the process if it is
        // asked for one when it has given that back.
        match LIVES.try_with(|_| ()) {
            Ok(()) => self.locals.get_or(new),
            Err(_) => self.of_ended.get_or_init(new),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Local> {
        self.locals.iter().chain(self.of_ended.get()).map(|local| &**local)
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

    /// To be asked before each call of an activity: whether this one is to be looked at.
    #[inline]
    pub fn sample(&self, activity: Activity) -> Option<Sample> {
        self.local().sample(activity)
    }

    /// As [`Recorder::sample`], and adds 1 to a counter.
    #[inline]
    pub fn sample_and_count(&self, activity: Activity, counter: Counter) -> Option<Sample> {
        let local = self.local();
        bump(&local.counters[counter as usize], 1);
        local.sample(activity)
    }

    /// Has the CPU of the next sampled call measured, since that of this one could not be.
    pub fn postpone(&self, activity: Activity) {
        let local = self.local();
        local.postponed.store(local.postponed.load(Relaxed) | 1 << activity as u32, Relaxed);
    }

    /// For a caller that counts calls down itself: how many there are until the next one that is to
    /// be looked at, that one included. What is left in the end goes to [`Recorder::put_back`].
    pub fn take_due(&self, activity: Activity) -> u32 {
        let local = self.local();
        match local.due[activity as usize].load(Relaxed) {
            0 => local.roll(|dice| dice.gap(activity.every())),
            left => {
                local.due[activity as usize].store(0, Relaxed);
                left
            }
        }
    }

    /// For such a caller: how a call that has come due is sampled, and how many it is to the next.
    pub fn sample_taken(&self, activity: Activity) -> (Sample, u32) {
        self.local().draw(activity)
    }

    /// Gives back what is left of a countdown. As a geometric distribution has no memory it is as
    /// good as one drawn anew; so nothing is lost if another countdown has been put back already.
    pub fn put_back(&self, activity: Activity, left: u32) {
        self.local().due[activity as usize].store(left, Relaxed);
    }

    /// As [`Recorder::put_back`], and adds to a counter.
    pub fn put_back_and_count(&self, activity: Activity, left: u32, counter: Counter, by: u64) {
        let local = self.local();
        local.due[activity as usize].store(left, Relaxed);
        bump(&local.counters[counter as usize], by);
    }

    /// Records the CPU of a sampled call: whether the CPU clock was looked at for it, and whether
    /// it was too short to have waited, in which case `nanos` is by the wall clock.
    pub fn spent(&self, activity: Activity, nanos: u64, looked: bool, short: bool) {
        let local = self.local();
        let cpu = match short {
            // Those that were looked at are slower than others.
            true if looked && activity.every_of_those() > 1 => return,
            true => &local.short[activity as usize],
            false if looked => &local.long[activity as usize],
            false => return,
        };
        bump(&cpu.samples, 1);
        bump(&cpu.nanos, nanos);
        let squares = f64::from_bits(cpu.squares.load(Relaxed)) + (nanos as f64).powi(2);
        cpu.squares.store(squares.to_bits(), Relaxed);
    }

    /// Records the CPU of a call of an activity all of whose calls are measured.
    pub fn spent_exactly(&self, activity: Activity, nanos: u64) {
        self.spent(activity, nanos, true, false);
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

    /// What these counters have together, over all threads: cheaper than [`Recorder::totals`].
    pub fn sum_of(&self, counters: &[Counter]) -> u64 {
        let of = |local: &Local| -> u64 {
            counters.iter().map(|&counter| local.counters[counter as usize].load(Relaxed)).sum()
        };
        self.all().map(of).sum()
    }

    /// The sums over all threads.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals {
            counters: [0; COUNTERS],
            latencies: std::array::from_fn(|_| vec![0; BUCKETS]),
            max: [0; Timed::ALL.len()],
            cpu: Activity::ALL.map(Spent::none),
        };
        for local in self.all() {
            for (index, sum) in totals.cpu.iter_mut().enumerate() {
                local.short[index].add_to(&mut sum.short);
                local.long[index].add_to(&mut sum.long);
            }
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
    cpu: [Spent; ACTIVITIES],
}

impl Totals {
    /// The value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    /// The CPU of an activity.
    pub fn cpu(&self, activity: Activity) -> Spent {
        self.cpu[activity as usize]
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

    /// Counts once more when it goes: as a scan that its thread keeps to its end.
    struct Counts(std::sync::Arc<Recorder>);

    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.add(Counter::Gets, 1);
        }
    }

    #[test]
    fn what_a_thread_keeps_to_its_end_is_counted() {
        use std::cell::RefCell;
        thread_local! { static KEPT: RefCell<Option<Counts>> = const { RefCell::new(None) }; }
        let recorder = std::sync::Arc::new(Recorder::new());
        for _ in 0..3 {
            let recorder = recorder.clone();
            let thread = std::thread::spawn(move || {
                // It has this before the recorder has anything of the thread.
                KEPT.with_borrow_mut(|kept| {
                    recorder.add(Counter::Gets, 1);
                    *kept = Some(Counts(recorder));
                });
            });
            thread.join().unwrap();
        }
        assert_eq!(recorder.sum_of(&[Counter::Gets]), 6);
        assert_eq!(recorder.totals().get(Counter::Gets), 6);
    }

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
