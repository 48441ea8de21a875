//! Followers and readers of databases that cannot be written, with real files and real processes.
//! The other process is this program again, told by its environment what to do.

use shaledb::repair::{RepairOptions, repair};
use shaledb::{Batch, Codec, Codecs, Concurrency, Config, Db, Error, Isolation, LockMode};
use shaledb::{
    ScanOptions, Transaction, TransactionOptions, Tree, TreeConfig, Value, WriteOptions,
};
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The directory that the other process works in.
const DIR: &str = "SHALE_FOLLOWER_TEST_DIR";

/// An account without rights, that every system has.
const NOBODY: u32 = 65_534;

fn small() -> Config {
    Config {
        memory_bytes: 64 << 20,
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        tree: TreeConfig {
            codecs: Codecs::all(Codec::Lz4),
            blob_bytes: 4096,
            ..TreeConfig::default()
        },
        ..Config::default()
    }
}

/// This program, to run the test of this name, which does nothing otherwise.
fn again(test: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(DIR, dir);
    command
}

fn told() -> Option<PathBuf> {
    std::env::var_os(DIR).map(PathBuf::from)
}

fn number(tree: &Tree) -> u64 {
    let value = tree.get(b"round").unwrap();
    value.map_or(0, |value| u64::from_le_bytes(value[..].try_into().unwrap()))
}

/// How many rounds the writer makes at most, and the follower sees at least.
const ROUNDS: u64 = 1_000_000;
const SEEN: u64 = 60;

/// Writes rounds: all that is written in a round says its number, in both trees.
#[test]
fn writer() {
    let Some(dir) = told() else { return };
    let db = Db::open(&dir, small()).unwrap();
    let (a, b) = (db.tree_or_create("a").unwrap(), db.tree_or_create("b").unwrap());
    for round in 1..=ROUNDS {
        // The parent ends it when it has seen enough.
        if fs::exists(dir.with_extension("stop")).unwrap() {
            break;
        }
        let text = round.to_le_bytes();
        let mut batch = shaledb::Batch::new();
        for row in 0..50u64 {
            batch.put(&a, &[b"row", &row.to_be_bytes()[..]].concat(), &text.repeat(20));
        }
        batch.delete_range(&a, b"row", b"rox");
        for row in 0..20 + round % 30 {
            batch.put(&a, &[b"row", &row.to_be_bytes()[..]].concat(), &text.repeat(20));
        }
        batch.put(&b, b"large", &text.repeat(1_000));
        batch.put(&a, b"round", &text);
        batch.put(&b, b"round", &text);
        db.write(&batch, WriteOptions { sync: round % 16 == 0 }).unwrap();
        match round % 40 {
            7 => drop(db.tree_or_create("now and then").unwrap()),
            20 => {
                let mut load = db.tree("now and then").unwrap().ingest().unwrap();
                load.add(b"round", &text).unwrap();
                load.finish().unwrap();
            }
            30 => db.drop_tree("now and then").unwrap(),
            35 => db.compact().unwrap(),
            _ => {}
        }
    }
    drop((a, b));
    db.close().unwrap();
}

struct Writer(Child, PathBuf);

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = fs::remove_file(self.1.with_extension("stop"));
    }
}

