//! The codecs that the engine chooses from, and what each does to data.

use crate::base::config::Codec;
use crate::fs::Clock;
use crate::table::compress::{self, Compressor};

/// How many there are.
pub const CANDIDATES: usize = 7;

/// What is chosen from, the cheapest first. On blocks of 16 KiB higher levels of zstd save less
/// than a hundredth for several times the CPU (docs/decisions/0017-auto.md).
pub const ALL: [Codec; CANDIDATES] = [
    Codec::None,
    Codec::Lz4,
    Codec::Zstd(-3),
    Codec::Zstd(1),
    Codec::Zstd(3),
    Codec::Zstd(6),
    Codec::Zstd(9),
];

/// The candidate whose size the last level is held to.
pub const YARDSTICK: usize = 4;

/// Fewer bytes tell nothing: what an empty block has, and what a call costs, would count as data.
const SAMPLE_BYTES_MIN: usize = 8 << 10;

/// What one codec does to the data of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Bytes in the file for each byte before compression.
    pub ratio: f64,
    /// Nanoseconds of CPU to compress a byte.
    pub compress: f64,
    /// Nanoseconds of CPU to decompress a byte.
    pub decompress: f64,
}

/// What each candidate does to the data of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs(pub [Cost; CANDIDATES]);

const fn cost(ratio: f64, compress: f64, decompress: f64) -> Cost {
    Cost { ratio, compress, decompress }
}

/// For rows of which half is noise, on the machine of docs/decisions/0002-codecs.md.
pub const USUAL: Costs = Costs([
    cost(1.0, 0.02, 0.02),
    cost(0.505, 0.42, 0.06),
    cost(0.47, 0.9, 0.35),
    cost(0.41, 1.3, 0.49),
    cost(0.41, 2.25, 0.49),
    cost(0.405, 4.5, 0.49),
    cost(0.40, 9.0, 0.49),
]);

impl Costs {
    /// Measures all candidates on some blocks of a level; `None` if there is too little in them to
    /// tell. A clock that does not tell CPU time, as a simulated one, leaves the usual costs.
    pub fn measure(blocks: &[Vec<u8>], clock: &dyn Clock) -> Option<Costs> {
        let raw: usize = blocks.iter().map(Vec::len).sum();
        if raw < SAMPLE_BYTES_MIN {
            return None;
        }
        let mut told = [0; CANDIDATES];
        let mut costs = USUAL;
        // The first candidate shall find memory as warm as the others do.
        let mut image = blocks.concat();
        let mut back = Vec::new();
        for (at, codec) in ALL.iter().enumerate() {
            let cost = &mut costs.0[at];
            let mut compressor = Compressor::new(*codec);
            let (mut stored, mut compressing, mut decompressing) = (0, 0, 0);
            for block in blocks {
                image.clear();
                let started = clock.thread_cpu_nanos();
                let used = compressor.compress(block, &mut image);
                let compressed = clock.thread_cpu_nanos();
                let whole = compress::decompress(used, &image, block.len(), &mut back);
                decompressing += clock.thread_cpu_nanos() - compressed;
                compressing += compressed - started;
                debug_assert!(whole.is_ok() && back == *block, "what is compressed comes back");
                stored += image.len();
            }
            cost.ratio = stored as f64 / raw as f64;
            cost.compress = compressing as f64 / raw as f64;
            cost.decompress = decompressing as f64 / raw as f64;
            told[at] = compressing;
        }
        // A clock that tells the same of all does not tell what they cost.
        if told[1..].iter().all(|nanos| *nanos == told[1]) {
            for (cost, usual) in costs.0.iter_mut().zip(&USUAL.0) {
                (cost.compress, cost.decompress) = (usual.compress, usual.decompress);
            }
        }
        Some(costs)
    }

    /// These costs, but for a codec that was seen to store `ratio` bytes for each: what others
    /// would do is taken to have changed as much.
    pub fn at_ratio(&self, of: usize, ratio: f64) -> Costs {
        let mut costs = *self;
        let change = ratio / self.0[of].ratio.max(f64::MIN_POSITIVE);
        for cost in &mut costs.0[1..] {
            cost.ratio = (cost.ratio * change).clamp(0.001, 1.0);
        }
        costs
    }
}

/// The number of a codec among the candidates.
pub fn index_of(codec: Codec) -> Option<usize> {
    ALL.iter().position(|candidate| *candidate == codec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::Env;

    #[test]
    fn a_few_bytes_tell_nothing() {
        let clock = Env::memory().clock;
        assert_eq!(Costs::measure(&[], &*clock), None);
        assert_eq!(Costs::measure(&[vec![7; 20], vec![7; 100]], &*clock), None);
        let costs = Costs::measure(&[vec![7; 16 << 10]], &*clock).unwrap();
        assert!(costs.0[0].ratio == 1.0 && costs.0[1..].iter().all(|cost| cost.ratio < 0.05));
    }

    /// Moves on by the same at each look.
    struct Steps(std::sync::atomic::AtomicU64);

    impl Clock for Steps {
        fn now_nanos(&self) -> u64 {
            self.thread_cpu_nanos()
        }

        fn thread_cpu_nanos(&self) -> u64 {
            self.0.fetch_add(100, std::sync::atomic::Ordering::Relaxed)
        }

        fn sleep_nanos(&self, _nanos: u64) {}
    }

    #[test]
    fn a_clock_that_does_not_tell_leaves_the_usual_costs() {
        let costs = Costs::measure(&[vec![7; 16 << 10]], &Steps(0.into())).unwrap();
        for (cost, usual) in costs.0.iter().zip(&USUAL.0) {
            assert_eq!((cost.compress, cost.decompress), (usual.compress, usual.decompress));
        }
    }
}
