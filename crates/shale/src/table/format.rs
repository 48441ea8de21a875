//! The bytes of a table file that are not blocks' own: frames, handles, the footer; and file names.
//!
//! ```text
//! table   := dictionary frame? | data frames | filter frame? | range delete frame? | index frame
//!            | properties frame | footer
//! frame   := payload | raw length u32 | codec u8 | checksum u32 of all that comes before
//! footer  := where the sections are, 48 bytes
//!            | version u32 | checksum u32 of all that comes before | magic 8 bytes
//! ```
//!
//! In version 1 there is no dictionary, and the 48 bytes are 4 x (offset u64, length u32): filter,
//! range deletes, index, properties. In version 2, which only tables with a dictionary have, they
//! are: length of the dictionary u32 | offset of the filter u64 | 4 x length u32 | zeros.
//!
//! All numbers are little-endian. Frames follow each other without gaps, so that every byte of a
//! file is under a checksum (or is the magic number). An absent section has length 0.

use super::compress::{self, Compressor, DICTIONARY_BYTES_MAX, Dictionary};
use super::meta::FileId;
use crate::base::coding::{Decoder, checksum, put_varint};

/// What every table file ends with.
pub const TABLE_MAGIC: [u8; 8] = *b"SHALEtbl";
/// What every blob file begins with.
pub const BLOB_MAGIC: [u8; 8] = *b"SHALEblb";
/// The version of the format of tables without a dictionary.
pub const TABLE_VERSION: u32 = 1;
/// The version of the format of tables with one.
pub const TABLE_VERSION_DICTIONARY: u32 = 2;
/// The version of the blob format.
pub const BLOB_VERSION: u32 = 1;
/// Bytes of a table's footer.
pub const FOOTER_BYTES: usize = SECTION_BYTES + 4 + 4 + 8;
/// Bytes that a frame adds to its payload.
pub const FRAME_BYTES: usize = 4 + 1 + 4;

/// Bytes of a footer that say where the sections are.
const SECTION_BYTES: usize = 4 * 12;

const _: () = assert!(FOOTER_BYTES == 64 && FRAME_BYTES == 9);

/// Where a frame is in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handle {
    /// Its first byte.
    pub offset: u64,
    /// Its length, the frame's own bytes included; 0 if the section is absent.
    pub bytes: u32,
}

impl Handle {
    /// The first byte after the frame.
    #[inline]
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }
}

/// An opened frame: checked, still compressed.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The bytes as stored.
    pub payload: &'a [u8],
    /// The length once decompressed.
    pub raw_len: usize,
    /// The number of the codec.
    pub codec: u8,
}

/// Compresses `raw` and appends it to `out` as a frame; answers the frame's length.
pub fn put_frame(compressor: &mut Compressor, raw: &[u8], out: &mut Vec<u8>) -> usize {
    let start = out.len();
    let codec = compressor.compress(raw, out);
    seal_frame(out, start, raw.len(), codec)
}

/// Appends `raw` to `out` as a frame that is not compressed; answers the frame's length.
pub fn put_plain_frame(raw: &[u8], out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(raw);
    seal_frame(out, start, raw.len(), 0)
}

/// Appends a table's dictionary to `out` as a frame; answers the frame's length.
pub fn put_dictionary_frame(dictionary: &Dictionary, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(dictionary.bytes());
    seal_frame(out, start, dictionary.bytes().len(), compress::id::DICTIONARY)
}

/// Checks the frame of a table's dictionary, and makes the dictionary ready.
pub fn open_dictionary_frame(bytes: &[u8]) -> Result<Dictionary, &'static str> {
    let frame = open_frame(bytes)?;
    if frame.codec != compress::id::DICTIONARY || frame.raw_len != frame.payload.len() {
        return Err("the frame is not that of a dictionary");
    }
    if frame.raw_len > DICTIONARY_BYTES_MAX {
        return Err("a dictionary is too long");
    }
    Dictionary::parse(frame.payload.to_vec())
}

fn seal_frame(out: &mut Vec<u8>, start: usize, raw_len: usize, codec: u8) -> usize {
    out.extend_from_slice(&(raw_len as u32).to_le_bytes());
    out.push(codec);
    let sum = checksum(&out[start..]);
    out.extend_from_slice(&sum.to_le_bytes());
    out.len() - start
}

