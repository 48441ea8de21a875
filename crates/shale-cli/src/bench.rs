//! `shale bench`: the lab.

use crate::exit::{Exit, Failure, Outcome};
use crate::screen;
use clap::{Args, Subcommand};
use shale_lab::campaign::{self, CampaignOptions};
use shale_lab::engine::Null;
use shale_lab::kv::KvOptions;
use shale_lab::linkbench::LinkbenchOptions;
use shale_lab::setup::{Durability, Setup};
use shale_lab::shale::Shale;
use shale_lab::workload::Workload;
use shale_lab::{driver, report};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Subcommand)]
pub(crate) enum BenchKind {
    /// The db_bench pattern: fills, overwrites, reads, scans, reads while writing
    #[command(after_help = "\
Each benchmark is a process of its own on the store that the one before left, and the engines take \
turns at each of them. Every row has its rate, percentiles of the response time, CPU per operation \
(`client`: what the benchmark itself costs, which is taken off), KB written and read per operation, \
write amplification, the share of time in which the engine delayed writers, size on disk and \
resident memory.

Examples:
  shale bench kv --num 10M
  shale bench kv --engines shale,rocksdb --repeats 3 --num 10M --memory-bound 2G")]
    Kv(Box<KvCommand>),
    /// LinkBench: a social graph, loaded and then queried by ten operations
    #[command(after_help = "\
The steps are load, q1, q2, ... and drop; the last query step is the one to report. Each has the \
measures of `shale bench kv`, response times by operation, and for the drop its time.

Examples:
  shale bench linkbench
  shale bench linkbench --engines shale,rocksdb --maxid1 1M --memory-bound 1G
  shale bench linkbench --maxid1 40M --clients 16 --loops 24 --seconds 3600")]
    Linkbench(Box<LinkbenchCommand>),
    /// Go on with a run that was interrupted; steps that failed are tried again
    Resume {
        /// The folder of the run
        folder: PathBuf,
        /// Also append one JSON line per step to this file; - prints JSON lines only
        #[arg(long, value_name = "FILE")]
        json_to: Option<PathBuf>,
    },
    /// Run one step, as a campaign asks on the standard input
    #[command(hide = true)]
    Job {
        /// Which engine
        #[arg(long)]
        engine: String,
    },
}

#[derive(Args)]
pub(crate) struct KvCommand {
    #[command(flatten)]
    kv: KvOptions,

    #[command(flatten)]
    setup: Setup,

    #[command(flatten)]
    campaign: CampaignOptions,

    /// Sync the log at every write: the same as --durability power
    #[arg(long, hide = true)]
    sync: bool,
}

#[derive(Args)]
pub(crate) struct LinkbenchCommand {
    #[command(flatten)]
    linkbench: LinkbenchOptions,

    #[command(flatten)]
    setup: Setup,

    #[command(flatten)]
    campaign: CampaignOptions,
}

pub(crate) fn bench(kind: BenchKind, json: bool) -> Outcome<Exit> {
    let json_to = |asked: Option<PathBuf>| asked.or_else(|| json.then(|| "-".into()));
    match kind {
        BenchKind::Kv(command) => {
            let KvCommand { kv, mut setup, mut campaign, sync } = *command;
            if sync {
                setup.durability = Durability::Power;
            }
            campaign.json_to = json_to(campaign.json_to);
            one(Workload::Kv(kv), &setup, &campaign)
        }
        BenchKind::Linkbench(command) => {
            let LinkbenchCommand { linkbench, setup, mut campaign } = *command;
            campaign.json_to = json_to(campaign.json_to);
            one(Workload::Linkbench(linkbench), &setup, &campaign)
        }
        BenchKind::Resume { folder, json_to: asked } => {
            let json_to = json_to(asked);
            let outcome = campaign::resume(&folder, json_to.as_deref(), &interrupted()?)?;
            finish(&outcome, json_to.as_deref())
        }
        BenchKind::Job { engine } => {
            let code = match engine.as_str() {
                "null" => driver::main_kv::<Null>(),
                _ => driver::main_kv::<Shale>(),
            };
            Ok(if code == ExitCode::SUCCESS { Exit::Done } else { Exit::Other })
        }
    }
}

/// Runs one workload on each of the engines.
fn one(workload: Workload, setup: &Setup, campaign: &CampaignOptions) -> Outcome<Exit> {
    let group = campaign.group(workload, setup);
    let outcome = campaign::run(campaign, vec![group], &interrupted()?)?;
    finish(&outcome, campaign.json_to.as_deref())
}

/// Whether the user wants to stop. The first Ctrl-C ends the step that runs and keeps what is done,
/// the second one ends everything at once.
fn interrupted() -> Outcome<impl Fn() -> bool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // In this order: a signal finds the flag as the one before it left it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, flag.clone())
            .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
            .map_err(|error| Failure::new(Exit::Other, format!("no signals: {error}")))?;
    }
    Ok(move || flag.load(Ordering::Relaxed))
}

/// The table of all rows, and how the run ended.
fn finish(outcome: &campaign::Outcome, json_to: Option<&Path>) -> Outcome<Exit> {
    let folder = outcome.folder.display();
    if json_to != Some(Path::new("-")) {
        if !outcome.rows.is_empty() {
            screen::out(format!("\n{}\n", report::table(&outcome.rows)).as_bytes())?;
        }
        screen::out(format!("Results: {folder}\n").as_bytes())?;
    }
    if outcome.stopped {
        eprintln!("Stopped; what is done is kept. To go on: shale bench resume {folder}");
        return Ok(Exit::Stopped);
    }
    if outcome.failed.is_empty() {
        return Ok(Exit::Done);
    }
    eprintln!(
        "{} steps failed ({folder}/failed.jsonl). To try them again: shale bench resume {folder}",
        outcome.failed.len()
    );
    Ok(Exit::Other)
}
