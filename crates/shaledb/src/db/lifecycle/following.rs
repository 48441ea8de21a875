//! How far a follower has read the manifest and the log of another process; see [`super::follow`].

use super::files::log_files;
use crate::base::cursor::Cursor;
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SeqNo};
use crate::base::sync::Arc;
use crate::db::core::{Core, TreeCore};
use crate::memtable::Memtable;
use crate::state::TreeState;
use crate::table::format::{FileKind, list_files};
use crate::table::meta::{FileId, TableMeta};
use crate::table::{Blob, Table};
use crate::version::catalog::CatalogTree;
use crate::version::manifest::CURRENT;
use crate::version::{ManifestTail, TreeId, Version};
use crate::wal::payload::{Entry, prepared_ops};
use crate::wal::{LogTail, Op, PreparedLog, ReplayStart, TailEnd, WalBatch};
use std::collections::BTreeMap;

/// A follower looks at how much memory it takes after so many bytes of operations.
const LOOK_BYTES: u64 = 1 << 20;

/// Where following has come to.
pub(super) struct Following {
    pub manifest: ManifestTail,
    /// Whether the manifest says more than what has been taken from it.
    news: bool,
    log: LogTail,
    pub prepared: PreparedLog,
    /// Every table of the manifest, open.
    pub tables: BTreeMap<FileId, Arc<Table>>,
    pub trees: BTreeMap<TreeId, Followed>,
    /// Blobs that were gone when the log named them: then the manifest will say that the operation
    /// is in tables, or has been overwritten there.
    gone: Vec<(TreeId, SeqNo, Arc<Blob>)>,
    /// The position in the commit order that this shows.
    pub seq: SeqNo,
    /// About how many bytes of operations were taken since the memory was looked at.
    grown: u64,
    full: bool,
}

/// One tree.
pub(super) struct Followed {
    pub core: Arc<TreeCore>,
    /// Operations after `flushed`; readers of older views share it.
    memtable: Arc<Memtable>,
    version: Arc<Version>,
    /// Every operation up to this one is in tables.
    flushed: SeqNo,
}

/// How reading on has ended.
pub(super) enum Step {
    /// The manifest has not changed while the log was read.
    Still,
    Again,
    /// What was read of the log is no longer there.
    Undone,
}

impl Following {
    /// With these tables open.
    pub fn new(core: &Core, tables: BTreeMap<FileId, Arc<Table>>) -> Result<Following> {
        Ok(Following {
            manifest: ManifestTail::open(&*core.env.fs, &core.dir)?,
            news: true,
            log: LogTail::default(),
            prepared: PreparedLog::default(),
            tables,
            trees: BTreeMap::new(),
            gone: Vec::new(),
            seq: 0,
            grown: 0,
            full: false,
        })
    }

    pub fn step(&mut self, core: &Core) -> Result<Step> {
        let fs = &*core.env.fs;
        // What was too large may have been decided since, or flushed.
        (self.full, self.grown) = (false, LOOK_BYTES);
        if self.news && !self.take_catalog(core)? {
            return Ok(Step::Again);
        }
        let start = self.manifest.catalog().log;
        let wals = log_files(core, start.file, &list_files(fs, &core.dir)?);
        let catalog = self.manifest.catalog();
        let durable = catalog.last_seq;
        let from = ReplayStart { flushed_to: start.seq, durable, ..ReplayStart::default() };
        let mut log = std::mem::take(&mut self.log);
        let ended = log.advance(fs, &wals, from, &mut |batch| self.take_record(core, batch));
        let at_start = log.last_seq() == 0;
        let reached = log.last_seq().max(start.seq);
        self.log = log;
        let ended = ended?;
        // Nor has one that damage has taken where all is in tables.
        self.prepared.forget_decided(start.seq + 1);
        if self.manifest.advance(fs, &core.dir)? {
            (self.news, self.full) = (true, false);
            return Ok(Step::Again);
        }
        let first = wals.first().map(|(id, _)| *id);
        if at_start && start.file != 0 && first != Some(start.file) {
            let what = "the manifest says that the log starts with it, but it is missing";
            return Err(Error::corruption(&core.path(FileKind::Wal, start.file), 0, what));
        }
        match ended {
            TailEnd::Undone => return Ok(Step::Undone),
            TailEnd::Damaged(error) => return Err(error),
            TailEnd::Held if self.full => return Err(self.too_large(core)),
            TailEnd::Held => {
                let what = "the log writes to a tree that the manifest does not know";
                return Err(Error::corruption(&core.dir.join(CURRENT), 0, what));
            }
            TailEnd::End => {}
        }
        let flushed = self.manifest.catalog().last_in_tables();
        if reached < flushed {
            let what = format!(
                "the log can be read up to sequence number {reached}, but tables have what was \
                 committed up to {flushed}"
            );
            let last = wals.last().map_or(&core.dir, |(_, path)| path);
            return Err(Error::corruption(last, 0, what));
        }
        for (tree, seq, blob) in std::mem::take(&mut self.gone) {
            if self.trees.get(&tree).is_some_and(|tree| seq > tree.flushed) {
                let what = "the log names it, but it is missing";
                blob.keep_open().map_err(|error| error.missing_is_damage(blob.path(), what))?;
            }
        }
        Ok(Step::Still)
    }

