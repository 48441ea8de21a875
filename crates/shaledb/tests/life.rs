//! The ends of a database's life: the first open by many at once, a close after a failure, a log
//! that was cut after it, and files that are none.

use shaledb::fs::Fs;
use shaledb::fs::mem::{Call, CrashMode, Fault, MemFs};
use shaledb::{
    Background, Config, Db, Env, Error, OpenOptions, Result, TransactionOptions, WriteOptions,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};

fn small() -> Config {
    Config {
        memory_bytes: 16 << 20,
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        background_threads: 1,
        ..Config::default()
    }
}

fn stepped(fs: &MemFs, read_only: bool) -> Result<Db> {
    let env = Env { fs: Arc::new(fs.clone()), ..Env::memory() };
    Db::open_in("/db", small(), OpenOptions { env, background: Background::Stepped, read_only })
}

/// Whoever comes while another makes the database, or has it open, is told that it is in use; what
/// one of them has put in stays.
#[test]
fn of_many_first_opens_each_succeeds_or_finds_it_in_use() {
    const OPENERS: usize = 8;
    for round in 0..60 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new.db");
        let barrier = Barrier::new(OPENERS);
        let put = |opener: usize| -> Result<()> {
            barrier.wait();
            let db = Db::open(&path, small())?;
            db.tree_or_create("t")?.put(&[opener as u8], b"")?;
            db.close()
        };
        let results: Vec<Result<()>> = std::thread::scope(|scope| {
            let put = &put;
            let openers: Vec<_> =
                (0..OPENERS).map(|opener| scope.spawn(move || put(opener))).collect();
            openers.into_iter().map(|opener| opener.join().unwrap()).collect()
        });
        for result in &results {
            assert!(
                matches!(result, Ok(()) | Err(Error::Locked { .. })),
                "round {round}: {result:?}"
            );
        }
        let there = Db::open(&path, small()).unwrap();
        let rows = there.tree("t").unwrap().scan::<&[u8]>(..).unwrap().count();
        assert!(rows > 0 && rows == results.iter().filter(|result| result.is_ok()).count());
    }
}

/// Another makes the database between the look at whether there is one and the lock.
#[test]
fn a_database_made_meanwhile_is_opened_and_not_found_damaged() -> Result<()> {
    for name in ["/db", "/deep/down/db"] {
        let fs = MemFs::new();
        let open = move |fs: &MemFs| {
            let env = Env { fs: Arc::new(fs.clone()), ..Env::memory() };
            let background = Background::Stepped;
            Db::open_in(name, small(), OpenOptions { env, background, read_only: false })
        };
        let other = fs.clone();
        let made = std::sync::Mutex::new(false);
        fs.pause(Some(Arc::new(move |call, _: &Path| {
            let first = call == Call::Lock
                && made.try_lock().is_ok_and(|mut made| !std::mem::replace(&mut *made, true));
            if first {
                let db = open(&other).unwrap();
                db.tree_or_create("t").unwrap().put(b"a", b"1").unwrap();
                db.close().unwrap();
            }
        })));
        let db = open(&fs)?;
        fs.pause(None);
        assert!(db.tree("t")?.contains(b"a")?);
    }
    Ok(())
}

/// What was committed without a sync cannot become durable after a sync has failed: whoever closes
/// is told, also the second one.
#[test]
fn closing_after_a_failed_sync_is_an_error_if_commits_are_lost() -> Result<()> {
    for large in [false, true] {
        let fs = MemFs::new();
        let db = stepped(&fs, false)?;
        let tree = db.tree_or_create("t")?;
        tree.put_with(b"synced", b"", WriteOptions::SYNC)?;
        tree.put(b"unsynced", b"")?;
        if large {
            // A failed sync of the directory.
            fs.fail(Call::SyncDir, 1, Fault::Io, true);
            assert!(tree.put(b"large", &vec![1; 4 << 20]).is_err());
        } else {
            fs.fail(Call::Sync, 1, Fault::Io, true);
            assert!(matches!(db.sync(), Err(Error::Poisoned(_))));
        }
        let other = db.clone();
        for db in [db, other] {
            let closed = db.close();
            assert!(matches!(closed, Err(Error::Poisoned(_))), "large: {large}, {closed:?}");
        }
        drop(tree);
        let db = stepped(&fs.crash_clone(1, CrashMode::Lost), false)?;
        assert!(db.tree("t")?.contains(b"synced")?);
        assert!(!db.tree("t")?.contains(b"unsynced")?);
    }
    Ok(())
}

