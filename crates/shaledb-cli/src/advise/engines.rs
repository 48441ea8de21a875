//! `--engines`: samples of three sizes are loaded into other engines too, in trees and caches as
//! much smaller as the samples are, and what they took is carried on to the whole.

use super::build::Workshop;
use super::check::Compared;
use super::everything::Everything;
use super::fit::{Fitted, carry_on};
use super::predict::Predicted;
use super::sample::{Order, Row, Sample, Seen};
use crate::exit::{Exit, Failure, Outcome};
use serde::Serialize;
use shaledb_lab::campaign::{self, CampaignOptions, Group, Subject};
use shaledb_lab::run::row::Row as Result;
use shaledb_lab::setup::Setup;
use shaledb_lab::units::bytes;
use shaledb_lab::workloads::rows::RowsOptions;
use shaledb_lab::workloads::rows::file::{RowWriter, Written};
use shaledb_lab::workloads::workload::Workload;
use std::sync::atomic::Ordering;

/// The engine that others stand beside.
const OWN: &str = "shale";

/// The parts of the sample that are loaded, as its divisors.
const PARTS: [usize; 3] = [4, 2, 1];
/// Fewer stretches are not dealt out to the parts: these have the first rows then.
const STRETCHES_TO_DEAL: usize = 8;
/// The setting of all rows, which `--check` loads.
const ALL: &str = "all";

/// Of what every engine gets: a memtable of the whole, and the least of the samples'.
const MEMTABLE_BYTES: u64 = 64 << 20;
const MEMTABLE_BYTES_MIN: u64 = 1 << 20;
const MEMORY_BYTES_MIN: u64 = 32 << 20;

/// How many rows are looked up.
const GETS: u64 = 20_000;

/// How far off CPU is by what else a machine does.
const CPU_BOUND: f64 = 0.2;
/// How far off bytes written are: an engine merges as time allows, and a small load gives it less.
const WRITTEN_BOUND: f64 = 0.4;

/// What one engine would take.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OfEngine {
    pub(super) engine: String,
    pub(super) version: String,
    /// All of its files at rest, in bytes.
    pub(super) size: Fitted,
    /// CPU seconds of the engine to load all, with what is left to be merged or written then.
    pub(super) load_cpu: Fitted,
    /// Bytes written to the device for that, logs included.
    pub(super) written: Fitted,
    /// CPU microseconds of a look-up, with a cache that has the same share of the data as
    /// `--memory` has of the whole; none if so small a cache cannot be given.
    pub(super) get_us: Option<f64>,
    /// What the samples took.
    pub(super) samples: Vec<Took>,
    /// Only with `--check`.
    pub(super) checked: Option<CheckedEngine>,
}

/// What so many rows took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Took {
    pub(super) rows: f64,
    pub(super) size_bytes: f64,
    pub(super) load_cpu_seconds: f64,
    pub(super) written_bytes: f64,
    pub(super) get_us: f64,
}

/// Predicted beside measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct CheckedEngine {
    pub(super) size: Compared,
    pub(super) load_cpu: Compared,
    pub(super) written: Compared,
    /// None if it was not foreseen.
    pub(super) get_us: Option<Compared>,
}

/// All of them.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Engines {
    pub(super) engines: Vec<OfEngine>,
    /// Those that could not be measured, and why.
    pub(super) missing: Vec<Missing>,
    /// Rows and bytes of keys and values of the largest sample.
    pub(super) sample_rows: u64,
    pub(super) sample_bytes: u64,
    /// Whether the samples' trees have the shape that the whole's will have.
    pub(super) is_to_scale: bool,
    /// The memory that is to the sample as `--memory` is to the whole. Engines are given no less
    /// than some, and then their look-ups tell nothing.
    pub(super) cache: Cache,
}

/// How much of the whole's memory an engine with a sample is to have.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Cache {
    pub(super) wanted_bytes: u64,
    pub(super) is_to_scale: bool,
}

impl Cache {
    /// Of a sample that is such a share of the whole.
    fn of(memory_bytes: u64, share: f64) -> Cache {
        let wanted_bytes = (memory_bytes as f64 * share.min(1.0)) as u64;
        // What is not larger than a sample has all of the memory, however little that is.
        let is_to_scale = share >= 1.0 || wanted_bytes >= MEMORY_BYTES_MIN;
        Cache { wanted_bytes, is_to_scale }
    }
}

