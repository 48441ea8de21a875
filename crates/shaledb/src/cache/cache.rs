//! Shared values by (file, offset), bounded in bytes, in shards that scans cannot flood.
//!
//! File numbers are never used twice, so nothing is ever invalidated: what belongs to a removed
//! file ages out.
//!
//! A fork of the process finds nothing and keeps nothing: a thread that is not there may have held
//! a lock of a shard when it was made.

use super::frames::{FRAME_BYTES, Frames, Slot, Spot};
use super::steps::Steps;
use crate::base::prefetch;
use crate::fs::process::{Process, process};
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The place of a value: a file and an offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheKey {
    /// The file's number.
    pub file: u64,
    /// Where in the file.
    pub offset: u64,
}

/// How much memory a cached value takes.
pub trait Weigh {
    /// Bytes of memory, all of its parts included.
    fn bytes(&self) -> usize;
}

/// What the cache itself spends on an entry.
const ENTRY_OVERHEAD_BYTES: u64 = 72 + FRAME_BYTES;

/// Values by place, at most so many bytes of them; the least useful go first. Thread-safe.
pub struct Cache<V: Weigh> {
    inner: quick_cache::sync::Cache<CacheKey, Held<V>, Weights, Mix, Leaving<V>>,
    frames: Arc<Frames<V>>,
    steps: Steps,
    /// The units that each shard has; 0 of a cache that was closed, which remembers nothing.
    units: AtomicU64,
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
    /// An empty cache of `bytes`.
    pub fn new(bytes: u64) -> Cache<V> {
        let steps = Steps::of(bytes);
        let (items, whole) = (steps.entries() as usize, steps.bytes(steps.units));
        let mut builder = OptionsBuilder::new();
        builder.shards(steps.shards as usize).estimated_items_capacity(items);
        builder.weight_capacity(whole).ghost_allocation(1.0);
        let frames = Arc::new(Frames::new());
        let leaving = Leaving(Arc::clone(&frames));
        let inner = match builder.build() {
            Ok(options) => quick_cache::sync::Cache::with_options(options, Weights, Mix, leaving),
            Err(_) => quick_cache::sync::Cache::with(items, whole, Weights, Mix, leaving),
        };
        let units = AtomicU64::new(steps.units);
        Cache { inner, frames, steps, units, process: process() }
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
        if let Some((value, first)) = self.frames.get(slot.get()) {
            // So that it knows what is useful.
            if first {
                self.inner.get(&key());
            }
            return Some(value);
        }
        let held = self.inner.get(&key())?;
        slot.set(held.spot);
        Some(held.value)
    }

    /// Begins to load from memory what [`Cache::get_at`] and its caller will read of the values of
    /// these slots, for who asks for one after the other and calls this at each: of the farthest
    /// its frame, of the one before, whose frame is here by now, the value, and of the nearest what
    /// `refers` asks for.
    #[inline]
    pub fn prepare(&self, [nearest, next, farthest]: [Option<&Slot>; 3], refers: impl FnOnce(&V)) {
        // Other processors are not asked for memory: it would only cost.
        if !cfg!(target_arch = "x86_64") || !self.process.is_this() {
            return;
        }
        if let Some(slot) = farthest {
            self.frames.prepare(slot.get());
        }
        if let Some(slot) = next {
            self.frames.look(slot.get(), |value| prefetch::counted(Arc::as_ptr(value)));
        }
        if let Some(slot) = nearest {
            self.frames.look(slot.get(), |value| refers(value));
        }
    }

    /// Whether a value is held, without having used it.
    pub fn has(&self, key: &CacheKey) -> bool {
        self.process.is_this() && self.inner.contains_key(key)
    }

    /// Holds a value. One that is heavier than a shard is not held. Answers with what has left for
    /// it: one or two of these values, mostly.
    pub fn insert(&self, slot: &Slot, key: CacheKey, value: Arc<V>) -> [Option<Arc<V>>; 2] {
        let mut left = [None, None];
        if self.process.is_this() {
            let spot = self.frames.hold(&value);
            slot.set(spot);
            self.inner.insert_with_lifecycle(key, Held { value, spot }, &mut left);
        }
        left
    }

    /// Changes the bound, to about so many bytes (see [`Steps`]); evicts at once if it shrinks. To
    /// be called by one thread at a time.
    pub fn set_capacity(&self, bytes: u64) {
        let from = self.units.load(Relaxed);
        if !self.process.is_this() || from == 0 {
            return;
        }
        if bytes == 0 {
            self.units.store(0, Relaxed);
            return self.inner.set_capacity(0);
        }
        let steps = self.steps.towards(from, bytes).into_iter().filter(|units| *units > 0);
        for units in steps.filter(|units| *units != from) {
            self.units.store(units, Relaxed);
            self.inner.set_capacity(self.steps.bytes(units));
        }
    }

    /// The bound, in bytes.
    pub fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    /// How many bytes are held.
    pub fn bytes(&self) -> u64 {
        self.inner.weight()
    }

    /// How many values are held.
    pub fn entries(&self) -> usize {
        self.inner.len()
    }
}

/// A value, and the frame that has it, too.
#[derive(Debug)]
struct Held<V> {
    value: Arc<V>,
    spot: Spot,
}

impl<V> Clone for Held<V> {
    fn clone(&self) -> Held<V> {
        Held { value: Arc::clone(&self.value), spot: self.spot }
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
        held.value.bytes() as u64 + ENTRY_OVERHEAD_BYTES
    }
}

/// A hash of a place: the same in every run. Places are ours, so no one can choose collisions.
#[derive(Clone, Copy, Debug)]
struct Mix;

#[derive(Debug)]
struct MixHasher(u64);

impl BuildHasher for Mix {
    type Hasher = MixHasher;

    #[inline]
    fn build_hasher(&self) -> MixHasher {
        MixHasher(0x9e37_79b9_7f4a_7c15)
    }
}

impl Hasher for MixHasher {
    #[inline]
    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * 0xa076_1d64_78bd_642f_u128;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
