//! Codec choices under many conditions: what is stored, how fast it is written, what is short, how
//! many operations read. Each is a cell, in which all choices take turns at each step. The report
//! sets the choice that the engine makes itself (`auto`) beside the fixed ones.

use super::choices::are_different;
use super::defaults::defaults;
use crate::campaign::{CampaignOptions, Group, Subject};
use crate::options::{CodecNames, part};
use crate::report::cell::{Cell, Short, WriteRate};
use crate::run::row::VARIANT;
use crate::setup::Setup;
use crate::workloads::kv::{Benchmark, Data, KvOptions};
use crate::workloads::workload::Workload;
use clap::Args;

/// Bytes of keys and values at scale 1. How many levels that makes follows from the memtable, too.
const DATA_BYTES: f64 = 2e8;

/// The memory, unless another is asked for: the data is some times the cache.
const MEMORY: u64 = 64 << 20;

/// How short CPU and storage are, unless asked for otherwise.
const BUSY_THREADS: u32 = 2;
const DEVICE_BOUND: u64 = 60 << 20;

/// Seconds of reading and writing in a cell.
const SECONDS: u64 = 6;

/// Engines that can be held to the bound of a device.
const ENGINES: [&str; 3] = ["shale", "rocksdb", "null"];

/// The engine that knows `auto`.
const OWN: &str = "shale";

/// The conditions and the choices.
#[derive(Args, Clone, Debug)]
pub struct MatrixOptions {
    /// Try the choices under many conditions: each data with each rate of writes, each thing that
    /// is short, each share of reads
    #[arg(long)]
    pub matrix: bool,

    /// With --matrix: what values look like
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "links,json,text,half,random",
        requires = "matrix"
    )]
    pub data: Vec<Data>,

    /// With --matrix: rates of the writes, in MiB per second or `unlimited`
    #[arg(long, value_delimiter = ',', default_value = "unlimited,10", requires = "matrix")]
    pub write_rates: Vec<WriteRate>,

    /// With --matrix: what is short: CPU by --busy-threads (2), storage by --device-bound (60M)
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "cpu,storage",
        requires = "matrix"
    )]
    pub short: Vec<Short>,

    /// With --matrix: shares of reads, from 0 to 1
    #[arg(long, value_delimiter = ',', default_value = "0,0.5,0.95", value_parser = part,
        requires = "matrix")]
    pub read_shares: Vec<f64>,

    /// With --matrix: choices of codecs, separated by semicolons
    #[arg(
        long,
        value_delimiter = ';',
        default_value = "auto;none;lz4;none,lz4,zstd:3;zstd:1;zstd:3;zstd:9",
        requires = "matrix"
    )]
    pub choices: Vec<CodecNames>,
}

impl MatrixOptions {
    /// All cells.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &data in &self.data {
            for &short in &self.short {
                for &writes in &self.write_rates {
                    for &read_share in &self.read_shares {
                        cells.push(Cell { data, writes, short, read_share });
                    }
                }
            }
        }
        cells
    }

    /// A group for each cell, in which all choices on all engines take turns at each step. Only
    /// Shale gets choices that have `auto`.
    ///
    /// # Errors
    ///
    /// An engine cannot be held to the bound of a device, a choice is named twice, several are
    /// the same to an engine, or none is left for it.
    pub fn groups(
        &self,
        campaign: &CampaignOptions,
        setup: &Setup,
        scale: f64,
        seconds: Option<u64>,
    ) -> Result<Vec<Group>, String> {
        let other = campaign.engines.iter().find(|name| !ENGINES.contains(&name.as_str()));
        if let (Some(engine), true) = (other, self.short.contains(&Short::Storage)) {
            return Err(format!(
                "--engines: `{engine}` cannot be held to the bound of a device, which cells with \
                 short storage have; shale and rocksdb can. Leave it out, or say --short cpu"
            ));
        }
        for (at, choice) in self.choices.iter().enumerate() {
            if self.choices[..at].contains(choice) {
                return Err(format!("--choices: `{choice}` is named twice. Name it once"));
            }
        }
        let seconds = seconds.unwrap_or(SECONDS);
        self.cells().iter().map(|cell| self.group(cell, campaign, setup, scale, seconds)).collect()
    }

    fn group(
        &self,
        cell: &Cell,
        campaign: &CampaignOptions,
        setup: &Setup,
        scale: f64,
        seconds: u64,
    ) -> Result<Group, String> {
        let mut subjects = Vec::new();
        for engine in &campaign.engines {
            are_different(engine, &self.choices, setup)?;
            let before = subjects.len();
            for codecs in self.choices.iter().filter(|c| engine == OWN || !c.has_auto()) {
                subjects.push(Subject {
                    engine: engine.clone(),
                    setting: format!("{codecs}{VARIANT}{cell}"),
                    setup: setup_of(cell, codecs, setup),
                });
            }
            if subjects.len() == before {
                return Err(format!("--choices: there is no fixed one for `{engine}`. Name some"));
            }
        }
        Ok(Group { workload: Workload::Kv(workload(cell, scale, seconds)?), subjects })
    }
}

/// Reads and writes on a store that was filled in random order and is idle.
fn workload(cell: &Cell, scale: f64, seconds: u64) -> Result<KvOptions, String> {
    let options = KvOptions { data: cell.data, ..defaults::<KvOptions>()? };
    let rows = DATA_BYTES * scale / options.pair_bytes();
    Ok(KvOptions {
        benchmarks: vec![Benchmark::Filluniquerandom, Benchmark::Readrandomwriterandom],
        num: (rows as u64).max(2000),
        read_share: cell.read_share,
        write_rate: match cell.writes {
            WriteRate::Unlimited => None,
            WriteRate::Of(rate) => Some(rate),
        },
        duration: Some(seconds as f64),
        // Time ends it, not a number of operations.
        ops: Some(u64::MAX >> 1),
        idle_after: true,
        ..options
    })
}

/// What was asked for, with what the cell is short of. The defaults of other workloads are too
/// large: all would fit into memory.
fn setup_of(cell: &Cell, codecs: &CodecNames, asked: &Setup) -> Setup {
    let is_usual = asked.memory == Setup::default().memory;
    let busy = if asked.busy_threads == 0 { BUSY_THREADS } else { asked.busy_threads };
    let is_cpu = cell.short == Short::Cpu;
    Setup {
        codecs: codecs.clone(),
        // What is fixed is what the codec alone does.
        no_dictionary: asked.no_dictionary || codecs.to_string() != "auto",
        memory: if is_usual { MEMORY } else { asked.memory },
        busy_threads: if is_cpu { busy } else { 0 },
        device_bound: (!is_cpu).then_some(asked.device_bound.unwrap_or(DEVICE_BOUND)),
        ..asked.clone()
    }
}
