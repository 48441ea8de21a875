//! Locks of keys made ranges: nothing that was held is lost, nobody else's is touched.

use super::*;
use crate::fs::mem::MemClock;
use crate::txn::{Refusal, Wait};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn ask(table: &LockTable, owner: &mut Owner, n: u32, mode: Mode) -> Result<(), Refusal> {
    let lock = Lock { tree: 1, span: Span::Key(&key(n)), mode };
    table.acquire(owner, lock, Wait::Never, &MemClock::new())
}

fn step(table: &LockTable, owner: &mut Owner, n: u32) -> Result<(), Refusal> {
    let lock = Lock { tree: 1, span: Span::Key(&key(n)), mode: Mode::Write };
    table.acquire(owner, lock, Wait::Step, &MemClock::new())
}

fn write(table: &LockTable, owner: &mut Owner, n: u32) -> bool {
    ask(table, owner, n, Mode::Write).is_ok()
}

/// As of a transaction of its own: whether it could be written.
fn is_free(table: &LockTable, n: u32) -> bool {
    let mut other = table.owner();
    let free = write(table, &mut other, n);
    table.release(&mut other);
    free
}

fn end(table: &LockTable, owners: &mut [Owner]) {
    owners.iter_mut().for_each(|owner| table.release(owner));
    assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
}

#[test]
fn any_number_of_keys_in_a_row_is_one_range_and_a_few_keys() {
    for (backward, shards) in [(false, 16), (true, 16), (false, 4), (true, 4)] {
        let mut table = LockTable::new(64 << 10);
        table.set_shards(shards);
        let mut owner = table.owner();
        for n in 0..50_000 {
            let n = if backward { 50_000 - n } else { n + 1 };
            assert!(write(&table, &mut owner, n), "{n}");
            assert!(table.bytes() <= 64 << 10);
        }
        assert!(table.escalations() > 10);
        let (keys, ranges, _) = table.counts();
        assert!(keys < 600 && ranges == 1, "{keys} {ranges}");
        for n in [1, 2, 25_000, 49_999, 50_000] {
            assert!(!is_free(&table, n), "{n}");
        }
        assert!(is_free(&table, 0) && is_free(&table, 50_001));
        end(&table, &mut [owner]);
    }
}

#[test]
fn keys_in_no_order_of_several_trees_find_room() {
    let table = LockTable::new(64 << 10);
    let mut owner = table.owner();
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    for _ in 0..20_000 {
        let (tree, bytes) = (rng.random_range(1..4), key(rng.random()));
        let mode = if rng.random() { Mode::Write } else { Mode::Shared };
        let lock = Lock { tree, span: Span::Key(&bytes), mode };
        table.acquire(&mut owner, lock, Wait::Never, &MemClock::new()).unwrap();
    }
    let ranges = table.counts().1;
    assert!(ranges <= 3 * RANGES, "{ranges}");
    end(&table, &mut [owner]);
}

#[test]
fn what_is_far_apart_is_not_made_one() {
    let table = LockTable::new(1 << 20);
    let mut owner = table.owner();
    for n in (1_000..1_200).chain(90_000..90_200) {
        assert!(write(&table, &mut owner, n));
    }
    assert!(table.escalate(&mut owner, FEW));
    assert_eq!(table.counts(), (0, 2, 0));
    assert!(is_free(&table, 50_000) && is_free(&table, 1_200));
    assert!(!is_free(&table, 1_100) && !is_free(&table, 90_199));
    end(&table, &mut [owner]);
}

#[test]
fn nothing_is_merged_over_what_others_hold_or_wait_for() {
    let table = LockTable::new(1 << 20);
    let (mut owner, mut other, mut third) = (table.owner(), table.owner(), table.owner());
    assert!(write(&table, &mut other, 100));
    // A gap of others keeps writers out, so nothing to write may come over it.
    let (lower, upper) = (key(300), key(400));
    let gap = Lock { tree: 1, span: Span::Range(&lower, Some(&upper)), mode: Mode::Gap };
    table.acquire(&mut other, gap, Wait::Never, &MemClock::new()).unwrap();
    // Who waits for somebody else does not come to wait for this one, too.
    assert!(matches!(step(&table, &mut third, 100), Err(Refusal::Queued { .. })));
    for n in (0..100).chain(101..300).chain(400..600) {
        assert!(write(&table, &mut owner, n), "{n}");
    }
    assert!(table.escalate(&mut owner, FEW));
    let (keys, ranges, waits) = table.counts();
    assert!(keys < 40 && ranges < 40 && waits == 1, "{keys} {ranges}");
    for n in (0..100).chain(101..300).chain(400..600) {
        assert!(!is_free(&table, n), "{n}");
    }
    table.release(&mut other);
    assert!(step(&table, &mut third, 100).is_ok());
    assert!(is_free(&table, 350));
    end(&table, &mut [owner, third]);
}

#[test]
fn who_waited_for_a_key_waits_for_its_range() {
    let table = LockTable::new(1 << 20);
    let (mut owner, mut other) = (table.owner(), table.owner());
    for n in 0..100 {
        assert!(write(&table, &mut owner, n));
    }
    assert!(write(&table, &mut other, 500));
    assert!(matches!(step(&table, &mut other, 50), Err(Refusal::Queued { .. })));
    assert!(table.escalate(&mut owner, FEW));
    assert_eq!(table.counts(), (1, 1, 1));
    // The circle is closed over the range, by one who weighs as much as the other.
    assert!(matches!(step(&table, &mut owner, 500), Err(Refusal::Deadlock(_))));
    assert!(matches!(step(&table, &mut other, 50), Err(Refusal::Queued { .. })));
    table.release(&mut owner);
    assert!(step(&table, &mut other, 50).is_ok());
    end(&table, &mut [owner, other]);
}