    /// Takes what the manifest says; false if a file that it names is gone, since there is a newer
    /// edit.
    fn take_catalog(&mut self, core: &Core) -> Result<bool> {
        self.tables = match self.open_tables(core) {
            Err(error) if error.is_not_found() => {
                if self.manifest.advance(&*core.env.fs, &core.dir)? {
                    return Ok(false);
                }
                let Error::Io { path, .. } = &error else { return Err(error) };
                let what = "the manifest names it, but it is missing";
                return Err(Error::corruption(path, 0, what));
            }
            other => other?,
        };
        self.news = false;
        let catalog = self.manifest.catalog();
        self.trees.retain(|id, _| catalog.trees.contains_key(id));
        for (id, tree) in &catalog.trees {
            let followed = self.trees.entry(*id).or_insert_with(|| Followed::new(core, *id, tree));
            followed.take(core, tree, &self.tables)?;
        }
        // A decision that was in a log that is gone by now has not been seen.
        self.prepared.forget_decided(catalog.log.seq + 1);
        self.seq = self.seq.max(catalog.last_in_tables()).max(catalog.log.seq);
        Ok(true)
    }

    /// The tables that the manifest names, each one open.
    fn open_tables(&self, core: &Core) -> Result<BTreeMap<FileId, Arc<Table>>> {
        let catalog = self.manifest.catalog();
        let named = catalog.trees.values().flat_map(|tree| tree.tables.values());
        let open = |(_, meta): &(usize, TableMeta)| {
            let known = self.tables.get(&meta.id).filter(|known| *known.meta == *meta);
            Ok((meta.id, known.cloned().map_or_else(|| open_table(core, meta), Ok)?))
        };
        named.map(open).collect()
    }

    /// Takes a record of the log, unless it is of a tree that is not known yet.
    fn take_record(&mut self, core: &Core, batch: &WalBatch<'_>) -> Result<bool> {
        let next_tree = self.manifest.catalog().next_tree;
        let (mut says_something, mut only_decides, mut prepared_bytes) = (false, true, 0);
        for entry in batch.entries() {
            says_something = true;
            only_decides &= matches!(entry, Entry::Commit { .. } | Entry::Rollback { .. });
            let is_known = match entry {
                Entry::Op(op) => op.tree < next_tree,
                // Its operations come with the decision, which names no tree.
                Entry::Prepare { seq, ops, .. } => {
                    prepared_bytes += ops.len() as u64;
                    prepared_ops(ops, seq).all(|op| op.tree < next_tree)
                }
                Entry::Commit { .. } | Entry::Rollback { .. } => true,
            };
            if !is_known {
                return Ok(false);
            }
        }
        if self.grown >= LOOK_BYTES {
            self.grown = 0;
            self.full = self.memtable_bytes() + self.prepared.bytes() > bound(core);
        }
        // What is decided is in memory already.
        if self.full && !only_decides {
            return Ok(false);
        }
        // It may have made room: looked at again before the next.
        let look_again = if self.full { LOOK_BYTES } else { 0 };
        let Following { prepared, trees, gone, grown, .. } = self;
        *grown += prepared_bytes + look_again;
        prepared.read(batch, &mut |op, _| {
            *grown += (op.key.len() + op.value.len()) as u64;
            match trees.get(&op.tree) {
                // A tree that is not there has been dropped since.
                Some(tree) if op.seq > tree.flushed => tree.apply(core, op, gone),
                _ => Ok(()),
            }
        })?;
        // The number of a bulk load counts when the manifest has its tables.
        if says_something {
            self.seq = self.seq.max(batch.next_seq() - 1);
        }
        Ok(true)
    }

    /// The trees but for those whose build has not ended. These are followed, since what the log
    /// has of them will be theirs then.
    pub fn shown(&self) -> impl Iterator<Item = (&TreeId, &Followed)> {
        let building = &self.manifest.catalog().building;
        self.trees.iter().filter(|(id, _)| !building.contains(id))
    }

    fn memtable_bytes(&self) -> u64 {
        self.trees.values().map(|tree| tree.memtable.bytes() as u64).sum()
    }

    fn too_large(&self, core: &Core) -> Error {
        super::replay::log_too_large(&core.dir, bound(core))
    }
}

