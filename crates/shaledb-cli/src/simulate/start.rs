//! What a forecast begins with, as far as `--from` tells it: of a database, or of a run of the lab.

use super::lab_load::{Load, load};
use super::lab_row::Chosen;
use super::lab_work::{CodecCpu, Known, codec, codec_cpu, known};
use super::sample;
use crate::exit::Outcome;
use shaledb::compaction::policy::candidates::{Costs, YARDSTICK};
use shaledb::{Config, Env};
use shaledb_forecast::Existing;
use shaledb_forecast::sums::LevelSum;
use shaledb_lab::workloads::kv::{Benchmark, KvOptions};
use std::path::Path;

/// Bytes of a run's rows that are compressed, to know what codecs do to them.
const SAMPLE_BYTES: usize = 1 << 20;

/// What is known; `None` where nothing is.
#[derive(Debug, Default)]
pub(super) struct Start {
    /// Bytes of a key.
    pub(super) key: Option<f64>,
    /// Bytes of a value.
    pub(super) value: Option<f64>,
    /// How many times smaller zstd:3 makes the rows.
    pub(super) ratio: Option<f64>,
    /// What each codec does to them.
    pub(super) costs: Option<Costs>,
    /// Bytes of keys and values of all rows.
    pub(super) live: Option<f64>,
    /// The settings: of a database those of its tree.
    pub(super) config: Option<Config>,
    /// A database's tables.
    pub(super) existing: Option<Existing>,
    /// Of a run: which row, in words.
    pub(super) run: Option<String>,
    /// The levels at the end of a run.
    pub(super) levels: Option<Vec<LevelSum>>,
    /// A run's load.
    pub(super) load: Option<Load>,
    /// The memory that it had.
    pub(super) ram: Option<u64>,
    /// What work took.
    pub(super) work: Known,
    /// How many times the usual CPU codecs took.
    pub(super) codec_cpu: CodecCpu,
}

/// Of a database.
pub(super) fn of_database(path: &Path, tree: Option<&str>) -> Outcome<Start> {
    let existing = Existing::read(path, tree)?;
    let (key, value) = existing.row_bytes();
    let blocks = sample::blocks(path, &existing)?;
    let costs =
        ratios(blocks.iter().map(Vec::as_slice)).map(|costs| sample::as_stored(costs, &existing));
    Ok(Start {
        key: Some(key),
        value: Some(value),
        ratio: Some(costs.map_or_else(|| existing.ratio(), |costs| 1.0 / costs.0[YARDSTICK].ratio)),
        costs,
        live: Some(existing.rows() * (key + value)),
        config: Some(Config { tree: existing.config.clone(), ..Config::default() }),
        existing: Some(existing),
        ..Start::default()
    })
}

/// Of a row of a run.
pub(super) fn of_run(chosen: &Chosen) -> Start {
    let row = &chosen.row;
    let mut start = Start {
        run: Some(chosen.name.clone()),
        live: row.live_bytes.filter(|bytes| *bytes > 0).map(|bytes| bytes as f64),
        config: config(chosen),
        levels: levels(chosen),
        load: Some(load(row)),
        ram: row.memory_bound,
        ..Start::default()
    };
    let kv = (row.workload == "kv").then(|| row.parameters.get("kv")).flatten();
    let kv: Option<KvOptions> = kv.and_then(|kv| serde_json::from_value(kv.clone()).ok());
    if let Some(kv) = kv {
        (start.key, start.value) =
            (Some(kv.key_bytes as f64), Some(kv.pair_bytes() - kv.key_bytes as f64));
        let seed = row.parameters.get("seed").and_then(serde_json::Value::as_u64);
        let block =
            start.config.as_ref().map_or(16 << 10, |config| sample::block_bytes(&config.tree));
        // Of a step that writes nothing it is not known what did.
        let in_order = !kv.step(&row.step).is_ok_and(Benchmark::writes_in_no_order);
        let sample = kv.sample(seed.unwrap_or_default(), in_order, SAMPLE_BYTES);
        start.costs = ratios(sample.chunks(block));
        start.ratio = start.costs.map(|costs| 1.0 / costs.0[YARDSTICK].ratio);
    }
    if let (Some(costs), Some(row_bytes)) = (&start.costs, start.key.zip(start.value)) {
        let row_bytes = row_bytes.0 + row_bytes.1;
        start.codec_cpu = codec_cpu(chosen, costs);
        start.work = known(chosen, costs, row_bytes);
    }
    start
}

/// What codecs make of these blocks, with the usual CPU: that of this machine need not be that of
/// the one which is asked about.
fn ratios<'a>(blocks: impl Iterator<Item = &'a [u8]>) -> Option<Costs> {
    let blocks: Vec<&[u8]> = blocks.collect();
    let costs = Costs::measure(&blocks, None, &*Env::os().clock)?;
    let mut usual = shaledb_forecast::costs_of_ratio(1.0);
    for (cost, told) in usual.0.iter_mut().zip(&costs.0) {
        cost.ratio = told.ratio;
    }
    Some(usual)
}

/// The engine's settings, as the row lists them; `None` if they are of another version.
fn config(chosen: &Chosen) -> Option<Config> {
    let mut fields = serde_json::Map::new();
    for (name, value) in &chosen.row.configuration {
        // Names with other signs are of the lab, not of the engine.
        if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
            fields.insert(name.clone(), serde_json::from_str(value).ok()?);
        }
    }
    (!fields.is_empty()).then(|| serde_json::from_value(fields.into()).ok()).flatten()
}

/// The levels at the end; `None` if there is nothing in them, or their codecs are not known.
fn levels(chosen: &Chosen) -> Option<Vec<LevelSum>> {
    let full = chosen.row.counted.levels.iter().filter(|level| level.bytes > 0);
    let sums: Option<Vec<LevelSum>> = full
        .map(|level| {
            let (codec, dictionary) = codec(&level.codec)?;
            let (number, files) = (level.level as usize, level.files);
            Some(LevelSum { level: number, files, bytes: level.bytes, codec, dictionary })
        })
        .collect();
    sums.filter(|sums| !sums.is_empty())
}
