//! Watches a sample of the blocks that are used, has a simulation tell what each share of the
//! compressed tier would have read, and says from time to time which it is to have.
//!
//! Uses of blocks that are found are simulated only as far as misses pay for it: where all fits
//! nothing is simulated. A block that was used a few times a moment ago is in every simulated cache
//! and is not simulated either, so that one hot block costs nothing.

use super::place::{CacheKey, sample_hash};
use super::share::{Choice, Costs, Why, choose};
use super::simulation::{SHARES, Simulation, Sizes, Tally, share_of};
use crate::base::rank;
use crate::base::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// About so many of the blocks that the cache would hold uncompressed are in the sample.
const SAMPLED: u64 = 512;
/// The simulation takes at most one part in so many of the memory.
const MEMORY_SHARE: u64 = 64;
/// With more than so many times what it was to take, its sample is halved.
const MEMORY_FACTOR_MAX: u64 = 2;
/// A decision comes after so many simulated uses.
const USES: u32 = 1024;
/// After so many it is looked whether the simulation takes more memory than it may.
const USES_BETWEEN_LOOKS: u32 = 64;
/// How many simulated uses of found blocks a miss pays for, and how many are saved up.
const PAID_BY_A_MISS: i64 = 32;
const PAID_MAX: i64 = 1 << 14;
/// Places whose last uses are remembered.
const RECENT: usize = 256;
/// So many uses in a row are simulated though the block was used a moment ago: policies tell what
/// was used once from what was used again.
const AGAIN: u64 = 2;

/// What calls of a kind took.
#[derive(Debug, Default)]
struct Cost {
    nanos: AtomicU64,
    calls: AtomicU64,
}

impl Cost {
    fn add(&self, nanos: u64) {
        self.nanos.fetch_add(nanos, Relaxed);
        self.calls.fetch_add(1, Relaxed);
    }

    fn mean(&self) -> f64 {
        self.nanos.load(Relaxed) as f64 / self.calls.load(Relaxed).max(1) as f64
    }

    /// Lets what was counted weigh half as much as what comes.
    fn fade(&self) {
        for sum in [&self.nanos, &self.calls] {
            let now = sum.load(Relaxed);
            sum.fetch_sub(now / 2, Relaxed);
        }
    }
}

/// Watches the uses of one cache's blocks. Thread-safe.
#[derive(Debug)]
pub(super) struct Sampler {
    /// One block in so many is in the sample: a power of two, and more where blocks are small.
    every: AtomicU64,
    typical: u64,
    /// What was used within so many simulated uses is in each simulated cache: these are at most a
    /// quarter of what the smallest uncompressed tier holds.
    near: u64,
    memory_bytes: u64,
    paid: AtomicI64,
    /// For some places the upper half of their hash, how often they were used again in a row, and
    /// when they were used last, in simulated uses.
    recent: Box<[AtomicU64]>,
    now: AtomicU64,
    read: Cost,
    unpack: Cost,
    state: Mutex<State, { rank::CACHE_SAMPLE }>,
}

#[derive(Debug)]
struct State {
    simulation: Simulation,
    uses: u32,
    choice: Choice,
}

impl Sampler {
    /// For a cache of `bytes`, whose blocks take about `typical`.
    pub fn new(bytes: u64, typical: u64) -> Sampler {
        let of_each = Simulation::memory_bytes(typical, typical);
        let sampled = SAMPLED.min(bytes / MEMORY_SHARE / of_each).max(1);
        let every = (bytes / typical / sampled).max(1).next_power_of_two();
        Sampler {
            every: AtomicU64::new(every),
            typical,
            near: ((bytes / typical / every) as f64 * (1.0 - share_of(SHARES - 1)) / 4.0) as u64,
            memory_bytes: Simulation::memory_bytes(bytes / every, typical),
            paid: AtomicI64::new(0),
            recent: (0..RECENT).map(|_| AtomicU64::new(0)).collect(),
            now: AtomicU64::new(1),
            read: Cost::default(),
            unpack: Cost::default(),
            state: Mutex::new(State {
                simulation: Simulation::new(bytes / every, typical),
                uses: 0,
                choice: Choice { step: 0, why: Why::Unmeasured },
            }),
        }
    }

