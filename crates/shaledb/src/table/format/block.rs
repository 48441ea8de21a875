//! A block: sorted entries as columns, searched as they lie, without decoding.
//!
//! ```text
//! image   := values        all values, concatenated
//!          | prefix        what all keys begin with
//!          | suffixes      what is left of each key, concatenated
//!          | tags          per entry (seq - base seq) << 3 | kind, `tag width` bytes; if width > 0
//!          | key ends      per entry the end of its suffix, u16 or u32; unless keys are fixed
//!          | value ends    per entry the end of its value, u16 or u32; unless values are fixed
//!          | trailer
//! trailer := entries u32 | prefix length u32 | suffixes length u32 | values length u32
//!          | base seq u64 | tag width u8 | flags u8 | 6 zero bytes
//! flags   := 1: ends are u32 | 2: all suffixes have one length | 4: all values have one length
//! ```
//!
//! With tag width 0 every entry is a put with the base sequence number. [`Block::parse`] checks all
//! bounds once; after that no access can leave the image.

use crate::base::key::{Kind, SEQ_MAX, SeqNo, head};
use crate::base::prefetch;
use crate::cache::Weigh;
use std::sync::Arc;

pub(super) const FLAG_WIDE: u8 = 1;
pub(super) const FLAG_FIXED_KEYS: u8 = 2;
pub(super) const FLAG_FIXED_VALUES: u8 = 4;

/// Bytes of the fixed part that ends every image.
pub(super) const TRAILER_BYTES: usize = 32;

const _: () = assert!(TRAILER_BYTES == 4 * 4 + 8 + 2 + 6);

/// Where the ends of a column's items are.
#[derive(Clone, Copy, Debug)]
enum Ends {
    /// All items have this length.
    Fixed(usize),
    /// 16-bit ends begin here.
    Narrow(usize),
    /// 32-bit ends begin here.
    Wide(usize),
}

/// A checked block. See the module for its layout.
#[derive(Debug)]
pub struct Block {
    bytes: Vec<u8>,
    entries: usize,
    prefix_start: usize,
    suffix_start: usize,
    tags_start: usize,
    key_ends: Ends,
    value_ends: Ends,
    base_seq: SeqNo,
    tag_width: usize,
}

impl Default for Block {
    /// A block without entries.
    fn default() -> Block {
        Block {
            bytes: Vec::new(),
            entries: 0,
            prefix_start: 0,
            suffix_start: 0,
            tags_start: 0,
            key_ends: Ends::Fixed(0),
            value_ends: Ends::Fixed(0),
            base_seq: 0,
            tag_width: 0,
        }
    }
}

/// What an allocator takes for so many bytes, which is what is resident: sizes of memory are mostly
/// a power of two and quarters of it more. (Blocks are cut so that theirs is one of them.)
pub fn allocated(bytes: usize) -> usize {
    const SMALL: usize = 1024;
    if bytes <= SMALL { bytes } else { bytes.next_multiple_of(bytes.next_power_of_two() / 8) }
}

impl Weigh for Block {
    fn bytes(&self) -> usize {
        allocated(self.bytes.capacity()) + size_of::<Block>() + 32
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize)
}

