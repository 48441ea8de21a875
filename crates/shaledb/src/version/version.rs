//! Which tables a tree has: an immutable value that readers hold while they read.

use super::catalog::check_table;
use super::edit::{Damage, TreeEdit};
use super::level::Level;
use crate::base::config::LEVELS;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::ranges::RangeDeletes;
use crate::table::Table;
use crate::table::meta::{FileId, TableMeta};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The tables of a tree, level by level.
#[derive(Debug)]
pub struct Version {
    /// The levels, [`LEVELS`] of them. Versions share the levels in which they do not differ.
    pub levels: Vec<Arc<Level>>,
    /// The range deletes of all tables, once somebody asked.
    range_deletes: OnceLock<Arc<RangeDeletes>>,
    /// Whether any table has range deletes.
    has_range_deletes: bool,
}

/// The tables of a tree, described: what the pure pickers see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The levels: level 0 newest first, the others by key.
    pub levels: Vec<Vec<Arc<TableMeta>>>,
}

impl Default for Version {
    fn default() -> Version {
        Version::new()
    }
}

impl Version {
    /// No tables.
    pub fn new() -> Version {
        let levels = (0..LEVELS).map(|_| Arc::default()).collect();
        Version::with_levels(levels)
    }

    fn with_levels(levels: Vec<Arc<Level>>) -> Version {
        assert_eq!(levels.len(), LEVELS);
        let has_range_deletes =
            levels.iter().any(|level| level.metas().any(|meta| meta.range_deletes > 0));
        let range_deletes = OnceLock::new();
        if !has_range_deletes {
            let _ = range_deletes.set(Arc::default());
        }
        Version { levels, range_deletes, has_range_deletes }
    }

    /// The version with these tables, level by level, in any order within a level.
    pub fn from_levels(levels: Vec<Vec<Arc<Table>>>) -> Result<Version> {
        if levels.len() > LEVELS {
            return Err(Error::InvalidArgument(format!("there are {} levels", levels.len())));
        }
        let mut version = Version::new();
        for (number, tables) in levels.into_iter().enumerate() {
            let level = Level::new(number, tables).map_err(Error::InvalidArgument)?;
            version.levels[number] = Arc::new(level);
        }
        Ok(Version::with_levels(version.levels))
    }

    /// The version that `edit` makes of this one; `open` makes the tables that are new. A table
    /// that just moves to another level stays the same [`Table`]. An edit that contradicts this
    /// version is [`Error::InvalidArgument`].
    pub fn apply(
        &self,
        edit: &TreeEdit,
        open: &dyn Fn(TableMeta) -> Arc<Table>,
    ) -> Result<Version> {
        self.try_apply(edit, open)
            .map_err(|what| Error::InvalidArgument(format!("edit of tree {}: {what}", edit.tree)))
    }

    fn try_apply(
        &self,
        edit: &TreeEdit,
        open: &dyn Fn(TableMeta) -> Arc<Table>,
    ) -> std::result::Result<Version, Damage> {
        let mut range_deletes_change = false;
        let mut changed: BTreeMap<usize, Vec<Arc<Table>>> = BTreeMap::new();
        for &(level, _) in &edit.removed {
            changed.entry(level).or_default();
        }
        for &(level, _) in &edit.added {
            changed.entry(level).or_default();
        }
        if let Some(level) = changed.keys().find(|level| **level >= self.levels.len()) {
            return Err(format!("there is no level {level}"));
        }
        let mut removed: BTreeMap<FileId, Option<Arc<Table>>> =
            edit.removed.iter().map(|(_, id)| (*id, None)).collect();
        if removed.len() != edit.removed.len() {
            return Err("a table is removed twice".to_owned());
        }
        for (&level, kept) in &mut changed {
            let old = self.levels[level].tables();
            kept.reserve(old.len() + edit.added.len());
            for table in old {
                match removed.get_mut(&table.meta.id) {
                    Some(slot) if edit.removed.contains(&(level, table.meta.id)) => {
                        range_deletes_change |= table.meta.range_deletes > 0;
                        *slot = Some(Arc::clone(table));
                    }
                    _ => kept.push(Arc::clone(table)),
                }
            }
        }
        if let Some((id, _)) = removed.iter().find(|(_, table)| table.is_none()) {
            return Err(format!("table {id} is removed but is not there"));
        }
        for (level, meta) in &edit.added {
            check_table(meta)?;
            range_deletes_change |= meta.range_deletes > 0;
            let table = match removed.get_mut(&meta.id) {
                // The same file at another place, unless its description changes too.
                Some(Some(table)) if *table.meta == *meta => Arc::clone(table),
                _ => open(meta.clone()),
            };
            changed.entry(*level).or_default().push(table);
        }
        let mut levels = self.levels.clone();
        for (level, tables) in changed {
            levels[level] = Arc::new(Level::new(level, tables)?);
        }
        check_unique(&levels, edit)?;
        let version = Version::with_levels(levels);
        assert_eq!(
            version.table_count() + edit.removed.len(),
            self.table_count() + edit.added.len(),
            "what was removed was there, and what was added was not"
        );
        if !range_deletes_change && let Some(known) = self.range_deletes.get() {
            let _ = version.range_deletes.set(Arc::clone(known));
        }
        Ok(version)
    }

