//! The catalog: which trees there are and which tables each of them has, as plain data. It is what
//! the edits of a manifest add up to.

use super::edit::{Damage, Edit, LogStart, TREE_NAME_BYTES_MAX, TreeEdit};
use super::prepared::PreparedTables;
use super::tree_id::TreeId;
use crate::base::config::{LEVELS, TreeConfig};
use crate::base::key::SeqNo;
use crate::table::meta::{FileId, TableMeta};
use std::collections::{BTreeMap, BTreeSet};

/// One tree of the catalog.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogTree {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub config: TreeConfig,
    /// Its tables by number, with their level.
    pub tables: BTreeMap<FileId, (usize, TableMeta)>,
    /// Every operation of the tree up to this number is in its tables.
    pub flushed_seq: SeqNo,
}

/// All trees, and the numbers that are in use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// The trees by number.
    pub trees: BTreeMap<TreeId, CatalogTree>,
    /// Every file number from here on is unused.
    pub next_file: FileId,
    /// Every tree number from here on is unused.
    pub next_tree: TreeId,
    /// Every operation up to this number is durable, in tables or in the log.
    pub last_seq: SeqNo,
    /// Where the log starts.
    pub log: LogStart,
    /// A log file, and its length up to which the log is complete and durable; `None` also if the
    /// file is needed no more.
    pub log_end: Option<(FileId, u64)>,
    /// Transactions that are prepared with their writes in tables, by name: these, by tree.
    pub prepared: BTreeMap<Vec<u8>, Vec<(TreeId, Vec<TableMeta>)>>,
    /// Trees whose content is being built.
    pub building: BTreeSet<TreeId>,
    /// The tables of all trees, and of prepared transactions.
    files: BTreeSet<FileId>,
}

impl Catalog {
    /// Whether `edit` may be applied; if not, why. Key ranges of tables are judged by
    /// [`Catalog::check_levels`] and [`super::Version::apply`].
    pub fn check(&self, edit: &Edit) -> Result<(), Damage> {
        let mut gone = BTreeSet::new();
        for id in &edit.trees_dropped {
            if !self.trees.contains_key(id) || !gone.insert(*id) {
                return Err(format!("tree {id} is dropped but does not exist"));
            }
        }
        let mut created: BTreeMap<TreeId, &str> = BTreeMap::new();
        for (id, name, config) in &edit.trees_created {
            self.check_created(*id, name, config, &gone, &created)?;
            created.insert(*id, name);
        }
        let mut changed = BTreeSet::new();
        let mut added = BTreeSet::new();
        let freed = self.check_prepared(edit)?;
        for tree in &edit.trees {
            let id = tree.tree;
            if !changed.insert(id) {
                return Err(format!("tree {id} is changed twice"));
            }
            let tables = match self.trees.get(&id) {
                Some(old) if !gone.contains(&id) => Some(&old.tables),
                _ if created.contains_key(&id) => None,
                _ => return Err(format!("tree {id} is changed but does not exist")),
            };
            self.check_tree(tree, tables, &freed, &mut added)
                .map_err(|what| format!("tree {id}: {what}"))?;
        }
        for (_, tables) in edit.prepared.iter().flat_map(|prepared| &prepared.trees) {
            for meta in tables {
                self.check_added(meta, &BTreeSet::new(), &mut added)?;
            }
        }
        for id in &edit.builds_begun {
            if !created.contains_key(id) {
                return Err(format!("tree {id} is built, but is not created with that"));
            }
        }
        for id in &edit.builds_ended {
            if !self.building.contains(id) || gone.contains(id) {
                return Err(format!("the build of tree {id} ends, but has not begun"));
            }
        }
        if edit.next_tree.is_some_and(|next| next < self.next_tree)
            || edit.next_file.is_some_and(|next| next < self.next_file)
        {
            return Err("numbers that were in use are declared unused".to_owned());
        }
        if edit.log.is_some_and(|log| log.file < self.log.file || log.seq < self.log.seq) {
            return Err("the start of the log moves back".to_owned());
        }
        Ok(())
    }

    fn check_created(
        &self,
        id: TreeId,
        name: &str,
        config: &TreeConfig,
        gone: &BTreeSet<TreeId>,
        created: &BTreeMap<TreeId, &str>,
    ) -> Result<(), Damage> {
        // The last number is used even though none follows it.
        let used = id < self.next_tree || self.trees.contains_key(&id);
        if used || created.contains_key(&id) {
            return Err(format!("tree {id} is created but its number has been used before"));
        }
        let mut others = self.trees.iter().filter(|(id, _)| !gone.contains(id));
        if others.any(|(_, tree)| tree.name == name) || created.values().any(|n| *n == name) {
            return Err(format!("tree {id} is created with the name `{name}` of another tree"));
        }
        if name.len() > TREE_NAME_BYTES_MAX {
            return Err(format!("tree {id} has a name of {} bytes", name.len()));
        }
        config.validate().map_err(|error| format!("tree {id}: {error}"))
    }

