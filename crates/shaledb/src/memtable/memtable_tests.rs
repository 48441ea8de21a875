use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::base::key::SEQ_MAX;

type Place = (Vec<u8>, Reverse<SeqNo>);
type Entry = (Kind, Vec<u8>);
type Model = BTreeMap<Place, Entry>;

pub(super) fn size(full: usize, under_miri: usize) -> usize {
    if cfg!(miri) { under_miri } else { full }
}

/// Keys of all lengths around a head's eight bytes, many with equal heads.
fn random_key(random: &mut Pcg64Mcg) -> Vec<u8> {
    let mut key = match random.random_range(0..4) {
        0 => Vec::new(),
        1 => b"prefix__".to_vec(),
        2 => vec![0; random.random_range(0..10)],
        _ => vec![0xff; random.random_range(0..10)],
    };
    for _ in 0..random.random_range(0..4) {
        key.push([0, 1, b'a', b'b', 0xff][random.random_range(0..5)]);
    }
    key
}

fn here(cursor: &MemCursor) -> Option<(Place, Entry)> {
    cursor.valid().then(|| {
        let place = (cursor.key().to_vec(), Reverse(cursor.seq()));
        (place, (cursor.kind(), cursor.value().to_vec()))
    })
}

fn check_against(model: &Model, memtable: &Memtable, random: &mut Pcg64Mcg, newest: SeqNo) {
    let owned = |found: Option<(&Place, &Entry)>| {
        found.map(|(place, entry)| (place.clone(), entry.clone()))
    };
    for _ in 0..size(200, 10) {
        let key = random_key(random);
        let seq =
            if random.random_bool(0.2) { SEQ_MAX } else { random.random_range(0..=newest + 1) };
        let target = (key.clone(), Reverse(seq));
        let at = owned(model.range(target.clone()..).next());
        let before = owned(model.range(..target).next_back());
        let expected = at.clone().filter(|((found, _), _)| *found == key);
        let got = memtable.get(&key, seq);
        assert_eq!(
            got.map(|entry| (entry.seq, entry.kind, entry.value.to_vec())),
            expected.map(|((_, Reverse(seq)), (kind, value))| (seq, kind, value))
        );
        let mut cursor = memtable.cursor();
        cursor.seek(&key, seq).unwrap();
        assert_eq!(here(&cursor), at);
        if cursor.valid() {
            cursor.prev().unwrap();
            assert_eq!(here(&cursor), before);
        }
        cursor.seek_back(&key, seq).unwrap();
        assert_eq!(here(&cursor), before);
        if cursor.valid() {
            cursor.next().unwrap();
            assert_eq!(here(&cursor), at);
        }
    }
    let mut cursor = memtable.cursor();
    assert!(!cursor.valid());
    cursor.seek_first().unwrap();
    for (place, entry) in model {
        assert_eq!(here(&cursor), Some((place.clone(), entry.clone())));
        cursor.next().unwrap();
    }
    assert!(!cursor.valid());
    cursor.seek_last().unwrap();
    for (place, entry) in model.iter().rev() {
        assert_eq!(here(&cursor), Some((place.clone(), entry.clone())));
        cursor.prev().unwrap();
    }
    assert!(!cursor.valid());
}

#[test]
fn what_inserts_write_is_on_other_cache_lines_than_what_reads_go_by() {
    use std::mem::offset_of;
    let apart = offset_of!(Memtable, list).min(offset_of!(Memtable, ranges));
    assert!(apart >= offset_of!(Memtable, last_seq) + 64, "{apart}");
    // Before the first field is the count of references.
    assert_eq!(offset_of!(Memtable, last_seq), 0);
}

#[test]
fn equals_a_btree_map() {
    for seed in 0..size(40, 2) as u64 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let memtable = Memtable::new();
        let mut model = Model::new();
        let mut seq = 0;
        for _ in 0..3 {
            for _ in 0..random.random_range(0..size(400, 30)) {
                seq += random.random_range(1..3);
                let key = random_key(&mut random);
                let (kind, value) = match random.random_range(0..4) {
                    0 => (Kind::Delete, Vec::new()),
                    1 => (Kind::Blob, vec![1; 12]),
                    _ => (Kind::Put, vec![seq as u8; random.random_range(0..300)]),
                };
                memtable.insert(&key, seq, kind, &value);
                model.insert((key, Reverse(seq)), (kind, value));
            }
            check_against(&model, &memtable, &mut random, seq);
        }
        assert_eq!(memtable.count(), model.len() as u64);
    }
}

