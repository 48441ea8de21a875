//! A user's cursor over one table: both directions, through the cache, reading ahead once blocks
//! are asked for one after the other.
//!
//! Blocks that lie in the cache are taken from it, and asked for from memory ahead. Others are read
//! one by one; after two in a row several are read at once, at first 64 KiB of them, then twice as
//! many each time up to the bound. Each is decoded once, when it is reached. Blocks go into the
//! cache only if the caller wants so; else the memory of the last one is used for the next.
//!
//! A scan that goes on forward beyond that is read ahead in batches, with the help of idle threads
//! ([`super::ahead`]). If its range holds more than the cache, it then no longer fills the cache:
//! it would only replace what others read by what it will not read again.

use super::ahead::Ahead;
use super::reader::{Table, TableIndex};
use super::scratch;
use crate::base::activity::Activity;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{Kind, SEQ_MAX, SeqNo};
use crate::base::stats::Counter;
use crate::cache::Lease;
use crate::table::format::{Block, Handle};
use std::sync::Arc;

/// The first read-ahead, in bytes.
const READAHEAD_BYTES_MIN: usize = 64 * 1024;
/// One cursor reads ahead at most this share of the memory (if that is not less than the first
/// read-ahead): one in so many. Many may be open.
const READAHEAD_SHARE: u64 = 256;
/// After how many blocks in a row reading ahead begins, from storage or from memory.
const SEQUENTIAL_BLOCKS: u32 = 2;

/// What keys mostly have at most beside a common prefix.
const SUFFIX_BYTES: usize = 64;

thread_local! {
    /// What a cursor has before its first block. One for each thread: to make one for each cursor
    /// costs more, and threads would wait for each other to count the references to a single one.
    static NO_BLOCK: Arc<Block> = Arc::default();
}

/// How a cursor uses cache and disk.
#[derive(Clone, Copy, Debug)]
pub struct CursorOptions {
    /// Whether blocks that had to be read are put into the cache.
    pub fill_cache: bool,
    /// The most bytes to read at once; 0 never reads ahead.
    pub readahead: usize,
    /// About how many bytes the blocks of the scan's range have when decoded, those of other tables
    /// included; 0 if that is not known.
    pub range_bytes: u64,
}

impl Default for CursorOptions {
    fn default() -> CursorOptions {
        CursorOptions { fill_cache: true, readahead: 512 * 1024, range_bytes: 0 }
    }
}

/// A cursor over one table. See [`Cursor`].
pub struct TableCursor {
    table: Arc<Table>,
    options: CursorOptions,
    /// Loaded by the first seek.
    index: Option<Arc<TableIndex>>,
    /// Shared with the cache and with slices, or [`NO_BLOCK`], or this cursor's alone.
    block: Arc<Block>,
    /// The number of `block`; `usize::MAX` while there is none.
    block_at: usize,
    /// How many times in a row the next block was the one after it; a table's first counts as one.
    forward: u32,
    /// The entry within the block; not valid if it is no entry of the block.
    entry: usize,
    /// The key here, if the block's keys have a common prefix.
    key: Vec<u8>,
    window: Window,
    /// Boxed: most cursors have none, and are moved about.
    following: Option<Box<Following>>,
    /// Whether the scan comes from the table before, which it was reading ahead.
    goes_on: bool,
    /// Whether seeks find nothing.
    idle: bool,
}

/// The batches that are read ahead, as the cursor goes through them.
struct Following {
    ahead: Arc<Ahead>,
    /// What is left of the batch.
    batch: std::vec::IntoIter<Arc<Block>>,
    /// The number of the next block.
    next: usize,
    /// Memory of blocks that were left.
    spare: Vec<Vec<u8>>,
}

impl Drop for Following {
    fn drop(&mut self) {
        // After a fork the state may have been locked by a thread that is not here.
        if self.ahead.is_of_this_process() {
            self.ahead.close();
        }
    }
}

