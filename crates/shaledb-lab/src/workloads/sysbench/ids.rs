//! Which ids the statements of the sysbench pattern name.

use crate::generate::Random;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How ids are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub enum Distribution {
    /// All alike
    Uniform,
    /// Three quarters go to the middle hundredth, the rest lies around it as a bell
    Special,
}

/// Chooses ids.
#[derive(Clone, Copy, Debug)]
pub struct Ids {
    distribution: Distribution,
    rows: u64,
}

/// With `special`: the share of choices in the middle, the middle's share of the rows, and how many
/// even numbers are averaged for the rest.
const MIDDLE_CHOICES: f64 = 0.75;
const MIDDLE_SHARE: f64 = 0.01;
const AVERAGED: u32 = 12;

impl Ids {
    /// From 1 to `rows`, which is not zero.
    pub fn new(distribution: Distribution, rows: u64) -> Ids {
        Ids { distribution, rows }
    }

    /// An id.
    #[inline]
    pub fn pick(&self, random: &mut Random) -> u64 {
        match self.distribution {
            Distribution::Uniform => 1 + random.below(self.rows),
            Distribution::Special => self.special(random),
        }
    }

    fn special(&self, random: &mut Random) -> u64 {
        if random.unit() < MIDDLE_CHOICES {
            let middle = ((self.rows as f64 * MIDDLE_SHARE) as u64).max(1);
            return 1 + (self.rows - middle) / 2 + random.below(middle);
        }
        let sum: f64 = (0..AVERAGED).map(|_| random.unit()).sum();
        let at = (sum / f64::from(AVERAGED) * self.rows as f64) as u64;
        1 + at.min(self.rows - 1)
    }
}
