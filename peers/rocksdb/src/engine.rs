//! RocksDB as its makers would set it up for this work: dynamic levels, full Bloom filters, index
//! and filters in the cache with those of level 0 pinned, an in-block hash index, the clock cache.
//! Up to four memtables, charged to the cache, which is as large as `--memory`. Statistics stay
//! off, since they cost writers and readers; what is reported comes from the counters that RocksDB
//! always keeps.

use crate::stats;
use rocksdb::{
    BlockBasedOptions, BoundColumnFamily, Cache, ColumnFamilyDescriptor, DBCompressionType,
    DBWithThreadMode, DataBlockIndexType, FlushOptions, MultiThreaded, Options, ReadOptions,
    WaitForCompactOptions, WriteBatch, WriteBufferManager, WriteOptions,
};
use shaledb_lab::setup::{Durability, Setup};
use shaledb_lab::stores::engine::{Batch, Engine, Handle, Metrics, Op, Result, TreeId};
use std::path::Path;
use std::sync::Arc;

const MEMTABLES: u64 = 4;
const LEVELS: usize = 7;
const SUBCOMPACTIONS: u32 = 2;
/// Tables of level 0 that begin a merge: the library's default.
const LEVEL0_FILES: u64 = 4;
/// The library's own default; the crate's documentation lags behind it.
const FORMAT_VERSION: i32 = 7;
/// What RocksDB adds to the key and the value of an operation in a batch, at most.
const OP_BYTES: usize = 16;

type Db = DBWithThreadMode<MultiThreaded>;

/// An open RocksDB: a column family per tree.
pub(crate) struct RocksDb {
    db: Arc<Db>,
    names: Vec<String>,
    family: Options,
    sync: bool,
}

fn codec(name: &str) -> Result<(DBCompressionType, Option<i32>)> {
    let (name, level) = match name.split_once(':') {
        Some((name, level)) => (name, Some(level.parse()?)),
        None => (name, None),
    };
    Ok(match name {
        "none" => (DBCompressionType::None, None),
        "lz4" => (DBCompressionType::Lz4, None),
        "zlib" => (DBCompressionType::Zlib, level),
        "zstd" => (DBCompressionType::Zstd, level),
        _ => return Err(format!("RocksDB is given no codec for `{name}`: see engine.rs").into()),
    })
}

/// All of the memory: memtables are charged to the cache, so that it has what they do not take.
fn cache_bytes(setup: &Setup) -> u64 {
    setup.memory.max(8 << 20)
}

/// More than all memtables together: the manager is to count them, not to flush any early.
fn write_buffers_bytes(setup: &Setup) -> u64 {
    2 * MEMTABLES * setup.memtable
}

/// Level 1 is as large as level 0 when it is merged, which the makers advise: the defaults, 256 and
/// 64 MB, are so for memtables of 64 MB.
fn level_base_bytes(setup: &Setup) -> u64 {
    LEVEL0_FILES * setup.memtable
}

fn file_bytes(setup: &Setup) -> u64 {
    setup.memtable.clamp(2 << 20, 64 << 20)
}

