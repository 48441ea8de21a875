//! What is known of the data of a tree's levels, and what is done with it: what choosing a codec
//! goes by.

use crate::base::config::{Codec, LEVELS};
use crate::compaction::policy::auto::{LEVEL_SECONDS, LevelLoad};
use crate::compaction::policy::block_size::SizeCosts;
use crate::compaction::policy::candidates::{Costs, index_of};
use crate::compaction::policy::sizes::SIZES;
use crate::table::compress::Dictionary;
use crate::table::write::was_small;
use std::sync::{Arc, Weak};

/// Smaller tables tell nothing, in bytes before compression.
const TABLE_BYTES_MIN: u64 = 64 << 10;
/// After so many tables, or so many bytes before compression, all candidates are tried anew, though
/// nothing seems to have changed.
const TABLES_PER_PROBE: u32 = 64;
const BYTES_PER_PROBE: u64 = 256 << 20;
/// The same where blocks are stored as they are, so that a change of the data does not show.
const PLAIN_TABLES_PER_PROBE: u32 = 8;
/// And when so many times as much has been written as then: a dictionary that did not pay may.
const GROWN: u64 = 4;
/// A ratio that differs by this share means that the data has changed.
const CHANGED: f64 = 0.1;

/// What is known of the levels of a tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned {
    levels: [Level; LEVELS],
    dictionary: TreeDictionary,
    /// What the dictionary was seen to save last, in percent.
    saves_percent: Option<f64>,
    /// The same when it was decided on, and the size of the table then.
    saved: (f64, u64),
    /// Bytes before compression of all tables that were written, now and at the last study.
    written: u64,
    studied_at: u64,
    /// Nanoseconds that reads have lost, for each size of blocks, since not all have it.
    lost: [f64; SIZES.len()],
    /// Bytes that rewriting for each size has left with another.
    left: [u64; SIZES.len()],
    /// How often the tree has got another dictionary, or none after one.
    dictionary_changes: u64,
    /// A dictionary that would pay if blocks of the last level were small.
    trial: Option<Trial>,
    /// What the last one saved that was looked for, and the size of the table then.
    tried: (f64, u64),
    /// The last one that the tree had and has no more: with it small blocks are begun.
    dropped: Weak<Dictionary>,
}

/// A dictionary that the tree does not have, since its blocks are too large to gain by it.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub held: Weak<Dictionary>,
    /// What zstd does to blocks of each size without it, and with it.
    pub without: SizeCosts,
    pub with: SizeCosts,
    /// What the candidates do to the smallest blocks with it; `None` where codecs are set.
    pub costs: Option<Costs>,
}

/// A table that was written, as far as it tells something of the data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Bytes of its blocks before compression, and in the file.
    pub raw_bytes: u64,
    pub data_bytes: u64,
    /// Bytes in the file of blocks that were reused.
    pub reused_bytes: u64,
    pub codec: Codec,
    /// Whether it has the tree's dictionary; `None` if it may have one of its own.
    pub dictionary: Option<bool>,
}

impl Seen {
    fn ratio(&self) -> f64 {
        self.data_bytes.max(1) as f64 / self.raw_bytes.max(1) as f64
    }

    /// The share of it that was compressed now.
    fn fresh(&self) -> f64 {
        1.0 - (self.reused_bytes as f64 / self.data_bytes.max(1) as f64).min(1.0)
    }

    /// The candidate that it was written with.
    fn candidate(&self) -> Option<usize> {
        let is_zstd = matches!(self.codec, Codec::Zstd(_));
        self.dictionary.and_then(|dictionary| index_of(self.codec, dictionary && is_zstd))
    }

    /// The costs, with the ratio of this table's codec as it was seen.
    fn correct(&self, costs: Costs) -> Costs {
        match self.candidate().filter(|_| self.codec != Codec::None) {
            Some(used) => costs.at_ratio(used, self.ratio()),
            None => costs,
        }
    }
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
    /// The one of this number. Tables have it as well, if it is no longer in memory.
    With { id: u32, held: Weak<Dictionary> },
}

