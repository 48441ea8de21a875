//! The layout of a blob file, and what names the value in it.
//!
//! ```text
//! file   := magic 8 bytes | version u32 | checksum u32 of those 12 bytes | chunk* | end
//! chunk  := checksum u32 of all that follows in it | length u32 (1 to 65536) | that many bytes
//! end    := checksum u32 of the next 12 bytes | 0 u32 | length of the value u64
//! ```
//!
//! All chunks but the last are full. An entry of kind blob has a [`BlobRef`] as its value: file
//! number varint, length varint. A file may be referred to by several entries; it is removed when
//! no table refers to it any more.

use crate::base::coding::{Decoder, checksum, put_varint};
use crate::table::meta::FileId;

/// What every blob file begins with.
const BLOB_MAGIC: [u8; 8] = *b"SHALEblb";
/// The version of the blob format.
const BLOB_VERSION: u32 = 1;
/// Bytes of the value in a full chunk.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;
pub(super) const HEADER_BYTES: usize = 16;
pub(super) const CHUNK_HEADER_BYTES: usize = 8;
pub(super) const END_BYTES: usize = 16;

/// Names a value in a blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// The file's number.
    pub file: FileId,
    /// The length of the value.
    pub bytes: u64,
}

impl BlobRef {
    /// The reference's bytes, as they are kept in an entry.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.file);
        put_varint(&mut out, self.bytes);
        out
    }

    /// Reads a reference; `None` if the bytes are anything else.
    pub fn decode(bytes: &[u8]) -> Option<BlobRef> {
        let mut decoder = Decoder::new(bytes);
        let reference = BlobRef { file: decoder.varint()?, bytes: decoder.varint()? };
        decoder.is_empty().then_some(reference)
    }

    /// The length of the value in a blob file of this length; `None` if no value makes such a file.
    pub fn value_bytes(file_bytes: u64) -> Option<u64> {
        let chunks_bytes = file_bytes.checked_sub((HEADER_BYTES + END_BYTES) as u64)?;
        let chunks = chunks_bytes.div_ceil((CHUNK_HEADER_BYTES + CHUNK_BYTES) as u64);
        let bytes = chunks_bytes.checked_sub(chunks * CHUNK_HEADER_BYTES as u64)?;
        (BlobRef { file: 0, bytes }.file_bytes() == file_bytes).then_some(bytes)
    }

    /// The length of the file that holds such a value.
    pub fn file_bytes(&self) -> u64 {
        let chunks = self.bytes.div_ceil(CHUNK_BYTES as u64);
        let frames = chunks.saturating_mul(CHUNK_HEADER_BYTES as u64);
        self.bytes.saturating_add(frames).saturating_add((HEADER_BYTES + END_BYTES) as u64)
    }
}

/// What every blob file begins with, in full.
pub(super) fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&BLOB_MAGIC);
    header[8..12].copy_from_slice(&BLOB_VERSION.to_le_bytes());
    let sum = checksum(&header[..12]);
    header[12..].copy_from_slice(&sum.to_le_bytes());
    header
}