    /// About what it takes in memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Whether a block is in the sample.
    #[inline]
    pub fn samples(&self, key: &CacheKey) -> bool {
        sample_hash(key) & (self.every.load(Relaxed) - 1) == 0
    }

    /// Whether a use of a block, which was found, is to be told.
    #[inline]
    pub fn wants(&self, key: &CacheKey) -> bool {
        if self.paid.load(Relaxed) <= 0 || !self.samples(key) {
            return false;
        }
        let hash = sample_hash(key);
        let slot = &self.recent[(hash >> 40) as usize % RECENT];
        let (tag, now) = (hash & (0xffff_ffff << 32), self.now.load(Relaxed));
        let seen = slot.load(Relaxed);
        let (times, last) = (seen >> 30 & 3, seen & 0x3fff_ffff);
        let near = seen & (0xffff_ffff << 32) == tag
            && (now & 0x3fff_ffff).wrapping_sub(last) & 0x3fff_ffff <= self.near;
        if near && times >= AGAIN {
            return false;
        }
        let times = if near { times + 1 } else { 0 };
        slot.store(tag | times << 30 | now & 0x3fff_ffff, Relaxed);
        true
    }

    /// A block that was found is used; it was asked whether that is wanted.
    pub fn found(&self, key: &CacheKey, sizes: Sizes, bytes: u64) -> Option<Choice> {
        self.paid.fetch_sub(1, Relaxed);
        self.touch(key, sizes, bytes)
    }

    /// A block that was not found uncompressed is used. `bytes` is what the cache may take now.
    /// Answers a new choice, if it is time for one.
    pub fn missed(&self, key: &CacheKey, sizes: Sizes, bytes: u64) -> Option<Choice> {
        if self.paid.load(Relaxed) < PAID_MAX {
            self.paid.fetch_add(PAID_BY_A_MISS, Relaxed);
        }
        if self.samples(key) { self.touch(key, sizes, bytes) } else { None }
    }

    fn touch(&self, key: &CacheKey, sizes: Sizes, bytes: u64) -> Option<Choice> {
        self.now.fetch_add(1, Relaxed);
        let mut state = self.state.lock();
        state.simulation.touch(sample_hash(key), sizes);
        state.uses += 1;
        if state.uses.is_multiple_of(USES_BETWEEN_LOOKS)
            && state.simulation.held_bytes() > MEMORY_FACTOR_MAX * self.memory_bytes
        {
            let every = 2 * self.every.load(Relaxed);
            self.every.store(every, Relaxed);
            state.simulation = Simulation::new(bytes / every, self.typical);
        }
        if state.uses < USES {
            return None;
        }
        state.uses = 0;
        if state.choice.why == Why::Set {
            return None;
        }
        let choice = choose(state.choice, &state.simulation.tallies(), self.costs());
        state.choice = choice;
        state.simulation.fade();
        state.simulation.resize(bytes / self.every.load(Relaxed));
        self.read.fade();
        self.unpack.fade();
        Some(choice)
    }

    /// A block was read from storage.
    pub fn note_read(&self, nanos: u64) {
        self.read.add(nanos);
    }

    /// A block was decompressed.
    pub fn note_unpack(&self, nanos: u64) {
        self.unpack.add(nanos);
    }

    /// What either costs.
    pub fn costs(&self) -> Costs {
        Costs { read_nanos: self.read.mean(), unpack_nanos: self.unpack.mean() }
    }

    /// Makes no choice any more.
    pub fn stop(&self) {
        self.state.lock().choice.why = Why::Set;
    }

    /// The last choice, and what it was made by.
    pub fn last(&self) -> (Choice, [Tally; SHARES]) {
        let state = self.state.lock();
        (state.choice, state.simulation.tallies())
    }
}
