//! Bytes to be stored, made of chance.

use crate::generate::Random;

/// Bytes of any value, those included that text has a meaning for.
pub(super) fn bytes(random: &mut Random, most: u64) -> Vec<u8> {
    let meant = [b' ', b'\'', b'"', b'\\', b'%', 0, 0x1a, 0x7f, 0x80, 0xff];
    let length = random.below(most + 1);
    let mut byte = || match random.below(4) {
        0 => meant[random.below(meant.len() as u64) as usize],
        _ => random.bits() as u8,
    };
    (0..length).map(|_| byte()).collect()
}
