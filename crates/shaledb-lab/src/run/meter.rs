//! What is measured over a step, and how a [`Row`] comes of it.

use super::series::Series;
use super::work::{Done, Named, Progress, Work};
use crate::measure::{
    BlockDevice, Counters, Device, Processes, RateSummary, Usage, disk_bytes, thread_cpu_seconds,
};
use crate::run::pace::{Seen, Total};
use crate::run::row::{Counted, Cpu, Hardware, Interval, Io, Latency, Row, SCHEMA};
use crate::stores::engine::{Metrics, Result};
use crate::stores::store::{Host, Store};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Beyond this length, intervals are of ten seconds from the start.
const SHORT: Duration = Duration::from_secs(600);

/// Everything that was so at one moment.
struct Moment {
    time: Instant,
    usage: Usage,
    ops: u64,
    /// Those of the clients beside the step's own.
    writes: u64,
    stall_seconds: f64,
}

/// What is measured over a step.
pub(super) struct Meter<'a, S> {
    store: &'a S,
    named: &'a Named<'a>,
    work: &'a Work<'a>,
    processes: Processes,
    folder: Option<PathBuf>,
    device: Option<BlockDevice>,
    counters: Option<Counters>,
    notes: Vec<String>,
    start: Instant,
    started: u64,
    before: Usage,
    client_before: Usage,
    device_before: Option<Device>,
    metrics_before: Metrics,
    /// CPU seconds of this thread, which only looks.
    looking_before: f64,
    last: Moment,
    /// How long the step's own clients took.
    seconds: f64,
    /// The most on disk at any look.
    most_bytes: u64,
    series: Series,
}

