//! Which of the keys an operation meets.

use crate::generate::Random;
use crate::options::Skew;
use crate::workloads::linkbench::distributions::{Shuffle, Zipf};

/// Draws the numbers of keys.
#[derive(Clone, Debug)]
pub(super) enum Draw {
    /// Each number below this one as often as any other.
    Uniform(u64),
    /// By rank. The number of a rank lies anywhere, and is the same in all threads, and in all
    /// steps that draw from as many numbers.
    Ranked(Zipf, Shuffle),
}

impl Draw {
    /// Of `count` numbers, at least one.
    pub(super) fn new(skew: Skew, count: u64, seed: u64) -> Draw {
        match skew {
            Skew::Uniform => Draw::Uniform(count),
            Skew::Zipf(exponent) => {
                Draw::Ranked(Zipf::new(count, exponent), Shuffle::new(seed, "skew", count))
            }
        }
    }

    /// The next number.
    #[inline]
    pub(super) fn number(&self, random: &mut Random) -> u64 {
        match self {
            Draw::Uniform(count) => random.below(*count),
            Draw::Ranked(zipf, shuffle) => shuffle.to(zipf.draw(random)),
        }
    }
}
