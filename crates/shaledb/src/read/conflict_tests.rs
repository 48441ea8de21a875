//! What is newer than a position in the commit order, compared with the whole history.

use super::*;
use crate::iter::testing::Random;
use crate::read::testing::Tree;

#[test]
fn the_newest_write_to_a_key_is_found_wherever_it_is() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let tree = Tree::random(&mut random);
        for _ in 0..100 {
            let (key, since) = (random.key(64), random.below(tree.last_seq + 2));
            let expected = tree.newest_write(&key).filter(|seq| *seq > since);
            let found = newest_after(&tree.state, &key, since, Scope::All).unwrap();
            assert_eq!(found, expected, "seed {seed}, since {since}");
        }
    }
}

#[test]
fn changes_of_a_range_are_found() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let tree = Tree::random(&mut random);
        for _ in 0..50 {
            let (a, b) = (random.key(64), random.key(64));
            let (lower, upper) = (a.clone().min(b.clone()), a.max(b));
            let upper = (random.below(4) > 0).then_some(upper);
            let since = random.below(tree.last_seq + 2);
            let expected = tree.is_written_after(&lower, upper.as_deref(), since);
            let found =
                changed_after(&tree.state, &lower, upper.as_deref(), since, Scope::All).unwrap();
            assert_eq!(found.is_some(), expected, "seed {seed}, since {since}");
            if let Some(key) = found {
                assert!(key >= lower && upper.as_ref().is_none_or(|upper| key < *upper));
            }
        }
    }
}

#[test]
fn without_tables_only_memtables_are_looked_at() {
    let mut random = Random::new(1);
    let tree = Tree::random(&mut random);
    let first = tree.state.memtables().filter_map(|memtable| memtable.first_seq()).min();
    let since = first.map_or(tree.last_seq, |first| first - 1);
    for n in 0..64 {
        let key = random.key(64);
        let all = newest_after(&tree.state, &key, since, Scope::All).unwrap();
        let some = newest_after(&tree.state, &key, since, Scope::Memtables).unwrap();
        assert_eq!(all, some, "{n}");
    }
    assert!(changed_after(&tree.state, b"", None, 0, Scope::All).unwrap().is_some());
    let mut empty = Tree::empty();
    empty.state.version = tree.state.version.clone();
    assert!(changed_after(&empty.state, b"", None, 0, Scope::All).unwrap().is_some());
    assert!(changed_after(&empty.state, b"", None, 0, Scope::Memtables).unwrap().is_none());
}
