//! What must hold in bad moments: failures, races, long lives.

use shaledb::fs::Fs;
use shaledb::fs::mem::{Call, CrashMode, Fault, MemClock, MemFs};
use shaledb::repair::{RepairOptions, repair};
use shaledb::{
    Background, Config, Db, Env, Error, OpenOptions, Result, SyncPolicy, TransactionOptions, Tree,
    WriteOptions,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn small() -> Config {
    Config {
        memory_bytes: 16 << 20,
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        background_threads: 2,
        ..Config::default()
    }
}

/// A database on a disk in memory, whose background work is stepped.
fn stepped(fs: &MemFs, clock: &Arc<MemClock>) -> Result<Db> {
    stepped_with(fs, clock, small())
}

fn stepped_with(fs: &MemFs, clock: &Arc<MemClock>, config: Config) -> Result<Db> {
    let env = Env { fs: Arc::new(fs.clone()), clock: clock.clone() };
    let options = OpenOptions { env, background: Background::Stepped, ..OpenOptions::default() };
    Db::open_in("/db", config, options)
}

#[test]
fn a_bulk_load_beside_writers_of_several_trees_ends() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), small())?;
    let (one, other) = (db.tree_or_create("one")?, db.tree_or_create("other")?);
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = [one.clone(), other, one.clone()]
        .into_iter()
        .map(|tree| {
            let stop = stop.clone();
            std::thread::spawn(move || {
                let mut n = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    tree.put(&(n % 5_000).to_be_bytes(), &[7; 40])?;
                    n += 1;
                }
                Result::Ok(())
            })
        })
        .collect();
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let load = |round: u64| {
            let mut ingest = one.ingest()?;
            for n in 0..50u64 {
                ingest.add(&(1 << 40 | round << 20 | n).to_be_bytes(), b"bulk")?;
            }
            ingest.finish()
        };
        done.send((0..30).try_for_each(|round| load(round).map(drop)))
    });
    // A thread that hangs cannot be joined, so the test ends without it.
    let result = ended.recv_timeout(Duration::from_secs(120));
    stop.store(true, Ordering::Relaxed);
    result.expect("the bulk loads hang")?;
    for writer in writers {
        writer.join().unwrap()?;
    }
    assert_eq!(db.tree("one")?.scan((1u64 << 40).to_be_bytes()..)?.count(), 30 * 50);
    Ok(())
}

#[test]
fn the_manifest_of_a_long_life_stays_small() -> Result<()> {
    let fs = MemFs::new();
    let db = stepped(&fs, &Arc::new(MemClock::new()))?;
    db.create_tree("kept", db.tree_or_create("kept too")?.config().clone())?;
    let manifests = || -> Vec<u64> {
        let is_one = |path: &std::path::Path| path.to_string_lossy().contains("MANIFEST");
        fs.files().into_iter().filter(|(path, _)| is_one(path)).map(|(_, bytes)| bytes).collect()
    };
    let name = "x".repeat(1000);
    for round in 0..6_000 {
        db.tree_or_create(&format!("{name} {round}"))?;
        db.drop_tree(&format!("{name} {round}"))?;
        assert!(manifests().iter().sum::<u64>() < 5 << 20, "{:?}", manifests());
    }
    assert_eq!(manifests().len(), 1);
    drop(db);
    assert_eq!(stepped(&fs, &Arc::new(MemClock::new()))?.tree_names(), ["kept", "kept too"]);
    Ok(())
}

#[test]
fn a_poisoned_database_leaves_no_more_files() -> Result<()> {
    let (fs, clock) = (MemFs::new(), Arc::new(MemClock::new()));
    let db = stepped(&fs, &clock)?;
    let (one, other) = (db.tree_or_create("one")?, db.tree_or_create("other")?);
    other.put(b"only in the log", b"")?;
    for n in 0..3_000u64 {
        one.put(&n.to_be_bytes(), &[1; 20])?;
    }
    fs.fail(Call::Sync, 1, Fault::Io, true);
    assert!(matches!(db.sync(), Err(Error::Poisoned(_))));
    let before = fs.files().len();
    for _ in 0..50 {
        clock.advance(20_000_000_000);
        assert!(!db.step()?, "there is nothing to do that could be installed");
    }
    let large = vec![1; 8 << 20];
    assert!(matches!(one.put(b"large", &large), Err(Error::Poisoned(_))));
    assert_eq!(fs.files().len(), before);
    assert!(one.get(&7u64.to_be_bytes())?.is_some());
    drop((one, other, db));
    let db = stepped(&fs, &clock)?;
    assert!(db.tree("other")?.get(b"only in the log")?.is_some());
    Ok(())
}