/// If all that was committed is durable, closing after a failure has nothing to complain about.
#[test]
fn closing_after_a_failure_that_lost_nothing_is_no_error() -> Result<()> {
    let fs = MemFs::new();
    let db = stepped(&fs, false)?;
    let tree = db.tree_or_create("t")?;
    tree.put_with(b"synced", b"", WriteOptions::SYNC)?;
    fs.fail(Call::Sync, 1, Fault::Io, true);
    assert!(tree.put_with(b"refused", b"", WriteOptions::SYNC).is_err());
    db.close()
}

/// A database that was closed in good order: its log is in several files.
fn closed() -> MemFs {
    let fs = MemFs::new();
    let db = stepped(&fs, false).unwrap();
    let (one, other) = (db.tree_or_create("t").unwrap(), db.tree_or_create("other").unwrap());
    other.put(b"only in the log", b"").unwrap();
    for n in 0..3_000u32 {
        one.put_with(&n.to_be_bytes(), &[7; 40], WriteOptions { sync: n % 100 == 99 }).unwrap();
    }
    drop((one, other));
    db.close().unwrap();
    fs
}

fn wals(fs: &MemFs) -> Vec<(PathBuf, u64)> {
    fs.files()
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|e| e == "wal"))
        .collect()
}

fn cut(fs: &MemFs, path: &Path, bytes: u64) {
    fs.append(path).unwrap().truncate(bytes).unwrap();
}

/// Each cut of the log's last file is noticed, wherever it ends, by an open of either kind, and by a
/// second one; and that it is gone.
#[test]
fn a_log_cut_after_a_clean_close_is_noticed() {
    let whole = closed();
    let all = wals(&whole);
    let (last, bytes) = all.last().unwrap();
    assert!(all.len() > 1, "the log is in {} files", all.len());
    let mut places: Vec<u64> = (0..*bytes).step_by(997).collect();
    places.extend((1..80).map(|back| bytes - back));
    for at in places {
        let fs = whole.fork();
        cut(&fs, last, at);
        for read_only in [true, false, false] {
            match stepped(&fs, read_only) {
                Err(Error::Corruption { path, offset, .. }) => {
                    assert_eq!(&path, last, "cut at {at}");
                    assert!(offset <= at, "{offset} of {at}");
                }
                other => panic!("cut at {at}, for reading {read_only}: {other:?}"),
            }
        }
    }
    let fs = whole.fork();
    fs.remove(last).unwrap();
    match stepped(&fs, false) {
        Err(Error::Corruption { path, .. }) => assert_eq!(&path, last),
        other => panic!("{other:?}"),
    }
    // Without a cut it opens, and what was closed again may be cut no more either.
    let fs = whole.fork();
    stepped(&fs, false).unwrap().close().unwrap();
    let (last, bytes) = wals(&fs).pop().unwrap();
    cut(&fs, &last, bytes - 1);
    assert!(stepped(&fs, false).unwrap_err().is_corruption());
}

/// Also if its end is overwritten instead of cut.
#[test]
fn a_log_whose_end_is_zeroed_after_a_clean_close_is_noticed() {
    let whole = closed();
    let (last, bytes) = wals(&whole).pop().unwrap();
    let content = whole.content(&last).unwrap();
    for length in [1, 8, 512, 4096] {
        let fs = whole.fork();
        for at in bytes - length..bytes {
            let byte = content[at as usize];
            if byte != 0 {
                assert!(fs.corrupt(&last, at, byte));
            }
        }
        match stepped(&fs, false) {
            Err(Error::Corruption { path, .. }) => assert_eq!(path, last),
            other => panic!("the last {length} bytes are zeros: {other:?}"),
        }
    }
}

/// A repair takes what is left, and says what is missing.
#[test]
fn a_repair_tells_of_a_cut_log_and_saves_the_rest() {
    use shaledb::repair::{RepairOptions, repair};
    let fs = closed();
    let (last, bytes) = wals(&fs).pop().unwrap();
    cut(&fs, &last, bytes / 2);
    let env = Env { fs: Arc::new(fs.clone()), ..Env::memory() };
    let options = RepairOptions { env, ..RepairOptions::default() };
    let report = repair("/db".as_ref(), "/saved".as_ref(), &options, &mut |_| ()).unwrap();
    assert!(!report.is_clean());
    let name = last.file_name().unwrap().to_str().unwrap();
    assert!(report.to_string().contains(name), "{report}");
    let env = Env { fs: Arc::new(fs), ..Env::memory() };
    let open = OpenOptions { env, background: Background::Stepped, read_only: false };
    let db = Db::open_in("/saved", small(), open).unwrap();
    let rows = db.tree("t").unwrap().scan::<&[u8]>(..).unwrap().count();
    assert!((1..3_000).contains(&rows), "{rows}");
    assert!(db.tree("other").unwrap().contains(b"only in the log").unwrap());
}

