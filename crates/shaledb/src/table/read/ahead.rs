//! Blocks of a long forward scan, read and decoded in batches before the scan is there. An idle
//! background thread does so beside the reader. Where none is idle, or it is not fast enough, the
//! reader makes the next batch himself: he waits only for the batch that he wants, and only if
//! there is no other to make meanwhile.

use super::reader::{Table, TableIndex};
use crate::base::activity::Activity;
use crate::base::error::{Error, Result};
use crate::base::rank;
use crate::base::stats::Counter;
use crate::base::sync::{Arc, Condvar, Mutex, MutexGuard};
use crate::cache::CacheKey;
use crate::table::format::{Block, BlockInfo};
use crate::table::helpers::Help;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// How many batches are made before the reader is there, once he has read as many.
const BATCHES_AHEAD: usize = 8;
/// How long a helper waits for the reader to come closer before it leaves.
const PATIENCE: Duration = Duration::from_millis(1);
/// The most memory that a thread keeps for reading batches.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

thread_local! {
    /// The file bytes of the batch that the thread makes.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Blocks in the order of the file.
type Blocks = Vec<Arc<Block>>;

/// What has become of a batch: its blocks, or those before the one that could not be read.
type Made = (Blocks, Option<Error>);

/// What is read ahead of one cursor.
pub(super) struct Ahead {
    table: Arc<Table>,
    index: Arc<TableIndex>,
    /// Whether blocks are put into the cache. Else their memory is used again.
    fill_cache: bool,
    /// How many bytes of the file a batch has, if a block is not longer.
    batch_bytes: u64,
    state: Mutex<State, { rank::READ_AHEAD }>,
    /// A batch has been made, or may be.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The batches that have been begun and not been taken, without gaps.
    batches: VecDeque<Batch>,
    /// How many have been taken.
    taken: u64,
    /// The first block that belongs to no batch yet.
    next_block: usize,
    /// Whether somebody helps, or has been asked to.
    helped: bool,
    /// The reader has gone.
    closed: bool,
    /// What comes after the last batch that was taken.
    failed: Option<Error>,
    /// Memory of blocks that the reader has left.
    spare: Vec<Vec<u8>>,
}

enum Batch {
    /// Somebody makes it.
    Begun,
    Made(Made),
}

/// A batch that this thread is to make.
struct Task {
    number: u64,
    blocks: Range<usize>,
    spare: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ahead").field("table", &self.table).finish_non_exhaustive()
    }
}

impl Ahead {
    /// For a scan that comes to block `first` next. At most about `bytes` of the file are read that
    /// it has not come to.
    pub(super) fn new(
        table: Arc<Table>,
        index: Arc<TableIndex>,
        first: usize,
        bytes: usize,
        fill_cache: bool,
    ) -> Arc<Ahead> {
        let batch_bytes = (bytes / BATCHES_AHEAD) as u64;
        let state = State { next_block: first, ..State::default() };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Arc::new(Ahead { table, index, fill_cache, batch_bytes, state, changed })
    }

    /// Whether memory of blocks that the reader has left is of use.
    pub(super) fn wants_spare(&self) -> bool {
        !self.fill_cache
    }

    /// The blocks of the next batch. The reader gives the memory of blocks that he has left. After
    /// an error it is to be closed.
    pub(super) fn take(self: &Arc<Self>, spare: &mut Vec<Vec<u8>>) -> Result<Blocks> {
        let mut state = self.state.lock();
        state.spare.append(spare);
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        loop {
            if matches!(state.batches.front(), Some(Batch::Made(_)))
                && let Some(Batch::Made((blocks, failed))) = state.batches.pop_front()
            {
                state.taken += 1;
                if let Some(error) = failed {
                    if blocks.is_empty() {
                        return Err(error);
                    }
                    state.failed = Some(error);
                    return Ok(blocks);
                }
                debug_assert!(!blocks.is_empty(), "a batch has a block");
                let offer = !state.helped && self.may_begin(&state);
                if offer {
                    state.helped = true;
                } else if state.helped {
                    self.changed.notify_all();
                }
                drop(state);
                if offer && !self.table.shared().ask_for_help(self) {
                    self.state.lock().helped = false;
                }
                return Ok(blocks);
            }
            state = match self.begin(&mut state) {
                Some(task) => {
                    drop(state);
                    self.make(task);
                    self.state.lock()
                }
                // Who makes it may have to wait for the disk.
                None => self.changed.wait(state),
            };
        }
    }

    /// The reader goes elsewhere.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// Whether one more batch may be made now.
    fn may_begin(&self, state: &State) -> bool {
        // A scan that ends soon shall not have caused much.
        let most = BATCHES_AHEAD.min(1 + state.taken as usize);
        state.next_block < self.index.index.blocks() && state.batches.len() < most
    }

