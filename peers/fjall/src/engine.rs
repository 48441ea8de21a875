//! fjall: a keyspace per tree, its makers' defaults for all that the lab does not give every
//! engine. Some calls are outside its documented interface, for want of others: waiting for a
//! flush, running the compactions that are due, the sizes of the levels.

use fjall::compaction::Leveled;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{
    AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode,
    Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace,
};
use shaledb_lab::setup::{Durability, Setup};
use shaledb_lab::stores::engine::{Batch, Engine, Handle, Level, Metrics, Op, Result, TreeId};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// As many memtables of the size that was asked for as RocksDB gets; the cache has the rest.
const MEMTABLES: u64 = 4;
/// Those of one tree that may wait to be flushed before its writers wait as well.
const SEALED: u64 = 3;
const LEVELS: usize = 7;

/// An open database.
pub(crate) struct Fjall {
    db: Database,
    trees: Vec<Keyspace>,
    transactions: Transactions,
    sync: bool,
}

/// The same database and trees with transactions that wait for each other: one is under way at a
/// time. What goes past them pays nothing for them.
#[derive(Clone)]
struct Transactions {
    db: SingleWriterTxDatabase,
    trees: Vec<SingleWriterTxKeyspace>,
}

/// LZ4 is the only codec that fjall has.
fn codec(name: &str) -> CompressionType {
    if name == "none" { CompressionType::None } else { CompressionType::Lz4 }
}

/// Levels 0 and 1 are the small ones, as in fjall's own default.
fn codecs(setup: &Setup) -> [CompressionType; LEVELS] {
    let mut codecs = [codec(&setup.codecs.middle); LEVELS];
    codecs[..2].fill(codec(&setup.codecs.upper));
    codecs[LEVELS - 1] = codec(&setup.codecs.bottommost);
    codecs
}

/// What the memtables leave of the memory.
fn cache_bytes(setup: &Setup) -> u64 {
    setup.memory.saturating_sub(MEMTABLES * setup.memtable).max(8 << 20)
}

/// All trees' memtables together have the bytes of [`MEMTABLES`]: the active one of each tree and
/// the sealed ones of one.
fn memtable_bytes(setup: &Setup, trees: usize) -> u64 {
    (MEMTABLES * setup.memtable / (trees as u64 + SEALED)).min(setup.memtable).max(1 << 20)
}

/// fjall's default, 64 MiB, is for memtables of 64 MiB: level 1 has four such tables.
fn table_bytes(setup: &Setup) -> u64 {
    setup.memtable.clamp(2 << 20, 64 << 20)
}

/// More than the background threads if there are as many trees: workers send themselves the flush
/// of a tree over the bounded queue that writers fill, and stop for good when all of them wait in
/// that (https://github.com/fjall-rs/fjall/pull/323).
fn workers(setup: &Setup, trees: usize) -> usize {
    (setup.background_threads as usize).max(trees + 1)
}

/// The filters of level 0 are fjall's own choice: they are small and asked often.
fn filters(setup: &Setup) -> FilterPolicy {
    if setup.filter_bits == 0 {
        return FilterPolicy::disabled();
    }
    let bits = f32::from(setup.filter_bits);
    FilterPolicy::new([
        FilterPolicyEntry::Bloom(BloomConstructionPolicy::FalsePositiveRate(0.0001)),
        FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(bits)),
    ])
}

fn options(setup: &Setup, trees: usize) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable_bytes(setup, trees))
        .compaction_strategy(Arc::new(
            Leveled::default().with_table_target_size(table_bytes(setup)),
        ))
        .data_block_size_policy(BlockSizePolicy::all(setup.block_bytes as u32))
        .data_block_compression_policy(CompressionPolicy::new(codecs(setup)))
        .filter_policy(filters(setup))
}

impl Engine for Fjall {
    type Handle = FjallHandle;
    const NAME: &'static str = "fjall";

    fn version() -> String {
        "3.1.13".to_owned()
    }