#[test]
fn large_ones_side_by_side_leave_room_for_small_ones() {
    let table = LockTable::new(1 << 20);
    let mut owners: Vec<Owner> = (0..8).map(|_| table.owner()).collect();
    for n in 0..3_000 {
        for (at, owner) in owners.iter_mut().enumerate() {
            assert!(write(&table, owner, at as u32 * 100_000 + n), "{at} {n}");
        }
        assert!(is_free(&table, 5_000_000));
    }
    end(&table, &mut owners);
}

/// Random locks of few keys, made ranges at random: what one holds, no other gets.
#[test]
fn what_is_held_stays_held() {
    const KEYS: u32 = 24;
    let mut merges = 0;
    for seed in 0..200 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut table = LockTable::new(1 << 20);
        table.set_shards(2 << (seed % 4));
        let mut owners: Vec<Owner> = (0..3).map(|_| table.owner()).collect();
        let mut held: Vec<BTreeMap<u32, Mode>> = vec![BTreeMap::new(); owners.len()];
        for _ in 0..60 {
            let at = rng.random_range(0..owners.len());
            match rng.random_range(0..12) {
                0 => {
                    table.release(&mut owners[at]);
                    held[at].clear();
                }
                1 | 2 => merges += u64::from(table.escalate(&mut owners[at], 2)),
                _ => {
                    let n = rng.random_range(0..KEYS);
                    let all = [Mode::Shared, Mode::Exclusive, Mode::Write];
                    let mode = all[rng.random_range(0..3)];
                    if ask(&table, &mut owners[at], n, mode).is_ok() {
                        let known = held[at].entry(n).or_insert(mode);
                        *known = mode.max(*known);
                    }
                }
            }
            for (at, keys) in held.iter().enumerate() {
                for (&n, &mode) in keys {
                    let others = held.iter().enumerate().filter(|(other, _)| *other != at);
                    let clash = others.filter_map(|(_, keys)| keys.get(&n));
                    assert!(clash.into_iter().all(|other| !other.conflicts(mode)), "{seed} {n}");
                    assert!(!is_free(&table, n), "{seed} {n}");
                }
            }
        }
        end(&table, &mut owners);
    }
    assert!(merges > 200, "{merges}");
}

fn lock_gap(table: &LockTable, owner: &mut Owner, n: u32) -> bool {
    let (lower, upper) = (key(n), key(n + 1));
    let lock = Lock { tree: 1, span: Span::Range(&lower, Some(&upper)), mode: Mode::Gap };
    table.acquire(owner, lock, Wait::Never, &MemClock::new()).is_ok()
}

/// A range that is claimed again within one that is held is not given up with the claim, nor is
/// another one in its place.
#[test]
fn a_claim_of_what_is_held_gives_up_nothing() {
    let table = LockTable::new(1 << 20);
    let mut owner = table.owner();
    let (first, last) = (key(0), key(100));
    let lock = Lock { tree: 1, span: Span::Range(&first, Some(&last)), mode: Mode::Gap };
    table.acquire(&mut owner, lock, Wait::Never, &MemClock::new()).unwrap();
    assert!(lock_gap(&table, &mut owner, 500));
    table.claim(&mut owner, 1, (&key(10), &key(90)), &MemClock::new()).unwrap();
    table.give_up_claim(&mut owner, 1);
    assert!(!is_free(&table, 500) && !is_free(&table, 5) && !is_free(&table, 50));
    // One of something new goes, and leaves what was there.
    table.claim(&mut owner, 1, (&key(600), &key(700)), &MemClock::new()).unwrap();
    assert!(!is_free(&table, 650));
    table.give_up_claim(&mut owner, 1);
    assert!(is_free(&table, 650) && !is_free(&table, 500));
    end(&table, &mut [owner]);
}

/// Where there is room, what lies between is nobody's.
#[test]
fn gaps_of_a_transaction_of_some_size_stay_apart() {
    let table = LockTable::new(64 << 20);
    let mut owner = table.owner();
    for n in 0..3000 {
        assert!(lock_gap(&table, &mut owner, n * 20));
    }
    for n in (0..3000).step_by(31) {
        assert!(!is_free(&table, n * 20) && is_free(&table, n * 20 + 10), "{n}");
    }
    end(&table, &mut [owner]);
}

/// Places where nothing is, with others between them, in no order, and beside one who writes there.
#[test]
fn any_number_of_gaps_finds_room_and_stays_locked() {
    const N: u32 = 20_000;
    for (order, shards) in [(1, 16), (7_919, 16), (7_919, 4)] {
        let mut table = LockTable::new(shards << 16);
        table.set_shards(shards as usize);
        let (mut owner, mut other) = (table.owner(), table.owner());
        assert!(write(&table, &mut other, 3_001));
        for n in 0..N {
            let place = n * order % N * 2;
            assert!(lock_gap(&table, &mut owner, place), "{n}");
        }
        let (_, ranges, _) = table.counts();
        assert!(ranges <= 3 * GAPS, "{ranges}");
        for n in (0..N).step_by(97) {
            assert!(!is_free(&table, n * 2), "{n}");
        }
        assert!(lock_gap(&table, &mut other, 4_000), "others may lock gaps there too");
        table.release(&mut other);
        assert!(is_free(&table, 3_001), "it is not locked by who has come after");
        end(&table, &mut [owner, other]);
    }
}
