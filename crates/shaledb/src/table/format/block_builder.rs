//! Puts the image of a block together. See [`super::block`] for the layout.

use super::block::{Block, FLAG_FIXED_KEYS, FLAG_FIXED_VALUES, FLAG_WIDE, TRAILER_BYTES};
use crate::base::key::{Kind, SEQ_MAX, SeqNo, common_prefix};

/// What an entry takes beside its key and value: two ends and a tag.
const ENTRY_BYTES_MAX: usize = 2 * 2 + 8;
/// A block ends when its keys have so many bytes in full: some dozens of the longest.
const KEYS_BYTES_MAX: usize = 4 << 20;

/// Collects entries, which come in order, into one image at a time; its memory is used again.
#[derive(Debug)]
pub struct BlockBuilder {
    /// The values; at finish the other columns follow, so that values are copied once.
    image: Vec<u8>,
    /// Keys in full, since their prefix is known only at the end.
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    value_ends: Vec<u32>,
    /// `seq << 3 | kind` of each entry.
    tags: Vec<u64>,
    prefix_len: usize,
    first_len: usize,
    last_start: usize,
    min_seq: SeqNo,
    max_seq: SeqNo,
    all_puts: bool,
    fixed_keys: bool,
    fixed_values: bool,
    deletes: u64,
}

impl Default for BlockBuilder {
    fn default() -> BlockBuilder {
        BlockBuilder::new()
    }
}

impl BlockBuilder {
    /// An empty builder.
    pub fn new() -> BlockBuilder {
        BlockBuilder {
            image: Vec::new(),
            keys: Vec::new(),
            key_ends: Vec::new(),
            value_ends: Vec::new(),
            tags: Vec::new(),
            prefix_len: 0,
            first_len: 0,
            last_start: 0,
            min_seq: SeqNo::MAX,
            max_seq: 0,
            all_puts: true,
            fixed_keys: true,
            fixed_values: true,
            deletes: 0,
        }
    }

    /// Forgets all entries and keeps the memory.
    pub fn reset(&mut self) {
        let BlockBuilder { image, keys, key_ends, value_ends, tags, .. } = self;
        image.clear();
        keys.clear();
        key_ends.clear();
        value_ends.clear();
        tags.clear();
        let fresh = BlockBuilder::new();
        *self = BlockBuilder {
            image: std::mem::take(image),
            keys: std::mem::take(keys),
            key_ends: std::mem::take(key_ends),
            value_ends: std::mem::take(value_ends),
            tags: std::mem::take(tags),
            ..fresh
        };
    }

    /// Adds an entry, which must come after those before it.
    #[inline]
    pub fn add(&mut self, key: &[u8], seq: SeqNo, kind: Kind, value: &[u8]) {
        debug_assert!(seq <= SEQ_MAX);
        debug_assert!(self.is_empty() || self.last_key() <= key, "entries come in order");
        if self.key_ends.is_empty() {
            self.prefix_len = key.len();
            self.first_len = key.len();
        } else {
            // Keys ascend, so the first and the last have in common what all have.
            self.prefix_len = common_prefix(&self.keys[..self.prefix_len], key);
            self.fixed_keys &= key.len() == self.first_len;
            self.fixed_values &= value.len() == self.value_ends[0] as usize;
        }
        self.last_start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.key_ends.push(self.keys.len() as u32);
        self.image.extend_from_slice(value);
        self.value_ends.push(self.image.len() as u32);
        self.tags.push(seq << 3 | kind as u64);
        self.min_seq = self.min_seq.min(seq);
        self.max_seq = self.max_seq.max(seq);
        self.all_puts &= kind == Kind::Put;
        self.deletes += u64::from(kind == Kind::Delete);
    }

    /// How many entries there are.
    #[inline]
    pub fn entries(&self) -> usize {
        self.key_ends.len()
    }

