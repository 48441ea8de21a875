use super::*;
use crate::base::error::Error;
use crate::fs::Fs;
use crate::iter::testing::{Entry, History, Random, read_seq};
use crate::read::testing::{TestBlobs, Tree};
use crate::table::CursorOptions;

fn range(lower: &[u8], upper: Option<&[u8]>) -> ScanRange {
    ScanRange {
        lower: lower.to_vec(),
        upper: upper.map(<[u8]>::to_vec),
        cursor: CursorOptions::default(),
    }
}

fn blobs() -> Arc<dyn BlobSource> {
    Arc::new(TestBlobs)
}

#[test]
fn any_mix_of_moves_over_a_tree_equals_the_model() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let tree = Tree::random(&mut random);
        let seq = read_seq(&mut random, tree.last_seq);
        let mut bound = || (random.below(3) == 0).then(|| random.key(60));
        let (lower, upper) = (bound().unwrap_or_default(), bound());
        let mut rows = tree.rows(seq);
        rows.retain(|(k, _)| *k >= lower && upper.as_ref().is_none_or(|upper| k < upper));
        let mut scan =
            Scan::new(&tree.state, range(&lower, upper.as_deref()), seq, blobs()).unwrap();
        let mut at = None;
        for step in 0..100 {
            let key = random.key(64);
            let to = match random.below(14) {
                0 => (scan.seek_first().unwrap(), 0).1,
                1 => (scan.seek_last().unwrap(), rows.len().wrapping_sub(1)).1,
                2 => (scan.seek(&key).unwrap(), rows.partition_point(|r| r.0 < key)).1,
                3 => {
                    scan.seek_back(&key).unwrap();
                    rows.partition_point(|r| r.0 <= key).wrapping_sub(1)
                }
                4..=8 => {
                    scan.next().unwrap();
                    at.map_or(usize::MAX, |at: usize| at + 1)
                }
                _ => {
                    scan.prev().unwrap();
                    at.map_or(usize::MAX, |at: usize| at.wrapping_sub(1))
                }
            };
            at = (to < rows.len()).then_some(to);
            let expected = at.map(|at| (rows[at].0.as_slice(), rows[at].1.as_slice()));
            let found = scan.valid().then(|| (scan.key(), scan.value().unwrap()));
            assert_eq!(found, expected, "seed {seed} step {step}");
        }
        let left: Vec<(Vec<u8>, Vec<u8>)> = match at {
            Some(at) => rows[at..].to_vec(),
            None => Vec::new(),
        };
        assert_eq!(scan.collect::<Result<Vec<_>>>().unwrap(), left, "seed {seed}");
        let fresh = Scan::new(&tree.state, range(&lower, upper.as_deref()), seq, blobs()).unwrap();
        assert_eq!(fresh.collect::<Result<Vec<_>>>().unwrap(), rows, "seed {seed}");
    }
}

/// Bound to one range after the other, in each of which it moves both ways.
#[test]
fn a_scan_of_the_whole_tree_that_is_bound_to_ranges_equals_the_model() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let tree = Tree::random(&mut random);
        let seq = read_seq(&mut random, tree.last_seq);
        let all = tree.rows(seq);
        let mut scan = Scan::of_whole_tree(&tree.state, None, range(b"a", None), seq, blobs());
        let scan = scan.as_mut().unwrap();
        assert!(scan.is_of_whole_tree());
        for round in 0..40 {
            let mut bound = || (random.below(4) != 0).then(|| random.key(60));
            let (lower, upper) = (bound().unwrap_or_default(), bound());
            scan.bind((&lower, upper.as_deref()), None);
            assert!(!scan.valid());
            let inside = |key: &[u8]| key >= &lower[..] && upper.as_ref().is_none_or(|u| key < u);
            let rows: Vec<_> = all.iter().filter(|row| inside(&row.0)).collect();
            let backward = random.below(2) == 0;
            let mut at = if backward { rows.len().wrapping_sub(1) } else { 0 };
            if backward { scan.seek_last() } else { scan.seek_first() }.unwrap();
            for step in 0..random.below(20) {
                let expected = rows.get(at).map(|row| (row.0.as_slice(), row.1.as_slice()));
                let found = scan.valid().then(|| (scan.key(), scan.value().unwrap()));
                assert_eq!(found, expected, "seed {seed} round {round} step {step}");
                if expected.is_none() {
                    break;
                }
                // Mostly the same way on.
                if backward == (random.below(8) != 0) {
                    at = at.wrapping_sub(1);
                    scan.prev().unwrap();
                } else {
                    at += 1;
                    scan.next().unwrap();
                }
            }
        }
    }
}

