//! A forward scan over a table for compaction, and for whoever reads all of it: large reads, no
//! cache, memory used again, and access to whole blocks, so that a block which meets no other input
//! can be reused as it is. Users' scans go by [`super::cursor`].

use super::reader::{Table, TableIndex};
use crate::base::activity::Activity;
use crate::base::config::Codec;
use crate::base::cursor::Cursor;
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SEQ_MAX, SeqNo};
use crate::cache::Lease;
use crate::table::format::{Block, RawBlock};
use std::sync::Arc;

/// How many bytes are read at once, unless there are many scans for the memory that there is.
pub const READ_BYTES_MAX: u64 = 1 << 20;

/// The entries from a start to an end of one table, in order. As a [`Cursor`] it goes forward only:
/// `prev`, `seek_last` and `seek_back` are refused.
pub struct BulkScan {
    table: Arc<Table>,
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    index: Option<Arc<TableIndex>>,
    block: Block,
    block_at: usize,
    /// The block in which the end lies; blocks after it are not read.
    last_block: usize,
    entry: usize,
    /// Entries of the block that are before the end.
    limit: usize,
    key: Vec<u8>,
    window: Vec<u8>,
    window_offset: u64,
    /// How many bytes are read at once, if a block is not longer.
    read_bytes: u64,
    lease: Lease,
    /// What decompressing counts for.
    activity: Option<Activity>,
}

impl std::fmt::Debug for BulkScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BulkScan").field("table", &self.table).finish_non_exhaustive()
    }
}

impl Table {
    /// A forward scan over the entries from `start` (included) to `end` (excluded), past the cache.
    pub fn scan(self: &Arc<Self>, start: Option<&[u8]>, end: Option<&[u8]>) -> BulkScan {
        BulkScan::new(Arc::clone(self), start, end)
    }
}

impl BulkScan {
    fn new(table: Arc<Table>, start: Option<&[u8]>, end: Option<&[u8]>) -> BulkScan {
        let lease = Lease::of(&table.shared().memory);
        BulkScan {
            table,
            start: start.map(<[u8]>::to_vec),
            end: end.map(<[u8]>::to_vec),
            index: None,
            block: Block::default(),
            block_at: 0,
            last_block: 0,
            entry: 0,
            limit: 0,
            key: Vec::new(),
            window: Vec::new(),
            window_offset: 0,
            read_bytes: READ_BYTES_MAX,
            lease,
            activity: None,
        }
    }

    /// A scan over all of a table whose index has been read already.
    pub(super) fn over(table: Arc<Table>, index: Arc<TableIndex>) -> BulkScan {
        let last_block = index.index.blocks().saturating_sub(1);
        BulkScan { index: Some(index), last_block, ..BulkScan::new(table, None, None) }
    }

    /// The same, with the cost of decompressing counted for `activity`.
    pub fn counted_as(self, activity: Activity) -> BulkScan {
        BulkScan { activity: Some(activity), ..self }
    }

    /// The same, with so many bytes read at once.
    pub fn reading(self, bytes: u64) -> BulkScan {
        assert!(bytes > 0, "a scan reads something");
        BulkScan { read_bytes: bytes.min(READ_BYTES_MAX), ..self }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether the scan is at the first entry of a block (or at no entry).
    #[inline]
    pub fn begins_block(&self) -> bool {
        self.entry == 0
    }

    /// If the scan is at the first entry of a block that lies before the end as a whole: the block
    /// as it is in the file. [`BulkScan::skip_block`] goes on behind it.
    pub fn raw_block(&self) -> Option<RawBlock<'_>> {
        if !self.begins_block() || self.limit == 0 || self.limit < self.block.entries() {
            return None;
        }
        let table = self.index.as_ref()?;
        let handle = table.index.info(self.block_at).handle;
        let start = handle.offset.checked_sub(self.window_offset)? as usize;
        let bytes = self.window.get(start..start + handle.bytes as usize)?;
        let untried = self.table.meta.codec == Some(Codec::None);
        Some(RawBlock {
            untried,
            bytes,
            block: &self.block,
            dictionary: table.dictionary.as_ref(),
            ingest_seq: self.table.meta.ingest_seq,
        })
    }

    /// The block in which the scan is.
    pub(super) fn block(&self) -> &Block {
        &self.block
    }

    /// Goes to the first entry of the next block. After an error that is the block after the one
    /// that could not be read, so that a repair can go on.
    pub fn skip_block(&mut self) -> Result<()> {
        self.entry = self.limit;
        self.next_block()
    }

    fn open(&mut self) -> Result<Arc<TableIndex>> {
        if let Some(index) = &self.index {
            return Ok(Arc::clone(index));
        }
        let index = self.table.index()?;
        self.last_block = index.index.blocks().saturating_sub(1);
        if let Some(end) = &self.end {
            self.last_block = self.last_block.min(index.index.find(end));
        }
        self.index = Some(Arc::clone(&index));
        Ok(index)
    }

