//! What threads leave to the one that removes files, and what comes of their panics.

use crate::base::config::{Config, SyncPolicy};
use crate::base::error::Error;
use crate::db::{Background, Db, OpenOptions};
use crate::fs::mem::{MemClock, MemFs};
use crate::fs::{Clock, Env, Fs};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

thread_local! {
    /// How many more threads the system starts for the calling one.
    static STARTED_MOST: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Starts a thread, or fails as the system does that has too many.
pub(super) fn spawn_thread(
    name: String,
    run: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let left = STARTED_MOST.get();
    if left == 0 {
        return Err(std::io::ErrorKind::WouldBlock.into());
    }
    STARTED_MOST.set(left - 1);
    Builder::new().name(name).spawn(run)
}

/// Those that were started before would hold the database's lock until the process ends.
#[test]
fn an_open_for_which_there_are_too_few_threads_leaves_nothing_behind() {
    let fs = Arc::new(MemFs::new());
    let open = |most: usize| {
        STARTED_MOST.set(most);
        let env = Env { fs: fs.clone(), clock: Arc::new(MemClock::new()) };
        let options = OpenOptions { env, background: Background::Threads, read_only: false };
        let opened =
            Db::open_in("/db", Config { background_threads: 2, ..Config::default() }, options);
        STARTED_MOST.set(usize::MAX);
        opened
    };
    for most in 0..4 {
        let refused = open(most);
        assert!(matches!(refused, Err(Error::Io { .. })), "{most} threads: {refused:?}");
    }
    let db = open(4).unwrap();
    db.tree_or_create("t").unwrap().put(b"a", b"1").unwrap();
    db.close().unwrap();
}

#[test]
fn files_that_a_scan_was_the_last_to_hold_are_gone_when_the_database_is_closed() {
    let fs = Arc::new(MemFs::new());
    let env = Env { fs: fs.clone(), clock: Arc::new(MemClock::new()) };
    let options = OpenOptions { env, background: Background::Threads, read_only: false };
    let db = Db::open_in("/db", Config::default(), options).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    for round in 0..3u8 {
        (0..1000u32).for_each(|number| tree.put(&number.to_be_bytes(), &[round; 8]).unwrap());
        db.flush().unwrap();
    }
    let scan = tree.scan::<&[u8]>(..).unwrap();
    tree.compact().unwrap();
    let tables = || {
        let is_table = |path: &Path| path.extension().is_some_and(|ending| ending == "table");
        let files = fs.list(Path::new("/db")).unwrap();
        files.iter().filter(|file| is_table(Path::new(&file.name))).count()
    };
    let held = tables();
    assert!(held > 1, "the scan holds {held}");
    drop(scan);
    (0..1000u32).for_each(|number| tree.put(&number.to_be_bytes(), &[9; 8]).unwrap());
    tree.compact().unwrap();
    assert_eq!(tables(), 1, "whoever has waited for a merge finds its inputs gone");
    (0..1000u32).for_each(|number| tree.put(&number.to_be_bytes(), &[10; 8]).unwrap());
    db.wait_idle().unwrap();
    let scan = tree.scan::<&[u8]>(..).unwrap();
    tree.compact().unwrap();
    drop(scan);
    db.close().unwrap();
    assert_eq!(tables(), 1);
}

/// A clock at which the threads of a kind panic.
struct Trap {
    clock: MemClock,
    kind: &'static str,
    is_set: AtomicBool,
}

impl Clock for Trap {
    fn now_nanos(&self) -> u64 {
        let thread = std::thread::current();
        let is_meant = thread.name().is_some_and(|name| name.starts_with(self.kind));
        assert!(!(is_meant && self.is_set.load(Ordering::Relaxed)), "a panic that a test asks for");
        self.clock.now_nanos()
    }

    fn thread_cpu_nanos(&self) -> u64 {
        self.clock.thread_cpu_nanos()
    }

    fn sleep_nanos(&self, nanos: u64) {
        self.clock.sleep_nanos(nanos);
    }
}

/// Not in the middle of a job, but while the next one is chosen or its time is waited for: whoever
/// waits for what such a thread is to do learns that it will not be done.
#[test]
fn a_panic_of_any_thread_keeps_nobody_waiting() {
    for kind in ["shale-work", "shale-sync"] {
        let clock = Arc::new(Trap { clock: MemClock::new(), kind, is_set: AtomicBool::new(false) });
        let env = Env { fs: Arc::new(MemFs::new()), clock: clock.clone() };
        let options = OpenOptions { env, background: Background::Threads, read_only: false };
        let sync = SyncPolicy::EveryMillis(1);
        let config = Config { background_threads: 1, sync, ..Config::default() };
        let db = Db::open_in("/db", config, options).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        tree.put(b"k", b"v").unwrap();
        clock.is_set.store(true, Ordering::Relaxed);
        let has_ended = || {
            let threads = db.handle.threads.lock();
            let of_kind = |thread: &&JoinHandle<()>| {
                thread.thread().name().is_some_and(|name| name.starts_with(kind))
            };
            threads.handles.iter().find(of_kind).is_some_and(JoinHandle::is_finished)
        };
        while !has_ended() {
            db.core().sched.wake_all();
            std::thread::yield_now();
        }
        assert!(db.core().is_poisoned(), "{kind}");
        assert!(matches!(db.flush(), Err(Error::Poisoned(_))));
        assert!(matches!(tree.put(b"k", b"w"), Err(Error::Poisoned(_))));
        assert_eq!(tree.get(b"k").unwrap().unwrap(), b"v");
    }
}
