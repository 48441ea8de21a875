//! Writes one table: entries in order go in, a file and its [`TableMeta`] come out.
//!
//! Invariant: entries strictly ascend in entry order. A block ends before the entry that would make
//! it larger than `block_bytes`, so a large value has a block of its own. Memory is bounded by one
//! block, the output buffer, the index, eight bytes per key for the filter and, while it is open
//! whether the table has a dictionary, the 256 KiB of blocks that wait for that.

use super::dictionary::Samples;
use super::options::{TableDictionary, TableOptions};
use super::probe::{Probe, Prober};
use crate::base::activity::Activity;
use crate::base::coding::hash;
use crate::base::config::Codec;
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SeqNo};
use crate::base::ranges::RangeDeletes;
use crate::cache::{Lease, Memory};
use crate::fs::WriteFile;
use crate::fs::meter::Meter;
use crate::table::blob::BlobRef;
use crate::table::format::block_builder::BlockBuilder;
use crate::table::format::compress::{self, Compressor, Dictionary};
use crate::table::format::index::{IndexBuilder, separator};
use crate::table::format::{
    BlockInfo, Footer, Handle, filter, frame_codec, properties, put_dictionary_frame, put_frame,
    put_plain_frame,
};
use crate::table::meta::{FileId, TableMeta, Why};
use std::cmp::Ordering;
use std::sync::Arc;

/// How many bytes are collected before they are handed to the file.
const OUTPUT_BYTES: usize = 256 * 1024;
/// After how many bytes the device is told to begin writing.
const HINT_BYTES: u64 = 4 << 20;
/// The longest value that fits a table; larger ones belong into blobs.
const VALUE_BYTES_MAX: usize = 1 << 30;

/// After a block that did not shrink: how many plain ones are believed to shrink no more.
const PLAIN_BELIEVED: u32 = 16;

/// Writes a table. To abandon one, drop the writer and remove the file.
pub struct TableWriter {
    file: Box<dyn WriteFile>,
    pub(super) options: TableOptions,
    pub(super) meta: TableMeta,
    pub(super) builder: BlockBuilder,
    pub(super) compressor: Compressor,
    /// The blocks so far, while it is open whether the table has a dictionary.
    pub(super) samples: Option<Samples>,
    pub(super) dictionary: Option<Arc<Dictionary>>,
    /// The length of the dictionary's frame, which begins the file.
    dictionary_bytes: u32,
    dictionary_is_packed: bool,
    index: IndexBuilder,
    /// The block whose separator waits for the first key of the next one.
    pending: Option<BlockInfo>,
    separator: Vec<u8>,
    /// The last entry of the pending block.
    pub(super) last_key: Vec<u8>,
    pub(super) last_seq: SeqNo,
    pub(super) hashes: Vec<u64>,
    ranges: Vec<RangeDeletes>,
    /// How many more plain blocks [`TableWriter::takes_block`] takes without a try to compress one.
    pub(super) plain_believed: u32,
    pub(super) output: Vec<u8>,
    written: u64,
    hinted: u64,
    prober: Option<Prober>,
    meter: Option<Arc<Meter>>,
    lease: Lease,
}

impl std::fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableWriter").field("id", &self.meta.id).finish_non_exhaustive()
    }
}

impl TableWriter {
    /// Begins a table in `file`, which must be empty.
    pub fn new(file: Box<dyn WriteFile>, id: FileId, options: TableOptions) -> TableWriter {
        let is_zstd = matches!(options.codec, Codec::Zstd(_));
        let waits = is_zstd && !matches!(options.dictionary, TableDictionary::None);
        TableWriter {
            file,
            meta: TableMeta {
                id,
                min_seq: SeqNo::MAX,
                codec: (options.why != Why::Set).then_some(options.codec),
                why: options.why,
                ..TableMeta::default()
            },
            builder: BlockBuilder::new(),
            compressor: Compressor::new(options.codec),
            options,
            samples: waits.then(Samples::default),
            dictionary: None,
            dictionary_bytes: 0,
            dictionary_is_packed: false,
            index: IndexBuilder::default(),
            pending: None,
            separator: Vec::new(),
            last_key: Vec::new(),
            last_seq: 0,
            hashes: Vec::new(),
            ranges: Vec::new(),
            plain_believed: 0,
            output: Vec::with_capacity(OUTPUT_BYTES + OUTPUT_BYTES / 4),
            written: 0,
            hinted: 0,
            prober: None,
            meter: None,
            lease: Lease::default(),
        }
    }

    /// The same, with the memory that it holds counted.
    pub fn lent_by(mut self, memory: &Arc<Memory>) -> TableWriter {
        self.lease = Lease::of(memory);
        self.lease.set(self.memory_bytes());
        self
    }

