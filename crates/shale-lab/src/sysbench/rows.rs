//! Texts and ids of `sbtest`, made of chance and nearly free.

use super::Distribution;
use crate::generate::Random;

/// Bytes of `c`: ten groups of eleven digits with dashes between.
pub const C_BYTES: usize = 10 * (GROUP + 1) - 1;

/// Bytes of `pad`: five groups.
pub const PAD_BYTES: usize = 5 * (GROUP + 1) - 1;

const GROUP: usize = 11;
const GROUP_NUMBERS: u64 = 100_000_000_000;

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sbtest<'a> {
    /// The primary key, from 1.
    pub id: u64,
    /// The column with an index.
    pub k: u32,
    /// [`C_BYTES`] bytes.
    pub c: &'a [u8; C_BYTES],
    /// [`PAD_BYTES`] bytes.
    pub pad: &'a [u8; PAD_BYTES],
}

/// Bytes of a row's columns.
pub const ROW_BYTES: u64 = (8 + 4 + C_BYTES + PAD_BYTES) as u64;

/// Bytes of the columns of an entry of the index.
pub const ENTRY_BYTES: u64 = 4 + 8;

const fn pairs_of_digits() -> [[u8; 2]; 100] {
    let mut pairs = [[0; 2]; 100];
    let mut at = 0;
    while at < 100 {
        pairs[at] = [b'0' + (at / 10) as u8, b'0' + (at % 10) as u8];
        at += 1;
    }
    pairs
}

const PAIRS: [[u8; 2]; 100] = pairs_of_digits();

/// Fills `text` with groups of digits.
#[inline]
pub fn fill_text(random: &mut Random, text: &mut [u8]) {
    for group in text.chunks_mut(GROUP + 1) {
        let mut number = random.below(GROUP_NUMBERS);
        for pair in group[..GROUP - 1].chunks_exact_mut(2) {
            pair.copy_from_slice(&PAIRS[(number % 100) as usize]);
            number /= 100;
        }
        group[GROUP - 1] = b'0' + number as u8;
        if let Some(dash) = group.get_mut(GROUP) {
            *dash = b'-';
        }
    }
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
        if unit(random) < MIDDLE_CHOICES {
            let middle = ((self.rows as f64 * MIDDLE_SHARE) as u64).max(1);
            return 1 + (self.rows - middle) / 2 + random.below(middle);
        }
        let sum: f64 = (0..AVERAGED).map(|_| unit(random)).sum();
        let at = (sum / f64::from(AVERAGED) * self.rows as f64) as u64;
        1 + at.min(self.rows - 1)
    }
}

/// From 0 to below 1.
#[inline]
fn unit(random: &mut Random) -> f64 {
    (random.bits() >> 11) as f64 / (1u64 << 53) as f64
}
