//! Counting against the model, over any small tree. What is estimated is compared with the truth
//! in `tests/estimate.rs`.

use super::*;
use crate::iter::testing::{Random, read_seq};
use crate::read::testing::Tree;

#[test]
fn what_is_counted_equals_the_model() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let tree = Tree::random(&mut random);
        for _ in 0..20 {
            let seq = read_seq(&mut random, tree.last_seq);
            let (lower, upper) = (random.key(60), random.key(60));
            let upper = (random.below(5) > 0).then_some(upper.as_slice());
            let inside = |key: &[u8]| lower.as_slice() <= key && upper.is_none_or(|end| key < end);
            let rows = tree.rows(seq).iter().filter(|row| inside(&row.0)).count() as u64;
            let counted = estimate_rows(&tree.state, &lower, upper, seq, 1000).unwrap();
            assert_eq!(counted, RowEstimate { rows, exact: true }, "seed {seed}");
            if rows > 0 {
                let (few, exact) =
                    count_rows(&tree.state, &lower, upper, seq, rows - 1, u64::MAX).unwrap();
                assert_eq!((few, exact), (rows - 1, false), "seed {seed}");
            }
            let entries = sources_of(&tree.state, &lower, upper, 0, MEMTABLE_SAMPLE).unwrap();
            let keys: u64 = entries.iter().map(|source| source.entries).sum();
            assert!(keys >= rows, "seed {seed}: each row has an entry");
            let entries: u64 = entries.iter().map(|source| source.passed).sum();
            assert!(entries >= keys, "seed {seed}: each key has one");
            let (_, exact) =
                count_rows(&tree.state, &lower, upper, seq, 1000, entries / 2).unwrap();
            assert!(!exact || entries <= 1, "seed {seed}: half of the steps do not do");
            // Of large memtables it is known only about how many entries they have.
            let steps = 2 * entries + 64;
            let (_, exact) = count_rows(&tree.state, &lower, upper, seq, 1000, steps).unwrap();
            assert!(exact, "seed {seed}: {entries} entries are about all");
        }
    }
}

/// The estimate depends on samples: one in fifty may be farther off.
#[test]
fn estimates_of_small_trees_are_near() {
    let mut far = Vec::new();
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let tree = Tree::random(&mut random);
        let rows = tree.rows(SEQ_MAX).len() as f64;
        let estimate = estimate_rows(&tree.state, b"", None, SEQ_MAX, 0).unwrap();
        let error = (estimate.rows as f64 - rows).abs();
        if error > 10.0 + 0.5 * rows {
            far.push(format!("seed {seed}: {estimate:?} of {rows}"));
        }
    }
    assert!(far.len() <= 6, "{far:?}");
}
