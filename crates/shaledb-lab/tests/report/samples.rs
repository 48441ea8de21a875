//! Rows as runs of the lab give them, made up but consistent: of a few engines with a character
//! each, so that tables, sentences, comparisons and charts have something to show.

use serde_json::json;
use shaledb_lab::generate::Random;
use shaledb_lab::measure::{Device, LatencySummary, RateSummary};
use shaledb_lab::run::row::{
    Counted, Cpu, Hardware, Interval, Io, Latency, Opened, Row, SCHEMA, Writer,
};
use shaledb_lab::stores::engine::Level;
use std::collections::BTreeMap;

/// What an engine is like, in relation to the first.
#[derive(Clone, Copy)]
pub struct Engine {
    pub name: &'static str,
    pub setting: &'static str,
    pub speed: f64,
    pub cpu_us: f64,
    pub written_kb: f64,
    pub read_kb: f64,
    pub size: f64,
    /// The share of seconds in which writers are stalled.
    pub stalls: f64,
    pub levels: bool,
}

pub const SHALE: Engine = Engine {
    name: "shale",
    setting: "",
    speed: 1.0,
    cpu_us: 80.0,
    written_kb: 1.5,
    read_kb: 2.0,
    size: 1.0,
    stalls: 0.0,
    levels: true,
};

pub const ROCKSDB: Engine = Engine {
    name: "rocksdb",
    speed: 0.8,
    cpu_us: 104.0,
    written_kb: 1.9,
    read_kb: 2.4,
    size: 1.08,
    stalls: 0.2,
    ..SHALE
};

pub const INNODB: Engine = Engine {
    name: "innodb",
    setting: "16k",
    speed: 0.14,
    cpu_us: 240.0,
    written_kb: 30.7,
    read_kb: 9.5,
    size: 2.3,
    stalls: 0.0,
    levels: false,
};

/// One step.
#[derive(Clone, Copy)]
pub struct Kind {
    pub workload: &'static str,
    pub step: &'static str,
    pub unit: &'static str,
    pub clients: u64,
    pub rate: f64,
    pub seconds: usize,
    pub writes: bool,
    pub reads: bool,
    /// The rate of the writer beside it.
    pub writer: f64,
    /// Kinds of operation, and the share of each.
    pub kinds: &'static [(&'static str, f64)],
}

const LINKBENCH: &[(&str, f64)] = &[
    ("addlink", 0.090),
    ("deletelink", 0.030),
    ("updatelink", 0.080),
    ("countlink", 0.049),
    ("getlink", 0.005),
    ("getlinklist", 0.507),
    ("addnode", 0.026),
    ("updatenode", 0.074),
    ("deletenode", 0.010),
    ("getnode", 0.129),
];

const LOAD: Kind = Kind {
    workload: "linkbench",
    step: "load",
    unit: "row",
    clients: 2,
    rate: 60_000.0,
    seconds: 60,
    writes: true,
    reads: false,
    writer: 0.0,
    kinds: &[("nodes", 0.2), ("links", 0.7), ("counts", 0.1)],
};

const QUERY: Kind = Kind {
    step: "q1",
    unit: "transaction",
    clients: 16,
    rate: 20_000.0,
    reads: true,
    kinds: LINKBENCH,
    ..LOAD
};

const DROP: Kind = Kind {
    step: "drop",
    unit: "drop",
    clients: 1,
    rate: 1.0,
    seconds: 1,
    writes: false,
    reads: false,
    kinds: &[("drop", 1.0)],
    ..LOAD
};

const INSERT: Kind = Kind {
    workload: "insert",
    step: "l.i1",
    unit: "insert",
    clients: 1,
    rate: 25_000.0,
    kinds: &[("insert", 0.5), ("delete", 0.5)],
    ..LOAD
};

const RANGE: Kind = Kind {
    workload: "insert",
    step: "qr1000",
    unit: "query",
    clients: 1,
    rate: 2_800.0,
    reads: true,
    writer: 1000.0,
    kinds: &[("pk", 0.25), ("price", 0.25), ("register", 0.25), ("date", 0.25)],
    ..LOAD
};

const OVERWRITE: Kind = Kind {
    workload: "kv",
    step: "overwrite",
    unit: "write",
    clients: 4,
    rate: 110_000.0,
    kinds: &[("write", 1.0)],
    ..LOAD
};

const POINT: Kind = Kind {
    workload: "sysbench",
    step: "point-query",
    unit: "query",
    clients: 1,
    rate: 9_000.0,
    writes: false,
    reads: true,
    kinds: &[("transaction", 1.0)],
    ..LOAD
};

