//! Everything at once, on a real directory: writers, readers, snapshots, flushes, compactions,
//! checkpoints, bulk loads, trees that come and go. Under ThreadSanitizer by `cargo xtask tsan`.
//!
//! What holds throughout: a batch is seen whole or not at all, a reader never finds anything older
//! than it found before, and a write that has returned is found.

use shaledb::{Batch, Config, Db, Error, Result, ScanOptions, Tree, WriteOptions};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

const WRITERS: u64 = 4;
const READERS: u64 = 2;
/// Keys of each writer; a batch writes several neighbours.
const KEYS: u64 = 64;
const BATCH_KEYS: u64 = 4;

/// How many batches each writer writes: `SHALE_STRESS` if it is set.
fn batches() -> u64 {
    let set = std::env::var("SHALE_STRESS").ok();
    set.map_or(2_000, |set| set.parse().expect("SHALE_STRESS is a number"))
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

fn key(writer: u64, n: u64) -> Vec<u8> {
    format!("writer {writer} key {n:05}").into_bytes()
}

/// The round as a number, and bytes that depend on it.
fn value(round: u64) -> Vec<u8> {
    let mut value = round.to_le_bytes().to_vec();
    value.resize(8 + (round % 120) as usize, round as u8);
    value
}

/// The round that a value is of; panics unless all of it is of that round.
fn round_of(found: &[u8]) -> u64 {
    let round = u64::from_le_bytes(found[..8].try_into().unwrap());
    assert_eq!(found, value(round));
    round
}

/// What a thread does.
type Run = Box<dyn FnOnce(&World) -> Result<()> + Send>;

struct World {
    db: Db,
    left: Tree,
    right: Tree,
    /// For each writer, the last round whose write has returned.
    written: Vec<AtomicU64>,
    ended: AtomicBool,
    start: Barrier,
}

impl World {
    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// The group of keys that a writer sets in a round.
    fn group(round: u64) -> u64 {
        round * 7 % (KEYS / BATCH_KEYS)
    }

    /// One batch a round: some neighbours in both trees and a counter of rounds in both.
    fn write(&self, writer: u64, rounds: u64) -> Result<()> {
        let mut batch = Batch::new();
        for round in 1..=rounds {
            batch.clear();
            let first = World::group(round) * BATCH_KEYS;
            // Each group gets every kind of batch in turn.
            let kind = (round + round / 16) % 16;
            for tree in [&self.left, &self.right] {
                if kind == 5 {
                    batch.delete_range(tree, &key(writer, first), &key(writer, first + BATCH_KEYS));
                }
                for n in first..first + BATCH_KEYS {
                    if kind == 9 {
                        batch.delete(tree, &key(writer, n));
                    } else if kind != 5 {
                        batch.put(tree, &key(writer, n), &value(round));
                    }
                }
                batch.put(tree, &key(writer, KEYS), &value(round));
            }
            self.db.write(&batch, WriteOptions { sync: round.is_multiple_of(512) })?;
            self.written[writer as usize].store(round, Ordering::Release);
            if round.is_multiple_of(8) {
                assert_eq!(self.counter(&self.left, writer)?, round);
            }
        }
        Ok(())
    }

    fn counter(&self, tree: &Tree, writer: u64) -> Result<u64> {
        Ok(round_of(&tree.get(&key(writer, KEYS))?.expect("it is never deleted")))
    }

    fn read(&self, reader: u64) -> Result<()> {
        let mut seen = vec![0; WRITERS as usize];
        let mut pass = reader;
        while !self.is_over() || pass < reader + 4 {
            pass += 1;
            let writer = pass % WRITERS;
            let at_least = self.written[writer as usize].load(Ordering::Acquire);
            if at_least == 0 {
                std::thread::yield_now();
                continue;
            }
            let seen = &mut seen[writer as usize];
            let now = self
                .counter(if pass.is_multiple_of(2) { &self.left } else { &self.right }, writer)?;
            assert!(now >= at_least && now >= *seen, "{now} after {at_least} and {seen}");
            *seen = now;
            self.read_group(writer, World::group(now))?;
            if pass.is_multiple_of(4) {
                *seen = self.read_snapshot(writer, *seen)?;
            }
        }
        Ok(())
    }

    /// The keys of one group are of one round, or not there.
    fn read_group(&self, writer: u64, group: u64) -> Result<()> {
        let keys: Vec<Vec<u8>> =
            (0..BATCH_KEYS).map(|n| key(writer, group * BATCH_KEYS + n)).collect();
        let found = self.left.multi_get(&keys)?;
        let rounds: Vec<Option<u64>> =
            found.iter().map(|value| value.as_deref().map(round_of)).collect();
        assert!(rounds.iter().all(|round| *round == rounds[0]), "{rounds:?}");
        Ok(())
    }

    /// At a snapshot both trees are equal and every batch is there whole, however often one looks.
    fn read_snapshot(&self, writer: u64, seen: u64) -> Result<u64> {
        let snapshot = self.db.snapshot();
        let rows = |tree: &Tree| -> Result<Vec<(Vec<u8>, u64)>> {
            let prefix = Some(format!("writer {writer} ").into_bytes());
            let snapshot = Some(&snapshot);
            let scan = tree.scan_with(ScanOptions { prefix, snapshot, ..Default::default() })?;
            scan.map(|row| row.map(|(key, value)| (key, round_of(&value)))).collect()
        };
        let left = rows(&self.left)?;
        let (last, counter) = left.last().expect("the counter is there");
        assert_eq!(*last, key(writer, KEYS));
        assert!(*counter >= seen, "{counter} after {seen}");
        for group in left[..left.len() - 1].chunks(BATCH_KEYS as usize) {
            assert_eq!(group.len() as u64, BATCH_KEYS);
            assert!(group.iter().all(|(_, round)| *round == group[0].1), "{group:?}");
            assert!(group[0].1 <= *counter);
        }
        assert_eq!(left, rows(&self.right)?);

        let mut back = self.left.scan_with(ScanOptions {
            prefix: Some(format!("writer {writer} ").into_bytes()),
            snapshot: Some(&snapshot),
            ..ScanOptions::default()
        })?;
        back.seek_last()?;
        for (key, round) in left.iter().rev() {
            assert_eq!((back.key(), round_of(back.value()?)), (key.as_slice(), *round));
            let again = self.left.get_at(key, &snapshot)?.map(|value| round_of(&value));
            assert_eq!(again, Some(*round));
            back.prev()?;
        }
        assert!(!back.valid());
        Ok(*counter)
    }

    /// Flushes and compactions asked for while the background does its own.
    fn maintain(&self) -> Result<()> {
        for pass in 0u64.. {
            if self.is_over() {
                break;
            }
            match pass % 5 {
                0 => self.db.flush()?,
                1 => self.left.compact()?,
                2 => self.right.flush()?,
                3 => self.right.compact_range(&key(1, 0), Some(&key(2, 0)))?,
                _ => self.db.sync()?,
            }
            let _ = (self.db.stats().to_string(), self.db.tree_names());
            self.left.approximate_bytes(b"", None)?;
        }
        Ok(())
    }

    /// Bulk loads into a tree that is then dropped while somebody scans it; checkpoints.
    fn come_and_go(&self, dir: &std::path::Path) -> Result<()> {
        for pass in 0u64.. {
            if self.is_over() && pass > 0 {
                break;
            }
            let tree = self.db.create_tree("passing", shaledb::TreeConfig::default())?;
            let mut ingest = tree.ingest()?;
            for n in 0..500 {
                ingest.add(&key(pass, n), &value(n))?;
            }
            assert_eq!(ingest.finish()?, 500);
            tree.put(&key(pass, 7), &value(1_000))?;
            let mut scan = tree.scan::<&[u8]>(..)?;
            scan.seek_first()?;
            self.db.drop_tree("passing")?;
            let mut rows = 0;
            while scan.valid() {
                let expected = if rows == 7 { 1_000 } else { rows };
                assert_eq!(round_of(scan.value()?), expected);
                rows += 1;
                scan.next()?;
            }
            assert_eq!(rows, 500);
            assert!(matches!(tree.get(b"x"), Err(Error::NoSuchTree(_))));
            if pass.is_multiple_of(4) {
                self.check_checkpoint(&dir.join(format!("checkpoint {pass}")))?;
            }
        }
        Ok(())
    }

    /// A checkpoint is a database of its own that holds what was written before, in whole batches.
    fn check_checkpoint(&self, dir: &std::path::Path) -> Result<()> {
        let written: Vec<u64> =
            self.written.iter().map(|round| round.load(Ordering::Acquire)).collect();
        self.db.checkpoint(dir)?;
        let copy = Db::open(dir, small())?;
        let (left, right) = (copy.tree("left")?, copy.tree("right")?);
        for (writer, at_least) in (0..).zip(written) {
            let [left, right] = [left.get(&key(writer, KEYS))?, right.get(&key(writer, KEYS))?];
            assert_eq!(left, right);
            let round = left.map_or(0, |value| round_of(&value));
            assert!(round >= at_least, "{round} after {at_least}");
        }
        copy.close()
    }
}

#[test]
fn everything_at_once() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db"), small())?;
    let rounds = batches();
    let world = Arc::new(World {
        left: db.tree_or_create("left")?,
        right: db.tree_or_create("right")?,
        db,
        written: (0..WRITERS).map(|_| AtomicU64::new(0)).collect(),
        ended: AtomicBool::new(false),
        start: Barrier::new((WRITERS + READERS + 2) as usize),
    });

    let spawn = |run: Run| {
        let world = world.clone();
        std::thread::spawn(move || {
            world.start.wait();
            run(&world)
        })
    };
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| spawn(Box::new(move |world| world.write(writer, rounds))))
        .collect();
    let mut others: Vec<_> =
        (0..READERS).map(|reader| spawn(Box::new(move |world| world.read(reader)))).collect();
    others.push(spawn(Box::new(World::maintain)));
    let checkpoints = dir.path().to_owned();
    others.push(spawn(Box::new(move |world| world.come_and_go(&checkpoints))));

    let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
    world.ended.store(true, Ordering::Release);
    for result in results.into_iter().chain(others.into_iter().map(|other| other.join())) {
        result.expect("no thread panics")?;
    }

    let world = Arc::into_inner(world).expect("every thread has ended");
    let mut damage = world.db.verify(&mut |_| ())?.damage;
    assert!(damage.pop().is_none());
    let World { db, left, right, .. } = world;
    db.close()?;
    drop((left, right));
    let db = Db::open(dir.path().join("db"), small())?;
    assert_eq!(db.tree_names(), ["left", "right"]);
    for tree in [db.tree("left")?, db.tree("right")?] {
        for writer in 0..WRITERS {
            let found = tree.get(&key(writer, KEYS))?.map(|value| round_of(&value));
            assert_eq!(found, Some(rounds));
        }
    }
    Ok(())
}
