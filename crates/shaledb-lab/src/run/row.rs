//! The result of one step on one engine: every measure that a report shows. One JSON line each;
//! docs/results.md documents the fields.

use crate::measure::{Device, LatencySummary, RateSummary};
use crate::stores::engine::Level;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of [`Row`]'s fields; it grows when a field changes its meaning. A field may be added
/// without that: rows that lack it read as its default.
pub const SCHEMA: u32 = 2;

/// One step of a workload on one engine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Which workload: kv, linkbench, insert, sysbench, tpcc.
    pub workload: String,
    /// Which step of it, such as `load`, `l.i1`, `qr100`.
    pub step: String,
    /// The engine's name.
    pub engine: String,
    /// The engine's version.
    pub version: String,
    /// What distinguishes the rows of one engine in a run, such as the codecs; may be empty.
    pub setting: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Seconds since 1970 when the step began.
    pub started: u64,
    /// Client threads.
    pub clients: u64,
    /// Seconds that the step took, without the warm-up.
    pub seconds: f64,
    /// What an operation is: insert, transaction, query, read, write, row, check.
    pub unit: String,
    /// Operations done.
    pub ops: u64,
    /// Operations that found or changed something.
    pub found: u64,
    /// Operations per second.
    pub rate: f64,
    /// Rates that a share of the intervals reached.
    pub rates: RateSummary,
    /// What each interval showed.
    pub intervals: Vec<Interval>,
    /// Response times in microseconds, by kind of operation.
    pub latency_us: BTreeMap<String, Latency>,
    /// The writer with a fixed rate beside the clients of the step.
    pub writer: Option<Writer>,
    /// The bound on the memory of the engine's processes, with the page cache, in bytes.
    pub memory_bound: Option<u64>,
    /// CPU of the step.
    pub cpu: Cpu,
    /// Storage of the step.
    pub io: Io,
    /// Bytes of allocated blocks at the end.
    pub size_bytes: u64,
    /// The most of them at any look, of which there is one a second.
    #[serde(default)]
    pub size_peak_bytes: u64,
    /// Bytes of the keys and values, or columns and index entries, that are live at the end, before
    /// compression. The client counts them. It does not know the size of each row that it replaces
    /// or deletes, and takes that of another row. `None` if the step began with a store that nobody
    /// counted.
    pub live_bytes: Option<u64>,
    /// By how many bytes the live data grew in the step; negative if it shrank.
    pub live_grown_bytes: i64,
    /// Resident memory of the engine's processes at the end, in bytes.
    pub rss_bytes: u64,
    /// The peak of it in this step, in bytes.
    pub rss_peak_bytes: u64,
    /// What the engine counts itself.
    pub counted: Counted,
    /// Hardware counters, where the machine has them.
    pub hardware: Option<Hardware>,
    /// What opening the store before the step took, if it was opened for the step.
    pub open: Option<Opened>,
    /// What closing the store after the step took, with what it still had to write.
    pub close: Option<Opened>,
    /// The engine's whole configuration.
    pub configuration: Vec<(String, String)>,
    /// The workload's parameters.
    pub parameters: serde_json::Value,
    /// Figures of this workload alone, such as `predicted_size_bytes` or `drop_seconds`.
    pub extra: BTreeMap<String, f64>,
    /// What a reader must know about the figures: what could not be controlled, and checks that
    /// failed, such as a writer that did not reach its rate.
    pub notes: Vec<String>,
}

/// What separates the choice of a setting, such as the codecs, from the variant of the work that
/// several choices do.
pub const VARIANT: &str = "; ";

impl Row {
    /// What is compared with others that do the same work: the setting without the variant.
    pub fn choice(&self) -> &str {
        self.setting.split_once(VARIANT).map_or(&self.setting, |(choice, _)| choice)
    }

    /// The variant of the work; empty if there is one only.
    pub fn variant(&self) -> &str {
        self.setting.split_once(VARIANT).map_or("", |(_, variant)| variant)
    }
}

/// Response times of one kind of operation. If the step has a fixed rate, they count from when the
/// operation was due.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// How many operations of this kind there were.
    pub count: u64,
    /// In microseconds.
    #[serde(flatten)]
    pub us: LatencySummary,
}

