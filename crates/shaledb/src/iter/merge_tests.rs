use super::*;
use crate::base::error::Error;
use crate::base::key::SEQ_MAX;
use crate::iter::testing::{Entry, Random, VecCursor};

fn put(key: &[u8], seq: SeqNo) -> Entry {
    Entry { key: key.to_vec(), seq, kind: Kind::Put, value: format!("{seq}").into_bytes() }
}

/// Random entries dealt out to `children` cursors, in runs of random length; and all of them
/// sorted.
fn random_children(random: &mut Random, children: u64, count: u64) -> (Vec<VecCursor>, Vec<Entry>) {
    let mut dealt = vec![Vec::new(); children as usize];
    let mut all = Vec::new();
    for seq in 0..count {
        let entry = put(&random.key(40), seq);
        all.push(entry);
    }
    all.sort_by(|a, b| key::compare(&a.key, a.seq, &b.key, b.seq));
    let mut child = 0;
    for entry in &all {
        if random.below(3) == 0 {
            child = random.below(children) as usize;
        }
        dealt[child].push(entry.clone());
    }
    (dealt.into_iter().map(VecCursor::new).collect(), all)
}

#[test]
fn forward_and_backward_give_all_in_order() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let children = 1 + seed % 20;
        let (cursors, all) = random_children(&mut random, children, 300);
        let mut merge = Merge::new(cursors);
        assert!(!merge.valid());
        merge.seek_first().unwrap();
        for entry in &all {
            assert!(merge.valid(), "seed {seed}");
            assert_eq!((merge.key(), merge.seq()), (&entry.key[..], entry.seq), "seed {seed}");
            assert_eq!(merge.value(), entry.value);
            assert_eq!(merge.current().seq(), entry.seq);
            merge.next().unwrap();
        }
        assert!(!merge.valid());
        merge.seek_last().unwrap();
        for entry in all.iter().rev() {
            assert_eq!((merge.key(), merge.seq()), (&entry.key[..], entry.seq), "seed {seed}");
            merge.prev().unwrap();
        }
        assert!(!merge.valid());
    }
}

#[test]
fn any_mix_of_moves_equals_a_sorted_vector() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let children = 1 + random.below(9);
        let (cursors, all) = random_children(&mut random, children, 120);
        let mut merge = Merge::new(cursors);
        let mut model = VecCursor::new(all);
        for step in 0..200 {
            let (key, seq) = (random.key(42), random.below(130));
            match random.below(12) {
                0 => (merge.seek_first().unwrap(), model.seek_first().unwrap()),
                1 => (merge.seek_last().unwrap(), model.seek_last().unwrap()),
                2 => (merge.seek(&key, seq).unwrap(), model.seek(&key, seq).unwrap()),
                3 => (merge.seek_back(&key, seq).unwrap(), model.seek_back(&key, seq).unwrap()),
                4 => {
                    let behind = !model.valid()
                        || key::compare(model.key(), model.seq(), &key, seq) == Ordering::Less;
                    if behind {
                        model.seek(&key, seq).unwrap();
                        merge.advance_to(&key, seq).unwrap();
                    }
                    ((), ())
                }
                5 => {
                    let behind = !model.valid()
                        || key::compare(model.key(), model.seq(), &key, seq) != Ordering::Less;
                    if behind {
                        model.seek_back(&key, seq).unwrap();
                        merge.retreat_to(&key, seq).unwrap();
                    }
                    ((), ())
                }
                6..=8 if model.valid() => (merge.next().unwrap(), model.next().unwrap()),
                9.. if model.valid() => (merge.prev().unwrap(), model.prev().unwrap()),
                _ => ((), ()),
            };
            assert_eq!(merge.valid(), model.valid(), "seed {seed} step {step}");
            if model.valid() {
                let (a, b) = ((merge.key(), merge.seq()), (model.key(), model.seq()));
                assert_eq!(a, b, "seed {seed} step {step}");
            }
        }
    }
}

#[test]
fn heads_after_a_prefix_give_the_same_order() {
    let entries =
        |keys: &[&str]| VecCursor::new(keys.iter().map(|k| put(k.as_bytes(), 1)).collect());
    let children = || {
        vec![
            entries(&["", "tenant-0", "tenant-000-a", "tenant-000-c", "tenant-000-"]),
            entries(&["tenant-000-abcdefghi", "tenant-000-abcdefgh", "tenant-001", "z"]),
            entries(&["tenant", "tenant-000-\0", "tenant-000-b", "u"]),
        ]
    };
    let keys = |mut merge: Merge<VecCursor>| {
        let mut seen = Vec::new();
        merge.seek_first().unwrap();
        while merge.valid() {
            seen.push(String::from_utf8(merge.key().to_vec()).unwrap());
            merge.next().unwrap();
        }
        merge.seek_last().unwrap();
        for key in seen.iter().rev() {
            assert_eq!(merge.key(), key.as_bytes());
            merge.prev().unwrap();
        }
        seen
    };
    let expected = keys(Merge::new(children()));
    assert_eq!(expected.len(), 13);
    assert!(expected.is_sorted());
    for prefix in ["t", "tenant-000-", "tenant-000-abc", "zz"] {
        assert_eq!(keys(Merge::new(children()).with_prefix(prefix.as_bytes())), expected);
    }
}

