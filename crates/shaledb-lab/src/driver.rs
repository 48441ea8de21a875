//! The driver: a process that runs one step of a workload on one engine. Steps in one process would
//! inherit each other's memory.
//!
//! A [`Job`] comes as one line of JSON on the standard input, which stays open: when it closes, the
//! campaign is gone and so is the driver, with all that it started. [`Event`]s go to the standard
//! output, a line of JSON each, the row last.

use crate::measure::{Processes, Usage, disk_bytes};
use crate::run::row::{Opened, Row};
use crate::run::work::{Named, Progress};
use crate::setup::Setup;
use crate::stores::engine::{Engine, Failure, Result};
use crate::stores::kv::KvStore;
use crate::stores::store::{Host, Store};
use crate::workloads::insert::store::Sales;
use crate::workloads::insert::{self, InsertOptions};
use crate::workloads::kv;
use crate::workloads::linkbench::graph::Graph;
use crate::workloads::linkbench::{self, LinkbenchOptions};
use crate::workloads::rows::store::Pairs;
use crate::workloads::rows::{self, RowsOptions};
use crate::workloads::sysbench::store::Oltp;
use crate::workloads::sysbench::{self, SysbenchOptions};
use crate::workloads::tpcc::store::Tpcc;
use crate::workloads::tpcc::{self, TpccOptions};
use crate::workloads::workload::Workload;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// One step of a workload on one engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The engine's name.
    pub engine: String,
    /// Where its files are, or will be.
    pub folder: PathBuf,
    /// What every engine gets.
    pub setup: Setup,
    /// The workload and its parameters.
    pub workload: Workload,
    /// The step's name.
    pub step: String,
    /// What distinguishes the rows of one engine in a run.
    pub setting: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Bytes of live data that the step finds, before compression. `None` if it is not known.
    #[serde(default)]
    pub live_bytes: Option<u64>,
}

/// What a driver reports.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// What it is doing now, such as `opening`.
    Doing(String),
    /// How far the step is.
    Progress(Progress),
    /// The result: the last event of a step that went well.
    Row(Box<Row>),
    /// Why there is none.
    Failed(String),
}

/// The main function of a driver of a key-value engine.
pub fn main_kv<E: Engine>() -> ExitCode {
    serve(|job, tell| run_kv::<E>(job, tell))
}

/// A database server. All workloads but `kv` run on it, by statements.
pub trait Server: Graph + Sales + Oltp + Tpcc + Pairs {
    /// Starts it on `folder`, where it makes its files if there are none, or connects to the one
    /// whose address `setup` gives. Of a server with several storage engines, `engine` says which.
    ///
    /// # Errors
    ///
    /// It does not start. The error has the end of its log.
    fn open(engine: &str, folder: &Path, setup: &Setup) -> Result<Self>;
}

/// The main function of a driver of a database server.
pub fn main_sql<S: Server>() -> ExitCode {
    serve(|job, tell| run_sql::<S>(job, tell))
}