fn settings(options: &Setup) -> Result<Options> {
    let mut settings = Options::default();
    settings.create_if_missing(true);
    settings.create_missing_column_families(true);
    settings.set_write_buffer_size(options.memtable as usize);
    settings.set_max_write_buffer_number(MEMTABLES as i32);
    // All column families together.
    settings.set_db_write_buffer_size((MEMTABLES * options.memtable) as usize);
    settings.set_max_background_jobs(options.background_threads as i32);
    settings.set_max_subcompactions(SUBCOMPACTIONS);
    settings.set_level_compaction_dynamic_level_bytes(true);
    settings.set_max_bytes_for_level_base(level_base_bytes(options));
    settings.set_target_file_size_base(file_bytes(options));
    settings.set_num_levels(LEVELS as i32);

    // With dynamic levels, entry 0 is level 0, entry 1 the first level in use below it, and so on.
    let codecs = &options.codecs;
    let (upper, _) = codec(&codecs.upper)?;
    let (middle, middle_level) = codec(&codecs.middle)?;
    let (bottommost, bottommost_level) = codec(&codecs.bottommost)?;
    let mut levels = [middle; LEVELS];
    levels[..3].fill(upper);
    settings.set_compression_per_level(&levels);
    settings.set_compression_type(middle);
    if let Some(level) = middle_level {
        settings.set_compression_options(-14, level, 0, 0);
    }
    settings.set_bottommost_compression_type(bottommost);
    if let Some(level) = bottommost_level {
        settings.set_bottommost_compression_options(-14, level, 0, 0, true);
    }

    let mut table = BlockBasedOptions::default();
    table.set_block_size(options.block_bytes as usize);
    let cache = Cache::new_hyper_clock_cache(cache_bytes(options) as usize, 0);
    let bytes = write_buffers_bytes(options) as usize;
    let manager =
        WriteBufferManager::new_write_buffer_manager_with_cache(bytes, false, cache.clone());
    settings.set_write_buffer_manager(&manager);
    table.set_block_cache(&cache);
    if options.filter_bits > 0 {
        table.set_bloom_filter(f64::from(options.filter_bits), false);
    }
    table.set_cache_index_and_filter_blocks(true);
    table.set_cache_index_and_filter_blocks_with_high_priority(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    table.set_format_version(FORMAT_VERSION);
    settings.set_block_based_table_factory(&table);
    Ok(settings)
}

impl Engine for RocksDb {
    type Handle = RocksHandle;
    const NAME: &'static str = "rocksdb";

    fn version() -> String {
        "11.8.1".to_owned()
    }

    fn open(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<RocksDb> {
        let settings = settings(setup)?;
        let names: Vec<String> = trees.iter().map(|&name| name.to_owned()).collect();
        // RocksDB insists on opening every family that is there, its own `default` among them.
        let mut all = vec!["default".to_owned()];
        if dir.join("CURRENT").exists() {
            all.extend(Db::list_cf(&settings, dir)?);
        }
        all.extend(names.iter().cloned());
        all.sort();
        all.dedup();
        let families =
            all.into_iter().map(|name| ColumnFamilyDescriptor::new(name, settings.clone()));
        let db = Db::open_cf_descriptors(&settings, dir, families)?;
        let sync = setup.durability == Durability::Power;
        Ok(RocksDb { db: Arc::new(db), names, family: settings, sync })
    }

    fn configuration(setup: &Setup) -> Vec<(String, String)> {
        let codecs = &setup.codecs;
        let pair = |name: &str, value: String| (name.to_owned(), value);
        vec![
            pair("write_buffer_size", setup.memtable.to_string()),
            pair("max_write_buffer_number", MEMTABLES.to_string()),
            pair("max_background_jobs", setup.background_threads.to_string()),
            pair("max_subcompactions", SUBCOMPACTIONS.to_string()),
            pair("level_compaction_dynamic_level_bytes", "true".to_owned()),
            pair("max_bytes_for_level_base", level_base_bytes(setup).to_string()),
            pair("target_file_size_base", file_bytes(setup).to_string()),
            pair("compression_per_level", format!("{0},{0},{0},{1}", codecs.upper, codecs.middle)),
            pair("bottommost_compression", codecs.bottommost.clone()),
            pair("block_size", setup.block_bytes.to_string()),
            pair("block_cache (HyperClockCache)", cache_bytes(setup).to_string()),
            pair(
                "WriteBufferManager, charged to block_cache",
                write_buffers_bytes(setup).to_string(),
            ),
            pair("filter_policy", format!("bloomfilter:{}", setup.filter_bits)),
            pair("cache_index_and_filter_blocks", "true, high priority, level 0 pinned".to_owned()),
            pair("data_block_index_type", "kDataBlockBinaryAndHash".to_owned()),
            pair("format_version", FORMAT_VERSION.to_string()),
            pair("WriteOptions::sync", (setup.durability == Durability::Power).to_string()),
        ]
    }

    fn handle(&self) -> Result<RocksHandle> {
        let mut write = WriteOptions::default();
        write.set_sync(self.sync);
        let families = self
            .names
            .iter()
            .map(|name| {
                self.db
                    .cf_handle(name)
                    .map(lasting)
                    .ok_or("a column family is missing, which the open created")
            })
            .collect::<std::result::Result<_, _>>()?;
        Ok(RocksHandle { families, write, read: ReadOptions::default(), db: self.db.clone() })
    }

    fn clear_tree(&self, tree: TreeId) -> Result<()> {
        self.db.drop_cf(&self.names[tree])?;
        self.db.create_cf(&self.names[tree], &self.family)?;
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        let mut flush = FlushOptions::default();
        flush.set_wait(true);
        for name in &self.names {
            let family = self
                .db
                .cf_handle(name)
                .ok_or("a column family is missing, which the open created")?;
            self.db.flush_cf_opt(&family, &flush)?;
        }
        let mut wait = WaitForCompactOptions::default();
        wait.set_flush(true);
        self.db.wait_for_compact(&wait)?;
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        let database = self.db.property_value("rocksdb.dbstats")?.unwrap_or_default();
        let mut families = Vec::new();
        for name in &self.names {
            let family = self
                .db
                .cf_handle(name)
                .ok_or("a column family is missing, which the open created")?;
            let text = self.db.property_value_cf(&family, "rocksdb.cfstats-no-file-histogram")?;
            families.push((name.as_str(), text.unwrap_or_default()));
        }
        Ok(stats::metrics(&database, &families))
    }

    fn close(self) -> Result<()> {
        // Handles are gone by now, so this is the last owner and the drop closes the database.
        drop(self.db);
        Ok(())
    }
}

/// One thread's view of it. The families come before the database, so that they go first.
pub(crate) struct RocksHandle {
    families: Vec<Arc<BoundColumnFamily<'static>>>,
    write: WriteOptions,
    read: ReadOptions,
    db: Arc<Db>,
}

/// A family without the lifetime of its database: looking it up by name at each operation would
/// cost RocksDB a lock and a search that a program in C++ does not pay.
fn lasting(family: Arc<BoundColumnFamily<'_>>) -> Arc<BoundColumnFamily<'static>> {
    // SAFETY: only the lifetime changes. The one place that keeps the result, RocksHandle, owns the
    // database as well and lets the families go before it.
    unsafe { std::mem::transmute(family) }
}

impl Handle for RocksHandle {
    #[inline]
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put_cf_opt(&self.families[tree], key, value, &self.write).map_err(Into::into)
    }

    #[inline]
    fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        match self.db.get_pinned_cf_opt(&self.families[tree], key, &self.read)? {
            Some(value) => {
                found(&value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    #[inline]
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.db.delete_cf_opt(&self.families[tree], key, &self.write).map_err(Into::into)
    }

    #[inline]
    fn write(&mut self, batch: &Batch) -> Result<()> {
        // The crate takes the batch away: one with room enough is one allocation.
        let bytes = batch.user_bytes() as usize + OP_BYTES * batch.len();
        let mut ours = WriteBatch::with_capacity_bytes(bytes);
        for op in batch.iter() {
            match op {
                Op::Put(tree, key, value) => ours.put_cf(&self.families[tree], key, value),
                Op::Delete(tree, key) => ours.delete_cf(&self.families[tree], key),
            }
        }
        self.db.write_opt(ours, &self.write).map_err(Into::into)
    }

    #[inline]
    fn scan(
        &mut self,
        tree: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let mut cursor = self.db.raw_iterator_cf(&self.families[tree]);
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

    fn pairs(handle: &mut RocksHandle, tree: TreeId) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut all = Vec::new();
        let row = &mut |key: &[u8], value: &[u8]| {
            all.push((key.to_vec(), value.to_vec()));
            true
        };
        handle.scan(tree, b"", u64::MAX, row).unwrap();
        all
    }

    #[test]
    fn does_what_every_engine_must() {
        use shaledb_lab::stores::conformance;
        let dir = tempfile::tempdir().unwrap();
        let setup = conformance::setup();
        conformance::check::<RocksDb>(dir.path(), &setup, 1, 4000).unwrap();
        let scans = conformance::Scans::OfOneMoment;
        conformance::check_threads::<RocksDb>(dir.path(), &setup, 50, scans).unwrap();
    }

    #[test]
    fn trees_batches_and_scans() {
        let dir = tempfile::tempdir().unwrap();
        let setup = Setup { memory: 64 << 20, memtable: 1 << 20, ..Setup::default() };
        let pair = |key: &str, value: &str| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
        {
            let store = RocksDb::open(dir.path(), &setup, &["a", "b"]).unwrap();
            let mut handle = store.handle().unwrap();
            let mut batch = Batch::new();
            batch.put(0, b"k1", b"one");
            batch.put(0, b"k2", b"two");
            batch.put(1, b"k1", b"other");
            batch.delete(0, b"k2");
            handle.write(&batch).unwrap();
            handle.put(0, b"k3", b"three").unwrap();
            handle.put(1, b"k4", b"four").unwrap();
            handle.delete(1, b"k4").unwrap();
            drop(handle);
            store.close().unwrap();
        }
        let store = RocksDb::open(dir.path(), &setup, &["a", "b", "c"]).unwrap();
        let mut handle = store.handle().unwrap();
        assert_eq!(pairs(&mut handle, 0), [pair("k1", "one"), pair("k3", "three")]);
        assert_eq!(pairs(&mut handle, 1), [pair("k1", "other")]);
        assert!(!handle.get(0, b"k2", &mut |_| ()).unwrap());
        let mut seen = Vec::new();
        let from = &mut |key: &[u8], _: &[u8]| {
            seen.push(key.to_vec());
            false
        };
        assert_eq!(handle.scan(0, b"k2", 10, from).unwrap(), 1);
        assert_eq!(seen, [b"k3".to_vec()]);
        drop(handle);
        store.clear_tree(0).unwrap();
        let mut handle = store.handle().unwrap();
        assert!(pairs(&mut handle, 0).is_empty());
        handle.put(0, b"k9", b"nine").unwrap();
        assert_eq!(pairs(&mut handle, 0), [pair("k9", "nine")]);
        assert_eq!(pairs(&mut handle, 1).len(), 1);
    }

    #[test]
    fn a_codec_that_is_not_known_is_an_error() {
        for name in ["none", "lz4", "zlib:1", "zstd:-5"] {
            codec(name).unwrap();
        }
        for name in ["brotli", "zstd:x", ""] {
            assert!(codec(name).is_err(), "{name}");
        }
    }

    #[test]
    fn flushes_and_levels_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let setup = Setup { memory: 64 << 20, memtable: 1 << 20, ..Setup::default() };
        let store = RocksDb::open(dir.path(), &setup, &["a", "b"]).unwrap();
        let mut handle = store.handle().unwrap();
        // Enough that RocksDB tells of it: it rounds what was written to a hundredth of a GB.
        for n in 0..200_000u64 {
            let key = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes();
            handle.put((n % 2) as usize, &key, &[n as u8; 200]).unwrap();
        }
        store.wait_idle().unwrap();
        let metrics = store.metrics().unwrap();
        let right = 200_000 * 208;
        for bytes in [metrics.user_bytes, metrics.wal_bytes] {
            assert!(bytes > right - 7_000_000 && bytes < right + 12_000_000, "{metrics:?}");
        }
        assert!(metrics.flush_bytes > 1_000_000 && metrics.flush_bytes < 2 * right, "{metrics:?}");
        assert!(metrics.levels.iter().map(|level| level.files).sum::<u64>() > 0, "{metrics:?}");
        assert!(metrics.table.contains("[a]") && metrics.table.contains("[b]"));
        assert!(!RocksDb::configuration(&setup).is_empty());
    }
}
