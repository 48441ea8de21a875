//! LMDB: a database per tree in one environment. It has no cache and no log of its own: reads are
//! from the page cache of the system, a commit writes the changed pages.

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions};
use shaledb_lab::setup::{Durability, Setup};
use shaledb_lab::stores::engine::{Batch, Engine, Handle, Metrics, Op, Result, TreeId};
use std::ops::Bound;
use std::path::Path;

/// Address space that is set aside: the most that the file may grow to. No memory and no disk are
/// taken by it.
const MAP_BYTES: usize = 1 << 40;
const READERS_MAX: u32 = 512;
const TREES_MAX: u32 = 64;

type Tree = Database<'static, Bytes, Bytes>;

/// An open environment.
pub(crate) struct Lmdb {
    env: Env,
    names: Vec<String>,
    trees: Vec<Tree>,
}

fn flags(setup: &Setup) -> EnvFlags {
    let flags = EnvFlags::NO_READ_AHEAD | EnvFlags::NO_MEM_INIT;
    match setup.durability {
        Durability::Process => flags | EnvFlags::NO_SYNC,
        Durability::Power => flags,
    }
}

impl Engine for Lmdb {
    type Handle = LmdbHandle;
    const NAME: &'static str = "lmdb";

    fn version() -> String {
        let version = heed::lmdb_version();
        format!("{}.{}.{} (heed 0.23.1)", version.major, version.minor, version.patch)
    }

    fn open(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Lmdb> {
        std::fs::create_dir_all(dir)?;
        let mut options = EnvOpenOptions::new().read_txn_with_tls();
        options.map_size(MAP_BYTES).max_readers(READERS_MAX).max_dbs(TREES_MAX);
        // SAFETY: the flags leave LMDB's locks on and do not map for writing; the folder is the
        // lab's own, and no other program changes its files while it is open.
        let env = unsafe { options.flags(flags(setup)).open(dir)? };
        let names = trees.iter().map(|&name| name.to_owned()).collect();
        let make = |name: &&str| -> Result<Tree> {
            let made = env.create_databases_and_commit(env.write_txn()?, |opener, write| {
                let tree = opener.create_database::<Bytes, Bytes>(write, Some(name))?;
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(tree))
            })?;
            made.commit().ok_or_else(|| "LMDB did not create the database".into())
        };
        let trees = trees.iter().map(make).collect::<Result<_>>()?;
        Ok(Lmdb { env, names, trees })
    }

