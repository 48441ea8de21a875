//! Real threads on the simulated disk: writers, readers and background work at once, and the power
//! going while they run.

use crate::Case;
use shaledb::db::OpenOptions;
use shaledb::fs::mem::{Call, CrashMode, Fault, MemFs};
use shaledb::fs::os::OsClock;
use shaledb::{Batch, Config, Db, ScanOptions, WriteOptions};
use shaledb_sim::data::Value;
use shaledb_sim::settings::{seeds, small};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

const WRITERS: usize = 4;
const CRASHES: u64 = 12;

fn open(fs: &MemFs, config: &Config) -> shaledb::Result<Db> {
    let env = shaledb::fs::Env { fs: Arc::new(fs.clone()), clock: Arc::new(OsClock::new()) };
    Db::open_in("/db", config.clone(), OpenOptions { env, ..OpenOptions::default() })
}

fn value(writer: usize, number: u32) -> Vec<u8> {
    Value { number: number * WRITERS as u32 + writer as u32, bytes: 100 + number % 700 }.fill()
}

fn key(writer: usize, number: u32) -> Vec<u8> {
    // Spread out, so that flushes and compactions meet keys of all ages.
    [&number.wrapping_mul(0x9e37_79b1).to_be_bytes()[..], &[writer as u8]].concat()
}

/// What the writers have done so far.
#[derive(Default)]
struct Progress {
    stop: AtomicBool,
    /// For each writer: so many commits are known to be durable, so many were begun.
    durable: [AtomicU32; WRITERS],
    begun: [AtomicU32; WRITERS],
}

fn write(db: &Db, writer: usize, progress: &Progress) -> shaledb::Result<()> {
    let trees = [db.tree("a")?, db.tree("b")?];
    let mut number = 0;
    while !progress.stop.load(Ordering::SeqCst) {
        progress.begun[writer].store(number + 1, Ordering::SeqCst);
        let mut batch = Batch::new();
        for tree in &trees {
            batch.put(tree, &key(writer, number), &value(writer, number));
        }
        let sync = number % 8 == 7;
        db.write(&batch, WriteOptions { sync })?;
        number += 1;
        if sync {
            progress.durable[writer].store(number, Ordering::SeqCst);
        }
        // What one has written, one sees.
        let seen = trees[number as usize % 2].get(&key(writer, number - 1))?;
        assert_eq!(seen.as_deref(), Some(&value(writer, number - 1)[..]));
    }
    Ok(())
}

