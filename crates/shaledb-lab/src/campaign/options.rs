//! The flags that all workloads share, and the plan that comes of them.

use super::plan::{Group, Plan, SCHEMA, Subject};
use crate::options::positive;
use crate::setup::Setup;
use crate::units::parse_bytes;
use crate::workloads::workload::Workload;
use clap::Args;
use std::path::{Path, PathBuf};

/// The flags that all workloads share.
#[derive(Args, Clone, Debug)]
pub struct CampaignOptions {
    /// The engines, separated by commas; they take turns at each step
    #[arg(long, value_delimiter = ',', default_value = "shale")]
    pub engines: Vec<String>,

    /// How often each step is measured
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,

    /// The seed of the random numbers; the same seed does the same work
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// The engine that the others are compared with [default: shale, or the first]
    #[arg(long, value_name = "ENGINE")]
    pub base: Option<String>,

    /// The folder for the results [default: a new one, shale-bench/WORKLOAD-TIME]
    #[arg(long, value_name = "FOLDER")]
    pub run: Option<PathBuf>,

    /// The folder for the stores, created if it is missing [default: a new one under /var/tmp]
    #[arg(long, value_name = "FOLDER")]
    pub db: Option<PathBuf>,

    /// Keep the stores at the end
    #[arg(long)]
    pub keep: bool,

    /// Also append one JSON line per step to this file; - prints JSON lines only
    #[arg(long, value_name = "FILE")]
    pub json_to: Option<PathBuf>,

    /// The most memory for an engine's processes, with the client and the page cache, enforced by
    /// a control group
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub memory_bound: Option<u64>,

    /// Empty the page cache of a store before each step; --memory-bound does so too
    #[arg(long)]
    pub cold: bool,

    /// Stop a step that does nothing for this many seconds
    #[arg(long, default_value_t = 600.0, value_parser = positive)]
    pub patience: f64,

    /// Begin even if the disk may be too small
    #[arg(long)]
    pub ignore_space: bool,

    /// No line for each step on the standard output.
    #[arg(skip)]
    pub quiet: bool,
}

impl CampaignOptions {
    /// Of a program that shows the rows itself: one measurement of each step, without lines on the
    /// standard output. The results are in the folder `run`, the stores in `db` as long as they are
    /// needed.
    pub fn quietly(run: PathBuf, db: PathBuf, seed: u64) -> CampaignOptions {
        CampaignOptions {
            engines: Vec::new(),
            repeats: 1,
            seed,
            base: None,
            run: Some(run),
            db: Some(db),
            keep: false,
            json_to: None,
            memory_bound: None,
            cold: false,
            patience: 600.0,
            ignore_space: false,
            quiet: true,
        }
    }

    /// One workload on each of the engines with the same settings.
    pub fn group(&self, workload: Workload, setup: &Setup) -> Group {
        let subject = |engine: &String| Subject {
            engine: engine.clone(),
            setting: String::new(),
            setup: setup.of_engine(engine),
        };
        Group { workload, subjects: self.engines.iter().map(subject).collect() }
    }

    /// The plan of a new run.
    pub(super) fn plan(&self, mut groups: Vec<Group>) -> Plan {
        for subject in groups.iter_mut().flat_map(|group| &mut group.subjects) {
            subject.setup = subject.setup.resolved();
        }
        Plan {
            schema: SCHEMA,
            made_by: format!("shale {}", env!("CARGO_PKG_VERSION")),
            machine: crate::measure::machine(),
            command: std::env::args().collect(),
            groups,
            repeats: self.repeats,
            seed: self.seed,
            base: self.base.clone(),
            stores: self.db.clone().unwrap_or_else(scratch),
            keep: self.keep,
            memory_bound: self.memory_bound,
            cold: self.cold || self.memory_bound.is_some(),
            patience: self.patience,
        }
    }
}

/// A new name under /var/tmp, which is on a disk where /tmp may be memory.
fn scratch() -> PathBuf {
    let disk = Path::new("/var/tmp");
    let base = if disk.is_dir() { disk.to_owned() } else { std::env::temp_dir() };
    base.join(format!("shale-bench-{}", std::process::id()))
}
