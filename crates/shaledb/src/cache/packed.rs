//! The tier of compressed blocks: frames as they are in their files, without the checksum, which
//! was checked before they came here.

use super::place::{CacheKey, Mix, allocated};
use arc_swap::ArcSwapOption;
use quick_cache::{OptionsBuilder, Weighter};
use std::sync::Arc;

/// What an entry is taken to weigh when the tables of the tier are sized.
pub(super) const PACKED_BYTES_TYPICAL: u64 = 8 * 1024;
/// What the tier itself spends on an entry, the counters of shared memory included.
const ENTRY_OVERHEAD_BYTES: usize = 72;
/// What memory that is shared has before its bytes.
const SHARED_BYTES: usize = 16;

/// What a compressed block of so many bytes takes in the tier.
#[inline]
pub(super) fn packed_weight(bytes: usize) -> usize {
    allocated(bytes + SHARED_BYTES) + ENTRY_OVERHEAD_BYTES
}

#[derive(Clone, Copy, Debug)]
struct Weights;

impl Weighter<CacheKey, Arc<[u8]>> for Weights {
    fn weight(&self, _key: &CacheKey, frame: &Arc<[u8]>) -> u64 {
        packed_weight(frame.len()) as u64
    }
}

type Tier = quick_cache::sync::Cache<CacheKey, Arc<[u8]>, Weights, Mix>;

fn tier(bytes: u64, shards: usize) -> Tier {
    let items = (bytes / PACKED_BYTES_TYPICAL).clamp(32, 1 << 25) as usize;
    let mut builder = OptionsBuilder::new();
    builder.shards(shards).estimated_items_capacity(items).weight_capacity(bytes);
    let lifecycle = quick_cache::sync::DefaultLifecycle::default();
    match builder.build() {
        Ok(options) => Tier::with_options(options, Weights, Mix, lifecycle),
        Err(_) => Tier::with(items, bytes, Weights, Mix, lifecycle),
    }
}

/// Compressed blocks by place, at most so many bytes of them. Thread-safe.
pub(super) struct Packed {
    /// None while there is no room: a tier that once had none would never again remember what has
    /// left it, by which it tells what is used again.
    tier: ArcSwapOption<Tier>,
    shards: usize,
}

impl Packed {
    /// With room for nothing.
    pub fn new(shards: usize) -> Packed {
        Packed { tier: ArcSwapOption::empty(), shards }
    }

    #[inline]
    pub fn get(&self, key: &CacheKey) -> Option<Arc<[u8]>> {
        self.tier.load().as_ref()?.get(key)
    }

    pub fn has(&self, key: &CacheKey) -> bool {
        self.tier.load().as_ref().is_some_and(|tier| tier.contains_key(key))
    }

    pub fn insert(&self, key: CacheKey, frame: &[u8]) {
        if let Some(tier) = &*self.tier.load() {
            tier.insert(key, Arc::from(frame));
        }
    }

    /// To be called by one at a time.
    pub fn set_capacity(&self, bytes: u64) {
        match &*self.tier.load() {
            _ if bytes == 0 => self.tier.store(None),
            Some(tier) => tier.set_capacity(bytes),
            None => self.tier.store(Some(Arc::new(tier(bytes, self.shards)))),
        }
    }

    pub fn capacity(&self) -> u64 {
        self.tier.load().as_ref().map_or(0, |tier| tier.capacity())
    }

    pub fn bytes(&self) -> u64 {
        self.tier.load().as_ref().map_or(0, |tier| tier.weight())
    }

    pub fn entries(&self) -> usize {
        self.tier.load().as_ref().map_or(0, |tier| tier.len())
    }
}
