//! The dictionary of each tree: found in its tables, decided by blocks of those that are written,
//! and given to those that follow.
//!
//! Each table has a copy, so that a file goes on being all that is needed to read it
//! (docs/decisions/0009-dictionaries.md).

use crate::base::config::Codec;
use crate::base::sync::Arc;
use crate::compaction::policy::candidates::{Costs, USUAL};
use crate::compaction::policy::chosen::Choice;
use crate::db::core::{Core, TreeCore, TreeDictionary};
use crate::table::compress::Dictionary;
use crate::table::write::{self, Used, Verdict};
use crate::table::{Probed, TableDictionary};

/// The level of zstd at which dictionaries are judged where the engine chooses the codec.
const AUTO_LEVEL: i8 = 3;
/// That no dictionary pays in a smaller table does not tell that none pays in larger ones, of which
/// its own bytes are a smaller share.
const NONE_BYTES_MIN: u64 = 1 << 20;
/// How many tables are asked for the tree's dictionary.
const TABLES_ASKED: usize = 3;
/// So many tables show how large tables are here.
const TABLES_TELL: usize = 16;
/// With less memory nothing is searched for, which takes about 10 MB.
const SEARCH_MEMORY_MIN: u64 = 256 << 20;
/// About how many bytes of blocks a byte of a table stands for.
const RATIO: u64 = 3;

impl TreeCore {
    /// The level of zstd at which dictionaries are judged; `None` if the tree is to have none.
    pub fn dictionary_level(&self) -> Option<i8> {
        let codecs = &self.config.codecs;
        let levels = [codecs.bottommost, codecs.middle, codecs.upper].map(|codec| match codec {
            Codec::Zstd(level) => Some(level),
            Codec::Auto => Some(AUTO_LEVEL),
            _ => None,
        });
        // Of larger blocks too little is known, and too little is to be won.
        let small = self.config.block_bytes as usize <= write::PROBED_BLOCK_BYTES;
        levels.into_iter().flatten().next().filter(|_| self.config.dictionary && small)
    }
}

impl Core {
    /// Decides on the tree's dictionary, and finds what codecs do, by blocks of a table of a level.
    pub fn study(&self, tree: &TreeCore, level: usize, probed: &Probed) -> Option<Costs> {
        let blocks: Vec<&[u8]> = probed.blocks.iter().map(Vec::as_slice).collect();
        let dictionary = self.renew_dictionary(tree, level, probed, &blocks);
        if !tree.config.codecs.has_auto() {
            // Nothing is chosen by them.
            return Some(USUAL);
        }
        let measured = blocks.iter().enumerate().filter(|(at, _)| write::is_measured(*at));
        let measured: Vec<&[u8]> = measured.map(|(_, block)| *block).collect();
        // What a dictionary was made of does not tell what it does to other blocks.
        let costs = Costs::measure(&measured, dictionary.as_deref(), &*self.env.clock);
        costs.or_else(|| Costs::measure(&blocks, None, &*self.env.clock))
    }

    /// The tree's dictionary from now on, by some blocks of a table.
    fn renew_dictionary(
        &self,
        tree: &TreeCore,
        level: usize,
        probed: &Probed,
        blocks: &[&[u8]],
    ) -> Option<Arc<Dictionary>> {
        let raw_bytes = probed.raw_bytes;
        let zstd_level = tree.dictionary_level()?;
        let mut known = self.tree_dictionary(tree);
        if let (None, Some(own)) = (&known, &probed.dictionary) {
            // What a table has found for itself serves those that follow: blocks can be reused.
            let own = self.tables.dictionaries.share(Arc::clone(own));
            let made_for = raw_bytes.min(write::OWN_BYTES);
            tree.levels.lock().learned.found_dictionary(self.with(&own), made_for);
            known = self.tree_dictionary(tree);
        }
        let used = known.clone().flatten();
        // Most of the data comes to be in tables of about the full size, or in one table.
        let shape = tree.state.load().version.shape();
        let tables: Vec<u64> = shape.levels.iter().flatten().map(|t| t.raw_bytes).collect();
        let all = tables.iter().sum::<u64>() + raw_bytes;
        let largest = tables.iter().fold(raw_bytes, |most, bytes| most.max(*bytes));
        let full =
            if tables.len() < TABLES_TELL { RATIO * self.settings.table_bytes } else { largest };
        let raw_bytes = all.min(full).max(raw_bytes);
        let saved = tree.levels.lock().learned.dictionary_saved();
        let before = Used { dictionary: used.clone(), saved };
        // Blocks of level 0 have sequence numbers, so they would go by others than the rest.
        let is_decided = known.is_some() && !write::was_small(saved.1, raw_bytes);
        if level == 0 && is_decided {
            return used;
        }
        let may_search = self.tables.memory.total() >= SEARCH_MEMORY_MIN;
        let size = (raw_bytes, may_search);
        let Some(verdict) = write::decide(blocks, zstd_level, size, &before) else {
            return used;
        };
        if verdict.dictionary.is_none() && used.is_none() && raw_bytes < NONE_BYTES_MIN {
            return None;
        }
        self.note_dictionary(tree, &verdict, raw_bytes)
    }

