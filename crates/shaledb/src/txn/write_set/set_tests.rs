//! A transaction's own writes against an ordered map and a list of copies of it.

use super::*;
use crate::base::ranges::looks;
use crate::wal::OpIter;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

type Map = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// All keys that may be.
fn keys() -> impl Iterator<Item = Vec<u8>> {
    (0..20u8).map(|n| vec![n])
}

fn check(set: &WriteSet, map: &Map, label: &str) {
    for key in keys() {
        let expected = match map.get(&key) {
            None => Written::Nothing,
            Some(None) => Written::Deleted,
            Some(Some(value)) => Written::Value(Kind::Put, Value::owned(value.clone())),
        };
        assert_eq!(set.get(1, &key).unwrap(), expected, "{label}, key {key:?}");
    }
}

/// What the operations do to rows that are all there.
fn outcome(set: &WriteSet) -> Map {
    let mut map = Map::new();
    let mut last = None;
    for op in OpIter::new(set.ops().unwrap().bytes(), 1) {
        match op.kind {
            Kind::RangeDelete => {
                assert!(last.is_none(), "range deletes come first");
                map.extend(
                    keys()
                        .filter(|key| op.key <= &key[..] && &key[..] < op.value)
                        .map(|k| (k, None)),
                );
            }
            kind => {
                assert!(last.as_deref() < Some(op.key), "each key once, in order");
                last = Some(op.key.to_vec());
                map.insert(op.key.to_vec(), (kind == Kind::Put).then(|| op.value.to_vec()));
            }
        }
    }
    map
}

#[test]
fn any_mix_of_writes_and_undoing_equals_the_model() {
    for seed in 0..300 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let (mut set, mut map) = (WriteSet::default(), Map::new());
        let mut marks: Vec<(Mark, Map)> = Vec::new();
        for step in 0..200u32 {
            let key = vec![rng.random_range(0..20u8)];
            match rng.random_range(0..20) {
                0 => marks.push((set.mark(), map.clone())),
                1 if !marks.is_empty() => {
                    let place = rng.random_range(0..marks.len());
                    marks.truncate(place + 1);
                    set.undo_to(marks[place].0);
                    map = marks[place].1.clone();
                }
                2 => set.write_anew(),
                // Another tree comes and goes, also between a mark and going back to it.
                8 => set.add(2, Kind::Put, &key, &[0; 100]),
                9 => set.forget(2),
                3 => {
                    let end = vec![rng.random_range(0..20u8)];
                    if key < end {
                        set.add(1, Kind::RangeDelete, &key, &end);
                        map.extend(keys().filter(|k| *k >= key && *k < end).map(|k| (k, None)));
                    }
                }
                4..=7 => {
                    set.add(1, Kind::Delete, &key, b"");
                    map.insert(key, None);
                }
                _ => {
                    let value = step.to_le_bytes().to_vec();
                    set.add(1, Kind::Put, &key, &value);
                    map.insert(key, Some(value));
                }
            }
            check(&set, &map, &format!("seed {seed}, step {step}"));
        }
        set.forget(2);
        for key in keys() {
            assert_eq!(set.get(2, &key).unwrap(), Written::Nothing, "seed {seed}");
        }
        assert_eq!(outcome(&set), map, "seed {seed}");
        let writes = &set.trees[&1];
        let (mut cursor, mut bytes) = (writes.memtable.cursor(), 0);
        let mut moved = cursor.seek_first();
        while moved.is_ok() && cursor.valid() {
            bytes += write_bytes(cursor.key(), cursor.value());
            moved = cursor.next();
        }
        assert!(set.memory_bytes() >= bytes - set.undone_bytes, "seed {seed}");
        set.forget(1);
        assert!(set.is_empty() && set.ops().unwrap().count() == 0, "seed {seed}");
        assert_eq!((set.memory_bytes(), set.deletes_bytes()), (0, 0), "seed {seed}");
    }
}

#[test]
fn memory_is_given_back_when_much_was_undone() {
    let mut set = WriteSet::default();
    set.add(1, Kind::Put, b"kept", b"1");
    let mark = set.mark();
    let kept = set.memory_bytes();
    for round in 0..50 {
        for n in 0..100u32 {
            set.add(1, Kind::Put, &n.to_le_bytes(), &[round; 1000]);
        }
        assert_eq!(set.count(), 101);
        set.undo_to(mark);
        assert_eq!((set.count(), set.is_empty()), (1, false));
    }
    assert!(set.memory_bytes() < kept + 2 * UNDONE_BYTES, "{}", set.memory_bytes());
    let memory = set.trees[&1].memtable.bytes() as u64;
    assert!(memory < 4 * UNDONE_BYTES, "{memory}");
    let value = Written::Value(Kind::Put, Value::owned(b"1".to_vec()));
    assert_eq!(set.get(1, b"kept").unwrap(), value);
    assert_eq!(set.ops().unwrap().count(), 1);
}

/// Each delete lies in all that come after it, or all before it.
#[test]
fn range_deletes_that_lie_in_each_other_take_little() {
    for grows in [true, false] {
        let mut set = WriteSet::default();
        for n in 0..2_000u32 {
            let (low, high) = if grows { (0, n + 1) } else { (n, 5_000) };
            set.add(1, Kind::RangeDelete, &low.to_be_bytes(), &high.to_be_bytes());
            // A look after each.
            let sets = set.of_tree(1).unwrap().writes.deletes;
            let seqs: usize =
                sets.iter().flat_map(|set| set.fragments()).map(|part| part.seqs.len()).sum();
            assert!(sets.len() <= 22 && seqs <= n as usize + 1, "{} sets, {seqs}", sets.len());
        }
        assert_eq!(set.get(1, &7u32.to_be_bytes()).unwrap(), Written::Deleted);
        assert_eq!(set.get(1, &6_000u32.to_be_bytes()).unwrap(), Written::Nothing);
        assert_eq!(set.ops().unwrap().count(), 2_000);
    }
}

