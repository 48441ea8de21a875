//! The end of a table file, which says where everything else is.
//!
//! ```text
//! footer  := where the sections are, 48 bytes
//!            | version u32 | checksum u32 of all that comes before | magic 8 bytes
//! ```
//!
//! In version 1 there is no dictionary, and the 48 bytes are 4 x (offset u64, length u32): filter,
//! range deletes, index, properties. In versions 2 and 3, which only tables with a dictionary have,
//! they are: length of the dictionary u32 | offset of the filter u64 | 4 x length u32 | zeros. In
//! version 3 the dictionary is compressed.

use super::frame::Handle;
use crate::base::coding::{Decoder, checksum};

/// What every table file ends with.
pub const TABLE_MAGIC: [u8; 8] = *b"SHALEtbl";
/// The version of the format of tables without a dictionary.
pub const TABLE_VERSION: u32 = 1;
/// The version of the format of tables with one that is stored as it is.
pub const TABLE_VERSION_DICTIONARY: u32 = 2;
/// The version of the format of tables with one that is compressed.
pub const TABLE_VERSION_PACKED: u32 = 3;
/// Bytes of a table's footer.
pub const FOOTER_BYTES: usize = SECTION_BYTES + 4 + 4 + 8;

/// Bytes of a footer that say where the sections are.
const SECTION_BYTES: usize = 4 * 12;

const _: () = assert!(FOOTER_BYTES == 64);

/// The end of a table file: where its sections are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footer {
    /// The dictionary, if there is one: at the start of the file.
    pub dictionary: Handle,
    /// Whether it is compressed.
    pub packed: bool,
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
        match self.packed {
            true => TABLE_VERSION_PACKED,
            false if self.dictionary.bytes > 0 => TABLE_VERSION_DICTIONARY,
            false => TABLE_VERSION,
        }
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
            TABLE_VERSION_DICTIONARY => Footer::decode_with_dictionary(sections, false),
            TABLE_VERSION_PACKED => Footer::decode_with_dictionary(sections, true),
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
            packed: false,
            filter: handle()?,
            range_deletes: handle()?,
            index: handle()?,
            properties: handle()?,
        };
        decoder.is_empty().then_some(footer)
    }

    /// The sections in versions 2 and 3: each begins where the one before it ends.
    fn decode_with_dictionary(bytes: &[u8], packed: bool) -> Option<Footer> {
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
            packed,
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