    /// That a tree has this dictionary, which is kept ready.
    fn with(&self, dictionary: &Arc<Dictionary>) -> TreeDictionary {
        self.tables.dictionaries.keep(dictionary);
        TreeDictionary::With(Arc::downgrade(dictionary))
    }

    /// Notes which dictionary a tree is to have.
    fn note_dictionary(
        &self,
        tree: &TreeCore,
        verdict: &Verdict,
        raw_bytes: u64,
    ) -> Option<Arc<Dictionary>> {
        let shared = verdict.dictionary.clone().map(|own| self.tables.dictionaries.share(own));
        let known = shared.as_ref().map_or(TreeDictionary::Without, |own| self.with(own));
        let saves = (verdict.saves_percent, raw_bytes);
        let changed = tree.levels.lock().learned.has_dictionary(known, saves);
        if changed {
            let bytes = shared.as_ref().map(|dictionary| dictionary.bytes().len());
            let saves = verdict.saves_percent;
            tracing::debug!(tree = tree.name, ?bytes, saves, "the tree's dictionary");
        }
        shared
    }

    /// The dictionary of a tree's tables to come. The outer `None`: that is not known yet.
    fn tree_dictionary(&self, tree: &TreeCore) -> Option<Option<Arc<Dictionary>>> {
        let known = tree.levels.lock().learned.dictionary();
        match known {
            TreeDictionary::Without => return Some(None),
            TreeDictionary::Unknown => return None,
            TreeDictionary::With(dictionary) => {
                if let Some(dictionary) = dictionary.upgrade() {
                    self.tables.dictionaries.keep(&dictionary);
                    return Some(Some(dictionary));
                }
            }
            TreeDictionary::NotLookedFor => {}
        }
        // The largest tables have it, if any has.
        let version = Arc::clone(&tree.state.load().version);
        let mut tables: Vec<_> = version.levels.iter().flat_map(|l| l.tables()).collect();
        tables.sort_by_key(|table| std::cmp::Reverse((table.meta.raw_bytes, table.meta.id)));
        let asked = || tables.iter().take(TABLES_ASKED);
        // What cannot be read is found out by those who need it.
        let found = asked().find_map(|table| table.dictionary().ok().flatten());
        let known = found.as_ref().map_or(TreeDictionary::Unknown, |own| self.with(own));
        let raw_bytes = tables.first().map_or(0, |table| table.meta.raw_bytes);
        tree.levels.lock().learned.found_dictionary(known, raw_bytes);
        found.map(Some)
    }

    /// The dictionary of a table to come of a tree.
    pub fn table_dictionary(&self, tree: &TreeCore, choice: Choice) -> TableDictionary {
        let may = tree.config.dictionary && choice.dictionary;
        if !may || !matches!(choice.codec, Codec::Zstd(_)) {
            return TableDictionary::None;
        }
        match self.tree_dictionary(tree) {
            Some(Some(dictionary)) => TableDictionary::Given(dictionary),
            Some(None) => TableDictionary::None,
            None => TableDictionary::OfTable,
        }
    }
}
