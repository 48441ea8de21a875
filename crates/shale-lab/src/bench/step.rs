//! One benchmark: its threads, the look at them each second, and the row that comes of it.

use super::work::{Done, Job};
use crate::engine::{Engine, Handle, Metrics, Null, Result};
use crate::generate::Values;
use crate::measure::{Counter, Latencies, Processes, RateSummary, Usage, disk_bytes};
use crate::options::{BenchOptions, Benchmark};
use crate::report::{Cpu, Opened, Row, SCHEMA, Screen, Writer};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Runs one benchmark on an open engine.
pub(super) fn run<E: Engine>(
    engine: &E,
    options: &BenchOptions,
    benchmark: Benchmark,
    dir: &Path,
    screen: &Screen,
    opened: Option<Opened>,
) -> Result<Row> {
    let values = values_of(options);
    Processes::new(Vec::new()).reset_peak();
    // What the engine flushed while it opened is owed to this step: only some engines flush then.
    let metrics_before = match opened {
        Some(_) => Metrics::default(),
        None => engine.metrics()?,
    };
    let usage_before = Usage::now();
    let start = Instant::now();
    let (total, rates) = if benchmark == Benchmark::Settle {
        let bar = screen.spinner(benchmark.name());
        engine.settle()?;
        bar.finish_and_clear();
        (Total { ops: 1, ..Total::default() }, Vec::new())
    } else {
        clients(engine, options, benchmark, &values, screen)?
    };
    let seconds = start.elapsed().as_secs_f64();
    let usage = Usage::now().since(&usage_before);
    let metrics = engine.metrics()?.since(&metrics_before);
    let row = row::<E>(options, benchmark, seconds, total, &rates, usage, metrics, dir);
    Ok(Row { open: opened, ..row })
}

fn values_of(options: &BenchOptions) -> Values {
    let bytes = options.value_bytes;
    Values::new(options.seed, bytes.least, bytes.most, options.compressibility)
}

#[derive(Default)]
struct Total {
    ops: u64,
    found: u64,
    written: u64,
    read: u64,
    latencies: Latencies,
    writer: Option<Done>,
}

impl Total {
    fn add(&mut self, done: Done) {
        self.ops += done.ops;
        self.found += done.found;
        self.written += done.written;
        self.read += done.read;
        self.latencies.merge(&done.latencies);
    }
}

/// How many operations each thread does.
fn share(ops: u64, threads: u64, thread: u64) -> u64 {
    ops / threads + u64::from(thread < ops % threads)
}

