//! The size of blocks where that is left to the engine: what each size does to the data is measured
//! on tables that are written, or on one that is there, `compaction/policy/block_size` chooses, and
//! the choices are noted with the trees.

use crate::base::config::{Codec, LEVELS};
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering::{Relaxed, Release};
use crate::compaction::policy::LAST;
use crate::compaction::policy::auto::{LevelLoad, Price};
use crate::compaction::policy::block_size::{self, LevelBlocks, SizeCosts};
use crate::compaction::policy::candidates::{USUAL, index_of};
use crate::compaction::policy::chosen::{Chosen, LevelCodecs};
use crate::compaction::policy::sizes::{BlockSizes, ChosenSizes, SIZES, is_other, size_of};
use crate::db::core::{Core, Learned, TreeCore, Trial};
use crate::table::compress::Dictionary;
use crate::table::meta::TableMeta;
use crate::table::write::{self, HeldOut};
use crate::table::{Probed, TableDictionary};
use crate::version::Version;

/// How many pieces of a table that is there are looked at.
const PIECES: usize = 16;
/// With less for measuring, the other pieces are taken as well.
const MEASURED_BYTES_MIN: usize = 48 << 10;
/// Levels of less, in bytes before compression, are not looked at for their reads alone.
const LEVEL_BYTES_MIN: u64 = 4 << 20;

impl Core {
    /// Finds what blocks of each size would do to the data of a level, by pieces of a table of it
    /// that was written with this codec and dictionary.
    pub fn study_sizes(
        &self,
        tree: &TreeCore,
        (meta, codec, dictionary): (&TableMeta, Codec, &TableDictionary),
        probed: &Probed,
    ) -> Option<SizeCosts> {
        if !tree.chooses_sizes() {
            return None;
        }
        // What follows has the tree's, which this one may have been too early for.
        let dictionary = match (self.tree_dictionary(tree), dictionary) {
            (Some(known), _) => known,
            (None, TableDictionary::Given(given)) => Some(Arc::clone(given)),
            (None, _) => probed.dictionary.clone(),
        };
        self.measure_sizes(tree, (meta, codec, dictionary.as_deref()), &probed.blocks)
    }

    fn measure_sizes(
        &self,
        tree: &TreeCore,
        (meta, codec, dictionary): (&TableMeta, Codec, Option<&Dictionary>),
        pieces: &[Vec<u8>],
    ) -> Option<SizeCosts> {
        let dictionary = dictionary.filter(|_| matches!(codec, Codec::Zstd(_)));
        let HeldOut { learnt, measured } = HeldOut::of(pieces.iter().map(Vec::as_slice));
        // What a dictionary was made of does not tell what it does to other blocks; and a quarter
        // of them tells enough, which high levels of zstd take long for.
        let few = measured.iter().map(|piece| piece.len()).sum::<usize>() < MEASURED_BYTES_MIN;
        let pieces =
            if few && dictionary.is_none() { [learnt, measured].concat() } else { measured };
        let Some(own) = dictionary else {
            return self.measure_with((meta, codec, None), &pieces);
        };
        // Blocks of another size may be better without the dictionary of these.
        let raw_bytes = self.dictionary_room(tree, meta.raw_bytes).0;
        let (without, with) = self.measure_both((meta, codec, own), &pieces, raw_bytes)?;
        let is_large = tree.level_codecs().blocks.of(LAST).0 >= SIZES[SIZES.len() - 1];
        Some(without.or(&with, [true, true, is_large]))
    }

    /// What blocks of each size are without a dictionary and with it, of which a table of so many
    /// bytes has a copy.
    pub(super) fn measure_both(
        &self,
        (meta, codec, own): (&TableMeta, Codec, &Dictionary),
        pieces: &[&[u8]],
        raw_bytes: u64,
    ) -> Option<(SizeCosts, SizeCosts)> {
        let without = self.measure_with((meta, codec, None), pieces)?;
        let with = self.measure_with((meta, codec, Some(own)), pieces)?;
        Some((without, with.plus(write::dictionary_bytes(own) as f64 / raw_bytes as f64)))
    }

    fn measure_with(
        &self,
        (meta, codec, dictionary): (&TableMeta, Codec, Option<&Dictionary>),
        pieces: &[&[u8]],
    ) -> Option<SizeCosts> {
        let each = |bytes: u64| bytes as f64 / meta.entries.max(1) as f64;
        let row = (each(meta.raw_bytes), each(meta.key_bytes));
        SizeCosts::measure(pieces, codec, dictionary, row, &*self.env.clock)
    }

