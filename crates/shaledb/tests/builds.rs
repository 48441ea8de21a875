//! Online builds with threads, on a real directory: writers, flushes and compactions at once, build
//! after build. Under ThreadSanitizer by `cargo xtask tsan`.
//!
//! What holds: when a build has ended, its tree has what the source says; also after writers have
//! gone on with it. A unique build fails if a writer makes a duplicate, and no writer ever does. A
//! copy that follows the source in rounds (`Tree::track_changes`) has what the source says too.

use shaledb::entry_of_row;
use shaledb::{Batch, BuildOptions, ChangeTracker, Config, Db, Error, OnlineBuild, Result, Tree};
use shaledb::{ScanOptions, Snapshot, TransactionOptions, TreeConfig, UniqueRow, WriteOptions};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{RwLock, RwLockWriteGuard};
use std::time::{Duration, Instant};

const WRITERS: u64 = 3;
/// Rows of each writer.
const ROWS: u64 = 400;

/// How many builds of each kind there are: `SHALE_BUILDS` if it is set.
fn builds() -> u64 {
    let set = std::env::var("SHALE_BUILDS").ok();
    set.map_or(6, |set| set.parse().expect("SHALE_BUILDS is a number"))
}

/// Memtables and tables so small that much happens with little data.
fn small() -> Config {
    Config {
        memory_bytes: 8 << 20,
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        background_threads: 2,
        ..Config::default()
    }
}

/// What a writer has to do for the index.
#[derive(Clone)]
enum Index {
    None,
    /// Keys tell their rows, whether it is being built or has been.
    Plain(Tree),
    /// The changes of a unique tree that is being built.
    Changes(Tree),
    Unique(Tree),
    /// Which rows are changed.
    Tracked(Tree),
}

impl Index {
    /// The tree, and the entry of a row: its key and value.
    fn entry(&self, name: &[u8], row: &[u8]) -> Option<(&Tree, Vec<u8>, Vec<u8>)> {
        match self {
            Index::None => None,
            Index::Plain(tree) => Some((tree, [name, b"/", row].concat(), Vec::new())),
            Index::Changes(tree) => Some((tree, entry_of_row(name, row), row.to_vec())),
            Index::Unique(tree) => Some((tree, name.to_vec(), row.to_vec())),
            Index::Tracked(tree) => Some((tree, row.to_vec(), Vec::new())),
        }
    }
}

struct World {
    db: Db,
    source: Tree,
    /// Each change of the source holds it to read; who changes what is to be written, to write.
    index: RwLock<Index>,
    ended: AtomicBool,
    writes: AtomicU64,
}

/// The rows of one writer by key, with their names, and a source of chance.
struct Writer {
    number: u64,
    state: u64,
    names: BTreeMap<Vec<u8>, Vec<u8>>,
    next_name: u64,
}

impl Writer {
    fn random(&mut self, below: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.state >> 33) % below
    }

    fn key(&mut self) -> Vec<u8> {
        let row = self.random(ROWS);
        format!("row {} {row:05}", self.number).into_bytes()
    }

    /// A name that no row has had, but for zeros at its end.
    fn name(&mut self) -> Vec<u8> {
        self.next_name += 1;
        let mixed = self.next_name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        format!("name {mixed:08} {} {}\0", self.number, self.next_name).into_bytes()
    }

    /// What rows are to be: one changes, goes or comes, or two change their names.
    fn change(&mut self) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let (key, other) = (self.key(), self.key());
        match (self.random(6), self.names.get(&key), self.names.get(&other)) {
            (0, ..) => vec![(key, None)],
            (1 | 2, Some(a), Some(b)) if key != other => {
                let (a, b) = (a.clone(), b.clone());
                vec![(key, Some(b)), (other, Some(a))]
            }
            _ => vec![(key, Some(self.name()))],
        }
    }

    fn write(&mut self, world: &World) -> Result<()> {
        let change = self.change();
        let in_transaction = self.random(2) == 0;
        let index = world.index.read().unwrap();
        let (mut goes, mut comes) = (Vec::new(), Vec::new());
        for (key, name) in &change {
            if let Index::Tracked(_) = *index {
                comes.extend(index.entry(b"", key));
                continue;
            }
            goes.extend(self.names.get(key).and_then(|old| index.entry(old, key)));
            comes.extend(name.as_ref().and_then(|name| index.entry(name, key)));
        }
        if in_transaction {
            let mut txn = world.db.begin(TransactionOptions::default())?;
            for (key, name) in &change {
                match name {
                    Some(name) => txn.put(&world.source, key, name)?,
                    None => txn.delete(&world.source, key)?,
                }
            }
            goes.iter().try_for_each(|(tree, key, _)| txn.delete(tree, key))?;
            let tracked = matches!(*index, Index::Tracked(_));
            comes.iter().try_for_each(|(tree, key, value)| match tracked {
                true => txn.put_unlocked(tree, key, value),
                false => txn.put(tree, key, value),
            })?;
            if self.random(8) == 0 {
                txn.rollback();
                return Ok(());
            }
            txn.commit(WriteOptions::default())?;
        } else {
            let mut batch = Batch::new();
            for (key, name) in &change {
                match name {
                    Some(name) => batch.put(&world.source, key, name),
                    None => batch.delete(&world.source, key),
                }
            }
            goes.iter().for_each(|(tree, key, _)| batch.delete(tree, key));
            comes.iter().for_each(|(tree, key, value)| batch.put(tree, key, value));
            world.db.write(&batch, WriteOptions::default())?;
        }
        world.writes.fetch_add(1, Ordering::Relaxed);
        for (key, name) in change {
            match name {
                Some(name) => drop(self.names.insert(key, name)),
                None => drop(self.names.remove(&key)),
            }
        }
        Ok(())
    }
}

