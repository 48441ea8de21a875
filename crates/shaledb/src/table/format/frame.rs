//! Frames: what every part of a table file is wrapped in, its checksum included.
//!
//! ```text
//! frame   := payload | raw length u32 | codec u8 | checksum u32 of all that comes before
//! ```

use super::compress::{self, Compressor, DICTIONARY_BYTES_MAX, DICTIONARY_LEVEL, Dictionary};
use crate::base::coding::checksum;
use crate::base::config::Codec;

/// Bytes that a frame adds to its payload.
pub const FRAME_BYTES: usize = 4 + 1 + 4;

const _: () = assert!(FRAME_BYTES == 9);

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
    let mut compressor = Compressor::new(Codec::Zstd(DICTIONARY_LEVEL));
    let codec = match compressor.compress(dictionary.bytes(), out) {
        compress::id::ZSTD => compress::id::DICTIONARY_PACKED,
        _ => compress::id::DICTIONARY,
    };
    seal_frame(out, start, dictionary.bytes().len(), codec)
}

/// Checks the frame of a table's dictionary, and makes the dictionary ready.
pub fn open_dictionary_frame(bytes: &[u8]) -> Result<Dictionary, &'static str> {
    let frame = open_frame(bytes)?;
    if frame.raw_len > DICTIONARY_BYTES_MAX {
        return Err("a dictionary is too long");
    }
    let mut content = Vec::new();
    match frame.codec {
        compress::id::DICTIONARY if frame.raw_len == frame.payload.len() => {
            content.extend_from_slice(frame.payload);
        }
        compress::id::DICTIONARY_PACKED => {
            compress::decompress(compress::id::ZSTD, frame.payload, frame.raw_len, &mut content)?;
        }
        _ => return Err("the frame is not that of a dictionary"),
    }
    Dictionary::parse(content)
}

fn seal_frame(out: &mut Vec<u8>, start: usize, raw_len: usize, codec: u8) -> usize {
    assert!(raw_len <= u32::MAX as usize && out.len() - start <= raw_len);
    out.extend_from_slice(&(raw_len as u32).to_le_bytes());
    out.push(codec);
    let sum = checksum(&out[start..]);
    out.extend_from_slice(&sum.to_le_bytes());
    debug_assert!(open_frame(&out[start..]).is_ok_and(|frame| frame.raw_len == raw_len));
    assert!(out.len() - start <= u32::MAX as usize, "a handle has 32 bits for the length");
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
    /// The id of the dictionary that a data frame was made with, if it was made with one.
    pub fn dictionary_id(&self) -> Option<u32> {
        (self.codec == compress::id::ZSTD_DICTIONARY)
            .then(|| compress::dictionary_id(self.payload))?
    }

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
