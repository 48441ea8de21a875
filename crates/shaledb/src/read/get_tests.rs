use super::*;
use crate::iter::testing::{History, Random, read_seq};
use crate::read::testing::{TestBlobs, Tree};

#[test]
fn get_and_multi_get_equal_the_model() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let tree = Tree::random(&mut random);
        for _ in 0..3 {
            let seq = read_seq(&mut random, tree.last_seq);
            let rows = tree.rows(seq);
            let keys: Vec<Vec<u8>> = (0..60).map(|_| random.key(64)).collect();
            let expected: Vec<Option<&Vec<u8>>> = keys
                .iter()
                .map(|key| rows.iter().find(|row| row.0 == *key).map(|row| &row.1))
                .collect();
            for (key, expected) in keys.iter().zip(&expected) {
                let value = get(&tree.state, key, seq, &TestBlobs).unwrap();
                assert_eq!(value.map(Value::into_vec).as_ref(), *expected, "seed {seed} at {seq}");
            }
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let values = multi_get(&tree.state, &keys, seq, &TestBlobs).unwrap();
            let values: Vec<Option<Vec<u8>>> =
                values.into_iter().map(|value| value.map(Value::into_vec)).collect();
            let values: Vec<Option<&Vec<u8>>> = values.iter().map(Option::as_ref).collect();
            assert_eq!(values, expected, "seed {seed} at {seq}");
        }
    }
}

#[test]
fn a_large_value_is_found_as_its_reference() {
    let mut tree = Tree::random(&mut Random::new(1));
    tree.state.active.insert(b"large", 900, Kind::Blob, &TestBlobs::reference(7));
    let found = find(&tree.state, b"large", 1000).unwrap().unwrap();
    assert_eq!((found.seq, found.kind), (900, Kind::Blob));
    assert_eq!(found.value, TestBlobs::reference(7));
    assert_eq!(get(&tree.state, b"large", 1000, &TestBlobs).unwrap().unwrap(), b"blob 7");
    let many = multi_find(&tree.state, &[b"large", b"none"], 1000).unwrap();
    assert_eq!(many, [Some(found), None]);
    tree.state.active.delete_range(b"l", b"m", 901, 901);
    assert_eq!(get(&tree.state, b"large", 1000, &TestBlobs).unwrap(), None);
    assert!(get(&tree.state, b"large", 900, &TestBlobs).unwrap().is_some());
    // A second reader's state shares the memtable.
    tree.state = tree.state.clone();
    assert_eq!(get(&tree.state, b"large", 901, &TestBlobs).unwrap(), None);
}

#[test]
fn damage_is_reported_not_passed_over() {
    let mut random = Random::new(3);
    let mut tree = Tree::empty();
    let history = History::random(&mut random, 100, 40, 1);
    let tables = tree.disk.run(&history, &[b"020".to_vec()]);
    let key = history.entries[0].key.clone();
    for table in &tables {
        for offset in 0..table.meta.data_bytes {
            assert!(tree.disk.fs.corrupt(table.path(), offset, 1));
        }
    }
    tree.set_levels(vec![vec![], tables]);
    assert!(get(&tree.state, &key, 1000, &TestBlobs).unwrap_err().is_corruption());
    assert!(multi_get(&tree.state, &[&key, b"x"], 1000, &TestBlobs).unwrap_err().is_corruption());
}
