//! What is known of the data of a tree's levels, and what is done with it: what choosing a codec
//! goes by.

use crate::base::config::{Codec, LEVELS};
use crate::compaction::policy::auto::LevelLoad;
use crate::compaction::policy::candidates::{Costs, index_of};
use crate::table::compress::Dictionary;
use crate::table::meta::TableMeta;
use std::sync::Weak;

/// Smaller tables tell nothing, in bytes before compression.
const TABLE_BYTES_MIN: u64 = 64 << 10;
/// After so many tables all candidates are tried anew, though nothing seems to have changed.
const TABLES_PER_PROBE: u32 = 64;
/// The same where blocks are stored as they are, so that a change of the data does not show.
const PLAIN_TABLES_PER_PROBE: u32 = 8;
/// A ratio that differs by this share means that the data has changed.
const CHANGED: f64 = 0.1;
/// Over how many seconds what is done with a level is averaged.
const SECONDS: f64 = 5.0;

/// What is known of the levels of a tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned {
    levels: [Level; LEVELS],
    dictionary: TreeDictionary,
    /// What the dictionary was seen to save last, in percent.
    saves_percent: Option<f64>,
    /// How often the tree has got another dictionary, or none after one.
    dictionary_changes: u64,
}

/// What is known of a tree's dictionary.
#[derive(Clone, Debug, Default)]
pub(crate) enum TreeDictionary {
    /// Nothing; its tables have not been asked.
    #[default]
    NotLookedFor,
    /// Nothing.
    Unknown,
    /// It is better without.
    Without,
    /// This one. Tables have it as well, if it is no longer in memory.
    With(Weak<Dictionary>),
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    costs: Option<Costs>,
    /// Whether the next table shall be probed.
    stale: bool,
    /// What the last table was written with, and its ratio.
    last: Option<(Codec, f64)>,
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

    /// What is known of the dictionary.
    pub fn dictionary(&self) -> TreeDictionary {
        self.dictionary.clone()
    }

    /// What the dictionary was seen to save last, in percent, if that was looked at; and how often
    /// there was a change of it.
    pub fn dictionary_saves(&self) -> (Option<f64>, u64) {
        (self.saves_percent, self.dictionary_changes)
    }

    /// Notes what was decided on the dictionary, and whether that is a change.
    pub fn has_dictionary(&mut self, dictionary: TreeDictionary, saves_percent: f64) -> bool {
        let same = match (&self.dictionary, &dictionary) {
            (TreeDictionary::With(one), TreeDictionary::With(other)) => Weak::ptr_eq(one, other),
            (TreeDictionary::With(_), _) | (_, TreeDictionary::With(_)) => false,
            _ => true,
        };
        self.dictionary = dictionary;
        self.saves_percent = Some(saves_percent);
        if !same {
            self.dictionary_changes += 1;
            // What codecs do with it is not known of the other levels.
            self.levels.iter_mut().for_each(|level| level.stale = true);
        }
        !same
    }

    /// Notes what the tables have said about the dictionary.
    pub fn found_dictionary(&mut self, dictionary: TreeDictionary) {
        self.dictionary = dictionary;
    }

    /// Notes a table that was written into a level, with a codec and, if that is known, with a
    /// dictionary or without, of which some bytes in the file are of blocks that were reused; and
    /// what the candidates do to its blocks, if it was probed.
    pub fn wrote(
        &mut self,
        level: usize,
        (meta, codec, dictionary): (&TableMeta, Codec, Option<bool>),
        reused: u64,
        probed: Option<Costs>,
    ) {
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
        let plain = codec == Codec::None;
        let every = if plain { PLAIN_TABLES_PER_PROBE } else { TABLES_PER_PROBE };
        level.stale |= level.tables >= every;
        if plain || fresh <= 0.5 {
            return;
        }
        let ratio = stored / meta.raw_bytes as f64;
        let is_zstd = matches!(codec, Codec::Zstd(_));
        let used = dictionary.and_then(|dictionary| index_of(codec, dictionary && is_zstd));
        // What it is to be like: by the blocks that were probed, or as the table before.
        let expected = match used {
            Some(used) => Some(costs.0[used].ratio),
            None => level.last.filter(|(last, _)| *last == codec).map(|(_, ratio)| ratio),
        };
        if let Some(expected) = expected {
            let change = ratio / expected.max(f64::MIN_POSITIVE) - 1.0;
            // Of a table that was probed itself its blocks just differ.
            level.stale |= !fits && change.abs() > CHANGED;
        }
        level.last = Some((codec, ratio));
        if let Some(used) = used {
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