    /// About how much memory the writer holds. A vector that is about to grow is there twice.
    fn memory_bytes(&self) -> usize {
        self.output.capacity()
            + self.hashes.capacity() * size_of::<u64>() * 3 / 2
            + self.index.size()
            + self.samples.as_ref().map_or(0, Samples::bytes)
            + self.prober.as_ref().map_or(0, Prober::bytes)
            + self.compressor.memory_bytes()
    }

    /// The same, with some of its blocks left in `probe` before they are compressed.
    pub fn probed_by(mut self, probe: &Probe) -> TableWriter {
        self.prober = Some(Prober::new(probe, self.options.block_bytes));
        self
    }

    /// The same, with the cost of compressing its blocks counted for `activity`.
    pub fn counted_as(mut self, activity: Activity, meter: &Arc<Meter>) -> TableWriter {
        self.compressor.count_as(activity, meter);
        self.meter = Some(Arc::clone(meter));
        self
    }

    /// Adds an entry, which must come after all those before it.
    #[inline]
    pub fn add(&mut self, key: &[u8], seq: SeqNo, kind: Kind, value: &[u8]) -> Result<()> {
        let mut new_key = true;
        if self.meta.entries > 0 {
            let last =
                if self.builder.is_empty() { &self.last_key[..] } else { self.builder.last_key() };
            match last.cmp(key) {
                Ordering::Less => {}
                Ordering::Equal if self.last_seq > seq => new_key = false,
                _ => return Err(out_of_order()),
            }
        }
        if self.builder.ends_before(key, value.len(), self.options.block_bytes) {
            self.cut_block()?;
        }
        if self.builder.is_empty() {
            if value.len() > VALUE_BYTES_MAX {
                return Err(Error::InvalidArgument("the value is too long for a table".to_owned()));
            }
            self.begin_block(key);
        }
        if kind == Kind::Blob {
            self.add_blob(value)?;
        }
        self.builder.add(key, seq, kind, value);
        self.last_seq = seq;
        self.meta.entries += 1;
        if new_key && self.options.filter_bits > 0 {
            self.hashes.push(hash(key));
        }
        Ok(())
    }

    pub(super) fn add_blob(&mut self, reference: &[u8]) -> Result<()> {
        let Some(blob) = BlobRef::decode(reference) else {
            return Err(Error::InvalidArgument("a blob reference is malformed".to_owned()));
        };
        if self.meta.blobs.last() != Some(&blob.file) {
            self.meta.blobs.push(blob.file);
        }
        Ok(())
    }

    /// Adds range deletes; any time before the end.
    pub fn add_range_deletes(&mut self, ranges: &RangeDeletes) {
        if !ranges.is_empty() {
            self.ranges.push(ranges.clone());
        }
    }

    /// Files the pending block in the index, now that the first key after it is known.
    pub(super) fn begin_block(&mut self, first: &[u8]) {
        assert!(self.builder.is_empty(), "the block before has ended");
        match self.pending.take() {
            Some(info) => {
                debug_assert!(self.last_key.as_slice() <= first);
                separator(&self.last_key, first, &mut self.separator);
                match self.samples.as_mut().and_then(|samples| samples.blocks.last_mut()) {
                    Some(waiting) => waiting.separator.clone_from(&self.separator),
                    None => self.index.add(&self.separator, &info),
                }
            }
            None => self.meta.smallest = first.to_vec(),
        }
    }

    pub(super) fn next_handle(&self, bytes: usize) -> Handle {
        Handle { offset: self.written + self.output.len() as u64, bytes: bytes as u32 }
    }

    /// Ends the block in the builder: compresses it into the output buffer.
    pub(super) fn cut_block(&mut self) -> Result<()> {
        assert!(!self.builder.is_empty(), "a block has entries");
        self.last_key.clear();
        self.last_key.extend_from_slice(self.builder.last_key());
        let (key_bytes, value_bytes) = self.builder.bytes();
        let (min_seq, max_seq) = self.builder.seqs();
        self.meta.min_seq = self.meta.min_seq.min(min_seq);
        self.meta.max_seq = self.meta.max_seq.max(max_seq);
        self.meta.deletes += self.builder.deletes();
        let mut info = BlockInfo {
            handle: self.next_handle(0),
            entries: self.builder.entries() as u32,
            tagged: self.builder.tagged(),
            deletes: self.builder.deletes() > 0,
        };
        let image = self.builder.finish();
        if let Some(prober) = &mut self.prober {
            prober.offer(self.meta.blocks, image);
        }
        let raw_bytes = image.len();
        if let Some(samples) = &mut self.samples {
            samples.add(image, info, &mut self.compressor);
        } else {
            info.handle.bytes = put_frame(&mut self.compressor, image, &mut self.output) as u32;
            self.note_compressed();
        }
        self.builder.reset();
        self.end_block(info, (key_bytes, value_bytes), raw_bytes)?;
        match &self.samples {
            Some(samples) if samples.are_enough() => {
                self.decide(samples.dictionary(&self.options, false))
            }
            _ => Ok(()),
        }
    }