    /// The same by a table that is there: after an open nothing is known of a level that is only
    /// read. What cannot be read is found out by those who need it.
    /// With the last level it is looked as well what a dictionary would do.
    fn look_at_sizes(&self, tree: &TreeCore, level: usize) -> Option<SizeCosts> {
        let version = Arc::clone(&tree.state.load().version);
        let tables = version.levels[level].tables();
        let table = tables.iter().max_by_key(|table| table.meta.raw_bytes)?;
        let pieces = table.pieces(PIECES, SIZES[SIZES.len() - 1] as usize).ok()?;
        let known = self.tree_dictionary(tree);
        let dictionary = known.unwrap_or_else(|| table.dictionary().ok().flatten());
        let codec = table.meta.codec.unwrap_or(self.table_options(tree, level).codec);
        if level == LAST {
            self.try_small_blocks(tree, &table.meta, &pieces, false);
        }
        // The dictionary is measured on what it was made of, maybe: so it is taken for better than
        // it is, by about as much for all sizes.
        self.measure_sizes(tree, (&table.meta, codec, dictionary.as_deref()), &pieces)
    }

    /// Looks at levels that are read and of which nothing is known, once.
    fn look_at_read_levels(&self, tree: &TreeCore, loads: &[LevelLoad; LEVELS]) {
        for (level, _) in loads.iter().enumerate().filter(|(_, load)| load.read > 0.0) {
            if !tree.levels.lock().learned.is_unknown_of_sizes(level)
                || tree.state.load().version.levels[level].blocks().1 < LEVEL_BYTES_MIN
            {
                continue;
            }
            let now = self.env.clock.now_nanos();
            if !self.codec_price.may_look(now) {
                continue;
            }
            tree.levels.lock().learned.asks_sizes(level);
            if let Some(sizes) = self.look_at_sizes(tree, level) {
                tree.levels.lock().learned.studied_sizes(level, sizes);
            }
            self.codec_price.has_looked(now, self.env.clock.now_nanos());
        }
    }

    /// Chooses anew how large blocks of a tree's levels are, by what is done with these each
    /// second, for the `seconds` since that was done last. Whether another choice has come of it.
    pub fn choose_block_sizes(
        &self,
        tree: &TreeCore,
        loads: &[LevelLoad; LEVELS],
        (price, seconds): (&Price, f64),
    ) -> bool {
        if !tree.chooses_sizes() || needs_nothing(tree, loads) {
            return false;
        }
        self.look_at_read_levels(tree, loads);
        // Other threads that choose wait, so that none undoes a decision by what was before it.
        let mut counters = tree.levels.lock();
        let state = tree.state.load();
        let codecs = tree.level_codecs();
        let before = codecs.blocks;
        if self.pick_space().is_tight {
            // Blocks are written large meanwhile, which is not what the last level was to be
            // rewritten for.
            let stays = before.chosen.without_rewriting();
            tree.chosen_sizes.store(stays.pack(), Release);
            return stays != before.chosen;
        }
        let mut levels = level_blocks(&state.version, &counters.learned, (loads, &before));
        // A dictionary may make smaller blocks worth it. To compress with it takes twice as long,
        // so while nobody reads it has to wait until there is time.
        let is_zstd = matches!(codecs.of(LAST, LAST).codec, Codec::Zstd(1..));
        let may = levels[LAST].costs.is_some() && is_zstd;
        let may = may && (price.window.at_rest || levels[LAST].load.read > 0.0);
        let trial = counters.learned.trial().filter(|_| may && before.of(LAST).0 > SIZES[0]);
        if let Some((trial, _)) = &trial {
            levels[LAST].costs = Some(trial.without.or(&trial.with, [false; SIZES.len()]));
        }
        let losses = levels[LAST].losses(price).map(|nanos| nanos * seconds);
        levels[LAST].decode_nanos = decode_nanos(&codecs, &counters.learned, &levels[LAST]);
        let trial = trial.map(|(trial, own)| (trial.clone(), own));
        let lost = counters.learned.lose(losses);
        let last = &mut levels[LAST];
        let rewritten = before.chosen.rewrites().filter(|_| last.pending == 0);
        let done = rewritten.and_then(|bytes| SIZES.iter().position(|size| *size == bytes));
        last.left = counters.learned.rewritten(last.others, done);
        let (sizes, begins) = block_size::choose(price, &levels, &before.chosen, &lost);
        if begins {
            counters.learned.forget_losses();
            tree.rewrite_before.store(self.next_file.load(Relaxed), Relaxed);
        }
        if (BlockSizes { chosen: sizes, ..before }).of(LAST).0 != before.of(LAST).0 {
            counters.learned.resized();
        }
        let pays = |(trial, own): (Trial, Arc<Dictionary>)| {
            Some((trial.without.saves(&trial.with, &sizes)?, own))
        };
        let adopted = trial.and_then(pays);
        if let Some((saves, _)) = &adopted {
            // Before the size: no table shall have small blocks without it.
            counters.learned.adopt_trial(*saves);
            adopt_in_codecs(tree);
        }
        tree.chosen_sizes.store(sizes.pack(), Release);
        drop(counters);
        if let Some((saves, dictionary)) = &adopted {
            self.tables.dictionaries.keep(dictionary);
            tracing::debug!(tree = tree.name, saves, "a dictionary for small blocks");
        }
        if sizes != before.chosen || begins {
            tracing::debug!(tree = tree.name, ?sizes, begins, "sizes of blocks chosen");
        }
        sizes != before.chosen || begins
    }
}

