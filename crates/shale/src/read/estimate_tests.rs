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
            for steps in [0, 1, 7, 40] {
                let (few, exact) =
                    count_rows(&tree.state, &lower, upper, seq, 1000, steps).unwrap();
                assert!(few <= steps.min(rows), "seed {seed}: {few} rows in {steps} steps");
                assert!(!exact || few == rows, "seed {seed}: {few} of {rows} are not all");
            }
        }
    }
}

#[test]
fn estimates_of_small_trees_are_near() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let tree = Tree::random(&mut random);
        let rows = tree.rows(SEQ_MAX).len() as f64;
        let estimate = estimate_rows(&tree.state, b"", None, SEQ_MAX, 0).unwrap();
        let entries = sources_of(&tree.state, b"", None, 0).unwrap();
        let entries = entries.iter().map(|source| source.entries as f64).sum::<f64>();
        // Of each source some entries are looked up: what is no row is an error now and then.
        let error = (estimate.rows as f64 - rows).abs();
        let error_max = 10.0 + 0.5 * rows + 0.2 * (entries - rows).max(0.0);
        assert!(error <= error_max, "seed {seed}: {estimate:?} of {rows} in {entries}");
    }
}