/// The steps of [`rows`].
pub const STEPS: [Kind; 9] = [
    LOAD,
    QUERY,
    DROP,
    Kind { step: "l.i0", rate: 90_000.0, kinds: &[("insert", 1.0)], ..INSERT },
    INSERT,
    RANGE,
    OVERWRITE,
    POINT,
    Kind { clients: 8, rate: 40_000.0, ..POINT },
];

/// All steps on some engines, interleaved as a campaign has them.
pub fn rows(engines: &[Engine], repeats: u32, seed: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in STEPS {
        for repeat in 0..repeats {
            for engine in engines {
                rows.push(row(*engine, kind, repeat, seed));
            }
        }
    }
    rows
}

/// Between -1 and 1.
fn chance(random: &mut Random) -> f64 {
    (random.below(2001) as f64 - 1000.0) / 1000.0
}

fn opened(seconds: f64, written_bytes: u64) -> Opened {
    Opened { seconds, cpu_seconds: 0.09, written_bytes, table_bytes: None }
}

/// One step on one engine.
pub fn row(engine: Engine, kind: Kind, repeat: u32, seed: u64) -> Row {
    let name = format!("{}{}{}{}", engine.name, kind.step, kind.clients, repeat);
    let mut random = Random::named(seed, &name, 0);
    // A repeat is off by up to 2 %.
    let luck = 1.0 + 0.02 * chance(&mut random);
    let rate = kind.rate * engine.speed * luck;
    let intervals = intervals(engine, kind, rate, &mut random);
    let rates: Vec<f64> = intervals.iter().map(|interval| interval.rate).collect();
    let beside: Vec<f64> = intervals.iter().map(|interval| interval.writer_rate).collect();
    let seconds = kind.seconds as f64 + 0.4;
    let ops = match intervals.is_empty() {
        true => 1,
        false => (rates.iter().sum::<f64>() / rates.len() as f64 * seconds) as u64,
    };
    let per_op = 1.0 / ops as f64;
    let written = engine.written_kb * f64::from(u8::from(kind.writes)) * luck;
    let read = engine.read_kb * f64::from(u8::from(kind.reads));
    let cpu_us = engine.cpu_us * if kind.reads { 3.0 } else { 1.0 } / luck;
    let client_us = 0.8;
    let cpu_seconds = (cpu_us + client_us) * ops as f64 / 1e6;
    let user = if kind.writes { (150.0 * ops as f64) as u64 } else { 0 };
    let size_bytes = (4.1e8 * engine.size * luck) as u64;
    let levels = intervals.last().map_or_else(Vec::new, |interval| interval.levels.clone());
    let compacted = levels.iter().skip(1).map(|level| level.written_bytes).sum();
    Row {
        schema: SCHEMA,
        workload: kind.workload.to_owned(),
        step: kind.step.to_owned(),
        engine: engine.name.to_owned(),
        version: "1.2.3".to_owned(),
        setting: engine.setting.to_owned(),
        repeat,
        started: 1_790_000_000 + u64::from(repeat) * 1000,
        clients: kind.clients,
        seconds,
        unit: kind.unit.to_owned(),
        ops,
        found: ops - ops / 50,
        rate: ops as f64 / seconds,
        rates: RateSummary::of(&rates),
        latency_us: latencies(engine, kind, ops, &mut random),
        writer: (kind.writer > 0.0).then(|| writer(engine, kind, seconds, &beside)),
        memory_bound: (engine.name == "innodb").then_some(768 << 20),
        cpu: Cpu {
            us_per_op: cpu_us,
            user_us_per_op: 0.85 * cpu_us,
            system_us_per_op: 0.15 * cpu_us,
            client_us_per_op: client_us,
            seconds: cpu_seconds,
            background_seconds: (engine.levels && kind.writes).then_some(0.38 * cpu_seconds),
            engine_seconds: match engine.name {
                "shale" => activities(cpu_seconds),
                _ => BTreeMap::new(),
            },
        },
        io: Io {
            written_bytes: (written * ops as f64 * 1e3) as u64,
            read_bytes: (read * ops as f64 * 1e3) as u64,
            written_kb_per_op: written,
            read_kb_per_op: read,
            device: Some(Device {
                name: "vda1".to_owned(),
                reads: (read / 10.0 * ops as f64) as u64,
                read_bytes: (read * ops as f64 * 1e3) as u64,
                writes: ops / 100,
                written_bytes: (written * ops as f64 * 1e3) as u64,
            }),
        },
        size_bytes,
        size_peak_bytes: size_bytes + size_bytes / 5,
        live_bytes: Some(380_000_000),
        live_grown_bytes: user as i64 / 2,
        rss_bytes: 1_310_000_000,
        rss_peak_bytes: 1_340_000_000,
        counted: Counted {
            user_bytes: user,
            read_bytes: if kind.reads { 400 * ops } else { 0 },
            wal_bytes: user + user / 10,
            flush_bytes: Some(if engine.levels { user } else { 0 }),
            compaction_bytes: Some(compacted),
            write_amp: (user > 0 && engine.levels)
                .then(|| 1.0 + compacted as f64 / user.max(1) as f64),
            space_amp: Some(1.1 * engine.size),
            space_amp_peak: Some(1.3 * engine.size),
            stall_percent: 100.0 * intervals.iter().map(|i| i.stall_seconds).sum::<f64>() / seconds,
            block_reads: None,
            compaction_seconds: engine.levels.then_some(0.4 * cpu_seconds),
            compaction_cpu_seconds: engine.levels.then_some(0.36 * cpu_seconds),
            table: if engine.levels { table(&levels) } else { String::new() },
            levels,
        },
        hardware: Some(Hardware {
            instructions_per_op: 2500.0 * cpu_us,
            cycles_per_op: 3000.0 * cpu_us,
            cache_misses_per_op: 4.0 * cpu_us * per_op.max(1.0),
        }),
        open: Some(opened(0.2, 4096)),
        close: Some(opened(0.1, 8192)),
        configuration: configuration(engine),
        parameters: json!({
            kind.workload: { "maxid1": 200_000, "clients": kind.clients },
            "setup": { "memory": 64 << 20 },
            "seed": seed,
        }),
        extra: BTreeMap::from([("table_rows".to_owned(), 1_000_000.0)]),
        notes: vec!["the page cache could not be dropped: not permitted".to_owned()],
        intervals,
    }
}