/// Blocks of rows that need no look at each, with newer versions, deletes and rows of other keys in
/// between: forward and backward, and turning around.
#[test]
fn rows_of_uniform_blocks_and_newer_ones_are_shown_in_both_directions() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let key = |number: u64| format!("key/{number:04}").into_bytes();
        let put = |number, seq| Entry { key: key(number), seq, kind: Kind::Put, value: key(seq) };
        let base =
            History { entries: (0..200).map(|at| put(2 * at, 1)).collect(), deletes: vec![] };
        let mut all = History { entries: base.entries.clone(), deletes: vec![] };
        let mut tree = Tree::empty();
        let cuts: Vec<Vec<u8>> = (0..random.below(4)).map(|cut| key(100 * (cut + 1))).collect();
        let tables = tree.disk.run(&base, &cuts);
        tree.set_levels(vec![vec![], vec![], tables]);
        for seq in 2..2 + random.below(40) {
            let mut entry = put(random.below(400), seq);
            if random.below(3) == 0 {
                (entry.kind, entry.value) = (Kind::Delete, Vec::new());
            }
            tree.state.active.insert(&entry.key, seq, entry.kind, &entry.value);
            all.entries.push(entry);
        }
        let seq = 1 + random.below(45);
        let (lower, upper) = (key(random.below(100)), key(300 + random.below(150)));
        let mut rows = all.visible(seq);
        rows.retain(|(key, _)| *key >= lower && *key < upper);
        let mut scan = Scan::new(&tree.state, range(&lower, Some(&upper)), seq, blobs()).unwrap();
        let shown = |scan: &Scan| {
            scan.valid().then(|| (scan.key().to_vec(), scan.value().unwrap().to_vec()))
        };
        scan.seek_last().unwrap();
        for row in rows.iter().rev() {
            assert_eq!(shown(&scan).as_ref(), Some(row), "seed {seed}");
            scan.prev().unwrap();
        }
        assert!(!scan.valid(), "seed {seed}");
        let mut at = rows.len() / 2;
        scan.seek(&rows[at].0).unwrap();
        for step in 0..300 {
            let back = random.below(9) < 5 || at + 1 == rows.len();
            if back && at > 0 {
                scan.prev().unwrap();
                at -= 1;
            } else {
                scan.next().unwrap();
                at += 1;
            }
            assert_eq!(shown(&scan).as_ref(), rows.get(at), "seed {seed} step {step}");
        }
    }
}

#[test]
fn a_scan_does_not_see_what_is_written_meanwhile() {
    let tree = Tree::empty();
    for key in [b"a", b"c", b"e"] {
        tree.state.active.insert(key, 1, Kind::Put, b"old");
    }
    let mut scan = Scan::new(&tree.state, range(b"", None), 1, blobs()).unwrap();
    scan.seek_first().unwrap();
    tree.state.active.insert(b"b", 2, Kind::Put, b"new");
    tree.state.active.insert(b"c", 3, Kind::Delete, b"");
    tree.state.active.insert(b"e", 4, Kind::Put, b"new");
    tree.state.active.delete_range(b"a", b"z", 5, 5);
    let mut keys = Vec::new();
    while scan.valid() {
        assert_eq!(scan.value().unwrap(), b"old");
        keys.push(scan.key()[0]);
        scan.next().unwrap();
    }
    assert_eq!(keys, b"ace");
    scan.seek_last().unwrap();
    for key in b"eca" {
        assert_eq!((scan.key(), scan.value().unwrap()), (&[*key][..], &b"old"[..]));
        scan.prev().unwrap();
    }
    assert!(!scan.valid());
}

#[test]
fn tables_outside_the_bounds_are_not_read() {
    let mut tree = Tree::empty();
    let entries = (0..200).map(|number| Entry {
        key: format!("{number:03}").into_bytes(),
        seq: 1,
        kind: Kind::Put,
        value: b"v".to_vec(),
    });
    let history = History { entries: entries.collect(), deletes: Vec::new() };
    let cuts: Vec<Vec<u8>> = (1..10).map(|cut| format!("{:03}", cut * 20).into_bytes()).collect();
    let tables = tree.disk.run(&history, &cuts);
    for table in tables.iter().filter(|table| table.meta.smallest[..2] != *b"06") {
        tree.disk.fs.remove(table.path()).unwrap();
    }
    tree.set_levels(vec![tables[..2].to_vec(), vec![], vec![], tables[2..].to_vec()]);
    let scan = Scan::new(&tree.state, range(b"065", Some(b"080")), 9, blobs()).unwrap();
    assert_eq!(scan.count(), 15);
    let mut scan = Scan::new(&tree.state, range(b"065", Some(b"081")), 9, blobs()).unwrap();
    assert_eq!(scan.by_ref().filter(Result::is_ok).count(), 15);
    assert!(!scan.valid());
}

#[test]
fn a_failing_large_value_does_not_lose_the_scan() {
    struct Failing;
    impl BlobSource for Failing {
        fn read(&self, _: &[u8]) -> Result<Vec<u8>> {
            Err(Error::Closed)
        }
    }
    let tree = Tree::empty();
    tree.state.active.insert(b"a", 1, Kind::Blob, &TestBlobs::reference(1));
    tree.state.active.insert(b"b", 2, Kind::Put, b"small");
    let mut scan = Scan::new(&tree.state, range(b"", None), 9, Arc::new(Failing)).unwrap();
    scan.seek_first().unwrap();
    assert_eq!(scan.key(), b"a");
    assert_eq!(scan.blob_ref(), Some(&TestBlobs::reference(1)[..]));
    assert!(matches!(scan.value(), Err(Error::Closed)));
    scan.next().unwrap();
    assert_eq!((scan.blob_ref(), scan.value().unwrap()), (None, &b"small"[..]));
    let mut scan = Scan::new(&tree.state, range(b"", None), 9, blobs()).unwrap();
    scan.seek_first().unwrap();
    assert_eq!(scan.value().unwrap(), b"blob 1");
    assert_eq!(scan.value().unwrap(), b"blob 1");
    scan.next().unwrap();
    scan.prev().unwrap();
    assert_eq!(scan.value().unwrap(), b"blob 1");
}
