//! Whether a database may go on writing: not after a failure that leaves unknown what is durable,
//! not in a process that is a fork of the one that opened it, and not once it is closed.
//!
//! A failed sync is told to one of those who sync the same file at that time, and what it was to
//! make durable may never be: a later sync, which has nothing left to do, answers that all is well.
//! So syncs of one file, or of one directory, go through one [`Gate`], one after the other, and
//! after a failure that anyone was told of there is none.

use super::account::Account;
use super::changes::{Change, Changes};
use super::counted::Counted;
use super::handles::Handles;
use super::ledger::{Ledger, Payer};
use super::process::{self, Process};
use super::{DirEntry, Fs, Lock, ReadFile, WriteFile};
use crate::base::error::{Error, Result};
use crate::base::rank;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{Arc, Condvar, Mutex};
use std::path::{Path, PathBuf};

/// What all who write to a database look at first.
#[derive(Debug)]
pub struct Guard {
    dir: PathBuf,
    process: Process,
    set: AtomicBool,
    cause: Mutex<Option<Arc<Error>>, { rank::CAUSE }>,
    changes: Arc<Changes>,
}

impl Guard {
    /// That of what this process writes to `dir`, or to a file of this name.
    pub fn new(dir: &Path) -> Guard {
        Guard {
            dir: dir.to_owned(),
            process: process::process(),
            set: AtomicBool::new(false),
            cause: Mutex::new(None),
            changes: Arc::default(),
        }
    }

    /// Refuses after a failure, and in another process.
    #[inline]
    pub fn check(&self) -> Result<()> {
        self.check_process()?;
        if self.set.load(Ordering::Acquire) { Err(self.poisoned()) } else { Ok(()) }
    }

    /// Refuses in another process than the one that made it.
    #[inline]
    pub fn check_process(&self) -> Result<()> {
        if self.process.is_this() { Ok(()) } else { Err(self.forked()) }
    }

    /// Whether [`Guard::check`] refuses.
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire) || !self.process.is_this()
    }

    /// The process that made it.
    pub fn process(&self) -> Process {
        self.process
    }

    /// Whether this is another process than the one that made it.
    pub fn is_foreign(&self) -> bool {
        !self.process.is_this()
    }

    /// From now on no file of the directory is made, named or removed, whoever is in the middle of
    /// something: when this returns, nobody does so any more.
    pub fn end_changes(&self) {
        self.changes.end();
    }

    #[cold]
    fn forked(&self) -> Error {
        Error::Forked { path: self.dir.clone(), opened_by: self.process.id() }
    }

    #[cold]
    fn poisoned(&self) -> Error {
        let cause = self.cause.lock();
        assert!(cause.is_some(), "what is poisoned has a cause");
        match &*cause {
            Some(cause) => Error::Poisoned(Arc::clone(cause)),
            None => Error::Closed,
        }
    }

    /// Refuses everything from now on, and answers why: because of the first failure.
    #[cold]
    pub fn poison(&self, error: &Error) -> Error {
        let cause = match error {
            Error::Poisoned(cause) => Arc::clone(cause),
            other => Arc::new(other.clone()),
        };
        let first = Arc::clone(self.cause.lock().get_or_insert(cause));
        assert!(!matches!(*first, Error::Poisoned(_)), "a cause is what came first");
        if !self.set.swap(true, Ordering::AcqRel) {
            let path = self.dir.display();
            tracing::error!(%path, cause = %first, "writes are refused from now on");
        }
        Error::Poisoned(first)
    }
}

/// Lets syncs of one thing through one after the other. Who comes while one is under way shares the
/// next one with all others who wait for it.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<Syncs, { rank::SYNCS }>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Syncs {
    started: u64,
    ended: u64,
    /// The last that has synced: one may have been refused before it began.
    done: u64,
}

impl Syncs {
    /// Whether who wants the sync of this number waits: it has not ended, and one is under way. Not
    /// for a later one than that.
    fn hold_up(&self, wanted: u64) -> bool {
        self.ended < wanted && self.started > self.ended
    }
}

impl Gate {
    /// Makes what was written before this call durable: by `sync`, or by that of another who has
    /// begun it since. A failure poisons the guard before anybody else goes on; but one to open
    /// what is synced, for too many open files, is told, and who has waited for it syncs itself.
    /// Answers whether this call did.
    pub fn pass(&self, guard: &Guard, sync: impl FnOnce() -> Result<()>) -> Result<bool> {
        loop {
            guard.check()?;
            let mut state = self.state.lock();
            let wanted = state.started + 1;
            while state.hold_up(wanted) {
                state = self.ended.wait(state);
            }
            let done = state.done >= wanted;
            if state.ended >= wanted {
                drop(state);
                guard.check()?;
                if done {
                    return Ok(false);
                }
                continue;
            }
            guard.check()?;
            assert_eq!(state.started, state.ended, "one sync at a time");
            assert_eq!(state.started + 1, wanted, "nobody has begun it since");
            state.started = wanted;
            drop(state);
            let mut ending = Ending { gate: self, number: wanted, done: false };
            let result = sync();
            ending.done = result.is_ok();
            return result.map(|()| true).inspect_err(|error| {
                if !error.is_of_too_many_files() {
                    drop(guard.poison(error));
                }
            });
        }
    }
}

