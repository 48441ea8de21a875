//! The db_bench pattern: fills, overwrites, reads and scans of one tree of keys and values.
//!
//! The benchmarks are steps that follow each other on one store; a fill begins with a new one.

mod clients;

use crate::engine::{Engine, Null, Result};
use crate::generate::Values;
use crate::options::{ValueBytes, key_bytes, positive, share};
use crate::pace::Client;
use crate::row::{Opened, Row};
use crate::step::{self, Held, Progress, Settle, StepSpec};
use crate::store::KvStore;
use crate::units::parse_some;
use crate::work::{PlannedStep, Start};
use clap::{Args, ValueEnum};
use clients::KvClient;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The tree that the benchmarks use.
pub const TREES: [&str; 1] = ["bench"];

/// How many pairs follow a seek.
const SEEK_NEXTS: u64 = 10;

/// What to run, in the manner of db_bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub enum Benchmark {
    /// Write all keys in ascending order, into a new database
    Fillseq,
    /// Write keys in random order, into a new database
    Fillrandom,
    /// Write random keys of an existing database
    Overwrite,
    /// Look random keys up
    Readrandom,
    /// Read all pairs in order
    Readseq,
    /// Seek a random key, then read the 10 pairs that follow
    Seekrandom,
    /// Look random keys up while one more thread writes at --rate-limit
    Readwhilewriting,
    /// Delete random keys
    Deleterandom,
    /// Flush, then wait until no compaction is due
    Settle,
}

impl Benchmark {
    /// The name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::Fillseq => "fillseq",
            Benchmark::Fillrandom => "fillrandom",
            Benchmark::Overwrite => "overwrite",
            Benchmark::Readrandom => "readrandom",
            Benchmark::Readseq => "readseq",
            Benchmark::Seekrandom => "seekrandom",
            Benchmark::Readwhilewriting => "readwhilewriting",
            Benchmark::Deleterandom => "deleterandom",
            Benchmark::Settle => "settle",
        }
    }

    /// Whether it begins with a new database.
    pub fn is_fill(self) -> bool {
        matches!(self, Benchmark::Fillseq | Benchmark::Fillrandom)
    }
}

/// The parameters of the db_bench pattern.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct KvOptions {
    /// What to run, in this order, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "fillseq,overwrite,settle,readrandom,seekrandom,readseq,readwhilewriting",
        hide_possible_values = false
    )]
    pub benchmarks: Vec<Benchmark>,

    /// How many keys the database has (k, M, G: thousands)
    #[arg(long, default_value = "1M", value_parser = parse_some)]
    pub num: u64,

    /// Operations of each benchmark, all threads together [default: --num]
    #[arg(long, value_parser = parse_some)]
    pub ops: Option<u64>,

    /// The longest a benchmark may run, in seconds; fills always complete
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub duration: Option<f64>,

    /// Seconds that a benchmark runs before anything is measured; fills never do
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub warm_up: u64,

    /// The size of a key
    #[arg(long, default_value = "20", value_parser = key_bytes)]
    pub key_bytes: usize,

    /// The size of a value, or the least and the most, evenly spread
    #[arg(long, default_value = "100-400", value_name = "MIN-MAX")]
    pub value_bytes: ValueBytes,

    /// The share of its size that a value compresses to
    #[arg(long, default_value = "0.5", value_parser = share)]
    pub compressibility: f64,

    /// Client threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: u64,

    /// How fast readwhilewriting writes, in MB (2^20) per second
    #[arg(long, default_value = "10", value_name = "MB/S", value_parser = positive)]
    pub rate_limit: f64,
}

impl KvOptions {
    /// The benchmarks as steps; the second overwrite is called `overwrite (2)`.
    pub fn steps(&self) -> Vec<PlannedStep> {
        let name = |at: usize, benchmark: Benchmark| {
            let before = self.benchmarks[..at].iter().filter(|&&other| other == benchmark).count();
            match before {
                0 => benchmark.name().to_owned(),
                _ => format!("{} ({})", benchmark.name(), before + 1),
            }
        };
        let start = |benchmark: Benchmark| match benchmark.is_fill() {
            true => Start::Fresh,
            false => Start::Continue,
        };
        let all = self.benchmarks.iter().enumerate();
        all.map(|(at, &benchmark)| PlannedStep {
            name: name(at, benchmark),
            start: start(benchmark),
        })
        .collect()
    }

    /// Bytes of all keys and values.
    pub fn data_bytes(&self) -> u64 {
        self.num * self.pair_bytes() as u64
    }

    /// Bytes of the live keys and values after a step that found `before` of them. Who writes
    /// random keys does not know which were there: it is as many as chance lets expect.
    pub fn live_bytes(&self, row: &Row, before: u64) -> u64 {
        let (before, all) = (before as f64, self.data_bytes() as f64);
        // The share of all keys that so many random ones leave out.
        let missed = |keys: u64| (1.0 - 1.0 / self.num.max(1) as f64).powf(keys as f64);
        let put = |keys: u64| all - (all - before).max(0.0) * missed(keys);
        let live = match self.benchmark(&row.step) {
            Ok(Benchmark::Fillseq) => row.counted.user_bytes as f64,
            Ok(Benchmark::Fillrandom | Benchmark::Overwrite) => put(row.ops),
            Ok(Benchmark::Readwhilewriting) => put(row.writer.as_ref().map_or(0, |all| all.ops)),
            Ok(Benchmark::Deleterandom) => before * missed(row.ops),
            Ok(
                Benchmark::Readrandom
                | Benchmark::Readseq
                | Benchmark::Seekrandom
                | Benchmark::Settle,
            )
            | Err(_) => before,
        };
        live as u64
    }

