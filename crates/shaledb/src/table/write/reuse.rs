//! Blocks of other tables that are added as they are.

use super::options::TableDictionary;
use super::writer::{TableWriter, out_of_order};
use crate::base::coding::hash;
use crate::base::error::Result;
use crate::base::key::Kind;
use crate::table::format::{Block, BlockInfo, RawBlock, compress, frame_codec, put_frame};
use crate::table::meta::Why;
use std::cmp::Ordering;
use std::sync::Arc;

impl TableWriter {
    /// Whether the block is as this table would write it, so that it may be added as it is.
    ///
    /// - It was made by this table's codec, whatever the level, and with this table's dictionary,
    ///   which, while that is open, may become that of the block. Where the engine has chosen a
    ///   cheaper codec, a first block may bring its dictionary for those like it. A plain block is
    ///   taken if blocks that were tried lately did not shrink, as it may come from a level without
    ///   compression.
    /// - Its size is that of a block here, and blocks stay on average at least half full: the one
    ///   that is open ends early for this one.
    pub fn takes_block(&self, raw: &RawBlock<'_>) -> bool {
        let wanted = compress::id_of(self.options.codec);
        let made_here = match frame_codec(raw.bytes) {
            Some(compress::id::NONE) => {
                wanted == compress::id::NONE || self.plain_believed > 0 && !raw.untried
            }
            Some(compress::id::ZSTD_DICTIONARY) => {
                self.can_become(raw) || self.shares(raw) || self.can_adopt()
            }
            codec => {
                // The engine's choice may be a cheaper one, but this one has been paid for.
                let is_smaller = self.options.why != Why::Set && codec == Some(compress::id::ZSTD);
                let is_adopted = matches!(self.options.dictionary, TableDictionary::None);
                (codec == Some(wanted) || is_smaller)
                    && (self.samples.is_none() || self.can_become(raw))
                    && (self.dictionary.is_none() || is_adopted)
            }
        };
        let (image, open) = (raw.block.image().len(), u64::from(!self.builder.is_empty()));
        let block_bytes = self.options.block_bytes;
        let blocks = self.meta.blocks + open + 1;
        let bytes = self.meta.raw_bytes + open * self.builder.size() as u64 + image as u64;
        made_here
            && (2 * image <= 3 * block_bytes || raw.block.entries() == 1)
            && bytes >= blocks * block_bytes as u64 / 2
    }

    /// Whether the dictionary of a block can still become this table's.
    fn can_become(&self, raw: &RawBlock<'_>) -> bool {
        self.samples.is_some()
            && match &self.options.dictionary {
                TableDictionary::None => false,
                TableDictionary::OfTable => true,
                TableDictionary::Given(own) => raw.dictionary.is_some_and(|other| own.is(other)),
            }
    }

    /// Whether a block's dictionary can become this table's for the sake of reused blocks alone.
    fn can_adopt(&self) -> bool {
        self.options.why != Why::Set
            && matches!(self.options.dictionary, TableDictionary::None)
            && self.dictionary.is_none()
            && self.meta.blocks == 0
            && self.builder.is_empty()
    }

    /// Whether the block was made with this table's dictionary.
    fn shares(&self, raw: &RawBlock<'_>) -> bool {
        match (&self.dictionary, raw.dictionary) {
            (Some(own), Some(other)) => own.is(other),
            _ => false,
        }
    }

    /// Adds a block as it is, or compressed anew if it was made with another dictionary. Its
    /// entries must come after all those before it.
    pub fn add_block(&mut self, raw: &RawBlock<'_>) -> Result<()> {
        let block = raw.block;
        let Some(last) = block.entries().checked_sub(1) else { return Ok(()) };
        if !self.builder.is_empty() {
            self.cut_block()?;
        }
        let has_dictionary = frame_codec(raw.bytes) == Some(compress::id::ZSTD_DICTIONARY);
        if self.samples.is_some() {
            // Blocks made with what was learnt from these rows before need not be made anew; nor
            // those for which nothing was worth it.
            let dictionary = match &self.options.dictionary {
                TableDictionary::Given(own) => Some(own),
                _ => raw.dictionary.filter(|_| has_dictionary),
            };
            self.decide(dictionary.cloned())?;
        }
        if let Some(dictionary) = raw.dictionary.filter(|_| has_dictionary && self.can_adopt()) {
            self.put_dictionary(Arc::clone(dictionary));
        }
        let first = block.key(0);
        let mut new_key = true;
        if self.meta.entries > 0 {
            match self.last_key.as_slice().cmp(&first) {
                Ordering::Less => {}
                Ordering::Equal if self.last_seq > block.seq(0) => new_key = false,
                _ => return Err(out_of_order()),
            }
        }
        self.begin_block(&first);
        let deletes = self.note_entries(block, new_key)?;
        if frame_codec(raw.bytes) == Some(compress::id::NONE) {
            self.plain_believed = self.plain_believed.saturating_sub(1);
        }
        let mut handle = self.next_handle(raw.bytes.len());
        if has_dictionary && !self.shares(raw) {
            let image = block.image();
            handle.bytes = put_frame(&mut self.compressor, image, &mut self.output) as u32;
        } else {
            self.output.extend_from_slice(raw.bytes);
        }
        block.key_into(last, &mut self.last_key);
        self.last_seq = block.seq(last);
        self.meta.entries += block.entries() as u64;
        self.meta.deletes += deletes;
        self.end_block(
            BlockInfo {
                handle,
                entries: block.entries() as u32,
                tagged: block.tagged(),
                deletes: deletes > 0,
            },
            (block.key_bytes(), block.value_bytes()),
            block.image().len(),
        )
    }

    /// Takes what the table must know of each entry of a block that is reused. Answers how
    /// many are deletes.
    fn note_entries(&mut self, block: &Block, new_key: bool) -> Result<u64> {
        let mut deletes = 0;
        let tags = if block.is_uniform() { 1 } else { block.entries() };
        for index in 0..tags {
            let (seq, kind) = block.tag(index);
            self.meta.min_seq = self.meta.min_seq.min(seq);
            self.meta.max_seq = self.meta.max_seq.max(seq);
            deletes += u64::from(kind == Kind::Delete);
            if kind == Kind::Blob {
                self.add_blob(block.value(index))?;
            }
        }
        if self.options.filter_bits > 0 {
            self.note_keys(block, new_key);
        }
        Ok(deletes)
    }

    /// Notes the keys of a block for the filter; the first one only if it is a `new_key`.
    fn note_keys(&mut self, block: &Block, mut new_key: bool) {
        self.hashes.reserve(block.entries());
        let mut key = block.prefix().to_vec();
        for index in 0..block.entries() {
            let suffix = block.suffix(index);
            if index > 0 {
                new_key = block.is_uniform() || block.suffix(index - 1) != suffix;
            }
            if new_key {
                key.truncate(block.prefix().len());
                key.extend_from_slice(suffix);
                self.hashes.push(hash(&key));
            }
        }
    }
}
