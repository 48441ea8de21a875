//! Commits, sealing, flushing and reads of a whole database, in explored interleavings of threads:
//! `cargo test -p shaledb --lib --features shuttle db::shuttle`.
//!
//! This is the code itself on a disk in memory, not a model of it. Threads are switched at every
//! lock, condition variable and atomic of `base::sync`; what the libraries do inside (the swap of
//! an `ArcSwap`, a look-up in the block cache) is one step. Memory is sequentially consistent here:
//! orderings that are too weak are what ThreadSanitizer is for (`cargo xtask tsan`).

use super::{Background, Batch, BuildOptions, Db, OpenOptions, ScanOptions, Snapshot, Tree};
use super::{TransactionOptions, UniqueRow, WriteOptions, entry_of_row};
use crate::base::config::{Config, TreeConfig};
use crate::base::error::Result;
use crate::base::sync::Arc;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::fs::Env;
use crate::fs::mem::{Call, CrashMode, Fault, MemClock, MemFs};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::thread;

/// Runs `test` under many random schedules and under those with few preemptions.
fn explore(test: fn()) {
    fn under(scheduler: impl Scheduler + 'static, test: fn()) {
        let mut config = shuttle::Config::new();
        config.stack_size = 1 << 20;
        shuttle::Runner::new(scheduler, config).run(test);
    }
    under(RandomScheduler::new(SCHEDULES), test);
    under(PctScheduler::new(3, SCHEDULES), test);
}

/// How many schedules of each kind a test explores.
const SCHEDULES: usize = 300;

/// How many batches a test writes.
const BATCHES: u64 = 3;

struct World {
    db: Db,
    a: Tree,
    b: Tree,
    /// The last batch whose write has returned.
    written: AtomicU64,
}

/// A database whose background work is stepped.
fn stepped(fs: &MemFs) -> Result<Db> {
    let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
    let config = Config {
        memory_bytes: 8 << 20,
        memtable_bytes: 64 << 10,
        background_threads: 1,
        ..Config::default()
    };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    Db::open_in("/db", config, options)
}

/// A new database with the trees `a` and `b`.
fn world() -> Arc<World> {
    let db = stepped(&MemFs::new()).unwrap();
    let (a, b) = (db.tree_or_create("a").unwrap(), db.tree_or_create("b").unwrap());
    let world = World { db, a, b, written: AtomicU64::new(0) };
    world.write(0);
    Arc::new(world)
}

impl World {
    /// Batch `n`: the same value under two keys of one tree and a key of another.
    fn write(&self, n: u64) {
        let mut batch = Batch::new();
        for (tree, key) in [(&self.a, b"x"), (&self.a, b"y"), (&self.b, b"x")] {
            batch.put(tree, key, &n.to_le_bytes());
        }
        self.db.write(&batch, WriteOptions::default()).unwrap();
        self.written.fetch_max(n, Ordering::SeqCst);
    }

    fn get(&self, tree: &Tree, key: &[u8]) -> u64 {
        number(&tree.get(key).unwrap().expect("it was never deleted"))
    }

    fn get_at(&self, tree: &Tree, key: &[u8], snapshot: &Snapshot) -> u64 {
        number(&tree.get_at(key, snapshot).unwrap().expect("it was never deleted"))
    }

    /// What a reader must find whatever the others are in the middle of: everything whose write
    /// has returned, no batch in part, and nothing older than it has found before.
    fn check(&self) {
        let written = self.written.load(Ordering::SeqCst);
        let first = self.get(&self.a, b"x");
        assert!(first >= written, "{first} after {written} was written");

        let both = self.a.multi_get(&[b"x", b"y"]).unwrap();
        let both: Vec<u64> = both.iter().map(|value| number(value.as_ref().unwrap())).collect();
        assert!(both[0] >= first, "{both:?} after {first}");
        assert_eq!(both[0], both[1]);

        let snapshot = self.db.snapshot();
        let a = self.get_at(&self.a, b"x", &snapshot);
        assert!(a >= both[0], "{a} after {both:?}");
        assert_eq!(a, self.get_at(&self.b, b"x", &snapshot));
        let scan =
            self.a.scan_with(ScanOptions { snapshot: Some(&snapshot), ..ScanOptions::default() });
        let rows: Vec<u64> = scan.unwrap().map(|row| number(&row.unwrap().1)).collect();
        assert_eq!(rows, [a, a]);
        // Again: what the others have done meanwhile makes no difference to a snapshot.
        assert_eq!(a, self.get_at(&self.a, b"y", &snapshot));
    }
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().unwrap())
}