#[test]
fn a_follower_beside_a_writer_sees_whole_commits_in_order() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("db");
    drop(Db::open(&dir, small()).unwrap());
    let child = again("writer", &dir).stdout(Stdio::null()).spawn().unwrap();
    let mut writer = Writer(child, dir.clone());
    let follower = Db::open_follower(&dir, small()).unwrap();
    let (mut seen, mut last, mut last_seq) = (0, 0, 0);
    let mut old: Option<(shaledb::Snapshot, u64)> = None;
    while seen < SEEN {
        assert!(writer.0.try_wait().unwrap().is_none(), "the writer has ended");
        let seq = follower.refresh().unwrap();
        assert!(seq >= last_seq, "from {last_seq} back to {seq}");
        last_seq = seq;
        let (Ok(a), Ok(b)) = (follower.tree("a"), follower.tree("b")) else { continue };
        let round = number(&a);
        assert_eq!(number(&b), round, "half a commit");
        assert!(round >= last, "from round {last} back to {round}");
        if round == last {
            continue;
        }
        (seen, last) = (seen + 1, round);
        let rows: Vec<_> = a.scan_prefix(b"row").unwrap().map(|row| row.unwrap().1).collect();
        assert_eq!(rows.len() as u64, 20 + round % 30);
        assert!(rows.iter().all(|value| *value == round.to_le_bytes().repeat(20)));
        assert!(b.get(b"large").unwrap().unwrap() == round.to_le_bytes().repeat(1_000)[..]);
        if let Ok(other) = follower.tree("now and then") {
            assert!(number(&other) <= round && (7..=30).contains(&(round % 40)));
        }
        if let Some((snapshot, round)) = old.take_if(|_| seen % 7 == 0) {
            let then = a.get_at(b"round", &snapshot).unwrap().unwrap();
            assert_eq!(then, round.to_le_bytes());
            let large = b.get_at(b"large", &snapshot).unwrap().unwrap();
            assert!(large == round.to_le_bytes().repeat(1_000)[..], "its blob is kept");
        }
        old.get_or_insert_with(|| (follower.snapshot(), round));
        if seen % 20 == 0 {
            let report = follower.verify(&mut |_| ()).unwrap();
            assert!(report.damage.is_empty(), "{:?}", report.damage);
        }
    }
    fs::write(dir.with_extension("stop"), b"").unwrap();
    assert!(writer.0.wait().unwrap().success());
    drop(writer);
    // Nobody was disturbed, and all is seen when the writer has gone.
    follower.refresh().unwrap();
    let db = Db::open(&dir, small()).unwrap();
    assert_eq!(number(&db.tree("a").unwrap()), number(&follower.tree("a").unwrap()));
}

#[test]
fn a_writer_that_is_killed_and_followed_by_another() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("db");
    drop(Db::open(&dir, small()).unwrap());
    let follower = Db::open_follower(&dir, small()).unwrap();
    let mut last = 0;
    for _ in 0..3 {
        let child = again("writer", &dir).stdout(Stdio::null()).spawn().unwrap();
        let writer = Writer(child, dir.clone());
        // Each begins its rounds anew, so wait for what this one has written.
        let before = last;
        loop {
            last = follower.refresh().unwrap();
            if last > before + 2_000 {
                break;
            }
        }
        drop(writer);
        let killed = follower.refresh().unwrap();
        let db = Db::open(&dir, small()).unwrap();
        let (a, b) = (db.tree("a").unwrap(), db.tree("b").unwrap());
        assert_eq!(number(&a), number(&b));
        assert_eq!(number(&follower.tree("a").unwrap()), number(&a), "what was seen is there");
        drop((a, b));
        db.close().unwrap();
        last = follower.refresh().unwrap();
        assert!(last >= killed);
    }
}

