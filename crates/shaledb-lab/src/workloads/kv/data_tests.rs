//! Values are those of their seed, have their sizes, and compress as what they are like.

use super::*;
use crate::generate::Random;
use clap::ValueEnum;
use shaledb::Codec;
use shaledb::table::compress::Compressor;

const BYTES: ValueBytes = ValueBytes { least: 100, most: 400 };

/// Values as a table has them: in an order that has nothing to do with that of their making.
fn values(data: Data, seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut random = Random::new(9);
    let mut values = data.values(seed, BYTES, 0.5);
    let mut all: Vec<Vec<u8>> = (0..count).map(|_| values.next(&mut random).to_vec()).collect();
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at as u64 + 1) as usize);
    }
    all
}

/// How far zstd:3 shrinks blocks of 16 KiB of them.
fn ratio(data: Data) -> f64 {
    let bytes = values(data, 1, 20_000).concat();
    let mut compressor = Compressor::new(Codec::Zstd(3));
    let (mut before, mut after) = (0, 0);
    for block in bytes.chunks_exact(16 << 10) {
        let mut out = Vec::new();
        compressor.compress(block, &mut out);
        before += block.len();
        after += out.len().min(block.len());
    }
    before as f64 / after as f64
}

#[test]
fn they_are_those_of_their_seed() {
    for &data in Data::value_variants() {
        assert_eq!(values(data, 1, 500), values(data, 1, 500), "{data:?}");
        assert_ne!(values(data, 1, 500), values(data, 2, 500), "{data:?}");
    }
}

#[test]
fn half_is_as_it_always_was() {
    let (mut random, mut other) = (Random::new(3), Random::new(3));
    let mut values = Data::Half.values(5, BYTES, 0.5);
    let mut before = Values::new(5, 100, 400, 0.5);
    for _ in 0..20_000 {
        assert_eq!(values.next(&mut random), before.next(&mut other));
    }
}

#[test]
fn they_have_the_sizes_that_a_plan_counts_on() {
    for &data in Data::value_variants() {
        let values = values(data, 1, 30_000);
        let mean = values.iter().map(Vec::len).sum::<usize>() as f64 / values.len() as f64;
        let share = mean / data.mean_bytes(BYTES);
        assert!((0.98..1.02).contains(&share), "{data:?} {mean}");
    }
}

#[test]
fn they_compress_as_what_they_are_like() {
    let bounds = [
        (Data::Half, 1.9..2.5),
        (Data::Links, 2.0..3.2),
        (Data::Json, 3.0..6.0),
        (Data::Text, 2.0..3.2),
        (Data::Random, 0.99..1.05),
    ];
    for (data, bounds) in bounds {
        let ratio = ratio(data);
        assert!(bounds.contains(&ratio), "{data:?} {ratio}");
    }
}

#[test]
fn rows_are_whole() {
    for line in values(Data::Json, 1, 200) {
        let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert!(line["user"].is_u64() && line["path"].is_string());
    }
}

#[test]
fn text_comes_again_no_more_than_real_text() {
    let text = text::text(&mut Random::new(4), 1 << 20);
    // Of the real text of a system, 18 of 100 pieces of 64 bytes were there in the 256 KiB before.
    let mut seen = std::collections::HashMap::new();
    let mut again = 0;
    for (at, piece) in text.windows(64).enumerate() {
        if seen.insert(piece, at).is_some_and(|before| at - before < 256 << 10) {
            again += 1;
        }
    }
    assert!(again < text.len() * 18 / 100, "{again} of {}", text.len());
}
