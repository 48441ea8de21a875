//! The measurement behind docs/decisions/0001-filter.md: what each kind of filter costs to build,
//! to ask, to keep, and how often it is wrong.
//!
//! cargo run --release -p shale --example filter_bench
//!
//! `cached`: one filter of 230,000 keys, asked again and again. `cold`: as many filters as make
//! 256 MB, asked in random order, so that nearly every line comes from memory. `alone`: a query
//! begins when the one before has been answered, so the time is the latency; otherwise the
//! processor may overlap them. The times include making the hash and the choice of the filter; each
//! is the best of several rounds, as the machine may have other work.

use shaledb::base::coding::hash;
use shaledb::table::filter;
use std::hint::black_box;
use std::time::Instant;
use xorf::{BinaryFuse8, BinaryFuse16, Filter};

const KEYS: u64 = 230_000;
const COLD_BYTES: usize = 256 << 20;
const QUERIES: u64 = 300_000;
const ROUNDS: u64 = 7;
const BUILDS: u64 = 10;

fn main() {
    println!(
        "| filter | bits/key | build ns/key | cached ns | cold ns | cold alone ns | \
         cold alone, present ns | wrong % |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for bits in [8, 10, 12, 14, 16, 18, 20] {
        let name = format!("shale, {bits} bits");
        measure(
            &name,
            |keys| Aligned::new(&filter::build(keys, bits)),
            |f, h| filter::may_contain(f.bytes(), h),
        );
        if ![8, 10, 12, 16].contains(&bits) {
            continue;
        }
        let name = format!("shale, {bits} bits, lines not aligned");
        measure(
            &name,
            |keys| Aligned::shifted(&filter::build(keys, bits)),
            |f, h| filter::may_contain(f.bytes(), h),
        );
        let name = format!("split block, {bits} bits");
        measure(&name, |keys| Split::new(keys, bits.into()), Split::may_contain);
        let name = format!("plain Bloom, {bits} bits");
        measure(&name, |keys| Plain::new(keys, bits.into()), Plain::may_contain);
    }
    let fuse8 = |keys: &[u64]| BinaryFuse8::try_from(keys).expect("the keys differ");
    measure("binary fuse, 8-bit fingerprints", fuse8, |f, h| f.contains(&h));
    let fuse16 = |keys: &[u64]| BinaryFuse16::try_from(keys).expect("the keys differ");
    measure("binary fuse, 16-bit fingerprints", fuse16, |f, h| f.contains(&h));
}

/// What the bench asks of a filter beside building and querying.
trait Held: Clone {
    fn bytes_held(&self) -> usize;
}

impl Held for BinaryFuse8 {
    fn bytes_held(&self) -> usize {
        self.fingerprints.len()
    }
}

impl Held for BinaryFuse16 {
    fn bytes_held(&self) -> usize {
        self.fingerprints.len() * 2
    }
}

/// The hashes of keys numbered from `from`.
fn hashes(from: u64, count: u64) -> Vec<u64> {
    (from..from + count).map(|i| hash(&i.to_be_bytes())).collect()
}

fn measure<F: Held>(name: &str, build: impl Fn(&[u64]) -> F, query: impl Fn(&F, u64) -> bool) {
    let sets: Vec<Vec<u64>> = (0..BUILDS).map(|i| hashes(i << 32, KEYS)).collect();
    let mut build_ns = f64::MAX;
    let built: Vec<F> = sets
        .iter()
        .map(|keys| {
            let start = Instant::now();
            let filter = build(keys);
            build_ns = build_ns.min(start.elapsed().as_nanos() as f64 / KEYS as f64);
            filter
        })
        .collect();

    let bits = built[0].bytes_held() as f64 * 8.0 / KEYS as f64;
    let copies = COLD_BYTES / built[0].bytes_held();
    let many: Vec<F> = (0..copies).map(|i| built[i % built.len()].clone()).collect();

    let mut wrong = 0u64;
    for set in 0..BUILDS {
        let misses = hashes((set << 32) + (1 << 31), 4 * KEYS);
        wrong += misses.iter().filter(|&&h| query(&built[set as usize], h)).count() as u64;
    }
    let wrong = wrong as f64 * 100.0 / (BUILDS * 4 * KEYS) as f64;

    let pick = |h: u64| ((u128::from(h.rotate_left(32)) * copies as u128) >> 64) as usize;
    let miss = |i: u64| hash(&(i ^ 1 << 40).to_le_bytes());
    let cached = time(false, |i| query(&built[0], miss(i)));
    let streamed = time(false, |i| query(&many[pick(miss(i))], miss(i)));
    let alone = time(true, |i| query(&many[pick(miss(i))], miss(i)));
    let hit = time(true, |i| {
        let random = miss(i);
        let copy = pick(random);
        let key = (((copy % built.len()) as u64) << 32) + (random & 0x3ffff) % KEYS;
        query(&many[copy], hash(&key.to_be_bytes()))
    });
    println!(
        "| {name} | {bits:.2} | {build_ns:.1} | {cached:.1} | {streamed:.0} | {alone:.0} | \
         {hit:.0} | {wrong:.4} |"
    );
}