impl<'a, S: Store> Meter<'a, S> {
    pub(super) fn new(store: &'a S, named: &'a Named<'a>, work: &'a Work<'a>) -> Meter<'a, S> {
        let folder = store.folder();
        let now = Instant::now();
        let long = work.duration.is_some_and(|duration| duration > SHORT);
        Meter {
            store,
            named,
            work,
            processes: match store.host() {
                Host::Here => Processes::own(),
                Host::Processes(pids) => Processes::new(pids),
                Host::Elsewhere => Processes::new(Vec::new()),
            },
            device: folder.as_deref().and_then(BlockDevice::of),
            folder,
            counters: None,
            notes: Vec::new(),
            start: now,
            started: 0,
            before: Usage::default(),
            client_before: Usage::default(),
            device_before: None,
            metrics_before: Metrics::default(),
            looking_before: 0.0,
            last: Moment {
                time: now,
                usage: Usage::default(),
                ops: 0,
                writes: 0,
                stall_seconds: 0.0,
            },
            seconds: 0.0,
            most_bytes: 0,
            series: Series::new(long),
        }
    }

    pub(super) fn begin(&mut self) -> Result<()> {
        if !self.processes.reset_peak() {
            self.notes.push("the peak of memory is that since the process began".to_owned());
        }
        self.metrics_before = self.store.metrics()?;
        self.counters = Counters::start(&self.processes.pids());
        self.device_before = self.device.and_then(|device| device.counts());
        self.looking_before = thread_cpu_seconds();
        self.client_before = Usage::now();
        self.before = self.processes.usage();
        self.start = Instant::now();
        self.started =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.last = Moment {
            time: self.start,
            usage: self.before,
            ops: 0,
            writes: 0,
            stall_seconds: self.metrics_before.stall_seconds,
        };
        Ok(())
    }

    fn size(&self) -> u64 {
        self.folder.as_deref().map_or(0, disk_bytes)
    }

    /// A look at the step's own clients and those beside them.
    pub(super) fn tick(&mut self, seen: &[Seen], beside: &[Seen]) -> Result<Progress> {
        let ops = seen.iter().map(|seen| seen.ops.get()).sum();
        let writes = beside.iter().map(|seen| seen.ops.get()).sum();
        let longest = seen.iter().map(|seen| seen.longest.swap(0, Ordering::Relaxed)).max();
        let metrics = self.store.metrics()?;
        let now = Moment {
            time: Instant::now(),
            usage: self.processes.usage(),
            ops,
            writes,
            stall_seconds: metrics.stall_seconds,
        };
        let seconds = (now.time - self.last.time).as_secs_f64().max(1e-9);
        let used = now.usage.since(&self.last.usage);
        let rate = (now.ops - self.last.ops) as f64 / seconds;
        let at = (now.time - self.start).as_secs_f64();
        let size_bytes = self.size();
        self.most_bytes = self.most_bytes.max(size_bytes);
        self.series.push(Interval {
            at,
            rate,
            writer_rate: (now.writes - self.last.writes) as f64 / seconds,
            max_us: longest.unwrap_or(0) as f64 / 1e3,
            cpu: used.cpu_seconds() / seconds,
            read_bytes: used.read_bytes,
            written_bytes: used.written_bytes,
            rss_bytes: self.processes.resident().bytes,
            size_bytes,
            stall_seconds: (now.stall_seconds - self.last.stall_seconds).max(0.0),
            levels: metrics.levels,
        });
        let used = now.usage.since(&self.before);
        self.last = now;
        Ok(Progress {
            seconds: at + self.work.warm_up.as_secs_f64(),
            ops,
            rate,
            share: self.share_done(ops, at),
            cpu_seconds: used.cpu_seconds(),
            io_bytes: used.read_bytes + used.written_bytes,
        })
    }

    fn share_done(&self, ops: u64, at: f64) -> Option<f64> {
        let all_ops = self.work.ops.or(self.work.expected_ops).filter(|&all| all > 0);
        let by_ops = all_ops.map(|all| ops as f64 / all as f64);
        let by_time = self.work.duration.map(|all| at / all.as_secs_f64().max(1e-9));
        by_ops.into_iter().chain(by_time).reduce(f64::max).map(|share| share.min(1.0))
    }

    /// The foreground's clients are done: what is waited for from now on is not in the figures.
    pub(super) fn end(&mut self) {
        self.seconds = self.start.elapsed().as_secs_f64();
    }

    /// The row; `client_seconds` of CPU are the clients' own if they are in this process.
    pub(super) fn finish(mut self, done: &Done, client_seconds: f64) -> Result<Row> {
        let counts = self.counters.as_mut().and_then(Counters::counts);
        let mut usage = self.processes.usage().since(&self.before);
        let client = Usage::now().since(&self.client_before);
        if self.processes.is_own() {
            let looking = thread_cpu_seconds() - self.looking_before;
            usage.user_seconds = (usage.user_seconds - looking).max(0.0);
        }
        let device = self.device.and_then(|device| device.counts());
        let device = device.zip(self.device_before.as_ref());
        let metrics = self.store.metrics()?;
        let metrics = metrics.since(&self.metrics_before);
        let total = &done.foreground;
        let per_op = |amount: f64| amount / total.ops.max(1) as f64;
        if self.counters.as_ref().is_some_and(|counters| !counters.with_system()) {
            self.notes.push("the hardware's counters leave out what the system did".to_owned());
        }
        let client_seconds =
            if self.processes.is_own() { client_seconds } else { client.cpu_seconds() };
        let resident = self.processes.resident();
        let size_bytes = self.size();
        let mut row = Row {
            schema: SCHEMA,
            workload: self.named.workload.to_owned(),
            step: self.named.step.to_owned(),
            engine: self.store.name(),
            version: self.store.version(),
            started: self.started,
            seconds: self.seconds,
            unit: self.work.unit.to_owned(),
            ops: total.ops,
            found: total.found,
            rate: total.ops as f64 / self.seconds.max(1e-9),
            latency_us: latencies(total, self.work.kinds),
            io: Io {
                written_bytes: usage.written_bytes,
                read_bytes: usage.read_bytes,
                written_kb_per_op: per_op(usage.written_bytes as f64 / 1e3),
                read_kb_per_op: per_op(usage.read_bytes as f64 / 1e3),
                device: device.map(|(after, before)| after.since(before)),
            },
            size_bytes,
            size_peak_bytes: self.most_bytes.max(size_bytes),
            live_grown_bytes: total.grown + done.background.as_ref().map_or(0, |all| all.grown),
            rss_bytes: resident.bytes,
            rss_peak_bytes: resident.peak_bytes,
            hardware: counts.map(|counts| Hardware {
                instructions_per_op: per_op(counts.instructions),
                cycles_per_op: per_op(counts.cycles),
                cache_misses_per_op: per_op(counts.cache_misses),
            }),
            open: self.named.opened,
            configuration: self.store.configuration(),
            ..Row::default()
        };
        row.cpu = cpu(usage, self.processes.is_own(), client_seconds, total.ops);
        row.cpu.background_seconds = metrics.background_cpu_seconds;
        row.cpu.engine_seconds = metrics.cpu_seconds.clone();
        row.counted = counted(metrics, done, self.seconds);
        row.intervals = self.series.finish();
        let rates: Vec<f64> = row.intervals.iter().map(|interval| interval.rate).collect();
        row.rates = RateSummary::of(&rates);
        row.notes = self.notes;
        if self.store.host() == Host::Elsewhere {
            row.notes.push(
                "the server is not ours: its CPU, I/O, memory and size are not measured".to_owned(),
            );
        }
        row.notes.extend(self.store.notes());
        row.extra = self.store.extra();
        Ok(row)
    }
}

/// Of a library, the process's CPU has the client's in it.
fn cpu(usage: Usage, is_own: bool, client_seconds: f64, ops: u64) -> Cpu {
    let per_op = |seconds: f64| seconds * 1e6 / ops.max(1) as f64;
    let seconds = usage.cpu_seconds();
    let engine = if is_own { (seconds - client_seconds).max(0.0) } else { seconds };
    Cpu {
        us_per_op: per_op(engine),
        user_us_per_op: per_op(usage.user_seconds),
        system_us_per_op: per_op(usage.system_seconds),
        client_us_per_op: per_op(client_seconds),
        seconds,
        background_seconds: None,
        engine_seconds: BTreeMap::new(),
    }
}

fn counted(metrics: Metrics, done: &Done, seconds: f64) -> Counted {
    let beside = done.background.as_ref();
    let user_bytes = done.foreground.written + beside.map_or(0, |total| total.written);
    let tables = metrics.table_bytes().filter(|_| user_bytes > 0);
    Counted {
        user_bytes,
        read_bytes: done.foreground.read,
        wal_bytes: metrics.wal_bytes,
        flush_bytes: metrics.flush_bytes,
        compaction_bytes: metrics.compaction_bytes,
        write_amp: tables.map(|tables| tables as f64 / user_bytes as f64),
        // Who knows what the store began with fills it in.
        space_amp: None,
        space_amp_peak: None,
        stall_percent: 100.0 * metrics.stall_seconds / seconds.max(1e-9),
        compaction_seconds: metrics.compaction_seconds,
        compaction_cpu_seconds: metrics.compaction_cpu_seconds,
        block_reads: metrics.block_reads,
        levels: metrics.levels,
        table: metrics.table,
    }
}

fn latencies(total: &Total, kinds: &[&str]) -> BTreeMap<String, Latency> {
    let mut all = BTreeMap::new();
    for (kind, latencies) in total.latencies.iter().enumerate() {
        if latencies.count() > 0 {
            let name = kinds.get(kind).map_or_else(|| kind.to_string(), |&name| name.to_owned());
            all.insert(name, Latency { count: latencies.count(), us: latencies.summary() });
        }
    }
    all
}