/// Checks a frame and takes it apart. The error says what is wrong with it.
pub fn open_frame(bytes: &[u8]) -> Result<Frame<'_>, &'static str> {
    let (covered, sum) = bytes.split_last_chunk::<4>().ok_or("a frame is too short")?;
    if checksum(covered) != u32::from_le_bytes(*sum) {
        return Err("the checksum of a block does not match");
    }
    let (payload, tail) = covered.split_last_chunk::<5>().ok_or("a frame is too short")?;
    let [a, b, c, d, codec] = *tail;
    Ok(Frame { payload, raw_len: u32::from_le_bytes([a, b, c, d]) as usize, codec })
}

/// The codec of a frame; `None` if it is too short to be one.
pub fn frame_codec(bytes: &[u8]) -> Option<u8> {
    bytes.len().checked_sub(5).map(|at| bytes[at])
}

impl Frame<'_> {
    /// Puts the decompressed content into `out`, replacing what was there. `dictionary` is that of
    /// the table in which the frame is.
    pub fn unpack(
        &self,
        dictionary: Option<&Dictionary>,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        out.clear();
        compress::decompress_with(dictionary, self.codec, self.payload, self.raw_len, out)?;
        if out.len() != self.raw_len {
            return Err("a block has another length than stated");
        }
        Ok(())
    }
}

/// Checks a frame and puts its decompressed content into `out`, replacing what was there. Frames
/// other than of data blocks need no dictionary.
pub fn decode_frame(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    open_frame(bytes)?.unpack(None, out)
}

/// The end of a table file: where its sections are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footer {
    /// The dictionary, if there is one: at the start of the file.
    pub dictionary: Handle,
    /// The filter, if there is one.
    pub filter: Handle,
    /// The range deletes, if there are any.
    pub range_deletes: Handle,
    /// The index of data blocks.
    pub index: Handle,
    /// The properties.
    pub properties: Handle,
}

impl Footer {
    fn sections(&self) -> [Handle; 4] {
        [self.filter, self.range_deletes, self.index, self.properties]
    }

    /// The version of the file's format.
    pub fn version(&self) -> u32 {
        if self.dictionary.bytes > 0 { TABLE_VERSION_DICTIONARY } else { TABLE_VERSION }
    }

    /// The footer's bytes.
    pub fn encode(&self) -> [u8; FOOTER_BYTES] {
        let mut bytes = Vec::with_capacity(FOOTER_BYTES);
        if self.version() == TABLE_VERSION {
            for handle in self.sections() {
                bytes.extend_from_slice(&handle.offset.to_le_bytes());
                bytes.extend_from_slice(&handle.bytes.to_le_bytes());
            }
        } else {
            bytes.extend_from_slice(&self.dictionary.bytes.to_le_bytes());
            bytes.extend_from_slice(&self.filter.offset.to_le_bytes());
            for handle in self.sections() {
                bytes.extend_from_slice(&handle.bytes.to_le_bytes());
            }
            bytes.resize(SECTION_BYTES, 0);
        }
        bytes.extend_from_slice(&self.version().to_le_bytes());
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes.extend_from_slice(&TABLE_MAGIC);
        let mut out = [0; FOOTER_BYTES];
        out.copy_from_slice(&bytes);
        out
    }

