//! What work costs on this machine: a small database in a folder for a moment.

use crate::exit::Outcome;
use crate::screen;
use shaledb::{Codec, Codecs, Config, Db, Stats};
use shaledb_forecast::Work;
use shaledb_lab::measure::Usage;
use std::path::PathBuf;

/// How many bytes of rows are written, in how many writes at most, and how many times the rows that
/// there are.
const BYTES: f64 = 200e6;
const WRITES_MAX: f64 = 1e6;
const TIMES: u64 = 4;

/// A folder that goes away with its owner.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's own cleaning of such folders.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Measures with rows of this size.
pub(super) fn work(key_bytes: f64, value_bytes: f64) -> Outcome<Work> {
    let wait = screen::spinner("measuring this machine".to_owned());
    let folder = std::env::temp_dir().join(format!("shale-simulate-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let folder = Folder(folder);
    let mut config = Config {
        memory_bytes: 64 << 20,
        memtable_bytes: 2 << 20,
        table_bytes: 4 << 20,
        background_threads: 1,
        ..Config::default()
    };
    config.tree.codecs = Codecs::all(Codec::None);
    let db = Db::open(&folder.0, config)?;
    let tree = db.tree_or_create("rows")?;
    let writes = (BYTES / (key_bytes + value_bytes)).clamp(1.0, WRITES_MAX) as u64;
    let rows = (writes / TIMES).max(1);
    let mut key = vec![0u8; (key_bytes as usize).max(8)];
    let value = vec![b'v'; value_bytes as usize];
    let began = Usage::now();
    for write in 0..writes {
        let place = (write % rows).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        key[..8].copy_from_slice(&place.to_be_bytes());
        tree.put(&key, &value)?;
    }
    db.wait_idle()?;
    let all = Usage::now().since(&began).cpu_seconds();
    let stats = db.stats();
    let spent = |of: &Stats, name: &str| of.cpu.get(name).map_or(0.0, |spent| spent.seconds);
    let (flush, merge) = (spent(&stats, "flush"), spent(&stats, "compaction"));
    let levels = stats.trees.iter().flat_map(|tree| &tree.levels);
    // Rows of blocks that are copied as they are cost next to nothing.
    let merged: u64 = levels.map(|level| level.read_bytes.saturating_sub(level.bytes_reused)).sum();
    let merged = merged as f64 / (key_bytes + value_bytes);
    let began = Usage::now();
    for read in 0..rows {
        let place = read.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        key[..8].copy_from_slice(&place.to_be_bytes());
        let _ = tree.get(&key)?;
    }
    let get = Usage::now().since(&began).cpu_seconds() / rows as f64;
    wait.finish_and_clear();
    // What the system takes for a byte is in the rows' figures.
    Ok(Work {
        put: (all - flush - merge).max(0.0) * 1e9 / writes as f64,
        flush_row: flush * 1e9 / writes as f64,
        merge_row: merge * 1e9 / merged.max(1.0),
        byte: 0.0,
        get: get * 1e9,
    })
}
