//! The blocks that look-ups of several keys have missed. The system is asked for many at once, so
//! that the device works on them side by side. Then whoever has time reads and decodes them one by
//! one: the reader, and idle background threads beside him. He waits only for a block that another
//! has begun, and only if none is left to begin.

use super::point::{Miss, TableEntry};
use super::reader::Table;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::rank;
use crate::base::sync::{Arc, Condvar, Mutex};
use crate::table::format::Block;
use crate::table::helpers::Help;

/// For how many blocks the system is asked before the first is read, and then in all: their pages
/// must not push each other out.
const ASKED_MAX: usize = 256;
/// One more thread is asked for help for each so many blocks. Waking one costs as much as decoding
/// one block, or two.
const BLOCKS_PER_HELPER: usize = 16;

/// Blocks that look-ups have missed so far.
#[derive(Debug, Default)]
pub struct Misses(Vec<(Arc<Table>, Miss)>);

impl Misses {
    /// Adds the block, unless the last one is the same, and asks the system for it if it is not the
    /// only one; answers with its number.
    pub fn add(&mut self, table: &Arc<Table>, miss: Miss) -> usize {
        if self.0.last().is_none_or(|(_, last)| !last.is(&miss)) {
            self.0.push((Arc::clone(table), miss));
            let asked = match self.0.len() {
                1 => &[],
                2 => &self.0[..],
                more if more <= ASKED_MAX => &self.0[more - 1..],
                _ => &[],
            };
            asked.iter().for_each(|(table, miss)| table.prefetch_missed(miss));
        }
        self.0.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Blocks to be read, each once, and what was read of them.
pub struct Missed {
    blocks: Vec<(Arc<Table>, Miss)>,
    state: Mutex<State, { rank::MISSED }>,
    /// A block has been read, or is to be read by another.
    changed: Condvar,
}

struct State {
    read: Vec<Progress>,
    /// The first block that nobody has begun.
    next: usize,
    /// How many have been begun and not been read.
    begun: usize,
    /// One could not be read: no other is begun.
    failed: Option<Error>,
}

enum Progress {
    /// Nobody reads it yet, or whoever did has panicked.
    Left,
    /// Somebody reads it.
    Begun,
    Read(Arc<Block>),
}

impl std::fmt::Debug for Missed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Missed").field("blocks", &self.blocks.len()).finish_non_exhaustive()
    }
}

impl Missed {
    /// Of all that were missed.
    pub fn new(Misses(blocks): Misses) -> Arc<Missed> {
        let read = blocks.iter().map(|_| Progress::Left).collect();
        let state = State { read, next: 0, begun: 0, failed: None };
        Arc::new(Missed { blocks, state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Reads all, also into the cache.
    pub fn read(self: &Arc<Self>) -> Result<Vec<Arc<Block>>> {
        if let [(table, miss)] = &self.blocks[..] {
            return Ok(vec![table.read_missed(miss)?]);
        }
        if let Some((table, _)) = self.blocks.first() {
            let helpers = self.blocks.len() / BLOCKS_PER_HELPER;
            (0..helpers).take_while(|_| table.shared().ask_for_help(self)).for_each(drop);
        }
        let mut state = self.state.lock();
        loop {
            if let Some(at) = state.begin() {
                drop(state);
                self.make(at);
                state = self.state.lock();
            } else if state.begun > 0 {
                state = self.changed.wait(state);
            } else {
                break;
            }
        }
        // Nothing is left for who comes late to help.
        state.next = self.blocks.len();
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        let read = std::mem::take(&mut state.read).into_iter().map(|progress| match progress {
            Progress::Read(block) => block,
            _ => unreachable!("it ends when all are read"),
        });
        Ok(read.collect())
    }

    /// Goes on with a look-up that has missed block number `at`.
    pub fn find(
        &self,
        at: usize,
        block: &Arc<Block>,
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<TableEntry>> {
        let (table, miss) = &self.blocks[at];
        table.get_from(miss, block, key, seq)
    }

    fn make(&self, at: usize) {
        // After a panic on the way the reader reads it himself, and does not wait for ever.
        let mut begun = Begun { missed: self, at: Some(at) };
        if let Some((table, miss)) = self.blocks.get(at + ASKED_MAX) {
            table.prefetch_missed(miss);
        }
        let (table, miss) = &self.blocks[at];
        let read = table.read_missed(miss);
        begun.at = None;
        self.set(at, read.map(Progress::Read));
    }

    fn set(&self, at: usize, progress: Result<Progress>) {
        let mut state = self.state.lock();
        assert!(matches!(state.read[at], Progress::Begun), "a block is read once");
        state.begun -= 1;
        match progress {
            Ok(progress) => {
                if matches!(progress, Progress::Left) {
                    state.next = state.next.min(at);
                }
                state.read[at] = progress;
            }
            Err(error) => {
                state.read[at] = Progress::Left;
                state.failed.get_or_insert(error);
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl State {
    /// A block that the caller is to read.
    fn begin(&mut self) -> Option<usize> {
        if self.failed.is_some() {
            return None;
        }
        let rest = self.read.iter().skip(self.next);
        let ahead = rest.take_while(|progress| !matches!(progress, Progress::Left)).count();
        let at = self.next + ahead;
        self.next = at;
        *self.read.get_mut(at)? = Progress::Begun;
        self.begun += 1;
        Some(at)
    }
}

/// A block that would never be read if its reader panicked.
struct Begun<'a> {
    missed: &'a Missed,
    at: Option<usize>,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if let Some(at) = self.at {
            self.missed.set(at, Ok(Progress::Left));
        }
    }
}

impl Help for Missed {
    fn help(&self) -> bool {
        let Some(at) = self.state.lock().begin() else { return false };
        self.make(at);
        true
    }

    fn leave(&self) {}
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "missed_tests.rs"]
mod tests;

#[cfg(all(test, feature = "shuttle"))]
#[path = "missed_shuttle_tests.rs"]
mod shuttle_tests;