/// Lets the next one through, also after a panic.
struct Ending<'a> {
    gate: &'a Gate,
    number: u64,
    done: bool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        debug_assert_eq!((state.started, state.ended + 1), (self.number, self.number));
        state.ended = self.number;
        if self.done {
            state.done = self.number;
        }
        drop(state);
        self.gate.ended.notify_all();
    }
}

/// A file system as one database uses it: nothing is changed on it by another process than the one
/// that opened the database, and nothing in the database's directory once that is closed; a failed
/// sync of that directory poisons the guard, and what its files take is counted. Where too many
/// files are open, those that are not in use are closed.
#[derive(Clone)]
pub struct GuardedFs {
    inner: Arc<dyn Fs>,
    dir: PathBuf,
    gate: Arc<Gate>,
    guard: Arc<Guard>,
    ledger: Arc<Ledger>,
    payer: Payer,
    handles: Handles,
}

impl GuardedFs {
    /// The file system for the database in `dir`.
    pub fn new(inner: Arc<dyn Fs>, dir: &Path, guard: Arc<Guard>) -> GuardedFs {
        GuardedFs {
            inner,
            dir: dir.to_owned(),
            gate: Arc::default(),
            guard,
            ledger: Arc::default(),
            payer: Payer::Engine,
            handles: Handles::default(),
        }
    }

    /// The same for files that another pays for.
    pub fn paid_by(&self, payer: Payer) -> GuardedFs {
        GuardedFs { payer, ..self.clone() }
    }

    /// What the database's files take.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Who can close files that are not in use.
    pub fn handles(&self) -> &Handles {
        &self.handles
    }

    /// The way to change the file `path`, or, of another directory, what is there: nobody waits for
    /// a checkpoint.
    fn changing(&self, path: &Path) -> Result<Changing<'_>> {
        // First: in a fork whoever held the mutex is not here.
        self.guard.check_process()?;
        let is_ours = self.counts(path) || path == self.dir;
        let change = is_ours.then(|| self.guard.changes.begin()).transpose()?;
        Ok(Changing { inner: &*self.inner, _change: change })
    }

    /// Whether a file is one of the database's directory.
    fn counts(&self, path: &Path) -> bool {
        path.parent() == Some(&self.dir)
    }

    /// A file with its growth counted, if it is one of the database.
    fn counted(
        &self,
        path: &Path,
        file: Box<dyn WriteFile>,
        account: impl FnOnce(&Arc<Ledger>) -> Account,
    ) -> Box<dyn WriteFile> {
        if !self.counts(path) {
            return file;
        }
        let (account, payer) = (account(&self.ledger), self.payer.clone());
        Box::new(Counted::new(file, account, payer, self.guard.changes.clone()))
    }
}

/// The file system for one change.
struct Changing<'a> {
    inner: &'a (dyn Fs + 'static),
    _change: Option<Change<'a>>,
}

impl std::ops::Deref for Changing<'_> {
    type Target = dyn Fs;

    fn deref(&self) -> &Self::Target {
        self.inner
    }
}

impl Fs for GuardedFs {
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let inner = self.changing(path)?;
        let file = self.handles.open(|| inner.create(path))?;
        Ok(self.counted(path, file, |ledger| Account::created(ledger, path)))
    }

    fn create_log(&self, path: &Path, pace: u64) -> Result<Box<dyn WriteFile>> {
        let inner = self.changing(path)?;
        let file = self.handles.open(|| inner.create_log(path, pace))?;
        Ok(self.counted(path, file, |ledger| Account::created(ledger, path)))
    }

    fn append(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let inner = self.changing(path)?;
        let file = self.handles.open(|| inner.append(path))?;
        let bytes = file.len();
        Ok(self.counted(path, file, |ledger| Account::reopened(ledger, path, bytes)))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.handles.open(|| self.inner.open(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.changing(from)?.rename(from, to)?;
        self.ledger.renamed(from, to);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.changing(path)?.remove(path)?;
        self.ledger.removed(path);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.changing(path)?.remove_dir(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.changing(from)?.link(from, to)
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        self.handles.open(|| self.inner.list(dir))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.changing(path)?.create_dir_all(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let inner = self.changing(dir)?;
        // One that could not be opened was not synced: nothing is lost yet.
        let sync = || self.handles.open(|| inner.sync_dir(dir));
        if dir != self.dir {
            return sync();
        }
        self.gate.pass(&self.guard, sync).map(drop)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        let inner = self.changing(path)?;
        self.handles.open(|| inner.lock(path))
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.inner.lock_shared(path)
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.inner.free_bytes(dir)
    }

    fn allocated_bytes(&self, path: &Path) -> Result<u64> {
        self.inner.allocated_bytes(path)
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        self.inner.absolute(path)
    }

    fn files_open_max(&self) -> Option<u64> {
        self.inner.files_open_max()
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "guard_tests.rs"]
mod tests;
