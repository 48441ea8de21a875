//! RocksDB as its makers would set it up for this work: dynamic levels, full Bloom filters, index
//! and filters in the cache with those of level 0 pinned, an in-block hash index, the clock cache.
//! Four memtables; the cache gets what they leave of `--memory`. Statistics stay off, since they
//! cost writers and readers; what is reported comes from the counters that RocksDB always keeps.

use crate::stats;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DataBlockIndexType, FlushOptions, Options,
    ReadOptions, WaitForCompactOptions, WriteOptions,
};
use shale_lab::engine::{Engine, Handle, Metrics, Result};
use shale_lab::options::BenchOptions;
use std::path::Path;
use std::sync::Arc;

const MEMTABLES: u64 = 4;
const LEVELS: usize = 7;

/// An open RocksDB.
pub(crate) struct RocksDb {
    db: Arc<DB>,
    sync: bool,
}

fn codec(name: &str) -> (DBCompressionType, Option<i32>) {
    let (name, level) = match name.split_once(':') {
        Some((name, level)) => (name, level.parse().ok()),
        None => (name, None),
    };
    match name {
        "lz4" => (DBCompressionType::Lz4, None),
        "zlib" => (DBCompressionType::Zlib, level),
        "zstd" => (DBCompressionType::Zstd, level),
        _ => (DBCompressionType::None, None),
    }
}

fn settings(options: &BenchOptions) -> Options {
    let mut settings = Options::default();
    settings.create_if_missing(true);
    settings.set_write_buffer_size(options.memtable as usize);
    settings.set_max_write_buffer_number(MEMTABLES as i32);
    settings.set_max_background_jobs(options.background_threads as i32);
    settings.set_max_subcompactions(2);
    settings.set_level_compaction_dynamic_level_bytes(true);
    settings.set_max_bytes_for_level_base(256 << 20);
    settings.set_target_file_size_base(64 << 20);
    settings.set_num_levels(LEVELS as i32);

    // With dynamic levels, entry 0 is level 0, entry 1 the first level in use below it, and so on.
    let codecs = &options.codecs;
    let (small, _) = codec(&codecs.small);
    let (middle, middle_level) = codec(&codecs.middle);
    let (last, last_level) = codec(&codecs.last);
    let mut levels = [middle; LEVELS];
    levels[..3].fill(small);
    settings.set_compression_per_level(&levels);
    settings.set_compression_type(middle);
    if let Some(level) = middle_level {
        settings.set_compression_options(-14, level, 0, 0);
    }
    settings.set_bottommost_compression_type(last);
    if let Some(level) = last_level {
        settings.set_bottommost_compression_options(-14, level, 0, 0, true);
    }

    let mut table = BlockBasedOptions::default();
    table.set_block_size(options.block_bytes as usize);
    let cache_bytes = options.memory.saturating_sub(MEMTABLES * options.memtable).max(8 << 20);
    table.set_block_cache(&Cache::new_hyper_clock_cache(cache_bytes as usize, 0));
    if options.filter_bits > 0 {
        table.set_bloom_filter(f64::from(options.filter_bits), false);
    }
    table.set_cache_index_and_filter_blocks(true);
    table.set_cache_index_and_filter_blocks_with_high_priority(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    // The library's own default; the crate's documentation lags behind it.
    table.set_format_version(7);
    settings.set_block_based_table_factory(&table);
    settings
}

impl Engine for RocksDb {
    type Handle = RocksHandle;
    const NAME: &'static str = "rocksdb";

    fn version() -> String {
        "11.8.1".to_owned()
    }

    fn open(dir: &Path, options: &BenchOptions) -> Result<RocksDb> {
        let db = DB::open(&settings(options), dir)?;
        Ok(RocksDb { db: Arc::new(db), sync: options.sync })
    }

    fn handle(&self) -> Result<RocksHandle> {
        let mut write = WriteOptions::default();
        write.set_sync(self.sync);
        Ok(RocksHandle { db: self.db.clone(), write, read: ReadOptions::default() })
    }

    fn settle(&self) -> Result<()> {
        let mut flush = FlushOptions::default();
        flush.set_wait(true);
        self.db.flush_opt(&flush)?;
        let mut wait = WaitForCompactOptions::default();
        wait.set_flush(true);
        self.db.wait_for_compact(&wait)?;
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        let database = self.db.property_value("rocksdb.dbstats")?.unwrap_or_default();
        let levels =
            self.db.property_value("rocksdb.cfstats-no-file-histogram")?.unwrap_or_default();
        Ok(stats::metrics(&database, &levels))
    }

    fn close(self) -> Result<()> {
        // Handles are gone by now, so this is the last owner and the drop closes the database.
        drop(self.db);
        Ok(())
    }
}

/// One thread's view of it.
pub(crate) struct RocksHandle {
    db: Arc<DB>,
    write: WriteOptions,
    read: ReadOptions,
}

impl Handle for RocksHandle {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put_opt(key, value, &self.write).map_err(Into::into)
    }

    #[inline]
    fn get(&mut self, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        match self.db.get_pinned_opt(key, &self.read)? {
            Some(value) => {
                found(&value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.db.delete_opt(key, &self.write).map_err(Into::into)
    }

    #[inline]
    fn scan(
        &mut self,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let mut cursor = self.db.raw_iterator();
        if from.is_empty() {
            cursor.seek_to_first();
        } else {
            cursor.seek(from);
        }
        let mut done = 0;
        while done < rows {
            let Some((key, value)) = cursor.item() else {
                cursor.status()?;
                break;
            };
            done += 1;
            if !row(key, value) || done == rows {
                break;
            }
            cursor.next();
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        options: BenchOptions,
    }

    #[test]
    fn every_benchmark_runs() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        let flags = [
            "x",
            "--num",
            "20k",
            "--memory",
            "64M",
            "--memtable",
            "1M",
            "--benchmarks",
            "fillseq,overwrite,settle,readrandom,seekrandom,readseq,deleterandom",
            "--db",
        ];
        let command: Command =
            clap::Parser::parse_from(flags.into_iter().chain([work.to_str().unwrap()]));
        let rows = shale_lab::bench::run::<RocksDb>(&command.options).unwrap();
        assert_eq!(rows[3].found, 20_000);
        assert_eq!(rows[5].ops, 20_000);
        assert!(rows[1].flush_bytes > 0, "{:?}", rows[1]);
        assert!(rows[0].size_bytes > 1_000_000);
    }
}
