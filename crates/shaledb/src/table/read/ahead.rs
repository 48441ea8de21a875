//! Blocks of a long forward scan, read and decoded in batches before the scan is there. An idle
//! background thread does so beside the reader. Where none is idle, or it is not fast enough, the
//! reader makes the next batch himself: he waits only for the batch that he wants, and only if
//! there is no other to make meanwhile.

use super::reader::{Table, TableIndex};
use super::scratch::with_scratch;
use crate::base::activity::Activity;
use crate::base::error::{Error, Result};
use crate::base::rank;
use crate::base::stats::Counter;
use crate::base::sync::{Arc, Condvar, Mutex, MutexGuard};
use crate::cache::Lease;
use crate::table::format::Block;
use crate::table::helpers::Help;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// How many batches are made before the reader is there, once he has read as many.
const BATCHES_AHEAD: usize = 8;
/// How many times the bytes to read ahead blocks may have when decoded.
const DECODED_FACTOR: u64 = 4;
/// How many times the typical block's memory is kept for use again.
const SPARE_FACTOR: u64 = 4;
/// How long a helper waits for the reader to come closer before it leaves.
const PATIENCE: Duration = Duration::from_millis(1);

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
    lease: Lease,
}

#[derive(Default)]
struct State {
    /// The batches that have been begun and not been taken, without gaps.
    batches: VecDeque<Batch>,
    /// About how many bytes these have when decoded.
    bytes: u64,
    /// How many have been taken.
    taken: u64,
    /// The first block that belongs to no batch yet.
    next_block: usize,
    /// Whether somebody helps, or has been asked to.
    helped: bool,
    /// A batch has failed: none that comes later is begun.
    ended: bool,
    /// The reader has gone.
    closed: bool,
    /// What comes after the last batch that was taken.
    failed: Option<Error>,
    /// Memory of blocks that the reader has left.
    spare: Vec<Vec<u8>>,
}

struct Batch {
    blocks: Range<usize>,
    /// About how many bytes it has when decoded.
    bytes: u64,
    progress: Progress,
}

enum Progress {
    /// Whoever was to make it has panicked.
    Left,
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
    /// For a scan that comes to block `first` next. About `bytes` of the file are read that it has
    /// not come to, and not much more than four times as many are held decoded.
    pub(super) fn new(
        table: Arc<Table>,
        index: Arc<TableIndex>,
        first: usize,
        bytes: usize,
        fill_cache: bool,
    ) -> Arc<Ahead> {
        let batch_bytes = (bytes / BATCHES_AHEAD).max(1) as u64;
        let state = State { next_block: first, ..State::default() };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let lease = Lease::of(&table.shared().memory);
        Arc::new(Ahead { table, index, fill_cache, batch_bytes, state, changed, lease })
    }