/// What an engine that tells it spends CPU on.
fn activities(seconds: f64) -> BTreeMap<String, f64> {
    let shares = [("compaction_compress", 0.12), ("flush_compress", 0.02), ("get", 0.3)];
    let decompress = [("read_decompress", 0.06), ("compaction_decompress", 0.03)];
    let all = shares.into_iter().chain(decompress);
    all.map(|(name, share)| (name.to_owned(), share * seconds)).collect()
}

fn intervals(engine: Engine, kind: Kind, rate: f64, random: &mut Random) -> Vec<Interval> {
    let mut noise = 0.0;
    let (mut ops, mut all) = (0.0, Vec::new());
    for second in 1..=kind.seconds {
        noise = 0.6 * noise + 0.4 * chance(random);
        let stalled = kind.writes && (random.below(1000) as f64) < 1000.0 * engine.stalls;
        let share = if stalled { 0.35 } else { 1.0 };
        // A store gets slower as it grows.
        let course = 1.1 - 0.2 * second as f64 / kind.seconds as f64;
        let now = rate * share * course * (1.0 + 0.08 * noise);
        ops += now;
        if kind.seconds == 1 {
            continue;
        }
        let written = engine.written_kb * 1e3 * f64::from(u8::from(kind.writes));
        all.push(Interval {
            at: second as f64 + 0.0004 * second as f64,
            rate: now,
            writer_rate: writer_rate(engine, kind) * (1.0 - 0.1 * noise.abs()),
            max_us: if stalled { 420_000.0 } else { 9_000.0 * (1.0 + 0.5 * noise.abs()) },
            cpu: now * engine.cpu_us / 1e6,
            read_bytes: (now * engine.read_kb * 1e3 * f64::from(u8::from(kind.reads))) as u64,
            written_bytes: (now * written * (1.0 + 0.2 * chance(random))) as u64,
            rss_bytes: 900_000_000 + second as u64 * 6_000_000,
            size_bytes: ((1.0 + 3.0 * second as f64 / kind.seconds as f64) * 1e8 * engine.size)
                as u64,
            stall_seconds: if stalled { 0.6 } else { 0.0 },
            levels: if engine.levels { levels(engine, ops, second, kind) } else { Vec::new() },
        });
    }
    all
}