/// Going back to a savepoint costs what is undone, about, wherever the savepoint is, and so does
/// adding the next delete.
#[test]
fn undoing_a_range_delete_costs_little_however_many_there_are() {
    const COUNT: u32 = 1_500;
    let add = |set: &mut WriteSet, n: u32| {
        // They lie apart, so that each counts in what they are merged to.
        set.add(1, Kind::RangeDelete, &(2 * n).to_be_bytes(), &(2 * n + 1).to_be_bytes());
    };
    let (mut set, mut looks) = (WriteSet::default(), 0);
    let mut marks = Vec::new();
    looks::take();
    for n in 0..COUNT {
        marks.push(set.mark());
        // A statement that fails, again and again: also where a set has come of others.
        for _ in 0..4 {
            add(&mut set, n);
            set.undo_to(marks[n as usize]);
        }
        add(&mut set, n);
        looks += looks::take();
        let newest = set.range_deletes(1);
        assert_eq!(newest.fragments().len(), n as usize + 1);
        looks::take();
    }
    // And then back, one by one.
    for (n, mark) in marks.iter().enumerate().rev() {
        set.undo_to(*mark);
        looks += looks::take();
        assert_eq!(set.range_deletes(1).fragments().len(), n);
        looks::take();
    }
    let each = looks / COUNT as usize;
    assert!(each < 150, "{each} looks for each of them");
}

/// They are kept as they were written and as sets; both count.
#[test]
fn all_of_range_deletes_counts() {
    let mut set = WriteSet::default();
    let mark = set.mark();
    for n in 0..1_000u32 {
        set.add(1, Kind::RangeDelete, &(2 * n).to_be_bytes(), &(2 * n + 1).to_be_bytes());
    }
    let deletes = &set.trees[&1].deletes;
    let one = |delete: &RangeDelete| {
        size_of::<RangeDelete>() + delete.start.capacity() + delete.end.capacity()
    };
    let listed: usize = deletes.all().iter().map(one).sum();
    let sets: usize = deletes.sets().iter().map(|set| set.memory_bytes()).sum();
    let taken = (listed + sets) as u64;
    let told = set.deletes_bytes();
    assert!(told >= taken * 9 / 10 && told < taken * 2, "{told} of {taken}");
    set.undo_to(mark);
    assert_eq!((set.deletes_bytes(), set.user_bytes()), (0, 0));
}

/// What a transaction of the same thread has written before, or undone, is not in the memtables
/// that it has left.
#[cfg(not(feature = "shuttle"))]
#[test]
fn memtables_are_used_again() {
    let own_thread = std::thread::spawn(|| {
        assert_eq!(spare::count(), 0);
        for round in 0..50u8 {
            let mut set = WriteSet::default();
            for tree in 1..=3 {
                set.add(tree, Kind::Put, &[round % 7, 1], &[round]);
                for key in (0..10).map(|n| [n, 1]).filter(|key| key[0] != round % 7) {
                    assert_eq!(set.get(tree, &key).unwrap(), Written::Nothing, "{round}");
                }
                let mark = set.mark();
                for n in 0..=round % 10 {
                    set.add(tree, Kind::Put, &[n, 1], &[0; 30]);
                }
                set.add(tree, Kind::Delete, &[round % 7, 1], b"");
                set.undo_to(mark);
                let value = Written::Value(Kind::Put, Value::owned(vec![round]));
                assert_eq!(set.get(tree, &[round % 7, 1]).unwrap(), value, "{round}");
            }
            let ops = set.ops().unwrap();
            let told: Vec<_> = OpIter::new(ops.bytes(), 1).map(|op| (op.tree, op.value)).collect();
            assert_eq!(told, [(1, &[round][..]), (2, &[round][..]), (3, &[round][..])]);
            drop(set);
            assert_eq!(spare::count(), 3);
        }
        let mut set = WriteSet::default();
        for tree in 0..20 {
            set.add(tree, Kind::Put, b"k", if tree < 10 { &[0; 5000] } else { b"1" });
        }
        drop(set);
        assert_eq!(spare::count(), spare::SPARE);
    });
    own_thread.join().unwrap();
}

/// A scan goes on with what it has, whoever writes next, and whoever ends the transaction.
#[cfg(not(feature = "shuttle"))]
#[test]
fn a_memtable_that_a_scan_has_is_not_used_again() {
    let own_thread = std::thread::spawn(|| {
        let mut set = WriteSet::default();
        set.add(1, Kind::Put, b"k", b"1");
        set.add(2, Kind::Put, b"k", b"2");
        let scanned = set.of_tree(1).unwrap().memtable;
        let mut cursor = scanned.cursor();
        drop(scanned);
        let dropped = std::thread::spawn(move || {
            drop(set);
            // Only the one that is not looked at.
            assert_eq!(spare::count(), 1);
            let mut next = WriteSet::default();
            next.add(1, Kind::Put, b"other", b"3");
            assert_eq!(next.get(1, b"k").unwrap(), Written::Nothing);
        });
        dropped.join().unwrap();
        assert_eq!(spare::count(), 0);
        cursor.seek_first().unwrap();
        assert_eq!((cursor.key(), cursor.value()), (&b"k"[..], &b"1"[..]));
        cursor.next().unwrap();
        assert!(!cursor.valid());
    });
    own_thread.join().unwrap();
}
