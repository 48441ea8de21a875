//! How often a cache of some share of compressed blocks would read, found by small caches of the
//! same kind that hold sizes only: one pair of tiers for each share.
//!
//! They see the blocks whose hash falls into a sample, and are as much smaller as the sample is
//! (Waldspurger et al., "Cache modeling and optimization using miniature simulations", 2017). So
//! they have the cache's own policy, its two tiers with a life of their own included, and no
//! formula for it.

use super::packed::PACKED_BYTES_TYPICAL;
use super::place::Mix;
use quick_cache::Weighter;
use quick_cache::unsync::Cache;

/// How many shares are simulated.
pub const SHARES: usize = 8;
/// Those shares. Small ones are seldom of use: what is read goes into both tiers.
const SHARE_OF: [f64; SHARES] = [0.0, 0.25, 0.5, 0.625, 0.75, 0.875, 0.9375, 0.96875];
/// About what the simulation takes for each block that its caches hold.
const ENTRY_BYTES: u64 = 56;
/// How many blocks all small caches may hold for each that one of them would hold uncompressed: at
/// most half of this for the one tier, and for the other as much again times what codecs save.
const HELD_FACTOR: u64 = 16;

/// What a block takes in either tier, in bytes. One that is not compressed has no `packed` size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Decompressed and ready to be searched.
    pub raw: u32,
    /// As in its file; 0 if it is not compressed.
    pub packed: u32,
}

/// What became of the uses of blocks. (Halved from time to time, and so no whole numbers.)
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Found uncompressed.
    pub found: f64,
    /// Found compressed.
    pub unpacked: f64,
    /// Read from storage.
    pub read: f64,
}

impl Tally {
    /// All uses.
    pub fn uses(&self) -> f64 {
        self.found + self.unpacked + self.read
    }
}

#[derive(Clone, Copy, Debug)]
struct Weights;

impl Weighter<u64, u32> for Weights {
    fn weight(&self, _key: &u64, bytes: &u32) -> u64 {
        u64::from(*bytes)
    }
}

type Tier = Cache<u64, u32, Weights, Mix>;

fn tier(bytes: u64, typical: u64) -> Tier {
    let items = (bytes / typical).max(32) as usize;
    Cache::with(items, bytes, Weights, Mix, Default::default())
}

struct Pair {
    raw: Tier,
    packed: Tier,
    tally: Tally,
}

/// Small caches of all shares.
pub struct Simulation {
    pairs: [Pair; SHARES],
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.tallies()).finish()
    }
}

/// The bytes of both tiers, of `bytes` for both, if the compressed one has `share` of them.
pub fn split(bytes: u64, share: f64) -> (u64, u64) {
    debug_assert!((0.0..=1.0).contains(&share));
    let packed = ((bytes as f64 * share) as u64).min(bytes);
    (bytes - packed, packed)
}

/// The share of this number.
pub fn share_of(step: usize) -> f64 {
    SHARE_OF[step]
}

impl Simulation {
    /// Of caches with `bytes` each, whose blocks take about `typical` uncompressed.
    pub fn new(bytes: u64, typical: u64) -> Simulation {
        let pair = |_| Pair {
            raw: tier(bytes, typical),
            packed: tier(bytes, PACKED_BYTES_TYPICAL.min(typical)),
            tally: Tally::default(),
        };
        let mut simulation = Simulation { pairs: std::array::from_fn(pair) };
        simulation.resize(bytes);
        simulation
    }

    /// About what simulating takes in memory, in bytes, for caches of `bytes`.
    pub fn memory_bytes(bytes: u64, typical: u64) -> u64 {
        bytes / typical * HELD_FACTOR * ENTRY_BYTES
    }

    /// Gives each pair so many bytes.
    pub fn resize(&mut self, bytes: u64) {
        for (step, pair) in self.pairs.iter_mut().enumerate() {
            let (raw, packed) = split(bytes, share_of(step));
            if raw != pair.raw.capacity() {
                pair.raw.set_capacity(raw);
                pair.packed.set_capacity(packed);
            }
        }
    }

    /// A block is used.
    pub fn touch(&mut self, key: u64, sizes: Sizes) {
        for (step, pair) in self.pairs.iter_mut().enumerate() {
            if pair.raw.get(&key).is_some() {
                pair.tally.found += 1.0;
                continue;
            }
            let may_be_packed = step > 0 && sizes.packed > 0;
            if may_be_packed && pair.packed.get(&key).is_some() {
                pair.tally.unpacked += 1.0;
            } else {
                pair.tally.read += 1.0;
                if may_be_packed {
                    pair.packed.insert(key, sizes.packed);
                }
            }
            pair.raw.insert(key, sizes.raw);
        }
    }

    /// What became of the uses, by share.
    pub fn tallies(&self) -> [Tally; SHARES] {
        std::array::from_fn(|step| self.pairs[step].tally)
    }

    /// About what it takes in memory now, in bytes.
    pub fn held_bytes(&self) -> u64 {
        let entries = |pair: &Pair| (pair.raw.len() + pair.packed.len()) as u64;
        self.pairs.iter().map(entries).sum::<u64>() * ENTRY_BYTES
    }

    /// Lets what was counted weigh half as much as what comes.
    pub fn fade(&mut self) {
        for pair in &mut self.pairs {
            let Tally { found, unpacked, read } = &mut pair.tally;
            for count in [found, unpacked, read] {
                *count /= 2.0;
            }
        }
    }
}