#[test]
fn order_of_inserts_does_not_matter() {
    let count = size(3000, 60) as u64;
    let orders: [fn(u64, u64) -> u64; 4] = [
        |at, _| at,
        |at, count| count - 1 - at,
        |at, count| (at * 7919) % count,
        // Two ascending runs, taking turns.
        |at, count| at / 2 + (at % 2) * (count / 2),
    ];
    for order in orders {
        let memtable = Memtable::new();
        for at in 0..count {
            let number = order(at, count);
            memtable.insert(&number.to_be_bytes(), at + 1, Kind::Put, &number.to_le_bytes());
        }
        let mut cursor = memtable.cursor();
        cursor.seek_first().unwrap();
        for number in 0..count {
            assert_eq!(cursor.key(), number.to_be_bytes());
            assert_eq!(cursor.value(), number.to_le_bytes());
            cursor.next().unwrap();
        }
        assert!(!cursor.valid());
    }
}

#[test]
fn reads_see_the_version_of_their_time() {
    let memtable = Memtable::new();
    memtable.insert(b"key", 5, Kind::Put, b"five");
    memtable.insert(b"key", 9, Kind::Delete, b"");
    memtable.insert(b"key", 7, Kind::Put, b"seven");
    assert_eq!(memtable.get(b"key", 4), None);
    let five = MemEntry { seq: 5, kind: Kind::Put, value: b"five" };
    assert_eq!(memtable.get(b"key", 5), Some(five));
    assert_eq!(memtable.get(b"key", 6), Some(five));
    assert_eq!(memtable.get(b"key", 8).unwrap().value, b"seven");
    assert_eq!(memtable.get(b"key", SEQ_MAX).unwrap().kind, Kind::Delete);
    assert_eq!(memtable.get(b"ke", SEQ_MAX), None);
    assert_eq!(memtable.get(b"key\0", SEQ_MAX), None);
    assert_eq!((memtable.first_seq(), memtable.last_seq()), (Some(5), 9));
}

#[test]
fn an_empty_memtable() {
    let memtable = Memtable::new();
    assert!(memtable.is_empty());
    assert_eq!((memtable.bytes(), memtable.used_bytes(), memtable.count()), (0, 0, 0));
    assert_eq!((memtable.first_seq(), memtable.last_seq()), (None, 0));
    assert_eq!(memtable.get(b"", SEQ_MAX), None);
    assert!(memtable.range_deletes().is_empty() && !memtable.has_range_deletes());
    let mut cursor = memtable.cursor();
    cursor.seek_first().unwrap();
    assert!(!cursor.valid());
    cursor.seek_last().unwrap();
    assert!(!cursor.valid());
    cursor.seek(b"", SEQ_MAX).unwrap();
    assert!(!cursor.valid());
    cursor.seek_back(b"x", 0).unwrap();
    assert!(!cursor.valid());
}

#[test]
fn large_keys_and_values() {
    let memtable = Memtable::new();
    let key = vec![7u8; crate::base::key::KEY_BYTES_MAX];
    let value = vec![9u8; size(20 << 20, 1 << 20)];
    memtable.insert(&key, 1, Kind::Put, &value);
    memtable.insert(b"small", 2, Kind::Put, b"value");
    assert!(memtable.get(&key, 1).unwrap().value == value);
    assert_eq!(memtable.get(b"small", 2).unwrap().value, b"value");
    let entries = key.len() + value.len() + 10;
    assert!(memtable.used_bytes() > entries && memtable.bytes() < entries + 8192);
}

