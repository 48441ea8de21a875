//! Which keys a table surely does not have: a Bloom filter whose every look-up touches one line of
//! 64 bytes.
//!
//! ```text
//! filter  = line*  tail
//! line    = 512 bits; bit b is bit (b % 8) of byte (b / 8)
//! tail    = `probes` bytes, each holding the number `probes` (1 to 12)
//! ```
//!
//! The length alone tells the number of lines (length / 64) and of probes (length % 64), so that a
//! look-up reads nothing but its line. A hash picks its line by its high bits (hash x lines / 2^64)
//! and its bits by the product of the hash with an odd constant, from which probe p takes the nine
//! bits below bit 64 - 9 p; every seventh probe the product is multiplied again.
//!
//! No bytes, or a length that no filter has, know nothing: every key may be there.
//! The choice is measured in docs/decisions/0001-filter.md.

use crate::base::coding;

/// Bytes of a line.
const LINE_BYTES: usize = 64;

/// The most probes a filter makes.
const PROBES_MAX: usize = 12;

/// How many probes one product feeds: nine bits each.
const PROBES_PER_PRODUCT: usize = 7;

/// Spreads a hash over the probes: 2^64 divided by the golden ratio, which is odd.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The most bits per key that a filter is built with.
pub const BITS_MAX: u8 = 20;

const _: () = assert!(PROBES_MAX < LINE_BYTES);

/// Calls `$function::<PROBES>` with the number of probes as a constant, so that the loop over
/// them is unrolled; `$otherwise` if there is no such number of probes.
macro_rules! with_probes {
    ($probes:expr, $function:ident ( $($argument:expr),* ), $otherwise:expr) => {
        match $probes {
            1 => $function::<1>($($argument),*),
            2 => $function::<2>($($argument),*),
            3 => $function::<3>($($argument),*),
            4 => $function::<4>($($argument),*),
            5 => $function::<5>($($argument),*),
            6 => $function::<6>($($argument),*),
            7 => $function::<7>($($argument),*),
            8 => $function::<8>($($argument),*),
            9 => $function::<9>($($argument),*),
            10 => $function::<10>($($argument),*),
            11 => $function::<11>($($argument),*),
            12 => $function::<12>($($argument),*),
            _ => $otherwise,
        }
    };
}

/// Builds the filter over `hashes` (see [`crate::base::coding::hash`]) with about `bits_per_key`
/// bits for each; with zero bits there is no filter, and no bytes. Equal hashes do no harm.
pub fn build(hashes: &[u64], bits_per_key: u8) -> Vec<u8> {
    if bits_per_key == 0 {
        return Vec::new();
    }
    let probes = probes(bits_per_key);
    let bits = hashes.len() * usize::from(bits_per_key);
    let lines = bits.div_ceil(LINE_BYTES * 8);
    let mut filter = vec![0; lines * LINE_BYTES + probes];
    let (body, tail) = filter.split_at_mut(lines * LINE_BYTES);
    tail.fill(probes as u8);
    let (body, _) = body.as_chunks_mut::<LINE_BYTES>();
    with_probes!(probes, set(body, hashes), unreachable!("probes() gives 1 to 12"));
    assert!(validate(&filter), "a reader takes the filter");
    debug_assert!(hashes.iter().all(|&hash| may_contain(&filter, hash)));
    filter
}

/// Whether the key with this hash may be among those the filter was built over. False is certain.
#[inline]
pub fn may_contain(filter: &[u8], hash: u64) -> bool {
    let probes = filter.len() % LINE_BYTES;
    if probes == 0 || probes > PROBES_MAX {
        return true;
    }
    let (lines, _) = filter.as_chunks::<LINE_BYTES>();
    if lines.is_empty() {
        return false;
    }
    // The index is below the count, as place_of multiplies it with a number below one.
    match lines.get(coding::place_of(hash, lines.len())) {
        Some(line) => with_probes!(probes, test(line, hash), true),
        None => true,
    }
}

/// Whether the bytes are a filter, or none at all.
pub fn validate(filter: &[u8]) -> bool {
    let probes = filter.len() % LINE_BYTES;
    let (_, tail) = filter.as_chunks::<LINE_BYTES>();
    filter.is_empty()
        || (1..=PROBES_MAX).contains(&probes) && tail.iter().all(|&b| usize::from(b) == probes)
}

/// The bits per key for the filters of a level, given those of the last level and how many levels
/// above it this one is.
///
/// A read that finds nothing pays the sum of the levels' false-positive rates, while nearly all of
/// the memory goes to the last level. So each level up, being about ten times smaller, gets four
/// bits more, up to [`BITS_MAX`]; all those together cost half a bit per key of the tree.
pub fn bits_for_level(base_bits: u8, level_from_last: usize) -> u8 {
    if base_bits == 0 {
        return 0;
    }
    let more = level_from_last.min(usize::from(BITS_MAX)) as u8 * 4;
    base_bits.saturating_add(more).min(BITS_MAX)
}

/// How many probes are best for lines of 512 bits.
fn probes(bits_per_key: u8) -> usize {
    match bits_per_key {
        0..=2 => 1,
        3 => 2,
        4..=5 => 3,
        6 => 4,
        7..=8 => 5,
        9..=10 => 6,
        11 => 7,
        12..=13 => 8,
        14..=15 => 9,
        16..=18 => 10,
        19..=21 => 11,
        _ => 12,
    }
}

/// The bits of a hash in its line.
#[inline]
fn bits_of<const PROBES: usize>(hash: u64) -> [usize; PROBES] {
    let mut product = hash;
    let mut rest = 0;
    std::array::from_fn(|probe| {
        if probe % PROBES_PER_PRODUCT == 0 {
            product = product.wrapping_mul(SPREAD);
            rest = product;
        }
        let bit = (rest >> 55) as usize;
        rest <<= 9;
        bit
    })
}

/// Sets the bits of all hashes. There is a line if there is a hash.
fn set<const PROBES: usize>(lines: &mut [[u8; LINE_BYTES]], hashes: &[u64]) {
    let count = lines.len();
    for &hash in hashes {
        let line = &mut lines[coding::place_of(hash, count)];
        for bit in bits_of::<PROBES>(hash) {
            line[bit / 8] |= 1 << (bit % 8);
        }
    }
}

/// Whether all bits of a hash are set. No branch: which probe fails cannot be predicted.
#[inline]
fn test<const PROBES: usize>(line: &[u8; LINE_BYTES], hash: u64) -> bool {
    let mut all = 1;
    for bit in bits_of::<PROBES>(hash) {
        all &= line[bit / 8] >> (bit % 8);
    }
    all & 1 == 1
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
