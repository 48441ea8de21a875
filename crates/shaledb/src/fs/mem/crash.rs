//! How a crash treats what was not synced, and the chance that decides where it may go either way.

/// What a crash makes of bytes and names that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashMode {
    /// All are lost: the least that a disk may keep.
    Lost,
    /// All are kept, and durable from now on.
    Kept,
    /// Names are kept or lost one by one; files end anywhere between what was synced and what was
    /// written; each unsynced sector is kept, lost (the bytes before, or zeros) or garbage.
    Torn,
}

/// Chance from a seed (SplitMix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