/// Runs the threads and waits for them.
fn together(world: &Arc<World>, threads: &[fn(&World)]) {
    let start = |run: &fn(&World)| {
        let (world, run) = (world.clone(), *run);
        thread::spawn(move || run(&world))
    };
    let running: Vec<_> = threads.iter().map(start).collect();
    for thread in running {
        thread.join().unwrap();
    }
}

fn write_all(world: &World) {
    for n in 1..=BATCHES {
        world.write(n);
        assert!(world.get(&world.b, b"x") >= n);
    }
}

/// Seals all memtables and writes them to tables, as often as there are batches.
fn flush_all(world: &World) {
    for _ in 0..BATCHES {
        world.db.core().seal_all(None).unwrap();
        while world.db.step().unwrap() {}
    }
}

#[test]
fn a_reader_misses_nothing_while_memtables_are_sealed_and_flushed() {
    explore(|| {
        let world = world();
        together(&world, &[write_all, flush_all, World::check, World::check]);
        world.check();
        assert_eq!(world.get(&world.a, b"y"), BATCHES);
    });
}

#[test]
fn writers_at_once_leave_the_trees_equal() {
    explore(|| {
        let world = world();
        together(&world, &[|world| world.write(1), |world| world.write(2), flush_all]);
        let snapshot = world.db.snapshot();
        let a = world.get_at(&world.a, b"x", &snapshot);
        assert_eq!(a, world.get_at(&world.a, b"y", &snapshot));
        assert_eq!(a, world.get_at(&world.b, b"x", &snapshot));
        assert!(a == 1 || a == 2);
    });
}

/// A key and more come in tables, then another key in a commit.
fn load_and_put(world: &World) {
    for round in 0..2u8 {
        let mut ingest = world.a.ingest().unwrap();
        ingest.add(&[round, 0], b"loaded").unwrap();
        ingest.finish().unwrap();
        world.a.put(&[round, 1], b"put").unwrap();
    }
}

/// What is found of them is the beginning of what was committed.
fn scan_loads(world: &World) {
    for _ in 0..5 {
        let rows = world.a.scan(..[2u8]).unwrap();
        let found: Vec<Vec<u8>> = rows.map(|row| row.unwrap().0).collect();
        let order = [[0, 0], [0, 1], [1, 0], [1, 1]];
        assert!(found.len() <= 4 && found == order[..found.len()], "{found:?}");
        let both = world.a.multi_get(&[[0, 0], [0, 1]]).unwrap();
        assert!(both[0].is_some() || both[1].is_none(), "a commit is seen, and no load before it");
    }
}

#[test]
fn a_read_sees_no_commit_without_the_bulk_load_before_it() {
    explore(|| {
        let world = world();
        together(&world, &[load_and_put, scan_loads, scan_loads]);
        scan_loads(&world);
    });
}

#[test]
fn a_snapshot_keeps_its_versions_through_a_compaction() {
    explore(|| {
        let world = world();
        together(&world, &[write_all, |world| world.db.compact().unwrap(), World::check]);
        world.db.compact().unwrap();
        world.check();
        assert_eq!(world.get(&world.a, b"x"), BATCHES);
    });
}

/// A sync fails, what it was to make durable is lost, and one of those who sync at that moment is
/// told. What has returned as durable is there after a crash, and nothing newer without what is
/// older.
#[test]
fn a_failed_sync_that_one_is_told_of_is_missed_by_nobody() {
    explore(with_failing_sync::<1>);
    explore(with_failing_sync::<2>);
    explore(with_failing_sync::<3>);
}