    /// Decodes block `at`; its entries before the end are then `0..limit`.
    fn load(&mut self, index: &TableIndex, at: usize) -> Result<()> {
        (self.entry, self.limit) = (0, 0);
        self.block_at = at;
        if at >= index.index.blocks() || at > self.last_block {
            // The scan may be kept beside others that go on for long.
            (self.window, self.block) = (Vec::new(), Block::default());
            self.lease.set(0);
            return Ok(());
        }
        let info = index.index.info(at);
        let handle = info.handle;
        let window_end = self.window_offset + self.window.len() as u64;
        if handle.offset < self.window_offset || handle.end() > window_end {
            self.fill(index, at)?;
        }
        let start = (handle.offset - self.window_offset) as usize;
        let frame = &self.window[start..start + handle.bytes as usize];
        let image = std::mem::take(&mut self.block).into_bytes();
        self.block = self.table.decode_block(index, frame, &info, image, self.activity)?;
        self.limit = match &self.end {
            Some(end) if at == self.last_block => self.block.lower_bound(end, SEQ_MAX),
            _ => self.block.entries(),
        };
        self.key.clear();
        self.key.extend_from_slice(self.block.prefix());
        self.assemble_key();
        Ok(())
    }

    /// Reads as many whole blocks from `at` on as fill the window, and has the system fetch those
    /// after them.
    fn fill(&mut self, index: &TableIndex, at: usize) -> Result<()> {
        let start = index.index.info(at).handle.offset;
        let mut end = index.index.info(at).handle.end();
        let mut next = at + 1;
        while next <= self.last_block {
            let after = index.index.info(next).handle.end();
            if after - start > self.read_bytes {
                break;
            }
            end = after;
            next += 1;
        }
        let length = (end - start) as usize;
        self.window.reserve_exact(length.saturating_sub(self.window.len()));
        self.window.resize(length, 0);
        self.window_offset = start;
        let data_end = index.index.info(self.last_block).handle.end();
        let table = Arc::clone(&self.table);
        let ahead = self.read_bytes;
        self.lease.set(self.window.capacity() + self.block.image().len());
        let started = table.shared().meter.storage();
        let read = self.table.with_file(|file| {
            file.read_at(start, &mut self.window)?;
            if end < data_end {
                file.prefetch(end, ahead.min(data_end - end));
            }
            Ok(())
        });
        started.read(end - start);
        if read.is_err() {
            self.window.clear();
        }
        read
    }

    #[inline]
    fn assemble_key(&mut self) {
        let prefix_len = self.block.prefix().len();
        if prefix_len > 0 && self.entry < self.limit {
            self.key.truncate(prefix_len);
            self.key.extend_from_slice(self.block.suffix(self.entry));
        }
    }

    fn next_block(&mut self) -> Result<()> {
        let index = self.open()?;
        self.load(&index, self.block_at + 1)
    }

    fn backward() -> Error {
        Error::InvalidArgument("a table scan goes forward only".to_owned())
    }
}

impl Cursor for BulkScan {
    #[inline]
    fn valid(&self) -> bool {
        self.entry < self.limit
    }

    /// Goes to the first entry at or after the scan's start.
    fn seek_first(&mut self) -> Result<()> {
        match self.start.take() {
            Some(start) => {
                let sought = self.seek(&start, SEQ_MAX);
                self.start = Some(start);
                sought
            }
            None => {
                let index = self.open()?;
                self.load(&index, 0)
            }
        }
    }

    fn seek_last(&mut self) -> Result<()> {
        Err(BulkScan::backward())
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        (self.entry, self.limit) = (0, 0);
        let index = self.open()?;
        if let Some(start) = &self.start
            && key < start.as_slice()
        {
            return self.seek_first();
        }
        let at = index.index.find(key);
        self.load(&index, at)?;
        let ingest_seq = self.table.meta.ingest_seq;
        let block_seq = if ingest_seq == 0 { seq } else { SEQ_MAX };
        self.entry = self.block.lower_bound(key, block_seq).min(self.limit);
        // What is left to pass: versions that spill over to the next block, and, in an ingested
        // table, the one entry of the key if it is newer.
        while self.entry >= self.limit && at_more(self, &index) {
            self.load(&index, self.block_at + 1)?;
            self.entry = self.block.lower_bound(key, block_seq).min(self.limit);
        }
        self.assemble_key();
        if self.valid() && ingest_seq > seq && self.key() == key {
            return self.next();
        }
        Ok(())
    }

    fn seek_back(&mut self, _key: &[u8], _seq: SeqNo) -> Result<()> {
        Err(BulkScan::backward())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        debug_assert!(self.valid());
        self.entry += 1;
        if self.entry < self.limit {
            self.assemble_key();
            return Ok(());
        }
        self.next_block()
    }

    fn prev(&mut self) -> Result<()> {
        Err(BulkScan::backward())
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

fn at_more(scan: &BulkScan, index: &TableIndex) -> bool {
    scan.block_at < index.index.blocks().saturating_sub(1) && scan.block_at < scan.last_block
}

#[cfg(test)]
#[path = "bulk_scan_tests.rs"]
mod tests;
