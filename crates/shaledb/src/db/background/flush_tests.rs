//! Tests of what a flush leaves of puts and their deletes.

use super::*;
use crate::base::config::{Config, TreeConfig};
use crate::compaction::policy::LAST;
use crate::db::{Background, BuildOptions, Db, OpenOptions, ScanOptions, Snapshot, Tree};
use crate::fs::mem::{CrashMode, MemClock, MemFs};
use crate::fs::{Env, Fs};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::path::Path;

fn open(fs: &MemFs) -> Result<Db> {
    let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    let config = Config { memtable_bytes: 64 << 10, table_bytes: 64 << 10, ..Config::default() };
    Db::open_in("/db", config, options)
}

/// Entries and deletes of the tables of each level that has some.
fn tables(tree: &Tree) -> Vec<(usize, u64, u64)> {
    let version = tree.inner.state.load().version.clone();
    version.tables().map(|(level, table)| (level, table.meta.entries, table.meta.deletes)).collect()
}

#[test]
fn what_lives_for_a_moment_leaves_nothing() -> Result<()> {
    let fs = MemFs::new();
    let db = open(&fs)?;
    let tree = db.tree_or_create("t")?;
    for key in [b"k", b"m"] {
        tree.put(key, b"v")?;
        tree.delete(key)?;
    }
    tree.flush()?;
    assert_eq!(tables(&tree), []);
    // Over several memtables as well; an overwritten value is no reason to keep a delete.
    for (key, value) in [(b"a", b"1"), (b"k", b"1"), (b"k", b"2"), (b"z", b"1")] {
        tree.put(key, value)?;
    }
    db.core().seal_all(None)?;
    tree.delete(b"k")?;
    tree.flush()?;
    assert_eq!(tables(&tree), [(0, 2, 0)]);
    // What is in a table already, and what nothing is known of, is deleted in the table to come. So
    // small a flush loads no filter: this does.
    assert!(!tree.contains(b"b")?);
    for key in [b"a", b"k"] {
        tree.put(key, b"2")?;
    }
    for key in [b"a", b"k", b"q"] {
        tree.delete(key)?;
    }
    tree.flush()?;
    assert_eq!(tables(&tree), [(0, 2, 2), (0, 2, 0)]);
    let has = |key: &[u8]| tree.contains(key);
    assert_eq!([has(b"a")?, has(b"k")?, has(b"q")?, has(b"z")?], [false, false, false, true]);
    // The log is done with, whether there is a table or not.
    drop((tree, db));
    let db = open(&fs)?;
    let tree = db.tree("t")?;
    assert!(tree.inner.state.load().active.is_empty());
    let has = |key: &[u8]| tree.contains(key);
    assert_eq!([has(b"a")?, has(b"k")?, has(b"q")?, has(b"z")?], [false, false, false, true]);
    Ok(())
}

#[test]
fn a_snapshot_keeps_what_it_may_see() -> Result<()> {
    let db = open(&MemFs::new())?;
    let tree = db.tree_or_create("t")?;
    tree.put(b"k", b"v")?;
    let snapshot = db.snapshot();
    tree.delete(b"k")?;
    tree.flush()?;
    assert_eq!(tables(&tree), [(0, 2, 1)]);
    assert_eq!(tree.get_at(b"k", &snapshot)?.as_deref(), Some(&b"v"[..]));
    assert!(!tree.contains(b"k")?);
    // One that sees neither keeps neither.
    tree.put(b"l", b"v")?;
    tree.delete(b"l")?;
    let later = db.snapshot();
    drop(snapshot);
    tree.flush()?;
    assert_eq!(tables(&tree), [(0, 2, 1)]);
    assert!(tree.get_at(b"l", &later)?.is_none());
    Ok(())
}

#[test]
fn a_tree_that_is_being_built_keeps_every_delete() -> Result<()> {
    let db = open(&MemFs::new())?;
    let source = db.tree_or_create("source")?;
    source.put(b"k", b"")?;
    let mut build = source.build_online("built", TreeConfig::default(), BuildOptions::default())?;
    let tree = build.tree().clone();
    tree.put(b"k", b"once more")?;
    tree.delete(b"k")?;
    tree.flush()?;
    assert_eq!(tables(&tree), [(0, 1, 1)]);
    build.add(b"k", b"as the scan has it")?;
    build.finish()?;
    assert!(!tree.contains(b"k")?);
    Ok(())
}