/// Nanoseconds per query; `alone`: without overlap.
fn time(alone: bool, mut query: impl FnMut(u64) -> bool) -> f64 {
    let mut best = f64::MAX;
    for round in 0..ROUNDS {
        let start = Instant::now();
        let mut yes = 0u64;
        for i in round * QUERIES..(round + 1) * QUERIES {
            if query(i) {
                yes += 1;
            }
            if alone {
                fence();
            }
        }
        black_box(yes);
        best = best.min(start.elapsed().as_nanos() as f64 / QUERIES as f64);
    }
    best
}

/// Lets nothing begin before everything above it has ended.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction; it touches nothing.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
}

/// A filter's bytes in memory, with its lines on cache lines or 16 bytes off them.
struct Aligned {
    memory: Vec<u8>,
    start: usize,
    len: usize,
    off: usize,
}

impl Aligned {
    fn new(filter: &[u8]) -> Aligned {
        Aligned::at(filter, 0)
    }

    fn shifted(filter: &[u8]) -> Aligned {
        Aligned::at(filter, 16)
    }

    fn at(filter: &[u8], off: usize) -> Aligned {
        let mut memory = vec![0; filter.len() + 128];
        let start = memory.as_ptr().align_offset(64) + off;
        memory[start..start + filter.len()].copy_from_slice(filter);
        Aligned { memory, start, len: filter.len(), off }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Aligned {
        Aligned::at(self.bytes(), self.off)
    }
}

impl Held for Aligned {
    fn bytes_held(&self) -> usize {
        self.len
    }
}

/// A split-block Bloom filter: lines of 8 words of 32 bits, one bit set in each.
#[derive(Clone)]
struct Split {
    lines: Vec<Line>,
}

#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Line([u32; 8]);

impl Split {
    fn new(keys: &[u64], bits: usize) -> Split {
        let mut lines = vec![Line::default(); (keys.len() * bits).div_ceil(256)];
        let count = lines.len();
        for &key in keys {
            let line = &mut lines[line_of(key, count)];
            for (word, bit) in line.0.iter_mut().zip(Split::bits(key)) {
                *word |= bit;
            }
        }
        Split { lines }
    }

    fn bits(key: u64) -> [u32; 8] {
        const ODD: [u32; 8] = [
            0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f, 0x165667b1, 0xd3a2646d, 0xfd7046c5,
            0xb55a4f09,
        ];
        ODD.map(|odd| 1 << ((key as u32).wrapping_mul(odd) >> 27))
    }

    fn may_contain(&self, key: u64) -> bool {
        let line = &self.lines[line_of(key, self.lines.len())];
        let mut missing = 0;
        for (word, bit) in line.0.iter().zip(Split::bits(key)) {
            missing |= !word & bit;
        }
        missing == 0
    }
}

impl Held for Split {
    fn bytes_held(&self) -> usize {
        self.lines.len() * 32
    }
}

/// The Bloom filter of the textbook: every probe anywhere, by double hashing.
#[derive(Clone)]
struct Plain {
    words: Vec<u64>,
    probes: u32,
}

impl Plain {
    fn new(keys: &[u64], bits: usize) -> Plain {
        let words = vec![0; (keys.len() * bits).div_ceil(64)];
        let mut filter = Plain { words, probes: (bits as f64 * 0.69).round() as u32 };
        for &key in keys {
            for probe in 0..filter.probes {
                let bit = filter.bit(key, probe);
                filter.words[bit / 64] |= 1 << (bit % 64);
            }
        }
        filter
    }

    fn bit(&self, key: u64, probe: u32) -> usize {
        let step = key.rotate_left(32) | 1;
        line_of(key.wrapping_add(step.wrapping_mul(probe.into())), self.words.len() * 64)
    }

    /// Stops at the first bit that is not set.
    fn may_contain(&self, key: u64) -> bool {
        (0..self.probes).all(|probe| {
            let bit = self.bit(key, probe);
            self.words[bit / 64] >> (bit % 64) & 1 == 1
        })
    }
}

impl Held for Plain {
    fn bytes_held(&self) -> usize {
        self.words.len() * 8
    }
}

fn line_of(hash: u64, lines: usize) -> usize {
    ((u128::from(hash) * lines as u128) >> 64) as usize
}