#[test]
fn extreme_heads_do_not_look_like_an_end() {
    let mut merge = Merge::new(vec![
        VecCursor::new(vec![]),
        VecCursor::new(vec![put(&[0xff; 12], 1), put(b"", 2)]),
        VecCursor::new(vec![put(&[0xff; 8], 3), put(&[0; 9], 4)]),
    ]);
    let mut seqs = Vec::new();
    merge.seek_first().unwrap();
    while merge.valid() {
        seqs.push(merge.seq());
        merge.next().unwrap();
    }
    assert_eq!(seqs, [2, 4, 3, 1]);
    merge.seek_last().unwrap();
    for seq in [1, 3, 4, 2] {
        assert_eq!(merge.seq(), seq);
        merge.prev().unwrap();
    }
    assert!(!merge.valid());
}

#[test]
fn no_children_no_entries() {
    let mut merge: Merge<VecCursor> = Merge::new(Vec::new());
    merge.seek_first().unwrap();
    assert!(!merge.valid());
    merge.next().unwrap();
    merge.seek_back(b"k", 3).unwrap();
    merge.prev().unwrap();
    assert!(!merge.valid());
}

#[test]
fn the_error_of_a_child_ends_the_merge() {
    let mut bad = VecCursor::new((0..10).map(|i| put(&[b'b', i], 1)).collect());
    bad.fails_at = Some(4);
    let good = VecCursor::new((0..10).map(|i| put(&[b'b', i], 2)).collect());
    let mut merge = Merge::new(vec![good, bad]);
    merge.seek_first().unwrap();
    let mut count = 0;
    let error = loop {
        count += 1;
        if let Err(error) = merge.next() {
            break error;
        }
    };
    assert!(matches!(error, Error::InvalidArgument(_)));
    assert_eq!(count, 8);
    assert!(!merge.valid());
    merge.next().unwrap();
    assert!(!merge.valid());
    assert!(merge.seek(&[b'b', 4], SEQ_MAX).is_err());
    assert!(!merge.valid());
    merge.seek(&[b'b', 5], SEQ_MAX).unwrap();
    assert_eq!((merge.key(), merge.seq()), (&[b'b', 5][..], 2));
}

#[test]
fn skipping_moves_only_children_that_are_old() {
    let old = VecCursor::new((0..100).map(|i| put(&[i], 1)).collect());
    let new = VecCursor::new(vec![put(&[50], 9), put(&[200], 9)]);
    let mut merge = Merge::new(vec![old, new]);
    merge.seek_first().unwrap();
    assert!(merge.skip_to(&[90], 5).unwrap());
    assert_eq!((merge.key(), merge.winner.child), (&[50][..], 1));
    assert!(!merge.skip_to(&[90], 5).unwrap());
    merge.next().unwrap();
    assert_eq!(merge.key(), [90]);
    merge.seek_last().unwrap();
    assert!(!merge.skip_back_to(&[10], 5).unwrap());
    merge.prev().unwrap();
    assert!(merge.skip_back_to(&[10], 5).unwrap());
    assert_eq!((merge.key(), merge.winner.child), (&[50][..], 1));
    merge.prev().unwrap();
    assert_eq!(merge.key(), [9]);
}

#[test]
fn the_rival_is_the_next_but_for_the_current_child() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let children = 1 + seed % 9;
        let (cursors, _) = random_children(&mut random, children, 80);
        let mut merge = Merge::new(cursors);
        merge.seek_first().unwrap();
        while merge.valid() {
            let naive = merge
                .children()
                .iter()
                .enumerate()
                .filter(|(index, child)| *index != merge.winner.child as usize && child.valid())
                .map(|(_, child)| child)
                .min_by(|a, b| key::compare(a.key(), a.seq(), b.key(), b.seq()));
            assert_eq!(merge.rival().map(|c| c.seq()), naive.map(|c| c.seq()), "seed {seed}");
            if random.below(4) == 0 {
                let seq = merge.seq();
                merge
                    .advance_current(|child| {
                        assert_eq!(child.seq(), seq);
                        child.next()?;
                        if child.valid() { child.next() } else { Ok(()) }
                    })
                    .unwrap();
            } else {
                merge.next().unwrap();
            }
        }
    }
}