fn levels(engine: Engine, ops: f64, second: usize, kind: Kind) -> Vec<Level> {
    let user = if kind.writes { 150.0 * ops } else { 0.0 };
    let level = |number: u32, share: f64, amp: f64, second: f64| Level {
        level: number,
        files: 1 + (user * share / 3.2e7) as u64,
        bytes: (user * share) as u64 + 4096,
        read_bytes: (user * amp * 1.1) as u64,
        written_bytes: (user * amp) as u64,
        reused_bytes: 0,
        jobs: (1.0 + second / (2.0 + f64::from(number))) as u64,
        seconds: second * amp / 20.0,
        cpu_seconds: second * amp / 22.0,
        codec: codec(engine, number, second).to_owned(),
        codec_why: if engine.name == SHALE.name {
            "as was measured".to_owned()
        } else {
            String::new()
        },
    };
    let second = second as f64;
    let swing = 0.02 + 0.02 * (second % 7.0) / 7.0;
    vec![
        level(0, swing, 1.0, second),
        level(4, 0.1, 1.8, second),
        level(5, 0.25, 2.6, second),
        level(6, 0.6, 3.9, second),
    ]
}

/// Levels above the last are compressed for ten seconds in the middle.
fn codec(engine: Engine, level: u32, second: f64) -> &'static str {
    match level {
        _ if engine.name != SHALE.name => "",
        6 => "zstd:3 + dictionary",
        _ if (20.0..30.0).contains(&second) => "lz4",
        _ => "none",
    }
}

fn table(levels: &[Level]) -> String {
    let mut text = "level  tables  bytes\n".to_owned();
    for level in levels {
        text.push_str(&format!("L{:<5} {:>6}  {}\n", level.level, level.files, level.bytes));
    }
    text
}

fn latencies(
    engine: Engine,
    kind: Kind,
    ops: u64,
    random: &mut Random,
) -> BTreeMap<String, Latency> {
    let mut all = BTreeMap::new();
    for (at, (name, share)) in kind.kinds.iter().enumerate() {
        let middle =
            250.0 / engine.speed * (1.0 + 0.15 * at as f64) * (1.0 + 0.02 * chance(random));
        let us = LatencySummary {
            mean: 1.2 * middle,
            p50: middle,
            p95: 2.2 * middle,
            p99: 4.0 * middle,
            p999: 11.0 * middle,
            max: if engine.stalls > 0.0 { 420_000.0 } else { 60.0 * middle },
        };
        let count = ((ops as f64 * share) as u64).max(1);
        all.insert((*name).to_owned(), Latency { count, us });
    }
    all
}

/// What an engine does of the rate that its writer is to hold.
fn writer_rate(engine: Engine, kind: Kind) -> f64 {
    (kind.writer * engine.speed * 4.0).min(kind.writer * 0.999)
}

fn writer(engine: Engine, kind: Kind, seconds: f64, rates: &[f64]) -> Writer {
    let rate = writer_rate(engine, kind);
    let us = LatencySummary { mean: 50.0, p50: 40.0, p95: 80.0, p99: 200.0, p999: 900.0, max: 8e3 };
    let ops = (rate * seconds) as u64;
    Writer {
        ops,
        rate,
        wanted: kind.writer,
        held: rate >= 0.95 * kind.writer,
        rates: RateSummary::of(rates),
        written_bytes: 150 * ops,
        latency: Latency { count: ops, us },
    }
}

fn configuration(engine: Engine) -> Vec<(String, String)> {
    let pairs: &[(&str, &str)] = match engine.name {
        "innodb" => &[
            ("innodb_buffer_pool_size", "1342177280"),
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_flush_method", "O_DIRECT"),
            ("innodb_page_size", "16384"),
        ],
        "rocksdb" => &[
            ("compression_per_level", "none:none:none:lz4:lz4:lz4:zstd"),
            ("max_background_jobs", "2"),
            ("level_compaction_dynamic_level_bytes", "true"),
            ("write_buffer_size", "67108864"),
        ],
        _ => &[
            ("block_bytes", "16384"),
            ("codecs", "{\"upper\":\"none\",\"middle\":\"lz4\",\"bottommost\":{\"zstd\":3}}"),
            ("memory_bytes", "1342177280"),
            ("memtable_bytes", "67108864"),
        ],
    };
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A run's folder with these rows.
pub fn folder(dir: &std::path::Path, name: &str, rows: &[Row]) -> std::path::PathBuf {
    let folder = dir.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let lines: Vec<String> = rows.iter().map(|row| serde_json::to_string(row).unwrap()).collect();
    std::fs::write(folder.join("rows.jsonl"), lines.join("\n") + "\n").unwrap();
    let plan = json!({ "schema": 1, "machine": "2 x a processor, 8.00 GB, Linux 6.1" });
    std::fs::write(folder.join("plan.json"), plan.to_string()).unwrap();
    folder
}
