//! The frame around every record of a log file. WALs and manifests are log files.
//!
//! ```text
//! file   := header record*
//! header := magic [8] | version u32 | checksum u32           (of the 12 bytes before it)
//! record := checksum u32 | length u32 | payload [length]     (checksum of length and payload)
//! ```
//!
//! Numbers are little-endian. Every payload starts with a serial number (u64) that is larger than
//! the serial number of the record before: the sequence number of a WAL record's first operation,
//! the place of a manifest's edit. A checksum also covers the number of the file and the offset of
//! the record in it, which are not stored: bytes that belong to another file or another place,
//! such as an old block that the file system hands out again after a crash, or a copy of a log
//! inside a value, never pass for a record.

use crate::base::coding;

/// The length of a log file's header.
pub const FILE_HEADER_BYTES: usize = 16;

/// The length of what precedes a record's payload.
pub const RECORD_HEADER_BYTES: usize = 8;

/// The shortest payload: a serial number and one byte more.
pub const PAYLOAD_BYTES_MIN: usize = 9;

/// The longest payload. Longer ones are a mistake of the caller.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 30;

const _: () = assert!(PAYLOAD_BYTES_MAX <= u32::MAX as usize);

/// What kind of log file it is, and the newest version of its contents that this program knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The first eight bytes of the file.
    pub magic: [u8; 8],
    /// The version of its contents.
    pub version: u32,
}

/// A write-ahead log.
///
/// Version 2 has transactions in two phases; version 1 is as version 2 without them.
pub const WAL: Format = Format { magic: *b"SHALEWAL", version: 2 };

/// What the first bytes of a log file turn out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// A header of this format and file.
    Good,
    /// None, or a damaged one.
    Damaged,
    /// A sound header of a version that this program does not know.
    Unknown(u32),
}

/// Binds checksums to one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal(u64);

impl Seal {
    /// The seal of the file with this number.
    pub fn new(format: Format, file: u64) -> Seal {
        let magic = u64::from_le_bytes(format.magic);
        Seal((magic ^ file.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The checksum of `bytes` that lie at (or belong to the record at) `offset`.
    #[inline]
    pub fn checksum(self, offset: u64, bytes: &[u8]) -> u32 {
        let position = (self.0 ^ offset).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mixed = coding::hash(bytes) ^ position ^ (position >> 32);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }

    /// Whether `framed` is whole records for `offset` of the file.
    pub fn is_of(self, mut offset: u64, mut framed: &[u8]) -> bool {
        while let Some((head, rest)) = framed.split_first_chunk::<RECORD_HEADER_BYTES>() {
            let checksum = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
            let Some(left) = rest.get(length..) else { return false };
            let sealed = &framed[4..RECORD_HEADER_BYTES + length];
            if checksum != self.checksum(offset, sealed) {
                return false;
            }
            offset += (RECORD_HEADER_BYTES + length) as u64;
            framed = left;
        }
        framed.is_empty()
    }
}

/// The header of a new log file.
pub fn file_header(format: Format, seal: Seal) -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&format.magic);
    header[8..12].copy_from_slice(&format.version.to_le_bytes());
    let checksum = seal.checksum(0, &header[..12]);
    header[12..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Judges the first bytes of a log file.
pub fn check_file_header(format: Format, seal: Seal, bytes: &[u8]) -> Header {
    let Some(header) = bytes.first_chunk::<FILE_HEADER_BYTES>() else {
        return Header::Damaged;
    };
    let checksum = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    if header[..8] != format.magic || checksum != seal.checksum(0, &header[..12]) {
        return Header::Damaged;
    }
    match u32::from_le_bytes([header[8], header[9], header[10], header[11]]) {
        version if (1..=format.version).contains(&version) => Header::Good,
        version => Header::Unknown(version),
    }
}

/// Frames records for the place in a file where they will be appended next.
///
/// Valid until that file grows: take a new one for each append.
#[derive(Clone, Copy, Debug)]
pub struct Framer {
    seal: Seal,
    offset: u64,
}

impl Framer {
    /// A framer for records appended at `offset` of the file with this seal.
    pub fn new(seal: Seal, offset: u64) -> Framer {
        Framer { seal, offset }
    }

    /// Appends one framed record to `out`, whose first byte is to be the next byte of the file.
    /// `payload` appends the payload and must not touch what is before it.
    ///
    /// # Panics
    ///
    /// If the payload is shorter than [`PAYLOAD_BYTES_MIN`] or longer than [`PAYLOAD_BYTES_MAX`].
    #[inline]
    pub fn frame(&self, out: &mut Vec<u8>, payload: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        out.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
        payload(out);
        let length = out.len() - start - RECORD_HEADER_BYTES;
        assert!((PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&length));
        out[start + 4..start + 8].copy_from_slice(&(length as u32).to_le_bytes());
        let checksum = self.seal.checksum(self.offset + start as u64, &out[start + 4..]);
        out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
