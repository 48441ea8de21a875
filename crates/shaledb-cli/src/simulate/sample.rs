//! Rows of a database that is there: what codecs would make of them.
//!
//! Its tables tell how much the codec saves that they have. Of others, and of any where they have
//! none, only the rows tell.

use crate::exit::Outcome;
use crate::reader;
use shaledb::compaction::policy::LAST;
use shaledb::compaction::policy::candidates::{ALL, Costs};
use shaledb::compaction::policy::chosen::{Choice, LevelCodecs};
use shaledb::table::meta::{TableMeta, Why};
use shaledb::{Codec, Config, Error, ScanOptions, TreeConfig};
use shaledb_forecast::Existing;
use shaledb_forecast::tree::cost_of;
use std::path::Path;

/// Rows are read at so many places, evenly by tables.
const PLACES: usize = 64;
/// The bytes read in all, about.
const BYTES: usize = 4 << 20;
/// Memory for that.
const MEMORY_BYTES: u64 = 64 << 20;

/// Blocks of the tree's rows; none of a tree without tables, nor of one whose log takes more
/// memory.
pub(super) fn blocks(path: &Path, existing: &Existing) -> Outcome<Vec<Vec<u8>>> {
    let config = Config { memory_bytes: MEMORY_BYTES, ..Config::default() };
    let (db, _) = match reader::open(path, config) {
        Err(Error::Config { .. }) => return Ok(Vec::new()),
        other => other?,
    };
    let tree = db.tree(&existing.name)?;
    let bytes = |level: &Vec<TableMeta>| level.iter().map(|table| table.file_bytes).sum::<u64>();
    let Some(tables) = existing.levels.iter().max_by_key(|level| bytes(level)) else {
        return Ok(Vec::new());
    };
    let block_bytes = block_bytes(&existing.config);
    let places = PLACES.min(tables.len());
    let mut blocks = Vec::new();
    for place in 0..places {
        let lower = Some(tables[place * tables.len() / places].smallest.clone());
        let options = ScanOptions { lower, fill_cache: false, ..ScanOptions::default() };
        let (mut rows, mut read) = (Vec::new(), 0);
        for row in tree.scan_with(options)? {
            let (key, value) = row?;
            rows.extend_from_slice(&key);
            // Large values are in files of their own.
            if value.len() < existing.config.blob_bytes as usize {
                rows.extend_from_slice(&value);
            }
            read += key.len() + value.len();
            if read >= BYTES / places {
                break;
            }
        }
        blocks.extend(rows.chunks(block_bytes).map(<[u8]>::to_vec));
    }
    Ok(blocks)
}

/// The size of blocks of a tree's last level; where the engine chooses, what it begins with.
pub(super) fn block_bytes(tree: &TreeConfig) -> usize {
    LevelCodecs::of_config(tree).blocks.of(LAST).0 as usize
}

/// With what zstd saves in the tables, where the last level has it: they have dictionaries, and all
/// rows.
pub(super) fn as_stored(mut costs: Costs, existing: &Existing) -> Costs {
    let tables = existing.levels.get(LAST).into_iter().flatten();
    let chosen = tables.max_by_key(|table| table.file_bytes).and_then(|table| table.codec);
    let codec = chosen.unwrap_or(existing.config.codecs.bottommost);
    if !matches!(codec, Codec::Zstd(_)) {
        return costs;
    }
    let sampled = cost_of(&costs, Choice { codec, dictionary: false, why: Why::default() }).ratio;
    let stored = 1.0 / existing.ratio();
    if sampled >= 1.0 || stored >= 1.0 {
        return costs;
    }
    // Data that the sample takes for hardly compressible says little of the rest.
    let power = (stored.ln() / sampled.ln()).clamp(0.25, 4.0);
    for (way, cost) in ALL.iter().zip(&mut costs.0) {
        if matches!(way.codec, Codec::Zstd(_)) {
            cost.ratio = cost.ratio.powf(power);
        }
    }
    costs
}
