//! From a sample to what each choice would take: sizes, CPU, write amplification.
//!
//! The sample is written under each choice by the engine itself. Three things are then scaled:
//!
//! - **Rows.** A file's length is known, and how many bytes of it the sample's rows take.
//! - **Density.** The tree sorts by key. If rows of all stretches lie between each other, there
//!   are others between any two of the sample, and neighbours are more alike than here. How the
//!   bytes of a row fall from a quarter of the stretches to half of them to all is carried on.
//! - **The tree's shape.** A load that merges is tried in a tree of the whole's shape (`scale`).

use super::amp::{Data, Shape, write_amp};
use super::bound;
use super::build::{Built, Workshop};
use super::choice::{Choice, USUAL_BLOCK_BYTES};
use super::layers::Layers;
use super::sample::{Order, Sample, Seen, Stretch};
use super::scale::{Line, LoadModel, PART, usual};
use crate::exit::Outcome;
use serde::Serialize;
use shaledb::Codec;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What no sample shows: where tables end, which blocks a dictionary is made of.
const BOUND_OF_MODEL: f64 = 0.015;
/// Of a source that was read only at its beginning.
const BOUND_OF_HEAD: f64 = 0.2;
/// Of rows that lie between each other, if how sizes fall with density was not measured.
const BOUND_OF_DENSITY: f64 = 0.2;

/// Fewer stretches have no quarters that tell how sizes fall with density.
pub(super) const STRETCHES_OF_DENSITY: usize = 8;

/// Fewer keys that begin inside of stretches may as well be twice as many, or none.
const FEW_BEGINNINGS: f64 = 4.0;

/// The most and least keys that are read.
const KEYS_MAX: usize = 1000;

/// What one choice would take.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Prediction {
    #[serde(flatten)]
    pub(super) choice: Choice,
    /// Tables and blobs of the last level, when all is merged.
    pub(super) size_bytes: f64,
    /// Half of the 95 % interval, as a part of the size.
    pub(super) size_bound: f64,
    /// All threads, for the whole load.
    pub(super) load_cpu_seconds: f64,
    pub(super) load_us_per_row: f64,
    /// CPU of a get whose block is in the system's cache only.
    pub(super) get_us: f64,
    /// CPU of a get whose block is in the engine's cache.
    pub(super) cached_get_us: f64,
    /// Of the load; null if it cannot be told.
    pub(super) write_amp: Option<f64>,
    /// Of updates at the rate that was asked for.
    pub(super) write_amp_at_rate: Option<f64>,
}

/// All choices, and what they have in common.
#[derive(Debug, Serialize)]
pub(super) struct Predicted {
    pub(super) rows: f64,
    /// Rows of different keys, which is what is stored.
    pub(super) distinct_rows: f64,
    /// Keys and values.
    pub(super) bytes: f64,
    pub(super) order: Order,
    /// Whether the load writes tables directly.
    pub(super) direct: bool,
    /// Whether sizes were carried on from parts of the sample to the density of the whole.
    pub(super) is_density_measured: bool,
    /// Stored bytes for each byte of the source in its first and its second half, if they differ.
    pub(super) halves: Option<(f64, f64)>,
    /// Whether all fits into one memtable is not sure: else it is written twice.
    pub(super) is_about_one_flush: bool,
    /// The bytes that the database's memory is bounded by.
    pub(super) memory_bytes: u64,
    pub(super) choices: Vec<Prediction>,
}