/// An engine that could not be measured.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Missing {
    pub(super) engine: String,
    pub(super) why: String,
}

/// The engines that are asked for, Shale first. Those that are no engine are refused.
pub(super) fn named(asked: &[String]) -> Outcome<Vec<String>> {
    let known = campaign::ENGINES.map(|(name, _)| name);
    let mut engines = vec![OWN.to_owned()];
    for name in asked {
        if !known.contains(&name.as_str()) || name == "null" {
            let names: Vec<&str> = known.into_iter().filter(|name| *name != "null").collect();
            return Err(Failure::usage(format!(
                "--engines: there is no engine `{name}`; there are {}",
                names.join(", ")
            )));
        }
        if !engines.contains(name) {
            engines.push(name.clone());
        }
    }
    Ok(engines)
}

/// Loads samples into each of them, and with `everything` all rows.
pub(super) fn compare(
    asked: &[String],
    sample: &Sample,
    predicted: &Predicted,
    everything: Option<&Everything>,
    workshop: &Workshop,
) -> Outcome<Engines> {
    let mut missing = Vec::new();
    let mut engines = named(asked)?;
    engines.retain(|engine| match campaign::driver(engine) {
        Ok(_) => true,
        Err(error) => {
            let why = format!("not installed: {error}");
            missing.push(Missing { engine: engine.clone(), why });
            false
        }
    });
    let repeats = sample.rows > sample.distinct || predicted.rows > predicted.distinct_rows * 1.01;
    let mut groups = Vec::new();
    for of in PARTS {
        let rows = written(workshop, &of.to_string(), |writer| {
            part(sample, of).try_for_each(|(key, value)| Ok(writer.add(key, value)?))
        })?;
        let share = rows.1.bytes as f64 / sample.total_bytes().max(1.0);
        groups.push(group(&engines, &of.to_string(), rows, repeats, share, predicted));
    }
    let share = sample.bytes as f64 / sample.total_bytes().max(1.0);
    if let Some(everything) = everything {
        let rows = written(workshop, ALL, |writer| {
            let (mut feed, mut chunk) = (everything.feed()?, Vec::new());
            while feed(&mut chunk)? {
                for (key, value) in &chunk {
                    writer.add(key, value)?;
                }
            }
            Ok(())
        })?;
        // What was not read may have keys that come again; those of a tree do not.
        let repeats =
            repeats || matches!(everything, Everything::Files(..)) && sample.seen != Seen::All;
        groups.push(group(&engines, ALL, rows, repeats, 1.0, predicted));
    }
    let options = CampaignOptions::quietly(workshop.file("run"), workshop.file("stores"), 1);
    let stop = crate::signals::stop_flag()?;
    let outcome = campaign::run(&options, groups, &|| stop.load(Ordering::Relaxed))?;
    if outcome.stopped {
        return Err(Failure::new(Exit::Stopped, "stopped: there is no advice"));
    }
    let cache = Cache::of(predicted.memory_bytes, share);
    let mut found = Vec::new();
    for engine in &engines {
        let took = |setting: &str| took(&outcome.rows, engine, setting);
        let points: Option<Vec<Took>> = PARTS.iter().map(|of| took(&of.to_string())).collect();
        let Some(points) = points else {
            let begin = format!(" of {engine} ");
            let why = outcome.failed.iter().find(|text| text.contains(&begin));
            let why = why.map_or("a step failed", String::as_str).to_owned();
            missing.push(Missing { engine: engine.clone(), why });
            continue;
        };
        let version = outcome.rows.iter().find(|row| row.engine == *engine);
        let version = version.map_or_else(String::new, |row| row.version.clone());
        let mut one = of_engine(engine, version, points, took(ALL), sample, predicted);
        if !cache.is_to_scale {
            one.leave_out_gets();
        }
        found.push(one);
    }
    Ok(Engines {
        engines: found,
        missing,
        sample_rows: sample.rows,
        sample_bytes: sample.bytes,
        is_to_scale: MEMTABLE_BYTES as f64 * share / PARTS[0] as f64 >= MEMTABLE_BYTES_MIN as f64
            || sample.total_bytes() < MEMTABLE_BYTES as f64,
        cache,
    })
}

