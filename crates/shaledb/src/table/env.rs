//! What all tables of a database share: disk, cache, memory, counters, and the bounds on how many
//! files are open and how much memory indexes and filters take.
//!
//! Both bounds are kept by a clock: tables that hold the resource stand in a ring, reads mark
//! theirs as used, and the hand takes the resource from the first table that was not used since it
//! last passed.

use super::dictionaries::Dictionaries;
use super::format::Block;
use super::gone::{Gone, GoneFiles};
use super::helpers::{Help, Helpers};
use crate::base::error::Error;
use crate::base::rank;
use crate::base::stats::{Counter, Recorder};
use crate::base::sync::{Mutex, MutexGuard};
use crate::cache::{Cache, Memory};
use crate::fs::Env;
use crate::fs::meter::Meter;
use crate::fs::process::{self, Process};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

/// How many table files are open at once, at most; less where the process may have few files open,
/// of which the database takes this part, but for so many that it can work.
pub const FILES_OPEN_MAX: usize = 512;
const FILES_OPEN_PART: u64 = 4;
const FILES_OPEN_MIN: u64 = 8;
/// Indexes and filters may take this share of the memory, in percent.
const META_PERCENT_MAX: u64 = 40;

/// A table, as the clock's hand sees it: what it holds it can get again.
pub(super) trait Evictable: Send + Sync {
    /// Closes the file unless it was used since the last call; whether it is closed.
    fn close_unused(&self) -> bool;

    /// Drops index and filter unless they were used since the last call; whether they are gone.
    fn unload_unused(&self) -> bool;
}

/// What all tables of a database share.
#[derive(Debug)]
pub struct TableEnv {
    /// Disk and clock.
    pub env: Env,
    /// Decoded data blocks.
    pub cache: Arc<Cache<Block>>,
    /// The arbiter of memory.
    pub memory: Arc<Memory>,
    /// The dictionaries of tables.
    pub dictionaries: Dictionaries,
    /// Where reads are counted.
    pub recorder: Arc<Recorder>,
    /// What measures calls, into `recorder`.
    pub meter: Arc<Meter>,
    /// Where readers offer work to idle threads.
    pub helpers: Helpers,
    wake_helper: OnceLock<Wake>,
    gone: GoneFiles,
    wake_remover: OnceLock<Wake>,
    process: Process,
    files: Mutex<Ring, { rank::OPEN_FILES }>,
    indexes: Mutex<Ring, { rank::INDEXES }>,
    files_open_max: usize,
}

/// What wakes a thread.
struct Wake(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Wake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wake")
    }
}

/// Tables that hold a resource, in the order of the clock's hand.
#[derive(Default)]
struct Ring {
    tables: Vec<Weak<dyn Evictable>>,
    hand: usize,
    /// At this length those that are no more are taken out.
    prune_at: usize,
}

impl TableEnv {
    /// For one database, with `memory_bytes` to divide.
    pub fn new(env: Env, memory_bytes: u64, recorder: Arc<Recorder>) -> Arc<TableEnv> {
        let files = env.fs.files_open_max().map_or(FILES_OPEN_MAX, |files| {
            (files / FILES_OPEN_PART).clamp(FILES_OPEN_MIN, FILES_OPEN_MAX as u64) as usize
        });
        TableEnv::with_files_open_max(env, memory_bytes, recorder, files)
    }

    pub(super) fn with_files_open_max(
        env: Env,
        memory_bytes: u64,
        recorder: Arc<Recorder>,
        files_open_max: usize,
    ) -> Arc<TableEnv> {
        let cache = Arc::new(Cache::new(memory_bytes));
        let memory = Arc::new(Memory::new(memory_bytes, Arc::clone(&cache)));
        let dictionaries = Dictionaries::new(&memory);
        let (files, indexes) = (Mutex::default(), Mutex::default());
        let meter = Arc::new(Meter::new(Arc::clone(&env.clock), Arc::clone(&recorder)));
        Arc::new(TableEnv {
            env,
            cache,
            memory,
            dictionaries,
            recorder,
            meter,
            helpers: Helpers::default(),
            wake_helper: OnceLock::new(),
            gone: GoneFiles::default(),
            wake_remover: OnceLock::new(),
            process: process::process(),
            files,
            indexes,
            files_open_max,
        })
    }

    /// How to wake a thread that is idle and looks at `helpers` then. To be told once.
    pub fn wake_helpers_by(&self, wake: impl Fn() + Send + Sync + 'static) {
        let told = self.wake_helper.set(Wake(Box::new(wake)));
        assert!(told.is_ok(), "one database has these tables");
    }