    /// Notes whether the block that has just been compressed has shrunk.
    fn note_compressed(&mut self) {
        let shrank = frame_codec(&self.output) != Some(compress::id::NONE);
        self.plain_believed = if shrank { 0 } else { PLAIN_BELIEVED };
    }

    /// Puts the dictionary where the file begins.
    pub(super) fn put_dictionary(&mut self, dictionary: Arc<Dictionary>) {
        assert!(self.written == 0 && self.output.is_empty(), "it is what the file begins with");
        self.dictionary_bytes = put_dictionary_frame(&dictionary, &mut self.output) as u32;
        let codec = frame_codec(&self.output);
        self.dictionary_is_packed = codec == Some(compress::id::DICTIONARY_PACKED);
        self.dictionary = Some(dictionary);
    }

    /// Ends the wait: the table has this dictionary, or none. Compresses the blocks that waited.
    pub(crate) fn decide(&mut self, dictionary: Option<Arc<Dictionary>>) -> Result<()> {
        let Some(samples) = self.samples.take() else { return Ok(()) };
        assert!(self.written == 0 && self.output.is_empty(), "all blocks wait until now");
        if let Some(dictionary) = dictionary.filter(|own| self.compressor.use_dictionary(own)) {
            self.put_dictionary(dictionary);
        }
        let count = samples.blocks.len();
        for (at, waiting) in samples.blocks.into_iter().enumerate() {
            let mut info = waiting.info;
            info.handle = self.next_handle(0);
            let bytes = put_frame(&mut self.compressor, &waiting.image, &mut self.output) as u32;
            info.handle.bytes = bytes;
            self.note_compressed();
            self.meta.data_bytes += u64::from(bytes);
            if at + 1 < count {
                self.index.add(&waiting.separator, &info);
            } else {
                self.pending = Some(info);
            }
            if self.output.len() >= OUTPUT_BYTES {
                self.flush_output()?;
            }
        }
        Ok(())
    }

    pub(super) fn end_block(
        &mut self,
        info: BlockInfo,
        (key_bytes, value_bytes): (u64, u64),
        raw_bytes: usize,
    ) -> Result<()> {
        assert!(self.pending.is_none(), "the block before is in the index");
        assert!(info.entries > 0 && u64::from(info.entries) <= self.meta.entries);
        self.meta.key_bytes += key_bytes;
        self.meta.value_bytes += value_bytes;
        self.meta.blocks += 1;
        self.meta.raw_bytes += raw_bytes as u64;
        self.meta.data_bytes += u64::from(info.handle.bytes);
        self.pending = Some(info);
        if self.output.len() >= OUTPUT_BYTES { self.flush_output() } else { Ok(()) }
    }

    fn flush_output(&mut self) -> Result<()> {
        self.lease.set(self.memory_bytes());
        let started = self.meter.as_ref().map(|meter| meter.storage());
        self.file.append(&self.output)?;
        self.written += self.output.len() as u64;
        if self.written - self.hinted >= HINT_BYTES {
            self.file.flush_hint();
            self.hinted = self.written;
        }
        if let Some(started) = started {
            started.wrote(self.output.len() as u64);
        }
        self.output.clear();
        Ok(())
    }

    /// Whether an entry with this key and so many bytes of value would begin a block.
    #[inline]
    pub fn begins_block(&self, key: &[u8], value_bytes: usize) -> bool {
        self.builder.is_empty()
            || self.builder.ends_before(key, value_bytes, self.options.block_bytes)
    }

    /// The key of the last entry added; empty if there is none.
    #[inline]
    pub fn last_key(&self) -> &[u8] {
        if self.builder.is_empty() { &self.last_key } else { self.builder.last_key() }
    }

    /// How many entries have been added.
    #[inline]
    pub fn entries(&self) -> u64 {
        self.meta.entries
    }

    /// Whether neither an entry nor a range delete has been added.
    pub fn is_empty(&self) -> bool {
        self.meta.entries == 0 && self.ranges.is_empty()
    }

