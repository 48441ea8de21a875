//! A table, opened on demand, and the access to blocks that look-ups and cursors build on.
//!
//! Making a [`Table`] reads nothing. The first read opens the file and loads index and filter into
//! a slot of the table, so that later reads pay no look-up for them; [`TableEnv`] bounds how many
//! tables have either.

use super::scratch::with_scratch;
use super::sections::{read_dictionary, read_footer, read_section};
use super::spare;
use crate::base::activity::Activity;
use crate::base::error::{Error, Result};
use crate::base::ranges::RangeDeletes;
use crate::base::stats::Counter;
use crate::cache::{CacheKey, Slot};
use crate::fs::{Env, ReadFile};
use crate::table::blob::Blob;
use crate::table::env::{Evictable, TableEnv};
use crate::table::format::compress::{Dictionary, id};
use crate::table::format::index::Index;
use crate::table::format::{self, Block, BlockInfo, Footer, Frame, Handle, filter, properties};
use crate::table::meta::{FileId, TableMeta};
use arc_swap::ArcSwapOption;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

/// The parts of a table that every read needs. Aligned, so that the count of the references to it,
/// which cursors change, is on another cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct TableIndex {
    pub index: Index,
    /// For each data block where the cache had it last.
    pub slots: Box<[Slot]>,
    /// The dictionary of the data blocks, if the table has one.
    pub dictionary: Option<Arc<Dictionary>>,
    /// The filter at an address that is a multiple of its lines' length.
    filter: Vec<u8>,
    filter_start: usize,
    pub footer: Footer,
}

impl TableIndex {
    #[inline]
    pub fn filter(&self) -> &[u8] {
        &self.filter[self.filter_start..]
    }

    fn memory_bytes(&self) -> usize {
        // Dictionaries are counted by themselves.
        let slots = size_of_val(&*self.slots);
        let parts = self.index.memory_bytes() + slots + self.filter.len();
        parts + size_of::<TableIndex>()
    }
}

struct OpenFile(Arc<dyn ReadFile>);

/// One immutable sorted file. Shared; thread-safe. Aligned as its index is.
#[repr(align(64))]
pub struct Table {
    /// What the tree knows of it.
    pub meta: Arc<TableMeta>,
    path: PathBuf,
    shared: Arc<TableEnv>,
    this: Weak<Table>,
    index: ArcSwapOption<TableIndex>,
    index_used: AtomicBool,
    file: ArcSwapOption<OpenFile>,
    file_used: AtomicBool,
    ranges: OnceLock<Arc<RangeDeletes>>,
    obsolete: AtomicBool,
    /// Bytes in the file of blocks decoded for users' reads, until they are taken; and how many of
    /// these blocks were for reads that had none beside them.
    decoded: AtomicU64,
    apart: AtomicU64,
    /// The block that was decoded last for a read of a single one.
    last_single: AtomicUsize,
    blobs: OnceLock<Vec<Arc<Blob>>>,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Sets a flag; writes only if it is not set, so that readers on many cores share the line.
#[inline]
fn mark(flag: &AtomicBool) {
    if !flag.load(Relaxed) {
        flag.store(true, Relaxed);
    }
}

impl Table {
    /// The table of `meta` at `path`. Nothing is opened or read yet.
    pub fn new(meta: impl Into<Arc<TableMeta>>, path: PathBuf, env: &Arc<TableEnv>) -> Arc<Table> {
        Arc::new_cyclic(|this| Table {
            meta: meta.into(),
            path,
            shared: Arc::clone(env),
            this: Weak::clone(this),
            index: ArcSwapOption::empty(),
            index_used: AtomicBool::new(false),
            file: ArcSwapOption::empty(),
            file_used: AtomicBool::new(false),
            ranges: OnceLock::new(),
            obsolete: AtomicBool::new(false),
            decoded: AtomicU64::new(0),
            apart: AtomicU64::new(0),
            last_single: AtomicUsize::new(usize::MAX / 2),
            blobs: OnceLock::new(),
        })
    }

    /// Bytes in the file of the blocks that users' reads decoded since this was asked last, and how
    /// many of these were decoded for a read that had none beside it: a look-up, or a seek.
    pub fn take_decoded(&self) -> (u64, u64) {
        match self.decoded.load(Relaxed) {
            0 => (0, 0),
            _ => (self.decoded.swap(0, Relaxed), self.apart.swap(0, Relaxed)),
        }
    }

    /// Counts block `at`, which is decoded by itself, unless the one before was beside it: single
    /// reads of rows that follow one another are a scan, too.
    pub(super) fn count_single(&self, at: usize) {
        let last = self.last_single.swap(at, Relaxed);
        if last.abs_diff(at) > 1 {
            self.apart.fetch_add(1, Relaxed);
        }
    }