/// Reads a job, runs it by `run`, reports what happens. The exit code is a failure if the step
/// failed.
pub fn serve(run: impl FnOnce(&Job, &mut dyn FnMut(Event)) -> Result<Row>) -> ExitCode {
    let mut tell = |event: Event| {
        let Ok(text) = serde_json::to_string(&event) else { return };
        let mut out = std::io::stdout().lock();
        // Whoever listened is gone if this fails: then the standard input has ended too.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    };
    let outcome = read_job().and_then(|job| {
        end_with_the_campaign();
        run(&job, &mut tell)
    });
    match outcome {
        Ok(row) => {
            tell(Event::Row(Box::new(row)));
            ExitCode::SUCCESS
        }
        Err(error) => {
            tell(Event::Failed(error.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn read_job() -> Result<Job> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    serde_json::from_str(&line).map_err(|error| {
        Failure::from(format!(
            "the standard input does not begin with a job ({error}). Run `shale bench`, which \
             starts this program"
        ))
    })
}

/// Ends this process, and those that it started, when the standard input closes.
fn end_with_the_campaign() {
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        let _ = std::io::stdin().lock().read_to_end(&mut rest);
        // SAFETY: these calls take and give numbers only. Group 0 is this process's own; it is the
        // group's leader if a campaign started it, and then nobody else's processes are in it.
        unsafe {
            if libc::getpgrp() == libc::getpid() {
                libc::kill(0, libc::SIGKILL);
            }
        }
        std::process::exit(3);
    });
}

/// Runs a job on a key-value engine.
///
/// # Errors
///
/// The store cannot be opened, or fails.
pub fn run_kv<E: Engine>(job: &Job, tell: &mut dyn FnMut(Event)) -> Result<Row> {
    let mut row = match &job.workload {
        Workload::Kv(options) => {
            let step = options.step(&job.step)?;
            run_step(
                job,
                tell,
                || kv::work::client_costs(options, step, job.seed),
                |folder| kv::work::open::<E>(folder, &job.setup, step),
                |store, costs, named, hear| {
                    kv::work::run(store, options, step, job.seed, costs, named, hear)
                },
            )?
        }
        Workload::Linkbench(options) => {
            let open =
                |folder: &Path| KvStore::<E>::open(folder, &job.setup, &linkbench::over_kv::TREES);
            run_linkbench(job, options, tell, open)?
        }
        Workload::Insert(options) => {
            let open =
                |folder: &Path| KvStore::<E>::open(folder, &job.setup, &insert::over_kv::TREES);
            run_insert(job, options, tell, open)?
        }
        Workload::Sysbench(options) => {
            let open =
                |folder: &Path| KvStore::<E>::open(folder, &job.setup, &sysbench::over_kv::TREES);
            run_sysbench(job, options, tell, open)?
        }
        Workload::Rows(options) => {
            let open =
                |folder: &Path| KvStore::<E>::open(folder, &job.setup, &rows::over_kv::TREES);
            run_rows(job, options, tell, open)?
        }
        Workload::Tpcc(_) => {
            return Err(format!(
                "{} is a key-value store, but `tpcc` is for database servers, such as innodb and \
                 shale-sql",
                job.engine
            )
            .into());
        }
    };
    finish(&mut row, job);
    Ok(row)
}

/// Runs a job on a database server.
///
/// # Errors
///
/// The workload is for key-value stores only, or the server cannot be started, or fails.
pub fn run_sql<S: Server>(job: &Job, tell: &mut dyn FnMut(Event)) -> Result<Row> {
    if job.setup.device_bound.is_some() {
        return Err(format!(
            "{} cannot be held to --device-bound; shale and rocksdb can. Leave that flag out",
            job.engine
        )
        .into());
    }
    let open = |folder: &Path| S::open(&job.engine, folder, &job.setup);
    let mut row = match &job.workload {
        Workload::Kv(_) => {
            return Err(format!(
                "{} is a database server, but `kv` is for key-value stores. Measure it with `shale \
                 bench sysbench`, `insert`, `linkbench` or `tpcc`",
                job.engine
            )
            .into());
        }
        Workload::Linkbench(options) => run_linkbench(job, options, tell, open)?,
        Workload::Insert(options) => run_insert(job, options, tell, open)?,
        Workload::Sysbench(options) => run_sysbench(job, options, tell, open)?,
        Workload::Tpcc(options) => run_tpcc(job, options, tell, open)?,
        Workload::Rows(options) => run_rows(job, options, tell, open)?,
    };
    finish(&mut row, job);
    Ok(row)
}

/// Runs a step of LinkBench on a store that `open` opens.
fn run_linkbench<G: Graph>(
    job: &Job,
    options: &LinkbenchOptions,
    tell: &mut dyn FnMut(Event),
    open: impl FnOnce(&Path) -> Result<G>,
) -> Result<Row> {
    let step = job.step.parse()?;
    run_step(
        job,
        tell,
        || linkbench::work::client_costs(options, step, job.seed),
        open,
        |graph, costs, named, hear| {
            linkbench::work::run(graph, options, step, job.seed, costs, named, hear)
        },
    )
}

/// Runs a step of the insert benchmark on a store that `open` opens.
fn run_insert<S: Sales>(
    job: &Job,
    options: &InsertOptions,
    tell: &mut dyn FnMut(Event),
    open: impl FnOnce(&Path) -> Result<S>,
) -> Result<Row> {
    let step = options.step(&job.step)?;
    run_step(
        job,
        tell,
        || insert::work::client_costs(options, step, job.seed),
        open,
        |store, costs, named, hear| {
            let mut row = insert::work::run(store, options, step, job.seed, costs, named, hear)?;
            let compressed = job.setup.codecs.bottommost != "none";
            row.extra.extend(insert::work::extra(store, options, compressed, row.size_bytes)?);
            Ok(row)
        },
    )
}

/// Runs a step of the sysbench pattern on a store that `open` opens.
fn run_sysbench<S: Oltp>(
    job: &Job,
    options: &SysbenchOptions,
    tell: &mut dyn FnMut(Event),
    open: impl FnOnce(&Path) -> Result<S>,
) -> Result<Row> {
    let step = options.step(&job.step)?;
    run_step(
        job,
        tell,
        || sysbench::work::client_costs(options, step.0, job.seed),
        open,
        |store, costs, named, hear| {
            sysbench::work::run(store, options, step, job.seed, costs, named, hear)
        },
    )
}

/// Runs a step of the TPC-C pattern on a store that `open` opens.
fn run_tpcc<S: Tpcc>(
    job: &Job,
    options: &TpccOptions,
    tell: &mut dyn FnMut(Event),
    open: impl FnOnce(&Path) -> Result<S>,
) -> Result<Row> {
    let step = options.step(&job.step)?;
    run_step(
        job,
        tell,
        || tpcc::work::client_costs(options, step.0, job.seed),
        open,
        |store, costs, named, hear| {
            tpcc::work::run(store, options, step, job.seed, costs, named, hear)
        },
    )
}

/// Runs a step with a user's rows on a store that `open` opens.
fn run_rows<P: Pairs>(
    job: &Job,
    options: &RowsOptions,
    tell: &mut dyn FnMut(Event),
    open: impl FnOnce(&Path) -> Result<P>,
) -> Result<Row> {
    let step = options.step(&job.step)?;
    run_step(
        job,
        tell,
        || rows::work::client_costs(options, step, job.seed),
        open,
        |store, costs, named, hear| {
            rows::work::run(store, options, step, job.seed, costs, named, hear)
        },
    )
}

/// Measures the client, opens the store, runs the step, closes the store.
fn run_step<S: Store>(
    job: &Job,
    tell: &mut dyn FnMut(Event),
    client_costs: impl FnOnce() -> Result<(f64, f64)>,
    open_store: impl FnOnce(&Path) -> Result<S>,
    run: impl FnOnce(&S, (f64, f64), &Named<'_>, &mut dyn FnMut(&Progress)) -> Result<Row>,
) -> Result<Row> {
    tell(Event::Doing("measuring the client".to_owned()));
    let costs = client_costs()?;
    let (store, opened) = open(job, tell, open_store)?;
    let named = Named { workload: job.workload.name(), step: &job.step, opened: Some(opened) };
    let hear = &mut |progress: &Progress| tell(Event::Progress(progress.clone()));
    let mut row = run(&store, costs, &named, hear)?;
    close(store, &mut row, tell)?;
    Ok(row)
}

/// Opens a store and measures what that took.
///
/// # Errors
///
/// It cannot be opened.
pub fn open<S: Store>(
    job: &Job,
    tell: &mut dyn FnMut(Event),
    open: impl FnOnce(&Path) -> Result<S>,
) -> Result<(S, Opened)> {
    tell(Event::Doing("opening the store".to_owned()));
    std::fs::create_dir_all(&job.folder)
        .map_err(|error| format!("could not create {}: {error}", job.folder.display()))?;
    let (start, before) = (Instant::now(), Usage::now());
    let store = open(&job.folder)?;
    let usage = match store.host() {
        Host::Here => Usage::now().since(&before),
        // Since the server began.
        Host::Processes(pids) => Processes::new(pids).usage(),
        Host::Elsewhere => Usage::default(),
    };
    let table_bytes = store.metrics()?.table_bytes();
    let opened = Opened { table_bytes, ..took(start, &usage) };
    tell(Event::Doing(job.step.clone()));
    Ok((store, opened))
}

/// Closes a store and measures what that took, and what the store takes then: some engines write
/// much of what a step changed only now.
///
/// # Errors
///
/// It cannot be closed.
fn close<S: Store>(store: S, row: &mut Row, tell: &mut dyn FnMut(Event)) -> Result<()> {
    tell(Event::Doing("closing the store".to_owned()));
    let (start, folder) = (Instant::now(), store.folder());
    let usage = match store.host() {
        Host::Here => {
            let before = Usage::now();
            store.close()?;
            Usage::now().since(&before)
        }
        // What the server has used in all is known when it is gone.
        Host::Processes(pids) => {
            let (children, before) = (Usage::of_children(), Processes::new(pids).usage());
            store.close()?;
            Usage::of_children().since(&children).since(&before)
        }
        Host::Elsewhere => {
            store.close()?;
            Usage::default()
        }
    };
    row.close = Some(took(start, &usage));
    if let Some(folder) = folder {
        row.extra.insert("closed_size_bytes".to_owned(), disk_bytes(&folder) as f64);
    }
    Ok(())
}

fn took(start: Instant, usage: &Usage) -> Opened {
    Opened {
        seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: usage.cpu_seconds(),
        written_bytes: usage.written_bytes,
        table_bytes: None,
    }
}

/// What the job knows of a row and the step does not.
pub fn finish(row: &mut Row, job: &Job) {
    row.setting = job.setting.clone();
    row.repeat = job.repeat;
    if cfg!(debug_assertions) {
        let note =
            "the driver was built for debugging, without --release: do not compare these figures";
        row.notes.push(note.to_owned());
    }
    let ignored = job.setup.ignored(&job.engine);
    if !ignored.is_empty() {
        row.notes.push(format!("{} made no difference: docs/peers.md", ignored.join(", ")));
    }
    row.live_bytes = job.live_bytes.map(|before| job.workload.live_bytes(row, before));
    let live = row.live_bytes.filter(|&bytes| bytes > 0);
    row.counted.space_amp = live.map(|bytes| row.size_bytes as f64 / bytes as f64);
    row.counted.space_amp_peak = live.map(|bytes| row.size_peak_bytes as f64 / bytes as f64);
    row.parameters = serde_json::json!({
        job.workload.name(): job.workload.parameters(),
        "setup": job.setup,
        "seed": job.seed,
    });
}