impl TreeDictionary {
    /// This one.
    pub fn with(dictionary: &Arc<Dictionary>) -> TreeDictionary {
        TreeDictionary::With { id: dictionary.id(), held: Arc::downgrade(dictionary) }
    }

    /// The number of the dictionary, if there is one.
    pub fn id(&self) -> Option<u32> {
        match self {
            TreeDictionary::With { id, .. } => Some(*id),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    costs: Option<Costs>,
    /// What blocks of other sizes would do.
    sizes: Option<SizeCosts>,
    /// Whether a table that was there has been asked about it.
    asked_sizes: bool,
    /// Whether the next table shall be studied.
    stale: bool,
    /// What the last table was written with, and its ratio.
    last: Option<(Codec, f64)>,
    /// Tables since the last study.
    tables: u32,
    /// Bytes of those before compression.
    bytes: u64,
    /// Bytes before compression that were compressed since the last look.
    compressed: u64,
    load: LevelLoad,
    /// Blocks decoded each second for reads that had none beside them.
    apart: f64,
}

/// What users have read of a level since the last look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LevelReads {
    /// Bytes before compression of the blocks that were decoded.
    pub bytes: f64,
    /// How many of these were decoded for reads that had none beside them.
    pub apart: f64,
}

impl Learned {
    /// What is known of the dictionary.
    pub fn dictionary(&self) -> TreeDictionary {
        self.dictionary.clone()
    }

    /// What the dictionary was seen to save last, in percent, if that was looked at; and how often
    /// there was a change of it.
    pub fn dictionary_saves(&self) -> (Option<f64>, u64) {
        (self.saves_percent, self.dictionary_changes)
    }

    /// What the dictionary saved when it was decided on, in percent, and the size of the table by
    /// whose blocks; zeros if that is not known.
    pub fn dictionary_saved(&self) -> (f64, u64) {
        self.saved
    }

    /// Notes what was decided on the dictionary, and whether that is a change.
    pub fn has_dictionary(&mut self, dictionary: TreeDictionary, saves: (f64, u64)) -> bool {
        // Read again from a table it is in memory anew.
        let same = self.dictionary.id() == dictionary.id();
        let before = std::mem::replace(&mut self.dictionary, dictionary);
        match (before, self.dictionary.id()) {
            // Blocks that have it can be reused if it comes back.
            (TreeDictionary::With { held, .. }, None) => {
                (self.dropped, self.tried) = (held, self.saved);
            }
            (_, Some(_)) => self.trial = None,
            _ => {}
        }
        self.saves_percent = Some(saves.0);
        let has_one = self.dictionary.id().is_some();
        if !same || self.saved.0 == 0.0 || was_small(self.saved.1, saves.1) {
            self.saved = saves;
        } else if !has_one {
            // The most that any has come to.
            self.saved.0 = self.saved.0.max(saves.0);
        }
        if !same {
            self.dictionary_changes += 1;
            // What codecs do with it is not known of the other levels.
            self.levels.iter_mut().for_each(|level| level.stale = true);
        }
        !same
    }

    /// Notes what the tables have said about the dictionary, which was made for tables of so many
    /// bytes before compression. What the one before has saved stays what one has to save: if it is
    /// not in tables yet, an older one that is there must not pass for as good.
    pub fn found_dictionary(&mut self, dictionary: TreeDictionary, raw_bytes: u64) {
        let decided = match &self.dictionary {
            TreeDictionary::With { held, .. } => held.strong_count() > 0,
            TreeDictionary::Without => true,
            TreeDictionary::Unknown | TreeDictionary::NotLookedFor => false,
        };
        if decided {
            // By another thread meanwhile.
            return;
        }
        let had_one = self.dictionary.id().is_some();
        self.dictionary = dictionary;
        if self.dictionary.id().is_some() {
            self.trial = None;
        }
        if !had_one || self.dictionary.id().is_none() {
            self.saved = (0.0, raw_bytes);
        }
    }

