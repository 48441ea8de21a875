//! What is known of the data of a tree's levels, and what is done with it: what choosing a codec
//! goes by.

use crate::base::config::{Codec, LEVELS};
use crate::compaction::policy::auto::LevelLoad;
use crate::compaction::policy::candidates::{Costs, index_of};
use crate::table::meta::TableMeta;

/// Smaller tables tell nothing, in bytes before compression.
const TABLE_BYTES_MIN: u64 = 64 << 10;
/// After so many tables all candidates are tried anew, though nothing seems to have changed.
const TABLES_PER_PROBE: u32 = 64;
/// The same where blocks are stored as they are, so that a change of the data does not show.
const PLAIN_TABLES_PER_PROBE: u32 = 8;
/// A ratio that differs by this share means that the data has changed.
const CHANGED: f64 = 0.2;
/// Over how many seconds what is done with a level is averaged.
const SECONDS: f64 = 5.0;

/// What is known of the levels of a tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned {
    levels: [Level; LEVELS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    costs: Option<Costs>,
    /// Whether the next table shall be probed.
    stale: bool,
    /// Tables since the last probe.
    tables: u32,
    /// Bytes before compression that were compressed since the last look.
    compressed: u64,
    load: LevelLoad,
}

impl Learned {
    /// Whether some blocks of the next table of a level are wanted.
    pub fn wants_probe(&self, level: usize) -> bool {
        let level = &self.levels[level];
        level.costs.is_none() || level.stale
    }

    /// Notes a table that was written into a level, of which some bytes in the file are of blocks
    /// that were reused; and what the candidates do to its blocks, if it was probed.
    pub fn wrote(&mut self, level: usize, meta: &TableMeta, reused: u64, probed: Option<Costs>) {
        let level = &mut self.levels[level];
        let stored = meta.data_bytes.max(1) as f64;
        let fresh = 1.0 - (reused as f64 / stored).min(1.0);
        level.compressed += (meta.raw_bytes as f64 * fresh) as u64;
        if meta.raw_bytes < TABLE_BYTES_MIN {
            return;
        }
        let fits = probed.is_some();
        if fits {
            (level.costs, level.stale, level.tables) = (probed, false, 0);
        }
        let Some(costs) = level.costs else { return };
        level.tables += 1;
        let plain = meta.codec == Some(Codec::None);
        let every = if plain { PLAIN_TABLES_PER_PROBE } else { TABLES_PER_PROBE };
        level.stale |= level.tables >= every;
        if let Some(used) = meta.codec.and_then(index_of).filter(|_| !plain && fresh > 0.5) {
            let ratio = stored / meta.raw_bytes as f64;
            let change = ratio / costs.0[used].ratio.max(f64::MIN_POSITIVE) - 1.0;
            // Of a table that was probed itself its blocks just differ.
            level.stale |= !fits && change.abs() > CHANGED;
            level.costs = Some(costs.at_ratio(used, ratio));
        }
    }

    /// What codecs do to the data of each level.
    pub fn costs(&self) -> [Option<Costs>; LEVELS] {
        self.levels.map(|level| level.costs)
    }

    /// What has been done with each level each second, `read` bytes before compression having been
    /// decoded for users in the `seconds` since the last look.
    pub fn look(&mut self, read: &[f64; LEVELS], seconds: f64) -> [LevelLoad; LEVELS] {
        let share = seconds / (seconds + SECONDS);
        std::array::from_fn(|at| {
            let level = &mut self.levels[at];
            let written = std::mem::take(&mut level.compressed) as f64 / seconds;
            let blend = |old: f64, new: f64| {
                let mean = old + share * (new - old);
                // What has not been done for minutes has not been done.
                if mean < 1.0 { 0.0 } else { mean }
            };
            level.load.written = blend(level.load.written, written);
            level.load.read = blend(level.load.read, read[at] / seconds);
            level.load
        })
    }
}

#[cfg(test)]
#[path = "learned_tests.rs"]
mod tests;
