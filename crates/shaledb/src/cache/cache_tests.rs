use super::*;
use crate::cache::{Lease, Memory};

#[derive(Debug, PartialEq)]
struct Bytes(usize);

impl Weigh for Bytes {
    fn bytes(&self) -> usize {
        self.0
    }
}

fn key(offset: u64) -> CacheKey {
    CacheKey { file: offset % 3, offset }
}

#[test]
fn holds_no_more_than_its_bound() {
    let cache = Cache::new(1 << 20);
    for offset in 0..10_000 {
        cache.insert(&Slot::default(), key(offset), Arc::new(Bytes(1000)));
        assert!(cache.bytes() <= 1 << 20);
    }
    assert!(cache.bytes() > 1 << 19, "{}", cache.bytes());
    cache.set_capacity(1 << 16);
    // To the nearest step.
    assert!(cache.bytes() <= (1 << 16) + 8_300);
    assert!(cache.entries() > 0);
}

/// The largest blocks that settings make, in the least memory in which they are of use.
#[test]
fn a_small_cache_holds_large_blocks() {
    for mib in [8u64, 32, 64, 256] {
        let cache = Arc::new(Cache::<Bytes>::new(mib << 20));
        let memory = Memory::new(mib << 20, Arc::clone(&cache));
        memory.set_memtables(mib << 19);
        for offset in 0..100 {
            for kib in [600, 1030] {
                let key = CacheKey { file: kib, offset };
                cache.insert(&Slot::default(), key, Arc::new(Bytes((kib as usize) << 10)));
                assert!(cache.has(&key), "{kib} KiB in {mib} MiB");
            }
        }
        // Most of it is in use.
        assert!(cache.bytes() > cache.capacity() / 3, "{} of {mib} MiB", cache.bytes());
    }
}

#[test]
fn gives_back_what_was_put_in() {
    let cache = Cache::new(1 << 20);
    cache.insert(&Slot::default(), key(7), Arc::new(Bytes(70)));
    assert_eq!(cache.get(&key(7)).as_deref(), Some(&Bytes(70)));
    assert_eq!(cache.get(&key(8)), None);
}

#[test]
fn what_is_used_survives_a_flood() {
    let cache = Cache::new(1 << 20);
    for offset in 0..100 {
        cache.insert(&Slot::default(), key(offset), Arc::new(Bytes(1000)));
    }
    for offset in 100..20_000 {
        for hot in 0..100 {
            cache.get(&key(hot));
        }
        cache.insert(&Slot::default(), key(offset), Arc::new(Bytes(1000)));
    }
    let left = (0..100).filter(|&offset| cache.get(&key(offset)).is_some()).count();
    assert!(left > 90, "{left}");
}

/// Memtables come and go, for which the cache makes room. Then the working set is another one.
#[test]
fn a_cache_that_was_resized_often_takes_a_new_working_set() {
    let total = 64u64 << 20;
    let cache = Arc::new(Cache::<Bytes>::new(total));
    let memory = Memory::new(total, Arc::clone(&cache));
    for _ in 0..200 {
        (0..=16).chain((0..16).rev()).for_each(|mib| memory.set_memtables(mib << 20));
    }
    let get = |offset: u64| {
        let found = cache.get(&key(offset)).is_some();
        if !found {
            cache.insert(&Slot::default(), key(offset), Arc::new(Bytes(16_000)));
        }
        found
    };
    for _ in 0..2 {
        let _ = (0..4_000).filter(|offset| get(*offset)).count();
    }
    let mut found = 0;
    for _ in 0..20 {
        found = (10_000..12_000).filter(|offset| get(*offset)).count();
    }
    assert!(found > 1_900, "{found} of 2,000");
}

#[test]
fn offsets_spread_over_hashes() {
    // Block offsets share low or high bits; neither end of the hash may.
    for shift in [0, 4, 14, 30] {
        let mut low = std::collections::BTreeSet::new();
        let mut high = std::collections::BTreeSet::new();
        for at in 0..4096u64 {
            let hash = Mix.hash_one(CacheKey { file: 5, offset: at << shift });
            low.insert(hash & 0xfff);
            high.insert(hash >> 52);
        }
        assert!(low.len() > 2300 && high.len() > 2300, "{shift}: {} {}", low.len(), high.len());
    }
}

