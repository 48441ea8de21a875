//! How much writers are slowed by a level 0 that fills while a merge takes it down.
//!
//! What comes into level 0 during a merge stays until the next one, so a long merge makes it grow.
//! Left alone, writers would go at full speed and be slowed hard towards the merge's end. So they
//! are held to the pace at which [`COME_MAX`] tables come until the merge ends, which its progress
//! foretells. The next merge takes them, so there are about twice as many at most, and each merge
//! lets as much in as the one before. In a tree whose merges are short that pace is more than
//! writers can do. A burst is not slowed: the pace counts from [`PACED_MIN`] tables on, and in full
//! from [`PACED_FULL`].
//!
//! Beyond that, and while no merge takes level 0 down, the number of tables alone decides, from a
//! soft limit to a hard one.

use super::throttle::{nanos_at, position};

/// Tables in level 0 up to which no merge under way slows writers.
pub const PACED_MIN: usize = 8;

/// Tables from which on the pace counts in full.
pub const PACED_FULL: usize = 12;

/// Tables that may come into level 0 while a merge takes others down.
pub const COME_MAX: usize = 16;

/// Tables up to which nothing is slowed, while no merge takes them down.
pub const SOFT: usize = 20;

/// How many tables more slow writers in full.
pub const HARD_MORE: usize = 16;

/// How far a merge has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnderWay {
    /// How many tables of level 0 it takes.
    pub tables: usize,
    /// How many have come to level 0 since it began.
    pub came: usize,
    /// The bytes of all its inputs.
    pub input_bytes: u64,
    /// How long it has been under way, in nanoseconds.
    pub nanos: u64,
    /// The share of its entries that are merged.
    pub done: f64,
}

impl UnderWay {
    /// In how many nanoseconds it will end. A merge that has just begun is taken for as fast as
    /// merges were of late, at `rate` input bytes per second.
    pub fn nanos_left(&self, rate: u64) -> f64 {
        let expected = self.input_bytes as f64 * nanos_at(rate);
        let done = self.done.clamp(0.0, 1.0);
        // The more is done the more its own pace tells.
        let all = if done > 0.0 {
            let seen = self.nanos as f64 / done;
            let weight = (done / SEEN).min(1.0);
            seen * weight + expected * (1.0 - weight)
        } else {
            expected
        };
        all * (1.0 - done)
    }
}

/// The share of a merge after which only its own pace tells how long it will take.
const SEEN: f64 = 0.2;

/// The level 0 of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level0 {
    /// Its tables.
    pub tables: usize,
    /// Their bytes.
    pub bytes: u64,
    /// About how many bytes are written until a memtable is full.
    pub memtable_bytes: u64,
    /// The share of all bytes written that the tree gets: writers wait for each byte of any tree.
    pub share: f64,
    /// The merge under way that takes it down.
    pub merge: Option<UnderWay>,
}

impl Level0 {
    /// How long writers wait for each byte, in nanoseconds, where merges read `rate` bytes of
    /// input per second.
    pub fn nanos_per_byte(&self, rate: u64) -> f64 {
        let soft = self.merge.map_or(SOFT, |merge| merge.tables + COME_MAX);
        let beyond = position(self.tables as u64, soft as u64, (soft + HARD_MORE) as u64);
        // Each byte is taken for being merged four times.
        let beyond = 4.0 * beyond * beyond * nanos_at(rate / 4);
        self.merge.map_or(0.0, |merge| self.pace(merge, rate)).max(beyond)
    }

    fn pace(&self, merge: UnderWay, rate: u64) -> f64 {
        let weight = position(self.tables as u64, PACED_MIN as u64, PACED_FULL as u64);
        if weight == 0.0 {
            return 0.0;
        }
        // Tables may be smaller than memtables: compressed, or flushed early.
        let each = (self.bytes / self.tables.max(1) as u64).saturating_mul(2);
        let each = each.min(self.memtable_bytes).max(1) as f64;
        let more = COME_MAX.saturating_sub(merge.came).max(1) as f64;
        let pace = merge.nanos_left(rate) * self.share / (more * each);
        weight * pace.min(4.0 * nanos_at(rate / 4))
    }
}

#[cfg(test)]
#[path = "level0_tests.rs"]
mod tests;