/// Written, reset, and written with other keys, which are of other heights where they come to be.
#[test]
fn what_was_reset_is_as_new() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let (mut memtable, mut again, rounds) = (Memtable::new(), 0, size(200, 8));
    for round in 0..rounds {
        let mut model = Model::new();
        let count = random.random_range(0..size(80, 40)) as SeqNo;
        for seq in 1..=count {
            let (key, value) = (random_key(&mut random), vec![round as u8; seq as usize % 60]);
            memtable.insert(&key, seq, Kind::Put, &value);
            model.insert((key, Reverse(seq)), (Kind::Put, value));
        }
        check_against(&model, &memtable, &mut random, count);
        let walked = memtable.entries().map(|(key, entry)| {
            ((key.to_vec(), Reverse(entry.seq)), (entry.kind, entry.value.to_vec()))
        });
        assert!(walked.eq(model.clone()), "round {round}");
        assert_eq!((memtable.count(), memtable.last_seq()), (count, count));
        if !memtable.reset() {
            assert_eq!(memtable.count(), count, "nothing has changed");
            memtable = Memtable::new();
            continue;
        }
        again += usize::from(count > 20);
        assert!(memtable.is_empty() && memtable.bytes() <= 4096 && memtable.used_bytes() < 64);
        assert_eq!((memtable.first_seq(), memtable.last_seq()), (None, 0));
    }
    assert!(again > rounds / 10, "{again}");
}

#[test]
fn what_is_large_or_in_use_is_not_reset() {
    let mut memtable = Memtable::new();
    memtable.insert(b"a", 1, Kind::Put, b"1");
    let mut cursor = memtable.cursor();
    assert!(!memtable.reset());
    cursor.seek_first().unwrap();
    assert_eq!((cursor.key(), cursor.value()), (&b"a"[..], &b"1"[..]));
    drop(cursor);
    assert!(memtable.reset() && memtable.get(b"a", 9).is_none());
    memtable.attach(Arc::new(7u8), 1, 0);
    assert!(!memtable.reset() && memtable.attached::<u8>().len() == 1);
    let mut memtable = Memtable::new();
    memtable.delete_range(b"a", b"b", 1, 1);
    assert!(!memtable.reset() && memtable.newest_covering(b"a", 1) == 1);
    let mut memtable = Memtable::new();
    memtable.insert(b"a", 1, Kind::Put, &[1; 5000]);
    assert!(!memtable.reset() && memtable.get(b"a", 1).is_some());
}

#[test]
fn a_cursor_outlives_the_memtable_and_sees_later_inserts() {
    let memtable = Memtable::new();
    memtable.insert(b"b", 1, Kind::Put, b"1");
    let mut cursor = memtable.cursor();
    cursor.seek_first().unwrap();
    memtable.insert(b"c", 2, Kind::Put, b"2");
    memtable.insert(b"a", 3, Kind::Put, b"3");
    assert_eq!(cursor.key(), b"b");
    drop(memtable);
    cursor.next().unwrap();
    assert_eq!((cursor.key(), cursor.value()), (&b"c"[..], &b"2"[..]));
    cursor.prev().unwrap();
    cursor.prev().unwrap();
    assert_eq!((cursor.key(), cursor.seq()), (&b"a"[..], 3));
}

#[test]
fn range_deletes_equal_a_set_built_at_once() {
    let mut random = Pcg64Mcg::seed_from_u64(11);
    let memtable = Memtable::new();
    let mut all = Vec::new();
    for seq in 1..size(200, 20) as u64 {
        let (a, b) = (random.random_range(0..250u8), random.random_range(1..40u8));
        let (start, end) = (vec![a], vec![a.saturating_add(b)]);
        memtable.delete_range(&start, &end, seq, seq);
        all.push(crate::base::ranges::RangeDelete { start, end, seq });
        if seq % 9 == 0 {
            let expected = RangeDeletes::new(all.clone());
            for key in 0..=255u8 {
                let read = random.random_range(0..seq + 2);
                let covering = expected.newest_covering(&[key], read);
                assert_eq!(memtable.newest_covering(&[key], read), covering);
            }
            if seq % 2 == 0 {
                assert_eq!(*memtable.range_deletes(), expected);
                assert!(Arc::ptr_eq(&memtable.range_deletes(), &memtable.range_deletes()));
            }
        }
    }
    assert!(memtable.has_range_deletes() && !memtable.is_empty());
    assert_eq!(memtable.count(), all.len() as u64);
    assert_eq!(memtable.last_seq(), all.len() as u64);
    assert!(memtable.bytes() > 0);
    assert_eq!(*memtable.range_deletes(), RangeDeletes::new(all));
}