    /// Keeps the blob files that the table refers to for as long as the table. To be called once.
    pub fn hold_blobs(&self, blobs: Vec<Arc<Blob>>) {
        if !blobs.is_empty() {
            let _ = self.blobs.set(blobs);
        }
    }

    /// What a table file says of itself, and the number of the tree that it was written for: for
    /// a database whose manifest is lost.
    pub fn read_meta(env: &Env, path: &Path, id: FileId) -> Result<(u32, TableMeta)> {
        let file = env.fs.open(path)?;
        let file_bytes = file.len()?;
        let footer = read_footer(&*file, file_bytes)?;
        let bytes = read_section(&*file, footer.properties)?;
        let (tree, meta) = properties::decode(&bytes).ok_or_else(|| {
            let offset = footer.properties.offset;
            Error::corruption(path, offset, "the properties are malformed")
        })?;
        Ok((tree, TableMeta { id, file_bytes, ..meta }))
    }

    /// The file's number.
    #[inline]
    pub fn id(&self) -> FileId {
        self.meta.id
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A reference to itself, which exists as long as anyone can call this.
    pub(super) fn this(&self) -> Result<Arc<Table>> {
        self.this.upgrade().ok_or(Error::Closed)
    }

    pub(super) fn shared(&self) -> &TableEnv {
        &self.shared
    }

    /// Where the cache has a block.
    #[inline]
    pub(super) fn cache_key(&self, block: Handle) -> CacheKey {
        CacheKey { file: self.meta.id, offset: block.offset }
    }

    /// A data block, if the cache has it.
    #[inline]
    pub(super) fn block_in_memory(&self, table: &TableIndex, at: usize) -> Option<Arc<Block>> {
        let key = || self.cache_key(table.index.info(at).handle);
        self.shared.cache.get_at(&table.slots[at], key)
    }

    /// Begins to load from memory those blocks after `at` that the cache has.
    #[inline]
    pub(super) fn prepare_after(&self, table: &TableIndex, at: usize) {
        let slots = [1, 2, 3].map(|after| table.slots.get(at + after));
        self.shared.cache.prepare(slots, Block::prepare);
    }

    /// Gives a data block to the cache.
    pub(super) fn keep_in_memory(&self, table: &TableIndex, at: usize, block: &Arc<Block>) {
        let key = self.cache_key(table.index.info(at).handle);
        let left = self.shared.cache.insert(&table.slots[at], key, Arc::clone(block));
        left.into_iter().flatten().for_each(spare::keep);
    }

    /// A data block from the cache, or read and put there.
    #[inline]
    pub(super) fn cached_block(
        &self,
        table: &TableIndex,
        at: usize,
        hits: &mut u64,
    ) -> Result<Arc<Block>> {
        if let Some(block) = self.block_in_memory(table, at) {
            *hits += 1;
            return Ok(block);
        }
        self.fill_cache(table, at)
    }

    /// Reads a data block for the cache.
    #[cold]
    pub(super) fn fill_cache(&self, table: &TableIndex, at: usize) -> Result<Arc<Block>> {
        self.count_single(at);
        let block = Arc::new(self.read_block(table, &table.index.info(at))?);
        self.keep_in_memory(table, at, &block);
        Ok(block)
    }

    /// Reads and decodes one data block.
    fn read_block(&self, table: &TableIndex, info: &BlockInfo) -> Result<Block> {
        let length = info.handle.bytes as usize;
        let mut nanos = 0;
        let block = with_scratch(length, |frame| {
            let started = self.shared.meter.now_nanos();
            self.read_at(info.handle.offset, frame)?;
            nanos = self.shared.meter.now_nanos().saturating_sub(started);
            let activity = Some(Activity::ReadDecompress);
            self.decode_block(table, frame, info, Vec::new(), activity)
        })?;
        self.shared.recorder.add_all([
            (Counter::DataMisses, 1),
            (Counter::ReadBytes, length as u64),
            (Counter::BlockReadBytes, length as u64),
            (Counter::BlockReadNanos, nanos),
        ]);
        Ok(block)
    }

    /// Checks and decodes a data block into the memory of `image`, or that of a block which has
    /// left the cache; what decompressing it costs counts for `activity`.
    pub(super) fn decode_block(
        &self,
        table: &TableIndex,
        frame: &[u8],
        info: &BlockInfo,
        mut image: Vec<u8>,
        activity: Option<Activity>,
    ) -> Result<Block> {
        let dictionary = table.dictionary.as_deref();
        if activity == Some(Activity::ReadDecompress) {
            self.decoded.fetch_add(u64::from(info.handle.bytes), Relaxed);
        }
        let unpack = |frame: Frame<'_>| {
            if image.capacity() == 0 {
                image = spare::take(frame.raw_len);
            }
            match activity {
                Some(activity) if frame.codec != id::NONE => {
                    let started = self.shared.meter.begin(activity);
                    frame.unpack(dictionary, &mut image)?;
                    self.shared.meter.end(activity, started);
                    Ok(())
                }
                _ => frame.unpack(dictionary, &mut image),
            }
        };
        format::open_frame(frame)
            .and_then(unpack)
            .and_then(|()| Block::parse(image))
            .and_then(|block| {
                let expected = block.entries() == info.entries as usize;
                expected.then_some(block).ok_or("a block has not as many entries as its index says")
            })
            .map_err(|what| self.corrupt(info.handle.offset, what))
    }

