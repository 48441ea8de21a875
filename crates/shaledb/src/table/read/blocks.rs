//! Data blocks of a table: from the cache, where they are uncompressed or compressed, or from the
//! file.

use super::reader::{Table, TableIndex};
use super::scratch::with_scratch;
use crate::base::activity::Activity;
use crate::base::error::Result;
use crate::base::stats::Counter;
use crate::cache::CacheKey;
use crate::table::format::compress::id;
use crate::table::format::{self, Block, BlockInfo, FRAME_BYTES, Frame, Handle};
use std::sync::Arc;

impl Table {
    /// Where the cache has a block.
    #[inline]
    pub(super) fn cache_key(&self, block: Handle) -> CacheKey {
        CacheKey { file: self.meta.id, offset: block.offset }
    }

    /// A data block, if the cache has it uncompressed.
    #[inline]
    pub(super) fn block_in_memory(&self, table: &TableIndex, at: usize) -> Option<Arc<Block>> {
        let key = || self.cache_key(table.index.info(at).handle);
        self.shared().cache.get_at(&table.slots[at], key)
    }

    /// A data block, if the cache has it compressed: decompressed into the memory that `image`
    /// gives. To be asked after [`Table::block_in_memory`].
    #[inline]
    pub(super) fn block_unpacked(
        &self,
        table: &TableIndex,
        at: usize,
        image: impl FnOnce() -> Vec<u8>,
    ) -> Option<Block> {
        let info = table.index.info(at);
        let frame = self.shared().cache.packed(&self.cache_key(info.handle))?;
        let activity = Some(Activity::ReadDecompress);
        // It was checked when it came. If memory is damaged, the file is asked.
        let block = format::open_checked(&frame)
            .ok()
            .map(|frame| self.unpack_block(table, frame, &info, image(), activity))?
            .ok()?;
        self.shared().recorder.add(Counter::DataUnpacked, 1);
        Some(block)
    }

    /// Gives the cache a data block that it did not have uncompressed. If the block was read, so
    /// that the cache may not have it compressed either, `frame` is what was read.
    pub(super) fn keep_in_memory(
        &self,
        table: &TableIndex,
        at: usize,
        block: &Arc<Block>,
        frame: Option<&[u8]>,
    ) {
        let handle = table.index.info(at).handle;
        let key = self.cache_key(handle);
        let packed_bytes = packed_bytes(handle, block);
        if let Some(frame) = frame.filter(|_| packed_bytes > 0) {
            self.shared().cache.insert_packed(key, format::without_checksum(frame));
        }
        self.shared().cache.insert(&table.slots[at], key, Arc::clone(block), packed_bytes);
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
        self.block_or_read(table, at)
    }

    /// A data block that the cache has compressed, or has not; it then has it uncompressed.
    #[cold]
    fn block_or_read(&self, table: &TableIndex, at: usize) -> Result<Arc<Block>> {
        if let Some(block) = self.block_unpacked(table, at, Vec::new) {
            let block = Arc::new(block);
            self.keep_in_memory(table, at, &block, None);
            return Ok(block);
        }
        let info = table.index.info(at);
        let length = info.handle.bytes as usize;
        let mut nanos = 0;
        let block = with_scratch(length, |frame| {
            nanos = self.read_one_at(info.handle.offset, frame)?;
            let activity = Some(Activity::ReadDecompress);
            let block = self.decode_block(table, frame, &info, Vec::new(), activity)?;
            let block = Arc::new(block);
            self.keep_in_memory(table, at, &block, Some(frame));
            Ok(block)
        })?;
        self.shared().recorder.add_all([
            (Counter::DataMisses, 1),
            (Counter::ReadBytes, length as u64),
            (Counter::BlockReadBytes, length as u64),
            (Counter::BlockReadNanos, nanos),
        ]);
        Ok(block)
    }

    /// Reads the frame of one block; answers how many nanoseconds that took.
    pub(super) fn read_one_at(&self, offset: u64, frame: &mut [u8]) -> Result<u64> {
        let started = self.shared().meter.now_nanos();
        self.read_at(offset, frame)?;
        let nanos = self.shared().meter.now_nanos().saturating_sub(started);
        self.shared().cache.note_read(nanos);
        Ok(nanos)
    }

    /// Checks and decodes a data block into the memory of `image`; what decompressing it costs
    /// counts for `activity`.
    pub(super) fn decode_block(
        &self,
        table: &TableIndex,
        frame: &[u8],
        info: &BlockInfo,
        image: Vec<u8>,
        activity: Option<Activity>,
    ) -> Result<Block> {
        let frame =
            format::open_frame(frame).map_err(|what| self.corrupt(info.handle.offset, what))?;
        self.unpack_block(table, frame, info, image, activity)
    }

    fn unpack_block(
        &self,
        table: &TableIndex,
        frame: Frame<'_>,
        info: &BlockInfo,
        mut image: Vec<u8>,
        activity: Option<Activity>,
    ) -> Result<Block> {
        let dictionary = table.dictionary.as_deref();
        let of_users = activity == Some(Activity::ReadDecompress) && frame.codec != id::NONE;
        let began = if of_users { self.shared().meter.now_nanos() } else { 0 };
        if activity == Some(Activity::ReadDecompress) {
            self.note_decoded(info.handle.bytes);
        }
        let unpacked = match activity {
            Some(activity) if frame.codec != id::NONE => {
                let started = self.shared().meter.begin(activity);
                frame.unpack(dictionary, &mut image).map(|()| {
                    self.shared().meter.end(activity, started);
                })
            }
            _ => frame.unpack(dictionary, &mut image),
        };
        let block = unpacked
            .and_then(|()| Block::parse(image))
            .and_then(|block| {
                let expected = block.entries() == info.entries as usize;
                expected.then_some(block).ok_or("a block has not as many entries as its index says")
            })
            .map_err(|what| self.corrupt(info.handle.offset, what))?;
        if of_users {
            let nanos = self.shared().meter.now_nanos().saturating_sub(began);
            self.shared().cache.note_unpack(nanos);
        }
        Ok(block)
    }
}

/// What the compressed tier would keep of a block; 0 if the block is stored as it is.
fn packed_bytes(handle: Handle, block: &Block) -> usize {
    let bytes = handle.bytes as usize;
    if bytes < block.image().len() + FRAME_BYTES { bytes } else { 0 }
}

#[cfg(all(test, not(shuttle)))]
#[path = "blocks_tests.rs"]
mod tests;
