//! A process that forks: its child may read, and leaves the parent's database alone.

use shaledb::fs::Clock;
use shaledb::{
    Background, Batch, BuildOptions, Config, Db, Env, Error, LockMode, OpenOptions, Result,
    ScanOptions, TransactionOptions, TreeConfig, WriteOptions,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

fn small() -> Config {
    Config {
        memory_bytes: 16 << 20,
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        background_threads: 1,
        ..Config::default()
    }
}

/// Runs `child` in a forked process, and answers whether it did what it should; `then` runs in this
/// one, before it drops what the child was given.
fn in_a_fork(child: impl FnOnce() -> bool, then: impl FnOnce()) -> bool {
    // SAFETY: the child runs `child` and ends; it takes no lock that another thread of this test
    // may have held when it was forked but the allocator's, which a fork keeps in order.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(false);
        // SAFETY: ends the process.
        unsafe { libc::_exit(i32::from(!done)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    then();
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

fn forked<T: std::fmt::Debug>(result: Result<T>, what: &str) -> bool {
    let right = matches!(result, Err(Error::Forked { .. }));
    if !right {
        eprintln!("{what} in the child: {result:?}");
    }
    right
}

/// A child of a fork shares the parent's files: each way to write in it is refused, and neither its
/// end nor that of its handles changes anything of the parent's.
#[test]
fn a_forked_child_is_refused_and_leaves_the_parents_database_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let config = Config { background_threads: 2, ..small() };
    let db = Db::open(&path, config.clone()).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    tree.put(b"before", b"").unwrap();
    tree.put(b"large", &vec![1; 4 << 20]).unwrap();
    let mut begun = db.begin(TransactionOptions::default()).unwrap();
    begun.put(&tree, b"begun", b"").unwrap();
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    txn.put(&tree, b"prepared", b"").unwrap();
    let prepared = txn.prepare(b"x").unwrap();
    let mut ingest = tree.ingest().unwrap();
    ingest.add(b"ingested", b"").unwrap();
    let files = || {
        let names = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let before = files();
    let (child_db, child_tree) = (db.clone(), tree.clone());
    let copy = dir.path().join("copy");
    let child_path = path.clone();
    let child = move || {
        let mut batch = Batch::new();
        batch.put(&child_tree, b"child", b"");
        let mut right = forked(child_tree.put(b"child", b""), "put");
        right &= forked(child_tree.put(b"child", &vec![2; 4 << 20]), "put of a large value");
        right &= forked(child_tree.delete(b"before"), "delete");
        right &= forked(child_db.write(&batch, WriteOptions::SYNC), "write");
        right &= forked(child_db.sync(), "sync");
        right &= forked(child_db.flush(), "flush");
        right &= forked(child_tree.flush(), "flush of a tree");
        right &= forked(child_db.compact(), "compact");
        right &= forked(child_db.wait_idle(), "wait_idle");
        right &= forked(child_db.create_tree("new", child_tree.config().clone()), "create_tree");
        right &= forked(child_db.drop_tree("t"), "drop_tree");
        right &= forked(child_db.begin(TransactionOptions::default()), "begin");
        right &= forked(begun.put(&child_tree, b"more", b""), "put in a transaction");
        right &= forked(begun.commit(WriteOptions::SYNC), "commit");
        right &= forked(prepared.commit(WriteOptions::SYNC), "commit of what is prepared");
        right &= forked(child_tree.ingest(), "ingest");
        right &= forked(ingest.finish(), "the end of a bulk load");
        right &= forked(child_db.checkpoint(&copy), "checkpoint");
        right &= matches!(Db::open(&child_path, config), Err(Error::Locked { .. }));
        right &= child_tree.get(b"before").is_ok_and(|found| found.is_some());
        drop(child_tree);
        right & forked(child_db.close(), "close")
    };
    let there = || assert_eq!(files(), before);
    assert!(in_a_fork(child, there));
    // The parent goes on, and still has the lock.
    tree.put_with(b"after", b"", WriteOptions::SYNC).unwrap();
    assert!(matches!(Db::open(&path, small()), Err(Error::Locked { .. })));
    drop(tree);
    db.close().unwrap();
    let db = Db::open(&path, small()).unwrap();
    let tree = db.tree("t").unwrap();
    for key in [&b"before"[..], b"after", b"large"] {
        assert!(tree.contains(key).unwrap());
    }
    assert!(!tree.contains(b"child").unwrap());
}

/// Each fork is made while threads of the parent are in the middle of something, which opens no
/// file: of one that is opened while the system copies the process, the child may lack the handle.
#[test]
fn a_forked_child_reads_whatever_the_parents_threads_were_doing() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db"), Config::default()).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    tree.put(b"k", b"v").unwrap();
    tree.put(b"large", &vec![1; 4 << 20]).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let ends = || stop.load(std::sync::atomic::Ordering::Relaxed);
    let mut right = true;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0u64.. {
                if ends() {
                    break;
                }
                let from = 2 * (at % 4096);
                tree.delete_range(&from.to_be_bytes(), &(from + 1).to_be_bytes()).unwrap();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !ends() {
                    let seen = db.snapshot();
                    assert!(seen.seq() > 0);
                    assert!(tree.get(b"large").unwrap().is_some());
                }
            });
        }
        for _ in 0..100 {
            let (db, tree) = (db.clone(), tree.clone());
            let child = move || -> bool {
                // SAFETY: ends the child if it hangs.
                unsafe { libc::alarm(20) };
                let snapshot = db.snapshot();
                let mut scan = tree.scan::<&[u8]>(..).unwrap();
                scan.seek_first().unwrap();
                let found = scan.valid() && snapshot.seq() > 0;
                found && tree.get(b"k").unwrap().is_some()
            };
            right = right && in_a_fork(child, || ());
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(right);
}

/// A long scan that a fork inherits goes on in it: whoever helped to read ahead is not there.
#[test]
fn a_forked_child_reads_a_scan_to_its_end() {
    const ROWS: u64 = 12_000;
    let dir = tempfile::tempdir().unwrap();
    let config = Config { memory_bytes: 16 << 20, background_threads: 2, ..Config::default() };
    let db = Db::open(dir.path().join("db"), config).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    for row in 0..ROWS {
        tree.put(&row.to_be_bytes(), &[row as u8; 1000]).unwrap();
    }
    db.flush().unwrap();
    let at_row = |scan: &shaledb::Scan, row: u64| {
        scan.valid()
            && scan.key() == row.to_be_bytes()
            && scan.value().unwrap() == [row as u8; 1000]
    };
    // Forked at other moments of what reader and helper do.
    for forked_at in (4000..ROWS).step_by(613) {
        let mut scan = tree.scan::<&[u8]>(..).unwrap();
        scan.seek_first().unwrap();
        for row in 0..forked_at {
            assert!(at_row(&scan, row));
            scan.next().unwrap();
        }
        let child = move || {
            let mut right = true;
            for row in forked_at..ROWS {
                right &= at_row(&scan, row);
                scan.next().unwrap();
            }
            right && !scan.valid()
        };
        assert!(in_a_fork(child, || ()));
    }
    assert_eq!(tree.scan::<&[u8]>(..).unwrap().count() as u64, ROWS);
}

/// A child that just lets go of what it has waits for no mutex that another thread of the parent
/// held when it was forked.
#[test]
fn a_forked_child_drops_transactions_beside_busy_threads() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db"), small()).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let with_locks = |from: u32| {
        let mut txn = db.begin(TransactionOptions::default()).unwrap();
        // In all shards of the table of locks.
        (from..from + 100).for_each(|n| txn.put(&tree, &n.to_be_bytes(), b"").unwrap());
        (txn, db.snapshot())
    };
    let ended = AtomicBool::new(false);
    let done = std::thread::scope(|scope| {
        for thread in 1..3 {
            let (ended, with_locks) = (&ended, &with_locks);
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    drop(with_locks(thread * 1000));
                }
            });
        }
        let done = (0..200).all(|_| {
            let has = with_locks(0);
            let child = move || {
                // SAFETY: ends this process if it hangs.
                unsafe { libc::alarm(60) };
                drop(has);
                true
            };
            in_a_fork(child, || ())
        });
        ended.store(true, Ordering::Relaxed);
        done
    });
    assert!(done, "a child hangs");
}

