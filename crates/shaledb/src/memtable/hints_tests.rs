use super::*;
use std::collections::BTreeMap;

/// A pointer to tell nodes by; never followed.
fn node(number: u64) -> *mut Node {
    std::ptr::without_provenance_mut(number as usize + 1)
}

fn check(heads: impl Iterator<Item = u64>, most: usize) {
    let (mut hints, mut model) = (Hints::default(), BTreeMap::new());
    assert!(hints.is_empty() && hints.before(u64::MAX).is_none());
    for (number, head) in (0..).zip(heads) {
        hints.add(head, node(number));
        // The first of a head stays.
        model.entry(head).or_insert(number);
        for target in [head, head.saturating_add(1), head / 2] {
            let expected = model.range(..target).next_back().map(|(_, &number)| node(number));
            assert_eq!(hints.before(target), expected, "of {number} at {target}");
        }
    }
    assert!(hints.firsts.is_sorted() && hints.firsts.len() == hints.order.len());
    assert!(hints.leaves.len() <= most, "{} leaves", hints.leaves.len());
}

#[test]
fn a_hint_is_the_last_node_before_a_head() {
    let mixed = |number: u64| (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let count = if cfg!(miri) { 200 } else { 3000 };
    let leaves = count as usize / LEAF + 1;
    check((0..count).map(mixed), 2 * leaves);
    check((0..count).map(|number| mixed(number) % 100), 8 + 2 * leaves / 50);
    check(0..count, leaves);
    check((0..count).rev(), leaves);
}

#[test]
fn after_a_far_hint_some_inserts_go_without() {
    let mut hints = Hints::default();
    hints.add(5, node(1));
    assert_eq!(hints.before(6), Some(node(1)));
    hints.was_far();
    for _ in 0..PAUSE {
        assert_eq!(hints.before(6), None);
    }
    assert_eq!(hints.before(6), Some(node(1)));
}