    /// Notes a table that was written into a level. Answers whether its blocks should be studied:
    /// nothing is known of the level, or it is not as was expected, or much has been written since.
    pub fn wrote(&mut self, level: usize, table: &Seen) -> bool {
        self.written += table.raw_bytes;
        let grown = self.written >= GROWN * self.studied_at;
        let level = &mut self.levels[level];
        level.compressed += (table.raw_bytes as f64 * table.fresh()) as u64;
        if table.raw_bytes < TABLE_BYTES_MIN {
            return false;
        }
        level.tables += 1;
        level.bytes += table.raw_bytes;
        let Some(costs) = level.costs else { return true };
        let plain = table.codec == Codec::None;
        let every = if plain { PLAIN_TABLES_PER_PROBE } else { TABLES_PER_PROBE };
        let mut wanted =
            grown || level.stale || level.tables >= every || level.bytes >= BYTES_PER_PROBE;
        if plain || table.fresh() <= 0.5 {
            return wanted;
        }
        let ratio = table.ratio();
        // What it is to be like: by the blocks that were studied, or as the table before.
        let expected = match table.candidate() {
            Some(used) => Some(costs.0[used].ratio),
            None => level.last.filter(|(last, _)| *last == table.codec).map(|(_, ratio)| ratio),
        };
        if let Some(expected) = expected {
            wanted |= (ratio / expected.max(f64::MIN_POSITIVE) - 1.0).abs() > CHANGED;
        }
        level.last = Some((table.codec, ratio));
        level.costs = Some(table.correct(costs));
        wanted
    }

    /// Notes what the candidates do to blocks of a table that was written into a level.
    pub fn studied(&mut self, level: usize, table: &Seen, costs: Costs) {
        self.studied_at = self.written;
        let level = &mut self.levels[level];
        (level.stale, level.tables, level.bytes) = (false, 0, 0);
        // What the blocks are like the whole table is not quite.
        level.costs = Some(if table.fresh() > 0.5 { table.correct(costs) } else { costs });
    }

    /// Whether a level's blocks are to be looked at for what other sizes would do: that is not
    /// known, and was not asked before.
    pub fn is_unknown_of_sizes(&self, level: usize) -> bool {
        self.levels[level].sizes.is_none() && !self.levels[level].asked_sizes
    }

    /// The last level's blocks get another size, in which a dictionary may pay or not.
    pub fn resized(&mut self) {
        self.restudy(LEVELS - 1);
        // What one saves there is not known yet.
        self.saved.0 = 0.0;
    }

    /// The next table of the level shall be studied.
    pub fn restudy(&mut self, level: usize) {
        self.levels[level].stale = true;
    }

    /// A table of the level is asked now.
    pub fn asks_sizes(&mut self, level: usize) {
        self.levels[level].asked_sizes = true;
    }

    /// Adds what reads have lost, for each size, since not all blocks of the last level are of it.
    /// Answers with all of it since the last level was rewritten.
    pub fn lose(&mut self, nanos: [f64; SIZES.len()]) -> [f64; SIZES.len()] {
        for (lost, nanos) in self.lost.iter_mut().zip(nanos) {
            *lost = (*lost + nanos).max(0.0);
        }
        self.lost
    }

    /// Notes how much of the last level has blocks of another size than each, and whether it has
    /// just been rewritten for one. Answers with what that has left so.
    pub fn rewritten(&mut self, others: [u64; SIZES.len()], done: Option<usize>) -> [u64; 3] {
        for (at, (left, others)) in self.left.iter_mut().zip(others).enumerate() {
            *left = if done == Some(at) { others } else { (*left).min(others) };
        }
        self.left
    }

    /// The last level is rewritten.
    pub fn forget_losses(&mut self) {
        self.lost = [0.0; SIZES.len()];
    }