#[test]
fn the_cache_gets_what_others_leave() {
    let cache = Arc::new(Cache::<Bytes>::new(1600));
    let memory = Memory::new(64 << 20, Arc::clone(&cache));
    let near = |bytes: u64| {
        let far = cache.capacity().abs_diff(bytes);
        assert!(far <= (64 << 20) / 100 + 64, "{} {bytes}", cache.capacity());
    };
    near(64 << 20);
    memory.set_memtables(16 << 20);
    near(48 << 20);
    memory.add_meta(8 << 20);
    near(40 << 20);
    memory.add_meta(-(4 << 20));
    near(44 << 20);
    memory.set_memtables(200 << 20);
    near(4 << 20);
    memory.set_memtables(0);
    near(60 << 20);
    assert_eq!(memory.meta(), 4 << 20);
}

#[test]
fn a_large_cache_shrinks_in_small_steps() {
    let total = 64 << 30;
    let cache = Arc::new(Cache::<Bytes>::new(total));
    let memory = Memory::new(total, Arc::clone(&cache));
    for mib in 1..200u64 {
        let before = cache.capacity();
        memory.set_memtables(mib << 20);
        assert!(
            before.saturating_sub(cache.capacity()) <= 18 << 20,
            "{mib}: {before} {}",
            cache.capacity()
        );
        let off = cache.capacity().abs_diff(total - (mib << 20));
        assert!(off < 18 << 20, "{mib}: it follows");
    }
}

#[test]
fn many_threads_leave_the_cache_at_its_due() {
    let cache = Arc::new(Cache::<Bytes>::new(1 << 20));
    let memory = Memory::new(1 << 20, Arc::clone(&cache));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    memory.add_meta(100_000);
                    memory.add_meta(-100_000);
                }
            });
        }
    });
    assert_eq!(memory.meta(), 0);
    assert!(cache.capacity().abs_diff(1 << 20) <= (1 << 20) / 100 + 64, "{}", cache.capacity());
}

#[test]
fn a_slot_finds_what_the_cache_has_and_nothing_else() {
    let cache = Cache::new(1 << 20);
    let slots: Vec<Slot> = (0..5000).map(|_| Slot::default()).collect();
    let put = |offset: usize| {
        let (key, value) = (key(offset as u64), Arc::new(Bytes(1000 + offset)));
        cache.insert(&slots[offset], key, value);
    };
    (0..5000).for_each(put);
    // Twice the same, the later one stays.
    put(4999);
    let mut found = 0;
    for (offset, slot) in slots.iter().enumerate() {
        let by_key = cache.get(&key(offset as u64));
        let by_slot = cache.get_at(slot, || key(offset as u64));
        assert_eq!(by_slot, by_key);
        assert!(by_slot.is_none_or(|value| value.0 == 1000 + offset));
        // Who has not put it there finds it by the key, and the next time without.
        let other = Slot::default();
        assert_eq!(cache.get_at(&other, || key(offset as u64)), by_key);
        assert_eq!(other.get(), if by_key.is_some() { slot.get() } else { other.get() });
        found += usize::from(by_key.is_some());
    }
    assert_eq!((found, cache.frames.held()), (cache.entries(), cache.entries()));
    assert!((100..2000).contains(&found), "{found}");
    cache.set_capacity(0);
    assert_eq!((cache.entries(), cache.frames.held()), (0, 0));
    assert!(slots.iter().all(|slot| cache.frames.get(slot.get()).is_none()));
}

#[test]
fn what_is_made_ready_is_what_a_slot_has() {
    let cache = Cache::new(1 << 20);
    let slots: Vec<Slot> = (0..4).map(|_| Slot::default()).collect();
    for (at, slot) in slots.iter().enumerate().take(3) {
        cache.insert(slot, key(at as u64), Arc::new(Bytes(1000 + at)));
    }
    let ready = |nearest: usize| {
        let mut seen = None;
        let three = [0, 1, 2].map(|after| slots.get(nearest + after));
        cache.prepare(three, |value: &Bytes| seen = Some(value.0));
        seen
    };
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    assert_eq!([0, 2, 3, 4].map(ready), [Some(1000), Some(1002), None, None]);
    cache.insert(&Slot::default(), key(2), Arc::new(Bytes(1)));
    assert_eq!(ready(2), None, "its frame is empty");
    let other = Slot::default();
    cache.insert(&other, key(5), Arc::new(Bytes(5)));
    assert_eq!(ready(2), None, "its frame is another's");
    let of_other = |value: &Bytes| assert_eq!(value.0, 5);
    cache.prepare([Some(&other), None, None], of_other);
}

