//! What the user may say of data, load, machine and settings.

use super::units;
use crate::exit::{Failure, Outcome};
use clap::{Args, ValueEnum, ValueHint};
use shaledb::{Codecs, Config};
use shaledb_forecast::scenario::HOURS;
use shaledb_forecast::{
    Device, Effort, Load, Machine, Order, Scenario, Skew, USUAL_WORK, Work, costs_of_ratio,
};
use std::path::PathBuf;

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
    #[arg(long, value_parser = units::size, value_name = "BYTES", help_heading = "Data")]
    size: f64,

    /// Bytes of a key
    #[arg(
        long, value_parser = units::size, default_value = "20", value_name = "BYTES",
        help_heading = "Data"
    )]
    key: f64,

    /// Bytes of a value
    #[arg(
        long, value_parser = units::size, default_value = "300", value_name = "BYTES",
        help_heading = "Data"
    )]
    value: f64,

    /// How many times smaller zstd:3 makes the rows; `shale demo FILE` tells of yours
    #[arg(long, default_value = "2.4", value_name = "TIMES", help_heading = "Data")]
    ratio: f64,

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

    /// One codec, or three: upper levels, middle, last
    #[arg(long, default_value = "auto", value_name = "CODECS", help_heading = "Settings")]
    codecs: shaledb_lab::options::CodecNames,

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
        if self.ratio.is_nan() || self.ratio < 1.0 {
            return Err(Failure::usage(format!(
                "--ratio {}: nothing gets larger than it is",
                self.ratio
            )));
        }
        let mut config = Config {
            memory_bytes: self.memory.unwrap_or(0),
            memtable_bytes: self.memtable.unwrap_or(0),
            background_threads: self.threads.unwrap_or(0),
            space_limit: self.space_limit.unwrap_or(0),
            ..Config::default()
        };
        let codec = |name: &str| {
            name.parse().map_err(|error: shaledb::Error| Failure::usage(error.to_string()))
        };
        config.tree.codecs = Codecs {
            upper: codec(&self.codecs.upper)?,
            middle: codec(&self.codecs.middle)?,
            bottommost: codec(&self.codecs.bottommost)?,
        };
        let work = if self.measure {
            super::measure::work(self.key, self.value)?
        } else {
            usual_work(self.key + self.value)
        };
        let scenario = Scenario {
            key_bytes: self.key,
            value_bytes: self.value,
            start_bytes: self.size,
            compacted: self.compacted,
            load: Load {
                bytes_per_second: self.write,
                clients: 1.0,
                inserts: self.inserts,
                deletes: self.deletes,
                order: match self.order {
                    Place::Random => Order::Random,
                    Place::Ascending => Order::Ascending,
                },
                skew: self.skew,
                reads_per_second: self.reads,
                retention_days: self.retention,
                universe_bytes: 0.0,
            },
            days: self.days,
            machine: Machine {
                cores: self.cores,
                memory_bytes: self.ram,
                device: self.device,
                work,
            },
            config,
            costs: costs_of_ratio(self.ratio),
        };
        scenario.check().map_err(Failure::usage)?;
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