/// Ends the other threads, also by a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl World {
    fn write(&self, number: u64) -> Result<()> {
        let mut writer = Writer { number, state: number + 1, names: BTreeMap::new(), next_name: 0 };
        while !self.ended.load(Ordering::Relaxed) {
            writer.write(self)?;
        }
        Ok(())
    }

    /// Flushes and compactions beside those of the background.
    fn maintain(&self) -> Result<()> {
        for pass in 0u64.. {
            if self.ended.load(Ordering::Relaxed) {
                break;
            }
            let index = self.index.read().unwrap().clone();
            match index.entry(b"", b"") {
                // It may be dropped meanwhile.
                Some((tree, ..)) if pass.is_multiple_of(2) => match tree.compact() {
                    Err(Error::NoSuchTree(_)) | Ok(()) => {}
                    Err(error) => return Err(error),
                },
                _ => self.db.flush()?,
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    fn wait_for_writes(&self, count: u64) {
        let (before, started) = (self.writes.load(Ordering::Relaxed), Instant::now());
        while self.writes.load(Ordering::Relaxed) < before + count {
            assert!(started.elapsed() < Duration::from_secs(60), "writers go on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn begin(&self, unique: bool) -> Result<OnlineBuild> {
        let mut index = self.index.write().unwrap();
        let unique = unique.then_some(UniqueRow::Value);
        let options = BuildOptions { memory_bytes: 16 << 10, unique, ..BuildOptions::default() };
        let build = self.source.build_online("index", TreeConfig::default(), options)?;
        *index = match unique {
            Some(_) => Index::Changes(build.tree().clone()),
            None => Index::Plain(build.tree().clone()),
        };
        Ok(build)
    }

    fn fill(&self, build: &mut OnlineBuild, unique: bool) -> Result<()> {
        build.fill(|key, name, entries| match unique {
            true => entries.add(name, key),
            false => entries.add(&[name, b"/", key].concat(), b""),
        })
    }

    /// With writers held off: the index is what the source says. Then there is none.
    fn check(&self, mut index: RwLockWriteGuard<'_, Index>, drops: bool) -> Result<()> {
        let rows = |tree: &Tree| tree.scan::<&[u8]>(..)?.collect::<Result<Vec<_>>>();
        let (tree, ..) = index.entry(b"", b"").expect("there is an index");
        let (found, mut wanted) = (rows(tree)?, Vec::new());
        for (key, name) in rows(&self.source)? {
            wanted.extend(index.entry(&name, &key).map(|(_, key, value)| (key, value)));
        }
        wanted.sort();
        assert_eq!(found.len(), wanted.len());
        assert!(found == wanted, "the index has other entries");
        if drops {
            self.db.drop_tree("index")?;
            *index = Index::None;
        }
        Ok(())
    }

    fn build(&self, unique: bool) -> Result<()> {
        let mut build = self.begin(unique)?;
        self.wait_for_writes(100);
        self.fill(&mut build, unique)?;
        self.wait_for_writes(300);
        if unique {
            for _ in 0..3 {
                build.catch_up()?;
                self.wait_for_writes(20);
            }
            let mut index = self.index.write().unwrap();
            *index = Index::Unique(build.finish()?);
            self.check(index, false)?;
        } else {
            build.finish()?;
        }
        self.wait_for_writes(300);
        self.check(self.index.write().unwrap(), true)
    }

    /// Looks at the rows that were changed since the last round.
    fn round(&self, tracker: &mut ChangeTracker, copy: &Tree, last: bool) -> Result<()> {
        let copied = |key: &[u8], at: &Snapshot| -> Result<Option<Vec<u8>>> {
            Ok(self.source.get_at(key, at)?.map(|name| [&name[..], b"/", key].concat()))
        };
        let round = tracker.begin_round(!last)?;
        for key in round.keys() {
            let key = key?;
            let was = copied(&key, tracker.copied())?;
            let is = copied(&key, round.snapshot())?;
            if was != is {
                was.iter().try_for_each(|was| copy.delete(was))?;
                is.iter().try_for_each(|is| copy.put(is, b""))?;
            }
        }
        tracker.end_round(round)
    }

    /// Copies the source as a plain index has it, and then follows it.
    fn copy(&self) -> Result<()> {
        let mut tracker = {
            let mut index = self.index.write().unwrap();
            let tracker = self.source.track_changes("changes", Duration::ZERO)?;
            *index = Index::Tracked(tracker.tree().clone());
            tracker
        };
        let copy = self.db.create_tree("index", TreeConfig::default())?;
        self.wait_for_writes(100);
        let at = ScanOptions { snapshot: Some(tracker.copied()), ..ScanOptions::default() };
        for row in self.source.scan_with(at)? {
            let (key, name) = row?;
            copy.put(&[&name[..], b"/", &key[..]].concat(), b"")?;
        }
        for _ in 0..3 {
            self.wait_for_writes(200);
            self.round(&mut tracker, &copy, false)?;
        }
        let mut index = self.index.write().unwrap();
        tracker.wait_for_writers(Duration::ZERO)?;
        self.round(&mut tracker, &copy, true)?;
        drop(tracker);
        *index = Index::Plain(copy);
        self.check(index, false)?;
        // It is an index as any other from here on.
        self.wait_for_writes(300);
        self.check(self.index.write().unwrap(), true)
    }

    /// A row that takes another's name fails the build, and nothing else.
    fn build_in_vain(&self) -> Result<()> {
        let mut build = self.begin(true)?;
        self.fill(&mut build, true)?;
        build.catch_up()?;
        let (one, other, name) = (b"twice 1", b"twice 2", b"twice");
        let index = self.index.read().unwrap().clone();
        let mut batch = Batch::new();
        for row in [one, other] {
            batch.put(&self.source, row, name);
            let (tree, key, value) = index.entry(name, row).expect("it is being built");
            batch.put(tree, &key, &value);
        }
        self.db.write(&batch, WriteOptions::default())?;
        self.wait_for_writes(50);
        build.catch_up()?;
        let mut index = self.index.write().unwrap();
        match build.finish() {
            Err(Error::Duplicate { key, rows, .. }) => {
                assert_eq!((key, rows), (name.to_vec(), [one.to_vec(), other.to_vec()]));
            }
            other => panic!("{other:?}"),
        }
        *index = Index::None;
        assert_eq!(self.db.tree_names(), ["source"]);
        self.source.delete(one)?;
        self.source.delete(other)
    }
}

#[test]
fn trees_are_built_beside_writers_and_compactions() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db"), small())?;
    let world = World {
        source: db.tree_or_create("source")?,
        db,
        index: RwLock::new(Index::None),
        ended: AtomicBool::new(false),
        writes: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        let world = &world;
        let mut others = vec![scope.spawn(|| world.maintain())];
        others.extend((0..WRITERS).map(|number| scope.spawn(move || world.write(number))));
        let ends = Ends(&world.ended);
        world.wait_for_writes(500);
        let built = (0..builds()).try_for_each(|_| {
            world.build(false)?;
            world.build(true)?;
            world.copy()?;
            world.build_in_vain()
        });
        drop(ends);
        for other in others {
            other.join().expect("no thread panics")?;
        }
        built
    })?;
    assert!(world.db.verify(&mut |_| ())?.damage.is_empty());
    assert_eq!(world.db.tree_names(), ["source"]);
    let World { db, source, .. } = world;
    drop(source);
    db.close()
}

/// A round that is not the next one of its tracker would leave out changes, or take those of
/// another tree.
#[test]
fn a_tracker_takes_its_own_rounds_in_their_order() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db"), small())?;
    let [mut one, mut other] = ["one", "other"].map(|name| {
        let source = db.tree_or_create(name).unwrap();
        source.track_changes(&format!("changes of {name}"), Duration::ZERO).unwrap()
    });
    let elsewhere = Db::open(dir.path().join("elsewhere"), small())?;
    let away = elsewhere.tree_or_create("one")?.track_changes("changes of one", Duration::ZERO)?;
    let refused = |tracker: &mut ChangeTracker, round| {
        let before = tracker.copied().seq();
        let error = tracker.end_round(round).unwrap_err();
        assert!(
            matches!(&error, Error::InvalidArgument(text) if text.contains("round")),
            "{error}"
        );
        assert_eq!(tracker.copied().seq(), before, "nothing has changed");
    };
    for (flush, key) in [(false, b"1"), (true, b"2")] {
        let early = one.begin_round(flush)?;
        one.tree().put(key, b"")?;
        other.tree().put(key, b"")?;
        let late = one.begin_round(flush)?;
        refused(&mut one, other.begin_round(flush)?);
        refused(&mut other, one.begin_round(flush)?);
        refused(&mut one, away.begin_round(flush)?);
        assert_eq!(late.keys().collect::<Result<Vec<_>>>()?, [key]);
        one.end_round(late)?;
        // It says what was changed since the snapshot before, which is not the tracker's any more.
        refused(&mut one, early);
        assert_eq!(one.begin_round(flush)?.keys().count(), 0);
    }
    let all = other.begin_round(true)?;
    assert_eq!(all.keys().collect::<Result<Vec<_>>>()?, [b"1", b"2"]);
    other.end_round(all)
}
