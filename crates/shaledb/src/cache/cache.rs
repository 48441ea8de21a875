//! Shared values by (file, offset), bounded in bytes, in shards that scans cannot flood; and what
//! they were before they were decompressed, in a tier of its own.
//!
//! File numbers are never used twice, so nothing is ever invalidated: what belongs to a removed
//! file ages out.
//!
//! **Two tiers.** A block that is read goes into both, if it is compressed. From then on each tier
//! has its own order of what is useful: who finds a block uncompressed does not touch its frame. So
//! the frame of a hot block ages out, and the compressed tier holds what is warm. What leaves the
//! uncompressed tier is just gone; nothing is ever compressed again. Which share the compressed
//! tier has is found by measurement ([`super::share`]).
//!
//! A fork of the process finds nothing and keeps nothing: a thread that is not there may have held
//! a lock of a shard when it was made.

use super::frames::{FRAME_BYTES, Frames, Slot, Spot};
use super::packed::{Packed, packed_weight};
use super::place::{CacheKey, Mix, Weigh};
use super::sampler::Sampler;
use super::share::{Choice, Costs, Why};
use super::simulation::{SHARES, Sizes, Tally, share_of, split};
use crate::base::rank;
use crate::base::sync::Mutex;
use crate::fs::process::{Process, process};
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the two tiers hold, and why.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tiers {
    /// The share of the cache that the compressed tier may take.
    pub share: f64,
    /// Why it is this one.
    pub why: Why,
    /// Bytes and number of the uncompressed blocks.
    pub raw: (u64, usize),
    /// Bytes and number of the compressed ones.
    pub packed: (u64, usize),
    /// What blocks cost.
    pub costs: Costs,
    /// What each share would have read lately, of a sample of all blocks.
    pub tallies: Vec<(f64, Tally)>,
}

/// Shards are fixed in number by the size alone, so that what is evicted does not depend on the
/// machine. An eighth of a shard holds a few dozen blocks.
const SHARDS_MAX: u64 = 64;
const SHARD_BYTES_MIN: u64 = 4 << 20;
/// What an entry is taken to weigh when the tables of the cache are sized.
const ENTRY_BYTES_TYPICAL: u64 = 16 * 1024;
/// What the cache itself spends on an entry.
const ENTRY_OVERHEAD_BYTES: u64 = 80 + FRAME_BYTES;

/// Values by place, at most so many bytes of them; the least useful go first. Thread-safe.
pub struct Cache<V: Weigh> {
    inner: quick_cache::sync::Cache<CacheKey, Held<V>, Weights, Mix, Leaving<V>>,
    frames: Arc<Frames<V>>,
    packed: Packed,
    sampler: Sampler,
    /// The bound on both tiers together.
    capacity: AtomicU64,
    /// How it is divided.
    share: Mutex<f64, { rank::CACHE_SHARE }>,
    process: Process,
}

impl<V: Weigh> std::fmt::Debug for Cache<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache")
            .field("bytes", &self.bytes())
            .field("capacity", &self.capacity())
            .finish()
    }
}

impl<V: Weigh> Cache<V> {
    /// An empty cache of `bytes` for both tiers together.
    pub fn new(bytes: u64) -> Cache<V> {
        let items = (bytes / ENTRY_BYTES_TYPICAL).clamp(32, 1 << 24) as usize;
        let shards = (bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX).next_power_of_two() as usize;
        let mut builder = OptionsBuilder::new();
        builder.shards(shards).estimated_items_capacity(items).weight_capacity(bytes);
        let frames = Arc::new(Frames::new());
        let leaving = Leaving(Arc::clone(&frames));
        let inner = match builder.build() {
            Ok(options) => quick_cache::sync::Cache::with_options(options, Weights, Mix, leaving),
            Err(_) => quick_cache::sync::Cache::with(items, bytes, Weights, Mix, leaving),
        };
        let cache = Cache {
            inner,
            frames,
            packed: Packed::new(shards),
            sampler: Sampler::new(bytes, ENTRY_BYTES_TYPICAL),
            capacity: AtomicU64::new(bytes),
            share: Mutex::new(0.0),
            process: process(),
        };
        cache.set_capacity(bytes);
        cache
    }

    /// The value at this place, if it is held.
    #[inline]
    pub fn get(&self, key: &CacheKey) -> Option<Arc<V>> {
        if !self.process.is_this() {
            return None;
        }
        self.inner.get(key).map(|held| held.value)
    }

    /// As [`Cache::get`], for the place that `slot` is for: mostly without a look-up.
    #[inline]
    pub fn get_at(&self, slot: &Slot, key: impl FnOnce() -> CacheKey) -> Option<Arc<V>> {
        if !self.process.is_this() {
            return None;
        }
        let spot = slot.get();
        if let Some((value, first)) = self.frames.get(spot) {
            // So that it knows what is useful.
            if first || spot.is_sampled() {
                self.used(&key(), first);
            }
            return Some(value);
        }
        let key = key();
        let held = self.inner.get(&key)?;
        slot.set(held.spot);
        if self.sampler.wants(&key) {
            self.turn_to(self.sampler.found(&key, held.sizes(), self.capacity()));
        }
        Some(held.value)
    }

    /// A value was found without a look-up, and not only for the first time in an epoch.
    #[cold]
    fn used(&self, key: &CacheKey, first: bool) {
        let wanted = self.sampler.wants(key);
        if !first && !wanted {
            return;
        }
        let held = self.inner.get(key);
        if let Some(held) = held.filter(|_| wanted) {
            self.turn_to(self.sampler.found(key, held.sizes(), self.capacity()));
        }
    }