    fn open_for_updates(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Lmdb> {
        // There is one writer at a time: every transaction that writes holds all rows.
        Lmdb::open(dir, setup, trees)
    }

    fn configuration(setup: &Setup) -> Vec<(String, String)> {
        let pair = |name: &str, value: String| (name.to_owned(), value);
        let synced = match setup.durability {
            Durability::Process => "MDB_NOSYNC: not synced",
            Durability::Power => "data and meta page are synced at each commit",
        };
        vec![
            pair("mapsize", MAP_BYTES.to_string()),
            pair("maxreaders", READERS_MAX.to_string()),
            pair("MDB_NORDAHEAD", "set".to_owned()),
            pair("MDB_NOMEMINIT", "set".to_owned()),
            pair("MDB_WRITEMAP", "not set".to_owned()),
            pair("commits", synced.to_owned()),
            pair("memory", "the system's page cache; LMDB has no setting".to_owned()),
            pair("compression", "none: LMDB has none".to_owned()),
        ]
    }

    fn handle(&self) -> Result<LmdbHandle> {
        Ok(LmdbHandle { env: self.env.clone(), trees: self.trees.clone(), new: Vec::new() })
    }

    fn clear_tree(&self, tree: TreeId) -> Result<()> {
        // The pages are used again; the file does not shrink.
        let mut write = self.env.write_txn()?;
        self.trees[tree].clear(&mut write)?;
        write.commit().map_err(Into::into)
    }

    fn wait_idle(&self) -> Result<()> {
        self.env.force_sync().map_err(Into::into)
    }

    fn metrics(&self) -> Result<Metrics> {
        let read = self.env.read_txn()?;
        let pages = self.env.info().last_page_number + 1;
        let mut table = format!("file: {pages} pages, with the free ones\n");
        for (name, tree) in self.names.iter().zip(&self.trees) {
            let stat = tree.stat(&read)?;
            table.push_str(&format!(
                "{name}: depth {}, pages: {} branch, {} leaf, {} overflow, rows {}\n",
                stat.depth, stat.branch_pages, stat.leaf_pages, stat.overflow_pages, stat.entries
            ));
        }
        Ok(Metrics { table, ..Metrics::default() })
    }

    fn close(self) -> Result<()> {
        // Handles are gone by now; the same folder can be opened once this is over.
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}

/// One thread's view of it.
pub(crate) struct LmdbHandle {
    env: Env,
    trees: Vec<Tree>,
    /// What an update writes.
    new: Vec<u8>,
}

impl Handle for LmdbHandle {
    #[inline]
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        let mut write = self.env.write_txn()?;
        self.trees[tree].put(&mut write, key, value)?;
        write.commit().map_err(Into::into)
    }

    #[inline]
    fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        let read = self.env.read_txn()?;
        match self.trees[tree].get(&read, key)? {
            Some(value) => {
                found(value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// In one transaction, since beginning one costs as much as looking a key up.
    #[inline]
    fn multi_get(
        &mut self,
        tree: TreeId,
        keys: &[impl AsRef<[u8]>],
        found: &mut impl FnMut(usize, &[u8]),
    ) -> Result<u64> {
        let read = self.env.read_txn()?;
        let mut there = 0;
        for (at, key) in keys.iter().enumerate() {
            if let Some(value) = self.trees[tree].get(&read, key.as_ref())? {
                found(at, value);
                there += 1;
            }
        }
        Ok(there)
    }

    #[inline]
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        let mut write = self.env.write_txn()?;
        self.trees[tree].delete(&mut write, key)?;
        write.commit().map_err(Into::into)
    }

    #[inline]
    fn write(&mut self, batch: &Batch) -> Result<()> {
        let mut write = self.env.write_txn()?;
        for op in batch.iter() {
            match op {
                Op::Put(tree, key, value) => self.trees[tree].put(&mut write, key, value)?,
                Op::Delete(tree, key) => {
                    self.trees[tree].delete(&mut write, key)?;
                }
            }
        }
        write.commit().map_err(Into::into)
    }

    #[inline]
    fn scan(
        &mut self,
        tree: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let read = self.env.read_txn()?;
        // LMDB has no empty keys and refuses to look for one.
        let start = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
        let range = (start, Bound::Unbounded);
        let mut found = self.trees[tree].range(&read, &range)?;
        let mut done = 0;
        while done < rows {
            let Some(pair) = found.next() else { break };
            let (key, value) = pair?;
            done += 1;
            if !row(key, value) {
                break;
            }
        }
        Ok(done)
    }

    #[inline]
    fn update(
        &mut self,
        tree: TreeId,
        key: &[u8],
        change: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>),
    ) -> Result<bool> {
        let mut write = self.env.write_txn()?;
        self.new.clear();
        let old = self.trees[tree].get(&write, key)?;
        let found = old.is_some();
        change(old, &mut self.new);
        self.trees[tree].put(&mut write, key, &self.new)?;
        write.commit()?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaledb_lab::stores::conformance;

    #[test]
    fn does_what_every_engine_must() {
        let dir = tempfile::tempdir().unwrap();
        let setup = conformance::setup();
        conformance::check::<Lmdb>(dir.path(), &setup, 1, 4000).unwrap();
        let scans = conformance::Scans::OfOneMoment;
        conformance::check_threads::<Lmdb>(dir.path(), &setup, 50, scans).unwrap();
    }

    #[test]
    fn updates_as_every_engine_must() {
        let dir = tempfile::tempdir().unwrap();
        let setup = conformance::setup();
        conformance::check_updates::<Lmdb>(dir.path(), &setup, 2, 4000).unwrap();
        conformance::check_counters::<Lmdb>(dir.path(), &setup, 200).unwrap();
    }

    #[test]
    fn commits_can_be_synced() {
        let dir = tempfile::tempdir().unwrap();
        let setup = Setup { durability: Durability::Power, ..conformance::setup() };
        conformance::check::<Lmdb>(dir.path(), &setup, 2, 400).unwrap();
        assert!(!flags(&setup).contains(EnvFlags::NO_SYNC));
    }

    #[test]
    fn pages_are_counted_and_used_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = Lmdb::open(dir.path(), &conformance::setup(), &["a", "b"]).unwrap();
        let mut batch = Batch::new();
        (0..2000u32).for_each(|n| batch.put(0, &n.to_be_bytes(), &[1; 200]));
        let mut handle = store.handle().unwrap();
        handle.write(&batch).unwrap();
        let table = store.metrics().unwrap().table;
        assert!(table.contains("rows 2000"), "{table}");
        store.clear_tree(0).unwrap();
        let last = store.env.info().last_page_number;
        for _ in 0..3 {
            handle.write(&batch).unwrap();
            store.clear_tree(0).unwrap();
        }
        assert!(store.env.info().last_page_number < last * 3);
    }
}