    /// Whether what is decided is prepared, and what is prepared is not yet; answers with the
    /// tables of what is decided.
    fn check_prepared(&self, edit: &Edit) -> Result<BTreeSet<FileId>, Damage> {
        let mut freed = BTreeSet::new();
        for xid in &edit.decided {
            let Some(trees) = self.prepared.get(xid) else {
                return Err(format!("`{}` is decided but not prepared", xid.escape_ascii()));
            };
            freed.extend(trees.iter().flat_map(|(_, tables)| tables).map(|meta| meta.id));
        }
        for PreparedTables { xid, .. } in &edit.prepared {
            if self.prepared.contains_key(xid) && !edit.decided.contains(xid) {
                return Err(format!("`{}` is prepared twice", xid.escape_ascii()));
            }
        }
        Ok(freed)
    }

    fn check_added(
        &self,
        meta: &TableMeta,
        freed: &BTreeSet<FileId>,
        added: &mut BTreeSet<FileId>,
    ) -> Result<(), Damage> {
        let used = self.files.contains(&meta.id) && !freed.contains(&meta.id);
        if used || !added.insert(meta.id) || meta.id == 0 {
            return Err(format!("table {} is added, but its number is in use", meta.id));
        }
        check_table(meta)
    }

    fn check_tree(
        &self,
        edit: &TreeEdit,
        tables: Option<&BTreeMap<FileId, (usize, TableMeta)>>,
        freed: &BTreeSet<FileId>,
        added: &mut BTreeSet<FileId>,
    ) -> Result<(), Damage> {
        let mut removed = freed.clone();
        for &(level, file) in &edit.removed {
            let known = tables.and_then(|tables| tables.get(&file));
            if known.is_none_or(|(at, _)| *at != level) || !removed.insert(file) {
                return Err(format!(
                    "table {file} is removed from level {level}, but is not there"
                ));
            }
        }
        for (level, meta) in &edit.added {
            self.check_added(meta, &removed, added)?;
            if *level >= LEVELS {
                return Err(format!("table {} is added to level {level}", meta.id));
            }
        }
        Ok(())
    }

    /// Applies an edit that [`Catalog::check`] has found right.
    pub fn apply(&mut self, edit: &Edit) {
        self.building.extend(&edit.builds_begun);
        for id in edit.trees_dropped.iter().chain(&edit.builds_ended) {
            self.building.remove(id);
        }
        for id in &edit.trees_dropped {
            if let Some(tree) = self.trees.remove(id) {
                tree.tables.keys().for_each(|file| {
                    self.files.remove(file);
                });
            }
            for trees in self.prepared.values_mut() {
                for (_, tables) in trees.extract_if(.., |(tree, _)| tree == id) {
                    tables.iter().for_each(|meta| {
                        self.files.remove(&meta.id);
                    });
                }
            }
        }
        for xid in &edit.decided {
            let trees = self.prepared.remove(xid).unwrap_or_default();
            for meta in trees.iter().flat_map(|(_, tables)| tables) {
                self.files.remove(&meta.id);
            }
        }
        for (id, name, config) in &edit.trees_created {
            let (name, config) = (name.clone(), config.clone());
            let tree = CatalogTree { name, config, tables: BTreeMap::new(), flushed_seq: 0 };
            self.trees.insert(*id, tree);
            self.next_tree = self.next_tree.max(id.saturating_add(1));
        }
        for change in &edit.trees {
            let Some(tree) = self.trees.get_mut(&change.tree) else { continue };
            for (level, file) in &change.removed {
                let table = tree.tables.remove(file);
                assert!(table.is_some_and(|(at, _)| at == *level), "what is removed was there");
                assert!(self.files.remove(file), "a table's file is in use");
            }
            for (level, meta) in &change.added {
                assert!(*level < LEVELS);
                tree.tables.insert(meta.id, (*level, meta.clone()));
                assert!(self.files.insert(meta.id), "no two tables share a file");
                self.next_file = self.next_file.max(after(meta));
            }
            tree.flushed_seq = tree.flushed_seq.max(change.flushed_seq.unwrap_or(0));
        }
        for PreparedTables { xid, trees } in &edit.prepared {
            for meta in trees.iter().flat_map(|(_, tables)| tables) {
                assert!(self.files.insert(meta.id), "no two tables share a file");
                self.next_file = self.next_file.max(after(meta));
            }
            self.prepared.insert(xid.clone(), trees.clone());
        }
        self.next_file = self.next_file.max(edit.next_file.unwrap_or(0));
        self.next_tree = self.next_tree.max(edit.next_tree.unwrap_or(0));
        self.last_seq = self.last_seq.max(edit.last_seq.unwrap_or(0));
        let log = edit.log.unwrap_or(self.log);
        assert!(log.file >= self.log.file && log.seq >= self.log.seq, "the log's start moves on");
        self.log = log;
        let log = self.log.file;
        self.log_end = edit.log_end.or(self.log_end).filter(|(file, _)| *file >= log);
        let (file, tree) = (self.files.last(), self.trees.last_key_value());
        assert!(file.is_none_or(|id| id.saturating_add(1) <= self.next_file), "a number once");
        assert!(tree.is_none_or(|(id, _)| id.saturating_add(1) <= self.next_tree), "a number once");
    }