/// Scans see each batch whole: both trees at one snapshot are equal.
fn read(db: &Db, progress: &Progress) -> shaledb::Result<()> {
    while !progress.stop.load(Ordering::SeqCst) {
        let snapshot = db.snapshot();
        let mut rows = Vec::new();
        for tree in ["a", "b"] {
            let options = ScanOptions { snapshot: Some(&snapshot), ..ScanOptions::default() };
            let scan = db.tree(tree)?.scan_with(options)?;
            rows.push(
                scan.map(|row| row.map(|(key, _)| key)).collect::<shaledb::Result<Vec<_>>>()?,
            );
        }
        assert_eq!(rows[0].len(), rows[1].len());
        assert!(rows[0] == rows[1] && rows[0].is_sorted());
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// A disk as the power left it, and what must be on it at least and at most.
struct Crash {
    fs: MemFs,
    durable: [u32; WRITERS],
    begun: [u32; WRITERS],
}

fn load(counts: &[AtomicU32; WRITERS]) -> [u32; WRITERS] {
    std::array::from_fn(|writer| counts[writer].load(Ordering::SeqCst))
}

fn check(crash: &Crash, config: &Config) -> shaledb::Result<()> {
    let db = open(&crash.fs, config)?;
    let trees = [db.tree("a")?, db.tree("b")?];
    for writer in 0..WRITERS {
        let mut found = 0;
        for number in 0..crash.begun[writer] {
            let key = key(writer, number);
            let both = [trees[0].get(&key)?, trees[1].get(&key)?];
            match (&both[0], &both[1]) {
                (Some(a), Some(b)) => {
                    assert_eq!(
                        found, number,
                        "writer {writer}: a commit is there without those before it"
                    );
                    let right = value(writer, number);
                    assert!(a[..] == right && b[..] == right);
                    found = number + 1;
                }
                (None, None) => {}
                _ => panic!("writer {writer}: commit {number} is half there"),
            }
        }
        assert!(
            found >= crash.durable[writer],
            "writer {writer}: {found} of {}",
            crash.durable[writer]
        );
    }
    db.verify(&mut |_| {})?;
    db.close()
}

#[test]
fn threads_lose_nothing_that_was_synced() {
    for seed in seeds(4) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let fs = MemFs::new();
        let config = Config { background_threads: 1 + seed as u32 % 3, ..small() };
        let db = open(&fs, &config).unwrap();
        db.tree_or_create("a").unwrap();
        db.tree_or_create("b").unwrap();
        let progress = Progress::default();
        let crashes = std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (db, progress) = (&db, &progress);
                scope.spawn(move || write(db, writer, progress).unwrap());
            }
            scope.spawn(|| read(&db, &progress).unwrap());
            let mut crashes = Vec::new();
            for index in 0..CRASHES {
                std::thread::sleep(Duration::from_millis(20 + (seed * 7 + index * 13) % 50));
                let durable = load(&progress.durable);
                let killed = fs.fork();
                let begun = load(&progress.begun);
                let torn = killed.crash_clone(seed * 100 + index, CrashMode::Torn);
                let lost = killed.crash_clone(0, CrashMode::Lost);
                crashes.extend([killed, torn, lost].map(|fs| Crash { fs, durable, begun }));
            }
            progress.stop.store(true, Ordering::SeqCst);
            crashes
        });
        for crash in &crashes {
            check(crash, &config).unwrap_or_else(|error| panic!("after a crash: {error}"));
        }
        db.wait_idle().unwrap();
        db.close().unwrap();
        let all = load(&progress.begun);
        check(&Crash { fs, durable: all, begun: all }, &config).unwrap();
    }
}

/// A sync fails while others are under way, what it was to make durable is lost, and one of those who
/// sync the same file is told: what anybody was told is durable is there after a crash.
#[test]
fn a_failed_sync_that_one_thread_is_told_of_loses_nothing_for_the_others() {
    let mut struck = 0;
    for seed in seeds(10) {
        let _case = Case::new(format!("SHALE_SEED={seed}, told"));
        let fs = MemFs::new();
        let config = Config { background_threads: 1 + seed as u32 % 3, ..small() };
        let db = open(&fs, &config).unwrap();
        db.tree_or_create("a").unwrap();
        db.tree_or_create("b").unwrap();
        // Syncs take a while, so that they meet.
        fs.pause(Some(Arc::new(|_, _: &_| std::thread::sleep(Duration::from_micros(300)))));
        fs.fail(Call::Sync, 10 + seed * 9, Fault::ReportOne, true);
        let progress = Progress::default();
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (db, progress) = (&db, &progress);
                // It ends when writes are refused.
                scope.spawn(move || drop(write(db, writer, progress)));
            }
            for _ in 0..200 {
                std::thread::sleep(Duration::from_millis(10));
                if fs.faults_struck() > 0 {
                    std::thread::sleep(Duration::from_millis(50));
                    break;
                }
            }
            progress.stop.store(true, Ordering::SeqCst);
        });
        struck += fs.faults_struck();
        let (durable, begun) = (load(&progress.durable), load(&progress.begun));
        drop(db);
        for (seed, mode) in [(seed, CrashMode::Lost), (seed, CrashMode::Torn)] {
            let crash = Crash { fs: fs.crash_clone(seed, mode), durable, begun };
            check(&crash, &config).unwrap_or_else(|error| panic!("after a crash: {error}"));
        }
    }
    assert!(struck > 0);
}