    /// Damage in this file.
    pub(super) fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::corruption(&self.path, offset, what)
    }

    /// Runs `read` on the open file, opening it first if need be.
    pub(super) fn with_file<T>(&self, read: impl FnOnce(&dyn ReadFile) -> Result<T>) -> Result<T> {
        mark(&self.file_used);
        let guard = self.file.load();
        if let Some(open) = &*guard {
            return read(&*open.0);
        }
        drop(guard);
        let missing = |error: Error| {
            error.missing_is_damage(&self.path, "the manifest names it, but it is missing")
        };
        let open = Arc::new(OpenFile(self.shared.env.fs.open(&self.path).map_err(missing)?));
        if self.file.compare_and_swap(&None::<Arc<OpenFile>>, Some(Arc::clone(&open))).is_none() {
            self.shared.file_opened(self.this.clone());
        }
        read(&*open.0)
    }

    /// Keeps the file open for as long as the table: whoever removes it does not take it from us.
    pub fn keep_open(&self) -> Result<()> {
        let file = self.shared.env.fs.open(&self.path)?;
        let bytes = file.len()?;
        if bytes != self.meta.file_bytes {
            let what = format!("it has {bytes} bytes, {} were written", self.meta.file_bytes);
            return Err(self.corrupt(bytes.min(self.meta.file_bytes), what));
        }
        // Not among the files that are closed when they are too many.
        self.file.store(Some(Arc::new(OpenFile(file))));
        Ok(())
    }