    /// Whether there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.key_ends.is_empty()
    }

    /// How many entries are deletes.
    pub fn deletes(&self) -> u64 {
        self.deletes
    }

    /// The oldest and newest sequence number.
    pub fn seqs(&self) -> (SeqNo, SeqNo) {
        (self.min_seq, self.max_seq)
    }

    /// Whether any entry is other than a put with sequence number 0.
    pub fn tagged(&self) -> bool {
        !self.all_puts || self.max_seq != 0
    }

    /// Bytes of all keys in full, and of all values.
    pub fn bytes(&self) -> (u64, u64) {
        (self.keys.len() as u64, self.image.len() as u64)
    }

    /// The last key added.
    #[inline]
    pub fn last_key(&self) -> &[u8] {
        &self.keys[self.last_start..]
    }

    /// How large the image would be now, if offsets in it have 16 bits.
    #[inline]
    pub fn size(&self) -> usize {
        let count = self.key_ends.len();
        let prefixes = self.prefix_len * count.saturating_sub(1);
        let ends = 2 * (usize::from(!self.fixed_keys) + usize::from(!self.fixed_values));
        let each = self.tag_width() + ends;
        self.image.len() + self.keys.len() - prefixes + each * count + TRAILER_BYTES
    }

    /// Whether a block of `block_bytes` ends before this entry: it would be larger with it, or its
    /// keys take as much memory as they may, which is more than they do in the image.
    ///
    /// An entry that has less in common with those before it than they have with each other makes
    /// these longer. For that alone a block ends only if it is a quarter full, or would be twice as
    /// large.
    #[inline]
    pub fn ends_before(&self, key: &[u8], value_bytes: usize, block_bytes: usize) -> bool {
        if self.is_empty() {
            return false;
        }
        let size = self.size();
        let with = size + key.len() + value_bytes + ENTRY_BYTES_MAX;
        if with > block_bytes || self.keys.len() > KEYS_BYTES_MAX {
            return true;
        }
        let others = self.key_ends.len() - 1;
        // Near its end a block is looked at more closely; most have little in common.
        if with + self.prefix_len * others <= block_bytes {
            return false;
        }
        let common = common_prefix(&self.keys[..self.prefix_len], key);
        let longer = with + (self.prefix_len - common) * others;
        longer > block_bytes && (size >= block_bytes / 4 || longer > 2 * block_bytes)
    }

    #[inline]
    fn tag_width(&self) -> usize {
        if self.is_empty() || (self.all_puts && self.min_seq == self.max_seq) {
            return 0;
        }
        let widest = (self.max_seq - self.min_seq) << 3 | 7;
        (64 - widest.leading_zeros() as usize).div_ceil(8)
    }

    /// Completes the image. Only [`BlockBuilder::reset`] may follow.
    pub fn finish(&mut self) -> &[u8] {
        let count = self.key_ends.len();
        let values_len = self.image.len();
        let suffixes_len = self.keys.len() - self.prefix_len * count;
        let base_seq = if count == 0 { 0 } else { self.min_seq };
        let tag_width = self.tag_width();
        assert!(values_len.max(self.keys.len()) <= u32::MAX as usize, "lengths have 32 bits");
        assert!(self.value_ends.len() == count && self.tags.len() == count);
        assert!(tag_width <= 8 && (count == 0 || self.min_seq <= self.max_seq));
        let image = &mut self.image;
        image.reserve(self.prefix_len + suffixes_len + count * 16 + TRAILER_BYTES);
        image.extend_from_slice(&self.keys[..self.prefix_len]);
        let mut start = 0;
        for &end in &self.key_ends {
            image.extend_from_slice(&self.keys[start + self.prefix_len..end as usize]);
            start = end as usize;
        }
        assert_eq!(start, self.keys.len(), "every key is in the image");
        assert_eq!(image.len(), values_len + self.prefix_len + suffixes_len);
        if tag_width > 0 {
            for &tag in &self.tags {
                let tag = tag - (base_seq << 3);
                image.extend_from_slice(&tag.to_le_bytes()[..tag_width]);
            }
        }
        let wide = suffixes_len.max(values_len) > usize::from(u16::MAX);
        let mut flags = if wide { FLAG_WIDE } else { 0 };
        if self.fixed_keys {
            flags |= FLAG_FIXED_KEYS;
        } else {
            // A key's end among the suffixes: the prefixes up to it are not there.
            let prefix_len = self.prefix_len as u32;
            let ends = self.key_ends.iter().zip(1..).map(|(end, count)| end - prefix_len * count);
            put_ends(image, ends, wide);
        }
        if self.fixed_values {
            flags |= FLAG_FIXED_VALUES;
        } else {
            put_ends(image, self.value_ends.iter().copied(), wide);
        }
        for field in [count, self.prefix_len, suffixes_len, values_len] {
            image.extend_from_slice(&(field as u32).to_le_bytes());
        }
        image.extend_from_slice(&base_seq.to_le_bytes());
        image.extend_from_slice(&[tag_width as u8, flags, 0, 0, 0, 0, 0, 0]);
        debug_assert!(Block::parse(image.clone()).is_ok_and(|block| block.entries() == count));
        image
    }
}

fn put_ends(image: &mut Vec<u8>, ends: impl Iterator<Item = u32>, wide: bool) {
    for end in ends {
        debug_assert!(wide || end <= u32::from(u16::MAX));
        if wide {
            image.extend_from_slice(&end.to_le_bytes());
        } else {
            image.extend_from_slice(&(end as u16).to_le_bytes());
        }
    }
}