/// Deletes that lie in each other, as of a queue whose head is cut off again and again: each
/// fragment has all that cover it, which counts, so that the memtable is sealed in time.
#[test]
fn nested_range_deletes_count_with_what_they_take() {
    let count = size(4000, 40) as u64;
    let memtable = Memtable::new();
    for seq in 1..=count {
        memtable.delete_range(b"", &(seq as u32).to_be_bytes(), seq, seq);
    }
    // A number for each pair within one of the sets, each half as large as the one before.
    assert!(memtable.bytes() as u64 > count * count / 8 * 8, "{}", memtable.bytes());
    // A flush writes one of each range.
    let each = size_of::<crate::base::ranges::RangeDelete>() as u64 + 12;
    assert!(memtable.used_bytes() as u64 <= count * each, "{}", memtable.used_bytes());
    for key in [0, 1, count as u32 / 2, count as u32 - 1, count as u32] {
        let newest = if u64::from(key) < count { count } else { 0 };
        assert_eq!(memtable.newest_covering(&key.to_be_bytes(), u64::MAX), newest, "{key}");
    }
    assert_eq!(memtable.range_deletes().fragments().len() as u64, count);
}

/// Nobody reads between two deletes of one commit: those that lie in each other take what they
/// need, whichever way they lie.
#[test]
fn nested_range_deletes_of_one_commit_take_what_they_need() {
    let count = size(4000, 40) as u64;
    // Scans ask for all as one set, and may do so while the commit is on its way.
    for (shrink, scans) in [(false, false), (true, false), (false, true), (true, true)] {
        let memtable = Memtable::new();
        for seq in 1..=count {
            let end = if shrink { count - seq + 1 } else { seq };
            memtable.delete_range(b"", &(end as u32).to_be_bytes(), seq, 1);
            if scans && seq % 10 == 0 {
                memtable.range_deletes();
            }
            assert!(memtable.bytes() as u64 <= count * 160, "{}", memtable.bytes());
        }
        assert_eq!(memtable.count(), count);
        for key in [0, 1, count / 2, count - 1, count] {
            let newest = match shrink {
                true => count - key,
                false if key < count => count,
                false => 0,
            };
            let key = (key as u32).to_be_bytes();
            assert_eq!(memtable.newest_covering(&key, u64::MAX), newest);
        }
        // As one set each has at most one number of each of the sets before.
        let sets = u64::from(count.ilog2()) + 1;
        let fragments = memtable.range_deletes().fragments().len() as u64;
        assert!(fragments <= if shrink { count } else { sets }, "{fragments}");
        assert!(memtable.bytes() as u64 <= count * (160 + 8 * sets), "{}", memtable.bytes());
    }
}

/// Reads at the ends of commits see what they would see with all deletes, however these lie.
#[test]
fn of_range_deletes_of_one_commit_the_newest_counts() {
    let mut random = Pcg64Mcg::seed_from_u64(12);
    for _ in 0..size(40, 3) {
        let memtable = Memtable::new();
        let (mut all, mut ends, mut seq) = (Vec::new(), vec![0], 0u64);
        while ends.len() < 12 {
            let unseen = seq + 1;
            for _ in 0..random.random_range(1..12) {
                seq += 1;
                let (a, b) = (random.random_range(0..60u8), random.random_range(1..60u8));
                let (start, end) = (vec![a], vec![a + b]);
                memtable.delete_range(&start, &end, seq, unseen);
                all.push(crate::base::ranges::RangeDelete { start, end, seq });
                // Reads of before go on meanwhile.
                let read = *ends.last().unwrap();
                let key = [random.random_range(0..120u8)];
                let before = all.iter().filter(|of| of.seq <= read);
                let expected = RangeDeletes::new(before.cloned()).newest_covering(&key, read);
                assert_eq!(memtable.newest_covering(&key, read), expected);
            }
            ends.push(seq);
        }
        let expected = RangeDeletes::new(all);
        for read in ends {
            for key in 0..=120u8 {
                let newest = expected.newest_covering(&[key], read);
                assert_eq!(memtable.newest_covering(&[key], read), newest);
                assert_eq!(memtable.range_deletes().newest_covering(&[key], read), newest);
            }
        }
    }
}