/// A clock that holds up a thread called `holder`, once.
#[derive(Default)]
struct Stall(AtomicU8);

const SET: u8 = 1;
const HOLDS: u8 = 2;
const OVER: u8 = 3;

impl Clock for Stall {
    fn now_nanos(&self) -> u64 {
        let is_holder = std::thread::current().name() == Some("holder");
        let order = Ordering::SeqCst;
        if is_holder && self.0.compare_exchange(SET, HOLDS, order, order).is_ok() {
            while self.0.load(order) == HOLDS {
                std::thread::yield_now();
            }
        }
        1
    }

    fn thread_cpu_nanos(&self) -> u64 {
        0
    }

    fn sleep_nanos(&self, _: u64) {}
}

impl Stall {
    fn world() -> (Arc<Stall>, Db) {
        let clock = Arc::new(Stall::default());
        let env = Env { clock: clock.clone(), ..Env::memory() };
        let options = OpenOptions { env, background: Background::Stepped, read_only: false };
        let db = Db::open_in("/db", small(), options).unwrap();
        (clock, db)
    }

    /// Starts a thread and waits until it looks at the clock, in the middle of something.
    fn hold(&self, run: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        self.0.store(SET, Ordering::SeqCst);
        let holder = Builder::new().name("holder".to_owned()).spawn(run).unwrap();
        while self.0.load(Ordering::SeqCst) == SET {
            assert!(!holder.is_finished(), "it looks at the clock");
            std::thread::yield_now();
        }
        holder
    }

