//! Shale behind the benchmarks.

use crate::engine::{Engine, Failure, Handle, Metrics, Result};
use crate::options::BenchOptions;
use shale::{Codecs, Config, Db, ScanOptions, SyncPolicy, Tree, TreeConfig, WriteOptions};
use std::path::Path;

/// The one tree of a benchmark.
const TREE: &str = "bench";

/// An open Shale database.
pub struct Shale {
    db: Db,
    tree: Tree,
    sync: bool,
}

/// The settings of a run as Shale's own.
pub fn config(options: &BenchOptions) -> Result<Config> {
    let codecs = Codecs {
        small: options.codecs.small.parse()?,
        middle: options.codecs.middle.parse()?,
        last: options.codecs.last.parse()?,
    };
    let too_large = |flag: &str| Failure::from(format!("--{flag} is too large"));
    let config = Config {
        memory_bytes: options.memory,
        memtable_bytes: options.memtable,
        background_threads: options.background_threads,
        sync: SyncPolicy::OnRequest,
        tree: TreeConfig {
            codecs,
            block_bytes: u32::try_from(options.block_bytes)
                .map_err(|_| too_large("block-bytes"))?,
            filter_bits: options.filter_bits,
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

    fn version() -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn open(dir: &Path, options: &BenchOptions) -> Result<Shale> {
        let db = Db::open(dir, config(options)?)?;
        let tree = db.tree_or_create(TREE)?;
        Ok(Shale { db, tree, sync: options.sync })
    }

    fn handle(&self) -> Result<ShaleHandle> {
        Ok(ShaleHandle { tree: self.tree.clone(), write: WriteOptions { sync: self.sync } })
    }

    fn settle(&self) -> Result<()> {
        self.db.flush()?;
        self.db.wait_idle()?;
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        let stats = self.db.stats();
        Ok(metrics(&stats))
    }

    fn close(self) -> Result<()> {
        let Shale { db, tree, .. } = self;
        drop(tree);
        db.close().map_err(Into::into)
    }
}

fn metrics(stats: &shale::Stats) -> Metrics {
    let background = ["flush", "compaction"].map(|name| stats.cpu_seconds.get(name).copied());
    Metrics {
        user_bytes: stats.user_bytes,
        wal_bytes: stats.wal_bytes,
        flush_bytes: stats.flush_bytes,
        compaction_bytes: stats.compact_bytes,
        stall_seconds: stats.stall_seconds.values().sum(),
        background_cpu_seconds: Some(background.into_iter().flatten().sum()),
        compaction_table: stats.to_string(),
    }
}

/// One thread's view of it.
pub struct ShaleHandle {
    tree: Tree,
    write: WriteOptions,
}

impl Handle for ShaleHandle {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.tree.put_with(key, value, self.write).map_err(Into::into)
    }

    #[inline]
    fn get(&mut self, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        match self.tree.get(key)? {
            Some(value) => {
                found(&value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.tree.delete_with(key, self.write).map_err(Into::into)
    }

    #[inline]
    fn scan(
        &mut self,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let mut scan = self.tree.scan_with(ScanOptions::default())?;
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
}
