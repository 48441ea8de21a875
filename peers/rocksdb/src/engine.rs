//! RocksDB as its makers would set it up for this work: dynamic levels, full Bloom filters, index
//! and filters in the cache with those of level 0 pinned, an in-block hash index, the clock cache.
//! Up to four memtables, charged to the cache, which is as large as `--memory`. Statistics stay
//! off, since they cost writers and readers; what is reported comes from the counters that RocksDB
//! always keeps.

use crate::database::{Database, Family, LOCK_MILLIS};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompressionType, DataBlockIndexType,
    Options, ReadOptions, TransactionOptions, WriteBufferManager, WriteOptions,
};
use shaledb_lab::setup::{Durability, Setup};
use shaledb_lab::stores::engine::{Batch, DeviceBound, Engine, Handle, Metrics, Result, TreeId};
use std::path::Path;
use std::sync::Arc;

const MEMTABLES: u64 = 4;
const LEVELS: usize = 7;
const SUBCOMPACTIONS: u32 = 2;
/// Tables of level 0 that begin a merge: the library's default.
const LEVEL0_FILES: u64 = 4;
/// The library's own default; the crate's documentation lags behind it.
const FORMAT_VERSION: i32 = 7;

/// How often the rate limiter deals out bytes, and how often those of low priority are served
/// first: the shortest burst that is asked for, and the library's default.
const LIMITER_MICROS: i64 = 10_000;
const LIMITER_FAIRNESS: i32 = 10;

/// An open RocksDB: a column family per tree.
pub(crate) struct RocksDb {
    db: Arc<Database>,
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

    if let Some(rate) = options.device_bound {
        settings.set_ratelimiter(rate as i64, LIMITER_MICROS, LIMITER_FAIRNESS);
    }

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

impl RocksDb {
    fn open_as(dir: &Path, setup: &Setup, trees: &[&str], is_for_updates: bool) -> Result<RocksDb> {
        let settings = settings(setup)?;
        let names: Vec<String> = trees.iter().map(|&name| name.to_owned()).collect();
        // RocksDB insists on opening every family that is there, its own `default` among them.
        let mut all = vec!["default".to_owned()];
        if dir.join("CURRENT").exists() {
            all.extend(DB::list_cf(&settings, dir)?);
        }
        all.extend(names.iter().cloned());
        all.sort();
        all.dedup();
        let families =
            all.into_iter().map(|name| ColumnFamilyDescriptor::new(name, settings.clone()));
        let db = Database::open(&settings, dir, families.collect(), is_for_updates)?;
        let sync = setup.durability == Durability::Power;
        Ok(RocksDb { db: Arc::new(db), names, family: settings, sync })
    }
}

impl Engine for RocksDb {
    type Handle = RocksHandle;
    const NAME: &'static str = "rocksdb";
    // The binding offers the limiter's first mode only, of writes.
    const DEVICE_BOUND: DeviceBound = DeviceBound::Partly(
        "--device-bound is RocksDB's own rate limiter: it bounds what flushes and compactions \
         write, but neither reads nor the log",
    );

    fn version() -> String {
        "11.8.1".to_owned()
    }

    fn open(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<RocksDb> {
        RocksDb::open_as(dir, setup, trees, false)
    }

    fn open_for_updates(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<RocksDb> {
        RocksDb::open_as(dir, setup, trees, true)
    }

    fn configuration(setup: &Setup) -> Vec<(String, String)> {
        let codecs = &setup.codecs;
        let pair = |name: &str, value: String| (name.to_owned(), value);
        let bound = setup.device_bound.map_or_else(|| "none".to_owned(), |rate| rate.to_string());
        vec![
            pair("rate_limiter (writes only)", bound),
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
            pair("TransactionDB (updaterandom only): lock_timeout", LOCK_MILLIS.to_string()),
            pair("WriteOptions::sync", (setup.durability == Durability::Power).to_string()),
        ]
    }

    fn handle(&self) -> Result<RocksHandle> {
        let mut write = WriteOptions::default();
        write.set_sync(self.sync);
        let mut locking = TransactionOptions::default();
        locking.set_lock_timeout(LOCK_MILLIS);
        // SAFETY: the handle owns the database as well and lets the families go before it.
        let family = |name: &String| unsafe { self.db.family(name) };
        Ok(RocksHandle {
            families: self.names.iter().map(family).collect::<Result<_>>()?,
            write,
            read: ReadOptions::default(),
            locking,
            new: Vec::new(),
            db: self.db.clone(),
        })
    }

    fn clear_tree(&self, tree: TreeId) -> Result<()> {
        self.db.clear(&self.names[tree], &self.family)
    }

    fn wait_idle(&self) -> Result<()> {
        self.db.wait_idle(&self.names)
    }

    fn metrics(&self) -> Result<Metrics> {
        self.db.metrics(&self.names)
    }

    fn close(self) -> Result<()> {
        // Handles are gone by now, so this is the last owner and the drop closes the database.
        drop(self.db);
        Ok(())
    }
}

/// One thread's view of it. The families come before the database, so that they go first.
pub(crate) struct RocksHandle {
    families: Vec<Family>,
    write: WriteOptions,
    read: ReadOptions,
    locking: TransactionOptions,
    /// What an update writes.
    new: Vec<u8>,
    db: Arc<Database>,
}

impl Handle for RocksHandle {
    #[inline]
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put(&self.families[tree], key, value, &self.write)
    }

    #[inline]
    fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        match self.db.get(&self.families[tree], key, &self.read)? {
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
        self.db.multi_get(&self.families[tree], keys, &self.read, found)
    }

    #[inline]
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.db.delete(&self.families[tree], key, &self.write)
    }