/// The sync of this number, of the log or of a table, fails.
fn with_failing_sync<const NUMBER: u64>() {
    let fs = MemFs::new();
    let db = stepped(&fs).unwrap();
    let (a, b) = (db.tree_or_create("a").unwrap(), db.tree_or_create("b").unwrap());
    b.put(b"first", b"").unwrap();
    a.put(b"second", b"").unwrap();
    fs.fail(Call::Sync, NUMBER, Fault::ReportOne, true);
    let commit = {
        let b = b.clone();
        thread::spawn(move || b.put_with(b"third", b"", WriteOptions::SYNC).is_ok())
    };
    let flush = {
        let (db, a) = (db.clone(), a.clone());
        thread::spawn(move || {
            let sealed = db.core().seal_all(Some(&a.inner)).is_ok();
            while sealed && db.step().is_ok_and(|more| more) {}
        })
    };
    let committed = commit.join().unwrap();
    flush.join().unwrap();
    let after = stepped(&fs.crash_clone(1, CrashMode::Lost)).unwrap();
    let has = |tree: &str, key: &[u8]| after.tree(tree).unwrap().contains(key).unwrap();
    let found = [has("b", b"first"), has("a", b"second"), has("b", b"third")];
    assert!(found.is_sorted_by(|earlier, later| earlier >= later), "{found:?}");
    assert!(!committed || found[2], "a commit that was durable is lost");
}

/// A transaction that was prepared before what is flushed is committed beside the flush. However
/// far the log is durable, nothing that is committed after a power loss is taken for something old.
#[test]
fn a_flush_beside_the_commit_of_what_is_prepared_does_not_overtake_the_log() {
    explore(|| {
        let fs = MemFs::new();
        let db = stepped(&fs).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        let mut transaction = db.begin(TransactionOptions::default()).unwrap();
        transaction.put(&tree, b"prepared", b"").unwrap();
        let prepared = transaction.prepare(b"x").unwrap();
        tree.put(b"flushed", b"1").unwrap();
        db.core().seal_all(Some(&tree.inner)).unwrap();
        let commit = thread::spawn(move || prepared.commit(WriteOptions::default()).unwrap());
        let flush = thread::spawn(move || while db.step().unwrap() {});
        commit.join().unwrap();
        flush.join().unwrap();

        let fs = fs.crash_clone(1, CrashMode::Lost);
        let tree = stepped(&fs).unwrap().tree("t").unwrap();
        tree.put_with(b"flushed", b"2", WriteOptions::SYNC).unwrap();
        let tree = stepped(&fs.crash_clone(1, CrashMode::Lost)).unwrap().tree("t").unwrap();
        assert_eq!(tree.get(b"flushed").unwrap().unwrap(), b"2");
    });
}

/// A build beside two writers, of a row each, and a thread that seals, flushes and compacts.
fn with_build(unique: bool) {
    fn key(unique: bool, n: u64, row: &[u8]) -> Vec<u8> {
        // The two rows change their numbers in turn, so that keys go from one to the other.
        let name = [n.to_le_bytes().as_slice(), row].concat();
        if unique { entry_of_row(&name, row) } else { name }
    }
    let world = world();
    let options =
        BuildOptions { unique: unique.then_some(UniqueRow::Value), ..BuildOptions::default() };
    let mut build = world.a.build_online("built", TreeConfig::default(), options).unwrap();
    let writer = |row: &'static [u8]| {
        let (world, tree) = (world.clone(), build.tree().clone());
        thread::spawn(move || {
            for n in 1..=BATCHES {
                let mut batch = Batch::new();
                batch.put(&world.a, row, &n.to_le_bytes());
                batch.delete(&tree, &key(unique, n - 1, row));
                batch.put(&tree, &key(unique, n, row), row);
                world.db.write(&batch, WriteOptions::default()).unwrap();
            }
        })
    };
    let writers = [writer(b"x"), writer(b"y")];
    let background = {
        let world = world.clone();
        thread::spawn(move || flush_all(&world))
    };
    build.fill(|row, value, entries| entries.add(&[value, row].concat(), row)).unwrap();
    build.catch_up().unwrap();
    let built = if unique {
        // Writers have to have ended.
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        build.finish().unwrap()
    } else {
        let built = build.finish().unwrap();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        built
    };
    background.join().unwrap();
    for _ in 0..2 {
        let rows: Vec<_> = built.scan::<&[u8]>(..).unwrap().map(|row| row.unwrap()).collect();
        let expected = [b"x", b"y"].map(|row| (key(false, BATCHES, row), row.to_vec()));
        assert_eq!(rows, expected);
        world.db.compact().unwrap();
    }
}

/// Only random schedules: who waits for a job of another thread gives way to it by chance alone.
#[test]
fn a_tree_is_built_beside_writers_and_compactions() {
    for test in [|| with_build(false), || with_build(true)] {
        let mut config = shuttle::Config::new();
        config.stack_size = 1 << 20;
        shuttle::Runner::new(RandomScheduler::new(SCHEDULES), config).run(test);
    }
}