/// What memtables may take.
fn bound(core: &Core) -> u64 {
    core.settings.memory_bytes / 2
}

/// A table that stays open, and its blobs with it.
fn open_table(core: &Core, meta: &TableMeta) -> Result<Arc<Table>> {
    let table = core.open_table(meta.clone());
    table.keep_open()?;
    meta.blobs.iter().try_for_each(|id| core.blob(*id).keep_open())?;
    Ok(table)
}

impl Followed {
    /// The tree of this number: readers may have a handle to it.
    fn new(core: &Core, id: TreeId, tree: &CatalogTree) -> Followed {
        let known = core.trees.load().by_id.get(&id).cloned();
        let made = || TreeCore::new(id, tree.name.clone(), tree.config.clone(), Version::new());
        Followed {
            core: known.unwrap_or_else(made),
            memtable: Arc::new(Memtable::new()),
            version: Arc::new(Version::new()),
            flushed: 0,
        }
    }

    /// Takes what the manifest says of it.
    fn take(
        &mut self,
        core: &Core,
        tree: &CatalogTree,
        tables: &BTreeMap<FileId, Arc<Table>>,
    ) -> Result<()> {
        let is_there = |(level, table): (usize, &Arc<Table>)| {
            tree.tables
                .get(&table.meta.id)
                .is_some_and(|(at, meta)| *at == level && *meta == *table.meta)
        };
        if self.version.table_count() != tree.tables.len() || !self.version.tables().all(is_there) {
            let open = |level: Vec<&TableMeta>| {
                level.into_iter().filter_map(|meta| tables.get(&meta.id).cloned()).collect()
            };
            let levels = tree.levels().into_iter().map(open).collect();
            self.version = Arc::new(Version::from_levels(levels)?);
        }
        let named = tree.tables.len();
        assert_eq!(self.version.table_count(), named, "each table that is named is open");
        if tree.flushed_seq > self.flushed {
            self.flushed = tree.flushed_seq;
            self.drop_flushed(core);
        }
        Ok(())
    }

    /// Leaves out of memory what is in tables.
    fn drop_flushed(&mut self, core: &Core) {
        let old = &self.memtable;
        if old.first_seq().is_none_or(|first| first > self.flushed) {
            return;
        }
        let new = Memtable::new();
        if old.last_seq() > self.flushed {
            let mut rows = old.cursor();
            // It never fails.
            let _ = rows.seek_first();
            while rows.valid() {
                if rows.seq() > self.flushed {
                    insert(core, &new, rows.key(), rows.seq(), rows.kind(), rows.value());
                }
                let _ = rows.next();
            }
            let unseen = core.first_unseen();
            for delete in old.range_deletes().deletes().filter(|one| one.seq > self.flushed) {
                new.delete_range(&delete.start, &delete.end, delete.seq, unseen);
            }
        }
        debug_assert!(new.first_seq().is_none_or(|first| first > self.flushed));
        self.memtable = Arc::new(new);
    }

    fn apply(
        &self,
        core: &Core,
        op: &Op<'_>,
        gone: &mut Vec<(TreeId, SeqNo, Arc<Blob>)>,
    ) -> Result<()> {
        if op.kind == Kind::RangeDelete {
            self.memtable.delete_range(op.key, op.value, op.seq, core.first_unseen());
            return Ok(());
        }
        if let Some(blob) = insert(core, &self.memtable, op.key, op.seq, op.kind, op.value) {
            match blob.keep_open() {
                Err(error) if error.is_not_found() => gone.push((op.tree, op.seq, blob)),
                other => other?,
            }
        }
        Ok(())
    }

    /// What readers see: the state before, if nothing has changed. Between two inserts, so that a
    /// filter may begin.
    pub fn state(&self, core: &Core, before: Option<&Arc<TreeState>>) -> Arc<TreeState> {
        self.memtable.begin_wanted_filter(core.settings.memtable_full_bytes);
        let same = |state: &&Arc<TreeState>| {
            Arc::ptr_eq(&state.active, &self.memtable) && Arc::ptr_eq(&state.version, &self.version)
        };
        before.filter(same).cloned().unwrap_or_else(|| {
            Arc::new(TreeState {
                active: self.memtable.clone(),
                sealed: Vec::new(),
                version: self.version.clone(),
            })
        })
    }
}

/// Puts an entry into a memtable, and with it the blob that it refers to.
fn insert(
    core: &Core,
    memtable: &Memtable,
    key: &[u8],
    seq: SeqNo,
    kind: Kind,
    value: &[u8],
) -> Option<Arc<Blob>> {
    let blob = if kind == Kind::Blob { core.attach_blob(memtable, value) } else { None };
    memtable.insert(key, seq, kind, value);
    blob
}
