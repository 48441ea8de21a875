use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::base::coding;
use crate::base::key::{Kind, SEQ_MAX};
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::memtable::Memtable;
use crate::memtable::tests::size;

/// Searches the memtable in vain until it wants a filter.
fn miss_until_wanted(memtable: &Memtable) {
    for number in 0u64.. {
        if memtable.wants_filter() {
            return;
        }
        assert!(number < 1 << 20, "so many searches in vain are worth a filter");
        assert_eq!(memtable.get(format!("absent {number}").as_bytes(), SEQ_MAX), None);
    }
}

/// All entries are found while a filter is filled, by inserts and by searches, and afterwards; and
/// of the keys that are not there a few are searched for.
#[test]
fn a_filter_has_all_keys() {
    let key = |number: u64| format!("key {:09}", number.wrapping_mul(0x9e37_79b9) % 1_000_003);
    for early in [size(400, 100) as u64, size(3000, 150) as u64] {
        let memtable = Memtable::new();
        let insert = |number| memtable.insert(key(number).as_bytes(), number + 1, Kind::Put, b"v");
        (0..early).for_each(insert);
        miss_until_wanted(&memtable);
        let before = memtable.bytes();
        memtable.begin_filter(1 << 20);
        assert!(memtable.bytes() > before && !memtable.wants_filter());
        memtable.begin_filter(1 << 20);
        for number in early..early + size(4000, 100) as u64 {
            insert(number);
            for asked in [number, number / 2, number.wrapping_mul(7) % number] {
                let found = memtable.get(key(asked).as_bytes(), SEQ_MAX).expect("it was inserted");
                assert!(found.seq > asked);
                assert_eq!(memtable.get(b"absent", SEQ_MAX), None);
            }
        }
        let filter = memtable.filter.get().unwrap();
        let absent =
            |number: &u64| !filter.excludes(coding::hash(format!("absent {number}").as_bytes()));
        let passed = (0..1000).filter(absent).count();
        assert!(passed < 50, "{passed} of 1000 absent keys are searched for");
    }
}

/// A memtable that nobody writes to has its filter filled by those who search.
#[test]
fn searches_fill_a_filter() {
    let memtable = Memtable::new();
    for number in 0..size(2000, 200) as u64 {
        memtable.insert(format!("key {number}").as_bytes(), number + 1, Kind::Put, b"v");
    }
    miss_until_wanted(&memtable);
    memtable.begin_filter(1 << 20);
    let filter = memtable.filter.get().unwrap();
    let searches = (0..1 << 16).take_while(|number| {
        assert_eq!(memtable.get(format!("absent {number}").as_bytes(), SEQ_MAX), None);
        [&b"absent"[..], b"not there either"].iter().all(|key| !filter.excludes(coding::hash(key)))
    });
    assert!(searches.count() < (1 << 16) - 1, "it is whole in the end");
    for number in 0..size(2000, 200) {
        assert!(memtable.get(format!("key {number}").as_bytes(), SEQ_MAX).is_some());
    }
}

/// Readers at numbers whose inserts have returned miss none while one thread inserts and all fill
/// the filter.
#[test]
fn nothing_is_missed_while_a_filter_is_filled() {
    let memtable = Memtable::new();
    let key = |number: u64| format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let insert = |number: u64| memtable.insert(key(number).as_bytes(), number, Kind::Put, b"v");
    let early = size(2000, 100) as u64;
    (1..=early).for_each(insert);
    miss_until_wanted(&memtable);
    let visible = AtomicU64::new(early);
    let most = early + size(20_000, 200) as u64;
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (memtable, visible) = (&memtable, &visible);
            scope.spawn(move || {
                let mut random = Pcg64Mcg::seed_from_u64(reader);
                loop {
                    let seq = visible.load(Ordering::Acquire);
                    for asked in [seq, random.random_range(1..=seq)] {
                        let found = memtable.get(key(asked).as_bytes(), seq);
                        assert_eq!(found.map(|entry| entry.seq), Some(asked));
                    }
                    assert_eq!(memtable.get(key(most + seq).as_bytes(), seq), None);
                    if seq == most {
                        break;
                    }
                }
            });
        }
        for number in early + 1..=most {
            if number == early + 10 {
                memtable.begin_filter(1 << 20);
            }
            insert(number);
            visible.store(number, Ordering::Release);
        }
    });
    assert!(memtable.filter.get().is_some());
}