/// All operations of a prepared transaction have one number. A replay must not cut them in two: a
/// table of the first half would say that all of the number is in tables.
#[test]
fn a_prepared_transaction_is_replayed_as_a_whole() {
    let rows = |db: &Db| db.tree("t").unwrap().scan::<&[u8]>(..).unwrap().count();
    // What is in the memtable before decides where it would be full.
    for before in [0u32, 300, 700] {
        for size in [900u32, 3_000] {
            let fs = MemFs::new();
            let db = stepped(&fs, false).unwrap();
            let tree = db.tree_or_create("t").unwrap();
            for n in 0..before {
                tree.put(&n.to_be_bytes(), &[1; 60]).unwrap();
            }
            let mut txn = db.begin(TransactionOptions::default()).unwrap();
            for n in 0..size {
                txn.put(&tree, &(10_000 + n).to_be_bytes(), &[2; 60]).unwrap();
            }
            txn.prepare(b"x").unwrap().commit(WriteOptions::default()).unwrap();
            let mut wanted = (before + size) as usize;
            let mut fs = fs.fork();
            for round in 0..3u32 {
                let db = stepped(&fs, false).unwrap();
                assert_eq!(rows(&db), wanted, "before {before}, size {size}, round {round}");
                // One flush, of some of what the replay has sealed; then the machine is gone.
                db.step().unwrap();
                let tree = db.tree("t").unwrap();
                tree.put(&(90_000 + round).to_be_bytes(), b"").unwrap();
                wanted += 1;
                if round == 1 {
                    db.flush().unwrap();
                }
                assert_eq!(rows(&db), wanted);
                fs = fs.fork();
            }
            assert_eq!(rows(&stepped(&fs, false).unwrap()), wanted);
        }
    }
}

