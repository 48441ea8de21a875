//! Places of blocks, how they are hashed, and what a block weighs.

use std::hash::{BuildHasher, Hasher};

/// The place of a value: a file and an offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheKey {
    /// The file's number.
    pub file: u64,
    /// Where in the file.
    pub offset: u64,
}

/// How much memory a cached value takes.
pub trait Weigh {
    /// Bytes of memory, all of its parts included.
    fn bytes(&self) -> usize;
}

/// What an allocator takes for so many bytes, which is what is resident: sizes of memory are mostly
/// a power of two and quarters of it more. (Blocks are cut so that theirs is one of them.)
pub fn allocated(bytes: usize) -> usize {
    const SMALL: usize = 1024;
    if bytes <= SMALL { bytes } else { bytes.next_multiple_of(bytes.next_power_of_two() / 8) }
}

/// A hash of a place: the same in every run. Places are ours, so no one can choose collisions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mix;

#[derive(Debug)]
pub(super) struct MixHasher(u64);

#[inline]
fn mix(state: u64, value: u64) -> u64 {
    let product = u128::from(state ^ value) * 0xa076_1d64_78bd_642f_u128;
    (product as u64) ^ ((product >> 64) as u64)
}

impl BuildHasher for Mix {
    type Hasher = MixHasher;

    #[inline]
    fn build_hasher(&self) -> MixHasher {
        MixHasher(0x9e37_79b9_7f4a_7c15)
    }
}

impl Hasher for MixHasher {
    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0, value);
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Another hash, for which places are looked at: those that one takes are spread over the other.
#[inline]
pub(super) fn sample_hash(key: &CacheKey) -> u64 {
    mix(mix(0xd6e8_feb8_6659_fd93, key.file), key.offset)
}
