//! What a database has done and what it looks like: as values, as text tables, as JSON (by serde).

use super::codec_stats::{CodecStats, DictionaryStats};
use super::level_stats::{self, LevelStats};
use crate::base::activity::Activity;
use crate::base::config::Codec;
use crate::base::stats::{Counter, Timed, Totals};
use crate::compaction::score::Targets;
use crate::db::core::{Core, TreeCore};
use crate::memtable::Memtable;
use crate::table::Blob;
use crate::table::meta::FileId;
use crate::write::space::{self, SpaceState};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One tree, as of one moment. Counts are since the database was opened.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// tree.put(b"a", b"1")?;
/// let stats = db.stats();
/// let tree = stats.trees.iter().find(|tree| tree.name == "t").unwrap();
/// println!("{tree}"); // one line for each level
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct TreeStats {
    /// Its name.
    pub name: String,
    /// Its levels that have tables, or had jobs, from level 0 on.
    pub levels: Vec<LevelStats>,
    /// Bytes that flushes of this tree have written.
    pub flush_bytes: u64,
    /// Bytes of memory that its memtables have taken.
    pub memtable_bytes: u64,
    /// Bytes of that in use.
    pub memtable_used_bytes: u64,
    /// Sealed memtables that wait for their flush.
    pub memtables_sealed: u64,
    /// Compactions by reason.
    pub compactions: BTreeMap<String, u64>,
    /// Bytes that compaction has yet to rewrite to reach the target shape.
    pub debt_bytes: u64,
    /// Entries in its memtables, deletes and older versions included.
    pub memtable_entries: u64,
    /// Blob files that its tables and memtables refer to.
    pub blob_files: u64,
    /// Table bytes divided by the bytes of the last level: about how much space is not final.
    pub space_amp: f64,
    /// The compression dictionary of its tables to come, if they are to have one.
    pub dictionary: Option<DictionaryStats>,
}

/// Latencies of one operation in microseconds, since the database was opened: of one call in 64
/// (of waits and syncs: of all), to within an eighth; 0 if none was timed.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// for n in 0..100u32 {
///     tree.put(&n.to_be_bytes(), b"")?;
/// }
/// let writes = &db.stats().latencies["write"];
/// assert!(writes.samples > 0 && writes.p50_us <= writes.max_us);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct OperationStats {
    /// Calls timed.
    pub samples: u64,
    /// Median.
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// CPU of one activity, user and system. Flushes and compactions are measured as a whole; of the
/// rest a random sample of calls is, one in [`every`](Self::every), and scaled up. So the figure is
/// an estimate: no pattern of calls biases it, and it is within twice its standard error of the
/// truth in 19 cases of 20 (some 1 % after a million gets). A measured call finds caches a little
/// colder than others do, so that what costs less than a microsecond may be shown a tenth too dear
/// and a step of a scan within a block still more.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// for number in 0..10_000u32 {
///     tree.put(&number.to_be_bytes(), b"value")?;
/// }
/// let cpu: shaledb::CpuStats = db.stats().cpu["write"];
/// println!("{:.2} us a put, {:.3} s +- {:.3}", cpu.us_per_call, cpu.seconds, cpu.error_seconds);
/// assert!(cpu.samples > 0 && cpu.seconds > 0.0);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CpuStats {
    /// CPU seconds of all calls.
    pub seconds: f64,
    /// The standard error of `seconds`, from the spread of what was measured; 0 where every call
    /// is.
    pub error_seconds: f64,
    /// CPU microseconds a call.
    pub us_per_call: f64,
    /// Calls measured.
    pub samples: u64,
    /// One call in this many is sampled: timed by the wall clock or, one in four of the sampled,
    /// by the CPU clock, which alone counts for calls of more than four microseconds.
    pub every: u32,
}

