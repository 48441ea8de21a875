//! Which trees and tables the damaged database has.

use super::report::{CatalogStanding, LostRange, RepairReport};
use crate::base::config::TreeConfig;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::fs::Env;
use crate::table::format::{FileKind, Files, file_name};
use crate::table::meta::{FileId, TableMeta};
use crate::version::edit::{Edit, LogStart};
use crate::version::manifest::{self, ManifestDump, ManifestLine};
use crate::version::{PreparedTables, TreeId, mark};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What is known of a tree.
#[derive(Debug, Default)]
pub struct KnownTree {
    pub name: String,
    /// Whether the name is its own.
    pub named: bool,
    pub config: Option<TreeConfig>,
    pub flushed_seq: SeqNo,
    /// Its tables, as the manifest describes them.
    pub tables: BTreeMap<FileId, TableMeta>,
}

/// Tables by tree.
type Trees = Vec<(TreeId, Vec<TableMeta>)>;

fn tables_of(trees: &Trees) -> impl Iterator<Item = &TableMeta> {
    trees.iter().flat_map(|(_, tables)| tables)
}

/// What is known of the database.
#[derive(Debug, Default)]
pub struct Catalog {
    pub trees: BTreeMap<TreeId, KnownTree>,
    /// Tables that an edit has taken out of their tree.
    pub removed: BTreeSet<FileId>,
    pub trees_dropped: BTreeSet<TreeId>,
    /// Trees whose build has not ended.
    building: BTreeSet<TreeId>,
    /// Trees whose build may have ended by an edit that is lost.
    maybe_building: BTreeSet<TreeId>,
    /// Transactions that are prepared with their writes in tables, by name: these, by tree.
    pub prepared: BTreeMap<Vec<u8>, Trees>,
    pub log: LogStart,
    /// A log file, and the length that it must have.
    pub log_end: Option<(FileId, u64)>,
    /// Every operation up to this number must be found.
    pub last_seq: SeqNo,
    /// Whether nothing of the manifest is missing.
    pub complete: bool,
}

impl Catalog {
    /// Reads the manifest, or what there is of it.
    pub fn find(
        env: &Env,
        dir: &Path,
        files: &Files,
        report: &mut RepairReport,
    ) -> Result<Catalog> {
        let error = match manifest::recover(&*env.fs, dir) {
            Ok(recovered) => {
                let mut catalog = Catalog { complete: true, ..Catalog::default() };
                catalog.apply(&recovered.snapshot);
                catalog.last_seq = recovered.last_seq;
                let names = recovered.unfinished.into_values().map(|tree| tree.name);
                report.unfinished.extend(names);
                return Ok(catalog);
            }
            Err(error @ (Error::Corruption { .. } | Error::NoDatabase(_))) => error,
            Err(error) if error.is_of_the_device() => error,
            Err(error) => return Err(error),
        };
        let current = manifest::current(&*env.fs, dir).ok();
        if current.is_none() {
            let what = match error {
                Error::Corruption { what, .. } => what,
                Error::NoDatabase(_) => "it is missing".to_owned(),
                error => error.to_string(),
            };
            report.note("CURRENT", None, what);
        }
        let mut ids: Vec<FileId> = files
            .keys()
            .filter(|(kind, id)| *kind == FileKind::Manifest && current.is_none_or(|c| c == *id))
            .map(|(_, id)| *id)
            .collect();
        if let Some(id) = current.filter(|id| !ids.contains(id)) {
            report.note(&file_name(FileKind::Manifest, id), None, "it is missing");
            ids.clear();
        }
        // Without CURRENT the newest that has anything to say.
        report.catalog = CatalogStanding::Lost;
        let mut catalog = Catalog::default();
        for id in ids.into_iter().rev() {
            if let Some(found) = Catalog::from_edits(env, dir, id, report)? {
                catalog = found;
                report.catalog = CatalogStanding::Partial;
                break;
            }
        }
        if catalog.complete {
            report.catalog = CatalogStanding::Sound;
        } else {
            catalog.find_undecided(env, dir, files, report)?;
        }
        Ok(catalog)
    }

    /// Which transactions with their writes in tables are undecided, where edits are lost: each has
    /// a mark, and the names of its files tell; see [`mark`].
    fn find_undecided(
        &mut self,
        env: &Env,
        dir: &Path,
        files: &Files,
        report: &mut RepairReport,
    ) -> Result<()> {
        let is_run = |meta: &TableMeta| files.contains_key(&(FileKind::Run, meta.id));
        let named = self.prepared.extract_if(.., |_, trees| !tables_of(trees).any(is_run));
        for (xid, trees) in named {
            // Decided by an edit that is lost, or left by a program that wrote no marks.
            let is_table = |meta: &TableMeta| files.contains_key(&(FileKind::Table, meta.id));
            for meta in tables_of(&trees).filter(|meta| is_table(meta)) {
                let what = format!(
                    "the prepared transaction `{}` wrote it; its file name says that this was \
                     committed, so it is kept, but the edit that committed it is lost",
                    xid.escape_ascii()
                );
                report.note(&file_name(FileKind::Table, meta.id), None, what);
            }
        }
        for (kind, id) in files.keys().filter(|(kind, _)| *kind == FileKind::Prepared) {
            let name = file_name(*kind, *id);
            let PreparedTables { xid, trees } = match mark::read(&*env.fs, &dir.join(&name), *id)? {
                Ok(found) => found,
                Err(what) => {
                    let what = format!(
                        "{what}; the prepared transaction that it names is left out; its writes \
                         stay in .run files"
                    );
                    report.note(&name, None, what);
                    continue;
                }
            };
            let rolled_back = |meta: &TableMeta| self.removed.contains(&meta.id);
            if tables_of(&trees).any(|meta| is_run(meta) && !rolled_back(meta)) {
                for (tree, _) in &trees {
                    self.claim(*tree);
                }
                self.prepared.insert(xid, trees);
            }
        }
        Ok(())
    }

