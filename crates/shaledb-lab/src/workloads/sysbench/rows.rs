//! The rows of `sbtest` and their texts, made of chance and nearly free.

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