    #[inline]
    fn write(&mut self, batch: &Batch) -> Result<()> {
        self.db.write(batch, &self.families, &self.write)
    }

    #[inline]
    fn scan(
        &mut self,
        tree: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        self.db.scan(&self.families[tree], ReadOptions::default(), from, rows, row)
    }

    #[inline]
    fn scan_range(
        &mut self,
        tree: TreeId,
        from: &[u8],
        to: &[u8],
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let mut read = ReadOptions::default();
        read.set_iterate_upper_bound(to);
        self.db.scan(&self.families[tree], read, from, u64::MAX, row)
    }

    #[inline]
    fn update(
        &mut self,
        tree: TreeId,
        key: &[u8],
        change: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>),
    ) -> Result<bool> {
        let how = (&self.write, &self.locking);
        self.db.update(&self.families[tree], key, how, &mut self.new, change)
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

    /// `auto` is not for engines that choose no codecs.
    fn setup() -> Setup {
        shaledb_lab::stores::conformance::setup().of_engine("rocksdb")
    }

    #[test]
    fn does_what_every_engine_must() {
        use shaledb_lab::stores::conformance;
        let dir = tempfile::tempdir().unwrap();
        let setup = setup();
        conformance::check::<RocksDb>(dir.path(), &setup, 1, 4000).unwrap();
        let scans = conformance::Scans::OfOneMoment;
        conformance::check_threads::<RocksDb>(dir.path(), &setup, 50, scans).unwrap();
    }

    #[test]
    fn updates_as_every_engine_must() {
        use shaledb_lab::stores::conformance;
        let dir = tempfile::tempdir().unwrap();
        let setup = setup();
        conformance::check_updates::<RocksDb>(dir.path(), &setup, 2, 4000).unwrap();
        conformance::check_counters::<RocksDb>(dir.path(), &setup, 200).unwrap();
        let store = RocksDb::open(dir.path(), &setup, &["a"]).unwrap();
        let plain = store.handle().unwrap().update(0, b"k", &mut |_, _| ()).unwrap_err();
        assert!(plain.to_string().contains("not opened for updates"), "{plain}");
    }

    #[test]
    fn of_transactions_the_whole_database_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let setup = setup();
        let store = RocksDb::open_for_updates(dir.path(), &setup, &["a"]).unwrap();
        let mut handle = store.handle().unwrap();
        for n in 0..100_000u64 {
            let value = &[n as u8; 200];
            handle.update(0, &n.to_be_bytes(), &mut |_, new| new.extend(value)).unwrap();
        }
        store.wait_idle().unwrap();
        let metrics = store.metrics().unwrap();
        let right = 100_000 * 208;
        for bytes in [metrics.user_bytes, metrics.wal_bytes] {
            assert!(bytes > right - 7_000_000 && bytes < right + 12_000_000, "{metrics:?}");
        }
        assert_eq!((metrics.table_bytes(), metrics.compaction_seconds), (None, None));
        assert!(metrics.table.contains("Cumulative writes"), "{}", metrics.table);
    }

    #[test]
    fn trees_batches_and_scans() {
        let dir = tempfile::tempdir().unwrap();
        let setup = setup();
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
        let setup = setup();
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
        let flushed = metrics.flush_bytes.unwrap();
        assert!(flushed > 1_000_000 && flushed < 2 * right, "{metrics:?}");
        assert!(metrics.levels.iter().map(|level| level.files).sum::<u64>() > 0, "{metrics:?}");
        assert!(metrics.table.contains("[a]") && metrics.table.contains("[b]"));
        assert!(!RocksDb::configuration(&setup).is_empty());
    }
}