#[test]
fn a_large_value_goes_with_its_delete() -> Result<()> {
    let fs = MemFs::new();
    let db = open(&fs)?;
    let tree = db.tree_or_create("t")?;
    let blobs = || {
        let files = fs.list(Path::new("/db")).unwrap();
        files.iter().filter(|file| file.name.ends_with(".blob")).count()
    };
    tree.put(b"k", &vec![7; 3 << 20])?;
    assert_eq!(blobs(), 1);
    tree.delete(b"k")?;
    tree.flush()?;
    while db.step()? {}
    assert_eq!((tables(&tree), blobs()), (vec![], 0));
    Ok(())
}

type Rows = BTreeMap<Vec<u8>, u32>;

/// A tree and what it must have, now and at snapshots.
struct Pair {
    fs: MemFs,
    db: Db,
    tree: Tree,
    now: Rows,
    snapshots: Vec<(Snapshot, Rows)>,
}

impl Pair {
    fn rows(&self, snapshot: Option<&Snapshot>) -> Result<Rows> {
        let scan = self.tree.scan_with(ScanOptions { snapshot, ..ScanOptions::default() })?;
        let row = |row: Result<(Vec<u8>, Vec<u8>)>| {
            let (key, value) = row?;
            Ok((key, u32::from_le_bytes(value[..4].try_into().unwrap())))
        };
        scan.map(row).collect()
    }

    fn check(&self) -> Result<()> {
        assert_eq!(self.rows(None)?, self.now);
        for (snapshot, had) in &self.snapshots {
            assert_eq!(self.rows(Some(snapshot))?, *had);
        }
        Ok(())
    }

    /// Goes on with what a crash leaves, all commits being durable.
    fn crash(&mut self, seed: u64) -> Result<()> {
        self.db.sync()?;
        self.snapshots.clear();
        self.fs = self.fs.crash_clone(seed, CrashMode::Torn);
        self.db = open(&self.fs)?;
        self.tree = self.db.tree_or_create("t")?;
        self.check()
    }

    fn write(&mut self, random: &mut StdRng, last: &mut Vec<u8>, number: u32) -> Result<()> {
        let key = random.random_range(0..2000u32).to_be_bytes().to_vec();
        if random.random_bool(0.6) {
            let mut value = vec![0; random.random_range(4..200)];
            random.fill(&mut value[4..]);
            value[..4].copy_from_slice(&number.to_le_bytes());
            self.tree.put(&key, &value)?;
            self.now.insert(key.clone(), number);
        } else {
            let key = if random.random_bool(0.7) { &*last } else { &key };
            self.tree.delete(key)?;
            self.now.remove(key);
        }
        *last = key;
        Ok(())
    }
}

/// What flushes and merges leave out is seen by nobody: on a small table, all of whose keys come and
/// go many times, with snapshots and crashes.
#[test]
fn rows_are_those_of_a_map_whatever_is_flushed_and_merged() -> Result<()> {
    let seeds = std::env::var("SHALE_SEEDS").map_or(3, |text| text.parse().unwrap());
    for seed in 0..seeds {
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let fs = MemFs::new();
        let db = open(&fs)?;
        let tree = db.tree_or_create("t")?;
        let mut pair = Pair { fs, db, tree, now: Rows::new(), snapshots: Vec::new() };
        let mut last = Vec::new();
        for number in 0..20_000 {
            match random.random_range(0..1000) {
                0..960 => pair.write(&mut random, &mut last, number)?,
                960..970 => pair.tree.flush()?,
                970..985 => drop(pair.db.step()?),
                985..990 => pair.snapshots.push((pair.db.snapshot(), pair.now.clone())),
                990..996 if pair.snapshots.len() > 2 => drop(pair.snapshots.remove(0)),
                996 => pair.tree.compact()?,
                997 => pair.crash(random.random())?,
                998..1000 => pair.check()?,
                _ => {}
            }
        }
        pair.snapshots.clear();
        pair.tree.compact()?;
        pair.check()?;
        let rows = pair.now.len() as u64;
        assert!(
            tables(&pair.tree).iter().all(|(level, _, deletes)| (*level, *deletes) == (LAST, 0))
        );
        assert_eq!(tables(&pair.tree).iter().map(|table| table.1).sum::<u64>(), rows);
    }
    Ok(())
}
