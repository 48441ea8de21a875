//! What the statistics count: the same for the same work, whichever way it is done.

use shaledb::fs::mem::{CrashMode, MemFs};
use shaledb::{
    Background, Concurrency, Config, Db, Env, OpenOptions, Stats, SyncPolicy, Transaction,
    TransactionOptions, TreeConfig, WriteOptions,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const DONE: WriteOptions = WriteOptions { sync: false };

fn open_on(fs: &MemFs) -> Db {
    let env = Env { fs: Arc::new(fs.clone()), ..Env::memory() };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    let tree = TreeConfig { blob_bytes: 4096, ..TreeConfig::default() };
    Db::open_in("/db", Config { tree, ..Config::default() }, options).unwrap()
}

/// A transaction with writes of each kind, of so many rows.
fn writes(db: &Db, memory_bytes: u64, rows: u32) -> Transaction {
    let tree = db.tree_or_create("t").unwrap();
    let options = TransactionOptions { memory_bytes, ..TransactionOptions::default() };
    let mut txn = db.begin(options).unwrap();
    txn.delete_range(&tree, b"x", b"y").unwrap();
    txn.delete(&tree, b"gone").unwrap();
    txn.put(&tree, b"large", &[7; 5000]).unwrap();
    for n in 0..rows {
        txn.put(&tree, &n.to_be_bytes(), &[1; 100]).unwrap();
    }
    txn
}

fn counted(stats: &Stats, names: &[&str]) -> Vec<u64> {
    names.iter().map(|name| stats.counters[*name]).collect()
}

#[test]
fn a_commit_in_two_phases_counts_as_one_in_one() {
    let all = ["commits", "write_ops", "user_bytes", "commit_groups", "blob_bytes", "ingest_bytes"];
    for (memory_bytes, rows) in [(1 << 20, 50), (10_000, 500)] {
        let [one, two, recovered] = [0, 1, 2].map(|way| {
            let fs = MemFs::new();
            let db = open_on(&fs);
            let txn = writes(&db, memory_bytes, rows);
            let before = counted(&db.stats(), &all);
            assert_eq!(before[0], 0, "nothing is committed yet");
            match way {
                0 => txn.commit(DONE).unwrap(),
                1 => txn.prepare(b"x").unwrap().commit(DONE).unwrap(),
                _ => {
                    drop(txn.prepare(b"x").unwrap());
                    let db = open_on(&fs.crash_clone(1, CrashMode::Lost));
                    db.prepared().unwrap().remove(0).commit(DONE).unwrap();
                    return db.stats();
                }
            }
            db.stats()
        });
        assert_eq!(counted(&two, &all), counted(&one, &all), "{rows} rows");
        assert_eq!(counted(&two, &["commits", "write_ops"]), [1, u64::from(rows) + 3]);
        assert_eq!(one.user_bytes, u64::from(rows) * 104 + 2 + 4 + 5 + 5000);
        // Tables do not tell how long large values are.
        let told = if two.counters["ingest_bytes"] == 0 { &all[..3] } else { &all[..2] };
        assert_eq!(counted(&recovered, told), counted(&one, told), "{rows} rows");
        assert_eq!(two.write_amp, one.write_amp);
        assert!(two.wal_bytes >= one.wal_bytes, "{} and {}", two.wal_bytes, one.wal_bytes);
    }
}

#[test]
fn what_is_rolled_back_is_no_commit() {
    for (memory_bytes, rows) in [(1 << 20, 50), (10_000, 500)] {
        let db = open_on(&MemFs::new());
        writes(&db, memory_bytes, rows).prepare(b"x").unwrap().rollback(DONE).unwrap();
        assert_eq!(counted(&db.stats(), &["commits", "write_ops", "user_bytes"]), [0, 0, 0]);
    }
}

/// All that is appended counts, also what is no operation.
#[test]
fn the_bytes_of_the_log_are_those_of_its_file() {
    let fs = MemFs::new();
    let db = open_on(&fs);
    let log_bytes = || {
        let files = fs.files();
        let logs = files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "wal"));
        logs.map(|(_, bytes)| *bytes).sum::<u64>()
    };
    let head = log_bytes();
    drop(writes(&db, 1 << 20, 50).prepare(b"x").unwrap());
    let prepared = log_bytes();
    assert!(prepared > head + 5000, "the prepare is in the log: {head}, {prepared}");
    assert_eq!(db.stats().wal_bytes, prepared - head);
    db.prepared().unwrap().remove(0).commit(DONE).unwrap();
    assert!(log_bytes() > prepared);
    assert_eq!(db.stats().wal_bytes, log_bytes() - head);
}

/// One call in 64 is looked at.
#[test]
fn both_phases_and_optimistic_commits_are_measured() {
    for optimistic in [false, true] {
        let db = open_on(&MemFs::new());
        let tree = db.tree_or_create("t").unwrap();
        for n in 0..2000u32 {
            let concurrency =
                if optimistic { Concurrency::Optimistic } else { Concurrency::Pessimistic };
            let options = TransactionOptions { concurrency, ..TransactionOptions::default() };
            let mut txn = db.begin(options).unwrap();
            txn.put(&tree, &n.to_be_bytes(), b"1").unwrap();
            match optimistic {
                true => txn.commit(DONE).unwrap(),
                false => txn.prepare_with(b"x", DONE).unwrap().commit(DONE).unwrap(),
            }
        }
        let stats = db.stats();
        assert_eq!(stats.counters["commits"], 2000);
        let samples = stats.latencies["write"].samples;
        assert!(samples > 2000 / 64 / 4, "{samples} samples, optimistic: {optimistic}");
    }
}

#[test]
fn a_removed_file_counts_once() {
    let fs = MemFs::new();
    let db = open_on(&fs);
    let tree = db.tree_or_create("t").unwrap();
    for n in 0..3u32 {
        tree.put(b"key", &n.to_be_bytes()).unwrap();
        db.flush().unwrap();
    }
    let files = |end: &str| {
        let files = fs.files();
        files.iter().filter(|(path, _)| path.to_string_lossy().ends_with(end)).count() as u64
    };
    let (before, counted) = (files(".table"), db.stats().counters["files_removed"]);
    assert_eq!((before, counted), (3, 0));
    db.compact().unwrap();
    assert_eq!((files(".table"), db.stats().counters["files_removed"]), (1, 3));
}

#[test]
fn a_sync_alone_is_no_commit() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config { sync: SyncPolicy::EveryMillis(1), ..Config::default() };
    let db = Db::open(dir.path(), config).unwrap();
    db.tree_or_create("t").unwrap().put(b"a", b"1").unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    // What is written is synced; nothing is left for the timer then, but it goes on asking.
    while db.stats().counters["wal_syncs"] == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(20));
    db.begin(TransactionOptions::default()).unwrap().commit(WriteOptions::SYNC).unwrap();
    db.write(&shaledb::Batch::new(), WriteOptions::SYNC).unwrap();
    db.sync().unwrap();
    let stats = db.stats();
    assert!(stats.counters["wal_syncs"] > 0);
    assert_eq!(counted(&stats, &["commits", "write_ops"]), [1, 1]);
}
