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
    /// Which workload: kv, linkbench, insert, sysbench.
    pub workload: String,
    /// Which step of it, such as `load`, `l.i1`, `qr100`.
    pub step: String,
    /// The engine's name.
    pub engine: String,
    /// The engine's version.
    pub version: String,
    /// What tells apart rows of one engine in one run, such as the codecs; may be empty.
    pub setting: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Seconds since 1970 when the step began.
    pub started: u64,
    /// Client threads.
    pub clients: u64,
    /// How long the step took.
    pub seconds: f64,
    /// What an operation is: insert, transaction, query, read, write, row.
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
    /// The bound on the memory of the engine's processes, page cache included, if there was one.
    pub memory_bound: Option<u64>,
    /// CPU.
    pub cpu: Cpu,
    /// Storage.
    pub io: Io,
    /// Bytes of allocated blocks at the end.
    pub size_bytes: u64,
    /// Bytes of the keys and values, or columns, that are live at the end, index entries included,
    /// before compression: as the client counts them, which does not know the size of each row
    /// that it replaces or deletes and takes it for that of another. `None` if the step began with
    /// a store that nobody counted.
    pub live_bytes: Option<u64>,
    /// By how many bytes the step made them more; negative if less.
    pub live_grown_bytes: i64,
    /// Resident memory of the engine's process at the end.
    pub rss_bytes: u64,
    /// Its peak in this step.
    pub rss_peak_bytes: u64,
    /// What the engine counts itself.
    pub counted: Counted,
    /// Hardware counters, where the machine has them.
    pub hardware: Option<Hardware>,
    /// What opening the store took before the step, if it was opened for it.
    pub open: Option<Opened>,
    /// What closing the store took after the step, with what it still had to write.
    pub close: Option<Opened>,
    /// The engine's whole configuration.
    pub configuration: Vec<(String, String)>,
    /// The workload's parameters.
    pub parameters: serde_json::Value,
    /// Figures of this workload alone, such as `predicted_size_bytes` or `drop_seconds`.
    pub extra: BTreeMap<String, f64>,
    /// What a reader must know to judge the figures: what could not be controlled, checks that
    /// failed (a writer that did not hold its rate).
    pub notes: Vec<String>,
}

/// Response times of one kind of operation. If the step has a fixed rate, they count from when the
/// operation was due.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// How many there were.
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
    /// Writes per second of the writer beside the step's own clients; 0 if there is none.
    pub writer_rate: f64,
    /// The longest response time of the step's own clients, microseconds.
    pub max_us: f64,
    /// CPU seconds per second, of the engine's process.
    pub cpu: f64,
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage.
    pub written_bytes: u64,
    /// Resident memory.
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
    /// Microseconds per operation of the engine: of its process, or of this process less what the
    /// client costs.
    pub us_per_op: f64,
    /// Outside the system, as measured (the client's share is in it if the engine is a library).
    pub user_us_per_op: f64,
    /// Inside the system.
    pub system_us_per_op: f64,
    /// The client's own: measured on an engine that does nothing; over the wire, what the
    /// client's process used.
    pub client_us_per_op: f64,
    /// Seconds in all, as measured.
    pub seconds: f64,
    /// Seconds of flush and compaction, where the engine tells.
    pub background_seconds: Option<f64>,
    /// Seconds by the engine's activities, where it tells: estimates where it samples.
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
    /// The device below the store, if it could be told; other work on it is in it.
    pub device: Option<Device>,
}

/// What the engine counts itself, in this step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counted {
    /// Keys and values that the client wrote (counted by the client).
    pub user_bytes: u64,
    /// Keys and values that the client read (counted by the client).
    pub read_bytes: u64,
    /// Written to logs.
    pub wal_bytes: u64,
    /// Written by flushes.
    pub flush_bytes: u64,
    /// Written by compactions.
    pub compaction_bytes: u64,
    /// (flush + compaction) / user, if the client wrote and the engine counts.
    pub write_amp: Option<f64>,
    /// `size_bytes` / `live_bytes`: below 1 where compression saves more than stale versions, half
    /// empty pages and logs cost. `None` if nothing is live or that is not known.
    pub space_amp: Option<f64>,
    /// The share of the time in which a writer was delayed or stopped.
    pub stall_percent: f64,
    /// c.wsecs.
    pub compaction_seconds: Option<f64>,
    /// c.csecs.
    pub compaction_cpu_seconds: Option<f64>,
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
    /// How long.
    pub seconds: f64,
    /// CPU seconds.
    pub cpu_seconds: f64,
    /// Bytes that the engine's process wrote to storage.
    pub written_bytes: u64,
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
    /// Writes per second that it held in a share of the intervals: `p99` is the `ips.99` of the
    /// insert benchmark's tables, the rate of all intervals but the worst hundredth.
    pub rates: RateSummary,
    /// Keys and values that it wrote.
    pub written_bytes: u64,
    /// From when each was due.
    pub latency: Latency,
}