/// A whole database, as of one moment. Counts are since it was opened. It prints as text tables
/// (`Display`) and as JSON (serde).
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// tree.put(b"key", b"value")?;
/// let stats = db.stats();
/// assert_eq!((stats.user_bytes, stats.counters["commits"]), (8, 1));
/// println!("{stats}");
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stats {
    /// Seconds since it was opened.
    pub uptime_seconds: f64,
    /// The trees, by name.
    pub trees: Vec<TreeStats>,
    /// All counters by name.
    pub counters: BTreeMap<String, u64>,
    /// Latencies by operation.
    pub latencies: BTreeMap<String, OperationStats>,
    /// Bytes of keys and values written by the user.
    pub user_bytes: u64,
    /// Bytes appended to the log.
    pub wal_bytes: u64,
    /// Bytes written by flushes.
    pub flush_bytes: u64,
    /// Bytes written by compactions.
    pub compact_bytes: u64,
    /// (flush + compaction + ingest + blob bytes) / user bytes; the log is not in it. 0 if nothing
    /// was written by the user.
    pub write_amp: f64,
    /// Seconds that writers waited, of all threads together, by cause: `memtables` (flushes are
    /// behind), `level0` and `debt` (compactions are), `space` (near `space_limit`).
    pub stall_seconds: BTreeMap<String, f64>,
    /// Seconds in which at least one writer waited: never more than have gone by.
    pub stalled_seconds: f64,
    /// Seconds that syncs of the log took; a commit that asks for one waits for it.
    pub wal_sync_seconds: f64,
    /// CPU by activity, each on its own: `write` (commits, but not bulk loads), `get`, `multi_get`,
    /// `scan_open`, `seek`, `scan_step` (scans: without values in files of their own and without
    /// the copies that the iterator makes), `flush`, `compaction`.
    pub cpu: BTreeMap<String, CpuStats>,
    /// CPU in codecs, which is part of the above: `read_decompress` (of all reads),
    /// `flush_compress`, `compaction_compress`, `compaction_decompress`. A call is a data block.
    pub codec_cpu: BTreeMap<String, CpuStats>,
    /// By what codecs are chosen where that is left to the engine.
    pub codecs: CodecStats,
    /// The bound on memory in bytes.
    pub memory_bytes: u64,
    /// Bytes in `memtables`, in `indexes_and_filters`, in the `block_cache`, and what flushes,
    /// merges and long scans hold while they run (`work`).
    pub memory_used: BTreeMap<String, u64>,
    /// Bytes that all files of the database take: tables, log, what is being written.
    pub space_used: u64,
    /// The limit on those; 0 for none.
    pub space_limit: u64,
    /// What of the limit is kept back for what is in memory, for merges and for deletes.
    pub space_reserved: u64,
    /// How near the limit they are.
    pub space_state: SpaceState,
    /// Log files in use.
    pub wal_files: u64,
    /// Open snapshots.
    pub snapshots: u64,
    /// Times that locks of keys of a transaction were made one lock of a range, since those of all
    /// transactions may take a sixteenth of `memory_bytes` only.
    pub lock_escalations: u64,
    /// The last failure of background work that has not been overcome.
    pub background_error: Option<String>,
}