/// What somebody without rights can do with a database, and cannot.
#[test]
fn somebody_without_rights() {
    let Some(dir) = told() else { return };
    let with_lock = fs::exists(dir.join("LOCK")).unwrap();
    assert!(fs::write(dir.join("mine"), b"").is_err(), "it can be written to");
    assert!(matches!(Db::open(&dir, small()), Err(Error::Io { .. })));
    let db = Db::open_read_only(&dir, small()).unwrap();
    let tree = db.tree("t").unwrap();
    assert_eq!(tree.get(b"in a table").unwrap().unwrap(), b"1");
    assert_eq!(tree.get(b"in the log").unwrap().unwrap(), b"2");
    assert_eq!(tree.scan::<&[u8]>(..).unwrap().count(), 3);
    assert_eq!(tree.get(b"large").unwrap().unwrap().len(), 10_000);
    let report = db.verify(&mut |_| ()).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    assert!(db.stats().to_string().contains("1 blob files"), "{}", db.stats());
    assert!(Db::open_read_only(&dir, small()).is_ok(), "a second reader");
    assert!(shaledb::inspect::directory(&dir).is_ok());
    let follower = Db::open_follower(&dir, small()).unwrap();
    assert!(follower.tree("t").unwrap().contains(b"in the log").unwrap());
    let to = tempfile::tempdir().unwrap();
    let options = RepairOptions::default();
    let report = repair(&dir, &to.path().join("saved"), &options, &mut |_| ()).unwrap();
    assert!(report.is_clean(), "{report}");
    println!("all is read, with a lock file: {with_lock}");
}

#[test]
fn a_directory_that_cannot_be_written_is_read() {
    let parent = tempfile::tempdir().unwrap();
    // Somebody else must come to it.
    fs::set_permissions(parent.path(), Permissions::from_mode(0o755)).unwrap();
    let program = parent.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for with_lock in [true, false] {
        let dir = parent.path().join(format!("db-{with_lock}"));
        let db = Db::open(&dir, small()).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        tree.put(b"in a table", b"1").unwrap();
        db.flush().unwrap();
        tree.put(b"in the log", b"2").unwrap();
        tree.put(b"large", &[7; 10_000]).unwrap();
        drop(tree);
        db.close().unwrap();
        if !with_lock {
            fs::remove_file(dir.join("LOCK")).unwrap();
        }
        let mut before = Vec::new();
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
            before.push((path.clone(), fs::read(&path).unwrap()));
        }
        fs::set_permissions(&dir, Permissions::from_mode(0o555)).unwrap();
        let mut command = Command::new(&program);
        command.args(["--exact", "somebody_without_rights", "--nocapture"]).env(DIR, &dir);
        // Rights do not bind root; whoever cannot become somebody else has no such rights.
        let is_root = fs::metadata("/proc/self").is_ok_and(|meta| {
            use std::os::unix::fs::MetadataExt;
            meta.uid() == 0
        });
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let wrong = String::from_utf8_lossy(&output.stderr);
        fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        assert!(output.status.success(), "{text}\n{wrong}");
        assert!(text.contains(&format!("with a lock file: {with_lock}")), "{text}");
        let files = fs::read_dir(&dir).unwrap().count();
        assert_eq!(files, before.len(), "a file has come or gone");
        for (path, content) in before {
            assert!(fs::read(&path).unwrap() == content, "{} has changed", path.display());
        }
    }
}

#[test]
fn a_reader_keeps_writers_away_and_readers_not() {
    let dir = tempfile::tempdir().unwrap();
    drop(Db::open(dir.path(), small()).unwrap());
    let one = Db::open_read_only(dir.path(), small()).unwrap();
    let other = Db::open_read_only(dir.path(), small()).unwrap();
    assert!(matches!(Db::open(dir.path(), small()), Err(Error::Locked { .. })));
    drop((one, other));
    let db = Db::open(dir.path(), small()).unwrap();
    assert!(matches!(Db::open_read_only(dir.path(), small()), Err(Error::Locked { .. })));
    drop(db);
}

#[test]
fn a_follower_takes_no_more_memory_than_it_may() {
    let dir = tempfile::tempdir().unwrap();
    let large = Config { memory_bytes: 256 << 20, memtable_bytes: 32 << 20, ..small() };
    let db = Db::open(dir.path(), large).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let follower = Db::open_follower(dir.path(), Config { memory_bytes: 8 << 20, ..small() });
    let follower = follower.unwrap();
    for n in 0..9_000u32 {
        tree.put(&n.to_be_bytes(), &[7; 1000]).unwrap();
    }
    let error = follower.refresh().unwrap_err();
    assert!(error.to_string().contains("memory_bytes"), "{error}");
    assert_eq!(follower.tree("t").unwrap().scan::<&[u8]>(..).unwrap().count(), 0, "as before");
    db.flush().unwrap();
    follower.refresh().unwrap();
    assert_eq!(follower.tree("t").unwrap().scan::<&[u8]>(..).unwrap().count(), 9_000);
}

