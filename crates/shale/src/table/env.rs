//! What all tables of a database share: disk, cache, memory, counters, and the bounds on how many
//! files are open and how much memory indexes and filters take.
//!
//! Both bounds are kept by a clock: tables that hold the resource stand in a ring, reads mark
//! theirs as used, and the hand takes the resource from the first table that was not used since it
//! last passed.

use super::block::Block;
use super::images::Images;
use super::reader::Table;
use crate::base::stats::Recorder;
use crate::base::sync::Mutex;
use crate::cache::{Cache, Memory};
use crate::fs::Env;
use std::sync::{Arc, Weak};

/// How many table files are open at once, at most.
pub const FILES_OPEN_MAX: usize = 512;
/// Indexes and filters may take this share of the memory, in percent.
const META_PERCENT_MAX: u64 = 40;

/// What all tables of a database share.
#[derive(Debug)]
pub struct TableEnv {
    /// Disk and clock.
    pub env: Env,
    /// Decoded data blocks.
    pub cache: Arc<Cache<Block>>,
    /// The memory of the blocks in it.
    pub images: Arc<Images>,
    /// The arbiter of memory.
    pub memory: Arc<Memory>,
    /// Where reads are counted.
    pub recorder: Arc<Recorder>,
    files: Mutex<Ring>,
    indexes: Mutex<Ring>,
    files_open_max: usize,
}

/// Tables that hold a resource, in the order of the clock's hand.
#[derive(Debug, Default)]
struct Ring {
    tables: Vec<Weak<Table>>,
    hand: usize,
    /// At this length those that are no more are taken out.
    prune_at: usize,
}

impl TableEnv {
    /// For one database, with `memory_bytes` to divide.
    pub fn new(env: Env, memory_bytes: u64, recorder: Arc<Recorder>) -> Arc<TableEnv> {
        TableEnv::with_files_open_max(env, memory_bytes, recorder, FILES_OPEN_MAX)
    }

    pub(super) fn with_files_open_max(
        env: Env,
        memory_bytes: u64,
        recorder: Arc<Recorder>,
        files_open_max: usize,
    ) -> Arc<TableEnv> {
        let cache = Arc::new(Cache::new(memory_bytes));
        let memory = Arc::new(Memory::new(memory_bytes, Arc::clone(&cache)));
        let images = Images::new(memory_bytes);
        let (files, indexes) = (Mutex::default(), Mutex::default());
        Arc::new(TableEnv { env, cache, images, memory, recorder, files, indexes, files_open_max })
    }

    /// Bytes that indexes and filters may take.
    pub fn meta_bytes_max(&self) -> u64 {
        self.memory.total() / 100 * META_PERCENT_MAX
    }

    /// How many files tables hold open (or held when they were dropped).
    pub fn files_open(&self) -> usize {
        self.files.lock().tables.iter().filter(|table| table.strong_count() > 0).count()
    }

    /// Notes that `table` has opened its file; closes others if there are too many.
    pub(super) fn file_opened(&self, table: &Weak<Table>) {
        // Dropped after the lock is released: a last reference may go with them.
        let mut seen = Vec::new();
        let mut ring = self.files.lock();
        ring.push(table);
        while ring.tables.len() > self.files_open_max {
            ring.turn(&mut seen, Table::close_unused);
        }
        drop(ring);
    }

    /// Notes that `table` has loaded its index; empties others if they take too much memory.
    pub(super) fn index_loaded(&self, table: &Weak<Table>) {
        let mut seen = Vec::new();
        let mut ring = self.indexes.lock();
        ring.push(table);
        // Twice around takes from every table that is not in use this very moment.
        let mut turns = 2 * ring.tables.len();
        while self.memory.meta() > self.meta_bytes_max() && turns > 0 && ring.tables.len() > 1 {
            ring.turn(&mut seen, Table::unload_unused);
            turns -= 1;
        }
        drop(ring);
    }
}

impl Ring {
    fn push(&mut self, table: &Weak<Table>) {
        if self.tables.len() >= self.prune_at {
            self.tables.retain(|table| table.strong_count() > 0);
            self.prune_at = 2 * self.tables.len() + 64;
        }
        self.tables.push(Weak::clone(table));
    }

    /// Moves the hand over one table; `take` says whether the table no longer holds the resource.
    fn turn(&mut self, seen: &mut Vec<Arc<Table>>, take: impl FnOnce(&Table) -> bool) {
        if self.hand >= self.tables.len() {
            self.hand = 0;
        }
        let Some(table) = self.tables.get(self.hand) else { return };
        let gone = match table.upgrade() {
            Some(table) => {
                let gone = take(&table);
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
