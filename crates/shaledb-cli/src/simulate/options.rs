//! What the user may say of data, load, machine and settings.

use super::units;
use crate::exit::{Failure, Outcome};
use clap::{Args, ValueEnum, ValueHint};
use shaledb::{Codecs, Config};
use shaledb_forecast::scenario::HOURS;
use shaledb_forecast::{
    Device, Effort, Existing, Load, Machine, Order, Scenario, Skew, USUAL_WORK, Work,
    costs_of_ratio,
};
use std::path::PathBuf;

/// What rows are like unless something is said of them.
const KEY: f64 = 20.0;
const VALUE: f64 = 300.0;
const RATIO: f64 = 2.4;

/// Where new rows go.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Place {
    /// Anywhere among the others
    Random,
    /// Behind all others: keys begin with a time or a counter
    Ascending,
}

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Care {
    /// Some seconds
    Usual,
    /// A minute or more: more time is run, by smaller tables
    Great,
}

/// The scenario.
#[derive(Args, Clone, Debug)]
pub(crate) struct SimulateOptions {
    /// Bytes of keys and values that are there at the start, such as 20TB
    #[arg(
        long,
        value_parser = units::size,
        value_name = "BYTES",
        help_heading = "Data",
        required_unless_present = "from"
    )]
    size: Option<f64>,

    /// Begin with a database that is there: its tables, sizes of rows, compression and settings.
    /// What is named beside it holds instead. It may be in use, and nothing is changed there
    #[arg(long, value_name = "DATABASE", value_hint = ValueHint::DirPath, help_heading = "Data")]
    from: Option<PathBuf>,

    /// With --from: the tree [default: the largest]
    #[arg(long, value_name = "NAME", requires = "from", help_heading = "Data")]
    tree: Option<String>,

    /// Bytes of a key [default: 20]
    #[arg(long, value_parser = units::size, value_name = "BYTES", help_heading = "Data")]
    key: Option<f64>,

    /// Bytes of a value [default: 300]
    #[arg(long, value_parser = units::size, value_name = "BYTES", help_heading = "Data")]
    value: Option<f64>,

    /// How many times smaller zstd:3 makes the rows; `shale advise FILE` tells of yours
    /// [default: 2.4]
    #[arg(long, value_name = "TIMES", help_heading = "Data")]
    ratio: Option<f64>,

    /// The data has just been loaded in order or compacted, and not yet been written to
    #[arg(long, help_heading = "Data")]
    compacted: bool,

    /// Bytes of keys and values written each second: 40MB/s, `unlimited`, or by the hour of the
    /// day, such as 0-8:5MB/s,8-20:60MB/s
    #[arg(long, value_parser = units::rates, value_name = "RATE", help_heading = "Load")]
    write: [f64; HOURS],

    /// The share of the writes that are new rows; what is neither new nor a delete is an update
    #[arg(
        long, value_parser = units::share, default_value = "0", value_name = "SHARE",
        help_heading = "Load"
    )]
    inserts: f64,

    /// The share of the writes that are deletes
    #[arg(
        long, value_parser = units::share, default_value = "0", value_name = "SHARE",
        help_heading = "Load"
    )]
    deletes: f64,

    /// Where new rows go
    #[arg(long, value_enum, default_value = "random", help_heading = "Load")]
    order: Place,

    /// With ascending new rows: after which time a range delete drops them, such as 90d
    #[arg(long, value_parser = units::days, value_name = "TIME", help_heading = "Load")]
    retention: Option<f64>,

    /// How updates and reads spread over the rows: `uniform`, or `zipf:0.9`
    #[arg(
        long, value_parser = skew, default_value = "uniform", value_name = "SKEW",
        help_heading = "Load"
    )]
    skew: Skew,

    /// Point reads each second, such as 20k
    #[arg(
        long, value_parser = units::count, default_value = "0", value_name = "COUNT",
        help_heading = "Load"
    )]
    reads: f64,

    /// For how long: 12h, 30d, 1y
    #[arg(
        long = "for", value_parser = units::days, default_value = "1y", value_name = "TIME",
        help_heading = "Load"
    )]
    days: f64,

    /// The device: bytes a second and, if you like, reads a second, the bytes that may be written
    /// in its life, and by how much it becomes slower each year: 500MB/s,20kiops,600TBW,slower:10%
    #[arg(
        long,
        value_parser = units::device,
        default_value = "500MB/s,20kiops",
        value_name = "DEVICE",
        help_heading = "Machine"
    )]
    device: Device,

    /// Cores
    #[arg(long, default_value = "8", value_name = "COUNT", help_heading = "Machine")]
    cores: f64,

    /// Memory of the machine
    #[arg(
        long, value_parser = units::whole, default_value = "32GiB", value_name = "BYTES",
        help_heading = "Machine"
    )]
    ram: u64,

    /// Take what work costs from this machine, measured in some seconds, instead of that of the
    /// documentation
    #[arg(long, help_heading = "Machine")]
    measure: bool,

    /// The engine's `memory_bytes` [default: a quarter of the machine's]
    #[arg(long, value_parser = units::whole, value_name = "BYTES", help_heading = "Settings")]
    memory: Option<u64>,

    /// The engine's `memtable_bytes` [default: a sixteenth of its memory, at most 64MiB]
    #[arg(long, value_parser = units::whole, value_name = "BYTES", help_heading = "Settings")]
    memtable: Option<u64>,

    /// The engine's `background_threads` [default: one for each core, 2 to 8]
    #[arg(long, value_name = "COUNT", help_heading = "Settings")]
    threads: Option<u32>,

    /// The engine's `space_limit` [default: none]
    #[arg(long, value_parser = units::whole, value_name = "BYTES", help_heading = "Settings")]
    space_limit: Option<u64>,

    /// One codec, or three: upper levels, middle, last [default: auto]
    #[arg(long, value_name = "CODECS", help_heading = "Settings")]
    codecs: Option<shaledb_lab::options::CodecNames>,

    /// How much time to spend
    #[arg(long, value_enum, default_value = "usual", help_heading = "Output")]
    care: Care,

    /// Write a page with charts
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(super) html: Option<PathBuf>,
}