/// Predicts every choice.
pub(super) fn predict(
    sample: &Sample,
    choices: &[Choice],
    workshop: &Workshop,
    memory_bytes: u64,
    rate: Option<f64>,
) -> Outcome<Predicted> {
    let rows = Sample::sorted(sample.stretches.iter());
    let spreads = spreads(sample, choices, workshop)?;
    let density = Density::measure(sample, choices, workshop)?;
    let direct = sample.order == Order::Ascending;
    let mut tried = HashMap::new();
    for &choice in choices {
        let keys = keys(sample, choice.block_bytes);
        let few = workshop.ingested(choice, &rows[..rows.len() / PART], &[])?;
        let built = workshop.ingested(choice, &rows, &keys)?;
        let cpu = Line::through((few.cpu_seconds, few.rows), (built.cpu_seconds, built.rows));
        tried.insert(choice, (built, cpu));
    }
    let model = LoadModel::new(sample, memory_bytes, workshop)?;
    let mut loads = HashMap::new();
    let mut of_full_memtable = 0.0;
    if !direct {
        for codec in codecs(choices) {
            loads.insert(codec, model.load(sample, usual(codec, choices), workshop)?);
        }
        let fixed = loads.values().map(|load| load.cpu.fixed).fold(f64::INFINITY, f64::min);
        of_full_memtable = model.of_full_memtable(sample, workshop, fixed)?;
    }
    let mut predictions = Vec::new();
    for &choice in choices {
        let (built, mut cpu) = tried[&choice];
        let spread = &spreads[&kind(choice.codec)];
        let (mut size_bytes, size_bound) = size(sample, choice, &built, &density, spread);
        let load = loads.get(&choice.codec);
        if let Some(load) = load {
            let (other, of_other) = tried[&usual(choice.codec, choices)];
            let of_row = load.cpu.of_row + load.times * (cpu.of_row - of_other.of_row);
            let fixed = load.cpu.fixed + cpu.fixed - of_other.fixed;
            cpu = Line { fixed: fixed.max(0.0), of_row: of_row.max(cpu.of_row) + of_full_memtable };
            if model.is_one_flush() {
                size_bytes += sequence_bytes(sample, &load.built, &other);
            }
        }
        let data = data(sample, choice, size_bytes, model.memory_bytes);
        let shape = Shape {
            once: direct || model.is_one_flush(),
            bytes: sample.total_bytes(),
            stored: size_bytes,
            times: load.filter(|_| model.is_to_scale).map(|load| load.times),
        };
        let seconds = cpu.at(sample.total_rows());
        predictions.push(Prediction {
            choice,
            size_bytes,
            size_bound,
            load_cpu_seconds: seconds,
            load_us_per_row: seconds / sample.total_rows() * 1e6,
            get_us: built.get_us,
            cached_get_us: built.cached_get_us,
            write_amp: write_amp(&shape),
            write_amp_at_rate: rate.map(|rate| data.at_rate(rate)).transpose()?.flatten(),
        });
    }
    Ok(Predicted {
        rows: sample.total_rows(),
        distinct_rows: sample.total_distinct(),
        bytes: sample.total_bytes(),
        order: sample.order,
        direct,
        is_density_measured: density.is_measured(),
        halves: kinds(choices).iter().rev().find_map(|kind| bound::halves(&spreads[kind])),
        is_about_one_flush: !direct && sample.seen != Seen::All && model.is_about_one_flush(),
        memory_bytes: model.memory_bytes,
        choices: predictions,
    })
}

/// What the model of files needs to know of the rows.
fn data(sample: &Sample, choice: Choice, size_bytes: f64, memory_bytes: u64) -> Data {
    let keys = |stretch: &Stretch| stretch.rows.iter().map(|(key, _)| key.len()).sum::<usize>();
    let rows = (sample.rows as f64).max(1.0);
    let key_bytes = sample.stretches.iter().map(keys).sum::<usize>() as f64 / rows;
    let row_bytes = sample.bytes as f64 / rows;
    let bytes = sample.total_distinct() * row_bytes;
    let value_bytes = row_bytes - key_bytes;
    let ratio = size_bytes / bytes.max(1.0);
    Data { choice, key_bytes, value_bytes, bytes, ratio, memory_bytes }
}

/// The bytes that a choice would take, and how far off that may be.
fn size(
    sample: &Sample,
    choice: Choice,
    built: &Built,
    density: &Density,
    spread: &[f64],
) -> (f64, f64) {
    if sample.seen == Seen::All {
        return (built.stored as f64, BOUND_OF_MODEL);
    }
    let distinct = sample.total_distinct();
    let of_row = built.stored as f64 / built.rows.max(1) as f64;
    let factor = density.factor(choice.plain(), of_row, distinct / built.rows.max(1) as f64);
    let of_density = (factor.0 - 1.0).abs() / 2.0 + factor.1;
    let parts = [
        bound::relative(spread, sample.share()),
        of_density / factor.0,
        of_repeats(sample),
        BOUND_OF_MODEL,
        if sample.seen == Seen::Head { BOUND_OF_HEAD } else { 0.0 },
        sample.total_bound,
        of_rowless(sample, built),
        of_interleaved(sample),
        if sample.order == Order::Mixed && !density.is_measured() { BOUND_OF_DENSITY } else { 0.0 },
    ];
    let bound = parts.iter().map(|part| part * part).sum::<f64>().sqrt();
    (distinct * of_row * factor.0, bound)
}

