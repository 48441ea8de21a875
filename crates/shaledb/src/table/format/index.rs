//! The index of a table: for each data block a separator key and a [`BlockInfo`].
//!
//! It is an image in the layout of [`super::block`], key = separator, value = block info. A
//! separator is at or after the last key of its block and before the first key of the next one; if
//! versions of one key spill over from a block to the next, it is that key. The heads of all
//! separators are kept beside in one array, so that a search runs over adjacent numbers and reads
//! the image about once.

use super::block::Block;
use super::block_builder::BlockBuilder;
use super::frame::Handle;
use crate::base::coding::{Decoder, put_varint};
use crate::base::key::{Kind, common_prefix, head};
use std::cmp::Ordering;
use std::ops::Range;

/// What the index says of a data block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockInfo {
    /// Where the block is.
    pub handle: Handle,
    /// How many entries it has.
    pub entries: u32,
    /// Whether any entry is other than a put with sequence number 0.
    pub tagged: bool,
    /// Whether any entry is a delete.
    pub deletes: bool,
}

impl BlockInfo {
    /// Appends: offset varint, length varint, (entries << 2 | deletes << 1 | tagged) varint.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.handle.offset);
        put_varint(out, u64::from(self.handle.bytes));
        let flags = u64::from(self.deletes) << 1 | u64::from(self.tagged);
        put_varint(out, u64::from(self.entries) << 2 | flags);
    }

    /// Reads what [`BlockInfo::encode`] wrote; `None` if the bytes are anything else.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<BlockInfo> {
        let mut decoder = Decoder::new(bytes);
        let offset = decoder.varint()?;
        let bytes = u32::try_from(decoder.varint()?).ok()?;
        let packed = decoder.varint()?;
        offset.checked_add(u64::from(bytes))?;
        decoder.is_empty().then_some(BlockInfo {
            handle: Handle { offset, bytes },
            entries: u32::try_from(packed >> 2).ok()?,
            tagged: packed & 1 != 0,
            deletes: packed & 2 != 0,
        })
    }
}

/// Builds the image of an index.
#[derive(Debug, Default)]
pub struct IndexBuilder {
    builder: BlockBuilder,
    /// Where the last block ends.
    end: u64,
    info: Vec<u8>,
}

impl IndexBuilder {
    /// Adds the next block.
    pub fn add(&mut self, separator: &[u8], info: &BlockInfo) {
        assert!(info.entries > 0 && info.handle.bytes > 0, "a block has entries");
        assert!(
            self.builder.is_empty() || info.handle.offset == self.end,
            "blocks lie one behind the other"
        );
        self.end = info.handle.end();
        self.info.clear();
        info.encode(&mut self.info);
        debug_assert_eq!(BlockInfo::decode(&self.info), Some(*info));
        self.builder.add(separator, 0, Kind::Put, &self.info);
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.builder.entries()
    }

    /// About how large the index would be now.
    pub fn size(&self) -> usize {
        self.builder.size()
    }

    /// The image.
    pub fn finish(&mut self) -> &[u8] {
        self.builder.finish()
    }
}

/// Puts into `out` a short key at or after `last` and before `next`; `last` itself if they are
/// equal.
pub fn separator(last: &[u8], next: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let common = common_prefix(last, next);
    // The byte after the common part may go up if that stays below `next`'s; any later byte may
    // always. What follows it is then not needed.
    let raised = (common..last.len()).find(|&at| {
        last[at] < 0xff && (at > common || next.get(common).is_some_and(|&b| last[at] + 1 < b))
    });
    match raised {
        Some(at) if at + 1 < last.len() => {
            out.extend_from_slice(&last[..at]);
            out.push(last[at] + 1);
        }
        _ => out.extend_from_slice(last),
    }
    debug_assert!(out.as_slice() >= last && (out.as_slice() < next || last >= next));
}

/// For each so many blocks it is kept how many entries are before them.
const COUNTED_BLOCKS: usize = 16;

/// A loaded index.
#[derive(Debug)]
pub struct Index {
    block: Block,
    heads: Vec<u64>,
    /// The entries before each [`COUNTED_BLOCKS`]th block.
    counts: Vec<u64>,
}

