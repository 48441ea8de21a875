//! The standard's random texts, names and uneven numbers.

use super::scale::Scale;
use crate::generate::Random;
use std::ops::RangeInclusive;

/// A number of a range, all alike.
#[inline]
pub fn between(random: &mut Random, range: RangeInclusive<u32>) -> u32 {
    let (first, last) = range.into_inner();
    first + random.below(u64::from(last - first) + 1) as u32
}

/// The parts of last names.
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// There are so many last names.
const NAMES: u32 = 1000;

/// The last name of a number below 1000.
pub fn last_name(number: u32) -> String {
    debug_assert!(number < NAMES);
    [number / 100, number / 10 % 10, number % 10]
        .map(|digit| SYLLABLES[digit as usize % SYLLABLES.len()])
        .concat()
}

/// Adds letters and digits.
pub fn letters(random: &mut Random, length: RangeInclusive<u32>, to: &mut Vec<u8>) {
    const ALL: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let length = between(random, length);
    to.extend((0..length).map(|_| ALL[random.below(ALL.len() as u64) as usize]));
}

/// Adds digits.
pub fn digits(random: &mut Random, count: u32, to: &mut Vec<u8>) {
    to.extend((0..count).map(|_| b'0' + random.below(10) as u8));
}

/// Adds 26 to 50 letters, of which eight are `ORIGINAL` in a tenth of the cases.
pub fn data(random: &mut Random, to: &mut Vec<u8>) {
    const ORIGINAL: &[u8] = b"ORIGINAL";
    let from = to.len();
    letters(random, 26..=50, to);
    if random.below(10) == 0 {
        let room = to.len() - from - ORIGINAL.len();
        let at = from + random.below(room as u64 + 1) as usize;
        to[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
    }
}

/// The constants of uneven numbers: one of each kind for a whole run.
#[derive(Clone, Copy, Debug)]
pub struct Uneven {
    /// Of last names that are loaded.
    pub loaded_name: u32,
    /// Of last names that are asked for: not too near to the other one, as the standard wants it.
    pub asked_name: u32,
    customer: u32,
    item: u32,
}

impl Uneven {
    /// The same seed gives the same ones.
    pub fn new(seed: u64) -> Uneven {
        let random = &mut Random::named(seed, "tpcc constants", 0);
        let (loaded_name, asked_name) = loop {
            let (loaded, asked) = (between(random, 0..=255), between(random, 0..=255));
            let apart = loaded.abs_diff(asked);
            if (65..=119).contains(&apart) && apart != 96 && apart != 112 {
                break (loaded, asked);
            }
        };
        let (customer, item) = (between(random, 0..=1023), between(random, 0..=8191));
        Uneven { loaded_name, asked_name, customer, item }
    }

    /// The number of a last name, of so many; `constant` is one of those for names.
    #[inline]
    pub fn name(constant: u32, random: &mut Random, scale: &Scale) -> u32 {
        uneven(random, 255, constant, 0..=names(scale) - 1)
    }

    /// A customer of a district.
    #[inline]
    pub fn customer(&self, random: &mut Random, scale: &Scale) -> u32 {
        uneven(random, 1023, self.customer, 1..=scale.customers)
    }

    /// An item.
    #[inline]
    pub fn item(&self, random: &mut Random, scale: &Scale) -> u32 {
        uneven(random, 8191, self.item, 1..=scale.items)
    }
}

/// How many last names a district has: its first customers have one each.
pub fn names(scale: &Scale) -> u32 {
    scale.customers.min(NAMES)
}

/// The standard's `NURand`.
fn uneven(random: &mut Random, most: u32, constant: u32, range: RangeInclusive<u32>) -> u32 {
    let (first, last) = range.into_inner();
    let mixed = between(random, 0..=most) | between(random, first..=last);
    first + (mixed + constant) % (last - first + 1)
}