/// Has the codec that was chosen for the last level use the tree's dictionary.
fn adopt_in_codecs(tree: &TreeCore) {
    let mut chosen = Chosen::unpack(tree.chosen.load(Relaxed));
    let Some(last) = &mut chosen.0[LAST] else { return };
    // Not all levels of zstd are chosen from with one.
    let is_one = index_of(last.codec, true).is_some();
    last.codec = if is_one { last.codec } else { Codec::Zstd(3) };
    last.dictionary = true;
    tree.chosen.store(chosen.pack(), Relaxed);
}

/// Whether nothing is done with a tree, and nothing is to be chosen for it: of thousands of trees
/// most are so.
fn needs_nothing(tree: &TreeCore, loads: &[LevelLoad; LEVELS]) -> bool {
    let is_idle = loads.iter().all(|load| load.read + load.written <= 0.0);
    let chosen = ChosenSizes::unpack(tree.chosen_sizes.load(Relaxed));
    let known = || tree.levels.lock().learned.blocks(LAST).0.is_some();
    is_idle && chosen.rewrites().is_none() && (chosen.has_last() || !known())
}

/// What it takes to decode a byte of the last level as it is written now, in nanoseconds.
fn decode_nanos(codecs: &LevelCodecs, learned: &Learned, last: &LevelBlocks) -> f64 {
    match &last.costs {
        // Where the codec is set it is the one that sizes were measured with, and others are not.
        Some(SizeCosts(costs)) if !codecs.set.has_auto() => costs[SIZES.len() - 1].decompress,
        _ => {
            let costs = learned.costs()[LAST].unwrap_or(USUAL);
            costs.decompress_nanos(codecs.of(LAST, LAST).codec)
        }
    }
}

/// What is known of the levels of a tree.
fn level_blocks(
    version: &Version,
    learned: &Learned,
    (loads, sizes): (&[LevelLoad; LEVELS], &BlockSizes),
) -> [LevelBlocks; LEVELS] {
    std::array::from_fn(|level| {
        let (costs, apart) = learned.blocks(level);
        let mut known = LevelBlocks { costs, load: loads[level], apart, ..LevelBlocks::default() };
        let (mut blocks, mut rows, mut bytes) = (0, 0, 0);
        // Of what is not known nothing is chosen.
        for meta in version.levels[level].metas().filter(|_| costs.is_some()) {
            known.tables[size_of(meta)] += meta.raw_bytes;
            for (at, others) in known.others.iter_mut().enumerate() {
                *others += if is_other(meta, at) { meta.raw_bytes } else { 0 };
            }
            if level == LAST && sizes.wants_rewrite(meta) {
                known.pending += meta.raw_bytes;
            }
            (blocks, rows, bytes) =
                (blocks + meta.blocks, rows + meta.entries, bytes + meta.raw_bytes);
        }
        known.block_bytes = bytes as f64 / blocks.max(1) as f64;
        known.row_bytes = bytes as f64 / rows.max(1) as f64;
        known
    })
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "block_sizes_tests.rs"]
mod tests;
