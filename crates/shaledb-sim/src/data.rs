//! The keys and values of programs, each named by a small number, so that programs are short to
//! write down and values cheap to keep.

use shaledb::base::coding;

/// How many different keys programs use.
pub const KEYS: u32 = 400;

/// The bytes of key `number`: of many lengths (0 to 300), some a prefix of others, some with zeros
/// and 0xff at the end. Different numbers have different bytes.
pub fn key(number: u32) -> Vec<u8> {
    if number == 0 {
        return Vec::new();
    }
    // Groups of eight keys have a common stem; stems are not in the order of the numbers.
    let stem = (number / 8).wrapping_mul(37) % 101;
    let mut key = format!("{:c>width$}{:02x}", "", stem, width = (stem % 3) as usize).into_bytes();
    key.extend(((number / 8) as u8).to_be_bytes());
    match number % 8 {
        0 => {}
        1 => key.push(0),
        2 => key.extend([0, 0]),
        3 => key.push(0xff),
        4 => key.extend([0xff, 0xff, 1]),
        5 => key.extend(std::iter::repeat_n(b'x', 7)),
        6 => key.extend(std::iter::repeat_n(b'x', 8)),
        _ => key.extend(std::iter::repeat_n(b'x', if stem.is_multiple_of(9) { 290 } else { 20 })),
    }
    key
}

/// A value: its bytes follow from these two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value {
    /// What makes it different from others. Of odd numbers the values do not compress.
    pub number: u32,
    /// How many bytes it has.
    pub bytes: u32,
}

impl Value {
    /// Writes the value out.
    pub fn fill(self) -> Vec<u8> {
        let mut value = Vec::with_capacity(self.bytes as usize + 24);
        let mut word = coding::hash(&self.number.to_le_bytes());
        while value.len() < self.bytes as usize {
            if self.number % 2 == 1 {
                word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ 0x5bd1;
                value.extend(word.to_le_bytes());
            } else {
                value.extend(format!("value {} ", self.number).bytes());
            }
        }
        value.truncate(self.bytes as usize);
        value
    }
}

/// The hash of one key and value of a tree; a state's hash is the sum over all its entries, so that
/// it can be kept up to date whatever the order.
pub fn entry_hash(tree: &str, key: &[u8], value: &[u8]) -> u64 {
    let parts = [coding::hash(tree.as_bytes()), coding::hash(key), coding::hash(value)];
    parts.iter().fold(0x51ed_270b, |hash, part| {
        (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
    })
}

/// The part of a state's hash that says that a tree is there.
pub fn tree_hash(tree: &str) -> u64 {
    coding::hash(tree.as_bytes()) | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_differ_and_are_awkward() {
        let keys: BTreeSet<Vec<u8>> = (0..KEYS).map(key).collect();
        assert_eq!(keys.len(), KEYS as usize);
        assert!(keys.iter().any(|k| k.len() > 255) && keys.contains(&Vec::new()));
        let prefixes = keys.iter().zip(keys.iter().skip(1)).filter(|(a, b)| b.starts_with(a));
        assert!(prefixes.count() > 100);
    }

    #[test]
    fn values_are_what_their_numbers_say() {
        for number in 0..4 {
            for bytes in [0, 1, 7, 8, 9, 5000] {
                let value = Value { number, bytes };
                assert_eq!(value.fill().len(), bytes as usize);
                assert_eq!(value.fill(), value.fill());
            }
        }
        assert_ne!(Value { number: 1, bytes: 50 }.fill(), Value { number: 2, bytes: 50 }.fill());
    }
}
