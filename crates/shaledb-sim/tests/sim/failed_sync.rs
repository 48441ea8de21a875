//! A sync that fails while others sync too: the system tells one of them, and what was to be made
//! durable is lost for all. Nobody may take it for durable, and nothing may be built on it.

use crate::Case;
use shaledb::db::OpenOptions;
use shaledb::fs::mem::{Call, CrashMode, Fault, MemFs};
use shaledb::fs::os::OsClock;
use shaledb::{Background, Config, Db, Error, Tree, WriteOptions};
use shaledb_sim::settings::small;
use shaledb_sim::world::{PATH, open_db};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// For how long a call that is held up lets another overtake it. If that one waits for the call, as
/// it should, nothing comes.
const HELD: Duration = Duration::from_millis(300);

/// A database whose background work is done by whoever waits for it.
fn open(fs: &MemFs) -> (Db, Tree, Tree) {
    let env = shaledb::fs::Env { fs: Arc::new(fs.clone()), clock: Arc::new(OsClock::new()) };
    let options = OpenOptions { env, background: Background::Stepped, ..OpenOptions::default() };
    let config = Config { memtable_bytes: 8 << 20, memory_bytes: 64 << 20, ..small() };
    let db = Db::open_in(PATH, config, options).unwrap();
    let (a, b) = (db.tree_or_create("a").unwrap(), db.tree_or_create("b").unwrap());
    (db, a, b)
}

/// Holds up the next sync of a file of this kind, after its work and before its answer. The first
/// channel says when it is there, the second lets it go on.
fn hold_next_sync(fs: &MemFs, extension: &'static str) -> (Receiver<()>, Sender<()>) {
    let (there, wait_there) = channel();
    let (go, wait_go) = channel::<()>();
    let once = Mutex::new(Some((there, wait_go)));
    fs.pause(Some(Arc::new(move |call, path: &Path| {
        if call != Call::Sync || path.extension().is_none_or(|found| found != extension) {
            return;
        }
        let Some((there, go)) = once.lock().unwrap().take() else { return };
        there.send(()).unwrap();
        let _ = go.recv_timeout(HELD);
    })));
    (wait_there, go)
}

/// Runs `held` up to its first sync of such a file, then `other`, then the rest of `held`.
fn overtake<A: Send, B: Send>(
    fs: &MemFs,
    extension: &'static str,
    held: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    let (there, go) = hold_next_sync(fs, extension);
    let results = std::thread::scope(|scope| {
        let held = scope.spawn(held);
        there.recv().unwrap();
        let other = scope.spawn(move || {
            let result = other();
            let _ = go.send(());
            result
        });
        (held.join().unwrap(), other.join().unwrap())
    });
    fs.pause(None);
    results
}

/// The database as it is after the power went.
fn after_crash(fs: &MemFs) -> Db {
    open_db(&fs.crash_clone(1, CrashMode::Lost), PATH, &small()).unwrap()
}

fn has(db: &Db, tree: &str, key: &[u8]) -> bool {
    db.tree(tree).unwrap().contains(key).unwrap()
}

/// A flush's sync of the log is still on its way back when a commit's fails, and is told in its
/// place.
#[test]
fn a_commit_whose_failed_sync_another_is_told_of_is_no_success() {
    let _case = Case::new("commit".to_owned());
    let fs = MemFs::new();
    let (_db, a, b) = open(&fs);
    b.put(b"first", b"").unwrap();
    a.put(b"second", b"").unwrap();
    // After those of the table, and of the log by the flush.
    fs.fail(Call::Sync, 3, Fault::ReportOne, true);
    let ((there, wait_there), (go, wait_go), (done, wait_done)) = (channel(), channel(), channel());
    let first = Mutex::new(Some((there, wait_go)));
    let second = Mutex::new(Some((go, wait_done)));
    fs.pause(Some(Arc::new(move |call, path: &Path| {
        if call != Call::Sync || path.extension().is_none_or(|found| found != "wal") {
            return;
        }
        let ours = first.lock().unwrap().take();
        if let Some((there, go)) = ours {
            there.send(()).unwrap();
            let _: Result<(), _> = go.recv_timeout(HELD);
        } else if let Some((go, done)) = second.lock().unwrap().take() {
            let _ = go.send(());
            let _: Result<(), _> = done.recv_timeout(HELD);
        }
    })));
    let commit = std::thread::scope(|scope| {
        let a = &a;
        scope.spawn(move || {
            let _ = a.flush();
            let _ = done.send(());
        });
        wait_there.recv().unwrap();
        b.put_with(b"synced", b"", WriteOptions::SYNC)
    });
    fs.pause(None);
    assert_eq!(fs.faults_struck(), 1);
    assert!(commit.is_err() || has(&after_crash(&fs), "b", b"synced"), "a commit was lost");
    assert!(matches!(b.put(b"later", b""), Err(Error::Poisoned(_))));
}

/// A commit's sync of the log overtakes a flush's that has failed, and is told in its place.
#[test]
fn a_flush_whose_failed_sync_another_is_told_of_installs_nothing() {
    let _case = Case::new("flush".to_owned());
    let fs = MemFs::new();
    let (_db, a, b) = open(&fs);
    b.put(b"first", b"").unwrap();
    a.put(b"second", b"").unwrap();
    // The first sync is that of the table.
    fs.fail(Call::Sync, 2, Fault::ReportOne, true);
    let commit = || b.put_with(b"synced", b"", WriteOptions::SYNC);
    let (flush, _) = overtake(&fs, "wal", || a.flush(), commit);
    assert_eq!(fs.faults_struck(), 1);
    assert!(flush.is_err(), "the log that the flush relies on is lost");
    let db = after_crash(&fs);
    assert!(!has(&db, "a", b"second") || has(&db, "b", b"first"), "a later commit is there alone");
}

/// A failed sync of the directory takes the name of a table that another is about to make durable.
#[test]
fn names_lost_by_a_failed_sync_of_the_directory_are_not_relied_on() {
    let _case = Case::new("directory".to_owned());
    let fs = MemFs::new();
    let (db, a, b) = open(&fs);
    a.put(b"row", b"").unwrap();
    db.sync().unwrap();
    let large = vec![7; 4 << 20];
    let blob = || {
        fs.fail(Call::SyncDir, 1, Fault::Io, true);
        b.put(b"large", &large)
    };
    let (flush, blob) = overtake(&fs, "table", || a.flush(), blob);
    assert!(blob.is_err() && fs.faults_struck() == 1);
    assert!(has(&after_crash(&fs), "a", b"row"));
    assert!(flush.is_err(), "the name of the table is lost");
    assert!(matches!(a.put(b"later", b""), Err(Error::Poisoned(_))));
}

/// As above, but one after the other: the names wait to be made durable while another fails.
#[test]
fn after_a_failed_sync_of_the_directory_writes_are_refused() {
    let fs = MemFs::new();
    let (db, a, b) = open(&fs);
    fs.fail(Call::SyncDir, 1, Fault::Io, true);
    assert!(b.put(b"large", &vec![7; 4 << 20]).is_err());
    assert!(matches!(a.put(b"later", b""), Err(Error::Poisoned(_))));
    assert!(db.close().is_ok(), "all commits are durable: there were none");
}
