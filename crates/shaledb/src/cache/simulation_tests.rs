//! What a simulation of a sample says, and what a cache of the size does.

use super::cache::Cache;
use super::frames::Slot;
use super::place::{CacheKey, Weigh, sample_hash};
use super::simulation::{SHARES, Simulation, Sizes, share_of};
use std::sync::Arc;

struct Raw(usize);

impl Weigh for Raw {
    fn bytes(&self) -> usize {
        self.0
    }
}

const RAW: usize = 16 << 10;
const BYTES: u64 = 32 << 20;
const TYPICAL: u64 = 16 << 10;
const EVERY: u64 = 8;

/// The compressed size of a block, between a quarter and a half.
fn packed(block: u64) -> usize {
    RAW / 4 + (block * 7919 % (RAW as u64 / 4)) as usize
}

fn key(block: u64) -> CacheKey {
    CacheKey { file: 1 + block % 5, offset: block / 5 * 9000 }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

/// Blocks by Zipf's law, in an order that has nothing to do with their places.
fn zipf(blocks: u64, power: f64, uses: usize) -> Vec<u64> {
    let sums: Vec<f64> = (1..=blocks)
        .scan(0.0, |sum, rank| {
            *sum += (rank as f64).powf(-power);
            Some(*sum)
        })
        .collect();
    let mut random = Random(1);
    let whole = sums[sums.len() - 1];
    let block = |random: &mut Random| {
        let at = random.below(1 << 30) as f64 / f64::from(1 << 30) * whole;
        sums.partition_point(|&sum| sum < at) as u64 * 7919 % blocks
    };
    (0..uses).map(|_| block(&mut random)).collect()
}

fn uniform(blocks: u64, uses: usize) -> Vec<u64> {
    let mut random = Random(3);
    (0..uses).map(|_| random.below(blocks)).collect()
}

/// Zipf's, with long scans between.
fn scans(blocks: u64, uses: usize) -> Vec<u64> {
    let mut random = Random(5);
    let mut trace = Vec::new();
    for part in zipf(blocks, 0.9, uses / 2).chunks(2000) {
        trace.extend_from_slice(part);
        let start = random.below(blocks);
        trace.extend((0..2000).map(|at| (start + at) % blocks));
    }
    trace
}

/// Reads and decompressions per use of the second half of a trace, by a cache of this share.
fn real(trace: &[u64], share: f64) -> (f64, f64) {
    let cache = Cache::<Raw>::new(BYTES);
    cache.fix_share(share);
    let blocks = trace.iter().max().unwrap() + 1;
    let slots: Vec<Slot> = (0..blocks).map(|_| Slot::default()).collect();
    let (mut read, mut unpacked) = (0, 0);
    for (at, &block) in trace.iter().enumerate() {
        let (slot, key) = (&slots[block as usize], key(block));
        if cache.get_at(slot, || key).is_some() {
            continue;
        }
        let counts = u32::from(at >= trace.len() / 2);
        if cache.packed(&key).is_some() {
            unpacked += counts;
        } else {
            read += counts;
            cache.insert_packed(key, &vec![0; packed(block)]);
        }
        cache.insert(slot, key, Arc::new(Raw(RAW)), packed(block));
        assert!(cache.bytes() <= cache.capacity(), "{} bytes", cache.bytes());
    }
    let uses = (trace.len() - trace.len() / 2) as f64;
    (f64::from(read) / uses, f64::from(unpacked) / uses)
}

/// The same of a sample, simulated for all shares at once.
fn simulated(trace: &[u64]) -> [(f64, f64); SHARES] {
    let mut simulation = Simulation::new(BYTES / EVERY, TYPICAL);
    let mut before = simulation.tallies();
    for (at, &block) in trace.iter().enumerate() {
        if at == trace.len() / 2 {
            before = simulation.tallies();
        }
        if sample_hash(&key(block)).is_multiple_of(EVERY) {
            let packed = super::packed::packed_weight(packed(block)) as u32;
            simulation.touch(sample_hash(&key(block)), Sizes { raw: RAW as u32 + 128, packed });
        }
    }
    let tallies = simulation.tallies();
    std::array::from_fn(|step| {
        let (tally, before) = (tallies[step], before[step]);
        let uses = tally.uses() - before.uses();
        ((tally.read - before.read) / uses, (tally.unpacked - before.unpacked) / uses)
    })
}

#[test]
fn a_sample_tells_what_a_cache_of_each_share_reads() {
    // The cache holds 2048 blocks uncompressed: data of a half of it to ten times as much.
    let traces = [
        ("fits", uniform(1000, 20_000)),
        ("uniform", uniform(6000, 80_000)),
        ("zipf 0.8, 4 times", zipf(8000, 0.8, 100_000)),
        ("zipf 0.8, 10 times", zipf(20_000, 0.8, 120_000)),
        ("zipf 1.1", zipf(20_000, 1.1, 80_000)),
        ("scans", scans(12_000, 100_000)),
    ];
    for (name, trace) in traces {
        let simulated = simulated(&trace);
        let none = real(&trace, 0.0).0;
        if none == 0.0 {
            assert!(simulated.iter().all(|(read, _)| *read == 0.0), "{name}");
            continue;
        }
        for step in [2, 5, 7] {
            let (read, unpacked) = real(&trace, share_of(step));
            // Whether a sample has its part of the few blocks that are used most is chance; so the
            // rates of a skewed load are off, all by the same factor.
            let [read, unpacked] = [read, unpacked].map(|rate| rate / none);
            let (simulated_read, simulated_unpacked) = simulated[step];
            let by = simulated[0].0;
            let (read_off, unpacked_off) =
                (simulated_read / by - read, simulated_unpacked / by - unpacked);
            println!("{name}, {}: {read:.3} {read_off:+.3}", share_of(step));
            assert!(read_off.abs() < 0.06, "{name}, share {step}: {read} {read_off}");
            assert!(unpacked_off.abs() < 0.1 + 0.45 * unpacked, "{name}, {step}: {unpacked_off}");
        }
    }
}

#[test]
fn the_simulation_takes_the_memory_that_it_says() {
    let mut simulation = Simulation::new(BYTES / EVERY, TYPICAL);
    for block in 0..100_000 {
        let packed = (RAW / 3) as u32;
        simulation.touch(sample_hash(&key(block)), Sizes { raw: RAW as u32, packed });
    }
    let bound = Simulation::memory_bytes(BYTES / EVERY, TYPICAL);
    let held = simulation.held_bytes();
    assert!(held > bound / 4 && held <= 2 * bound, "{held} of {bound}");
}
