//! Data is in its range, as unique as it should be, and compresses as LinkBench means it to.

use super::super::fit::fits;
use super::*;

/// Rows of one client, and where each ends.
fn rows(look: Look, count: usize) -> (Motif, Vec<Vec<u8>>) {
    let mut random = Random::named(11, "motif", u64::from(look.most));
    let mut motif = Motif::new(look, &mut random);
    let mut rows = Vec::new();
    for _ in 0..count {
        let mut row = Vec::new();
        motif.append(&mut random, &mut row);
        rows.push(row);
    }
    (motif, rows)
}

#[test]
fn bytes_are_even_over_their_range() {
    for look in [LINK_LOOK, NODE_LOOK] {
        let mut random = Random::new(9);
        let mut bytes = Vec::new();
        fresh(look, &mut random, 1_000_000, &mut bytes);
        let mut counts = vec![0; 256];
        bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        let range = usize::from(look.least)..=usize::from(look.most);
        let inside = range.clone().count();
        assert_eq!(counts[range.clone()].iter().sum::<u64>(), 1_000_000);
        fits(&counts[range], &vec![1.0 / inside as f64; inside]).unwrap();
    }
}

#[test]
fn so_many_pieces_are_fresh() {
    for look in [LINK_LOOK, NODE_LOOK] {
        let (motif, rows) = rows(look, 100_000);
        let has = |row: &[u8]| motif.motifs.windows(row.len()).any(|window| window == row);
        // A piece of a few bytes may be among the motifs by chance; longer rows have two pieces.
        let one: Vec<&Vec<u8>> = rows.iter().filter(|row| (5..=128).contains(&row.len())).collect();
        let fresh = one.iter().filter(|row| !has(row)).count() as f64 / one.len() as f64;
        assert!((fresh - look.uniqueness).abs() < 0.01, "{fresh} {}", look.uniqueness);
    }
}

#[test]
fn sizes_have_their_median_and_bound() {
    for look in [LINK_LOOK, NODE_LOOK] {
        let (_, mut rows) = rows(look, 50_001);
        rows.sort_by_key(Vec::len);
        let median = rows[25_000].len() as f64;
        assert!((median / look.median_bytes - 1.0).abs() < 0.02, "{median}");
        assert!(rows.last().unwrap().len() as u64 <= look.most_bytes);
        // The mean of a log-normal distribution of deviation 1 is e^0.5 of its median.
        let mean = rows.iter().map(Vec::len).sum::<usize>() as f64 / rows.len() as f64;
        let expected = look.median_bytes * 0.5f64.exp();
        assert!((mean / expected - 1.0).abs() < 0.04, "{mean} {expected}");
    }
}

/// How far zlib shrinks blocks of rows of 16 KiB.
fn ratio(rows: &[Vec<u8>]) -> f64 {
    let bytes = rows.concat();
    let level = libdeflater::CompressionLvl::new(6).unwrap();
    let mut zlib = libdeflater::Compressor::new(level);
    let (mut before, mut after) = (0, 0);
    for block in bytes.chunks_exact(16 << 10) {
        let mut out = vec![0; zlib.zlib_compress_bound(block.len())];
        after += zlib.zlib_compress(block, &mut out).unwrap();
        before += block.len();
    }
    after as f64 / before as f64
}

#[test]
fn a_block_compresses_as_linkbench_means_it_to() {
    // The workload file says: about 30 % for links, about 60 % for nodes.
    let links = ratio(&rows(LINK_LOOK, 50_000).1);
    let nodes = ratio(&rows(NODE_LOOK, 5_000).1);
    assert!((0.25..0.42).contains(&links), "{links}");
    assert!((0.55..0.67).contains(&nodes), "{nodes}");
    // Were all pieces fresh, there would be no more to gain than the range of the bytes.
    let unique = Look { uniqueness: 1.0, ..NODE_LOOK };
    let fresh = ratio(&rows(unique, 5_000).1);
    assert!(fresh > 0.9, "{fresh}");
}