/// Bytes of sequence numbers: rows that were flushed and never merged have theirs still.
fn sequence_bytes(sample: &Sample, flushed: &Built, ingested: &Built) -> f64 {
    let more = flushed.stored as f64 - ingested.stored as f64;
    more / ingested.rows.max(1) as f64 * sample.total_distinct()
}

/// Runs with other keys put rows between those that are neighbours in a stretch.
fn of_interleaved(sample: &Sample) -> f64 {
    let between = |layers: &Layers| 1.0 - 1.0 / (layers.distinct * layers.depth).max(1.0);
    BOUND_OF_DENSITY * sample.layers.as_ref().map_or(0.0, between)
}

/// Long rows that were not read may compress to nothing, or not at all.
fn of_rowless(sample: &Sample, built: &Built) -> f64 {
    let ratio = built.stored as f64 / (sample.bytes as f64).max(1.0);
    sample.share_without_rows() * (1.0 / ratio.max(0.01) - 1.0).max(1.0)
}

/// How far the number of different keys may be off, as a part of it.
fn of_repeats(sample: &Sample) -> f64 {
    if let Some(layers) = &sample.layers {
        return layers.bound;
    }
    let within = sample.distinct_within as f64;
    let shared = within - sample.distinct as f64;
    let all = sample.total_rows() * within / sample.rows as f64;
    match sample.order {
        Order::Ascending => return 0.0,
        Order::Clustered => {
            let replaced = 1.0 - sample.total_distinct() / sample.total_rows();
            let begun = sample.beginnings().max(1.0);
            let off = 2.0 / begun.sqrt();
            return replaced.max(0.0) * if begun < FEW_BEGINNINGS { off.max(1.0) } else { off };
        }
        Order::Mixed => {}
    }
    if shared < 1.0 {
        // With less than three pairs expected none is seen once in twenty times.
        return (3.0 * all / (within * within)).min(0.5);
    }
    let replaced = 1.0 - sample.total_distinct() / all;
    replaced * (0.1 + 2.0 / shared.sqrt())
}

/// What stands for a codec where the differences between stretches are measured.
fn kind(codec: Codec) -> Codec {
    match codec {
        Codec::None | Codec::Lz4 => codec,
        _ => Codec::Zstd(3),
    }
}

fn codecs(choices: &[Choice]) -> Vec<Codec> {
    let mut codecs: Vec<Codec> = Vec::new();
    for choice in choices {
        if !codecs.contains(&choice.codec) {
            codecs.push(choice.codec);
        }
    }
    codecs
}

fn kinds(choices: &[Choice]) -> Vec<Codec> {
    let mut kinds: Vec<Codec> = Vec::new();
    for codec in codecs(choices).into_iter().map(kind) {
        if !kinds.contains(&codec) {
            kinds.push(codec);
        }
    }
    kinds
}

/// Bytes stored for each unit of the source, by stretch, for each kind of codec.
fn spreads(
    sample: &Sample,
    choices: &[Choice],
    workshop: &Workshop,
) -> Outcome<HashMap<Codec, Vec<f64>>> {
    let kinds = kinds(choices);
    let mut works = Vec::new();
    for &codec in &kinds {
        let choice = Choice { codec, block_bytes: USUAL_BLOCK_BYTES, dictionary: false };
        works.extend(sample.stretches.iter().map(|stretch| (choice, vec![stretch])));
    }
    let stored = stored_of_all(workshop, &works)?;
    let mut spreads: HashMap<Codec, Vec<f64>> = HashMap::new();
    for ((choice, stretches), stored) in works.iter().zip(stored) {
        let units = stretches[0].units;
        if units > 0 {
            spreads.entry(choice.codec).or_default().push(stored as f64 / units as f64);
        }
    }
    Ok(kinds.into_iter().map(|kind| (kind, spreads.remove(&kind).unwrap_or_default())).collect())
}

