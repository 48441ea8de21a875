//! What the fuzz targets in /fuzz run, kept here so that ordinary tests replay their corpora.
//!
//! Every function takes any bytes and must return: no panic, no endless loop, no memory that the
//! input does not account for. Damage must come back as [`Error::Corruption`]; what is read must
//! be what was written. Checksums would keep a fuzzer out, so some inputs are sealed again after
//! they are damaged.

mod logs;
mod ops;
mod roundtrip;
mod tables;

pub use logs::{manifest, wal};
pub use ops::ops;
pub use roundtrip::table_roundtrip;
pub use tables::{block, table};

use crate::base::config::Codec;
use crate::base::error::Error;
use crate::table::compress::{Compressor, Dictionary, decompress, decompress_with};

/// A function that takes any bytes and must return.
pub type Target = fn(&[u8]);

/// The targets by name; the names of their corpora and of their programs in /fuzz.
pub const TARGETS: [(&str, Target); 7] = [
    ("compress", compress),
    ("block", block),
    ("table", table),
    ("table_roundtrip", table_roundtrip),
    ("wal", wal),
    ("manifest", manifest),
    ("ops", ops),
];

const CODECS: [Codec; 6] =
    [Codec::None, Codec::Lz4, Codec::Zlib(1), Codec::Zlib(6), Codec::Zstd(-3), Codec::Zstd(3)];

/// Decompresses the input as an image of some codec, and compresses it and back.
///
/// Input: codec u8, raw length u24, bytes.
pub fn compress(data: &[u8]) {
    let mut input = Input(data);
    let codec = input.byte();
    let raw_len = usize::from(input.byte()) | usize::from(input.number()) << 8;
    let mut out = Vec::new();
    if decompress(codec, input.0, raw_len, &mut out).is_ok() {
        assert_eq!(out.len(), raw_len);
    }
    assert!(out.capacity() <= raw_len, "more memory than asked for");

    let dictionary = tables::dictionary();
    let mut out = Vec::new();
    if decompress_with(Some(&dictionary), codec, input.0, raw_len, &mut out).is_ok() {
        assert_eq!(out.len(), raw_len);
    }
    if let Ok(own) = Dictionary::parse(input.0.to_vec()) {
        assert_eq!(own.bytes(), input.0);
    }

    let mut image = vec![codec];
    let mut compressor = Compressor::new(CODECS[usize::from(codec) % CODECS.len()]);
    if codec >= 128 {
        compressor.use_dictionary(&dictionary);
    }
    let used = compressor.compress(input.0, &mut image);
    let mut out = vec![7; raw_len % 1000];
    assert_eq!(image[0], codec, "what was in the output before is kept");
    let unpacked = decompress_with(Some(&dictionary), used, &image[1..], input.0.len(), &mut out);
    assert_eq!(unpacked, Ok(()));
    assert_eq!(out, input.0);
}

/// Takes bytes off the front of the input; zeros once it has ended.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn number(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// The next `count` bytes, or as many as there are.
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Damage must be told as damage.
fn assert_corruption(error: &Error) {
    assert!(error.is_corruption(), "not an error of damage: {error}");
}
