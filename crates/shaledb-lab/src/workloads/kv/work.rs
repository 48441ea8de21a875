//! Who does what in a step of the db_bench pattern.

use super::benchmark::Benchmark;
use super::clients::KvClient;
use super::options::KvOptions;
use crate::run::pace::Client;
use crate::run::row::Row;
use crate::run::step::{WaitIdle, run_step};
use crate::run::work::{Named, Progress, Work};
use crate::setup::Setup;
use crate::stores::engine::{Engine, Result};
use crate::stores::kv::KvStore;
use crate::stores::null::Null;
use std::path::Path;
use std::time::Duration;

/// The tree that the benchmarks use.
pub const TREES: [&str; 1] = ["bench"];

/// Opens an engine as a benchmark needs it.
///
/// # Errors
///
/// The engine has no transactions, or cannot open or create the store.
pub fn open<E: Engine>(folder: &Path, setup: &Setup, benchmark: Benchmark) -> Result<KvStore<E>> {
    match benchmark {
        Benchmark::Updaterandom => KvStore::open_for_updates(folder, setup, &TREES),
        _ => KvStore::open(folder, setup, &TREES),
    }
}

/// The clients of a step.
///
/// # Errors
///
/// The engine gives no handle.
pub fn work<'s, E: Engine>(
    store: &'s KvStore<E>,
    options: &'s KvOptions,
    benchmark: Benchmark,
    seed: u64,
) -> Result<Work<'s>> {
    let values = options.values(seed);
    let mut clients: Vec<Box<dyn Client + 's>> = Vec::new();
    let mut writers: Vec<Box<dyn Client + 's>> = Vec::new();
    if benchmark == Benchmark::WaitIdle {
        clients.push(Box::new(WaitIdle(store)));
    } else {
        for thread in 0..options.threads {
            let handle = store.engine.handle()?;
            let client = KvClient::new(handle, options, benchmark, &values, seed, thread);
            clients.push(Box::new(client));
        }
    }
    if benchmark == Benchmark::Readwhilewriting {
        let handle = store.engine.handle()?;
        writers.push(Box::new(KvClient::writer(handle, options, &values, seed)));
    }
    let (unit, kinds) = kinds(benchmark);
    let timed = !benchmark.is_fill() && benchmark != Benchmark::WaitIdle;
    // One pass may end within the warm-up.
    let warms_up = timed && benchmark != Benchmark::Readseq;
    Ok(Work {
        ops: options.ops(benchmark),
        expected_ops: (benchmark == Benchmark::Readseq).then_some(options.num * options.threads),
        duration: options.duration.filter(|_| timed).map(Duration::from_secs_f64),
        warm_up: Duration::from_secs(if warms_up { options.warm_up } else { 0 }),
        writers,
        writer_rate: options.writer_rate(),
        ..Work::new(unit, kinds, clients)
    })
}

/// What an operation of a benchmark is, and the kinds of them.
fn kinds(benchmark: Benchmark) -> (&'static str, &'static [&'static str]) {
    match benchmark {
        Benchmark::Fillseq
        | Benchmark::Fillrandom
        | Benchmark::Filluniquerandom
        | Benchmark::Overwrite => ("write", &["put"]),
        Benchmark::Readrandomwriterandom => ("operation", &["get", "put"]),
        Benchmark::Deleterandom => ("write", &["delete"]),
        Benchmark::Readrandom | Benchmark::Readwhilewriting | Benchmark::Readmissing => {
            ("read", &["get"])
        }
        Benchmark::Multireadrandom => ("query", &["multi_get"]),
        Benchmark::Scanrandom | Benchmark::Prefixscan => ("query", &["scan"]),
        Benchmark::Updaterandom => ("transaction", &["update"]),
        Benchmark::Readseq => ("row", &["row"]),
        Benchmark::Seekrandom => ("query", &["seek"]),
        Benchmark::WaitIdle => ("wait_idle", &["wait_idle"]),
    }
}

/// CPU microseconds per operation of the client of a step and of the writer beside it, measured on
/// an engine that does nothing.
///
/// # Errors
///
/// None that is known.
pub fn client_costs(options: &KvOptions, benchmark: Benchmark, seed: u64) -> Result<(f64, f64)> {
    if benchmark == Benchmark::WaitIdle {
        return Ok((0.0, 0.0));
    }
    let store = KvStore::<Null>::open(Path::new(""), &Setup::default(), &TREES)?;
    work(&store, options, benchmark, seed)?.client_costs()
}

/// Runs a step on a store that is in the state which the steps before it left. `costs` are those of
/// [`client_costs`]; `tell` is called once a second.
///
/// # Errors
///
/// The store fails.
pub fn run<E: Engine>(
    store: &KvStore<E>,
    options: &KvOptions,
    benchmark: Benchmark,
    seed: u64,
    costs: (f64, f64),
    named: &Named<'_>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Row> {
    let clients = work(store, options, benchmark, seed)?;
    let mut row = run_step(store, named, clients, costs, tell)?;
    row.notes.extend(missed(&row, benchmark));
    if options.idle_after && benchmark != Benchmark::WaitIdle {
        let idle = work(store, options, Benchmark::WaitIdle, seed)?;
        let idle = run_step(store, named, idle, (0.0, 0.0), tell)?;
        row.extra.extend(idle_figures(&idle));
    }
    Ok(row)
}

/// A note if most operations found nothing: then they cost less than they should, as on a store
/// that has other keys than the step asks for.
fn missed(row: &Row, benchmark: Benchmark) -> Option<String> {
    let wants_keys = matches!(
        benchmark,
        Benchmark::Readrandom
            | Benchmark::Seekrandom
            | Benchmark::Readwhilewriting
            | Benchmark::Multireadrandom
            | Benchmark::Scanrandom
            | Benchmark::Prefixscan
            | Benchmark::Updaterandom
    );
    (wants_keys && row.found < row.ops.div_ceil(2)).then(|| {
        format!(
            "{} of {} operations found a key; with another --num than the store was filled with, \
             or after many deletes, most do not",
            row.found, row.ops
        )
    })
}

/// What the wait after a benchmark took, and what the store takes after it.
fn idle_figures(idle: &Row) -> [(String, f64); 4] {
    [
        ("idle_seconds".to_owned(), idle.seconds),
        ("idle_cpu_seconds".to_owned(), idle.cpu.seconds),
        ("idle_written_bytes".to_owned(), idle.io.written_bytes as f64),
        ("idle_size_bytes".to_owned(), idle.size_bytes as f64),
    ]
}
