//! A dictionary for small blocks only: while blocks are too large to gain by any, it is looked what
//! smaller ones would be with one, so that the size can be chosen by both.
//!
//! Small blocks take more space than large ones since each is compressed by itself. With a
//! dictionary they often take as much, and a look-up has a quarter to decode (decision 0028).

use crate::base::config::Codec;
use crate::base::sync::Arc;
use crate::compaction::policy::LAST;
use crate::compaction::policy::candidates::Costs;
use crate::compaction::policy::sizes::SIZES;
use crate::db::core::{Core, TreeCore, Trial};
use crate::table::compress::Dictionary;
use crate::table::meta::TableMeta;
use crate::table::write::{self, HeldOut, Least, Used};

/// Trees of less, in bytes before compression, are not looked at: what is kept of each would add
/// up.
const TREE_BYTES_MIN: u64 = 4 << 20;

impl Core {
    /// Looks for a dictionary by pieces of a table of the last level, cut to the smallest blocks,
    /// if the tree has none and its blocks are larger. To search for one takes 40 ms.
    pub fn try_small_blocks(
        &self,
        tree: &TreeCore,
        meta: &TableMeta,
        pieces: &[Vec<u8>],
        may_search: bool,
    ) {
        let found = self.trial_of(tree, meta, pieces, may_search);
        if let Some((trial, saves)) = found {
            tree.levels.lock().learned.tried(trial, saves);
        }
    }

    /// What is found, if anything is: that none pays, or one, and what it saves for a table of how
    /// many bytes.
    fn trial_of(
        &self,
        tree: &TreeCore,
        meta: &TableMeta,
        pieces: &[Vec<u8>],
        may_search: bool,
    ) -> Option<(Option<Trial>, (f64, u64))> {
        let codecs = tree.level_codecs();
        let Codec::Zstd(level @ 1..) = codecs.of(LAST, LAST).codec else { return None };
        if !tree.chooses_sizes() || tree.dictionary_level().is_none() {
            return None;
        }
        let (raw_bytes, has_memory) = self.dictionary_room(tree, meta.raw_bytes);
        let has_one = matches!(self.tree_dictionary(tree), Some(Some(_)));
        if has_one || codecs.blocks.of(LAST).0 <= SIZES[0] || raw_bytes < TREE_BYTES_MIN {
            return None;
        }
        let held = HeldOut::of(pieces.iter().map(Vec::as_slice));
        let small = held.cut(SIZES[0] as usize);
        let before = {
            let (dictionary, saved) = tree.levels.lock().learned.to_try();
            Used { dictionary, saved, least: Least::OF_SMALL }
        };
        let may_search = may_search && has_memory;
        let verdict = write::decide(&small, level, (raw_bytes, may_search), &before)?;
        if verdict.dictionary.is_none() && !may_search {
            // It was not searched for in vain.
            return Some((None, (0.0, 0)));
        }
        let id = |own: &Option<Arc<Dictionary>>| own.as_ref().map(|own| own.id());
        let is_same = id(&verdict.dictionary) == id(&before.dictionary);
        let saves = match before.saved {
            // What one saved at first is what it has to go on saving, and what another must beat.
            (most, made_for) if is_same && !write::was_small(made_for, raw_bytes) => {
                (most.max(verdict.saves_percent), made_for)
            }
            _ => (verdict.saves_percent, raw_bytes),
        };
        let Some(dictionary) = verdict.dictionary else { return Some((None, saves)) };
        let dictionary = self.tables.dictionaries.share(dictionary);
        self.tables.dictionaries.keep_tried(&dictionary);
        let with = (meta, Codec::Zstd(level), &*dictionary);
        let (without, with) = self.measure_both(with, &held.measured, raw_bytes)?;
        let costs = tree.config.codecs.has_auto();
        let clock = &*self.env.clock;
        let costs = costs.then(|| Costs::measure(&small.measured, Some(&dictionary), clock));
        let trial =
            Trial { held: Arc::downgrade(&dictionary), without, with, costs: costs.flatten() };
        tracing::debug!(
            tree = tree.name,
            saves = saves.0,
            ?trial,
            "small blocks with a dictionary"
        );
        Some((Some(trial), saves))
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "small_blocks_tests.rs"]
mod tests;