fn clients<E: Engine>(
    engine: &E,
    options: &BenchOptions,
    benchmark: Benchmark,
    values: &Values,
    screen: &Screen,
) -> Result<(Total, Vec<f64>)> {
    let threads = options.threads;
    let ops = if benchmark.is_fill() { options.num } else { options.ops_or_num() };
    let limit = options.duration.filter(|_| !benchmark.is_fill()).map(Duration::from_secs_f64);
    let counters: Vec<Counter> = (0..=threads).map(|_| Counter::default()).collect();
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let job = |thread: u64| Job {
        options,
        benchmark,
        thread,
        threads,
        ops: share(ops, threads, thread),
        deadline: limit.map(|limit| start + limit),
        stop: &stop,
        counter: &counters[thread as usize],
        values,
    };
    let whole = match benchmark {
        Benchmark::Readseq if options.ops.is_none() => options.num * threads,
        _ => ops,
    };
    let mut watch = Watch::new(screen, benchmark, whole, limit, start);
    let mut total = Total::default();

    std::thread::scope(|scope| -> Result<()> {
        let (sender, receiver) = channel::<Result<Done>>();
        for thread in 0..threads {
            let mut handle = engine.handle()?;
            let job = job(thread);
            let sender = sender.clone();
            scope.spawn(move || {
                let _ = sender.send(job.run(&mut handle));
            });
        }
        let writer = if benchmark == Benchmark::Readwhilewriting {
            let mut handle = engine.handle()?;
            let job = job(threads);
            Some(scope.spawn(move || job.write_at_rate(&mut handle)))
        } else {
            None
        };
        let mut outcome = Ok(());
        let mut running = threads;
        while running > 0 {
            match receiver.recv_timeout(watch.until_next()) {
                Ok(Ok(done)) => {
                    running -= 1;
                    total.add(done);
                }
                Ok(Err(error)) => {
                    running -= 1;
                    stop.store(true, Ordering::Relaxed);
                    outcome = outcome.and(Err(error));
                }
                Err(RecvTimeoutError::Timeout) => {
                    watch.look(counters[..threads as usize].iter().map(Counter::get).sum());
                    if writer.as_ref().is_some_and(|writer| writer.is_finished()) {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
                // `sender` lives to the end of this scope.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        stop.store(true, Ordering::Relaxed);
        if let Some(writer) = writer {
            total.writer = Some(writer.join().map_err(|_| "the writing thread panicked")??);
        }
        outcome
    })?;
    Ok((total, watch.finish()))
}

/// The look at the counters each second: rates per interval, and the progress bar.
struct Watch {
    bar: indicatif::ProgressBar,
    start: Instant,
    next: Instant,
    last_time: Instant,
    last_ops: u64,
    whole: u64,
    limit: Option<Duration>,
    rates: Vec<f64>,
}

impl Watch {
    fn new(
        screen: &Screen,
        benchmark: Benchmark,
        whole: u64,
        limit: Option<Duration>,
        start: Instant,
    ) -> Watch {
        Watch {
            bar: screen.bar(benchmark.name()),
            start,
            next: start + Duration::from_secs(1),
            last_time: start,
            last_ops: 0,
            whole,
            limit,
            rates: Vec::new(),
        }
    }

    fn until_next(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    fn look(&mut self, ops: u64) {
        let now = Instant::now();
        let rate = (ops - self.last_ops) as f64 / (now - self.last_time).as_secs_f64();
        self.rates.push(rate);
        self.last_ops = ops;
        self.last_time = now;
        self.next += Duration::from_secs(1);
        let by_ops = ops as f64 / self.whole.max(1) as f64;
        let by_time = self
            .limit
            .map_or(0.0, |limit| (now - self.start).as_secs_f64() / limit.as_secs_f64().max(1e-9));
        self.bar.set_position((by_ops.max(by_time) * 1000.0).min(1000.0) as u64);
        self.bar.set_message(format!("{}/s", crate::units::count(rate)));
    }

    fn finish(self) -> Vec<f64> {
        self.bar.finish_and_clear();
        self.rates
    }
}

#[allow(clippy::too_many_arguments)]
fn row<E: Engine>(
    options: &BenchOptions,
    benchmark: Benchmark,
    seconds: f64,
    total: Total,
    rates: &[f64],
    usage: Usage,
    metrics: Metrics,
    dir: &Path,
) -> Row {
    let written = total.written + total.writer.as_ref().map_or(0, |writer| writer.written);
    let tables = metrics.flush_bytes + metrics.compaction_bytes;
    let resident = Processes::new(Vec::new()).resident();
    let per_op = |amount: f64| amount / total.ops.max(1) as f64;
    Row {
        schema: SCHEMA,
        engine: E::NAME.to_owned(),
        version: E::version(),
        benchmark: benchmark.name().to_owned(),
        options: serde_json::to_value(options).unwrap_or_default(),
        seconds,
        open: None,
        ops: total.ops,
        found: total.found,
        rate: total.ops as f64 / seconds.max(1e-9),
        rates: RateSummary::of(rates),
        rate_by_second: rates.iter().map(|rate| rate.round() as u64).collect(),
        latency_us: total.latencies.summary(),
        cpu: Cpu {
            us_per_op: per_op(usage.cpu_seconds() * 1e6),
            user_us_per_op: per_op(usage.user_seconds * 1e6),
            system_us_per_op: per_op(usage.system_seconds * 1e6),
            client_us_per_op: 0.0,
            seconds: usage.cpu_seconds(),
            background_seconds: metrics.background_cpu_seconds,
        },
        written_kb_per_op: per_op(usage.written_bytes as f64 / 1e3),
        read_kb_per_op: per_op(usage.read_bytes as f64 / 1e3),
        written_bytes: usage.written_bytes,
        read_bytes: usage.read_bytes,
        user_written_bytes: written,
        user_read_bytes: total.read,
        wal_bytes: metrics.wal_bytes,
        flush_bytes: metrics.flush_bytes,
        compaction_bytes: metrics.compaction_bytes,
        write_amp: (written > 0).then(|| tables as f64 / written as f64),
        stall_percent: 100.0 * metrics.stall_seconds / seconds.max(1e-9),
        size_bytes: disk_bytes(dir),
        rss_bytes: resident.bytes,
        rss_peak_bytes: resident.peak_bytes,
        writer: total.writer.map(|writer| Writer {
            ops: writer.ops,
            rate: writer.ops as f64 / seconds.max(1e-9),
            mb_per_second: writer.written as f64 / f64::from(1 << 20) / seconds.max(1e-9),
            latency_us: writer.latencies.summary(),
        }),
        compaction_table: metrics.table,
    }
}

/// CPU microseconds per operation of the client itself: the same loop on an engine that does
/// nothing.
pub(super) fn client_cost(options: &BenchOptions, benchmark: Benchmark) -> Result<f64> {
    const OPS: u64 = 200_000;
    let (stop, counter) = (AtomicBool::new(false), Counter::default());
    let ops = options.num.clamp(1, OPS);
    let options = BenchOptions { num: ops, ops: None, ..options.clone() };
    let values = values_of(&options);
    let job = Job {
        options: &options,
        benchmark,
        thread: 0,
        threads: 1,
        ops,
        deadline: None,
        stop: &stop,
        counter: &counter,
        values: &values,
    };
    let mut handle = Null.handle()?;
    // The first round warms caches and page tables up.
    measured(&job, &mut handle)?;
    measured(&job, &mut handle)
}

fn measured<H: Handle>(job: &Job, handle: &mut H) -> Result<f64> {
    let before = Usage::now();
    let done = job.run(handle)?;
    Ok(Usage::now().since(&before).cpu_seconds() * 1e6 / done.ops.max(1) as f64)
}