    /// The last sequence number that is in tables. The log has been durable up to there, or starts
    /// behind it.
    pub fn last_in_tables(&self) -> SeqNo {
        let flushed = self.trees.values().map(|tree| tree.flushed_seq);
        let tables = self.trees.values().flat_map(|tree| tree.tables.values());
        flushed.chain(tables.map(|(_, meta)| meta.max_seq)).max().unwrap_or(0)
    }

    /// Takes out the trees whose build has not ended, with what prepared transactions have for
    /// them: for all but who builds them they are not there.
    pub fn take_unfinished(&mut self) -> BTreeMap<TreeId, CatalogTree> {
        let ids: Vec<TreeId> = self.building.iter().copied().collect();
        let trees = ids.iter().filter_map(|id| Some((*id, self.trees.get(id)?.clone())));
        let unfinished: BTreeMap<TreeId, CatalogTree> = trees.collect();
        assert_eq!(unfinished.len(), ids.len(), "what is being built is there");
        self.apply(&Edit { trees_dropped: ids, ..Edit::default() });
        unfinished
    }

    /// The edit that makes this catalog from an empty one.
    pub fn snapshot(&self) -> Edit {
        let mut edit = Edit {
            next_file: Some(self.next_file),
            next_tree: Some(self.next_tree),
            last_seq: Some(self.last_seq),
            log: Some(self.log),
            log_end: self.log_end,
            builds_begun: self.building.iter().copied().collect(),
            ..Edit::default()
        };
        for (xid, trees) in &self.prepared {
            edit.prepared.push(PreparedTables { xid: xid.clone(), trees: trees.clone() });
        }
        for (&id, tree) in &self.trees {
            edit.trees_created.push((id, tree.name.clone(), tree.config.clone()));
            edit.trees.push(TreeEdit {
                tree: id,
                removed: Vec::new(),
                added: tree.tables.values().cloned().collect(),
                flushed_seq: Some(tree.flushed_seq),
            });
        }
        edit
    }

    /// Whether the tables of each level but level 0 have disjoint key ranges; if not, the two
    /// tables that overlap.
    pub fn check_levels(&self) -> Result<(), (FileId, FileId, Damage)> {
        for (id, tree) in &self.trees {
            for (level, tables) in tree.levels().into_iter().enumerate().skip(1) {
                if let Some([a, b]) = overlap(&tables, |meta| meta) {
                    let (a, b) = (a.id, b.id);
                    let what = format!(
                        "tree {id}: tables {a} and {b} of level {level} have overlapping key ranges"
                    );
                    return Err((a, b, what));
                }
            }
        }
        Ok(())
    }
}

impl CatalogTree {
    /// The tables level by level: level 0 newest first, the others by key.
    pub fn levels(&self) -> Vec<Vec<&TableMeta>> {
        let mut levels = vec![Vec::new(); LEVELS];
        for (level, meta) in self.tables.values() {
            if let Some(tables) = levels.get_mut(*level) {
                tables.push(meta);
            }
        }
        assert_eq!(levels.iter().map(Vec::len).sum::<usize>(), self.tables.len());
        for (level, tables) in levels.iter_mut().enumerate() {
            sort_level(level, tables, |meta| meta);
        }
        levels
    }
}

/// The first file number that a table does not show to be used.
fn after(meta: &TableMeta) -> FileId {
    let used = meta.blobs.iter().copied().max().unwrap_or(0).max(meta.id);
    used.saturating_add(1)
}

/// Sorts the tables of a level: level 0 by [`TableMeta::age`], newest first, the others by key.
pub(super) fn sort_level<T>(level: usize, tables: &mut [T], meta: fn(&T) -> &TableMeta) {
    if level == 0 {
        tables.sort_by_key(|table| (meta(table).age(), std::cmp::Reverse(meta(table).id)));
    } else {
        tables.sort_by(|a, b| meta(a).smallest.cmp(&meta(b).smallest));
    }
}

/// The first two neighbours in a sorted level that have a key in common.
pub(super) fn overlap<T>(tables: &[T], meta: fn(&T) -> &TableMeta) -> Option<[&TableMeta; 2]> {
    tables.windows(2).find_map(|pair| {
        let [a, b] = [meta(pair.first()?), meta(pair.last()?)];
        (!a.is_before(&b.smallest)).then_some([a, b])
    })
}

/// Whether the description of a table contradicts itself.
pub(super) fn check_table(meta: &TableMeta) -> Result<(), Damage> {
    let keys = meta.smallest.cmp(&meta.largest);
    if keys.is_gt() || (keys.is_eq() && meta.largest_exclusive) {
        return Err(format!("table {} ends before it starts", meta.id));
    }
    if meta.min_seq > meta.max_seq {
        return Err(format!("table {} has contradicting sequence numbers", meta.id));
    }
    Ok(())
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
