//! The codecs that the engine chooses from, and what each does to data.

use crate::base::config::Codec;
use crate::fs::Clock;
use crate::table::compress::{self, Compressor, Dictionary};

/// How many there are.
pub const CANDIDATES: usize = 10;

/// What is chosen from, the cheapest first; then the same with the tree's dictionary. On blocks of
/// 16 KiB higher levels of zstd save less than a hundredth for several times the CPU
/// (docs/decisions/0017-auto.md).
pub const ALL: [Way; CANDIDATES] = [
    Way::plain(Codec::None),
    Way::plain(Codec::Lz4),
    Way::plain(Codec::Zstd(-3)),
    Way::plain(Codec::Zstd(1)),
    Way::plain(Codec::Zstd(3)),
    Way::plain(Codec::Zstd(6)),
    Way::plain(Codec::Zstd(9)),
    Way::with_dictionary(Codec::Zstd(1)),
    Way::with_dictionary(Codec::Zstd(3)),
    Way::with_dictionary(Codec::Zstd(6)),
];

/// The candidate whose size the last level is held to.
pub const YARDSTICK: usize = 4;
/// The same with the tree's dictionary.
pub const YARDSTICK_WITH: usize = 8;
/// The first candidate with a dictionary, and that without one which else is the same.
const WITH: usize = 7;
const WITHOUT: usize = 3;
/// A dictionary is worth no try if it leaves more than this of what there is without.
const DICTIONARY_SAVES: f64 = 0.98;

/// A way to compress blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The codec.
    pub codec: Codec,
    /// Whether it uses the tree's dictionary.
    pub dictionary: bool,
}

impl Way {
    const fn plain(codec: Codec) -> Way {
        Way { codec, dictionary: false }
    }

    const fn with_dictionary(codec: Codec) -> Way {
        Way { codec, dictionary: true }
    }
}

/// What zlib takes to decompress a byte, about.
const ZLIB_NANOS: f64 = 2.0;
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
    cost(0.41, 2.0, 0.55),
    cost(0.41, 3.4, 0.55),
    cost(0.405, 6.8, 0.55),
]);

impl Costs {
    /// Measures all candidates on some blocks of a level, with the tree's dictionary if it has one;
    /// `None` if there is too little in them to tell. A clock that does not tell CPU time, as a
    /// simulated one, leaves the usual costs.
    pub fn measure(
        blocks: &[&[u8]],
        dictionary: Option<&Dictionary>,
        clock: &dyn Clock,
    ) -> Option<Costs> {
        let raw: usize = blocks.iter().map(|block| block.len()).sum();
        if raw < SAMPLE_BYTES_MIN {
            return None;
        }
        let mut told = Vec::with_capacity(CANDIDATES);
        let mut costs = USUAL;
        // The first candidate shall find memory as warm as the others do.
        let mut image = blocks.concat();
        let mut back = Vec::new();
        for (at, way) in ALL.iter().enumerate() {
            let mut compressor = Compressor::new(way.codec);
            if way.dictionary && !dictionary.is_some_and(|own| compressor.use_dictionary(own)) {
                costs.0[at].ratio = costs.0[at - WITH + WITHOUT].ratio;
                continue;
            }
            let cost = &mut costs.0[at];
            let (mut stored, mut compressing, mut decompressing) = (0, 0, 0);
            // The first block makes a dictionary ready, which is done once for many blocks.
            compressor.compress(blocks.first()?, &mut image);
            for block in blocks {
                image.clear();
                let started = clock.thread_cpu_nanos();
                let used = compressor.compress(block, &mut image);
                let compressed = clock.thread_cpu_nanos();
                let with = dictionary.filter(|_| way.dictionary);
                let length = block.len();
                let whole = compress::decompress_with(with, used, &image, length, &mut back);
                decompressing += clock.thread_cpu_nanos() - compressed;
                compressing += compressed - started;
                debug_assert!(whole.is_ok() && back == **block, "what is compressed comes back");
                stored += image.len();
            }
            cost.ratio = stored as f64 / raw as f64;
            cost.compress = compressing as f64 / raw as f64;
            cost.decompress = decompressing as f64 / raw as f64;
            told.push(compressing);
        }
        // A clock that tells the same of all does not tell what they cost.
        if told[1..].iter().all(|nanos| *nanos == told[1]) {
            for (cost, usual) in costs.0.iter_mut().zip(&USUAL.0) {
                (cost.compress, cost.decompress) = (usual.compress, usual.decompress);
            }
        }
        Some(costs)
    }

    /// Nanoseconds of CPU to decompress a byte by a codec, also by one that is no candidate.
    pub fn decompress_nanos(&self, codec: Codec) -> f64 {
        let near = match codec {
            Codec::Zstd(..0) => Codec::Zstd(-3),
            Codec::Zstd(_) => Codec::Zstd(3),
            other => other,
        };
        index_of(near, false).map_or(ZLIB_NANOS, |at| self.0[at].decompress)
    }

    /// Whether a candidate is worth a look: of those with a dictionary, if that saves something.
    pub fn has(&self, candidate: usize) -> bool {
        let without = candidate.checked_sub(WITH).map(|at| self.0[at + WITHOUT].ratio);
        without.is_none_or(|ratio| self.0[candidate].ratio <= DICTIONARY_SAVES * ratio)
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
pub fn index_of(codec: Codec, dictionary: bool) -> Option<usize> {
    let way = Way { codec, dictionary };
    ALL.iter().position(|candidate| *candidate == way)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::Env;

    #[test]
    fn a_few_bytes_tell_nothing() {
        let clock = Env::memory().clock;
        assert_eq!(Costs::measure(&[], None, &*clock), None);
        assert_eq!(Costs::measure(&[&[7; 20], &[7; 100]], None, &*clock), None);
        let costs = Costs::measure(&[&[7; 16 << 10]], None, &*clock).unwrap();
        assert!(costs.0[0].ratio == 1.0 && costs.0[1..].iter().all(|cost| cost.ratio < 0.05));
    }

    #[test]
    fn a_dictionary_counts_where_it_saves_something() {
        let (clock, block) = (Env::memory().clock, |number: u64| {
            let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("{{\"number\":{noise},\"name\":\"nothing of note\"}}").repeat(60)
        });
        let blocks: Vec<String> = (0..40).map(block).collect();
        let blocks: Vec<&[u8]> = blocks.iter().map(String::as_bytes).collect();
        let without = Costs::measure(&blocks[20..], None, &*clock).unwrap();
        assert!(
            (0..WITH).all(|at| without.has(at)) && (WITH..CANDIDATES).all(|at| !without.has(at))
        );
        let learnt = &blocks[..20];
        let dictionary = Dictionary::make(&learnt[0][..2048], learnt, 3).unwrap();
        let with = Costs::measure(&blocks[20..], Some(&dictionary), &*clock).unwrap();
        assert!((0..CANDIDATES).all(|at| with.has(at)));
        assert!((0..WITH).all(|at| with.0[at].ratio == without.0[at].ratio));
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
        let costs = Costs::measure(&[&[7; 16 << 10]], None, &Steps(0.into())).unwrap();
        for (cost, usual) in costs.0.iter().zip(&USUAL.0) {
            assert_eq!((cost.compress, cost.decompress), (usual.compress, usual.decompress));
        }
    }
}
