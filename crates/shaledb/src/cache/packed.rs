//! The tier of compressed blocks: frames as they are in their files, without the checksum, which
//! was checked before they came here.

use super::place::{CacheKey, Mix, allocated};
use quick_cache::{OptionsBuilder, Weighter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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

/// Compressed blocks by place, at most so many bytes of them. Thread-safe.
pub(super) struct Packed {
    inner: quick_cache::sync::Cache<CacheKey, Arc<[u8]>, Weights, Mix>,
    /// To look at without a lock.
    capacity: AtomicU64,
}

impl Packed {
    /// With room for nothing, sized for up to `bytes`, in so many shards.
    pub fn new(bytes: u64, shards: usize) -> Packed {
        let items = (bytes / PACKED_BYTES_TYPICAL).clamp(32, 1 << 25) as usize;
        let mut builder = OptionsBuilder::new();
        builder.shards(shards).estimated_items_capacity(items).weight_capacity(bytes);
        let lifecycle = quick_cache::sync::DefaultLifecycle::default();
        let inner = match builder.build() {
            Ok(options) => quick_cache::sync::Cache::with_options(options, Weights, Mix, lifecycle),
            Err(_) => quick_cache::sync::Cache::with(items, bytes, Weights, Mix, lifecycle),
        };
        inner.set_capacity(0);
        Packed { inner, capacity: AtomicU64::new(0) }
    }

    #[inline]
    pub fn get(&self, key: &CacheKey) -> Option<Arc<[u8]>> {
        if self.capacity() == 0 { None } else { self.inner.get(key) }
    }

    pub fn has(&self, key: &CacheKey) -> bool {
        self.capacity() > 0 && self.inner.contains_key(key)
    }

    pub fn insert(&self, key: CacheKey, frame: &[u8]) {
        if self.capacity() > 0 {
            self.inner.insert(key, Arc::from(frame));
        }
    }

    pub fn set_capacity(&self, bytes: u64) {
        if self.capacity.swap(bytes, Relaxed) != bytes {
            self.inner.set_capacity(bytes);
        }
    }

    pub fn capacity(&self) -> u64 {
        self.capacity.load(Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.inner.weight()
    }

    pub fn entries(&self) -> usize {
        self.inner.len()
    }
}