fn skew(text: &str) -> Result<Skew, String> {
    match text.split_once(':') {
        None if text == "uniform" => Ok(Skew::Uniform),
        Some(("zipf", exponent)) => exponent
            .parse()
            .map(Skew::Zipf)
            .map_err(|_| format!("`{exponent}` is not an exponent such as 0.9")),
        _ => Err(format!("`{text}` is not `uniform` or such as zipf:0.9")),
    }
}

impl SimulateOptions {
    /// What to foresee.
    pub(super) fn scenario(&self) -> Outcome<Scenario> {
        let existing = match &self.from {
            Some(path) => Some(Existing::read(path, self.tree.as_deref())?),
            None => None,
        };
        let known = existing.as_ref();
        let (key, value) = known.map_or((KEY, VALUE), Existing::row_bytes);
        let (key, value) = (self.key.unwrap_or(key), self.value.unwrap_or(value));
        let ratio = self.ratio.unwrap_or_else(|| known.map_or(RATIO, Existing::ratio));
        if !ratio.is_finite() || ratio < 1.0 {
            return Err(Failure::usage(format!(
                "--ratio {ratio} is not a number from 1 on: nothing gets larger than it is"
            )));
        }
        let there = known.map_or(0.0, |existing| existing.rows() * (key + value));
        let mut config = Config {
            memory_bytes: self.memory.unwrap_or(0),
            memtable_bytes: self.memtable.unwrap_or(0),
            background_threads: self.threads.unwrap_or(0),
            space_limit: self.space_limit.unwrap_or(0),
            tree: known.map(|existing| existing.config.clone()).unwrap_or_default(),
            ..Config::default()
        };
        if let Some(names) = &self.codecs {
            let codec = |name: &str| {
                name.parse().map_err(|error: shaledb::Error| Failure::usage(error.to_string()))
            };
            config.tree.codecs = Codecs {
                upper: codec(&names.upper)?,
                middle: codec(&names.middle)?,
                bottommost: codec(&names.bottommost)?,
            };
        }
        // Of another size it is another tree.
        let existing = existing.filter(|_| self.size.is_none());
        let mut scenario = Scenario {
            key_bytes: key,
            value_bytes: value,
            start_bytes: self.size.unwrap_or(there),
            compacted: self.compacted,
            existing,
            load: Load {
                bytes_per_second: self.write,
                inserts: self.inserts,
                deletes: self.deletes,
                order: match self.order {
                    Place::Random => Order::Random,
                    Place::Ascending => Order::Ascending,
                },
                skew: self.skew,
                reads_per_second: self.reads,
                retention_days: self.retention,
                ..Load::updates(0.0)
            },
            days: self.days,
            machine: Machine {
                cores: self.cores,
                memory_bytes: self.ram,
                device: self.device,
                work: usual_work(key + value),
            },
            config,
            costs: costs_of_ratio(ratio),
        };
        scenario.check().map_err(Failure::usage)?;
        if self.measure {
            scenario.machine.work = super::measure::work(key, value)?;
        }
        Ok(scenario)
    }

    /// How much of it to run.
    pub(super) fn effort(&self) -> Effort {
        match self.care {
            Care::Usual => Effort::default(),
            Care::Great => Effort { flushes: 120_000.0, tables: 4_000.0, ..Effort::default() },
        }
    }

    /// The rates of the hours of a day.
    pub(super) fn rates(&self) -> &[f64; HOURS] {
        &self.write
    }
}

/// Work on rows of another size: a part of it goes by bytes.
fn usual_work(row_bytes: f64) -> Work {
    let by_bytes = (row_bytes - 270.0) * 0.3;
    Work {
        put: (USUAL_WORK.put + 3.0 * by_bytes).max(1_500.0),
        flush_row: (USUAL_WORK.flush_row + by_bytes).max(100.0),
        merge_row: (USUAL_WORK.merge_row + by_bytes).max(80.0),
        ..USUAL_WORK
    }
}