    /// All tables with their levels: level 0 newest first, then deeper levels by key.
    pub fn tables(&self) -> impl Iterator<Item = (usize, &Arc<Table>)> {
        (0..)
            .zip(&self.levels)
            .flat_map(|(number, level)| level.tables().iter().map(move |table| (number, table)))
    }

    /// The table of this number in a level, if it is there.
    pub fn table(&self, level: usize, id: FileId) -> Option<&Arc<Table>> {
        self.levels.get(level)?.tables().iter().find(|table| table.meta.id == id)
    }

    /// About how many bytes of files hold the keys from `lower` up to, not including, `upper`
    /// (`None`: no bound). Reads the indexes of tables that reach over a bound.
    pub fn approximate_bytes(&self, lower: &[u8], upper: Option<&[u8]>) -> Result<u64> {
        if upper.is_some_and(|upper| upper <= lower) {
            return Ok(0);
        }
        let mut bytes = 0;
        for level in &self.levels {
            let range = level.overlapping(lower, upper);
            for table in level.tables().get(range).unwrap_or_default() {
                let to = match upper {
                    Some(upper) if !table.meta.is_before(upper) => table.bytes_before(upper)?,
                    _ => table.meta.file_bytes,
                };
                let from = match table.meta.smallest.as_slice() < lower {
                    true if table.meta.is_before(lower) => to,
                    true => table.bytes_before(lower)?,
                    false => 0,
                };
                bytes += to.saturating_sub(from);
            }
        }
        Ok(bytes)
    }

    /// The tables of level 0, newest first, and the levels below it.
    #[inline]
    pub fn level0_and_deeper(&self) -> (&[Arc<Table>], &[Arc<Level>]) {
        match self.levels.split_first() {
            Some((first, deeper)) => (first.tables(), deeper),
            None => (&[], &[]),
        }
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.bytes()).sum()
    }

    /// The number of the newest write in any table; 0 if there is none.
    #[inline]
    pub fn max_seq(&self) -> SeqNo {
        self.levels.iter().map(|level| level.max_seq()).max().unwrap_or(0)
    }

    /// How many tables there are.
    pub fn table_count(&self) -> usize {
        self.levels.iter().map(|level| level.len()).sum()
    }

    /// Whether there is no table.
    pub fn is_empty(&self) -> bool {
        self.levels.iter().all(|level| level.is_empty())
    }

    /// The tables, described.
    pub fn shape(&self) -> Shape {
        let levels = self.levels.iter();
        Shape { levels: levels.map(|level| level.metas().cloned().collect()).collect() }
    }

    /// Whether any table has range deletes.
    #[inline]
    pub fn has_range_deletes(&self) -> bool {
        self.has_range_deletes
    }

    /// The range deletes of all tables together. The first call reads them; later ones, and those
    /// of later versions in which they are the same, cost nothing.
    #[inline]
    pub fn range_deletes(&self) -> Result<&Arc<RangeDeletes>> {
        match self.range_deletes.get() {
            Some(known) => Ok(known),
            None => self.read_range_deletes(),
        }
    }

    #[cold]
    fn read_range_deletes(&self) -> Result<&Arc<RangeDeletes>> {
        let with = self.tables().filter(|(_, table)| table.meta.range_deletes > 0);
        let sets = with.map(|(_, table)| table.range_deletes()).collect::<Result<Vec<_>>>()?;
        assert!(!sets.is_empty(), "asked for only if a table has some");
        let union = match sets.as_slice() {
            [only] => Arc::clone(only),
            sets => Arc::new(RangeDeletes::union(sets.iter().map(|set| set.as_ref()))),
        };
        Ok(self.range_deletes.get_or_init(|| union))
    }
}

/// Whether no table that was added is there twice.
fn check_unique(levels: &[Arc<Level>], edit: &TreeEdit) -> std::result::Result<(), Damage> {
    if edit.added.is_empty() {
        return Ok(());
    }
    let mut added: Vec<FileId> = edit.added.iter().map(|(_, meta)| meta.id).collect();
    added.sort_unstable();
    if let Some(pair) = added.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("table {} is added twice", pair[0]));
    }
    let there = levels.iter().flat_map(|level| level.metas());
    let found = there.filter(|meta| added.binary_search(&meta.id).is_ok()).count();
    if found != added.len() {
        return Err("a table is added that is there already".to_owned());
    }
    Ok(())
}

#[cfg(test)]
#[path = "version_tests.rs"]
mod tests;
