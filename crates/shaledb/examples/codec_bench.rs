//! The measurement behind docs/decisions/0002-codecs.md: speed and ratio of every codec on blocks
//! of 16 KiB.
//!
//! cargo run --release -p shale --example codec_bench
//!
//! Two kinds of data: `half`, entries as db_bench makes them (keys of 16 digits, values of 240
//! bytes whose second half repeats the first), and `text`, /var/lib/dpkg/status or the file named
//! as the argument. Ratio = bytes before / bytes after. One thread; the best of five rounds.

use rand::{RngExt, SeedableRng};
use shaledb::base::config::Codec;
use shaledb::table::compress::{Compressor, decompress};
use std::io::{Read, Write};
use std::time::Instant;

const BLOCK_BYTES: usize = 16 * 1024;
const ROUNDS: usize = 5;
/// Bytes put through a codec per round.
const ROUND_BYTES: usize = 16 << 20;

fn main() {
    let path = std::env::args().nth(1).unwrap_or_else(|| "/var/lib/dpkg/status".to_owned());
    let text = std::fs::read(&path).expect("the file of text can be read");
    let data = [("half", half_compressible(2 << 20)), ("text", text)];
    println!("| data | codec | compress MB/s | decompress MB/s | ratio |");
    println!("|---|---|---:|---:|---:|");
    for (name, bytes) in &data {
        let blocks: Vec<&[u8]> =
            bytes.as_chunks::<BLOCK_BYTES>().0.iter().map(|b| &b[..]).collect();
        let codecs = [Codec::None, Codec::Lz4].into_iter();
        let codecs = codecs.chain([1, 3, 6, 9].map(Codec::Zlib));
        for codec in codecs.chain([-5, -3, -1, 1, 2, 3, 4, 6, 9].map(Codec::Zstd)) {
            let mut compressor = Compressor::new(codec);
            measure(name, &codec.to_string(), &blocks, |raw, out| compressor.compress(raw, out), {
                |id, image, raw_len, out| decompress(id, image, raw_len, out).expect("as it was")
            });
        }
        measure(name, "lz4_flex", &blocks, lz4_flex_compress, lz4_flex_decompress);
        for level in [1, 6] {
            let label = format!("zlib:{level} by zlib itself");
            let deflate = |raw: &[u8], out: &mut Vec<u8>| zlib_compress(level, raw, out);
            measure(name, &label, &blocks, deflate, zlib_decompress);
        }
    }
}

/// Entries like db_bench's with its default compression ratio of one half.
fn half_compressible(bytes: usize) -> Vec<u8> {
    let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
    let mut out = Vec::new();
    let mut number = 0u64;
    while out.len() < bytes {
        out.extend_from_slice(format!("{number:016}").as_bytes());
        let half: Vec<u8> = (0..120).map(|_| rng.random_range(b' '..=b'~')).collect();
        out.extend_from_slice(&half);
        out.extend_from_slice(&half);
        number += 1;
    }
    out
}

fn measure(
    data: &str,
    codec: &str,
    blocks: &[&[u8]],
    mut compress: impl FnMut(&[u8], &mut Vec<u8>) -> u8,
    mut decompress: impl FnMut(u8, &[u8], usize, &mut Vec<u8>),
) {
    let passes = ROUND_BYTES.div_ceil(blocks.len() * BLOCK_BYTES);
    let total = (passes * blocks.len() * BLOCK_BYTES) as f64;
    let mut images = vec![(0, Vec::new()); blocks.len()];
    let mut compress_seconds = f64::MAX;
    let mut decompress_seconds = f64::MAX;
    let mut raw = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..passes {
            for (block, (id, image)) in blocks.iter().zip(&mut images) {
                image.clear();
                *id = compress(block, image);
            }
        }
        compress_seconds = compress_seconds.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        for _ in 0..passes {
            for (id, image) in &images {
                decompress(*id, image, BLOCK_BYTES, &mut raw);
            }
        }
        decompress_seconds = decompress_seconds.min(start.elapsed().as_secs_f64());
    }
    for (block, (id, image)) in blocks.iter().zip(&images) {
        decompress(*id, image, BLOCK_BYTES, &mut raw);
        assert_eq!(&raw, block);
    }
    let after: usize = images.iter().map(|(_, image)| image.len()).sum();
    println!(
        "| {data} | {codec} | {:.0} | {:.0} | {:.2} |",
        total / compress_seconds / 1e6,
        total / decompress_seconds / 1e6,
        (blocks.len() * BLOCK_BYTES) as f64 / after as f64
    );
}

fn lz4_flex_compress(raw: &[u8], out: &mut Vec<u8>) -> u8 {
    out.resize(lz4_flex::block::get_maximum_output_size(raw.len()), 0);
    let len = lz4_flex::block::compress_into(raw, out).expect("there is room");
    out.truncate(len);
    0
}

fn lz4_flex_decompress(_: u8, image: &[u8], raw_len: usize, out: &mut Vec<u8>) {
    out.resize(raw_len, 0);
    let len = lz4_flex::block::decompress_into(image, out).expect("as it was");
    assert_eq!(len, raw_len);
}

fn zlib_compress(level: u32, raw: &[u8], out: &mut Vec<u8>) -> u8 {
    let level = flate2::Compression::new(level);
    let mut encoder = flate2::write::ZlibEncoder::new(out, level);
    encoder.write_all(raw).and_then(|()| encoder.finish()).expect("memory takes it");
    0
}

fn zlib_decompress(_: u8, image: &[u8], raw_len: usize, out: &mut Vec<u8>) {
    out.resize(raw_len, 0);
    flate2::read::ZlibDecoder::new(image).read_exact(out).expect("as it was");
}