/// Writers insert (own range of sequence numbers, shared keys); readers check all the while that
/// what was finished is there and that cursors move in order.
#[test]
fn many_threads_insert_while_others_read() {
    use std::sync::atomic::AtomicU64;

    let writers = 3u64;
    let count = size(20_000, 60) as u64;
    let memtable = Memtable::new();
    let done: Vec<AtomicU64> = (0..writers).map(|_| AtomicU64::new(0)).collect();
    let key_of = |writer: u64, at: u64| {
        // One writer ascends, the others jump about; all keys of a head share it with others.
        let number = if writer == 0 { at } else { (at * 7919 + writer) % count };
        format!("{number:08}{}", number % 3).into_bytes()
    };
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let (memtable, done) = (&memtable, &done);
            scope.spawn(move || {
                for at in 0..count {
                    let seq = at * writers + writer + 1;
                    let key = key_of(writer, at);
                    memtable.insert(&key, seq, Kind::Put, &seq.to_le_bytes());
                    done[writer as usize].store(at + 1, Ordering::Release);
                }
            });
        }
        for reader in 0..2u64 {
            let (memtable, done) = (&memtable, &done);
            scope.spawn(move || {
                let mut random = Pcg64Mcg::seed_from_u64(reader);
                while done.iter().any(|done| done.load(Ordering::Acquire) < count) {
                    let writer = random.random_range(0..writers);
                    let finished = done[writer as usize].load(Ordering::Acquire);
                    if finished == 0 {
                        std::thread::yield_now();
                        continue;
                    }
                    let at = finished - 1 - random.random_range(0..finished.min(50));
                    let seq = at * writers + writer + 1;
                    let entry = memtable.get(&key_of(writer, at), seq).expect("it was finished");
                    assert_eq!((entry.seq, entry.value), (seq, &seq.to_le_bytes()[..]));
                    let mut cursor = memtable.cursor();
                    cursor.seek(&key_of(writer, at), seq).unwrap();
                    assert_eq!(cursor.seq(), seq);
                    for _ in 0..5 {
                        let before = (cursor.key().to_vec(), Reverse(cursor.seq()));
                        cursor.next().unwrap();
                        if !cursor.valid() {
                            break;
                        }
                        assert!(before < (cursor.key().to_vec(), Reverse(cursor.seq())));
                    }
                }
            });
        }
    });
    let mut cursor = memtable.cursor();
    cursor.seek_first().unwrap();
    let mut last: Option<Place> = None;
    let mut seen = 0;
    while cursor.valid() {
        let place = (cursor.key().to_vec(), Reverse(cursor.seq()));
        assert!(last.as_ref().is_none_or(|last| *last < place));
        last = Some(place);
        seen += 1;
        cursor.next().unwrap();
    }
    assert_eq!(seen, writers * count);
    assert_eq!(memtable.count(), writers * count);
    assert_eq!((memtable.first_seq(), memtable.last_seq()), (Some(1), writers * count));
}

