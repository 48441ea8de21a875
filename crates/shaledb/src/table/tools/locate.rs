//! Finds the frames of a table file whose footer or index is lost, by their checksums.
//!
//! A frame does not say where it starts, but ends with its raw length, codec and checksum. From a
//! known start, the end is the first place where these fit what is before them; frames follow each
//! other without gaps, so each end is the next start. After a damaged frame, starts and ends are
//! tried together. What a frame is, its content tells. Before that the end of the file is tried:
//! if only the footer is damaged, properties and index are found right before it.

use crate::base::coding::checksum;
use crate::base::error;
use crate::base::ranges::RangeDeletes;
use crate::fs::ReadFile;
use crate::table::format::compress::{Dictionary, id};
use crate::table::format::index::Index;
use crate::table::format::{
    Block, BlockInfo, FOOTER_BYTES, FRAME_BYTES, Handle, decode_frame, frame_codec,
    open_dictionary_frame, properties,
};
use crate::table::meta::TableMeta;

/// The longest frame that is searched for.
const FRAME_BYTES_MAX: usize = 4 << 20;
/// The longest block before compression that is searched for.
const RAW_BYTES_MAX: usize = 64 << 20;
/// How many bytes are hashed in a search, at most: some seconds of work.
const SEARCH_BYTES_MAX: u64 = 32 << 30;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Where the dictionary is, and it or what is wrong with it.
    pub dictionary: Option<(Handle, Result<Dictionary, &'static str>)>,
    /// The data blocks, ascending. Gaps between them are damaged.
    pub blocks: Vec<Handle>,
    /// Where the data blocks end or, if that is not known, where the last sound one does.
    pub data_end: u64,
    /// The range deletes.
    pub ranges: Option<RangeDeletes>,
    /// The tree's number and the properties.
    pub properties: Option<(u32, TableMeta)>,
}

/// What a sound frame holds.
enum Content {
    Data,
    Dictionary(Dictionary),
    Index(Vec<Handle>),
    Ranges(RangeDeletes),
    Properties(u32, TableMeta),
    /// A filter, or nothing that is known.
    Other,
}

/// A search in one file.
pub(super) struct Locator {
    bytes: Vec<u8>,
    budget: u64,
}

impl Locator {
    /// Reads the file.
    pub fn new(file: &dyn ReadFile) -> error::Result<Locator> {
        let mut bytes = vec![0; file.len()? as usize];
        file.read_at(0, &mut bytes)?;
        Ok(Locator { bytes, budget: SEARCH_BYTES_MAX })
    }

    /// Finds what there is.
    pub fn locate(mut self) -> Found {
        self.by_the_end().unwrap_or_else(|| self.by_the_start())
    }

    /// Properties and index right before where the footer should be.
    fn by_the_end(&mut self) -> Option<Found> {
        let end = self.bytes.len().checked_sub(FOOTER_BYTES)?;
        let properties_at = self.plain_start(end)?;
        let Content::Properties(tree, meta) = self.content(properties_at, end, 0) else {
            return None;
        };
        let index_at = self.start_of(properties_at, 0)?;
        let Content::Index(blocks) = self.content(index_at, properties_at, u64::MAX) else {
            return None;
        };
        let data_end = blocks.last().map_or(0, Handle::end);
        let mut found = Found { blocks, data_end, ..Found::default() };
        let data_start = found.blocks.first().map_or(0, |first| first.offset);
        if data_start > 0 {
            let bytes = self.bytes.get(..data_start as usize).unwrap_or_default();
            let handle = Handle { offset: 0, bytes: bytes.len() as u32 };
            found.dictionary = Some((handle, open_dictionary_frame(bytes)));
        }
        if meta.range_deletes > 0
            && let Some(at) = self.start_of(index_at, data_end as usize)
            && let Content::Ranges(ranges) = self.content(at, index_at, 0)
        {
            found.ranges = Some(ranges);
        }
        found.properties = Some((tree, meta));
        Some(found)
    }

    /// One frame after the other.
    fn by_the_start(&mut self) -> Found {
        let mut found = Found::default();
        let mut at = 0;
        let mut data_ended = false;
        loop {
            let Some((start, end)) = self.next_frame(at) else { return found };
            match self.content(start, end, start as u64) {
                Content::Dictionary(dictionary) => {
                    let handle = Handle { offset: start as u64, bytes: (end - start) as u32 };
                    found.dictionary = Some((handle, Ok(dictionary)));
                }
                Content::Data if !data_ended => {
                    let bytes = (end - start) as u32;
                    found.blocks.push(Handle { offset: start as u64, bytes });
                    found.data_end = end as u64;
                }
                Content::Index(blocks) => {
                    data_ended = true;
                    found.data_end = blocks.last().map_or(0, Handle::end);
                    found.blocks = blocks;
                }
                Content::Ranges(ranges) => found.ranges = Some(ranges),
                Content::Properties(tree, meta) => found.properties = Some((tree, meta)),
                Content::Data | Content::Other => {}
            }
            at = end;
        }
    }