/// As much as a log takes before its writer goes through memory mapped ahead, some times over.
fn long_log() -> Config {
    Config { memtable_bytes: 16 << 20, ..small() }
}

/// Writes small commits without a sync, as fast as it can; before each tells how many are done.
#[test]
fn fast_writer() {
    let Some(dir) = told() else { return };
    let db = Db::open(&dir, long_log()).unwrap();
    let tree = db.tree_or_create("a").unwrap();
    let done = fs::File::create(dir.with_extension("done")).unwrap();
    for round in 1..=ROUNDS {
        let text = round.to_le_bytes();
        let mut batch = shaledb::Batch::new();
        batch.put(&tree, &(round % 1_000).to_be_bytes(), &text.repeat(50));
        batch.put(&tree, b"round", &text);
        db.write(&batch, WriteOptions { sync: false }).unwrap();
        done.write_all_at(&text, 0).unwrap();
    }
}

/// Of a process that is killed nothing is lost that it was told of: also what it wrote through
/// memory. And who follows it takes the zeros ahead of it for the end of the log.
#[test]
fn a_fast_writer_is_followed_and_leaves_all_when_it_is_killed() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("db");
    drop(Db::open(&dir, long_log()).unwrap());
    let child = again("fast_writer", &dir).stdout(Stdio::null()).spawn().unwrap();
    let mut writer = Writer(child, dir.clone());
    let follower = Db::open_follower(&dir, long_log()).unwrap();
    let logs = |dir: &Path| {
        let mut lengths = Vec::new();
        for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
            if entry.file_name().to_string_lossy().ends_with(".wal") {
                lengths.extend(entry.metadata().map(|meta| meta.len()));
            }
        }
        lengths
    };
    // Not on each file system.
    let log = shaledb::Env::os().fs.create_log(&parent.path().join("log"), 0).unwrap();
    let wanted = if log.preparer().is_some() { 5 } else { 0 };
    let (mut last, mut seen, mut ahead) = (0, 0, 0);
    while seen < SEEN || ahead < wanted {
        assert!(writer.0.try_wait().unwrap().is_none(), "the writer has ended");
        ahead += u64::from(logs(&dir).iter().any(|bytes| *bytes > 0 && bytes % 65_536 == 0));
        follower.refresh().unwrap();
        let Ok(tree) = follower.tree("a") else { continue };
        let round = number(&tree);
        assert!(round >= last, "from round {last} back to {round}");
        let key = (round % 1_000).to_be_bytes();
        let row = tree.get(&key).unwrap();
        assert!(round == 0 || row.unwrap() == round.to_le_bytes().repeat(50)[..], "half a commit");
        seen += u64::from(round > last);
        last = round;
    }
    writer.0.kill().unwrap();
    writer.0.wait().unwrap();
    let done = fs::read(dir.with_extension("done")).unwrap();
    let done = u64::from_le_bytes(done[..].try_into().unwrap());
    follower.refresh().unwrap();
    assert!(number(&follower.tree("a").unwrap()) >= done);
    drop(follower);
    let db = Db::open(&dir, long_log()).unwrap();
    let round = number(&db.tree("a").unwrap());
    assert!((done..=done + 1).contains(&round), "round {round} of {done}");
    db.close().unwrap();
}