    /// Whether this is the process that has opened the tables, and not a fork of it.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.process.is_this()
    }

    /// Has an idle thread share this work; whether one was asked. A fork has no such threads.
    pub(super) fn ask_for_help(&self, work: &Arc<impl Help + 'static>) -> bool {
        if !self.is_of_this_process() {
            return false;
        }
        let Some(wake) = self.wake_helper.get() else { return false };
        let asked = self.helpers.offer(work);
        if asked {
            (wake.0)();
        }
        asked
    }

    /// Bytes that indexes and filters may take.
    pub fn meta_bytes_max(&self) -> u64 {
        self.memory.total() / 100 * META_PERCENT_MAX
    }

    /// How many files tables hold open (or held when they were dropped).
    #[cfg(test)]
    pub(super) fn files_open(&self) -> usize {
        self.files.lock().tables.iter().filter(|table| table.strong_count() > 0).count()
    }

    /// How to wake the thread that calls [`TableEnv::remove_one_gone`]. To be told once, before
    /// that thread begins.
    pub fn wake_remover_by(&self, wake: impl Fn() + Send + Sync + 'static) {
        let told = self.wake_remover.set(Wake(Box::new(wake)));
        assert!(told.is_ok(), "one database has these tables");
        self.gone.begin();
    }

    /// Whether the engine's threads are to remove their files at once, since space is limited.
    pub fn hurry_removals(&self, hurries: impl FnOnce() -> bool) {
        self.gone.hurry(hurries);
    }

    /// Sees to one of the files that other threads have left to be removed; whether there was one.
    pub fn remove_one_gone(&self) -> bool {
        self.gone.see_to_one(|gone| self.remove_now(gone))
    }

    /// As [`TableEnv::remove_one_gone`], to all of them that wait now.
    pub fn remove_gone(&self) {
        self.gone.see_to_all(|gone| self.remove_now(gone));
    }

    /// As [`TableEnv::remove_gone`], for the last time: from now on each thread removes its own.
    pub fn remove_last_gone(&self) {
        self.gone.end(|gone| self.remove_now(gone));
    }

    /// Whether a file waits for its removal.
    pub fn has_gone(&self) -> bool {
        self.gone.are_there()
    }

    /// What threads have left.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn take_gone(&self) -> Vec<Gone> {
        self.gone.take()
    }

    /// Has a file removed that nothing refers to any more. A fork leaves it to the process whose
    /// file it is.
    pub(super) fn remove_file(&self, path: PathBuf) {
        if self.is_of_this_process() {
            self.leave(Gone::File(path));
        }
    }

    /// Has what may be the last to hold removed files open dropped by the thread for that, if it is
    /// there.
    pub fn let_go(&self, held: impl Send + 'static) {
        self.leave(Gone::Held(Box::new(held)));
    }

    fn leave(&self, gone: Gone) {
        match self.gone.leave(gone) {
            Some(gone) => self.remove_now(gone),
            None => self.wake_remover.get().into_iter().for_each(|wake| (wake.0)()),
        }
    }

    /// A failure costs space until the next open of the database, which removes such files, and
    /// nothing else.
    fn remove_now(&self, gone: Gone) {
        let path = match gone {
            Gone::Held(held) => return drop(held),
            Gone::File(path) => path,
        };
        match self.env.fs.remove(&path) {
            Ok(()) => self.recorder.add(Counter::FilesRemoved, 1),
            Err(error @ Error::Closed) => tracing::debug!(%error, "left to the next open"),
            Err(error) => tracing::warn!(%error, "an obsolete file could not be removed"),
        }
    }

    /// In a fork whoever had it when that was made is not here: then it is left alone.
    fn ring<'a, const RANK: u8>(&self, of: &'a Mutex<Ring, RANK>) -> Option<MutexGuard<'a, Ring>> {
        if self.is_of_this_process() { Some(of.lock()) } else { of.try_lock() }
    }

    /// Notes that `table` has opened its file; closes others if there are too many.
    pub(super) fn file_opened(&self, table: Weak<dyn Evictable>) {
        // Dropped after the lock is released: a last reference may go with them.
        let mut seen = Vec::new();
        let Some(mut ring) = self.ring(&self.files) else { return };
        ring.push(table);
        while ring.tables.len() > self.files_open_max {
            ring.turn(&mut seen, |table| table.close_unused());
        }
        drop(ring);
    }

    /// Closes half of the files that are open, those first that were not used lately; whether there
    /// were any that are in nobody's hands. For who cannot open another.
    pub fn close_unused_files(&self) -> bool {
        let mut seen = Vec::new();
        let Some(mut ring) = self.ring(&self.files) else { return false };
        // Those that are no more have closed their files.
        ring.tables.retain(|table| table.strong_count() > 0);
        let before = ring.tables.len();
        // Twice around takes from every table that is not in use this very moment.
        let mut turns = 2 * before;
        while ring.tables.len() > before / 2 && turns > 0 {
            ring.turn(&mut seen, |table| table.close_unused());
            turns -= 1;
        }
        let closed = ring.tables.len() < before;
        drop(ring);
        closed
    }

    /// Notes that `table` has loaded its index; empties others if they take too much memory.
    pub(super) fn index_loaded(&self, table: Weak<dyn Evictable>) {
        let mut seen = Vec::new();
        let Some(mut ring) = self.ring(&self.indexes) else { return };
        ring.push(table);
        // Twice around takes from every table that is not in use this very moment.
        let mut turns = 2 * ring.tables.len();
        while self.memory.meta() > self.meta_bytes_max() && turns > 0 && ring.tables.len() > 1 {
            ring.turn(&mut seen, |table| table.unload_unused());
            turns -= 1;
        }
        drop(ring);
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("tables", &self.tables.len()).finish_non_exhaustive()
    }
}

impl Ring {
    fn push(&mut self, table: Weak<dyn Evictable>) {
        if self.tables.len() >= self.prune_at {
            self.tables.retain(|table| table.strong_count() > 0);
            self.prune_at = 2 * self.tables.len() + 64;
        }
        self.tables.push(table);
    }

    /// Moves the hand over one table; `take` says whether the table no longer holds the resource.
    fn turn(
        &mut self,
        seen: &mut Vec<Arc<dyn Evictable>>,
        take: impl FnOnce(&dyn Evictable) -> bool,
    ) {
        if self.hand >= self.tables.len() {
            self.hand = 0;
        }
        let Some(table) = self.tables.get(self.hand) else { return };
        let gone = match table.upgrade() {
            Some(table) => {
                let gone = take(&*table);
                seen.push(table);
                gone
            }
            None => true,
        };
        if gone {
            self.tables.swap_remove(self.hand);
        } else {
            self.hand += 1;
        }
    }
}