    fn end(&self, holder: JoinHandle<()>) {
        self.0.store(OVER, Ordering::SeqCst);
        holder.join().unwrap();
    }
}

/// A thread of the parent is in the middle of a change of trees.
#[test]
fn a_forked_child_waits_for_no_mutex_of_who_changes_trees() {
    let (clock, db) = Stall::world();
    let tree = db.tree_or_create("t").unwrap();
    let build = tree.build_online("b", TreeConfig::default(), BuildOptions::default()).unwrap();
    let tracker = tree.track_changes("c", Duration::ZERO).unwrap();
    let round = tracker.begin_round(true).unwrap();
    tree.put(b"not", b"synced").unwrap();
    let other = db.clone();
    let holder = clock.hold(move || drop(other.create_tree("n", TreeConfig::default()).unwrap()));
    let (child_db, ended) = (db.clone(), || clock.end(holder));
    let child = move || {
        // SAFETY: ends this process if it hangs.
        unsafe { libc::alarm(20) };
        let mut right = forked(child_db.create_tree("m", TreeConfig::default()), "create_tree");
        right &= forked(child_db.drop_tree("t"), "drop_tree");
        right &= forked(tracker.wait_for_writers(Duration::ZERO), "wait_for_writers");
        drop((round, tracker, build));
        right
    };
    assert!(in_a_fork(child, ended), "a child hangs");
    assert!(db.tree("n").is_ok() && db.tree("m").is_err());
}

/// A thread of the parent has all shards of the table of locks.
#[test]
fn a_forked_child_waits_for_no_mutex_of_who_locks() {
    let (clock, db) = Stall::world();
    let tree = db.tree_or_create("t").unwrap();
    let begin = || db.begin(TransactionOptions::default()).unwrap();
    let (mut one, mut two, mut begun) = (begin(), begin(), begin());
    one.put(&tree, b"1", b"").unwrap();
    two.put(&tree, b"2", b"").unwrap();
    begun.put(&tree, b"3", b"").unwrap();
    let point = begun.savepoint();
    begun.put(&tree, b"4", b"").unwrap();
    assert!(two.put(&tree, b"1", b"").is_err(), "it is asked for again later");
    let of_holder = tree.clone();
    let holder = clock.hold(move || {
        // Now each waits for the other, and it is noted when that was found.
        assert!(one.put(&of_holder, b"2", b"").is_err());
    });
    let (child_db, child_tree) = (db.clone(), tree.clone());
    let child = move || {
        // SAFETY: ends this process if it hangs.
        unsafe { libc::alarm(20) };
        let (db, tree) = (child_db, child_tree);
        let all = ScanOptions::default();
        let mut right = forked(begun.put(&tree, b"5", b""), "put");
        right &= forked(begun.get_for_update(&tree, b"5"), "get_for_update");
        right &= forked(begun.scan_locking(&tree, all, LockMode::Shared), "scan_locking");
        right &= forked(begun.escalate_locks(), "escalate_locks");
        right &= forked(begun.rollback_to(point), "rollback_to");
        right &= forked(tree.is_locked(), "is_locked");
        right &= forked(tree.wait_for_writers(Duration::ZERO), "wait_for_writers");
        right &= forked(db.locks(10), "locks");
        right &= forked(db.transactions(), "transactions");
        right &= forked(db.last_deadlock(), "last_deadlock");
        right & forked(begun.commit(WriteOptions::default()), "commit")
    };
    assert!(in_a_fork(child, || clock.end(holder)), "a child hangs");
    drop(two);
    tree.put(b"6", b"").unwrap();
}