    fn open(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Fjall> {
        let transactions = SingleWriterTxDatabase::builder(dir)
            .cache_size(cache_bytes(setup))
            .worker_threads(workers(setup, trees.len()))
            .open()?;
        let count = trees.len();
        let db = transactions.inner().clone();
        let tree = |name: &&str| transactions.keyspace(name, || options(setup, count));
        let locking = trees.iter().map(tree).collect::<fjall::Result<Vec<_>>>()?;
        let trees = locking.iter().map(|tree| tree.inner().clone()).collect();
        let transactions = Transactions { db: transactions, trees: locking };
        Ok(Fjall { db, trees, transactions, sync: setup.durability == Durability::Power })
    }

    fn open_for_updates(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Fjall> {
        Fjall::open(dir, setup, trees)
    }

    fn configuration(setup: &Setup) -> Vec<(String, String)> {
        let pair = |name: &str, value: String| (name.to_owned(), value);
        let sync = setup.durability == Durability::Power;
        let most = setup.memtable;
        let filter = match setup.filter_bits {
            0 => "none".to_owned(),
            bits => format!("level 0 false positives 0.0001, others {bits} bits per key"),
        };
        vec![
            pair("cache_size", cache_bytes(setup).to_string()),
            pair(
                "max_memtable_size",
                format!("{} / (trees + {SEALED}), at most {most}", MEMTABLES * setup.memtable),
            ),
            pair("worker_threads", format!("{}, at least trees + 1", setup.background_threads)),
            pair("data_block_size_policy", setup.block_bytes.to_string()),
            pair("data_block_compression_policy", format!("{:?}", codecs(setup))),
            pair("filter_policy", filter),
            pair("manual_journal_persist", "false".to_owned()),
            pair("max_journaling_size", (512 << 20).to_string()),
            pair("compaction_strategy", format!("Leveled, tables of {}", table_bytes(setup))),
            pair("persist", if sync { "SyncData" } else { "Buffer" }.to_owned()),
        ]
    }

    fn handle(&self) -> Result<FjallHandle> {
        Ok(FjallHandle {
            db: self.db.clone(),
            trees: self.trees.clone(),
            transactions: self.transactions.clone(),
            new: Vec::new(),
            sync: self.sync,
        })
    }

    fn clear_tree(&self, tree: TreeId) -> Result<()> {
        self.trees[tree].clear()?;
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        for tree in &self.trees {
            tree.rotate_memtable_and_wait()?;
        }
        self.await_workers();
        for tree in &self.trees {
            // One call is one compaction, if one is due. The workers start them at flushes only.
            loop {
                let before = tree.tree.current_version().id();
                let oldest = self.db.supervisor.snapshot_tracker.get_seqno_safe_to_gc();
                tree.tree.compact(tree.config.compaction_strategy.clone(), oldest)?;
                self.await_workers();
                if tree.tree.current_version().id() == before {
                    break;
                }
            }
        }
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        let levels = self.levels();
        let table = levels.iter().filter(|level| level.files > 0).map(|level| {
            let Level { level, files, bytes, .. } = level;
            format!("level {level}: {files} tables, {bytes} bytes\n")
        });
        Ok(Metrics {
            compaction_seconds: Some(self.db.time_compacting().as_secs_f64()),
            table: format!(
                "{}compactions {}, journals {}\n",
                table.collect::<String>(),
                self.db.compactions_completed(),
                self.db.journal_count()
            ),
            levels,
            ..Metrics::default()
        })
    }

    fn close(self) -> Result<()> {
        self.db.persist(PersistMode::Buffer)?;
        // Handles are gone by now: the drop of the last owner stops the workers and closes it.
        Ok(())
    }
}

impl Fjall {
    fn await_workers(&self) {
        while self.db.outstanding_flushes() > 0 || self.db.active_compactions() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The levels of all trees together.
    fn levels(&self) -> Vec<Level> {
        let numbers = 0..LEVELS as u32;
        let mut levels: Vec<Level> =
            numbers.map(|level| Level { level, ..Level::default() }).collect();
        for tree in &self.trees {
            let version = tree.tree.current_version();
            for (sum, level) in levels.iter_mut().zip(version.iter_levels()) {
                sum.files += level.table_count() as u64;
                sum.bytes += level.size();
            }
        }
        levels
    }
}

/// One thread's view of it.
pub(crate) struct FjallHandle {
    db: Database,
    trees: Vec<Keyspace>,
    transactions: Transactions,
    /// What an update writes.
    new: Vec<u8>,
    sync: bool,
}

impl FjallHandle {
    fn mode(&self) -> PersistMode {
        if self.sync { PersistMode::SyncData } else { PersistMode::Buffer }
    }

    /// Shows the rows of a range.
    ///
    /// `Keyspace::range` reads the newest rows, not those of one moment. A snapshot's are, but for
    /// batches that are at work when a flush ends: see the tests.
    #[inline]
    fn show(
        &self,
        tree: TreeId,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let mut found = self.db.snapshot().range::<&[u8], _>(&self.trees[tree], range);
        let mut done = 0;
        while done < rows {
            let Some(pair) = found.next() else { break };
            let (key, value) = pair.into_inner()?;
            done += 1;
            if !row(&key, &value) {
                break;
            }
        }
        Ok(done)
    }

    #[inline]
    fn synced(&self) -> Result<()> {
        if self.sync {
            self.db.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }
}

impl Handle for FjallHandle {
    #[inline]
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.trees[tree].insert(key, value)?;
        self.synced()
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
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.trees[tree].remove(key)?;
        self.synced()
    }

    #[inline]
    fn write(&mut self, batch: &Batch) -> Result<()> {
        let mode = self.mode();
        let mut ours = fjall::OwnedWriteBatch::with_capacity(self.db.clone(), batch.len())
            .durability(Some(mode));
        for op in batch.iter() {
            match op {
                Op::Put(tree, key, value) => ours.insert(&self.trees[tree], key, value),
                Op::Delete(tree, key) => ours.remove(&self.trees[tree], key),
            }
        }
        ours.commit().map_err(Into::into)
    }

    #[inline]
    fn scan(
        &mut self,
        tree: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        self.show(tree, (Bound::Included(from), Bound::Unbounded), rows, row)
    }

    #[inline]
    fn scan_range(
        &mut self,
        tree: TreeId,
        from: &[u8],
        to: &[u8],
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        if from >= to {
            return Ok(0);
        }
        self.show(tree, (Bound::Included(from), Bound::Excluded(to)), u64::MAX, row)
    }

    #[inline]
    fn update(
        &mut self,
        tree: TreeId,
        key: &[u8],
        change: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>),
    ) -> Result<bool> {
        let tree = &self.transactions.trees[tree];
        let mut write = self.transactions.db.write_tx().durability(Some(self.mode()));
        self.new.clear();
        let old = write.get(tree, key)?;
        change(old.as_deref(), &mut self.new);
        write.insert(tree, key, &self.new[..]);
        write.commit()?;
        Ok(old.is_some())
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
