use super::*;
use crate::base::coding::hash;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

fn hashes(count: u64, from: u64) -> Vec<u64> {
    (from..from + count).map(|i| hash(&i.to_be_bytes())).collect()
}

/// The share of `misses` that the filter lets through.
fn false_positives(filter: &[u8], misses: &[u64]) -> f64 {
    misses.iter().filter(|&&h| may_contain(filter, h)).count() as f64 / misses.len() as f64
}

#[test]
fn a_filter_has_every_key_it_was_built_over() {
    for count in [0, 1, 2, 50, 51, 52, 1000, 30_000] {
        let keys = hashes(count, 0);
        for bits in 1..=30 {
            let filter = build(&keys, bits);
            assert!(validate(&filter));
            assert!(keys.iter().all(|&h| may_contain(&filter, h)), "{count} keys, {bits} bits");
            assert!(filter.len() * 8 <= keys.len() * usize::from(bits) + 512 + 8 * PROBES_MAX);
        }
    }
}

#[test]
fn false_positives_are_as_rare_as_promised() {
    let keys = hashes(100_000, 0);
    let misses = hashes(400_000, 1 << 40);
    // (bits per key, the rate measured for docs/decisions/0001-filter.md plus a tenth of it)
    for (bits, most) in [(4, 0.17), (8, 0.028), (10, 0.0115), (12, 0.0052), (16, 0.0014)] {
        let rate = false_positives(&build(&keys, bits), &misses);
        assert!(rate < most, "{bits} bits per key: {rate}");
    }
}

#[test]
fn few_keys_are_filtered_well_too() {
    let misses = hashes(2000, 1 << 40);
    let mut sum = 0.0;
    for table in 0..200 {
        sum += false_positives(&build(&hashes(100, table * 1000), 10), &misses);
    }
    assert!(sum / 200.0 < 0.0115, "{}", sum / 200.0);
}

#[test]
fn equal_hashes_do_no_harm() {
    let keys = vec![hash(b"the only key"); 10_000];
    let filter = build(&keys, 10);
    assert!(may_contain(&filter, keys[0]));
    assert!(false_positives(&filter, &hashes(10_000, 0)) < 0.001);
}

#[test]
fn a_table_without_keys_has_none() {
    let filter = build(&[], 10);
    assert!(validate(&filter) && !filter.is_empty());
    assert!(!may_contain(&filter, 17));
}

#[test]
fn no_filter_excludes_nothing() {
    assert_eq!(build(&hashes(10, 0), 0), Vec::<u8>::new());
    assert!(validate(&[]));
    assert!(may_contain(&[], 17));
}

#[test]
fn any_bytes_are_safe() {
    let mut rng = Pcg64::seed_from_u64(1);
    for len in 0..400 {
        let mut bytes = vec![0; len];
        rng.fill(bytes.as_mut_slice());
        for _ in 0..20 {
            may_contain(&bytes, rng.random());
            may_contain(&bytes, u64::MAX);
        }
        if len % 64 == 0 || len % 64 > PROBES_MAX {
            bytes.fill(0);
            assert!(may_contain(&bytes, rng.random()), "an unknown shape excludes nothing");
            assert_eq!(validate(&bytes), len == 0);
        }
    }
    let mut filter = build(&hashes(10, 0), 10);
    filter.pop();
    assert!(!validate(&filter));
}

/// The bytes of a filter are part of the format.
#[test]
fn golden() {
    let filter = build(&[0, 1, 2, u64::MAX, hash(b"shale")], 10);
    let hex: String = filter.iter().map(|b| format!("{b:02x}")).collect();
    let expected = concat!(
        "01004000000004000000001004010001000000801000000208000020000000000000",
        "020004800050000000000100000000008008000000080020040000020000",
        "060606060606"
    );
    assert_eq!(hex, expected);
}

#[test]
fn small_levels_get_more_bits() {
    let bits = |base| [0, 1, 2, 3, 6].map(|level| bits_for_level(base, level));
    assert_eq!(bits(0), [0; 5]);
    assert_eq!(bits(1), [1, 5, 9, 13, 20]);
    assert_eq!(bits(10), [10, 14, 18, 20, 20]);
    assert_eq!(bits(20), [20; 5]);
    assert_eq!(bits_for_level(10, usize::MAX), 20);
}
