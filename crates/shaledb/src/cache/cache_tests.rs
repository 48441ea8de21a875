use super::*;
use crate::cache::Memory;

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
        cache.insert(key(offset), Arc::new(Bytes(1000)));
        assert!(cache.bytes() <= 1 << 20);
    }
    assert!(cache.bytes() > 1 << 19, "{}", cache.bytes());
    cache.set_capacity(1 << 16);
    assert!(cache.bytes() <= 1 << 16);
    assert!(cache.entries() > 0);
}

#[test]
fn gives_back_what_was_put_in() {
    let cache = Cache::new(1 << 20);
    cache.insert(key(7), Arc::new(Bytes(70)));
    assert_eq!(cache.get(&key(7)).as_deref(), Some(&Bytes(70)));
    assert_eq!(cache.get(&key(8)), None);
}

#[test]
fn what_is_used_survives_a_flood() {
    let cache = Cache::new(1 << 20);
    for offset in 0..100 {
        cache.insert(key(offset), Arc::new(Bytes(1000)));
    }
    for offset in 100..20_000 {
        for hot in 0..100 {
            cache.get(&key(hot));
        }
        cache.insert(key(offset), Arc::new(Bytes(1000)));
    }
    let left = (0..100).filter(|&offset| cache.get(&key(offset)).is_some()).count();
    assert!(left > 90, "{left}");
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
