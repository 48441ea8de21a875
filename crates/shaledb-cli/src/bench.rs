//! `shale bench`: the lab.

use crate::allocator;
use crate::exit::{Exit, Failure, Outcome};
use crate::screen;
use clap::{Args, Subcommand};
use shaledb_lab::campaign::{self, CampaignOptions, Group};
use shaledb_lab::compress::{self, CompressOptions};
use shaledb_lab::report::ReportOptions;
use shaledb_lab::setup::{Durability, Setup};
use shaledb_lab::stores::null::Null;
use shaledb_lab::stores::shale::Shale;
use shaledb_lab::workloads::insert::InsertOptions;
use shaledb_lab::workloads::kv::KvOptions;
use shaledb_lab::workloads::linkbench::LinkbenchOptions;
use shaledb_lab::workloads::sysbench::SysbenchOptions;
use shaledb_lab::workloads::tpcc::TpccOptions;
use shaledb_lab::workloads::workload::Workload;
use shaledb_lab::{driver, report, say};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

#[derive(Subcommand)]
pub(crate) enum BenchKind {
    /// The db_bench pattern: fills, overwrites, reads, scans, reads while writing
    #[command(after_help = "\
Each benchmark runs in a process of its own, on the store that the benchmark before it left. The \
engines take turns. Every row has the rate, percentiles of the response time, CPU per operation, \
KB written and read per operation, write amplification, the share of time in which the engine \
delayed writers, the size on disk and the resident memory. `client` is the CPU of the benchmark \
itself, which is subtracted.

Examples:
  shale bench kv --num 10M
  shale bench kv --engines shale,rocksdb --repeats 3 --num 10M --memory-bound 2G")]
    Kv(Box<KvCommand>),
    /// LinkBench: a social graph, loaded and then queried by ten operations
    #[command(after_help = "\
The steps are load, q1, q2, ... and drop. The last query step is the one to report. Each has the \
figures of `shale bench kv` and response times by operation; the drop has its time.

Examples:
  shale bench linkbench
  shale bench linkbench --engines shale,rocksdb --maxid1 1M --memory-bound 1G
  shale bench linkbench --maxid1 40M --clients 16 --loops 24 --seconds 3600")]
    Linkbench(Box<LinkbenchCommand>),
    /// The insert benchmark: inserts in key order with three secondary indexes, queries beside a
    /// writer
    #[command(after_help = "\
The steps are l.i0 (load), l.x (create the secondary indexes), l.i1 and l.i2 (insert, and delete \
as many), qrN and qpN (range and point queries beside N inserts per second). docs/workloads.md \
says what each does. A row has a note if its writer did not reach its rate.

Examples:
  shale bench insert
  shale bench insert --engines shale,rocksdb --rows 10M --inserts 4M --seconds 60
  shale bench insert --large-objects --codecs none,none,zlib:6")]
    Insert(Box<InsertCommand>),
    /// The sysbench pattern: eight tables with an index; updates, transactions, reads, inserts
    #[command(after_help = "\
Each step is repeated for each number of clients. docs/workloads.md says what each does.

Examples:
  shale bench sysbench --clients 1,2,4,8
  shale bench sysbench --rows 1M --seconds 180 --steps load,read-write,read-only.100")]
    Sysbench(Box<SysbenchCommand>),
    /// The TPC-C pattern over SQL: warehouses, nine tables, five transactions, a check at the end
    #[command(after_help = "\
For database servers: name them by --engines. The step run is repeated for each number of clients. \
The step check fails if the standard's conditions of consistency do not hold. docs/workloads.md \
says what each does.

Examples:
  shale bench tpcc --engines innodb,myrocks --foreign-keys off
  shale bench tpcc --engines shale-sql,innodb --warehouses 2 --clients 4 --seconds 60")]
    Tpcc(Box<TpccCommand>),
    /// Codec choices for upper levels, middle and last level, on several workloads, as one matrix
    #[command(after_help = "\
Examples:
  shale bench compress
  shale bench compress --upper none --bottommost zstd:3,zlib:1 --workloads linkbench --scale 10
  shale bench compress --upper none,lz4 --bottommost lz4 --workloads kv --scale 10 --seconds 60
  shale bench compress --matrix --data json --read-shares 0.5
  shale bench compress --matrix --engines shale,rocksdb --choices 'auto;lz4;none,lz4,zstd:3'")]
    Compress(Box<CompressCommand>),
    /// Continue a run that was interrupted; steps that failed run again
    Resume {
        /// The folder of the run
        folder: PathBuf,
        /// Also append one JSON line per step to this file; - prints JSON lines only
        #[arg(long, value_name = "FILE")]
        json_to: Option<PathBuf>,
    },
    /// Show the results of runs: tables, ratios, a page of HTML; compare runs by a statistical test
    #[command(after_help = "\
Of one run: a table for each step, ratios to one engine, sentences on the figures that differ \
together. Of two runs or more: each later run is compared with the first. The test is Mann-Whitney \
U over eight repeats or more, Welch's over three to seven, else a block bootstrap over the \
intervals; docs/results.md says what they can show. With --fail-on-regression the exit code is 10 \
if a figure regressed.

Examples:
  shale bench report RUN --html page.html
  shale bench report BEFORE AFTER --fail-on-regression")]
    Report(Box<ReportOptions>),
    /// Run one step, as a campaign asks on the standard input
    #[command(hide = true)]
    Job {
        /// The engine
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

#[derive(Args)]
pub(crate) struct InsertCommand {
    #[command(flatten)]
    insert: InsertOptions,

    /// The large-object variant instead: values of 100-1000 and 10,000-20,000 bytes, of which 20,
    /// 45, 75 and 95 % are random; as many bytes as --rows times 200
    #[arg(long)]
    large_objects: bool,

    #[command(flatten)]
    setup: Setup,

    #[command(flatten)]
    campaign: CampaignOptions,
}

#[derive(Args)]
pub(crate) struct SysbenchCommand {
    #[command(flatten)]
    sysbench: SysbenchOptions,

    #[command(flatten)]
    setup: Setup,

    #[command(flatten)]
    campaign: CampaignOptions,
}

#[derive(Args)]
pub(crate) struct TpccCommand {
    #[command(flatten)]
    tpcc: TpccOptions,

    #[command(flatten)]
    setup: Setup,

    #[command(flatten)]
    campaign: CampaignOptions,
}

#[derive(Args)]
pub(crate) struct CompressCommand {
    #[command(flatten)]
    compress: CompressOptions,

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
            kv.check().map_err(|why| Failure::new(Exit::Usage, why))?;
            one(Workload::Kv(kv), &setup, &campaign)
        }
        BenchKind::Linkbench(command) => {
            let LinkbenchCommand { linkbench, setup, mut campaign } = *command;
            campaign.json_to = json_to(campaign.json_to);
            one(Workload::Linkbench(linkbench), &setup, &campaign)
        }
        BenchKind::Insert(command) => {
            let InsertCommand { insert, large_objects, setup, mut campaign } = *command;
            campaign.json_to = json_to(campaign.json_to);
            let variants = match large_objects {
                true => insert.large_objects(),
                false => vec![(String::new(), insert)],
            };
            let mut groups = Vec::new();
            for (variant, insert) in variants {
                insert.check().map_err(|why| Failure::new(Exit::Usage, why))?;
                let mut group = campaign.group(Workload::Insert(insert), &setup);
                for subject in &mut group.subjects {
                    subject.setting.clone_from(&variant);
                }
                groups.push(group);
            }
            several(groups, &campaign)
        }
        BenchKind::Sysbench(command) => {
            let SysbenchCommand { sysbench, setup, mut campaign } = *command;
            campaign.json_to = json_to(campaign.json_to);
            sysbench.check().map_err(|why| Failure::new(Exit::Usage, why))?;
            one(Workload::Sysbench(sysbench), &setup, &campaign)
        }
        BenchKind::Tpcc(command) => {
            let TpccCommand { tpcc, setup, mut campaign } = *command;
            campaign.json_to = json_to(campaign.json_to);
            tpcc.check().map_err(|why| Failure::new(Exit::Usage, why))?;
            all_are_servers(&campaign.engines)?;
            one(Workload::Tpcc(tpcc), &setup, &campaign)
        }
        BenchKind::Compress(command) => {
            let CompressCommand { compress: choices, setup, mut campaign } = *command;
            campaign.json_to = json_to(campaign.json_to);
            let groups =
                choices.groups(&campaign, &setup).map_err(|why| Failure::new(Exit::Usage, why))?;
            several(groups, &campaign)
        }
        BenchKind::Resume { folder, json_to: asked } => {
            let json_to = json_to(asked);
            let outcome = campaign::resume(&folder, json_to.as_deref(), &interrupted()?)?;
            finish(&outcome, json_to.as_deref())
        }
        BenchKind::Report(options) => {
            let mut text = Vec::new();
            let regressions = report::run(&options, json, &mut text)?;
            let fail = options.fail_on_regression && regressions > 0;
            let exit = if fail { Exit::Regressed } else { Exit::Done };
            screen::out(&text).map_err(|failure| failure.if_unread(exit))?;
            Ok(exit)
        }
        BenchKind::Job { engine } => {
            let code = match engine.as_str() {
                "null" => driver::main_kv::<Null>(),
                _ => driver::serve(|job, tell| {
                    allocator::suit(job.setup.memory);
                    driver::run_kv::<Shale>(job, tell)
                }),
            };
            Ok(if code == ExitCode::SUCCESS { Exit::Done } else { Exit::Other })
        }
    }
}