impl Core {
    pub fn stats(&self) -> Stats {
        let totals = self.recorder.totals();
        let trees: Vec<TreeStats> =
            self.trees.load().by_name.values().map(|tree| self.tree_stats(tree)).collect();
        let levels = || trees.iter().flat_map(|tree| &tree.levels);
        let flush_bytes = trees.iter().map(|tree| tree.flush_bytes).sum::<u64>();
        let compact_bytes = levels().map(|level| level.write_bytes).sum::<u64>() - flush_bytes;
        let user_bytes = totals.get(Counter::UserBytes);
        let written = flush_bytes
            + compact_bytes
            + totals.get(Counter::IngestBytes)
            + totals.get(Counter::BlobBytes);
        let seconds = |counter| totals.get(counter) as f64 / 1e9;
        let memory = [
            ("memtables", self.memtables().bytes),
            ("indexes_and_filters", self.tables.memory.meta()),
            ("block_cache", self.tables.cache.bytes()),
            ("work", self.tables.memory.work()),
        ];
        let state = self.sched.lock();
        let error = state.flush_failure.error.as_ref().or(state.compaction_failure.error.as_ref());
        let background_error = error.map(ToString::to_string);
        drop(state);
        let balance = self.space().balance();
        let now = self.env.clock.now_nanos();
        Stats {
            uptime_seconds: (now - self.opened_at) as f64 / 1e9,
            counters: named(Counter::ALL, |c| (c.name(), totals.get(*c))),
            latencies: named(&Timed::ALL, |t| (t.name(), latency(&totals, *t))),
            user_bytes,
            wal_bytes: totals.get(Counter::WalBytes),
            flush_bytes,
            compact_bytes,
            write_amp: ratio(written, user_bytes),
            stall_seconds: [
                ("memtables", seconds(Counter::StallMemtableNanos)),
                ("level0", seconds(Counter::StallLevel0Nanos)),
                ("debt", seconds(Counter::StallDebtNanos)),
                ("space", seconds(Counter::StallSpaceNanos)),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
            stalled_seconds: self.stalled.nanos(now) as f64 / 1e9,
            wal_sync_seconds: seconds(Counter::WalSyncNanos),
            cpu: cpu_stats(&totals, |activity| !activity.is_codec()),
            codec_cpu: cpu_stats(&totals, Activity::is_codec),
            codecs: CodecStats::of(&self.codec_price.last()),
            memory_bytes: self.settings.memory_bytes,
            memory_used: memory.map(|(name, value)| (name.to_owned(), value)).into(),
            space_used: balance.used,
            space_limit: balance.limit.bytes,
            space_reserved: balance.held_back(),
            space_state: space::state(&balance),
            wal_files: self.wals.lock().len() as u64,
            snapshots: self.snapshots.count() as u64,
            lock_escalations: self.locks.escalations(),
            background_error,
            trees,
        }
    }

    fn tree_stats(&self, tree: &TreeCore) -> TreeStats {
        let state = tree.state.load();
        let shape = state.version.shape();
        let settings = self.pick_settings(tree, self.pick_space());
        let targets = Targets::of(&shape, &settings);
        let counters = tree.levels.lock().clone();
        let dictionary = DictionaryStats::of(&counters.learned);
        let mut levels = Vec::new();
        let mut arrived = counters.flush_bytes;
        for (level, tables) in shape.levels.iter().enumerate() {
            let done = counters.levels[level];
            let choice = settings.codecs.of(level, targets.base);
            let blocks = settings.codecs.blocks.of(level);
            if tables.is_empty() && done.jobs == 0 && done.moves == 0 {
                continue;
            }
            let sum = |of: fn(&crate::table::TableMeta) -> u64| -> u64 {
                tables.iter().map(|meta| of(meta)).sum()
            };
            levels.push(LevelStats {
                level,
                tables: tables.len() as u64,
                bytes: sum(|meta| meta.file_bytes),
                target_bytes: targets.bytes[level],
                entries: sum(|meta| meta.entries),
                deletes: sum(|meta| meta.deletes),
                ratio: ratio(sum(|meta| meta.raw_bytes), sum(|meta| meta.data_bytes)),
                codec: choice.codec.to_string(),
                codec_why: choice.why.words(),
                dictionary: dictionary.is_some()
                    && choice.dictionary
                    && matches!(choice.codec, Codec::Zstd(_)),
                block_bytes: blocks.0.into(),
                block_why: blocks.1.words(),
                block_bytes_mean: sum(|m| m.raw_bytes) / sum(|m| m.blocks).max(1),
                jobs: done.jobs,
                moves: done.moves,
                read_bytes: done.read_bytes,
                write_bytes: done.write_bytes,
                moved_bytes: done.moved_bytes,
                blocks_reused: done.blocks_reused,
                bytes_reused: done.bytes_reused,
                write_amp: ratio(done.write_bytes, arrived),
                seconds: done.wall_nanos as f64 / 1e9,
                seconds_per_job: ratio(done.wall_nanos, done.jobs.max(1)) / 1e9,
                cpu_seconds: done.cpu_nanos as f64 / 1e9,
                dropped: done.dropped,
                early_installs: done.early_installs,
            });
            if level > 0 {
                arrived = done.write_bytes + done.moved_bytes;
            }
        }
        let bytes: u64 = levels.iter().map(|level| level.bytes).sum();
        let last: u64 = levels.iter().rfind(|l| l.bytes > 0).map_or(0, |level| level.bytes);
        let blobs = shape.levels.iter().flatten().flat_map(|meta| meta.blobs.iter().copied());
        let mut blobs: BTreeSet<FileId> = blobs.collect();
        let mut memtable_entries = 0;
        for memtable in state.memtables() {
            blobs.extend(memtable.attached::<Blob>().iter().map(|blob| blob.id()));
            memtable_entries += memtable.count();
        }
        let sum = |of: &dyn Fn(&Memtable) -> usize| -> u64 {
            state.memtables().map(|memtable| of(memtable) as u64).sum()
        };
        TreeStats {
            name: tree.name.clone(),
            flush_bytes: counters.flush_bytes,
            memtable_bytes: sum(&Memtable::bytes),
            memtable_used_bytes: sum(&Memtable::used_bytes),
            memtables_sealed: state.sealed.len() as u64,
            compactions: counters.reasons.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
            debt_bytes: self.sched.lock().debts.get(&tree.id).map_or(0, |debt| debt.bytes),
            memtable_entries,
            blob_files: blobs.len() as u64,
            space_amp: ratio(bytes, last),
            dictionary,
            levels,
        }
    }
}

fn named<T, V>(all: &[T], of: impl Fn(&T) -> (&'static str, V)) -> BTreeMap<String, V> {
    all.iter().map(of).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn cpu_stats(totals: &Totals, wanted: impl Fn(Activity) -> bool) -> BTreeMap<String, CpuStats> {
    let of = |activity: Activity| {
        let spent = totals.cpu(activity);
        let stats = CpuStats {
            seconds: spent.nanos() / 1e9,
            error_seconds: spent.error_nanos() / 1e9,
            us_per_call: spent.nanos_per_call() / 1e3,
            samples: spent.samples(),
            every: activity.every(),
        };
        (activity.name().to_owned(), stats)
    };
    Activity::ALL.into_iter().filter(|activity| wanted(*activity)).map(of).collect()
}

fn latency(totals: &Totals, what: Timed) -> OperationStats {
    let at = |percent| totals.percentile(what, percent) as f64 / 1e3;
    OperationStats {
        samples: totals.samples(what),
        p50_us: at(50.0),
        p95_us: at(95.0),
        p99_us: at(99.0),
        p999_us: at(99.9),
        max_us: totals.max(what) as f64 / 1e3,
    }
}

const MB: f64 = 1e6;

impl fmt::Display for TreeStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "tree {}: {} entries ({} deletes) in tables, {} in memtables, {} blob files; memtables \
             {:.1} MB ({} sealed), debt {:.1} MB, space-amp {:.2}",
            self.name,
            self.levels.iter().map(|level| level.entries).sum::<u64>(),
            self.levels.iter().map(|level| level.deletes).sum::<u64>(),
            self.memtable_entries,
            self.blob_files,
            self.memtable_bytes as f64 / MB,
            self.memtables_sealed,
            self.debt_bytes as f64 / MB,
            self.space_amp
        )?;
        level_stats::write_levels(f, &self.levels)?;
        if let Some(dictionary) = &self.dictionary {
            writeln!(f, "dictionary: {dictionary}")?;
        }
        Ok(())
    }
}