    /// About how large the file would be if it ended here.
    #[inline]
    pub fn estimated_bytes(&self) -> u64 {
        let filter = self.hashes.len() * usize::from(self.options.filter_bits) / 8;
        let waiting = self.samples.as_ref().map_or(0, Samples::estimated_bytes);
        let open = self.builder.size() as u64;
        let open = if self.meta.data_bytes == 0 || self.builder.is_empty() {
            open
        } else {
            (open as f64 * (self.meta.data_bytes as f64 / self.meta.raw_bytes as f64)) as u64
        };
        self.written + (self.output.len() + filter + self.index.size() + waiting) as u64 + open
    }

    /// Completes the file and makes it durable. (Its name is durable once its directory is synced.)
    pub fn finish(self) -> Result<TableMeta> {
        let meter = self.meter.clone();
        let (meta, mut file) = self.complete()?;
        let started = meter.as_ref().map(|meter| meter.storage());
        file.sync()?;
        if let Some(started) = started {
            started.wrote(0);
        }
        Ok(meta)
    }

    /// Completes the file; whoever gets it makes it durable.
    pub fn complete(mut self) -> Result<(TableMeta, Box<dyn WriteFile>)> {
        if self.is_empty() {
            return Err(Error::InvalidArgument("a table needs an entry".to_owned()));
        }
        if !self.builder.is_empty() {
            self.cut_block()?;
        }
        if let Some(samples) = &self.samples {
            self.decide(samples.dictionary(&self.options, true))?;
        }
        if let Some(info) = self.pending.take() {
            // No key follows, so the separator is the last key: scans know where the data ends.
            self.index.add(&self.last_key, &info);
            self.meta.largest = std::mem::take(&mut self.last_key);
        }
        assert!(self.samples.is_none() && self.builder.is_empty());
        assert_eq!(self.index.blocks() as u64, self.meta.blocks, "every block is in the index");
        assert_eq!(
            self.next_handle(0).offset,
            u64::from(self.dictionary_bytes) + self.meta.data_bytes,
            "blocks lie one behind the other"
        );
        assert!(self.hashes.len() as u64 <= self.meta.entries);
        let ranges = RangeDeletes::union(&self.ranges);
        properties::complete(&mut self.meta, &ranges);
        let footer = self.put_sections(&ranges);
        self.output.extend_from_slice(&footer.encode());
        self.flush_output()?;
        if let Some(prober) = self.prober.take() {
            prober.end(self.meta.raw_bytes, self.dictionary.clone());
        }
        assert!(self.output.is_empty() && self.written > footer.properties.end());
        assert!(self.meta.min_seq <= self.meta.max_seq);
        self.meta.file_bytes = self.written;
        Ok((self.meta, self.file))
    }

    /// Puts all that follows the data blocks, but for the footer, into the output buffer.
    fn put_sections(&mut self, ranges: &RangeDeletes) -> Footer {
        let filter = filter::build(&self.hashes, self.options.filter_bits);
        self.lease.set(self.memory_bytes() + 2 * filter.len());
        let has_keys = !std::mem::take(&mut self.hashes).is_empty();
        let dictionary = Handle { offset: 0, bytes: self.dictionary_bytes };
        let packed = self.dictionary_is_packed;
        let filter_at = self.next_handle(0);
        let mut footer = Footer { dictionary, packed, filter: filter_at, ..Footer::default() };
        if has_keys && !filter.is_empty() {
            footer.filter.bytes = put_plain_frame(&filter, &mut self.output) as u32;
        }
        footer.range_deletes = self.next_handle(0);
        if !ranges.is_empty() {
            let bytes = properties::encode_ranges(ranges);
            // Not with the dictionary, which is for data blocks.
            let mut compressor = Compressor::new(self.options.codec);
            footer.range_deletes.bytes =
                put_frame(&mut compressor, &bytes, &mut self.output) as u32;
        }
        footer.index = self.next_handle(0);
        let codec = if self.options.codec == Codec::None { Codec::None } else { Codec::Lz4 };
        let image = self.index.finish();
        footer.index.bytes = put_frame(&mut Compressor::new(codec), image, &mut self.output) as u32;
        footer.properties = self.next_handle(0);
        let bytes = properties::encode(&self.meta, self.options.tree);
        footer.properties.bytes = put_plain_frame(&bytes, &mut self.output) as u32;
        assert_eq!(footer.filter.end(), footer.range_deletes.offset);
        assert_eq!(footer.range_deletes.end(), footer.index.offset);
        assert_eq!(footer.index.end(), footer.properties.offset);
        footer
    }
}

pub(super) fn out_of_order() -> Error {
    Error::InvalidArgument("entries must be added in ascending order".to_owned())
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
