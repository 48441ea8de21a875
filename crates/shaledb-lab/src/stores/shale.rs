//! Shale behind the benchmarks.

use super::device;
use crate::setup::{Durability, Setup};
use crate::stores::engine::{
    Batch, DeviceBound, Engine, Failure, Handle, Level, Metrics, Op, Result, TreeId,
};
use shaledb::{
    Codecs, Config, Db, Env, OpenOptions, Scan, ScanOptions, SyncPolicy, TransactionOptions, Tree,
    TreeConfig, WriteOptions,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

/// An open Shale database.
pub struct Shale {
    db: Db,
    names: Vec<String>,
    trees: Mutex<Vec<Tree>>,
    sync: bool,
}

/// The settings of a run as Shale's own.
///
/// # Errors
///
/// A codec is unknown, or `block_bytes` does not fit 32 bits.
pub fn config(setup: &Setup) -> Result<Config> {
    let codecs = Codecs {
        upper: setup.codecs.upper.parse()?,
        middle: setup.codecs.middle.parse()?,
        bottommost: setup.codecs.bottommost.parse()?,
    };
    let config = Config {
        memory_bytes: setup.memory,
        // Under a limit on space memtables are smaller, as they are if none is set.
        memtable_bytes: match setup.space_limit {
            Some(limit) if limit > 0 => setup.memtable.min((limit / 128).max(64 << 10)),
            _ => setup.memtable,
        },
        background_threads: setup.background_threads,
        space_limit: setup.space_limit.unwrap_or(0),
        sync: SyncPolicy::OnRequest,
        tree: TreeConfig {
            codecs,
            dictionary: !setup.no_dictionary,
            block_bytes: u32::try_from(setup.block_bytes)
                .map_err(|_| Failure::from("--block-bytes is too large"))?,
            filter_bits: setup.filter_bits,
            ..TreeConfig::default()
        },
        ..Config::default()
    };
    config.validate()?;
    Ok(config)
}

impl Engine for Shale {
    type Handle = ShaleHandle;
    const NAME: &'static str = "shale";
    const DEVICE_BOUND: DeviceBound = DeviceBound::Whole;

    fn version() -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn open(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Shale> {
        let env = match setup.device_bound {
            Some(rate) => device::bounded(&Env::os(), rate),
            None => Env::os(),
        };
        let options = OpenOptions { env, ..OpenOptions::default() };
        let db = Db::open_in(dir, config(setup)?, options)?;
        let names = trees.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let trees =
            names.iter().map(|name| db.tree_or_create(name)).collect::<shaledb::Result<_>>();
        let sync = setup.durability == Durability::Power;
        Ok(Shale { db, names, trees: Mutex::new(trees?), sync })
    }

    fn open_for_updates(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Shale> {
        // Every database has transactions.
        Shale::open(dir, setup, trees)
    }

    fn configuration(setup: &Setup) -> Vec<(String, String)> {
        let value = config(setup).ok().and_then(|config| serde_json::to_value(config).ok());
        let Some(serde_json::Value::Object(fields)) = value else { return Vec::new() };
        let mut settings: Vec<(String, String)> =
            fields.into_iter().map(|(name, value)| (name, value.to_string())).collect();
        let sync = setup.durability == Durability::Power;
        settings.push(("WriteOptions::sync".to_owned(), sync.to_string()));
        if let Some(rate) = setup.device_bound {
            settings.push(("bytes per second of its files".to_owned(), rate.to_string()));
        }
        settings
    }

    fn handle(&self) -> Result<ShaleHandle> {
        let trees = self.trees.lock().map_err(|_| "a thread panicked")?.clone();
        Ok(ShaleHandle {
            db: self.db.clone(),
            trees,
            batch: shaledb::Batch::new(),
            new: Vec::new(),
            write: WriteOptions { sync: self.sync },
        })
    }

    fn clear_tree(&self, tree: TreeId) -> Result<()> {
        self.db.drop_tree(&self.names[tree])?;
        let fresh = self.db.tree_or_create(&self.names[tree])?;
        self.trees.lock().map_err(|_| "a thread panicked")?[tree] = fresh;
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        self.db.flush()?;
        self.db.wait_idle()?;
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        let stats = self.db.stats();
        Ok(metrics(&stats))
    }

    fn close(self) -> Result<()> {
        let Shale { db, trees, .. } = self;
        drop(trees);
        db.close().map_err(Into::into)
    }
}

fn metrics(stats: &shaledb::Stats) -> Metrics {
    let cpu = stats.cpu.iter().chain(&stats.codec_cpu);
    let cpu: BTreeMap<String, f64> = cpu.map(|(name, cpu)| (name.clone(), cpu.seconds)).collect();
    let background = ["flush", "compaction"].map(|name| cpu.get(name).copied());
    let levels = levels(stats);
    Metrics {
        user_bytes: stats.user_bytes,
        wal_bytes: stats.wal_bytes,
        flush_bytes: Some(stats.flush_bytes),
        compaction_bytes: Some(stats.compact_bytes),
        stall_seconds: stats.stalled_seconds,
        block_reads: stats.counters.get("data_block_misses").copied(),
        background_cpu_seconds: Some(background.into_iter().flatten().sum()),
        cpu_seconds: cpu,
        // The jobs of level 0 are flushes.
        compaction_seconds: Some(levels.iter().skip(1).map(|level| level.seconds).sum()),
        compaction_cpu_seconds: background[1],
        levels,
        table: stats.to_string(),
    }
}

/// The levels of all trees together. What is said of codecs is said of the tree that has the most
/// there.
fn levels(stats: &shaledb::Stats) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    let mut most: Vec<u64> = Vec::new();
    for from in stats.trees.iter().flat_map(|tree| &tree.levels) {
        if levels.len() <= from.level {
            let next = levels.len()..=from.level;
            levels.extend(next.map(|level| Level { level: level as u32, ..Level::default() }));
            most.resize(levels.len(), 0);
        }
        let level = &mut levels[from.level];
        level.files += from.tables;
        level.bytes += from.bytes;
        level.read_bytes += from.read_bytes;
        level.written_bytes += from.write_bytes;
        level.reused_bytes += from.bytes_reused;
        level.jobs += from.jobs;
        level.seconds += from.seconds;
        level.cpu_seconds += from.cpu_seconds;
        if level.codec.is_empty() || from.bytes > most[from.level] {
            most[from.level] = from.bytes;
            let dictionary = if from.dictionary { " + dictionary" } else { "" };
            level.codec = format!("{}{dictionary}", from.codec);
            level.codec_why = from.codec_why.to_owned();
        }
    }
    levels
}

/// One thread's view of it.
pub struct ShaleHandle {
    db: Db,
    trees: Vec<Tree>,
    batch: shaledb::Batch,
    /// What an update writes.
    new: Vec<u8>,
    write: WriteOptions,
}

impl Handle for ShaleHandle {
    #[inline]
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.trees[tree].put_with(key, value, self.write).map_err(Into::into)
    }

    #[inline]
    fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        match self.trees[tree].get(key)? {
            Some(value) => {
                found(&value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    #[inline]
    fn multi_get(
        &mut self,
        tree: TreeId,
        keys: &[impl AsRef<[u8]>],
        found: &mut impl FnMut(usize, &[u8]),
    ) -> Result<u64> {
        let mut there = 0;
        for (at, value) in self.trees[tree].multi_get(keys)?.iter().enumerate() {
            if let Some(value) = value {
                found(at, value);
                there += 1;
            }
        }
        Ok(there)
    }

    #[inline]
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.trees[tree].delete_with(key, self.write).map_err(Into::into)
    }

    #[inline]
    fn write(&mut self, batch: &Batch) -> Result<()> {
        self.batch.clear();
        for op in batch.iter() {
            match op {
                Op::Put(tree, key, value) => self.batch.put(&self.trees[tree], key, value),
                Op::Delete(tree, key) => self.batch.delete(&self.trees[tree], key),
            }
        }
        self.db.write(&self.batch, self.write).map_err(Into::into)
    }

    #[inline]
    fn scan(
        &mut self,
        tree: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let scan = self.trees[tree].scan_with(ScanOptions::default())?;
        show(scan, from, rows, row)
    }

    #[inline]
    fn scan_range(
        &mut self,
        tree: TreeId,
        from: &[u8],
        to: &[u8],
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let options = ScanOptions { upper: Some(to.to_vec()), ..ScanOptions::default() };
        show(self.trees[tree].scan_with(options)?, from, u64::MAX, row)
    }

    #[inline]
    fn update(
        &mut self,
        tree: TreeId,
        key: &[u8],
        change: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>),
    ) -> Result<bool> {
        let tree = &self.trees[tree];
        let mut transaction = self.db.begin(TransactionOptions::default())?;
        let old = transaction.get_for_update(tree, key)?;
        self.new.clear();
        change(old.as_deref(), &mut self.new);
        transaction.put(tree, key, &self.new)?;
        transaction.commit(self.write)?;
        Ok(old.is_some())
    }
}

/// Shows up to `rows` pairs of a scan, from the first key that is not less than `from`.
#[inline]
fn show(
    mut scan: Scan,
    from: &[u8],
    rows: u64,
    row: &mut impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<u64> {
    if from.is_empty() {
        scan.seek_first()?;
    } else {
        scan.seek(from)?;
    }
    let mut done = 0;
    while done < rows && scan.valid() {
        done += 1;
        if !row(scan.key(), scan.value()?) || done == rows {
            break;
        }
        scan.next()?;
    }
    Ok(done)
}
