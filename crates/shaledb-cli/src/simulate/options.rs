//! What the user may say of data, load, machine and settings.

use super::lab_row::{choose, is_run};
use super::lab_work::Known;
use super::start::{self, Start};
use super::told::Told;
use super::units;
use super::words::rate;
use crate::exit::{Failure, Outcome};
use clap::{Args, ValueEnum, ValueHint};
use shaledb::compaction::policy::candidates::Costs;
use shaledb::{Codecs, Config};
use shaledb_forecast::scenario::HOURS;
use shaledb_forecast::{
    Device, Effort, Existing, Load, Machine, Order, Scenario, Skew, USUAL_WORK, Work,
    costs_of_ratio, sums,
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
    /// A second: to compare, not to plan. Of large or growing data write amplification comes out
    /// wrong by a lot
    Little,
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

    /// Begin with a database that is there: its tables, sizes of rows, compression and settings. It
    /// may be in use, and nothing is changed there. Or with a run of `shale bench`: the load of a
    /// step, its rows, its levels at the end, its settings and what work cost. What is named beside
    /// it holds instead
    #[arg(
        long,
        value_name = "DATABASE|RUN",
        value_hint = ValueHint::AnyPath,
        help_heading = "Data"
    )]
    from: Option<PathBuf>,

    /// With --from DATABASE: the tree [default: the largest]
    #[arg(long, value_name = "NAME", requires = "from", help_heading = "Data")]
    tree: Option<String>,

    /// With --from RUN: the step, such as overwrite [default: the last one of Shale that wrote]
    #[arg(
        long,
        value_name = "NAME",
        requires = "from",
        conflicts_with = "tree",
        help_heading = "Data"
    )]
    step: Option<String>,

    /// With --from RUN: the setting, where the run has several
    #[arg(
        long,
        value_name = "NAME",
        requires = "from",
        conflicts_with = "tree",
        help_heading = "Data"
    )]
    setting: Option<String>,

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

    /// The data has just been loaded in order or compacted, and not yet been written to; with
    /// --from only its size is taken, not its tables
    #[arg(long, help_heading = "Data")]
    compacted: bool,

    /// Bytes of keys and values written each second: 40MB/s, `unlimited`, or by the hour of the
    /// day, such as 0-8:5MB/s,8-20:60MB/s [default with --from RUN: its own]
    #[arg(
        long, value_parser = units::rates, value_name = "RATE", help_heading = "Load",
        required_unless_present = "from"
    )]
    write: Option<[f64; HOURS]>,

    /// The share of the writes that are new rows; what is neither new nor a delete is an update
    /// [default: 0]
    #[arg(long, value_parser = units::share, value_name = "SHARE", help_heading = "Load")]
    inserts: Option<f64>,

    /// The share of the writes that are deletes [default: 0]
    #[arg(long, value_parser = units::share, value_name = "SHARE", help_heading = "Load")]
    deletes: Option<f64>,

    /// Where new rows go [default: random]
    #[arg(long, value_enum, help_heading = "Load")]
    order: Option<Place>,

    /// With ascending new rows: after which time a range delete drops them, such as 90d
    #[arg(long, value_parser = units::days, value_name = "TIME", help_heading = "Load")]
    retention: Option<f64>,

    /// How updates and reads spread over the rows: `uniform`, or `zipf:0.9` [default: uniform]
    #[arg(long, value_parser = skew, value_name = "SKEW", help_heading = "Load")]
    skew: Option<Skew>,

    /// Point reads each second, such as 20k [default: 0]
    #[arg(long, value_parser = units::count, value_name = "COUNT", help_heading = "Load")]
    reads: Option<f64>,

    /// For how long: 12h, 30d, 1y
    #[arg(
        long = "for", value_parser = units::days, default_value = "1y", value_name = "TIME",
        help_heading = "Load"
    )]
    days: f64,

    /// The device: bytes a second and, if you like, reads a second, the bytes that may be written
    /// in its life, and by how much it becomes slower each year: 500MB/s,20kiops,600TBW,slower:10%
    /// [default: 500MB/s,20kiops]
    #[arg(long, value_parser = units::device, value_name = "DEVICE", help_heading = "Machine")]
    device: Option<Device>,

    /// Cores [default: 8]
    #[arg(long, value_name = "COUNT", help_heading = "Machine")]
    cores: Option<f64>,

    /// Memory of the machine; 32GB is 32 * 1000^3, 32GiB 32 * 1024^3 [default: 32GiB]
    #[arg(long, value_parser = units::whole, value_name = "BYTES", help_heading = "Machine")]
    ram: Option<u64>,

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
    text.parse().map(super::lab_load::skew)
}