/// One interval of a step: a second, or ten seconds of a long step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Interval {
    /// Seconds from the step's beginning to the interval's end.
    pub at: f64,
    /// Operations per second.
    pub rate: f64,
    /// Writes per second of the writer; 0 if there is none.
    pub writer_rate: f64,
    /// The longest response time of the clients, in microseconds.
    pub max_us: f64,
    /// CPU seconds of the engine's processes per second.
    pub cpu: f64,
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage.
    pub written_bytes: u64,
    /// Resident memory, in bytes.
    pub rss_bytes: u64,
    /// Bytes on disk.
    pub size_bytes: u64,
    /// Seconds that writers were stalled, as the engine counts.
    pub stall_seconds: f64,
    /// The levels; not in every interval.
    pub levels: Vec<Level>,
}

/// CPU of a step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// Microseconds per operation of the engine: of its processes, or of this process without the
    /// cost of the client.
    pub us_per_op: f64,
    /// Microseconds per operation outside the system, as measured: of a library, with the client.
    pub user_us_per_op: f64,
    /// Microseconds per operation inside the system.
    pub system_us_per_op: f64,
    /// Microseconds per operation of the client itself: measured on an engine that does nothing; of
    /// a server, what the client's process used.
    pub client_us_per_op: f64,
    /// CPU seconds in all, as measured.
    pub seconds: f64,
    /// CPU seconds of flush and compaction, where the engine counts them.
    pub background_seconds: Option<f64>,
    /// CPU seconds by activity, where the engine counts them; estimates where it samples.
    #[serde(default)]
    pub engine_seconds: BTreeMap<String, f64>,
}

/// Storage of a step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Io {
    /// Bytes that the engine's process had written to storage, or that will be written back.
    pub written_bytes: u64,
    /// Bytes that it had read from storage.
    pub read_bytes: u64,
    /// KB (1000) written per operation.
    pub written_kb_per_op: f64,
    /// KB (1000) read per operation.
    pub read_kb_per_op: f64,
    /// The block device of the store, if it is known; with the work of others on it.
    pub device: Option<Device>,
}

/// What the engine counts itself, in this step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counted {
    /// Bytes of keys and values that the client wrote, counted by the client.
    pub user_bytes: u64,
    /// Bytes of keys and values that the client read, counted by the client.
    pub read_bytes: u64,
    /// Bytes written to logs.
    pub wal_bytes: u64,
    /// Bytes written by flushes, where the engine counts them.
    pub flush_bytes: Option<u64>,
    /// Bytes written by compactions, where the engine counts them.
    pub compaction_bytes: Option<u64>,
    /// (flush + compaction) / user, if the client wrote and the engine counts.
    pub write_amp: Option<f64>,
    /// `size_bytes` / `live_bytes`. It is below 1 where compression saves more than stale versions,
    /// half empty pages and logs cost. `None` if nothing is live, or that is not known.
    pub space_amp: Option<f64>,
    /// The same of `size_peak_bytes`, by what is live at the end.
    pub space_amp_peak: Option<f64>,
    /// The percentage of the time in which the engine delayed or stopped writers.
    pub stall_percent: f64,
    /// Wall seconds of compactions (c.wsecs).
    pub compaction_seconds: Option<f64>,
    /// CPU seconds of compactions (c.csecs).
    pub compaction_cpu_seconds: Option<f64>,
    /// Data blocks that users' reads had to read from files, where the engine counts them.
    pub block_reads: Option<u64>,
    /// The levels at the end.
    pub levels: Vec<Level>,
    /// The engine's own table.
    pub table: String,
}

/// Hardware counters per operation.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Hardware {
    /// Instructions.
    pub instructions_per_op: f64,
    /// Cycles.
    pub cycles_per_op: f64,
    /// Misses of the last cache level.
    pub cache_misses_per_op: f64,
}

/// What it took to open the store, its recovery included, or to close it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Opened {
    /// Wall seconds.
    pub seconds: f64,
    /// CPU seconds.
    pub cpu_seconds: f64,
    /// Bytes that the engine's process wrote to storage.
    pub written_bytes: u64,
    /// Of an opening, the bytes of tables in that, where the engine counts them.
    pub table_bytes: Option<u64>,
}

/// A writer with a fixed rate beside the clients of the step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Writer {
    /// Writes done.
    pub ops: u64,
    /// Writes per second.
    pub rate: f64,
    /// Writes per second that were wanted.
    pub wanted: f64,
    /// Whether it reached at least 95 % of the wanted rate.
    pub held: bool,
    /// Writes per second that a share of the intervals reached: `p99` is `ips.99` of the tables of
    /// the insert benchmark, the rate of all intervals but the worst hundredth.
    pub rates: RateSummary,
    /// Bytes of keys and values that it wrote.
    pub written_bytes: u64,
    /// Response times, each from when the write was due.
    pub latency: Latency,
}