    pub(super) fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.with_file(|file| file.read_at(offset, buf))
    }

    /// Runs `read` on index and filter, loaded if need be, without a reference of one's own.
    #[inline]
    pub(super) fn with_index<T>(
        &self,
        read: impl FnOnce(&Arc<TableIndex>) -> Result<T>,
    ) -> Result<T> {
        mark(&self.index_used);
        match &*self.index.load() {
            Some(index) => read(index),
            None => read(&self.load_index()?),
        }
    }

    /// Runs `look` on index and filter if they are in memory. That is no use of them: it does not
    /// keep them there.
    #[inline]
    pub(super) fn with_loaded<T>(&self, look: impl FnOnce(&TableIndex) -> T) -> Option<T> {
        self.index.load().as_ref().map(|index| look(index))
    }

    /// The index and filter, loaded if need be.
    pub(super) fn index(&self) -> Result<Arc<TableIndex>> {
        mark(&self.index_used);
        match self.index.load_full() {
            Some(index) => Ok(index),
            None => self.load_index(),
        }
    }

    #[cold]
    fn load_index(&self) -> Result<Arc<TableIndex>> {
        let loaded = Arc::new(self.read_index()?);
        self.shared.recorder.add(Counter::IndexMisses, 1);
        let slot = None::<Arc<TableIndex>>;
        if self.index.compare_and_swap(&slot, Some(Arc::clone(&loaded))).is_none() {
            self.shared.memory.add_meta(loaded.memory_bytes() as i64);
            self.shared.index_loaded(self.this.clone());
        }
        Ok(loaded)
    }

    /// Reads footer, dictionary, filter and index from the file, whatever is loaded.
    pub(super) fn read_index(&self) -> Result<TableIndex> {
        self.with_file(|file| {
            let file_bytes = file.len()?;
            if file_bytes != self.meta.file_bytes {
                let what = format!("{file_bytes} bytes long instead of {}", self.meta.file_bytes);
                return Err(self.corrupt(file_bytes.min(self.meta.file_bytes), what));
            }
            let footer = read_footer(file, file_bytes)?;
            let filter = read_section(file, footer.filter)?;
            if !filter::validate(&filter) {
                return Err(self.corrupt(footer.filter.offset, "the filter is malformed"));
            }
            let dictionary = read_dictionary(file, &footer)?;
            let dictionary = dictionary.map(|own| self.shared.dictionaries.share(own));
            let image = read_section(file, footer.index)?;
            let index = Index::parse(image, footer.data())
                .map_err(|what| self.corrupt(footer.index.offset, what))?;
            let (filter, filter_start) = align(&filter);
            let slots = (0..index.blocks()).map(|_| Slot::default()).collect();
            Ok(TableIndex { index, slots, dictionary, filter, filter_start, footer })
        })
    }

    /// The table's dictionary, if it has one; nothing else is read for it.
    pub fn dictionary(&self) -> Result<Option<Arc<Dictionary>>> {
        if let Some(loaded) = &*self.index.load() {
            return Ok(loaded.dictionary.clone());
        }
        let dictionary = self.with_file(|file| {
            let footer = read_footer(file, self.meta.file_bytes)?;
            read_dictionary(file, &footer)
        })?;
        Ok(dictionary.map(|own| self.shared.dictionaries.share(own)))
    }

    /// The range deletes of the table.
    pub fn range_deletes(&self) -> Result<Arc<RangeDeletes>> {
        if let Some(ranges) = self.ranges.get() {
            return Ok(Arc::clone(ranges));
        }
        let ranges = if self.meta.range_deletes == 0 {
            Arc::default()
        } else {
            let ranges = self.read_range_deletes(&self.index()?.footer)?;
            // Like its entries, those of an ingested table have number 0 in the file.
            Arc::new(match self.meta.ingest_seq {
                0 => ranges,
                seq => ranges.numbered(seq),
            })
        };
        if self.ranges.set(Arc::clone(&ranges)).is_ok() {
            self.shared.memory.add_meta(ranges.memory_bytes() as i64);
        }
        Ok(ranges)
    }

    pub(super) fn read_range_deletes(&self, footer: &Footer) -> Result<RangeDeletes> {
        let handle = footer.range_deletes;
        let bytes = self.with_file(|file| read_section(file, handle))?;
        let empty = bytes.is_empty();
        let ranges =
            if empty { Some(RangeDeletes::default()) } else { properties::decode_ranges(&bytes) };
        ranges.ok_or_else(|| self.corrupt(handle.offset, "the range deletes are malformed"))
    }

    /// At most `count` - 1 keys, ascending, that cut the table into about equal parts.
    pub fn split_points(&self, count: usize) -> Result<Vec<Vec<u8>>> {
        let table = self.index()?;
        let index = &table.index;
        let total = index.data_end();
        let mut points: Vec<Vec<u8>> = Vec::new();
        for at in 0..index.blocks().saturating_sub(1) {
            let due = (points.len() as u64 + 1) * total / count.max(1) as u64;
            if points.len() + 1 < count && index.info(at).handle.end() >= due {
                points.push(index.separator(at));
            }
        }
        points.dedup();
        Ok(points)
    }

    /// The data blocks, each with its separator (see [`Index`]).
    pub fn blocks(&self) -> Result<Vec<(Vec<u8>, BlockInfo)>> {
        let table = self.index()?;
        let index = &table.index;
        Ok((0..index.blocks()).map(|at| (index.separator(at), index.info(at))).collect())
    }

    /// About how many bytes of the file's data come before `key`.
    pub fn bytes_before(&self, key: &[u8]) -> Result<u64> {
        let table = self.index()?;
        let at = table.index.find(key);
        Ok(if at < table.index.blocks() {
            table.index.info(at).handle.offset
        } else {
            table.index.data_end()
        })
    }

    /// Has the file removed once no one holds the table any more.
    pub fn mark_obsolete(&self) {
        self.obsolete.store(true, Relaxed);
    }

    fn unload(&self) {
        if let Some(index) = self.index.swap(None) {
            self.shared.memory.add_meta(-(index.memory_bytes() as i64));
        }
    }
}

impl Evictable for Table {
    fn close_unused(&self) -> bool {
        if self.file_used.swap(false, Relaxed) {
            return self.file.load().is_none();
        }
        self.file.store(None);
        true
    }

    fn unload_unused(&self) -> bool {
        if self.index_used.swap(false, Relaxed) {
            return self.index.load().is_none();
        }
        self.unload();
        true
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.unload();
        if let Some(ranges) = self.ranges.get() {
            self.shared.memory.add_meta(-(ranges.memory_bytes() as i64));
        }
        if self.obsolete.load(Relaxed) {
            // Closed first: a file that has its name yet is closed at once.
            self.file.store(None);
            self.shared.remove_file(std::mem::take(&mut self.path));
        }
    }
}

/// Copies `bytes` to where an address is a multiple of 64, in a vector of its own.
fn align(bytes: &[u8]) -> (Vec<u8>, usize) {
    if bytes.is_empty() {
        return (Vec::new(), 0);
    }
    let mut aligned: Vec<u8> = Vec::with_capacity(bytes.len() + 64);
    let start = aligned.as_ptr().align_offset(64).min(63);
    aligned.resize(start, 0);
    aligned.extend_from_slice(bytes);
    (aligned, start)
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