    /// Notes what blocks of each size would do to the data of a level.
    pub fn studied_sizes(&mut self, level: usize, sizes: SizeCosts) {
        self.levels[level].sizes = Some(sizes);
    }

    /// What is known of blocks of each size for a level, and how many are decoded each second for
    /// reads that have none beside them.
    pub fn blocks(&self, level: usize) -> (Option<SizeCosts>, f64) {
        (self.levels[level].sizes, self.levels[level].apart)
    }

    /// Notes what was found of small blocks with a dictionary, which the tree does not have, and
    /// what that saves, or would have saved, in percent, of tables of so many bytes.
    pub fn tried(&mut self, trial: Option<Trial>, saves: (f64, u64)) {
        // It may have got one meanwhile.
        self.trial = trial.filter(|_| self.dictionary.id().is_none());
        self.tried = saves;
        self.dropped = Weak::new();
    }

    /// The last dictionary for small blocks only, if it pays and is still in memory.
    pub fn trial(&self) -> Option<(&Trial, Arc<Dictionary>)> {
        self.trial.as_ref().and_then(|trial| Some((trial, trial.held.upgrade()?)))
    }

    /// The dictionary to try first, and what the one that was tried last has saved.
    pub fn to_try(&self) -> (Option<Arc<Dictionary>>, (f64, u64)) {
        let tried = self.trial.as_ref().map_or(&self.dropped, |trial| &trial.held);
        match tried.upgrade() {
            // One that was found has left memory: it may be found again.
            None if !tried.ptr_eq(&Weak::new()) => (None, (0.0, 0)),
            held => (held, self.tried),
        }
    }

    /// Small blocks are to be looked at anew.
    pub fn forget_trial(&mut self) {
        if let Some(trial) = self.trial.take() {
            self.dropped = trial.held;
        }
        self.restudy(LEVELS - 1);
    }

    /// The tree gets the dictionary that was tried, which saves so much, in percent, with the
    /// blocks that are chosen for the last level.
    pub fn adopt_trial(&mut self, saves: f64) {
        let Some(trial) = self.trial.take() else { return };
        let level = &mut self.levels[LEVELS - 1];
        level.sizes = Some(trial.without.or(&trial.with, [true, true, false]));
        level.costs = trial.costs.or(level.costs);
        if let Some(dictionary) = trial.held.upgrade() {
            self.has_dictionary(TreeDictionary::with(&dictionary), (saves, self.tried.1));
        }
    }

    /// What codecs do to the data of each level.
    pub fn costs(&self) -> [Option<Costs>; LEVELS] {
        self.levels.map(|level| level.costs)
    }

    /// What has been done with each level each second at the last look.
    pub fn loads(&self) -> [LevelLoad; LEVELS] {
        self.levels.map(|level| level.load)
    }

    /// Looks at what has been done with each level each second, `read` having been read in the
    /// `seconds` since the last look. Answers whether that is anything, or was then.
    pub fn look(&mut self, read: &[LevelReads; LEVELS], seconds: f64) -> bool {
        let before = self.loads();
        let share = seconds / (seconds + LEVEL_SECONDS);
        for (level, read) in self.levels.iter_mut().zip(read) {
            let written = std::mem::take(&mut level.compressed) as f64 / seconds;
            let blend = |old: f64, new: f64| {
                let mean = old + share * (new - old);
                // What has not been done for minutes has not been done.
                if mean < 1.0 { 0.0 } else { mean }
            };
            level.load.written = blend(level.load.written, written);
            level.load.read = blend(level.load.read, read.bytes / seconds);
            level.apart += share * (read.apart / seconds - level.apart);
            if level.load.read == 0.0 {
                level.apart = 0.0;
            }
        }
        let is_any = |loads: &[LevelLoad]| loads.iter().any(|load| load.written + load.read > 0.0);
        is_any(&before) || is_any(&self.loads())
    }
}

#[cfg(test)]
#[path = "learned_tests.rs"]
mod tests;