/// File bytes that have been read ahead.
#[derive(Debug, Default)]
struct Window {
    /// Of which the first `length` were read.
    bytes: Vec<u8>,
    length: usize,
    offset: u64,
    /// Blocks read in a row, without a jump.
    sequential: u32,
    next_bytes: usize,
    lease: Lease,
}

impl Window {
    fn get(&self, handle: Handle) -> Option<&[u8]> {
        let start = usize::try_from(handle.offset.checked_sub(self.offset)?).ok()?;
        self.bytes[..self.length].get(start..start.checked_add(handle.bytes as usize)?)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        scratch::give(std::mem::take(&mut self.bytes));
    }
}

impl std::fmt::Debug for TableCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableCursor").field("table", &self.table).finish_non_exhaustive()
    }
}

impl Table {
    /// A cursor for users' scans.
    pub fn cursor(self: &Arc<Self>, options: CursorOptions) -> TableCursor {
        TableCursor::new(Arc::clone(self), options)
    }
}

impl TableCursor {
    fn new(table: Arc<Table>, mut options: CursorOptions) -> TableCursor {
        let share = (table.shared().memory.total() / READAHEAD_SHARE) as usize;
        options.readahead = options.readahead.min(share.max(READAHEAD_BYTES_MIN));
        TableCursor {
            table,
            options,
            index: None,
            // A thread that ends has none any more.
            block: NO_BLOCK.try_with(Arc::clone).unwrap_or_default(),
            block_at: usize::MAX,
            forward: 0,
            entry: 0,
            key: Vec::new(),
            window: Window::default(),
            following: None,
            goes_on: false,
            idle: false,
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// A cursor for the table after that of `before`, which a scan goes to from there.
    pub fn after(before: &TableCursor, table: &Arc<Table>, options: CursorOptions) -> TableCursor {
        let mut cursor = table.cursor(options);
        cursor.goes_on = before.following.is_some();
        cursor
    }

    /// Whether seeks find nothing from now on: what is sought is of a range of which the table has
    /// no key. The block stays, for a range of which it has; what was read ahead goes.
    pub fn set_idle(&mut self, idle: bool) {
        self.idle = idle;
        self.invalidate();
        if idle {
            self.following = None;
            if self.window.bytes.len() >= READAHEAD_BYTES_MIN {
                self.window = Window::default();
            }
        }
    }

    /// Leaves where it is; whether there may be something to find.
    #[inline]
    fn begin_seek(&mut self) -> bool {
        self.invalidate();
        !self.idle
    }

    /// Tells [`CursorOptions::range_bytes`], before a seek.
    pub fn set_range_bytes(&mut self, bytes: u64) {
        self.options.range_bytes = bytes;
    }

    /// How many entries of the block follow the current one, up to `bound`, if all of the block are
    /// puts of different keys written at or before `seq`. Only while valid.
    #[inline]
    pub fn plain_ahead<'a>(&self, seq: SeqNo, bound: impl FnOnce() -> Option<&'a [u8]>) -> usize {
        let left = self.block.entries() - 1 - self.entry;
        if left == 0 || !self.block.is_uniform() || self.seq() > seq {
            return 0;
        }
        match bound() {
            None => left,
            Some(bound) => self.block.lower_bound(bound, SEQ_MAX).saturating_sub(self.entry + 1),
        }
    }

    /// Whether all entries of the block are puts of different keys written at or before `seq`, and
    /// the current one has a key at or after `lower` and after `rival`. If so, how many before it
    /// do. Of the block's first entry there may be newer versions in the block before: it is none
    /// of them. Only while valid.
    #[inline]
    pub fn plain_behind(&self, seq: SeqNo, lower: &[u8], rival: Option<&[u8]>) -> Option<usize> {
        if !self.block.is_uniform() || self.seq() > seq {
            return None;
        }
        let mut first = 1;
        if !lower.is_empty() {
            first = first.max(self.block.lower_bound(lower, SEQ_MAX));
        }
        if let Some(rival) = rival {
            let at = self.block.lower_bound(rival, SEQ_MAX);
            let equal = at < self.block.entries() && self.block.key_is(at, rival);
            first = first.max(at + usize::from(equal));
        }
        self.entry.checked_sub(first)
    }

    /// Moves by the index, which is loaded if need be. Lent out for that long, not counted once
    /// more: all threads that read the table count there.
    fn with_index<T>(
        &mut self,
        work: impl FnOnce(&mut TableCursor, &Arc<TableIndex>) -> Result<T>,
    ) -> Result<T> {
        let index = match self.index.take() {
            Some(index) => index,
            None => self.table.index()?,
        };
        let done = work(self, &index);
        debug_assert!(self.index.is_none(), "nobody else has asked for it meanwhile");
        self.index = Some(index);
        done
    }

    fn invalidate(&mut self) {
        self.entry = usize::MAX;
    }

    /// Makes block `at` the current one; not yet at any entry.
    fn load(&mut self, index: &Arc<TableIndex>, at: usize) -> Result<()> {
        self.invalidate();
        if self.block_at == at {
            return Ok(());
        }
        let from = std::mem::replace(&mut self.block_at, usize::MAX);
        self.forward = if from.wrapping_add(1) == at { self.forward.saturating_add(1) } else { 0 };
        if self.following.is_some() && self.follow(at)? {
            self.arrive(at);
            return Ok(());
        }
        if self.forward >= SEQUENTIAL_BLOCKS {
            self.table.prepare_after(index, at);
        }
        if let Some(block) = self.table.block_in_memory(index, at) {
            self.table.shared().recorder.add(Counter::DataHits, 1);
            self.block = block;
        } else if self.goes_on(at, from) && self.window.get(index.index.info(at).handle).is_none() {
            self.begin_ahead(index, at);
            let followed = self.follow(at)?;
            assert!(followed, "what is read ahead begins with this block");
        } else {
            if from.abs_diff(at) > 1 {
                self.table.count_single(at);
            }
            self.decode(index, at, from)?;
            if self.options.fill_cache {
                self.table.keep_in_memory(index, at, &self.block);
            }
        }
        self.arrive(at);
        Ok(())
    }

    /// `self.block` is block `at`.
    fn arrive(&mut self, at: usize) {
        self.block_at = at;
        let prefix = self.block.prefix();
        self.key.clear();
        if !prefix.is_empty() {
            // At once for what `assemble_key` adds, mostly.
            self.key.reserve(prefix.len() + self.block.suffix_bytes_typical().max(SUFFIX_BYTES));
            self.key.extend_from_slice(prefix);
        }
    }

    /// Whether a scan that comes from block `from` to `at` has read forward for long, and has used
    /// up what it has read.
    fn goes_on(&self, at: usize, from: usize) -> bool {
        let readahead = self.options.readahead;
        let long = self.window.next_bytes > readahead || (self.goes_on && at == 0);
        // A fork has no helpers, and keeps out of what they may have locked.
        let here = || self.table.shared().is_of_this_process();
        from.wrapping_add(1) == at && readahead > 0 && long && here()
    }

    fn begin_ahead(&mut self, index: &Arc<TableIndex>, at: usize) {
        let capacity = self.table.shared().cache.capacity();
        let fill_cache = self.options.fill_cache && self.options.range_bytes <= capacity;
        let (table, bytes) = (Arc::clone(&self.table), self.options.readahead);
        let ahead = Ahead::new(table, Arc::clone(index), at, bytes, fill_cache);
        let (batch, spare) = (Vec::new().into_iter(), Vec::new());
        self.following = Some(Box::new(Following { ahead, batch, next: at, spare }));
        self.window = Window::default();
    }

    /// Takes block `at` from what is read ahead; `false` if that is not where it is.
    fn follow(&mut self, at: usize) -> Result<bool> {
        let is_next = |following: &&mut Box<Following>| {
            following.next == at && following.ahead.is_of_this_process()
        };
        let Some(following) = self.following.as_mut().filter(is_next) else {
            self.following = None;
            return Ok(false);
        };
        let block = match following.batch.next() {
            Some(block) => block,
            None => match following.ahead.take(&mut following.spare) {
                Ok(batch) => {
                    following.batch = batch.into_iter();
                    following.batch.next().expect("a batch has a block")
                }
                Err(error) => {
                    self.following = None;
                    return Err(error);
                }
            },
        };
        following.next += 1;
        let left = std::mem::replace(&mut self.block, block);
        if following.ahead.wants(left.image())
            && let Ok(block) = Arc::try_unwrap(left)
        {
            following.spare.push(block.into_bytes());
        }
        Ok(true)
    }

    fn decode(&mut self, index: &TableIndex, at: usize, from: usize) -> Result<()> {
        let info = index.index.info(at);
        if self.window.get(info.handle).is_none() {
            self.fill_window(index, at, from)?;
        }
        let Some(frame) = self.window.get(info.handle) else {
            return Err(self.table.corrupt(info.handle.offset, "a block lies outside the file"));
        };
        // The memory of the last block is free unless the cache or a slice holds it.
        let image = match Arc::get_mut(&mut self.block) {
            Some(block) => std::mem::take(block).into_bytes(),
            None => Vec::new(),
        };
        let activity = Some(Activity::ReadDecompress);
        let block = self.table.decode_block(index, frame, &info, image, activity)?;
        match Arc::get_mut(&mut self.block) {
            Some(slot) => *slot = block,
            None => self.block = Arc::new(block),
        }
        self.table.shared().recorder.add(Counter::DataMisses, 1);
        Ok(())
    }

    /// Reads block `at`, and those after it (or before it, if blocks are asked for backwards) if it
    /// seems that they will be wanted.
    fn fill_window(&mut self, index: &TableIndex, at: usize, from: usize) -> Result<()> {
        let forward = from.wrapping_add(1) == at;
        let backward = at.wrapping_add(1) == from;
        let window = &mut self.window;
        window.sequential = if forward || backward { window.sequential + 1 } else { 0 };
        let handle = index.index.info(at).handle;
        let (mut start, mut end) = (handle.offset, handle.end());
        if window.sequential >= SEQUENTIAL_BLOCKS && self.options.readahead > 0 {
            let bytes = window.next_bytes.clamp(READAHEAD_BYTES_MIN, 1 << 30);
            let bytes = bytes.min(self.options.readahead);
            window.next_bytes = bytes * 2;
            let mut next = at;
            if forward {
                while next + 1 < index.index.blocks() && end - start < bytes as u64 {
                    next += 1;
                    end = index.index.info(next).handle.end();
                }
            } else {
                while next > 0 && end - start < bytes as u64 {
                    next -= 1;
                    start = index.index.info(next).handle.offset;
                }
            }
        } else {
            window.next_bytes = 0;
        }
        window.offset = start;
        let length = (end - start) as usize;
        if window.bytes.capacity() == 0 {
            window.bytes = scratch::take();
        }
        if window.bytes.len() < length {
            window.bytes.reserve_exact(length - window.bytes.len());
            window.bytes.resize(length, 0);
        }
        // Those of a block or two are not worth it, and scans of a few rows are many.
        if length >= READAHEAD_BYTES_MIN {
            if !window.lease.is_of_any() {
                window.lease = Lease::of(&self.table.shared().memory);
            }
            window.lease.set(window.bytes.capacity());
        }
        let read = self.table.read_at(start, &mut window.bytes[..length]);
        window.length = if read.is_ok() { length } else { 0 };
        self.table.shared().recorder.add(Counter::ReadBytes, end - start);
        read
    }

    /// Brings the assembled key up to date with the position.
    #[inline]
    fn assemble_key(&mut self) {
        let prefix_len = self.block.prefix().len();
        if prefix_len > 0 && self.entry < self.block.entries() {
            self.key.truncate(prefix_len);
            self.key.extend_from_slice(self.block.suffix(self.entry));
        }
    }

    /// Goes to the first entry of the first block from `at` on that has one.
    fn enter_first(&mut self, index: &Arc<TableIndex>, at: usize) -> Result<()> {
        self.invalidate();
        if at < index.index.blocks() {
            self.load(index, at)?;
            self.entry = 0;
            self.assemble_key();
        }
        Ok(())
    }

    fn enter_last(&mut self, index: &Arc<TableIndex>, at: usize) -> Result<()> {
        self.load(index, at)?;
        self.entry = self.block.entries().wrapping_sub(1);
        self.assemble_key();
        Ok(())
    }

    /// Goes to the first entry at or after (key, seq); if there is none, past the last entry of the
    /// last block looked into.
    fn find(&mut self, index: &Arc<TableIndex>, key: &[u8], seq: SeqNo) -> Result<bool> {
        let seq = match self.table.meta.ingest_seq {
            0 => seq,
            // Blocks say 0 for all entries: they are all before `seq`, or all after.
            ingest if ingest <= seq => SEQ_MAX,
            _ => return self.find_after(index, key),
        };
        let mut at = index.index.find(key);
        while at < index.index.blocks() {
            self.load(index, at)?;
            let entry = self.block.lower_bound(key, seq);
            if entry < self.block.entries() {
                self.entry = entry;
                return Ok(true);
            }
            at += 1;
        }
        Ok(false)
    }

    /// As `find`, to the first entry whose key is after `key`.
    fn find_after(&mut self, index: &Arc<TableIndex>, key: &[u8]) -> Result<bool> {
        let mut after = Vec::with_capacity(key.len() + 1);
        after.extend_from_slice(key);
        after.push(0);
        let mut at = index.index.find(&after);
        while at < index.index.blocks() {
            self.load(index, at)?;
            let entry = self.block.lower_bound(&after, SEQ_MAX);
            if entry < self.block.entries() {
                self.entry = entry;
                return Ok(true);
            }
            at += 1;
        }
        Ok(false)
    }
}

impl Cursor for TableCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.entry < self.block.entries()
    }

    fn seek_first(&mut self) -> Result<()> {
        if !self.begin_seek() {
            return Ok(());
        }
        self.with_index(|cursor, index| cursor.enter_first(index, 0))
    }

    fn seek_last(&mut self) -> Result<()> {
        if !self.begin_seek() {
            return Ok(());
        }
        self.with_index(|cursor, index| match index.index.blocks().checked_sub(1) {
            Some(last) => cursor.enter_last(index, last),
            None => Ok(()),
        })
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        if !self.begin_seek() {
            return Ok(());
        }
        if !self.with_index(|cursor, index| cursor.find(index, key, seq))? {
            self.invalidate();
        }
        self.assemble_key();
        Ok(())
    }

    fn seek_back(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        if !self.begin_seek() {
            return Ok(());
        }
        if !self.with_index(|cursor, index| cursor.find(index, key, seq))? {
            return self.seek_last();
        }
        self.prev()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        debug_assert!(self.valid());
        self.entry += 1;
        if self.entry < self.block.entries() {
            self.assemble_key();
            return Ok(());
        }
        let next = self.block_at.wrapping_add(1);
        self.with_index(|cursor, index| cursor.enter_first(index, next))
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        debug_assert!(self.valid());
        if self.entry > 0 {
            self.entry -= 1;
            self.assemble_key();
            return Ok(());
        }
        self.invalidate();
        match self.block_at.checked_sub(1) {
            Some(before) => self.with_index(|cursor, index| cursor.enter_last(index, before)),
            None => Ok(()),
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        if self.block.prefix().is_empty() { self.block.suffix(self.entry) } else { &self.key }
    }

    #[inline]
    fn seq(&self) -> SeqNo {
        self.block.seq(self.entry).max(self.table.meta.ingest_seq)
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.block.tag(self.entry).1
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.block.value(self.entry)
    }
}

#[cfg(test)]
#[path = "cursor_tests.rs"]
mod tests;
