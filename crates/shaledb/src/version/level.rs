//! One level of a tree: its tables, in the order in which they are searched.
//!
//! Level 0 holds tables whose key ranges overlap, newest first. Every other level is one run:
//! tables in key order whose key ranges are disjoint. A read looks for its table in an array of
//! numbers, eight bytes for each table, before it touches any table: the heads of the tables'
//! largest keys, behind the prefix that all keys of the level's tables may have in common.

use super::catalog::{overlap, sort_level};
use super::edit::Damage;
use crate::base::config::LEVELS;
use crate::base::key::{SeqNo, common_prefix, head};
use crate::table::Table;
use crate::table::meta::TableMeta;
use std::ops::Range;
use std::sync::Arc;

/// One level of a version; never changed once built. Aligned for the count of references, as
/// [`crate::state::TreeState`].
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub struct Level {
    number: usize,
    tables: Vec<Arc<Table>>,
    /// What the largest keys of the first and last table, hence of all, start with.
    prefix: Vec<u8>,
    /// The head of each table's largest key behind the prefix.
    heads: Vec<u64>,
    bytes: u64,
    raw_bytes: u64,
    max_seq: SeqNo,
}

impl Level {
    /// The level with this number and these tables, in any order. The error says which tables
    /// overlap.
    pub fn new(number: usize, mut tables: Vec<Arc<Table>>) -> Result<Level, Damage> {
        tables.shrink_to_fit();
        let bytes = tables.iter().map(|table| table.meta.file_bytes).sum();
        let raw_bytes = |table: &Arc<Table>| table.meta.raw_bytes;
        let raw_bytes = tables.iter().map(raw_bytes).fold(0, u64::saturating_add);
        let max_seq = tables.iter().map(|table| table.meta.max_seq).max().unwrap_or(0);
        let mut level = Level { number, tables, bytes, raw_bytes, max_seq, ..Level::default() };
        sort_level(number, &mut level.tables, |table| &table.meta);
        assert!(number < LEVELS);
        if number == 0 {
            return Ok(level);
        }
        if let Some([a, b]) = overlap(&level.tables, |table| &table.meta) {
            let (a, b) = (a.id, b.id);
            return Err(format!(
                "tables {a} and {b} of level {number} have overlapping key ranges"
            ));
        }
        if let (Some(first), Some(last)) = (level.tables.first(), level.tables.last()) {
            let (first, last) = (&first.meta.largest, &last.meta.largest);
            level.prefix = first[..common_prefix(first, last)].to_vec();
        }
        let skip = level.prefix.len();
        level.heads = level.tables.iter().map(|table| head(&table.meta.largest[skip..])).collect();
        assert_eq!(level.heads.len(), level.tables.len());
        assert!(level.heads.is_sorted(), "largest keys ascend");
        Ok(level)
    }

    /// The tables in search order.
    #[inline]
    pub fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// How many tables there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether there is no table.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The number of the newest write in any table; 0 if there is none.
    #[inline]
    pub fn max_seq(&self) -> SeqNo {
        self.max_seq
    }

    /// The bytes of all files.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes of all data blocks before compression.
    #[inline]
    pub fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    /// The table whose key range has `key` in it. Not for level 0.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Option<&Arc<Table>> {
        let table = self.tables.get(self.position(key))?;
        debug_assert!(!table.meta.is_before(key));
        (table.meta.smallest.as_slice() <= key).then_some(table)
    }

    /// The index of the first table that does not lie before `key`; the number of tables if all do.
    /// Not for level 0.
    #[inline]
    pub fn position(&self, key: &[u8]) -> usize {
        debug_assert!(self.number > 0);
        // Comparing with an empty vector is surprisingly slow (its pointer points nowhere).
        let suffix = if self.prefix.is_empty() {
            key
        } else if let Some(suffix) = key.strip_prefix(self.prefix.as_slice()) {
            suffix
        } else {
            return if key < self.prefix.as_slice() { 0 } else { self.tables.len() };
        };
        let wanted = head(suffix);
        let from = self.heads.partition_point(|&head| head < wanted);
        let equal = self.heads[from..].partition_point(|&head| head == wanted);
        // For equal heads the keys decide; mostly there is one such table, or none.
        let at = from
            + self.tables[from..from + equal].partition_point(|table| table.meta.is_before(key));
        debug_assert!(self.tables[..at].last().is_none_or(|table| table.meta.is_before(key)));
        debug_assert!(self.tables.get(at).is_none_or(|table| !table.meta.is_before(key)));
        at
    }

    /// The indexes of the tables that may have keys from `low` to `high` (included; `None`: no
    /// bound): all of level 0, and those that overlap the range in every other level.
    pub fn overlapping(&self, low: &[u8], high: Option<&[u8]>) -> Range<usize> {
        if self.number == 0 {
            return 0..self.tables.len();
        }
        let from = self.position(low);
        let to = high.map_or(self.tables.len(), |high| self.beginning_up_to(high));
        from..to.max(from)
    }

    /// The indexes of the tables that may have keys from `lower` up to (not including) `upper`
    /// (`None`: no bound). Not for level 0.
    pub fn meeting(&self, lower: &[u8], upper: Option<&[u8]>) -> Range<usize> {
        let from = self.position(lower);
        let to = upper.map_or(self.tables.len(), |upper| self.beginning(upper, |key| key < upper));
        from..to.max(from)
    }

    /// How many tables have a first key at or before `key`. Not for level 0.
    pub fn beginning_up_to(&self, key: &[u8]) -> usize {
        self.beginning(key, |smallest| smallest <= key)
    }

    /// How many tables begin where `counts` says, which is so of what is before `key`, and not of
    /// what is after it.
    fn beginning(&self, key: &[u8], counts: impl Fn(&[u8]) -> bool) -> usize {
        let at = self.position(key);
        // Tables do not overlap: those before this one begin before `key`, those after it after.
        let this = self.tables.get(at).is_some_and(|table| counts(&table.meta.smallest));
        let count = at + usize::from(this);
        debug_assert!(self.tables[..count].last().is_none_or(|table| counts(&table.meta.smallest)));
        debug_assert!(self.tables.get(count).is_none_or(|table| !counts(&table.meta.smallest)));
        count
    }

    /// How many data blocks there are, and their bytes before compression.
    pub fn blocks(&self) -> (u64, u64) {
        let add =
            |(blocks, bytes), meta: &Arc<TableMeta>| (blocks + meta.blocks, bytes + meta.raw_bytes);
        self.metas().fold((0, 0), add)
    }

    /// The descriptions of the tables, in search order.
    pub fn metas(&self) -> impl ExactSizeIterator<Item = &Arc<TableMeta>> {
        self.tables.iter().map(|table| &table.meta)
    }
}

#[cfg(test)]
#[path = "level_tests.rs"]
mod tests;