#[test]
fn closing_does_not_wait_for_the_next_sync() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let config = Config { sync: SyncPolicy::EveryMillis(60_000), ..small() };
    let db = Db::open(dir.path(), config)?;
    db.tree_or_create("t")?.put_with(b"k", b"v", WriteOptions::default())?;
    std::thread::sleep(Duration::from_millis(50));
    let started = Instant::now();
    db.close()?;
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    Ok(())
}

#[test]
fn many_small_trees_are_flushed_together() -> Result<()> {
    const TREES: u64 = 300;
    let (fs, clock) = (MemFs::new(), Arc::new(MemClock::new()));
    // So large that nothing is sealed before the end.
    let config = Config { memtable_bytes: 2 << 20, ..small() };
    let db = stepped_with(&fs, &clock, config)?;
    let trees: Vec<_> =
        (0..TREES).map(|n| db.tree_or_create(&format!("tree {n}"))).collect::<Result<_>>()?;
    for round in 0..3u64 {
        for tree in &trees {
            tree.put(&round.to_be_bytes(), b"a little")?;
        }
    }
    let before = fs.counts();
    db.flush()?;
    let made = |call| fs.counts().of(call) - before.of(call);
    // A table each must be synced; the log, the directory and the manifest once for many trees.
    assert!((TREES..TREES + 60).contains(&made(Call::Sync)), "{}", made(Call::Sync));
    assert!(made(Call::SyncDir) < 40, "{}", made(Call::SyncDir));
    // And it is durable.
    let crashed = fs.crash_clone(1, CrashMode::Lost);
    let db = stepped(&crashed, &clock)?;
    for n in 0..TREES {
        assert_eq!(db.tree(&format!("tree {n}"))?.scan::<&[u8]>(..)?.count(), 3);
    }
    Ok(())
}