#[test]
fn what_is_found_by_slots_survives_a_flood() {
    // All of the hot ones are used whenever so many others have come: each time, or seldom.
    for pause in [1, 150] {
        let cache = Cache::new(1 << 20);
        let slots: Vec<Slot> = (0..20_000).map(|_| Slot::default()).collect();
        let mut missed = 0;
        for offset in 100..20_000 {
            if offset % pause == 0 {
                for (hot, slot) in slots.iter().enumerate().take(100) {
                    let key = key(hot as u64);
                    if cache.get_at(slot, || key).is_none() {
                        cache.insert(slot, key, Arc::new(Bytes(1000)));
                        missed += 1;
                    }
                }
            }
            cache.insert(&slots[offset], key(offset as u64), Arc::new(Bytes(1000)));
        }
        let left = (0..100).filter(|&offset| cache.has(&key(offset))).count();
        assert!(left > 90, "{left}");
        // By keys alone, so that the cache sees each use, 100 and 187 to 219 are missed.
        assert!(missed < 250, "{missed} of pauses of {pause}");
    }
}

#[test]
fn threads_find_by_slots_what_belongs_there() {
    let cache = Cache::<Bytes>::new(200 << 10);
    let slots: Vec<Slot> = (0..400).map(|_| Slot::default()).collect();
    let found: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                let (cache, slots) = (&cache, &slots);
                scope.spawn(move || {
                    let (mut random, mut found) = (thread + 1, 0);
                    for _ in 0..50_000 {
                        random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
                        let offset = (random >> 33) % 400;
                        let slot = &slots[offset as usize];
                        let after = [1, 2, 3].map(|after| slots.get(offset as usize + after));
                        let next = 1001 + offset as usize;
                        cache.prepare(after, |value| assert_eq!(value.0, next));
                        match cache.get_at(slot, || key(offset)) {
                            Some(value) => {
                                assert_eq!(value.0, 1000 + offset as usize);
                                found += 1;
                            }
                            None => {
                                let value = Arc::new(Bytes(1000 + offset as usize));
                                cache.insert(slot, key(offset), value);
                            }
                        }
                    }
                    found
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(found > 10_000, "{found}");
    assert_eq!(cache.frames.held(), cache.entries());
}

#[test]
fn what_slots_find_is_kept_as_what_keys_find() {
    // Places by Zipf's law, twice as much as the cache holds: warm ones are used a few times while
    // all others come by.
    let places = 20_000;
    let sums: Vec<f64> = (1..=places)
        .scan(0.0, |sum, place| {
            *sum += f64::from(place).powf(-0.8);
            Some(*sum)
        })
        .collect();
    let misses = |by_slots: bool| {
        let cache = Cache::<Bytes>::new(10 << 20);
        let slots: Vec<Slot> = (0..places).map(|_| Slot::default()).collect();
        let (mut random, mut missed) = (7u64, 0);
        for turn in 0..300_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let share = (random >> 11) as f64 / (1u64 << 53) as f64;
            let at = sums.partition_point(|&sum| sum < share * sums[sums.len() - 1]);
            let (slot, key) = (&slots[at], key(at as u64));
            let found = if by_slots { cache.get_at(slot, || key) } else { cache.get(&key) };
            if found.is_none() {
                cache.insert(slot, key, Arc::new(Bytes(1000)));
                missed += u32::from(turn > 100_000);
            }
        }
        missed
    };
    let (by_keys, by_slots) = (misses(false), misses(true));
    assert!(100 * by_slots <= 102 * by_keys, "{by_slots} are missed, {by_keys} by keys");
}

#[test]
fn the_cache_makes_room_for_work_and_gets_it_back() {
    let cache = Arc::new(Cache::<Bytes>::new(1600));
    let memory = Arc::new(Memory::new(64 << 20, Arc::clone(&cache)));
    let near = |bytes: u64| {
        let far = cache.capacity().abs_diff(bytes);
        assert!(far <= (64 << 20) / 100 + 64, "{} {bytes}", cache.capacity());
    };
    let (one, two) = (Lease::of(&memory), Lease::of(&memory));
    one.set(8 << 20);
    two.set(4 << 20);
    near(52 << 20);
    one.set(2 << 20);
    near(58 << 20);
    assert_eq!(memory.work(), 6 << 20);
    two.set(500 << 20);
    near(4 << 20);
    drop(two);
    drop(one);
    near(64 << 20);
    assert_eq!(memory.work(), 0);
    Lease::default().set(7);
    assert_eq!(memory.work(), 0);
}