impl Block {
    /// Checks an image and takes it over. The error says what is wrong with it.
    pub fn parse(bytes: Vec<u8>) -> Result<Block, &'static str> {
        let trailer_start = bytes.len().checked_sub(TRAILER_BYTES).ok_or("a block is too short")?;
        let trailer = &bytes[trailer_start..];
        let field = |at: usize| u32_at(trailer, at).ok_or("a block is too short");
        let (entries, prefix_len) = (field(0)?, field(4)?);
        let (suffixes_len, values_len) = (field(8)?, field(12)?);
        let base_seq = (field(16)? as u64) | (field(20)? as u64) << 32;
        let (tag_width, flags) = (usize::from(trailer[24]), trailer[25]);
        if trailer[26..].iter().any(|&byte| byte != 0)
            || flags & !(FLAG_WIDE | FLAG_FIXED_KEYS | FLAG_FIXED_VALUES) != 0
        {
            return Err("a block has unknown flags");
        }
        if tag_width > 8 || base_seq > SEQ_MAX {
            return Err("a block's tags are malformed");
        }
        // Columns of which each item takes nothing do not bound it.
        if entries > bytes.len() {
            return Err("a block has more entries than bytes");
        }
        let prefix_start = values_len;
        // Sums of a few 32-bit lengths: no overflow in 64 bits.
        let suffix_start = prefix_start + prefix_len;
        let tags_start = suffix_start + suffixes_len;
        let ends_start = tags_start + entries * tag_width;
        let end_width = if flags & FLAG_WIDE != 0 { 4 } else { 2 };
        let (key_ends, value_start) =
            column(entries, suffixes_len, flags & FLAG_FIXED_KEYS != 0, ends_start, end_width)?;
        let (value_ends, end) =
            column(entries, values_len, flags & FLAG_FIXED_VALUES != 0, value_start, end_width)?;
        if end != trailer_start {
            return Err("the columns of a block do not fill it");
        }
        let block = Block {
            bytes,
            entries,
            prefix_start,
            suffix_start,
            tags_start,
            key_ends,
            value_ends,
            base_seq,
            tag_width,
        };
        block.check_ends(key_ends, suffixes_len)?;
        block.check_ends(value_ends, values_len)?;
        block.check_tags()?;
        debug_assert!(block.prefix_start <= block.suffix_start);
        debug_assert!(block.suffix_start <= block.tags_start && block.tags_start <= ends_start);
        Ok(block)
    }

    fn check_ends(&self, ends: Ends, length: usize) -> Result<(), &'static str> {
        let mut last = 0;
        let mut ascending = true;
        match ends {
            Ends::Fixed(_) => return Ok(()),
            Ends::Narrow(start) => {
                for end in self.bytes[start..start + 2 * self.entries].as_chunks::<2>().0 {
                    let end = usize::from(u16::from_le_bytes(*end));
                    ascending &= last <= end;
                    last = end;
                }
            }
            Ends::Wide(start) => {
                for end in self.bytes[start..start + 4 * self.entries].as_chunks::<4>().0 {
                    let end = u32::from_le_bytes(*end) as usize;
                    ascending &= last <= end;
                    last = end;
                }
            }
        }
        if ascending && last == length { Ok(()) } else { Err("the offsets of a block are wrong") }
    }

    fn check_tags(&self) -> Result<(), &'static str> {
        if self.tag_width == 0 {
            return Ok(());
        }
        // Kinds 0, 1, 3 and 4 may be stored; a range delete is not an entry.
        let known = (0..self.entries).fold(true, |known, index| {
            known
                & (0b1_1011 >> (self.bytes[self.tags_start + index * self.tag_width] & 7) & 1 != 0)
        });
        if known { Ok(()) } else { Err("a block has an entry of an unknown kind") }
    }

    /// Gives the image back, so that its memory can be used again.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The image.
    pub fn image(&self) -> &[u8] {
        &self.bytes
    }

    /// How many entries there are.
    #[inline]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Whether all entries are puts with one and the same sequence number, so that no key is there
    /// twice.
    #[inline]
    pub fn is_uniform(&self) -> bool {
        self.tag_width == 0
    }

    /// Whether any entry is other than a put with sequence number 0.
    #[inline]
    pub fn tagged(&self) -> bool {
        self.tag_width != 0 || self.base_seq != 0
    }

    /// What all keys begin with.
    #[inline]
    pub fn prefix(&self) -> &[u8] {
        &self.bytes[self.prefix_start..self.suffix_start]
    }

    /// What most suffixes have room in: twice their mean.
    #[inline]
    pub fn suffix_bytes_typical(&self) -> usize {
        (2 * (self.tags_start - self.suffix_start)).checked_div(self.entries).unwrap_or(0)
    }

    /// Bytes of all keys in full.
    pub fn key_bytes(&self) -> u64 {
        let suffixes = self.tags_start - self.suffix_start;
        (self.prefix().len() as u64) * self.entries as u64 + suffixes as u64
    }

    /// Bytes of all values.
    pub fn value_bytes(&self) -> u64 {
        self.prefix_start as u64
    }

    #[inline]
    fn range(&self, ends: Ends, index: usize) -> (usize, usize) {
        debug_assert!(index < self.entries);
        match ends {
            Ends::Fixed(length) => (index * length, index * length + length),
            Ends::Narrow(start) => {
                let end = |index: usize| {
                    let at = start + 2 * index;
                    usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
                };
                (if index == 0 { 0 } else { end(index - 1) }, end(index))
            }
            Ends::Wide(start) => {
                let end = |index: usize| u32_at(&self.bytes, start + 4 * index).unwrap_or(0);
                (if index == 0 { 0 } else { end(index - 1) }, end(index))
            }
        }
    }

    /// What follows the prefix in the key of entry `index`.
    #[inline]
    pub fn suffix(&self, index: usize) -> &[u8] {
        let (start, end) = self.range(self.key_ends, index);
        debug_assert!(start <= end && self.suffix_start + end <= self.tags_start);
        &self.bytes[self.suffix_start + start..self.suffix_start + end]
    }

    /// Where in the image the value of entry `index` is.
    #[inline]
    pub fn value_range(&self, index: usize) -> (usize, usize) {
        self.range(self.value_ends, index)
    }

    /// The value of entry `index`.
    #[inline]
    pub fn value(&self, index: usize) -> &[u8] {
        let (start, end) = self.value_range(index);
        debug_assert!(start <= end && end <= self.prefix_start);
        &self.bytes[start..end]
    }

    /// Puts the key of entry `index` into `out`, replacing what was there.
    #[inline]
    pub fn key_into(&self, index: usize, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.prefix());
        out.extend_from_slice(self.suffix(index));
    }

    /// The key of entry `index`.
    pub fn key(&self, index: usize) -> Vec<u8> {
        let mut key = Vec::new();
        self.key_into(index, &mut key);
        key
    }

    /// Eight bytes at `at`, which the trailer guarantees to exist, as they lie.
    #[inline]
    fn word(&self, at: usize) -> [u8; 8] {
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[at..at + 8]);
        word
    }

    /// The sequence number and kind of entry `index`.
    #[inline]
    pub fn tag(&self, index: usize) -> (SeqNo, Kind) {
        if self.tag_width == 0 {
            return (self.base_seq, Kind::Put);
        }
        let word = u64::from_le_bytes(self.word(self.tags_start + index * self.tag_width));
        let tag = word & (u64::MAX >> (64 - 8 * self.tag_width));
        (self.base_seq + (tag >> 3), Kind::from_u8((tag & 7) as u8).unwrap_or(Kind::Put))
    }

    /// The sequence number of entry `index`.
    #[inline]
    pub fn seq(&self, index: usize) -> SeqNo {
        self.tag(index).0
    }

    /// How many entries are deletes.
    pub fn count_deletes(&self) -> u64 {
        if self.tag_width == 0 {
            return 0;
        }
        (0..self.entries).filter(|&index| self.tag(index).1 == Kind::Delete).count() as u64
    }

    /// Whether all keys come before `key`.
    #[inline]
    pub fn is_before(&self, key: &[u8]) -> bool {
        let Some(last) = self.entries.checked_sub(1) else { return true };
        match key.strip_prefix(self.prefix()) {
            Some(rest) => self.suffix(last) < rest,
            None => self.prefix() < key,
        }
    }

    /// The first eight bytes of a suffix as a big-endian number, zero-padded.
    #[inline]
    pub(super) fn suffix_head(&self, index: usize) -> u64 {
        let (start, end) = self.range(self.key_ends, index);
        let word = u64::from_be_bytes(self.word(self.suffix_start + start));
        let length = end - start;
        if length >= 8 {
            word
        } else {
            // What follows the suffix is not part of it.
            word & !(u64::MAX >> (8 * length))
        }
    }

    /// Begins to load what steps through it read first: the keys and what is kept of each entry, or
    /// samples of these if they are long, and the first value.
    #[inline]
    pub fn prepare(&self) {
        prefetch::spread(&self.bytes[self.prefix_start..]);
        if let Some(first) = self.bytes.first() {
            prefetch::line(first);
        }
    }

    /// The first entry at or after (key, seq) in entry order, or the number of entries.
    #[inline]
    pub fn lower_bound(&self, key: &[u8], seq: SeqNo) -> usize {
        prefetch::spread(&self.bytes[self.suffix_start..self.tags_start]);
        let prefix = self.prefix();
        let Some(target) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { self.entries };
        };
        let target_head = head(target);
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = (low + high) / 2;
            let middle_head = self.suffix_head(middle);
            let before = if middle_head == target_head {
                match self.suffix(middle).cmp(target) {
                    std::cmp::Ordering::Less => true,
                    std::cmp::Ordering::Equal => self.seq(middle) > seq,
                    std::cmp::Ordering::Greater => false,
                }
            } else {
                middle_head < target_head
            };
            if before { low = middle + 1 } else { high = middle }
        }
        debug_assert!(low <= self.entries);
        low
    }

    /// Whether the key of entry `index` is `key`.
    #[inline]
    pub fn key_is(&self, index: usize, key: &[u8]) -> bool {
        key.strip_prefix(self.prefix()) == Some(self.suffix(index))
    }
}

/// Where a column's ends are, and what follows them.
fn column(
    entries: usize,
    length: usize,
    fixed: bool,
    start: usize,
    width: usize,
) -> Result<(Ends, usize), &'static str> {
    if fixed {
        let each = length.checked_div(entries).unwrap_or(0);
        if each * entries != length {
            return Err("the offsets of a block are wrong");
        }
        Ok((Ends::Fixed(each), start))
    } else {
        let ends = if width == 4 { Ends::Wide(start) } else { Ends::Narrow(start) };
        Ok((ends, start + entries * width))
    }
}

/// A part of a block that keeps the block in memory: a value, without a copy.
#[derive(Clone, Debug)]
pub struct BlockSlice {
    block: Arc<Block>,
    start: u32,
    end: u32,
}

impl BlockSlice {
    /// The value of entry `index` of `block`.
    #[inline]
    pub fn value_of(block: Arc<Block>, index: usize) -> BlockSlice {
        let (start, end) = block.value_range(index);
        BlockSlice { block, start: start as u32, end: end as u32 }
    }
}

impl std::ops::Deref for BlockSlice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.block.bytes[self.start as usize..self.end as usize]
    }
}

#[cfg(test)]
#[path = "block_tests.rs"]
mod tests;
