//! The dictionary of each tree: found in its tables, decided by blocks of those that are written,
//! and given to those that follow.
//!
//! Each table has a copy, so that a file goes on being all that is needed to read it
//! (docs/decisions/0009-dictionaries.md).

use crate::base::config::Codec;
use crate::base::sync::Arc;
use crate::compaction::policy::LAST;
use crate::compaction::policy::candidates::{Costs, USUAL};
use crate::compaction::policy::chosen::Choice;
use crate::compaction::policy::sizes::SIZES;
use crate::db::core::{Core, TreeCore, TreeDictionary};
use crate::table::compress::Dictionary;
use crate::table::write::{self, HeldOut, Least, Used, Verdict};
use crate::table::{Probed, Table, TableDictionary};
use std::cmp::Reverse;

/// The level of zstd at which dictionaries are judged where the engine chooses the codec.
const AUTO_LEVEL: i8 = 3;
/// That no dictionary pays in a smaller table does not tell that none pays in larger ones, of which
/// its own bytes are a smaller share.
const NONE_BYTES_MIN: u64 = 1 << 20;
/// How many tables are asked for the tree's dictionary.
const TABLES_ASKED: usize = 3;
/// And how many of the newest ones, where it is known which one that is.
const NEWEST_ASKED: usize = 16;
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
        let held = HeldOut::of(probed.blocks.iter().map(Vec::as_slice));
        // Near the limit on space blocks are larger for a while.
        let sizes = tree.level_codecs().blocks;
        // Where the engine chooses sizes, what was kept are pieces of several blocks.
        let cut = |level: usize| match tree.chooses_sizes() {
            true => held.cut(sizes.of(level).0 as usize),
            false => held.clone(),
        };
        // Most of the data is in the last level.
        let is_small = tree.chooses_sizes() && sizes.of(LAST).0 < SIZES[SIZES.len() - 1];
        let least = if is_small { Least::OF_SMALL } else { Least::USUAL };
        let dictionary = self.renew_dictionary(tree, level, probed, (&cut(LAST), least));
        if !tree.config.codecs.has_auto() {
            // Nothing is chosen by them.
            return Some(USUAL);
        }
        let HeldOut { learnt, measured } = cut(level);
        // What a dictionary was made of does not tell what it does to other blocks.
        let costs = Costs::measure(&measured, dictionary.as_deref(), &*self.env.clock);
        let all = || [learnt, measured].concat();
        let costs = costs.or_else(|| Costs::measure(&all(), None, &*self.env.clock));
        // Else the next table is asked: the tree has got another one meanwhile.
        let id = |own: &Option<Arc<Dictionary>>| own.as_ref().map(|own| own.id());
        let known = tree.levels.lock().learned.dictionary().id();
        let is_still = tree.dictionary_level().is_none() || known == id(&dictionary);
        costs.filter(|_| is_still)
    }

    /// The tree's dictionary from now on, by some blocks of a table.
    fn renew_dictionary(
        &self,
        tree: &TreeCore,
        level: usize,
        probed: &Probed,
        (blocks, least): (&HeldOut<'_>, Least),
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
        let (raw_bytes, may_search) = self.dictionary_room(tree, raw_bytes);
        let saved = tree.levels.lock().learned.dictionary_saved();
        let before = Used { dictionary: used.clone(), saved, least };
        // Blocks of level 0 have sequence numbers, so they would go by others than the rest.
        let is_decided = known.is_some() && !write::was_small(saved.1, raw_bytes);
        if level == 0 && is_decided {
            return used;
        }
        let size = (raw_bytes, may_search);
        let Some(verdict) = write::decide(blocks, zstd_level, size, &before) else {
            return used;
        };
        if verdict.dictionary.is_none() && used.is_none() && raw_bytes < NONE_BYTES_MIN {
            return None;
        }
        let judged = before.dictionary.map(|own| own.id());
        self.note_dictionary(tree, &verdict, (raw_bytes, judged))
    }

    /// How large a table it is that a dictionary is made for, by one of `raw_bytes` that was
    /// written; and whether there is memory to search for one.
    pub(super) fn dictionary_room(&self, tree: &TreeCore, raw_bytes: u64) -> (u64, bool) {
        // Most of the data comes to be in tables of about the full size, or in one table.
        let shape = tree.state.load().version.shape();
        let tables: Vec<u64> = shape.levels.iter().flatten().map(|t| t.raw_bytes).collect();
        let all = tables.iter().sum::<u64>() + raw_bytes;
        let largest = tables.iter().fold(raw_bytes, |most, bytes| most.max(*bytes));
        let full =
            if tables.len() < TABLES_TELL { RATIO * self.settings.table_bytes } else { largest };
        (all.min(full).max(raw_bytes), self.tables.memory.total() >= SEARCH_MEMORY_MIN)
    }

    /// That a tree has this dictionary, which is kept ready.
    fn with(&self, dictionary: &Arc<Dictionary>) -> TreeDictionary {
        self.tables.dictionaries.keep(dictionary);
        TreeDictionary::with(dictionary)
    }

    /// Notes which dictionary a tree is to have, by what was found of a table of so many bytes
    /// while it had the one that was `judged`. Answers with the one that it has.
    fn note_dictionary(
        &self,
        tree: &TreeCore,
        verdict: &Verdict,
        (raw_bytes, judged): (u64, Option<u32>),
    ) -> Option<Arc<Dictionary>> {
        let shared = verdict.dictionary.clone().map(|own| self.tables.dictionaries.share(own));
        let known = shared.as_ref().map_or(TreeDictionary::Without, TreeDictionary::with);
        let saves = (verdict.saves_percent, raw_bytes);
        let changed = {
            let learned = &mut tree.levels.lock().learned;
            let is_as_judged = learned.dictionary().id() == judged;
            is_as_judged.then(|| learned.has_dictionary(known, saves))
        };
        let Some(changed) = changed else {
            // Another thread has found another one meanwhile.
            return self.tree_dictionary(tree).flatten();
        };
        if let Some(own) = &shared {
            self.tables.dictionaries.keep(own);
        }
        if changed {
            let bytes = shared.as_ref().map(|dictionary| dictionary.bytes().len());
            let saves = verdict.saves_percent;
            tracing::debug!(tree = tree.name, ?bytes, saves, "the tree's dictionary");
        }
        shared
    }

    /// The dictionary of a tree's tables to come. The outer `None`: that is not known yet.
    pub(super) fn tree_dictionary(&self, tree: &TreeCore) -> Option<Option<Arc<Dictionary>>> {
        let known = tree.levels.lock().learned.dictionary();
        match &known {
            TreeDictionary::Without => return Some(None),
            TreeDictionary::Unknown => return None,
            TreeDictionary::With { held, .. } => {
                if let Some(dictionary) = held.upgrade() {
                    self.tables.dictionaries.keep(&dictionary);
                    return Some(Some(dictionary));
                }
            }
            TreeDictionary::NotLookedFor => {}
        }
        let (found, raw_bytes) = in_tables(tree, known.id());
        let known = found.as_ref().map_or(TreeDictionary::Unknown, |own| self.with(own));
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

/// The dictionary that tables of a tree have: the one of this number if any of the newest ones has
/// it, else that of the largest ones. And how large the largest table is. What cannot be read is
/// found out by those who need it.
fn in_tables(tree: &TreeCore, id: Option<u32>) -> (Option<Arc<Dictionary>>, u64) {
    let version = Arc::clone(&tree.state.load().version);
    let mut tables: Vec<_> = version.levels.iter().flat_map(|l| l.tables()).collect();
    let of = |table: &&Arc<Table>| table.dictionary().ok().flatten();
    let mut found = None;
    if let Some(id) = id {
        tables.sort_by_key(|table| Reverse(table.meta.id));
        let may_have =
            |table: &&&Arc<Table>| matches!(table.meta.codec, Some(Codec::Zstd(_)) | None);
        let newest = tables.iter().filter(may_have).take(NEWEST_ASKED);
        found = newest.filter_map(of).find(|own| own.id() == id);
    }
    tables.sort_by_key(|table| Reverse((table.meta.raw_bytes, table.meta.id)));
    let found = found.or_else(|| tables.iter().take(TABLES_ASKED).find_map(of));
    (found, tables.first().map_or(0, |table| table.meta.raw_bytes))
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::{Background, Codecs, Config, Db, Env, OpenOptions, Tree, TreeConfig};

    /// A document; most of it is as in all others.
    fn order(_: u64, noise: u64) -> String {
        format!(
            "{{\"order_number\":{noise},\"customer\":{{\"name\":\"order-{}\",\"city\":\"Berlin\"}},\
             \"state\":\"shipped by order\",\"amount\":{}}}",
            noise % 1009,
            noise % 97
        )
    }

    /// Text of another kind.
    fn letter(number: u64, noise: u64) -> String {
        format!(
            "Dear Sir or Madam, I write to you for the {number}th time, as my parcel has still not \
             come. It was sent on the {}th of this month. I remain yours faithfully, reader {noise:x}",
            noise % 28
        )
    }

    fn fill(tree: &Tree, prefix: &str, count: u64, of: fn(u64, u64) -> String) {
        for number in 0..count {
            let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let key = format!("{prefix}{noise:012x}");
            tree.put(key.as_bytes(), of(number, noise).as_bytes()).unwrap();
        }
    }

    fn learned(tree: &Tree) -> (TreeDictionary, (f64, u64)) {
        let levels = tree.inner.levels.lock();
        (levels.learned.dictionary(), levels.learned.dictionary_saved())
    }

    fn made_of(of: fn(u64, u64) -> String) -> Arc<Dictionary> {
        let rows: Vec<String> = (0..2000).map(|number| of(number, number * 7_919)).collect();
        let rows: Vec<&[u8]> = rows.iter().map(String::as_bytes).collect();
        Arc::new(Dictionary::make(&rows[..40].concat(), &rows, 3).unwrap())
    }

    #[test]
    fn a_renewed_dictionary_that_has_left_memory_is_not_replaced_by_the_one_before() {
        let codecs = Codecs::all(Codec::Zstd(3));
        let tree = TreeConfig { codecs, block_bytes: 4096, ..TreeConfig::default() };
        // So little memory that one dictionary is kept ready.
        let (memory_bytes, memtable_bytes) = (8 << 20, 1 << 20);
        let config = Config { memory_bytes, memtable_bytes, tree, ..Config::default() };
        let background = Background::Stepped;
        let options = OpenOptions { env: Env::memory(), background, read_only: false };
        let db = Db::open_in("/db", config, options).unwrap();
        let (core, tree) = (db.core(), db.tree_or_create("t").unwrap());
        fill(&tree, "a", 40_000, order);
        db.wait_idle().unwrap();
        let first = learned(&tree).0.id();
        assert!(first.is_some(), "{}", db.stats());
        let verdict = Verdict { dictionary: Some(made_of(letter)), saves_percent: 20.0 };
        core.note_dictionary(&tree.inner, &verdict, (5 << 20, first));
        drop(verdict);
        let (renewed, saved) = learned(&tree);
        fill(&tree, "b", 4_000, letter);
        tree.flush().unwrap();
        core.tables.dictionaries.keep(&made_of(order));
        let TreeDictionary::With { held, .. } = &renewed else { panic!("it has one") };
        assert_eq!(held.strong_count(), 0, "another one has taken its place");
        let largest = in_tables(&tree.inner, None).0.map(|own| own.id());
        assert_eq!(largest, first, "it is in a small table only");
        let found = core.tree_dictionary(&tree.inner).flatten().unwrap();
        assert_eq!((Some(found.id()), learned(&tree).1), (renewed.id(), saved));
    }
}