/// A part of the sample: stretches from all over the source, in its order.
fn part(sample: &Sample, of: usize) -> Box<dyn Iterator<Item = &Row> + '_> {
    let rows = sample.stretches.iter();
    if sample.stretches.len() >= STRETCHES_TO_DEAL {
        return Box::new(rows.step_by(of).flat_map(|stretch| &stretch.rows));
    }
    let count = (sample.rows as usize / of).max(1);
    Box::new(rows.flat_map(|stretch| &stretch.rows).take(count))
}

/// A file of rows, and what is in it.
type OfFile = (std::path::PathBuf, Written);

fn written(
    workshop: &Workshop,
    name: &str,
    write: impl FnOnce(&mut RowWriter) -> Outcome<()>,
) -> Outcome<OfFile> {
    let path = workshop.file(&format!("rows-{name}"));
    let mut writer = RowWriter::create(&path)?;
    write(&mut writer)?;
    Ok((path, writer.finish()?))
}

/// The same work of all engines, with parts that are `share` of the whole's.
fn group(
    engines: &[String],
    setting: &str,
    (file, written): OfFile,
    repeats: bool,
    share: f64,
    predicted: &Predicted,
) -> Group {
    let part = |bytes: u64| (bytes as f64 * share.min(1.0)) as u64;
    let memory = predicted.memory_bytes.max(MEMORY_BYTES_MIN);
    let memory = part(memory).max(MEMORY_BYTES_MIN);
    let setup = Setup {
        memory,
        // Four have to find room.
        memtable: part(MEMTABLE_BYTES).clamp(MEMTABLE_BYTES_MIN, MEMTABLE_BYTES.min(memory / 4)),
        ..Setup::default()
    };
    let Written { rows, bytes, key_bytes_max } = written;
    let rows = RowsOptions { file, rows, bytes, key_bytes_max, repeats, gets: GETS };
    let subject = |engine: &String| Subject {
        engine: engine.clone(),
        setting: setting.to_owned(),
        setup: setup.of_engine(engine),
    };
    Group { workload: Workload::Rows(rows), subjects: engines.iter().map(subject).collect() }
}

/// What the three steps of an engine took; `None` if one of them is not there.
fn took(rows: &[Result], engine: &str, setting: &str) -> Option<Took> {
    let step = |name: &str| {
        let is = |row: &&Result| row.engine == engine && row.setting == setting && row.step == name;
        rows.iter().find(is)
    };
    let (load, idle, get) = (step("load")?, step("wait_idle")?, step("get")?);
    let both = [load, idle];
    let of_close = |of: &dyn Fn(&shaledb_lab::run::row::Opened) -> f64| -> f64 {
        both.iter().filter_map(|row| row.close.as_ref()).map(of).sum()
    };
    let cpu = |row: &&Result| row.cpu.us_per_op * row.ops as f64 / 1e6;
    let size = idle.extra.get("closed_size_bytes").copied();
    Some(Took {
        rows: load.ops as f64,
        size_bytes: size.unwrap_or(idle.size_bytes as f64),
        load_cpu_seconds: both.iter().map(cpu).sum::<f64>() + of_close(&|close| close.cpu_seconds),
        written_bytes: both.iter().map(|row| row.io.written_bytes as f64).sum::<f64>()
            + of_close(&|close| close.written_bytes as f64),
        get_us: get.cpu.us_per_op,
    })
}