/// Refuses engines that SQL cannot be sent to.
fn all_are_servers(engines: &[String]) -> Outcome<()> {
    match engines.iter().find(|name| !campaign::is_server(name)) {
        None => Ok(()),
        Some(engine) => Err(Failure::new(
            Exit::Usage,
            format!(
                "--engines: `{engine}` is no database server, and `tpcc` is for those only. Name \
                 some, such as --engines shale-sql,innodb"
            ),
        )),
    }
}

/// Runs one workload on each of the engines.
fn one(workload: Workload, setup: &Setup, campaign: &CampaignOptions) -> Outcome<Exit> {
    several(vec![campaign.group(workload, setup)], campaign)
}

/// Runs workloads one after another.
fn several(groups: Vec<Group>, campaign: &CampaignOptions) -> Outcome<Exit> {
    let outcome = campaign::run(campaign, groups, &interrupted()?)?;
    finish(&outcome, campaign.json_to.as_deref())
}

/// Whether the user wants to stop. The first Ctrl-C ends the step that runs and keeps what is done,
/// the second one ends everything at once.
fn interrupted() -> Outcome<impl Fn() -> bool> {
    let flag = crate::signals::stop_flag()?;
    Ok(move || flag.load(Ordering::Relaxed))
}

/// The report of all rows, the page of it in the run's folder, and how the run ended.
fn finish(outcome: &campaign::Outcome, json_to: Option<&Path>) -> Outcome<Exit> {
    let folder = outcome.folder.display();
    let mut shown = String::new();
    if !outcome.rows.is_empty() {
        // The page's text begins with the cells of a matrix of conditions by itself.
        let cells = report::cell_table::text(&outcome.rows);
        if cells.is_none() && campaign::read_plan(&outcome.folder)?.has_alternatives() {
            shown = format!("{}\n", compress::matrix(&outcome.rows));
        }
        let (text, page) = report::finished(&outcome.folder, &format!("{shown}\n"))?;
        shown = cells.unwrap_or(shown);
        // Of many settings of one engine the matrix says enough; the rest is in the page.
        shown = if shown.is_empty() { text } else { shown };
        shown = format!("\n{shown}\nThe same with charts: {}\n", page.display());
    }
    if json_to != Some(Path::new("-")) {
        screen::out(format!("{shown}Results: {folder}\n").as_bytes())?;
    }
    if outcome.stopped {
        let how = format!("To continue: shale bench resume {folder}");
        let stores = outcome.stores.as_ref().map_or_else(String::new, |stores| {
            format!(". The stores are in {} until then, or until you remove them", stores.display())
        });
        say::note(&format!("Stopped. The finished steps are kept. {how}{stores}"));
        return Ok(Exit::Stopped);
    }
    if outcome.failed.is_empty() {
        return Ok(Exit::Done);
    }
    say::note(&format!(
        "{} steps failed; {folder}/failed.jsonl says why. To run them again: shale bench resume \
         {folder}",
        outcome.failed.len()
    ));
    Ok(Exit::Other)
}