impl fmt::Display for CpuStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} s", self.seconds)?;
        if self.every > 1 {
            write!(f, " (+-{:.2}, {:.2} us each)", self.error_seconds, self.us_per_call)?;
        }
        Ok(())
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for tree in &self.trees {
            writeln!(f, "{tree}")?;
        }
        writeln!(
            f,
            "written: user {:.1} MB, log {:.1} MB, flush {:.1} MB, compaction {:.1} MB, \
             write-amp {:.2} (without the log)",
            self.user_bytes as f64 / MB,
            self.wal_bytes as f64 / MB,
            self.flush_bytes as f64 / MB,
            self.compact_bytes as f64 / MB,
            self.write_amp
        )?;
        let memory = self.memory_used.iter().map(|(k, v)| format!("{k} {:.1} MB", *v as f64 / MB));
        let memory: Vec<String> = memory.collect();
        writeln!(f, "memory: {} of {:.1} MB", memory.join(", "), self.memory_bytes as f64 / MB)?;
        let (kept, state) = (self.space_reserved as f64 / MB, self.space_state.name());
        let limit = match self.space_limit {
            0 => "no limit".to_owned(),
            limit => format!("of {:.1} MB, {kept:.1} MB kept back, {state}", limit as f64 / MB),
        };
        writeln!(f, "space: {:.1} MB in files, {limit}", self.space_used as f64 / MB)?;
        let stalls = self.stall_seconds.iter().map(|(k, v)| format!("{k} {v:.3} s"));
        let stalls: Vec<String> = stalls.collect();
        writeln!(
            f,
            "stalls: {} in {:.1} s up; log syncs: {:.3} s",
            stalls.join(", "),
            self.uptime_seconds,
            self.wal_sync_seconds
        )?;
        for (title, cpu) in [("CPU", &self.cpu), ("of it codecs", &self.codec_cpu)] {
            let used: Vec<String> = cpu
                .iter()
                .filter(|(_, cpu)| cpu.samples > 0)
                .map(|(name, cpu)| format!("{name} {cpu}"))
                .collect();
            let none = if used.is_empty() { "none measured" } else { "" };
            writeln!(f, "{title}: {none}{}", used.join(", "))?;
        }
        writeln!(f, "choice of codecs: {}", self.codecs)?;
        let count = |name: &str| self.counters.get(name).copied().unwrap_or(0);
        let share = |hits: u64, misses: u64| 100.0 * ratio(hits, hits + misses);
        writeln!(
            f,
            "cache hits: data {:.1} %, index and filter {:.1} %; filters: {} asked, {} spared a \
             read, {} let through in vain",
            share(count("data_block_hits"), count("data_block_misses")),
            share(count("index_hits"), count("index_misses")),
            count("filter_checks"),
            count("filter_useful"),
            count("filter_false_positives")
        )?;
        let sealed = count(Counter::SealedForScans.name());
        if sealed > 0 {
            writeln!(f, "memtables sealed early for what scans passed: {sealed}")?;
        }
        if self.lock_escalations > 0 {
            writeln!(f, "locks of keys made ranges: {} times", self.lock_escalations)?;
        }
        for (name, l) in self.latencies.iter().filter(|(_, l)| l.samples > 0) {
            writeln!(
                f,
                "{name:>9}: p50 {:.1} us, p99 {:.1}, p99.9 {:.1}, max {:.1} ({} timed)",
                l.p50_us, l.p99_us, l.p999_us, l.max_us, l.samples
            )?;
        }
        if let Some(error) = &self.background_error {
            writeln!(f, "background work fails: {error}")?;
        }
        Ok(())
    }
}