/// Carries what the samples took on to the whole.
fn of_engine(
    engine: &str,
    version: String,
    points: Vec<Took>,
    all: Option<Took>,
    sample: &Sample,
    predicted: &Predicted,
) -> OfEngine {
    let rows = sample.total_rows();
    let is_bending = sample.order == Order::Mixed;
    let fitted = |of: &dyn Fn(&Took) -> f64| {
        let point = |at: usize| (points[at].rows, of(&points[at]));
        carry_on([point(0), point(1), point(2)], rows, is_bending)
    };
    // How much stretches differ was measured for Shale.
    let of_sample = match sample.seen {
        Seen::All => 0.0,
        _ => predicted.choices.iter().map(|choice| choice.size_bound).fold(0.0, f64::max),
    };
    let size = fitted(&|took| took.size_bytes).and(of_sample);
    let load_cpu = fitted(&|took| took.load_cpu_seconds).and(of_sample).and(CPU_BOUND);
    let written = fitted(&|took| took.written_bytes).and(of_sample).and(WRITTEN_BOUND);
    let get_us = points[points.len() - 1].get_us;
    let checked = all.map(|all| CheckedEngine {
        size: Compared::new(size.value, all.size_bytes),
        load_cpu: Compared::new(load_cpu.value, all.load_cpu_seconds),
        written: Compared::new(written.value, all.written_bytes),
        get_us: Some(Compared::new(get_us, all.get_us)),
    });
    let (engine, get_us) = (engine.to_owned(), Some(get_us));
    OfEngine { engine, version, size, load_cpu, written, get_us, samples: points, checked }
}

impl OfEngine {
    /// The cache of the samples was not as much smaller as they are. That of all rows was the whole
    /// one.
    fn leave_out_gets(&mut self) {
        self.get_us =
            self.checked.as_mut().and_then(|checked| checked.get_us.take()).map(|get| get.measured);
    }
}

/// What a reader must know about these figures.
pub(super) fn words(engines: &Engines) -> Vec<String> {
    let mut words = vec![
        "Of each engine: samples of three sizes were loaded by commits of 1,000 rows, as a key and \
         a value, until nothing was left to merge or write; cache and memtables were as much \
         smaller as the samples. What they took is carried on to the whole. Written are all bytes \
         to the device, logs included. docs/peers.md says how each engine is set up."
            .to_owned(),
    ];
    if !engines.is_to_scale {
        words.push(
            "The samples are too small a part for trees of the same shape: what a load writes, and \
             its CPU, lack merges between levels. A larger --engine-sample has them."
                .to_owned(),
        );
    }
    if !engines.cache.is_to_scale {
        words.push(format!(
            "A cache as much smaller as the samples would have {}, and engines are given {} at \
             least: look-ups of samples are left out. A larger --engine-sample or --memory has \
             them.",
            bytes(engines.cache.wanted_bytes),
            bytes(MEMORY_BYTES_MIN)
        ));
    }
    let own = engines.engines.iter().find(|one| one.engine == OWN);
    for other in engines.engines.iter().filter(|one| one.engine != OWN) {
        let Some(own) = own else { break };
        let times = |other: f64, own: f64| shaledb_lab::units::three_digits(other / own.max(1e-12));
        let mut parts = vec![
            format!("{} times Shale's space", times(other.size.value, own.size.value)),
            format!("{} times its CPU to load", times(other.load_cpu.value, own.load_cpu.value)),
            format!("{} times its bytes written", times(other.written.value, own.written.value)),
        ];
        if let Some((other, own)) = other.get_us.zip(own.get_us) {
            parts.push(format!("{} times its CPU for a look-up", times(other, own)));
        }
        let last = parts.pop().unwrap_or_default();
        words.push(format!("{} would take {}, and {last}.", other.engine, parts.join(", ")));
    }
    words.extend(engines.missing.iter().map(|one| format!("{}: {}.", one.engine, one.why)));
    words.extend(engines.engines.iter().flat_map(outside));
    words
}

/// Which figures of a check are outside of their bounds.
fn outside(one: &OfEngine) -> Vec<String> {
    let Some(checked) = &one.checked else { return Vec::new() };
    let figures = [
        ("size", checked.size, one.size.bound),
        ("CPU to load", checked.load_cpu, one.load_cpu.bound),
        ("bytes written", checked.written, one.written.bound),
    ];
    figures
        .into_iter()
        .filter(|(_, compared, bound)| compared.error.abs() > *bound)
        .map(|(what, compared, bound)| {
            format!(
                "Outside of the bound: {what} of {} was measured {:+.1} % beside what was \
                 predicted; the bound is {:.1} %.",
                one.engine,
                -compared.error * 100.0,
                bound * 100.0
            )
        })
        .collect()
}

#[cfg(test)]
#[path = "engines_tests.rs"]
mod tests;