/// A choice, and the stretches whose rows are written under it.
type Work<'a> = (Choice, Vec<&'a Stretch>);

/// What each takes, tried by as many threads as there are cores.
fn stored_of_all(workshop: &Workshop, works: &[Work<'_>]) -> Outcome<Vec<u64>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Outcome<u64>)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((choice, stretches)) = works.get(at) else { return };
            let rows = Sample::sorted(stretches.iter().copied());
            let stored = workshop.stored(*choice, &rows);
            if let Ok(mut done) = done.lock() {
                done.push((at, stored));
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..threads.min(works.len()) {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, stored)| stored).collect()
}

/// How the bytes of a row fall as rows come to lie closer to each other, by choice without a
/// dictionary.
#[derive(Debug, Default)]
struct Density {
    /// Bytes of a row in a quarter of the stretches, in half of them, and in all.
    of_row: HashMap<Choice, [f64; 3]>,
}

impl Density {
    fn measure(sample: &Sample, choices: &[Choice], workshop: &Workshop) -> Outcome<Density> {
        let mut density = Density::default();
        let is_few = sample.stretches.len() < STRETCHES_OF_DENSITY;
        if sample.order != Order::Mixed || sample.seen == Seen::All || is_few {
            return Ok(density);
        }
        // Each of the parts has stretches from all over the source, and together they have all: so
        // what differs between the parts does not count.
        let part = |of: usize, number: usize| -> Vec<&Stretch> {
            sample.stretches.iter().skip(number).step_by(of).collect()
        };
        let mut works: Vec<Work<'_>> = Vec::new();
        let plain: Vec<Choice> =
            choices.iter().copied().filter(|choice| *choice == choice.plain()).collect();
        for &choice in &plain {
            for of in [4, 2, 1] {
                works.extend((0..of).map(|number| (choice, part(of, number))));
            }
        }
        let stored = stored_of_all(workshop, &works)?;
        for (number, &choice) in plain.iter().enumerate() {
            let mut of_row = [0.0; 3];
            let mut at = number * 7;
            for (of_row, of) in of_row.iter_mut().zip([4, 2, 1]) {
                let rows: usize = works[at..at + of].iter().map(|work| different(&work.1)).sum();
                let bytes: u64 = stored[at..at + of].iter().sum();
                *of_row = bytes as f64 / rows.max(1) as f64;
                at += of;
            }
            density.of_row.insert(choice, of_row);
        }
        Ok(density)
    }

    fn is_measured(&self) -> bool {
        !self.of_row.is_empty()
    }

    /// By what the bytes of a row change if there are `denser` times as many rows, and how far
    /// that may be off.
    fn factor(&self, choice: Choice, of_row: f64, denser: f64) -> (f64, f64) {
        let Some([quarter, half, all]) = self.of_row.get(&choice) else { return (1.0, 0.0) };
        let doublings = denser.max(1.0).log2();
        let slope = (all - quarter) / 2.0;
        let bend = ((all - half) - (half - quarter)).abs();
        let factor = 1.0 + slope * doublings / of_row;
        let error = bend * doublings / 2.0 / of_row;
        (factor.clamp(0.2, 1.5), error.min(1.0))
    }
}

fn different(stretches: &[&Stretch]) -> usize {
    let keys = stretches.iter().flat_map(|stretch| &stretch.rows).map(|(key, _)| key.as_slice());
    keys.collect::<std::collections::HashSet<_>>().len()
}

/// Keys of the sample that are not in the same or the next block of so many bytes, in an order of
/// chance.
pub(super) fn keys(sample: &Sample, block_bytes: u32) -> Vec<&[u8]> {
    let gap = (block_bytes as usize * 3 / 2).max(sample.bytes as usize / KEYS_MAX);
    let mut passed = 0;
    let mut keys: Vec<&[u8]> = Vec::new();
    for (key, value) in Sample::sorted(sample.stretches.iter()) {
        passed += key.len() + value.len();
        if passed >= gap || keys.is_empty() {
            passed = 0;
            keys.push(key);
        }
    }
    let mut random = shaledb_lab::generate::Random::named(1, "advise reads", 0);
    for at in (1..keys.len()).rev() {
        keys.swap(at, random.below(at as u64 + 1) as usize);
    }
    keys
}
