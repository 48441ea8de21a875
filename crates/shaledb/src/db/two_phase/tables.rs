//! Large transactions in two phases. The writes of one that did not fit its memory are in tables
//! when it is prepared. An edit names these under the transaction's name; another takes that away,
//! and with a commit it brings the tables into their trees. So the log has nothing of it.
//!
//! What is undecided can be told without the manifest, too: until a commit the files are called
//! runs, and a file beside them, the mark, names the transaction and its tables.

use super::names::not_prepared;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::sync::atomic::Ordering;
use crate::db::core::{Core, PreparedCore, PreparedWrites, TablesOf, Written};
use crate::db::ingest::IngestPart;
use crate::table::Table;
use crate::table::format::FileKind;
use crate::table::meta::{FileId, TableMeta};
use crate::txn::{Owner, Span};
use crate::version::edit::Edit;
use crate::version::{PreparedTables, TreeId, mark};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Core {
    /// Notes, durably, that tables are prepared under a name, and with them the locks of `owner`.
    /// Tables and blobs are durable, their names not yet. After an error nothing has changed.
    pub fn prepare_tables(
        &self,
        xid: &[u8],
        parts: &[IngestPart],
        written: Written,
        owner: &mut Owner,
    ) -> Result<()> {
        let id = self.new_file();
        let trees = parts.iter().map(|part| (part.tree.id, part.tables.clone())).collect();
        let result = self
            .write_mark(id, xid, trees)
            .and_then(|()| self.prepare_tables_locked(xid, parts, written, id, owner));
        if result.is_err() && !self.is_poisoned() {
            self.discard_files(FileKind::Prepared, [id]);
        }
        result
    }

    /// Writes a mark, and makes all new names durable.
    fn write_mark(&self, id: FileId, xid: &[u8], trees: TablesOf) -> Result<()> {
        let prepared = PreparedTables { xid: xid.to_vec(), trees };
        mark::write(&*self.env.fs, &self.path(FileKind::Prepared, id), id, &prepared)
    }

    fn prepare_tables_locked(
        &self,
        xid: &[u8],
        parts: &[IngestPart],
        written: Written,
        mark: FileId,
        owner: &mut Owner,
    ) -> Result<()> {
        // With the leader's lock no tree is dropped, and nobody takes the name.
        let mut leader = self.leader.lock();
        self.check_writable()?;
        self.check_xid(xid)?;
        // What it has read must not be lost while it stays.
        let through = leader.next_seq - 1;
        self.sync_log(&mut leader, through)?;
        let (there, gone): (Vec<&IngestPart>, Vec<&IngestPart>) =
            parts.iter().partition(|part| !part.tree.is_dropped());
        let of = |part: &&IngestPart| (part.tree.id, part.tables.clone());
        let trees: TablesOf = there.iter().map(of).collect();
        let edit = Edit {
            prepared: vec![PreparedTables { xid: xid.to_vec(), trees: trees.clone() }],
            next_file: Some(self.next_file.load(Ordering::Relaxed)),
            ..Edit::default()
        };
        self.append_edit(&mut self.manifest.lock(), &edit)?;
        let owner = std::mem::replace(owner, self.locks.owner());
        assert!(!self.prepared.lock().contains_key(xid), "a name is prepared once");
        self.note_prepared(xid.to_vec(), trees, written, Some(mark), owner);
        self.discard_prepared(gone.iter().flat_map(|part| &part.tables));
        Ok(())
    }

    /// Removes tables that were prepared and that nothing names any more, and their blobs.
    fn discard_prepared<'a>(&self, tables: impl Iterator<Item = &'a TableMeta>) {
        let tables: Vec<&TableMeta> = tables.collect();
        self.discard_runs(&tables.iter().map(|meta| meta.id).collect::<Vec<_>>());
        tables.iter().flat_map(|meta| &meta.blobs).for_each(|id| self.blob(*id).mark_obsolete());
    }

    fn note_prepared(
        &self,
        xid: Vec<u8>,
        trees: TablesOf,
        written: Written,
        mark: Option<FileId>,
        owner: Owner,
    ) {
        let tables = trees.iter().flat_map(|(_, tables)| tables);
        let blobs: BTreeSet<FileId> = tables.flat_map(|meta| meta.blobs.iter().copied()).collect();
        let blobs = blobs.into_iter().map(|id| self.blob(id)).collect();
        let writes = PreparedWrites::Tables(trees);
        self.prepared.lock().insert(xid, PreparedCore { writes, written, mark, owner, blobs });
    }

    /// Takes in what the manifest says is prepared, and locks its keys again.
    pub fn adopt_prepared_tables(&self, xid: Vec<u8>, trees: TablesOf) -> Result<()> {
        let mut owner = self.locks.owner();
        let mut mark = None;
        if !self.read_only {
            // A commit that was not made may have named them, or an older program, which has
            // written no mark either.
            self.name_runs(trees.iter().flat_map(|(_, tables)| tables))?;
            let id = *mark.insert(self.new_file());
            self.write_mark(id, &xid, trees.clone())?;
            for (tree, tables) in &trees {
                for meta in tables {
                    if let Err(error) = self.lock_table(&mut owner, *tree, meta) {
                        tracing::warn!(%error, "keys of a prepared transaction are not locked");
                    }
                }
            }
        }
        let written = Written::of_tables(&trees);
        self.note_prepared(xid, trees, written, mark, owner);
        Ok(())
    }

    fn lock_table(&self, owner: &mut Owner, tree: TreeId, meta: &TableMeta) -> Result<()> {
        let clock = &*self.env.clock;
        let table = Table::new(meta.clone(), self.path(FileKind::Run, meta.id), &self.tables);
        for range in table.range_deletes()?.fragments() {
            self.lock_again(owner, tree, Span::Range(&range.start, Some(&range.end)), clock);
        }
        let mut rows = Table::scan(&table, None, None);
        rows.seek_first()?;
        while rows.valid() && self.lock_again(owner, tree, Span::Key(rows.key()), clock) {
            rows.next()?;
        }
        Ok(())
    }

    fn tables_of(&self, xid: &[u8]) -> Result<TablesOf> {
        match self.prepared.lock().get(xid).map(|prepared| &prepared.writes) {
            Some(PreparedWrites::Tables(trees)) => Ok(trees.clone()),
            _ => Err(not_prepared(xid)),
        }
    }

    fn end_prepared(&self, xid: &[u8]) -> Result<PreparedCore> {
        self.prepared.lock().remove(xid).ok_or_else(|| not_prepared(xid))
    }

    /// Installs the tables prepared under this name. After an error they are still prepared.
    pub fn commit_tables(&self, xid: &[u8]) -> Result<()> {
        let tables = self.tables_of(xid)?;
        let trees = self.trees.load_full();
        // A tree that is not there has been dropped since.
        let part = |(id, tables): &(TreeId, Vec<TableMeta>)| {
            let tree = Arc::clone(trees.by_id.get(id)?);
            Some(IngestPart { tree, tables: tables.clone() })
        };
        let mut parts: Vec<IngestPart> = tables.iter().filter_map(part).collect();
        let mut ended = {
            let _paused = self.pause_flushes(&mut parts)?;
            let mut leader = self.leader.lock();
            self.check_writable()?;
            self.tables_of(xid)?;
            let there: Vec<TableMeta> =
                parts.iter().flat_map(|part| part.tables.iter().cloned()).collect();
            let result = self.ingest_locked(&mut leader, &mut parts, Some(xid));
            if result.is_err()
                && !self.is_poisoned()
                && let Err(error) = self.name_runs(there.iter())
            {
                tracing::warn!(%error, "tables of a prepared transaction have another name");
            }
            result?;
            self.end_prepared(xid)?
        };
        self.count_commit(ended.written);
        let installed =
            |id: TreeId| parts.iter().any(|part| part.tree.id == id && part.tables.is_empty());
        let left = tables.iter().filter(|(id, _)| !installed(*id)).flat_map(|(_, tables)| tables);
        self.discard_prepared(left);
        self.locks.release(&mut ended.owner);
        self.discard_files(FileKind::Prepared, ended.mark);
        Ok(())
    }

    /// Forgets the tables prepared under this name. After an error they are still prepared.
    pub fn rollback_tables(&self, xid: &[u8]) -> Result<()> {
        let mut ended = {
            let mut leader = self.leader.lock();
            self.check_writable()?;
            self.tables_of(xid)?;
            // The decision must not overtake commits before it.
            let through = leader.next_seq - 1;
            self.sync_log(&mut leader, through)?;
            let edit = Edit { decided: vec![xid.to_vec()], ..Edit::default() };
            self.append_edit(&mut self.manifest.lock(), &edit)?;
            self.end_prepared(xid)?
        };
        assert!(ended.logged().is_none(), "its writes are in tables");
        self.locks.release(&mut ended.owner);
        // The mark first, durably: it would bring back what is left of the tables.
        self.discard_files(FileKind::Prepared, ended.mark);
        if let Err(error) = self.env.fs.sync_dir(&self.dir) {
            tracing::warn!(%error, "what was rolled back goes at the next open");
            return Ok(());
        }
        self.discard_runs(&ended.tables().map(|meta| meta.id).collect::<Vec<_>>());
        let mark = ended.mark.map(|id| self.path(FileKind::Prepared, id));
        if mark.is_some_and(|path| self.env.fs.exists(&path).unwrap_or(true))
            && let Err(error) = self.env.fs.sync_dir(&self.dir)
        {
            tracing::warn!(%error, "a repair may find prepared what was rolled back");
        }
        ended.blobs.iter().for_each(|blob| blob.mark_obsolete());
        Ok(())
    }
}