    /// The next frame at `at` or, if that one is damaged, after it.
    fn next_frame(&mut self, at: usize) -> Option<(usize, usize)> {
        let limit = self.bytes.len().min(at.saturating_add(FRAME_BYTES_MAX));
        let first_end = at.checked_add(FRAME_BYTES)?;
        for end in first_end..=limit {
            if self.is_frame(at, end) {
                return Some((at, end));
            }
        }
        for end in first_end + 1..=limit {
            if let Some(start) = self.start_of(end, at + 1) {
                return Some((start, end));
            }
        }
        None
    }

    fn u32_at(&self, at: usize) -> usize {
        let bytes = self.bytes.get(at..).and_then(|bytes| bytes.first_chunk::<4>());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
    }

    /// Whether the bytes from `start` to `end` are a frame with a right checksum.
    fn is_frame(&mut self, start: usize, end: usize) -> bool {
        let Some(payload) = end.checked_sub(start + FRAME_BYTES) else { return false };
        let (Some(&codec), raw) = (self.bytes.get(end - 5), self.u32_at(end - 9)) else {
            return false;
        };
        let plausible = match codec {
            0 | id::DICTIONARY => raw == payload,
            1..=4 | id::DICTIONARY_PACKED => raw > payload && raw <= RAW_BYTES_MAX,
            _ => false,
        };
        if !plausible || self.budget == 0 {
            return false;
        }
        self.budget = self.budget.saturating_sub(payload as u64 + 64);
        let covered = self.bytes.get(start..end - 4);
        covered.is_some_and(|covered| checksum(covered) as usize == self.u32_at(end - 4))
    }

    /// Where the plain frame that ends at `end` starts, if there is one.
    fn plain_start(&mut self, end: usize) -> Option<usize> {
        let payload_end = end.checked_sub(FRAME_BYTES)?;
        let start = payload_end.checked_sub(self.u32_at(payload_end))?;
        self.is_frame(start, end).then_some(start)
    }

    /// Where the frame that ends at `end` starts, if there is one that starts at `from` or later.
    fn start_of(&mut self, end: usize, from: usize) -> Option<usize> {
        let payload_end = end.checked_sub(FRAME_BYTES)?;
        match *self.bytes.get(end - 5)? {
            0 | id::DICTIONARY => self.plain_start(end).filter(|&start| start >= from),
            1..=4 | id::DICTIONARY_PACKED if self.u32_at(payload_end) <= RAW_BYTES_MAX => {
                let from = from.max(payload_end.saturating_sub(FRAME_BYTES_MAX));
                (from..payload_end).rev().find(|&start| self.is_frame(start, end))
            }
            _ => None,
        }
    }

    /// Whether data blocks may begin here: at the start of the file or after a dictionary.
    fn begins_data(&self, at: usize) -> bool {
        let codec = at.checked_sub(5).and_then(|codec| self.bytes.get(codec));
        at == 0 || matches!(codec, Some(&(id::DICTIONARY | id::DICTIONARY_PACKED)))
    }

    /// What the sound frame from `start` to `end` holds; `data_max` is how far an index that is
    /// there may reach (0: it is none).
    fn content(&self, start: usize, end: usize, data_max: u64) -> Content {
        let mut raw = Vec::new();
        let frame = self.bytes.get(start..end).unwrap_or_default();
        match frame_codec(frame) {
            Some(id::DICTIONARY | id::DICTIONARY_PACKED) => {
                return open_dictionary_frame(frame).map_or(Content::Other, Content::Dictionary);
            }
            // Nothing but data is compressed with the dictionary.
            Some(id::ZSTD_DICTIONARY) => return Content::Data,
            _ => {}
        }
        if decode_frame(frame, &mut raw).is_err() {
            return Content::Other;
        }
        if let Some((tree, meta)) = properties::decode(&raw) {
            return Content::Properties(tree, meta);
        }
        if let Ok(block) = Block::parse(raw.clone()) {
            let handles = index_handles(&block, raw).unwrap_or_default();
            return match (handles.first(), handles.last()) {
                (Some(first), Some(last))
                    if self.begins_data(first.offset as usize) && last.end() <= data_max =>
                {
                    Content::Index(handles)
                }
                _ => Content::Data,
            };
        }
        match properties::decode_ranges(&raw) {
            Some(ranges) if !ranges.is_empty() => Content::Ranges(ranges),
            _ => Content::Other,
        }
    }
}

/// The data blocks that `block` lists, if it is an index.
fn index_handles(block: &Block, image: Vec<u8>) -> Option<Vec<Handle>> {
    let last = block.entries().checked_sub(1)?;
    let [first, last] = [0, last].map(|at| BlockInfo::decode(block.value(at)));
    let index = Index::parse(image, first?.handle.offset..last?.handle.end()).ok()?;
    Some((0..index.blocks()).map(|at| index.info(at).handle).collect())
}