    fn pair_bytes(&self) -> f64 {
        (self.key_bytes + (self.value_bytes.least + self.value_bytes.most) / 2) as f64
    }

    /// The benchmark of a step's name.
    fn benchmark(&self, step: &str) -> Result<Benchmark> {
        let name = step.split(' ').next().unwrap_or(step);
        Benchmark::from_str(name, false)
            .map_err(|_| format!("the kv workload has no step `{step}`").into())
    }

    fn values(&self, seed: u64) -> Values {
        let bytes = self.value_bytes;
        Values::new(seed, bytes.least, bytes.most, self.compressibility)
    }

    /// Writes per second of the writer of readwhilewriting.
    fn writer_rate(&self) -> f64 {
        self.rate_limit * f64::from(1 << 20) / self.pair_bytes()
    }

    fn spec<'a>(&self, benchmark: Benchmark, name: &'a str) -> StepSpec<'a> {
        let ops = match benchmark {
            Benchmark::Settle => None,
            Benchmark::Readseq => self.ops,
            _ if benchmark.is_fill() => Some(self.num),
            _ => Some(self.ops.unwrap_or(self.num)),
        };
        let timed = !benchmark.is_fill() && benchmark != Benchmark::Settle;
        let (unit, kinds): (_, &[&str]) = match benchmark {
            Benchmark::Fillseq | Benchmark::Fillrandom | Benchmark::Overwrite => {
                ("write", &["put"])
            }
            Benchmark::Deleterandom => ("write", &["delete"]),
            Benchmark::Readrandom | Benchmark::Readwhilewriting => ("read", &["get"]),
            Benchmark::Readseq => ("row", &["row"]),
            Benchmark::Seekrandom => ("query", &["seek"]),
            Benchmark::Settle => ("settle", &["settle"]),
        };
        StepSpec {
            workload: "kv",
            step: name,
            unit,
            kinds,
            ops,
            expected_ops: (benchmark == Benchmark::Readseq).then_some(self.num * self.threads),
            duration: self.duration.filter(|_| timed).map(Duration::from_secs_f64),
            warm_up: Duration::from_secs(if timed { self.warm_up } else { 0 }),
            ..StepSpec::default()
        }
    }
}

/// CPU microseconds per operation of the client of a step and of the writer beside it, measured on
/// an engine that does nothing.
///
/// # Errors
///
/// There is no such step.
pub fn client_costs(options: &KvOptions, step: &str, seed: u64) -> Result<(f64, f64)> {
    let benchmark = options.benchmark(step)?;
    if benchmark == Benchmark::Settle {
        return Ok((0.0, 0.0));
    }
    let values = options.values(seed);
    let mut client = KvClient::new(Null.handle()?, options, benchmark, &values, seed, 0);
    let cost = step::client_cost(&mut client, None)?;
    if benchmark != Benchmark::Readwhilewriting {
        return Ok((cost, 0.0));
    }
    let mut writer = KvClient::writer(Null.handle()?, options, &values, seed);
    Ok((cost, step::client_cost(&mut writer, Some(options.writer_rate()))?))
}

/// Runs a step on a store that is in the state which the steps before it left. `costs` are those of
/// [`client_costs`]; `tell` is called once a second.
///
/// # Errors
///
/// There is no such step, or the store fails.
pub fn run<E: Engine>(
    store: &KvStore<E>,
    options: &KvOptions,
    step: &str,
    seed: u64,
    costs: (f64, f64),
    opened: Option<Opened>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Row> {
    let benchmark = options.benchmark(step)?;
    let values = options.values(seed);
    let spec = StepSpec { client_us_per_op: costs.0, opened, ..options.spec(benchmark, step) };
    let mut clients: Vec<Box<dyn Client + '_>> = Vec::new();
    if benchmark == Benchmark::Settle {
        clients.push(Box::new(Settle(store)));
    } else {
        for thread in 0..options.threads {
            let handle = store.engine().handle()?;
            let client = KvClient::new(handle, options, benchmark, &values, seed, thread);
            clients.push(Box::new(client));
        }
    }
    let mut held = None;
    if benchmark == Benchmark::Readwhilewriting {
        let writer = KvClient::writer(store.engine().handle()?, options, &values, seed);
        let clients: Vec<Box<dyn Client + '_>> = vec![Box::new(writer)];
        held = Some(Held { clients, rate: options.writer_rate(), client_us_per_op: costs.1 });
    }
    step::run(store, &spec, clients, held, tell)
}

#[cfg(test)]
#[path = "kv_tests.rs"]
mod tests;