/// A transaction on a follower sees one state in all trees, whatever refreshes come meanwhile; but
/// at read committed each read sees the newest.
#[test]
fn a_transaction_on_a_follower_sees_one_state() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), small()).unwrap();
    let trees = ["a", "b"].map(|name| db.tree_or_create(name).unwrap());
    let write = |round: u64| {
        let mut batch = Batch::new();
        for tree in &trees {
            batch.put(tree, b"round", &round.to_le_bytes());
        }
        db.write(&batch, WriteOptions::default()).unwrap();
    };
    write(0);
    trees[0].put(b"same", b"").unwrap();
    let follower = Db::open_follower(dir.path(), small()).unwrap();
    let [a, b] = ["a", "b"].map(|name| follower.tree(name).unwrap());
    let seen = |value: Option<Value>| u64::from_le_bytes(value.unwrap()[..].try_into().unwrap());
    let mut round = 0;
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]
    {
        for concurrency in [Concurrency::Pessimistic, Concurrency::Optimistic] {
            let options = TransactionOptions { isolation, concurrency, ..Default::default() };
            let what = format!("{isolation:?} {concurrency:?}");
            let mut txn = follower.begin(options).unwrap();
            assert_eq!(seen(txn.get(&a, b"round").unwrap()), round, "{what}");
            write(round + 1);
            // What is in tables takes another way than what is in memory.
            if round % 2 == 1 {
                db.flush().unwrap();
            }
            follower.refresh().unwrap();
            let then = round + u64::from(isolation == Isolation::ReadCommitted);
            round += 1;
            assert_eq!(number(&a), round, "{what}");
            for tree in [&a, &b] {
                assert_eq!(seen(txn.get(tree, b"round").unwrap()), then, "{what}");
                let many = txn.multi_get(tree, &["round"]).unwrap().remove(0);
                assert_eq!(seen(many), then, "{what}");
            }
            let rows = txn.scan(&b, ScanOptions::default()).unwrap();
            let rows: Vec<_> = rows.map(|row| row.unwrap().1).collect();
            assert_eq!(rows, [then.to_le_bytes()], "{what}");
            let changed = isolation != Isolation::ReadCommitted;
            assert_eq!(txn.changed_since_snapshot(&b, b"round").unwrap(), changed, "{what}");
            assert!(!txn.changed_since_snapshot(&a, b"same").unwrap(), "{what}");
            check_locking_reads(&mut txn, [&a, &b], then, round, options);
        }
    }
}

/// What locking reads of a transaction see whose plain reads see the round `then`.
fn check_locking_reads(
    txn: &mut Transaction,
    [a, b]: [&Tree; 2],
    then: u64,
    newest: u64,
    options: TransactionOptions,
) {
    let what = format!("{options:?}");
    let is_repeatable = options.isolation == Isolation::RepeatableRead;
    let is_pessimistic = options.concurrency == Concurrency::Pessimistic;
    let shown = match (options.isolation, options.concurrency) {
        (Isolation::Serializable, _) => then,
        // Of the moment at which it began.
        (_, Concurrency::Optimistic) => newest - 1,
        _ => newest,
    };
    let shared = txn.get_for_share(b, b"round").unwrap().unwrap();
    assert_eq!(shared[..], shown.to_le_bytes(), "{what}");
    let found = txn.get_for_update(a, b"round");
    match is_repeatable && is_pessimistic {
        true => assert!(matches!(found, Err(Error::Conflict { .. })), "{what}"),
        false => assert_eq!(found.unwrap().unwrap()[..], shown.to_le_bytes(), "{what}"),
    }
    let mut rows = txn.scan_locking(b, ScanOptions::default(), LockMode::Shared).unwrap();
    assert!(rows.next(txn).unwrap(), "{what}");
    assert_eq!(rows.value(), shown.to_le_bytes(), "{what}");
    assert!(!rows.next(txn).unwrap(), "{what}");
    let rows = txn.scan_newest(b, ScanOptions::default()).unwrap();
    assert!(rows.map(|row| row.unwrap().1).eq([shown.to_le_bytes()]), "{what}");
}