    /// What the sound edits of a manifest add up to; `None` if there is none.
    fn from_edits(
        env: &Env,
        dir: &Path,
        id: FileId,
        report: &mut RepairReport,
    ) -> Result<Option<Catalog>> {
        let name = file_name(FileKind::Manifest, id);
        let (mut catalog, mut edits) = (Catalog::default(), 0u64);
        let (mut lost, mut next, mut gap) = (Vec::new(), 0, false);
        for line in ManifestDump::open(&*env.fs, &dir.join(&name), id)? {
            match line? {
                ManifestLine::Edit { number, edit, .. } => {
                    if number != next {
                        gap = true;
                        catalog.doubt_builds();
                    }
                    next = number + 1;
                    catalog.apply(&edit);
                    edits += 1;
                }
                ManifestLine::Damage { offset, bytes, what } => {
                    catalog.doubt_builds();
                    let (after, through, entries) = (None, None, None);
                    lost.push(LostRange { offset, bytes, what, after, through, entries });
                }
            }
        }
        catalog.complete = !gap && edits > 0 && lost.is_empty();
        catalog.leave_out_builds(&name, report);
        if !lost.is_empty() || edits == 0 {
            report.note_lost(&name, None, format!("{edits} edits of it can be read"), lost);
        }
        Ok((edits > 0).then_some(catalog))
    }

    /// An edit is lost, which may have ended a build.
    fn doubt_builds(&mut self) {
        self.maybe_building.append(&mut self.building);
    }

    /// Drops trees whose build has not ended, as an open would.
    fn leave_out_builds(&mut self, manifest: &str, report: &mut RepairReport) {
        for id in &self.maybe_building {
            let Some(tree) = self.trees.get(id) else { continue };
            let what = "it was being built, and the end of that is not in what is left of the \
                        manifest, so it may be a part; build it again";
            report.note(manifest, Some(&tree.name), what);
        }
        let unfinished: Vec<TreeId> = std::mem::take(&mut self.building).into_iter().collect();
        let names = unfinished.iter().filter_map(|id| self.trees.get(id));
        report.unfinished.extend(names.map(|tree| tree.name.clone()));
        self.apply(&Edit { trees_dropped: unfinished, ..Edit::default() });
    }

    /// Applies an edit, though others before it may be missing.
    fn apply(&mut self, edit: &Edit) {
        self.building.extend(&edit.builds_begun);
        for id in edit.trees_dropped.iter().chain(&edit.builds_ended) {
            self.building.remove(id);
            self.maybe_building.remove(id);
        }
        for id in &edit.trees_dropped {
            self.trees_dropped.insert(*id);
            if let Some(tree) = self.trees.remove(id) {
                self.removed.extend(tree.tables.keys());
            }
        }
        for (id, name, config) in &edit.trees_created {
            let tree = self.trees.entry(*id).or_default();
            (tree.name, tree.named, tree.config) = (name.clone(), true, Some(config.clone()));
        }
        for xid in &edit.decided {
            // A commit adds them to trees again.
            let tables = self.prepared.remove(xid).unwrap_or_default();
            self.removed.extend(tables.iter().flat_map(|(_, tables)| tables).map(|meta| meta.id));
        }
        for prepared in &edit.prepared {
            self.prepared.insert(prepared.xid.clone(), prepared.trees.clone());
        }
        for change in edit.trees.iter().filter(|edit| !self.trees_dropped.contains(&edit.tree)) {
            let tree = self.trees.entry(change.tree).or_default();
            for (_, id) in &change.removed {
                tree.tables.remove(id);
                self.removed.insert(*id);
            }
            for (_, meta) in &change.added {
                tree.tables.insert(meta.id, meta.clone());
                self.removed.remove(&meta.id);
            }
            tree.flushed_seq = tree.flushed_seq.max(change.flushed_seq.unwrap_or(0));
        }
        self.last_seq = self.last_seq.max(edit.last_seq.unwrap_or(0));
        self.log = edit.log.unwrap_or(self.log);
        self.log_end = edit.log_end.or(self.log_end).filter(|(file, _)| *file >= self.log.file);
    }

    /// The tree of a table that no edit names, or of an operation of the log; `None` if it is
    /// known that there is no such tree any more.
    pub fn claim(&mut self, id: TreeId) -> Option<&mut KnownTree> {
        if self.trees.contains_key(&id) {
            return self.trees.get_mut(&id);
        }
        if self.complete || self.trees_dropped.contains(&id) {
            return None;
        }
        Some(self.trees.entry(id).or_default())
    }

    /// A tree for the rows of a table file that does not say where it belongs.
    pub fn claim_for_file(&mut self, file: FileId) -> TreeId {
        let id = (0..=TreeId::MAX).rev().find(|id| !self.trees.contains_key(id)).unwrap_or(0);
        let name = format!("recovered-file-{file}");
        let other = self.trees.insert(id, KnownTree { name, ..KnownTree::default() });
        assert!(other.is_none(), "the number was free");
        id
    }

    /// Gives every tree a name, all different.
    pub fn name_all(&mut self) {
        let mut used: BTreeSet<String> =
            self.trees.values().filter(|tree| tree.named).map(|tree| tree.name.clone()).collect();
        for (id, tree) in self.trees.iter_mut().filter(|(_, tree)| !tree.named) {
            if tree.name.is_empty() {
                tree.name = format!("recovered-{id}");
            }
            while !used.insert(tree.name.clone()) {
                tree.name.push('_');
            }
        }
    }
}