#[test]
fn opening_for_reading_only_keeps_to_the_bound_on_memory() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let large = Config { memory_bytes: 256 << 20, memtable_bytes: 64 << 20, ..Config::default() };
    let little = Config { memory_bytes: 16 << 20, ..Config::default() };
    {
        let db = Db::open(dir.path(), large.clone())?;
        let tree = db.tree_or_create("t")?;
        for n in 0..24u64 {
            tree.put(&n.to_be_bytes(), &vec![n as u8; 1 << 19])?;
        }
    }
    let count = |db: &Db| Result::Ok(db.tree("t")?.scan::<&[u8]>(..)?.count());
    let files = || {
        let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let before = files();
    match Db::open_read_only(dir.path(), little.clone()) {
        Err(Error::Config { setting: "memory_bytes", what }) => {
            assert!(what.contains("once for writing"), "{what}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(count(&Db::open_read_only(dir.path(), large)?)?, 24);
    assert_eq!(files(), before, "nothing on disk is changed");
    // What the message says helps: also if the database is closed at once.
    drop(Db::open(dir.path(), little.clone())?);
    assert_eq!(count(&Db::open_read_only(dir.path(), little)?)?, 24);
    Ok(())
}

#[test]
fn what_is_prepared_can_be_committed_while_other_writes_are_refused() -> Result<()> {
    let (fs, clock) = (MemFs::new(), Arc::new(MemClock::new()));
    let db = stepped(&fs, &clock)?;
    let tree = db.tree_or_create("t")?;
    let prepare = |name: &[u8]| {
        let mut txn = db.begin(TransactionOptions::default())?;
        txn.put(&tree, name, &[1; 1000])?;
        txn.prepare(name)
    };
    let prepared = prepare(b"before")?;
    fs.fail(Call::Create, 1, Fault::Full, false);
    let refused = (0..100_000u32).find_map(|n| tree.put(&n.to_be_bytes(), &[7; 1000]).err());
    assert!(refused.as_ref().is_some_and(Error::is_disk_full), "{refused:?}");
    // It is asked for room while it can still be refused.
    assert!(prepare(b"meanwhile").is_err_and(|error| error.is_disk_full()));
    assert!(tree.get(b"meanwhile")?.is_none());
    prepared.commit(WriteOptions::default())?;
    assert_eq!(tree.get(b"before")?.unwrap(), [1; 1000]);
    fs.clear_faults();
    clock.advance(20_000_000_000);
    tree.put(b"later", b"2")?;
    prepare(b"meanwhile")?.commit(WriteOptions::default())?;
    db.close()?;
    let db = stepped(&fs, &clock)?;
    let tree = db.tree("t")?;
    for key in [&b"before"[..], b"meanwhile", b"later"] {
        assert!(tree.get(key)?.is_some(), "{key:?}");
    }
    Ok(())
}

/// The rollback is lost with a crash, and the prepare is not; but the manifest says that all up to
/// there is in tables.
#[test]
fn what_was_rolled_back_before_a_flush_is_not_found_prepared() -> Result<()> {
    let (fs, clock) = (MemFs::new(), Arc::new(MemClock::new()));
    let db = stepped(&fs, &clock)?;
    let tree = db.tree_or_create("t")?;
    let mut txn = db.begin(TransactionOptions::default())?;
    txn.put(&tree, b"a", b"old")?;
    txn.prepare(b"x")?.rollback(WriteOptions::default())?;
    tree.put(b"a", b"new")?;
    tree.flush()?;
    let db = stepped(&fs.crash_clone(1, CrashMode::Lost), &clock)?;
    assert_eq!(db.prepared()?.len(), 0);
    assert_eq!(db.tree("t")?.get(b"a")?.unwrap(), b"new");
    Ok(())
}

#[test]
fn commits_go_on_beside_a_sync_of_the_database() -> Result<()> {
    let (fs, clock) = (MemFs::new(), Arc::new(MemClock::new()));
    let db = stepped(&fs, &clock)?;
    let tree = db.tree_or_create("t")?;
    tree.put(b"before", b"")?;
    let beside = tree.clone();
    let (done, ended) = std::sync::mpsc::channel();
    let ended = std::sync::Mutex::new(ended);
    fs.pause(Some(Arc::new(move |call, _: &Path| {
        if call == Call::Sync {
            let (beside, done) = (beside.clone(), done.clone());
            std::thread::spawn(move || done.send(beside.put(b"beside", b"")));
            // One that waits for this sync would wait for ever.
            let put = ended.lock().unwrap().recv_timeout(Duration::from_secs(60));
            put.expect("the commit waits for the sync").unwrap();
        }
    })));
    db.sync()?;
    fs.pause(None);
    let synced = fs.counts().of(Call::Sync);
    db.sync()?;
    assert_eq!(fs.counts().of(Call::Sync), synced + 1, "of what came meanwhile");
    db.sync()?;
    assert_eq!(fs.counts().of(Call::Sync), synced + 1, "there is nothing to sync");
    let db = stepped(&fs.crash_clone(1, CrashMode::Lost), &clock)?;
    assert!(db.tree("t")?.contains(b"before")? && db.tree("t")?.contains(b"beside")?);
    Ok(())
}

/// What is in tables takes the decision along, wherever its record was lost.
#[test]
fn what_was_decided_before_what_is_in_tables_is_not_prepared_again() -> Result<()> {
    for (commit, sync, rows) in [(true, true, 2), (false, true, 1), (false, false, 1)] {
        let (fs, clock) = (MemFs::new(), Arc::new(MemClock::new()));
        let db = stepped(&fs, &clock)?;
        let tree = db.tree_or_create("t")?;
        let mut txn = db.begin(TransactionOptions::default())?;
        txn.put(&tree, b"k", b"old")?;
        txn.put(&tree, b"l", b"old")?;
        let prepared = txn.prepare(b"x")?;
        let options = if sync { WriteOptions::SYNC } else { WriteOptions::default() };
        let before: Vec<(PathBuf, usize)> =
            logs(&fs).into_iter().map(|path| (path.clone(), log_end(&fs, &path))).collect();
        if commit {
            prepared.commit(options)?
        } else {
            prepared.rollback(options)?
        }
        tree.put(b"k", b"new")?;
        tree.flush()?;
        let crashed = fs.crash_clone(1, CrashMode::Lost);
        if sync {
            // The first byte of the decision's record is damaged.
            let grown = before.iter().find(|(path, end)| log_end(&fs, path) > *end);
            let (path, end) = grown.expect("the log goes on in the same file");
            assert!(crashed.corrupt(path, *end as u64, 1));
        }
        let env = Env { fs: Arc::new(crashed.clone()), clock: clock.clone() };
        let options = RepairOptions { env: env.clone(), ..RepairOptions::default() };
        repair("/db".as_ref(), "/repaired".as_ref(), &options, &mut |_| ())?;
        let background = Background::Stepped;
        let open = |dir: &str, read_only| {
            let env = env.clone();
            Db::open_in(dir, small(), OpenOptions { env, background, read_only })
        };
        // Without its lock it is followed.
        crashed.remove("/db/LOCK".as_ref())?;
        for (dir, read_only) in [("/repaired", false), ("/db", true), ("/db", false)] {
            let db = open(dir, read_only)?;
            assert!(db.prepared()?.is_empty(), "{dir}, {read_only}: {commit}, {sync}");
            let tree = db.tree("t")?;
            assert_eq!(tree.get(b"k")?.unwrap(), b"new");
            assert_eq!(tree.scan::<&[u8]>(..)?.count(), rows);
        }
    }
    Ok(())
}

/// A decision that is lost with a part of the log may have been there, says a repair. What the
/// manifest tells to be in tables is decided also where the log is damaged behind it.
#[test]
fn a_repair_of_a_damaged_log_names_what_may_have_been_decided() -> Result<()> {
    let (fs, clock) = (MemFs::new(), Arc::new(MemClock::new()));
    let db = stepped(&fs, &clock)?;
    let tree = db.tree_or_create("t")?;
    let mut places = Vec::new();
    for (name, is_flushed) in [(&b"flushed"[..], true), (b"lost", false)] {
        let mut txn = db.begin(TransactionOptions::default())?;
        txn.put(&tree, name, b"old")?;
        let prepared = txn.prepare(name)?;
        let log = logs(&fs).pop().unwrap();
        places.push((log_end(&fs, &log), log));
        prepared.commit(WriteOptions::SYNC)?;
        tree.put_with(name, b"new", WriteOptions::SYNC)?;
        if is_flushed {
            tree.flush()?;
        }
    }
    let crashed = fs.crash_clone(1, CrashMode::Lost);
    for (at, log) in places {
        assert!(crashed.corrupt(&log, at as u64, 1));
    }
    let env = Env { fs: Arc::new(crashed), clock };
    let options = RepairOptions { env: env.clone(), ..RepairOptions::default() };
    let report = repair("/db".as_ref(), "/repaired".as_ref(), &options, &mut |_| ())?;
    let text = report.to_string();
    assert!(text.contains("`lost`") && !text.contains("`flushed`"), "{text}");
    let options = OpenOptions { env, background: Background::Stepped, ..OpenOptions::default() };
    let db = Db::open_in("/repaired", small(), options)?;
    let names: Vec<_> = db.prepared()?.iter().map(|one| one.xid().to_vec()).collect();
    assert_eq!(names, [b"lost"]);
    Ok(())
}

fn logs(fs: &MemFs) -> Vec<PathBuf> {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "wal");
    fs.files().into_iter().map(|(path, _)| path).filter(is_log).collect()
}

/// Where the zeros at a log's end begin.
fn log_end(fs: &MemFs, path: &Path) -> usize {
    let content = fs.content(path).unwrap();
    content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// A rollback does not outlast what was committed before it.
#[test]
fn a_crash_takes_no_commit_and_leaves_a_later_rollback() -> Result<()> {
    let (fs, clock) = (MemFs::new(), Arc::new(MemClock::new()));
    let db = stepped(&fs, &clock)?;
    let (one, other) = (db.tree_or_create("one")?, db.tree_or_create("other")?);
    one.put(b"a", b"")?;
    let mut txn = db.begin(TransactionOptions::default())?;
    txn.put(&one, b"b", b"")?;
    let prepared = txn.prepare(b"x")?;
    other.put(b"c", b"")?;
    prepared.rollback(WriteOptions::default())?;
    // The log is durable as far as this needs it.
    one.flush()?;
    let fs = fs.crash_clone(1, CrashMode::Lost);
    let db = stepped(&fs, &clock)?;
    let commit_is_there = db.tree("other")?.contains(b"c")?;
    assert_eq!((db.prepared()?.len(), commit_is_there), (1, false));
    // Its log is needed again, though the manifest has said that it was not.
    db.tree("one")?.put(b"d", b"")?;
    db.flush()?;
    let db = stepped(&fs.crash_clone(1, CrashMode::Lost), &clock)?;
    assert_eq!(db.prepared()?.len(), 1);
    Ok(())
}

/// The system refuses to open another file: one that is not in use is closed, and it goes on.
#[test]
fn a_process_without_handles_closes_tables() -> Result<()> {
    let (fs, clock) = (MemFs::new(), Arc::new(MemClock::new()));
    let db = stepped(&fs, &clock)?;
    let trees: Vec<Tree> =
        (0..8).map(|number| db.tree_or_create(&format!("t{number}"))).collect::<Result<_>>()?;
    for tree in &trees {
        tree.put(b"a", b"1")?;
        tree.put(b"large", &vec![7; 2 << 20])?;
    }
    db.flush()?;
    let (read, unread) = trees.split_at(4);
    for tree in read {
        assert_eq!(tree.get(b"a")?.unwrap(), b"1");
    }
    // A table, a value of its own, files that are made, and the directory.
    for (struck, (call, nth)) in [(Call::Open, 1), (Call::Open, 2), (Call::Open, 3)]
        .into_iter()
        .chain((1..4).flat_map(|nth| [(Call::Create, nth), (Call::SyncDir, nth)]))
        .enumerate()
    {
        fs.fail(call, nth, Fault::NoHandle, true);
        for tree in unread {
            assert_eq!(tree.get(b"a")?.unwrap(), b"1");
            assert_eq!(tree.get(b"large")?.unwrap().len(), 2 << 20);
            tree.put(b"b", &vec![8; 2 << 20])?;
        }
        db.flush()?;
        db.compact()?;
        for tree in read {
            assert_eq!(tree.get(b"a")?.unwrap(), b"1");
        }
        assert_eq!(fs.faults_struck(), struck as u64 + 1, "{call:?} {nth}");
    }
    // If that is of no use it is told, and no harm is done.
    let db = {
        drop(trees);
        db.close()?;
        stepped(&fs, &clock)?
    };
    let tree = db.tree("t1")?;
    fs.fail(Call::Open, 1, Fault::NoHandle, false);
    let refused = tree.get(b"a").unwrap_err().to_string();
    assert!(refused.contains("ulimit -n"), "{refused}");
    fs.clear_faults();
    assert_eq!(tree.get(b"a")?.unwrap(), b"1");
    // Nor by a directory that could not be opened to be synced: a flush is made again.
    tree.put(b"a", b"2")?;
    fs.fail(Call::SyncDir, 1, Fault::NoHandle, false);
    assert!(db.flush().is_err());
    fs.clear_faults();
    tree.put(b"b", b"3")?;
    clock.advance(20_000_000_000);
    while db.step()? {}
    db.flush()?;
    assert_eq!(tree.get(b"a")?.unwrap(), b"2");
    Ok(())
}
