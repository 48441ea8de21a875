use super::*;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;

fn all() -> Vec<Codec> {
    let mut codecs = vec![Codec::None, Codec::Lz4];
    codecs.extend((1..=9).map(Codec::Zlib));
    codecs.extend([-5, -1, 1, 3, 6, 12, 19].map(Codec::Zstd));
    codecs
}

fn id_of(codec: Codec) -> u8 {
    match codec {
        Codec::None => id::NONE,
        Codec::Auto | Codec::Lz4 => id::LZ4,
        Codec::Zlib(_) => id::ZLIB,
        Codec::Zstd(_) => id::ZSTD,
    }
}

fn text(bytes: usize, seed: u64) -> Vec<u8> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let words: Vec<Vec<u8>> = (0..64)
        .map(|_| (0..rng.random_range(2..12)).map(|_| rng.random_range(b'a'..=b'z')).collect())
        .collect();
    let mut out = Vec::new();
    while out.len() < bytes {
        out.extend_from_slice(&words[rng.random_range(0..words.len())]);
        out.push(b' ');
    }
    out.truncate(bytes);
    out
}

fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut out = vec![0; bytes];
    Pcg64::seed_from_u64(seed).fill_bytes(&mut out);
    out
}

#[test]
fn every_codec_gives_back_what_it_got() {
    let mut plain = b"what was there before".to_vec();
    for codec in all() {
        let mut compressor = Compressor::new(codec);
        for bytes in [0, 1, 7, 8, 9, 100, 4096, 16384, 70_000, 300_000] {
            let raw = text(bytes, bytes as u64);
            let mut out = b"kept".to_vec();
            let used = compressor.compress(&raw, &mut out);
            assert_eq!(&out[..4], b"kept");
            let image = &out[4..];
            assert!(used == id::NONE || used == id_of(codec), "{codec}");
            if bytes >= 4096 {
                assert_eq!(used, id_of(codec), "{codec} {bytes}");
            }
            if used != id::NONE {
                assert!(image.len() <= bytes - bytes / 8, "{codec} {bytes}");
            }
            assert_eq!(decompress(used, image, raw.len(), &mut plain), Ok(()), "{codec} {bytes}");
            assert_eq!(plain, raw);
        }
    }
}

#[test]
fn what_does_not_shrink_is_stored_plain() {
    for codec in all() {
        let mut compressor = Compressor::new(codec);
        for bytes in [0, 1, 100, 16384] {
            let raw = noise(bytes, 7);
            let mut out = Vec::new();
            assert_eq!(compressor.compress(&raw, &mut out), id::NONE, "{codec}");
            assert_eq!(out, raw);
        }
        // Nine tenths noise: it shrinks, but by less than an eighth.
        let mut raw = noise(16384, 8);
        raw[..1600].fill(b'x');
        let mut out = Vec::new();
        assert_eq!(compressor.compress(&raw, &mut out), id::NONE, "{codec}");
        assert_eq!(out, raw);
    }
}

#[test]
fn zstd_frames_carry_no_spare_fields() {
    let mut out = Vec::new();
    assert_eq!(Compressor::new(Codec::Zstd(3)).compress(&text(16384, 1), &mut out), id::ZSTD);
    // The frame header descriptor: no content size, no checksum, no dictionary id.
    assert_eq!(out[4] & 0b1110_0111, 0, "{:#010b}", out[4]);
}

#[test]
fn a_wrong_length_or_codec_is_an_error() {
    let mut plain = Vec::new();
    for codec in all() {
        let raw = text(5000, 3);
        let mut image = Vec::new();
        let used = Compressor::new(codec).compress(&raw, &mut image);
        for raw_len in [0, 1, 4999, 5001, 10_000] {
            assert!(decompress(used, &image, raw_len, &mut plain).is_err(), "{codec} {raw_len}");
        }
        assert!(decompress(used, &[], 5000, &mut plain).is_err());
        assert!(decompress(4, &image, 5000, &mut plain).is_err());
        assert!(decompress(255, &image, 5000, &mut plain).is_err());
        assert_eq!(decompress(used, &image, 5000, &mut plain), Ok(()));
    }
}

#[test]
fn an_absurd_length_is_an_error_before_it_is_memory() {
    let mut plain = Vec::new();
    for codec in [id::NONE, id::LZ4, id::ZLIB, id::ZSTD, 4, 255] {
        for raw_len in [1 << 20, u32::MAX as usize, usize::MAX] {
            assert!(decompress(codec, b"abcde", raw_len, &mut plain).is_err());
        }
    }
    assert_eq!(plain.capacity(), 0);
}

#[test]
fn damaged_images_never_give_more_than_was_asked_for() {
    let mut rng = Pcg64::seed_from_u64(20);
    let mut plain = Vec::new();
    for codec in [Codec::Lz4, Codec::Zlib(6), Codec::Zstd(-5), Codec::Zstd(3)] {
        let raw = text(3000, 4);
        let mut image = Vec::new();
        let used = Compressor::new(codec).compress(&raw, &mut image);
        for _ in 0..3000 {
            let mut damaged = image.clone();
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..damaged.len());
                damaged[at] ^= 1 << rng.random_range(0..8);
            }
            if rng.random_bool(0.2) {
                damaged.truncate(rng.random_range(0..damaged.len()));
            }
            let raw_len = if rng.random_bool(0.5) { 3000 } else { rng.random_range(0..6000) };
            let mut fresh = Vec::new();
            if decompress(used, &damaged, raw_len, &mut fresh).is_ok() {
                assert_eq!(fresh.len(), raw_len);
            }
            assert!(fresh.capacity() <= raw_len);
            if decompress(used, &damaged, raw_len, &mut plain).is_ok() {
                assert_eq!(plain.len(), raw_len);
            }
        }
        assert_eq!(decompress(used, &image, 3000, &mut plain), Ok(()));
        assert_eq!(plain, raw);
    }
}

#[test]
fn the_most_compressible_data_is_within_the_bounds() {
    let raw = vec![0; 4 << 20];
    let mut plain = Vec::new();
    for codec in all() {
        let mut image = Vec::new();
        let used = Compressor::new(codec).compress(&raw, &mut image);
        assert_eq!(decompress(used, &image, raw.len(), &mut plain), Ok(()), "{codec}");
        assert_eq!(plain, raw);
    }
}

#[test]
fn levels_out_of_range_are_brought_into_it() {
    let raw = text(16384, 5);
    for codec in [Codec::Zlib(0), Codec::Zlib(200), Codec::Zstd(-100), Codec::Zstd(100)] {
        let mut image = Vec::new();
        assert_eq!(Compressor::new(codec).compress(&raw, &mut image), id_of(codec));
    }
}