/// Nobody closes it: that tables have more than the log is the only trace.
#[test]
fn a_log_that_ends_before_what_is_in_tables_is_noticed() {
    let fs = MemFs::new();
    let db = stepped(&fs, false).unwrap();
    let (one, other) = (db.tree_or_create("t").unwrap(), db.tree_or_create("other").unwrap());
    other.put(b"only in the log", b"1").unwrap();
    let ends_at = |fs: &MemFs| {
        let (last, _) = wals(fs).pop().unwrap();
        let content = fs.content(&last).unwrap();
        (last, content.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1)
    };
    let (last, end) = ends_at(&fs);
    one.put(b"a", b"").unwrap();
    one.put(b"b", b"").unwrap();
    one.flush().unwrap();
    let crashed = fs.crash_clone(1, CrashMode::Lost);
    let tree = stepped(&crashed.fork(), false).unwrap().tree("t").unwrap();
    assert_eq!(tree.scan::<&[u8]>(..).unwrap().count(), 2);
    cut(&crashed, &last, end);
    for read_only in [true, false, false] {
        match stepped(&crashed, read_only) {
            Err(Error::Corruption { path, offset, .. }) => {
                assert_eq!((path, offset), (last.clone(), end))
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A checkpoint is closed in good order from the start.
#[test]
fn a_cut_log_of_a_checkpoint_is_noticed() {
    let fs = MemFs::new();
    let db = stepped(&fs, false).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    txn.put(&tree, b"prepared", b"").unwrap();
    // It keeps the log from being forgotten.
    let _undecided = txn.prepare(b"x").unwrap();
    for n in 0..100u32 {
        tree.put(&n.to_be_bytes(), b"").unwrap();
    }
    db.checkpoint("/copy").unwrap();
    let copied = wals(&fs).into_iter().filter(|(path, _)| path.starts_with("/copy"));
    let (last, bytes) = copied.max().unwrap();
    let open = |fs: &MemFs| {
        let env = Env { fs: Arc::new(fs.clone()), ..Env::memory() };
        let options = OpenOptions { env, background: Background::Stepped, read_only: true };
        Db::open_in("/copy", small(), options)
    };
    assert!(open(&fs.fork()).is_ok());
    for back in 1..60 {
        let fs = fs.fork();
        cut(&fs, &last, bytes - back);
        assert!(open(&fs).unwrap_err().is_corruption(), "{back} bytes are missing");
    }
}

/// A log that a checkpoint shares may have zeros ahead of its writer, who is killed before they are
/// cut off. The log after it may be empty.
#[test]
fn a_checkpoint_opens_though_a_log_of_it_ends_in_zeros() {
    let fs = MemFs::new();
    let db = stepped(&fs, false).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    txn.put(&tree, b"prepared", b"").unwrap();
    // It keeps the log from being forgotten.
    let _undecided = txn.prepare(b"x").unwrap();
    for n in 0..230u32 {
        tree.put(&n.to_be_bytes(), &[1; 150]).unwrap();
    }
    db.checkpoint("/copy").unwrap();
    let mut logs: Vec<_> =
        wals(&fs).into_iter().filter(|(path, _)| path.starts_with("/copy")).collect();
    logs.sort();
    let (last, bytes) = logs.pop().unwrap();
    assert!(!logs.is_empty() && bytes < 64, "{logs:?}, and {last:?} of {bytes} bytes");
    for zeros in [1, 100, 70_000] {
        let fs = fs.fork();
        for (path, _) in &logs {
            let mut file = fs.append(path).unwrap();
            file.append(&vec![0; zeros]).unwrap();
            file.sync().unwrap();
        }
        for read_only in [true, false] {
            let env = Env { fs: Arc::new(fs.clone()), ..Env::memory() };
            let options = OpenOptions { env, background: Background::Stepped, read_only };
            let db = Db::open_in("/copy", small(), options).unwrap();
            assert_eq!(db.tree("t").unwrap().scan::<&[u8]>(..).unwrap().count(), 230);
            assert_eq!(db.prepared().unwrap().len(), 1);
        }
    }
    // What is there and not in tables must stay there.
    let (path, bytes) = logs.last().unwrap();
    cut(&fs, path, bytes - 1);
    let env = Env { fs: Arc::new(fs.clone()), ..Env::memory() };
    let options = OpenOptions { env, background: Background::Stepped, read_only: true };
    assert!(Db::open_in("/copy", small(), options).unwrap_err().is_corruption());
}

/// Handles that are left after a close answer that it is closed: also a scan under way, and a reader
/// of a large value.
#[test]
fn scans_and_readers_end_with_the_database() -> Result<()> {
    use std::io::Read;
    let db = Db::open_in("/db", small(), OpenOptions { env: Env::memory(), ..Default::default() })?;
    let tree = db.tree_or_create("t")?;
    tree.put(b"a", b"1")?;
    tree.put(b"b", b"2")?;
    tree.put(b"large", &vec![1; 4 << 20])?;
    let mut scan = tree.scan::<&[u8]>(..)?;
    scan.seek_first()?;
    let mut reader = tree.get_reader(b"large")?.unwrap();
    db.close()?;
    assert!(matches!(scan.next(), Err(Error::Closed)));
    assert!(matches!(scan.prev(), Err(Error::Closed)));
    assert!(matches!(scan.seek(b"a"), Err(Error::Closed)));
    assert!(matches!(scan.seek_back(b"a"), Err(Error::Closed)));
    assert!(matches!(scan.seek_first(), Err(Error::Closed)));
    assert!(matches!(scan.seek_last(), Err(Error::Closed)));
    assert!(reader.read(&mut [0; 10]).is_err());
    Ok(())
}

/// What stands where a file of the database should.
fn replace_with_other(path: &Path, kind: &str) {
    std::fs::remove_file(path).unwrap();
    let text = path.to_str().unwrap();
    match kind {
        "fifo" => {
            let name = std::ffi::CString::new(text).unwrap();
            // SAFETY: `name` ends in a zero.
            assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        }
        "directory" => std::fs::create_dir(path).unwrap(),
        "loop" => std::os::unix::fs::symlink(path, path).unwrap(),
        "device" => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        "socket" => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
        other => panic!("{other}"),
    }
}

/// A pipe, a device, a directory or a loop of links in place of a file is an error that names it:
/// no open waits for it, or reads it without end.
#[test]
fn what_is_no_file_does_not_hang_an_open() {
    for kind in ["fifo", "directory", "loop", "device", "socket"] {
        for which in ["wal", "table", "MANIFEST", "CURRENT", "LOCK", "blob"] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("db");
            {
                let db = Db::open(&path, small()).unwrap();
                let tree = db.tree_or_create("t").unwrap();
                tree.put(b"large", &vec![1; 4 << 20]).unwrap();
                db.flush().unwrap();
                tree.put(b"a", b"1").unwrap();
            }
            let names = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            let file = names
                .filter(|path| path.file_name().unwrap().to_str().unwrap().contains(which))
                .max()
                .unwrap_or_else(|| panic!("no {which}"));
            replace_with_other(&file, kind);
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let (done, wait) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let read = || {
                    let db = Db::open(&path, small())?;
                    db.tree("t")?.get(b"large").map(|_| ())
                };
                done.send((read(), Db::open_read_only(&path, small()).map(drop))).unwrap();
            });
            let what = format!("{kind} for {which}");
            let hangs = std::time::Duration::from_secs(60);
            let (read, _) = wait.recv_timeout(hangs).unwrap_or_else(|_| panic!("{what}: it hangs"));
            let error = read.expect_err(&what).to_string();
            assert!(error.contains(&name), "{what}: {error}");
        }
    }
}