    /// Reads a footer of a file of `file_bytes` and checks that its sections follow each other up
    /// to the footer.
    pub fn decode(bytes: &[u8], file_bytes: u64) -> Result<Footer, &'static str> {
        let (covered, magic) = bytes.split_last_chunk::<8>().ok_or("the footer is too short")?;
        if *magic != TABLE_MAGIC {
            return Err("the file does not end as a table does");
        }
        let (covered, sum) = covered.split_last_chunk::<4>().ok_or("the footer is too short")?;
        if checksum(covered) != u32::from_le_bytes(*sum) {
            return Err("the checksum of the footer does not match");
        }
        let (sections, version) =
            covered.split_last_chunk::<4>().ok_or("the footer is too short")?;
        let footer = match u32::from_le_bytes(*version) {
            TABLE_VERSION => Footer::decode_sections(sections),
            TABLE_VERSION_DICTIONARY => Footer::decode_with_dictionary(sections),
            _ => return Err("the table is of a version that this release cannot read"),
        };
        let footer = footer.ok_or("the footer is malformed")?;
        footer.check(file_bytes)?;
        Ok(footer)
    }

    /// The sections in version 1.
    fn decode_sections(bytes: &[u8]) -> Option<Footer> {
        let mut decoder = Decoder::new(bytes);
        let mut handle = || Some(Handle { offset: decoder.u64()?, bytes: decoder.u32()? });
        let footer = Footer {
            dictionary: Handle::default(),
            filter: handle()?,
            range_deletes: handle()?,
            index: handle()?,
            properties: handle()?,
        };
        decoder.is_empty().then_some(footer)
    }

    /// The sections in version 2: each begins where the one before it ends.
    fn decode_with_dictionary(bytes: &[u8]) -> Option<Footer> {
        let mut decoder = Decoder::new(bytes);
        let dictionary = Handle { offset: 0, bytes: decoder.u32()? };
        let mut offset = decoder.u64()?;
        let mut handle = || {
            let handle = Handle { offset, bytes: decoder.u32()? };
            offset = offset.checked_add(handle.bytes.into())?;
            Some(handle)
        };
        let footer = Footer {
            dictionary,
            filter: handle()?,
            range_deletes: handle()?,
            index: handle()?,
            properties: handle()?,
        };
        let mut rest = 0;
        while !decoder.is_empty() {
            rest |= decoder.u8()?;
        }
        (dictionary.bytes > 0 && rest == 0).then_some(footer)
    }

    fn check(&self, file_bytes: u64) -> Result<(), &'static str> {
        let mut at = self.filter.offset;
        if self.dictionary.end() > at {
            return Err("the sections of the table do not follow each other");
        }
        for section in self.sections() {
            let end = section.offset.checked_add(u64::from(section.bytes));
            if section.offset != at || end.is_none() {
                return Err("the sections of the table do not follow each other");
            }
            at = section.end();
        }
        if at.checked_add(FOOTER_BYTES as u64) != Some(file_bytes) {
            return Err("the file's length is not what its footer says");
        }
        Ok(())
    }

    /// Where in the file the data blocks lie.
    pub fn data(&self) -> std::ops::Range<u64> {
        self.dictionary.end()..self.filter.offset
    }
}

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

/// The kinds of files in a database's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// `000123.table`
    Table,
    /// `000123.wal`
    Wal,
    /// `000123.blob`
    Blob,
    /// `000123.run`: a table with what is not committed.
    Run,
    /// `000123.prepared`: the name of a prepared transaction, and its tables.
    Prepared,
    /// `MANIFEST-000123`
    Manifest,
    /// `CURRENT`, which names the manifest in use.
    Current,
    /// `LOCK`, held while the database is open.
    Lock,
}

/// The name of a file; `id` is ignored for kinds of which there is only one.
pub fn file_name(kind: FileKind, id: FileId) -> String {
    match kind {
        FileKind::Table => format!("{id:06}.table"),
        FileKind::Wal => format!("{id:06}.wal"),
        FileKind::Blob => format!("{id:06}.blob"),
        FileKind::Run => format!("{id:06}.run"),
        FileKind::Prepared => format!("{id:06}.prepared"),
        FileKind::Manifest => format!("MANIFEST-{id:06}"),
        FileKind::Current => "CURRENT".to_owned(),
        FileKind::Lock => "LOCK".to_owned(),
    }
}

/// The kind and number of the file of this name (number 0 for `CURRENT` and `LOCK`), if it is one
/// of a database's.
pub fn parse_file_name(name: &str) -> Option<(FileKind, FileId)> {
    let (kind, digits) = match name {
        "CURRENT" => return Some((FileKind::Current, 0)),
        "LOCK" => return Some((FileKind::Lock, 0)),
        _ => match (name.strip_prefix("MANIFEST-"), name.split_once('.')) {
            (Some(digits), _) => (FileKind::Manifest, digits),
            (None, Some((digits, "table"))) => (FileKind::Table, digits),
            (None, Some((digits, "wal"))) => (FileKind::Wal, digits),
            (None, Some((digits, "blob"))) => (FileKind::Blob, digits),
            (None, Some((digits, "run"))) => (FileKind::Run, digits),
            (None, Some((digits, "prepared"))) => (FileKind::Prepared, digits),
            _ => return None,
        },
    };
    let id = digits.parse().ok()?;
    // Only the one way in which the number is written counts.
    (file_name(kind, id) == name).then_some((kind, id))
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