    /// Whether the memory of a block that the reader has left is of use. That of an unusually large
    /// one is not: all that goes round would grow to its size.
    pub(super) fn wants(&self, memory: &[u8]) -> bool {
        let meta = &self.table.meta;
        let typical = meta.raw_bytes / meta.blocks.max(1);
        !self.fill_cache && memory.len() as u64 <= SPARE_FACTOR * typical
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
            if let Some((blocks, failed)) = state.take() {
                match failed {
                    Some(error) if blocks.is_empty() => return Err(error),
                    failed => state.failed = failed,
                }
                // Those that the reader goes through, and those made meanwhile. What is put into
                // the cache is counted there.
                let held =
                    if self.fill_cache { 0 } else { Self::decoded_of(&blocks) + state.bytes };
                self.wake_helper(state);
                self.lease.set(held as usize);
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

    fn decoded_of(blocks: &Blocks) -> u64 {
        blocks.iter().map(|block| block.image().len() as u64).sum()
    }

    /// After a batch was taken: more may be made.
    fn wake_helper(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.helped {
            drop(state);
            self.changed.notify_all();
        } else if self.may_begin(&state) && state.batches.len() <= most(state.taken) / 2 {
            state.helped = true;
            drop(state);
            if !self.table.shared().ask_for_help(self) {
                self.state.lock().helped = false;
            }
        }
    }

    /// Whether its helpers, if there are any, are threads of this process, and not of the one that
    /// it is a fork of.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.table.shared().is_of_this_process()
    }

    /// The reader goes elsewhere.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// Whether one more batch may be made now.
    fn may_begin(&self, state: &State) -> bool {
        let left = state.batches.iter().any(|batch| matches!(batch.progress, Progress::Left));
        let room = state.batches.is_empty()
            || state.batches.len() < most(state.taken)
                && state.bytes < DECODED_FACTOR * self.batch_bytes * BATCHES_AHEAD as u64;
        let more = !state.ended && state.next_block < self.index.index.blocks();
        !state.closed && (left || more && room)
    }

    fn begin(&self, state: &mut State) -> Option<Task> {
        if !self.may_begin(state) {
            return None;
        }
        let is_left = |batch: &Batch| matches!(batch.progress, Progress::Left);
        let at = state.batches.iter().position(is_left).unwrap_or_else(|| {
            let batch = self.batch(state.next_block);
            state.next_block = batch.blocks.end;
            state.bytes += batch.bytes;
            state.batches.push_back(batch);
            state.batches.len() - 1
        });
        let batch = &mut state.batches[at];
        batch.progress = Progress::Begun;
        let (number, blocks) = (state.taken + at as u64, batch.blocks.clone());
        let rest = state.spare.len().saturating_sub(blocks.len());
        Some(Task { number, blocks, spare: state.spare.split_off(rest) })
    }

    /// The batch that begins with block `first`.
    fn batch(&self, first: usize) -> Batch {
        let (index, meta) = (&self.index.index, &self.table.meta);
        let decoded = |bytes: u64| {
            let bytes = u128::from(bytes) * u128::from(meta.raw_bytes);
            (bytes / u128::from(meta.data_bytes.max(1))) as u64
        };
        let offset = index.info(first).handle.offset;
        let bytes = |end: usize| index.info(end - 1).handle.end() - offset;
        let fits = |end: usize| {
            let bytes = bytes(end);
            bytes <= self.batch_bytes && decoded(bytes) <= DECODED_FACTOR * self.batch_bytes
        };
        let mut end = first + 1;
        while end < index.blocks() && fits(end + 1) {
            end += 1;
        }
        Batch { blocks: first..end, bytes: decoded(bytes(end)), progress: Progress::Left }
    }

    fn make(&self, task: Task) {
        let number = task.number;
        // After a panic on the way the reader makes it, and does not wait for ever.
        let mut begun = Begun { ahead: self, number: Some(number) };
        let mut blocks = Vec::with_capacity(task.blocks.len());
        let failed = self.read(task, &mut blocks).err();
        begun.number = None;
        self.set(number, Progress::Made((blocks, failed)));
    }

    fn set(&self, number: u64, progress: Progress) {
        let mut state = self.state.lock();
        state.ended |= matches!(progress, Progress::Made((_, Some(_))));
        let at = number.checked_sub(state.taken).map(|at| at as usize);
        let batch = at.and_then(|at| state.batches.get_mut(at));
        let batch = batch.expect("a batch is taken only when it has been made");
        assert!(matches!(batch.progress, Progress::Begun), "a batch is made once");
        batch.progress = progress;
        drop(state);
        self.changed.notify_all();
    }

    /// Reads the batch in one go, and decodes what the cache does not have. If that fails, one by
    /// one what comes before the block that cannot be read.
    fn read(&self, task: Task, made: &mut Blocks) -> Result<()> {
        let Task { blocks, mut spare, .. } = task;
        let shared = self.table.shared();
        let index = &self.index.index;
        let cached = |at: usize| self.table.block_in_memory(&self.index, at);
        let cached: Vec<_> = blocks.clone().map(cached).collect();
        let Some(first) = cached.iter().position(Option::is_none) else {
            shared.recorder.add(Counter::DataHits, blocks.len() as u64);
            made.extend(cached.into_iter().flatten());
            return Ok(());
        };
        let last = cached.iter().rposition(Option::is_none).unwrap_or(first);
        let start = index.info(blocks.start + first).handle.offset;
        let length = (index.info(blocks.start + last).handle.end() - start) as usize;
        with_scratch(length, |bytes| {
            let whole = self.table.read_at(start, bytes);
            shared.recorder.add(Counter::ReadBytes, length as u64);
            for (at, cached) in blocks.zip(cached) {
                if let Some(block) = cached {
                    shared.recorder.add(Counter::DataHits, 1);
                    made.push(block);
                    continue;
                }
                let info = index.info(at);
                let from = (info.handle.offset - start) as usize;
                let frame = &mut bytes[from..from + info.handle.bytes as usize];
                if whole.is_err() {
                    self.table.read_at(info.handle.offset, frame)?;
                }
                shared.recorder.add(Counter::DataMisses, 1);
                let image = spare.pop().unwrap_or_default();
                let activity = Some(Activity::ReadDecompress);
                let block = self.table.decode_block(&self.index, frame, &info, image, activity)?;
                let block = Arc::new(block);
                if self.fill_cache {
                    self.table.keep_in_memory(&self.index, at, &block);
                }
                made.push(block);
            }
            Ok(())
        })
    }
}

/// How many batches may be ahead of a reader who has taken so many: a scan that ends soon shall not
/// have caused much.
fn most(taken: u64) -> usize {
    BATCHES_AHEAD.min(1 + taken as usize)
}

impl State {
    /// The first batch, if it has been made.
    fn take(&mut self) -> Option<Made> {
        let is_made = |batch: &mut Batch| matches!(batch.progress, Progress::Made(_));
        let batch = self.batches.pop_front_if(is_made)?;
        let Progress::Made(made) = batch.progress else { return None };
        debug_assert!(made.1.is_some() || made.0.len() == batch.blocks.len());
        self.taken += 1;
        self.bytes -= batch.bytes;
        Some(made)
    }
}

/// A batch that would never be made if its maker panicked.
struct Begun<'a> {
    ahead: &'a Ahead,
    number: Option<u64>,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.ahead.set(number, Progress::Left);
        }
    }
}

impl Help for Ahead {
    fn help(&self) -> bool {
        let mut state = self.state.lock();
        let at_end = state.next_block == self.index.index.blocks();
        let over = at_end || state.ended || state.closed;
        if !over && !self.may_begin(&state) {
            state = self.changed.wait_timeout(state, PATIENCE);
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

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "ahead_tests.rs"]
mod tests;

#[cfg(all(test, feature = "shuttle"))]
#[path = "ahead_shuttle_tests.rs"]
mod shuttle_tests;