impl Index {
    /// Checks an image: every entry describes a block, and the blocks lie one after the other from
    /// the start of `data` up to its end.
    pub fn parse(image: Vec<u8>, data: Range<u64>) -> Result<Index, &'static str> {
        let block = Block::parse(image)?;
        let mut heads = Vec::with_capacity(block.entries());
        let mut counts = Vec::with_capacity(block.entries().div_ceil(COUNTED_BLOCKS));
        let mut count = 0;
        let mut at = data.start;
        for entry in 0..block.entries() {
            let info =
                BlockInfo::decode(block.value(entry)).ok_or("an index entry is malformed")?;
            if info.handle.offset != at || info.entries == 0 {
                return Err("the index does not cover the data blocks");
            }
            at = info.handle.end();
            let head = block.suffix_head(entry);
            if heads.last().is_some_and(|&last| last > head) {
                return Err("the index is not in order");
            }
            heads.push(head);
            if entry % COUNTED_BLOCKS == 0 {
                counts.push(count);
            }
            count += u64::from(info.entries);
        }
        if at != data.end {
            return Err("the index does not cover the data blocks");
        }
        assert_eq!(heads.len(), block.entries());
        debug_assert_eq!(counts.len(), heads.len().div_ceil(COUNTED_BLOCKS));
        Ok(Index { block, heads, counts })
    }

    /// How many blocks there are.
    #[inline]
    pub fn blocks(&self) -> usize {
        self.heads.len()
    }

    /// The first block whose separator is at or after `key`, or the number of blocks.
    #[inline]
    pub fn find(&self, key: &[u8]) -> usize {
        let prefix = self.block.prefix();
        let Some(target) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { self.blocks() };
        };
        let target_head = head(target);
        let mut at = self.heads.partition_point(|&head| head < target_head);
        if self.heads.get(at) != Some(&target_head) || self.block.suffix(at) >= target {
            return at;
        }
        // Separators that differ only after their heads.
        let mut high = at + self.heads[at..].partition_point(|&head| head == target_head);
        while at < high {
            let middle = (at + high) / 2;
            if self.block.suffix(middle) < target { at = middle + 1 } else { high = middle }
        }
        debug_assert!(at <= self.blocks());
        at
    }

    /// Whether the separator of block `at`, which must exist, is at or after `key`. Mostly its head
    /// tells, and the image is not read.
    #[inline]
    pub fn reaches(&self, at: usize, key: &[u8]) -> bool {
        let prefix = self.block.prefix();
        let Some(rest) = key.strip_prefix(prefix) else { return key < prefix };
        match self.heads[at].cmp(&head(rest)) {
            Ordering::Equal => self.block.suffix(at) >= rest,
            order => order == Ordering::Greater,
        }
    }

    /// What is known of block `at`, which must exist.
    #[inline]
    pub fn info(&self, at: usize) -> BlockInfo {
        debug_assert!(at < self.blocks());
        // Checked when the index was parsed.
        BlockInfo::decode(self.block.value(at)).unwrap_or_default()
    }

    /// How many entries all blocks before block `at` have; that may be the number of blocks.
    pub fn entries_before(&self, at: usize) -> u64 {
        let Some(counted) = at.min(self.blocks()).checked_sub(1) else { return 0 };
        let counted = counted / COUNTED_BLOCKS;
        let rest = counted * COUNTED_BLOCKS..at.min(self.blocks());
        self.counts[counted] + rest.map(|at| u64::from(self.info(at).entries)).sum::<u64>()
    }

    /// The block that has the entry with so many before it, or else the last one. There must be a
    /// block.
    pub fn block_of(&self, entry: u64) -> usize {
        let counted = self.counts.partition_point(|&before| before <= entry).saturating_sub(1);
        let mut at = counted * COUNTED_BLOCKS;
        let mut before = self.counts[counted];
        while at + 1 < self.blocks() {
            before += u64::from(self.info(at).entries);
            if entry < before {
                break;
            }
            at += 1;
        }
        debug_assert!(at < self.blocks());
        at
    }

    /// Whether the separator of block `at` is `key`: then versions of the key may be found in the
    /// block after it, too.
    #[inline]
    pub fn separator_is(&self, at: usize, key: &[u8]) -> bool {
        self.block.key_is(at, key)
    }

    /// The separator of block `at`.
    pub fn separator(&self, at: usize) -> Vec<u8> {
        self.block.key(at)
    }

    /// Where the data blocks end.
    pub fn data_end(&self) -> u64 {
        self.blocks().checked_sub(1).map_or(0, |last| self.info(last).handle.end())
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.block.image().len() + 8 * (self.heads.len() + self.counts.len())
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