impl SimulateOptions {
    /// What to foresee, and what of it comes from a run.
    pub(super) fn scenario(&self) -> Outcome<(Scenario, Told)> {
        let start = self.start()?;
        let mut told = Told::of(start.run.clone());
        let (key, value, costs) = self.rows(&start, &mut told)?;
        let config = self.config(&start, &mut told)?;
        let start_bytes = match self.size.or(start.live) {
            Some(bytes) => bytes,
            None => {
                return Err(Failure::usage(
                    "--size is missing: the run does not have `live_bytes`, the bytes of keys and \
                     values that were there. Name them",
                ));
            }
        };
        if self.size.is_none() {
            told.taken("size of the data");
        }
        let in_tables = start.existing.as_ref().map(Existing::rows);
        if let Some(path) = self.from.as_ref().filter(|_| in_tables == Some(0.0))
            && self.size.is_none()
        {
            let path = path.display();
            return Err(Failure::usage(format!(
                "{path} has no rows in tables. Those that were just written are in its log only, \
                 which is not read: `shale compact {path}` brings them into tables. Or name --size"
            )));
        }
        let load = self.load(&start, &mut told)?;
        let mut scenario = Scenario {
            key_bytes: key,
            value_bytes: value,
            start_bytes,
            compacted: self.compacted,
            existing: None,
            load,
            days: self.days,
            machine: self.machine(&start, key + value, &mut told),
            config,
            costs,
        };
        scenario.check().map_err(Failure::usage)?;
        // Of another size it is another tree, and compacted another shape.
        if self.size.is_none() && !self.compacted {
            scenario.existing = existing(&scenario, &start, &mut told);
        }
        if self.measure {
            scenario.machine.work = super::measure::work(key, value)?;
        }
        Ok((scenario, told))
    }

    /// What `--from` tells.
    fn start(&self) -> Outcome<Start> {
        let Some(path) = &self.from else { return Ok(Start::default()) };
        if !is_run(path) {
            if self.step.is_some() || self.setting.is_some() {
                return Err(Failure::usage(format!(
                    "--step and --setting are of a run of `shale bench`, and {} is none: leave \
                     them out, or name the run's folder",
                    path.display()
                )));
            }
            return start::of_database(path, self.tree.as_deref());
        }
        if self.tree.is_some() {
            return Err(Failure::usage(format!(
                "--tree is of a database, and {} is a run of `shale bench`: leave it out, or name \
                 --step",
                path.display()
            )));
        }
        let chosen = choose(path, self.step.as_deref(), self.setting.as_deref())?;
        Ok(start::of_run(&chosen))
    }

    /// Bytes of keys and values, and what codecs do to them.
    fn rows(&self, start: &Start, told: &mut Told) -> Outcome<(f64, f64, Costs)> {
        let key = told.pick(("bytes of a key", "--key"), self.key, start.key, (KEY, "20"));
        let value =
            told.pick(("bytes of a value", "--value"), self.value, start.value, (VALUE, "300"));
        let ratio = told.pick(
            ("how well they compress", "--ratio"),
            self.ratio,
            start.ratio,
            (RATIO, "2.4 times"),
        );
        if !ratio.is_finite() || ratio < 1.0 {
            return Err(Failure::usage(format!(
                "--ratio {ratio} is not a number from 1 on: nothing gets larger than it is"
            )));
        }
        let known = start.costs.filter(|_| self.ratio.is_none());
        let mut costs = known.unwrap_or_else(|| costs_of_ratio(ratio));
        let times = start.codec_cpu;
        for cost in &mut costs.0[1..] {
            cost.compress *= times.compress.unwrap_or(1.0);
            cost.decompress *= times.decompress.unwrap_or(1.0);
        }
        let all = [("CPU to compress", times.compress), ("CPU to decompress", times.decompress)];
        for (what, times) in all {
            match times {
                Some(times) => told.taken(&format!("{what} ({times:.2} times the usual)")),
                None => told.lacks(what, "the usual", ""),
            }
        }
        Ok((key, value, costs))
    }

    /// The engine's settings.
    fn config(&self, start: &Start, told: &mut Told) -> Outcome<Config> {
        let mut config =
            told.pick(("settings", ""), None, start.config.clone(), (Config::default(), "default"));
        config.memory_bytes = self.memory.unwrap_or(config.memory_bytes);
        config.memtable_bytes = self.memtable.unwrap_or(config.memtable_bytes);
        config.background_threads = self.threads.unwrap_or(config.background_threads);
        config.space_limit = self.space_limit.unwrap_or(config.space_limit);
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
        Ok(config)
    }