    /// Whether a value is held in either tier, without having used it.
    pub fn has(&self, key: &CacheKey) -> bool {
        self.process.is_this() && (self.inner.contains_key(key) || self.packed.has(key))
    }

    /// The frame at this place as it was given to [`Cache::insert_packed`], if it is held.
    #[inline]
    pub fn packed(&self, key: &CacheKey) -> Option<Arc<[u8]>> {
        if !self.process.is_this() {
            return None;
        }
        self.packed.get(key)
    }

    /// Holds a value that was not found, and had `packed_bytes` before it was decompressed (0 if it
    /// was not compressed). One that is heavier than a shard is not held.
    pub fn insert(&self, slot: &Slot, key: CacheKey, value: Arc<V>, packed_bytes: usize) {
        if !self.process.is_this() {
            return;
        }
        let packed = if packed_bytes == 0 { 0 } else { packed_weight(packed_bytes) as u32 };
        let spot = self.frames.hold(&value, self.sampler.samples(&key));
        let held = Held { value, spot, packed };
        let sizes = held.sizes();
        slot.set(spot);
        self.inner.insert(key, held);
        self.turn_to(self.sampler.missed(&key, sizes, self.capacity()));
    }

    /// Holds what a block is before it is decompressed, if the compressed tier has a share.
    pub fn insert_packed(&self, key: CacheKey, frame: &[u8]) {
        if self.process.is_this() {
            self.packed.insert(key, frame);
        }
    }

    /// Notes what it took to read a block from storage.
    pub fn note_read(&self, nanos: u64) {
        self.sampler.note_read(nanos);
    }

    /// Notes what it took to decompress a block.
    pub fn note_unpack(&self, nanos: u64) {
        self.sampler.note_unpack(nanos);
    }

    /// Changes the bound; evicts at once if it shrinks.
    pub fn set_capacity(&self, bytes: u64) {
        if self.process.is_this() {
            let share = self.share.lock();
            self.capacity.store(bytes.saturating_sub(self.sampler.memory_bytes()), Relaxed);
            self.divide(*share);
        }
    }

    /// Gives the tiers their parts of the capacity; by who holds the lock of the share. First it
    /// takes, then it gives: both together stay within it.
    fn divide(&self, share: f64) {
        let (raw, packed) = split(self.capacity(), share);
        if packed < self.packed.capacity() {
            self.packed.set_capacity(packed);
            self.inner.set_capacity(raw);
        } else {
            self.inner.set_capacity(raw);
            self.packed.set_capacity(packed);
        }
    }

    /// Gives the compressed tier this share, from 0 to 1, from now on, whatever is measured. For
    /// tests and measurements.
    pub fn fix_share(&self, fixed: f64) {
        if self.process.is_this() {
            self.sampler.stop();
            let mut share = self.share.lock();
            *share = fixed.clamp(0.0, 1.0);
            self.divide(*share);
        }
    }

    /// Goes by a new choice, if there is one.
    fn turn_to(&self, choice: Option<Choice>) {
        let Some(choice) = choice else { return };
        let mut share = self.share.lock();
        let wanted = share_of(choice.step);
        if *share != wanted {
            tracing::debug!(share = wanted, why = choice.why.words(), "the compressed tier");
            *share = wanted;
            self.divide(wanted);
        }
    }

    /// The bound of both tiers together, in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity.load(Relaxed)
    }

    /// How many bytes are held, in both tiers.
    pub fn bytes(&self) -> u64 {
        self.inner.weight() + self.packed.bytes()
    }

    /// How many values are held uncompressed.
    pub fn entries(&self) -> usize {
        self.inner.len()
    }

    /// What the tiers hold, and why. In a fork of the process, nothing.
    pub fn tiers(&self) -> Tiers {
        if !self.process.is_this() {
            return Tiers::default();
        }
        let (choice, tallies) = self.sampler.last();
        let of = |step: usize| (share_of(step), tallies[step]);
        Tiers {
            share: *self.share.lock(),
            why: choice.why,
            raw: (self.inner.weight(), self.inner.len()),
            packed: (self.packed.bytes(), self.packed.entries()),
            costs: self.sampler.costs(),
            tallies: (0..SHARES).map(of).collect(),
        }
    }
}

/// A value, the frame that has it, too, and what it would take compressed.
#[derive(Debug)]
struct Held<V> {
    value: Arc<V>,
    spot: Spot,
    packed: u32,
}

impl<V: Weigh> Held<V> {
    fn weight(&self) -> u64 {
        self.value.bytes() as u64 + ENTRY_OVERHEAD_BYTES
    }

    fn sizes(&self) -> Sizes {
        Sizes { raw: self.weight() as u32, packed: self.packed }
    }
}

impl<V> Clone for Held<V> {
    fn clone(&self) -> Held<V> {
        Held { value: Arc::clone(&self.value), spot: self.spot, packed: self.packed }
    }
}

/// Takes what leaves the cache out of its frame.
struct Leaving<V>(Arc<Frames<V>>);

impl<V> Clone for Leaving<V> {
    fn clone(&self) -> Leaving<V> {
        Leaving(Arc::clone(&self.0))
    }
}

impl<V> Lifecycle<CacheKey, Held<V>> for Leaving<V> {
    /// Values to let go when no lock is held; seldom more than two leave at once.
    type RequestState = [Option<Arc<V>>; 2];

    #[inline]
    fn on_evict(&self, state: &mut Self::RequestState, _key: CacheKey, held: Held<V>) {
        self.0.release(held.spot);
        if let Some(left) = state.iter_mut().find(|left| left.is_none()) {
            *left = Some(held.value);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Weights;

impl<V: Weigh> Weighter<CacheKey, Held<V>> for Weights {
    fn weight(&self, _key: &CacheKey, held: &Held<V>) -> u64 {
        held.weight()
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
