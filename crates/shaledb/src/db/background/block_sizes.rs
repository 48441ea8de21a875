//! The size of blocks where that is left to the engine: what each size does to the data is measured
//! on tables that are written, or on one that is there, `compaction/policy/block_size` chooses, and
//! the choices are noted with the trees.

use crate::base::config::{Codec, LEVELS};
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering::Relaxed;
use crate::compaction::policy::LAST;
use crate::compaction::policy::auto::{LevelLoad, Price};
use crate::compaction::policy::block_size::{self, LevelBlocks, SizeCosts};
use crate::compaction::policy::candidates::Way;
use crate::compaction::policy::sizes::{BlockSizes, ChosenSizes, SIZES, is_other, size_of};
use crate::db::core::{Core, Learned, TreeCore};
use crate::table::compress::Dictionary;
use crate::table::meta::TableMeta;
use crate::table::write::HeldOut;
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
        let dictionary = match dictionary {
            TableDictionary::Given(given) => Some(given),
            _ => probed.dictionary.as_ref(),
        };
        self.measure_sizes(meta, codec, dictionary.map(|own| &**own), &probed.blocks)
    }

    fn measure_sizes(
        &self,
        meta: &TableMeta,
        codec: Codec,
        dictionary: Option<&Dictionary>,
        pieces: &[Vec<u8>],
    ) -> Option<SizeCosts> {
        let way = Way { codec, dictionary: dictionary.is_some() };
        let HeldOut { learnt, measured } = HeldOut::of(pieces.iter().map(Vec::as_slice));
        // What a dictionary was made of does not tell what it does to other blocks; and a quarter
        // of them tells enough, which high levels of zstd take long for.
        let few = measured.iter().map(|piece| piece.len()).sum::<usize>() < MEASURED_BYTES_MIN;
        let pieces = if few && !way.dictionary { [learnt, measured].concat() } else { measured };
        let each = |bytes: u64| bytes as f64 / meta.entries.max(1) as f64;
        let row = (each(meta.raw_bytes), each(meta.key_bytes));
        SizeCosts::measure(&pieces, way, dictionary, row, &*self.env.clock)
    }

    /// The same by a table that is there: after an open nothing is known of a level that is only
    /// read. What cannot be read is found out by those who need it.
    fn look_at_sizes(&self, tree: &TreeCore, level: usize) -> Option<SizeCosts> {
        let version = Arc::clone(&tree.state.load().version);
        let tables = version.levels[level].tables();
        let table = tables.iter().max_by_key(|table| table.meta.raw_bytes)?;
        let pieces = table.pieces(PIECES, SIZES[SIZES.len() - 1] as usize).ok()?;
        let dictionary = table.dictionary().ok().flatten();
        let codec = table.meta.codec.unwrap_or(self.table_options(tree, level).codec);
        // The dictionary is measured on what it was made of, maybe: that is as good for all sizes.
        self.measure_sizes(&table.meta, codec, dictionary.as_deref(), &pieces)
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
        for (level, _) in loads.iter().enumerate().filter(|(_, load)| load.read > 0.0) {
            if !tree.levels.lock().learned.is_unknown_of_sizes(level)
                || tree.state.load().version.levels[level].blocks().1 < LEVEL_BYTES_MIN
            {
                continue;
            }
            tree.levels.lock().learned.asks_sizes(level);
            if let Some(sizes) = self.look_at_sizes(tree, level) {
                tree.levels.lock().learned.studied_sizes(level, sizes);
            }
        }
        // Other threads that choose wait, so that none undoes a decision by what was before it.
        let mut counters = tree.levels.lock();
        let state = tree.state.load();
        let before = tree.level_codecs().blocks;
        let mut levels = level_blocks(&state.version, &counters.learned, (loads, &before));
        let losses = levels[LAST].losses(price).map(|nanos| nanos * seconds);
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
        if sizes != before.chosen {
            tree.chosen_sizes.store(sizes.pack(), Relaxed);
        }
        drop(counters);
        if sizes != before.chosen || begins {
            tracing::debug!(tree = tree.name, ?sizes, begins, "sizes of blocks chosen");
        }
        sizes != before.chosen || begins
    }
}

/// Whether nothing is done with a tree, and nothing is to be chosen for it: of thousands of trees
/// most are so.
fn needs_nothing(tree: &TreeCore, loads: &[LevelLoad; LEVELS]) -> bool {
    let is_idle = loads.iter().all(|load| load.read + load.written <= 0.0);
    let chosen = ChosenSizes::unpack(tree.chosen_sizes.load(Relaxed));
    let known = || tree.levels.lock().learned.blocks(LAST).0.is_some();
    is_idle && chosen.rewrites().is_none() && (chosen.has_last() || !known())
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