    /// What is written and read.
    fn load(&self, start: &Start, told: &mut Told) -> Outcome<Load> {
        let known = start.load.clone().unwrap_or_default();
        let Some(write) = self.write.or(start.load.as_ref().map(|load| [load.write; HOURS])) else {
            return Err(Failure::usage(
                "--write is missing: a database does not say what will be written to it. Name a \
                 rate such as 40MB/s",
            ));
        };
        let order = self.order.map(|order| match order {
            Place::Random => Order::Random,
            Place::Ascending => Order::Ascending,
        });
        let load = Load {
            bytes_per_second: write,
            clients: known.clients.max(1.0),
            inserts: told.pick(
                ("share of new rows", "--inserts"),
                self.inserts,
                known.inserts,
                (0.0, "0"),
            ),
            deletes: told.pick(
                ("share of deletes", "--deletes"),
                self.deletes,
                known.deletes,
                (0.0, "0"),
            ),
            order: told.pick(
                ("order of new rows", "--order"),
                order,
                known.order,
                (Order::Random, "random"),
            ),
            skew: told.pick(("skew", "--skew"), self.skew, known.skew, (Skew::Uniform, "uniform")),
            reads_per_second: told.pick(
                ("point reads", "--reads"),
                self.reads,
                known.reads,
                (0.0, "none"),
            ),
            retention_days: self.retention,
            // With a size of its own all rows are there.
            universe_bytes: if self.size.is_none() { known.universe } else { 0.0 },
        };
        if self.write.is_none() {
            let held = if known.as_fast { "as fast as it went" } else { "a rate that was held" };
            told.load(format!("The load is {} written ({held})", rate(known.write)));
        } else {
            told.load("The start is".to_owned());
        }
        if !known.others.is_empty() {
            told.note(format!(
                "Its operations {} are not in the model.",
                known.others.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ")
            ));
        }
        Ok(load)
    }

    /// The machine, and what work costs there.
    fn machine(&self, start: &Start, row_bytes: f64, told: &mut Told) -> Machine {
        let device = Device {
            bytes_per_second: 500e6,
            reads_per_second: 20e3,
            life_bytes: f64::INFINITY,
            slower_each_year: 0.0,
        };
        let machine = Machine {
            cores: told.pick(("cores", "--cores"), self.cores, None, (8.0, "8")),
            memory_bytes: told.pick(("RAM", "--ram"), self.ram, start.ram, (32 << 30, "32GiB")),
            device: told.pick(
                ("device", "--device"),
                self.device,
                None,
                (device, "500MB/s,20kiops"),
            ),
            work: usual_work(row_bytes),
        };
        // On rows of another size its work would be another.
        let same = self.key.is_none() && self.value.is_none();
        let known = if same { start.work } else { Known::default() };
        let usual = machine.work;
        let mut each = |what, known: Option<f64>, usual: f64| {
            let flag = if self.measure { Some(usual) } else { None };
            let shown = format!("{usual:.0} ns");
            told.pick((what, "--measure"), flag, known, (usual, &shown))
        };
        let work = Work {
            put: each("CPU of a write", known.put, usual.put),
            flush_row: each("CPU of a flushed row", known.flush_row, usual.flush_row),
            merge_row: each("CPU of a merged row", known.merge_row, usual.merge_row),
            get: each("CPU of a get", known.get, usual.get),
            // What the system takes for a byte is in the rows' figures.
            byte: if known.flush_row.is_some() { 0.0 } else { usual.byte },
        };
        Machine { work, ..machine }
    }

    /// How much of it to run.
    pub(super) fn effort(&self) -> Effort {
        match self.care {
            Care::Little => Effort { flushes: 1_000.0, tables: 250.0, ..Effort::default() },
            Care::Usual => Effort::default(),
            Care::Great => Effort { flushes: 120_000.0, tables: 4_000.0, ..Effort::default() },
        }
    }
}

/// The tables with which it begins.
fn existing(scenario: &Scenario, start: &Start, told: &mut Told) -> Option<Existing> {
    let Some(run) = &start.run else { return start.existing.clone() };
    let random = scenario.load.order == Order::Random;
    match start.levels.as_ref().filter(|_| random) {
        Some(levels) => {
            told.taken("levels at the end");
            Some(sums::existing(scenario, run, levels))
        }
        None => {
            let why = if random { "their usual shape" } else { "as loaded in order" };
            told.lacks("levels at the end", why, "");
            None
        }
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
