//! Images of any bytes, decompressed, and bytes compressed and back.

use super::input::{CODECS, Input};
use super::world::dictionary;
use crate::base::coding::checksum;
use crate::table::compress::{Compressor, Dictionary, decompress, decompress_with};
use crate::table::format::{open_dictionary_frame, put_dictionary_frame};

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

    let dictionary = dictionary();
    let mut out = Vec::new();
    if decompress_with(Some(&dictionary), codec, input.0, raw_len, &mut out).is_ok() {
        assert_eq!(out.len(), raw_len);
    }
    if let Ok(own) = Dictionary::parse(input.0.to_vec()) {
        assert_eq!(own.bytes(), input.0);
        let mut frame = Vec::new();
        put_dictionary_frame(&own, &mut frame);
        let back = open_dictionary_frame(&frame).expect("it has just been written");
        assert_eq!(back.bytes(), input.0);
    }
    // As the frame of a dictionary, with a checksum that fits.
    let mut frame = [input.0, &(raw_len as u32).to_le_bytes(), &[codec]].concat();
    frame.extend_from_slice(&checksum(&frame).to_le_bytes());
    if let Ok(own) = open_dictionary_frame(&frame) {
        assert_eq!(own.bytes().len(), raw_len);
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