    fn begin(&self, state: &mut State) -> Option<Task> {
        if !self.may_begin(state) {
            return None;
        }
        let index = &self.index.index;
        let start = state.next_block;
        let offset = index.info(start).handle.offset;
        let mut end = start + 1;
        while end < index.blocks() && index.info(end).handle.end() - offset <= self.batch_bytes {
            end += 1;
        }
        state.next_block = end;
        let number = state.taken + state.batches.len() as u64;
        state.batches.push_back(Batch::Begun);
        let rest = state.spare.len().saturating_sub(end - start);
        Some(Task { number, blocks: start..end, spare: state.spare.split_off(rest) })
    }

    fn make(&self, task: Task) {
        let number = task.number;
        // A panic on the way would leave the reader waiting for ever.
        let mut unmade = Unmade { ahead: self, number: Some(number) };
        let mut blocks = Vec::with_capacity(task.blocks.len());
        let failed = self.read(task, &mut blocks).err();
        unmade.number = None;
        self.made(number, (blocks, failed));
    }

    fn made(&self, number: u64, made: Made) {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        let at = number.checked_sub(state.taken).map(|at| at as usize);
        let batch = at.and_then(|at| state.batches.get_mut(at));
        let batch = batch.expect("a batch is taken only when it has been made");
        assert!(matches!(batch, Batch::Begun), "a batch is made once");
        *batch = Batch::Made(made);
        drop(state);
        self.changed.notify_all();
    }

    /// Reads the batch in one go, and decodes what the cache does not have.
    fn read(&self, task: Task, made: &mut Blocks) -> Result<()> {
        let Task { blocks, mut spare, .. } = task;
        let index = &self.index.index;
        let shared = self.table.shared();
        let key = |info: &BlockInfo| CacheKey { file: self.table.id(), offset: info.handle.offset };
        let cached = |at: usize| shared.cache.get(&key(&index.info(at)));
        let cached: Vec<_> = blocks.clone().map(cached).collect();
        let hits = cached.iter().flatten().count() as u64;
        shared.recorder.add(Counter::DataHits, hits);
        if hits == cached.len() as u64 {
            made.extend(cached.into_iter().flatten());
            return Ok(());
        }
        let start = index.info(blocks.start).handle.offset;
        let end = index.info(blocks.end - 1).handle.end();
        let length = (end - start) as usize;
        // Taken, not borrowed: it is not held across the read.
        let mut scratch = SCRATCH.take();
        if scratch.len() < length {
            scratch.resize(length, 0);
        }
        self.table.read_at(start, &mut scratch[..length])?;
        for (at, cached) in blocks.zip(cached) {
            if let Some(block) = cached {
                made.push(block);
                continue;
            }
            let info = index.info(at);
            let from = (info.handle.offset - start) as usize;
            let frame = &scratch[from..from + info.handle.bytes as usize];
            let image = spare.pop().unwrap_or_default();
            let activity = Some(Activity::ReadDecompress);
            let block = self.table.decode_block(&self.index, frame, &info, image, activity)?;
            let block = Arc::new(block);
            if self.fill_cache {
                shared.cache.insert(key(&info), Arc::clone(&block));
            }
            made.push(block);
        }
        if scratch.len() <= SCRATCH_BYTES_MAX {
            SCRATCH.set(scratch);
        }
        shared.recorder.add_all([
            (Counter::DataMisses, made.len() as u64 - hits),
            (Counter::ReadBytes, length as u64),
        ]);
        Ok(())
    }
}

/// A batch that would never be made if its maker panicked.
struct Unmade<'a> {
    ahead: &'a Ahead,
    number: Option<u64>,
}

impl Drop for Unmade<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let what = "who was to decode these blocks has panicked";
            self.ahead.made(number, (Vec::new(), Some(self.ahead.table.corrupt(0, what))));
        }
    }
}

impl Help for Ahead {
    fn help(&self) -> bool {
        let mut state: MutexGuard<'_, State> = self.state.lock();
        if !state.closed && !self.may_begin(&state) {
            state = self.changed.wait_timeout(state, PATIENCE);
        }
        if state.closed {
            return false;
        }
        let Some(task) = self.begin(&mut state) else { return false };
        drop(state);
        self.make(task);
        true
    }

    fn leave(&self) {
        self.state.lock().helped = false;
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "ahead_tests.rs"]
mod tests;

#[cfg(all(test, shuttle))]
#[path = "ahead_shuttle_tests.rs"]
mod shuttle_tests;