#[test]
fn a_sample_is_all_of_few_entries_and_tells_how_many_there_are_of_many() {
    let keys = size(20_000, 200) as u64;
    let memtable = Memtable::new();
    for key in 0..keys {
        memtable.insert(&key.to_be_bytes(), key + 1, Kind::Put, b"v");
    }
    let mut random = Pcg64Mcg::seed_from_u64(11);
    let (mut told, mut true_sum) = (0.0, 0.0);
    for _ in 0..size(2_000, 20) {
        let from = random.random_range(0..keys);
        let most = 1 << random.random_range(0..15);
        let width = random.random_range(0..=(keys - from).min(most));
        let upper = (from + width).to_be_bytes();
        let (entries, found) = memtable.sample(&from.to_be_bytes(), Some(&upper), 32);
        let numbers: Vec<u64> = found.iter().map(|one| one.seq - 1).collect();
        assert!(numbers.is_sorted() && numbers.iter().all(|at| (from..from + width).contains(at)));
        if width < 32 {
            assert_eq!((entries, numbers.len() as u64), (width, width), "from {from}");
        } else {
            assert!(numbers.len() >= 32 && entries >= 32, "{entries} of {width}");
            told += entries as f64;
            true_sum += width as f64;
        }
    }
    if true_sum > 0.0 && !cfg!(miri) {
        assert!((told / true_sum - 1.0).abs() < 0.1, "{told} of {true_sum}");
    }
}

#[test]
fn steps_back_are_those_of_a_search_whatever_is_inserted_meanwhile() {
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let memtable = Memtable::new();
    let mut model: BTreeSet<Place> = BTreeSet::new();
    let mut seq = 0;
    let mut insert = |model: &mut BTreeSet<Place>, number: u32| {
        seq += 1;
        // Heads are equal for some hundred keys.
        let key = format!("row/{number:06}").into_bytes();
        memtable.insert(&key, seq, Kind::Put, b"v");
        model.insert((key, Reverse(seq)));
    };
    for _ in 0..size(3_000, 60) {
        insert(&mut model, random.random_range(0..2_000));
    }
    for _ in 0..size(60, 6) {
        let mut cursor = memtable.cursor();
        cursor.seek_last().unwrap();
        let mut at = model.last().cloned();
        while let Some(here) = at {
            assert_eq!((cursor.key(), Reverse(cursor.seq())), (here.0.as_slice(), here.1));
            match random.random_range(0..40) {
                0 => insert(&mut model, random.random_range(0..2_000)),
                1 if model.last() != Some(&here) => {
                    cursor.next().unwrap();
                    let after = (Bound::Excluded(&here), Bound::Unbounded);
                    at = model.range::<Place, _>(after).next().cloned();
                    continue;
                }
                2 => {
                    cursor.seek_back(&here.0, SEQ_MAX).unwrap();
                    at = model.range(..(here.0, Reverse(SEQ_MAX))).next_back().cloned();
                    continue;
                }
                _ => {}
            }
            cursor.prev().unwrap();
            at = model.range(..&here).next_back().cloned();
        }
        assert!(!cursor.valid());
    }
}

#[test]
fn inserts_by_hints_keep_the_order() {
    // Distinct heads; few heads with many keys each; runs here and there; the same keys again.
    let mixed = |number: u64| (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let shapes: [&dyn Fn(u64) -> Vec<u8>; 4] = [
        &|number| mixed(number).to_be_bytes().to_vec(),
        &|number| [(mixed(number) % 3).to_be_bytes(), mixed(number).to_be_bytes()].concat(),
        &|number| (mixed(number / 20) + number % 20).to_be_bytes().to_vec(),
        &|number| (mixed(number) % 50).to_be_bytes().to_vec(),
    ];
    for (shape, key) in shapes.iter().enumerate() {
        let (memtable, mut model) = (Memtable::new(), Vec::new());
        for number in 0..size(2000, 120) as u64 {
            memtable.insert(&key(number), number + 1, Kind::Put, &number.to_le_bytes());
            model.push((key(number), u64::MAX - number));
        }
        model.sort();
        let mut cursor = memtable.cursor();
        cursor.seek_first().unwrap();
        for (key, seq) in model {
            assert!(cursor.valid(), "shape {shape}");
            assert_eq!((cursor.key(), cursor.seq()), (&key[..], u64::MAX - seq + 1), "{shape}");
            let found = memtable.get(&key, cursor.seq()).expect("what a cursor finds is there");
            assert_eq!((found.seq, found.value), (cursor.seq(), cursor.value()), "shape {shape}");
            cursor.next().unwrap();
        }
        assert!(!cursor.valid(), "shape {shape}");
    }
}
