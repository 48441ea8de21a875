//! Writes beyond the bound on memory: to sorted runs in files of the transaction's own, and from
//! there, at the commit, into the tables of the trees.
//!
//! At the commit the newest write of each key is written once more, to tables as those of a bulk
//! load, and one edit installs them in all trees. So what was undone, and what is of no use
//! any more, ends there, and until then nothing but the transaction knows of the runs.

use super::txn::Transaction;
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SeqNo};
use crate::base::ranges::RangeDeletes;
use crate::base::stats::Counter;
use crate::base::sync::Arc;
use crate::compaction::policy::LAST;
use crate::db::core::{Core, TreeCore, Written};
use crate::db::ingest::{IngestPart, RunWriter};
use crate::db::values::NewBlob;
use crate::table::format::FileKind;
use crate::table::meta::{FileId, TableMeta};
use crate::table::{Blob, Table, TableDictionary};
use crate::txn::runs::SpilledRun;
use crate::txn::write_set::write_bytes;
use crate::version::TreeId;
use crate::write::space;
use std::collections::BTreeSet;

/// What range deletes may take, in bytes, however little memory a transaction may take.
const RANGE_DELETES_BYTES: u64 = 1 << 20;

/// Rows on their way to tables, and large values to files of their own.
struct Rows<'a> {
    core: &'a Arc<Core>,
    blob_bytes: u64,
    writer: RunWriter,
    /// Blobs just written. They go if nothing has come to hold them.
    blobs: Vec<NewBlob>,
}

impl<'a> Rows<'a> {
    /// What is `last` is to be committed.
    fn new(core: &'a Arc<Core>, tree: &TreeCore, last: bool, deletes: RangeDeletes) -> Rows<'a> {
        // What stays private is read again soon; what is committed mostly ends in the last level.
        let mut options = core.table_options(tree, if last { LAST } else { 0 });
        if !last {
            options.dictionary = TableDictionary::None;
        }
        let writer = RunWriter::new(core, last, options, deletes);
        Rows { core, blob_bytes: tree.config.blob_bytes.into(), writer, blobs: Vec::new() }
    }

    fn add(&mut self, key: &[u8], seq: SeqNo, kind: Kind, value: &[u8]) -> Result<()> {
        if kind != Kind::Put || (value.len() as u64) < self.blob_bytes {
            return self.writer.add(key, seq, kind, value);
        }
        let blob = self.core.write_blob(value, None)?;
        blob.mark_obsolete();
        self.blobs.push(blob);
        let reference = self.blobs.last().map(|blob| blob.reference().to_vec());
        self.writer.add(key, seq, Kind::Blob, &reference.unwrap_or_default())
    }
}

impl Core {
    /// Opens a table of a transaction's own; its file, and blobs that nothing else refers to, go
    /// when nobody has it open any more.
    pub(crate) fn open_run(&self, meta: TableMeta) -> Arc<Table> {
        let path = self.path(FileKind::Run, meta.id);
        let blobs = meta.blobs.iter().map(|id| self.blob(*id)).collect();
        let table = Table::new(meta, path, &self.tables);
        table.hold_blobs(blobs);
        table.mark_obsolete();
        table
    }
}

impl Transaction {
    /// The bytes of the files with what did not fit the memory that the transaction may take (see
    /// [`TransactionOptions::memory_bytes`](crate::TransactionOptions::memory_bytes)).
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let options = shaledb::TransactionOptions { memory_bytes: 10_000, ..Default::default() };
    /// let mut txn = db.begin(options)?;
    /// for n in 0..1000u32 {
    ///     txn.put(&tree, &n.to_be_bytes(), b"a value of some length")?;
    /// }
    /// assert!(txn.spilled_bytes() > 0);
    /// txn.commit(shaledb::WriteOptions::default())?;
    /// assert_eq!(tree.scan::<&[u8]>(..)?.count(), 1000);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn spilled_bytes(&self) -> u64 {
        self.writes.run_bytes()
    }

    /// Makes room in memory for a write. After an error all is as it was.
    pub(super) fn make_room(&mut self, kind: Kind, key: &[u8], value: &[u8]) -> Result<()> {
        let bytes_max = self.options.memory_bytes;
        let bytes = write_bytes(key, value);
        let (rows, deletes) = (self.writes.memory_bytes(), self.writes.deletes_bytes());
        // So that it is this write that is refused, and not all of them at the commit.
        let is_delete = matches!(kind, Kind::Delete | Kind::RangeDelete);
        let in_memory = if is_delete { bytes } else { rows + deletes + bytes };
        self.core().foresee(in_memory, 0, is_delete)?;
        if self.is_optimistic() {
            // Every key that it has written is looked at in one step with its commit.
            let full = rows + deletes + bytes > bytes_max;
            return if full { Err(Error::TransactionFull { bytes_max }) } else { Ok(()) };
        }
        if kind == Kind::RangeDelete {
            // Those stay in memory, as those of tables do.
            let bytes_max = bytes_max.max(RANGE_DELETES_BYTES);
            let full = deletes + bytes > bytes_max;
            return if full { Err(Error::TransactionFull { bytes_max }) } else { Ok(()) };
        }
        let bytes_max = space::transaction_most(self.core().space().limit(), bytes_max);
        if rows == 0 || rows + bytes <= bytes_max {
            return Ok(());
        }
        self.spill()
    }

    /// Moves what is in memory to a run of each tree.
    fn spill(&mut self) -> Result<()> {
        let core = self.handle.core.clone();
        let mut runs = Vec::new();
        let trees: Vec<TreeId> = self.writes.in_memory().collect();
        for id in trees {
            let run = self.write_run(&core, id, 0, |txn, rows| {
                txn.writes.each_in_memory(id, &mut |key, seq, kind, value| {
                    rows.add(key, seq, kind, value)
                })
            })?;
            runs.extend(run.map(|run| (id, run)));
        }
        self.writes.spilled(runs);
        while let Some((id, first)) = self.writes.due_merge() {
            let tier = self.writes.next_tier(id, first);
            let merged = self.write_run(&core, id, tier, |txn, rows| {
                txn.writes.each_in_runs(id, first, &mut |key, seq, kind, value| {
                    rows.add(key, seq, kind, value)
                })
            });
            match merged {
                // For a while it needs room for both. The next spill tries again.
                Err(error) if error.is_without_room() => break,
                merged => self.writes.merged(id, first, merged?),
            }
        }
        Ok(())
    }

    fn write_run(
        &self,
        core: &Arc<Core>,
        id: TreeId,
        tier: u32,
        fill: impl FnOnce(&Transaction, &mut Rows<'_>) -> Result<()>,
    ) -> Result<Option<SpilledRun>> {
        let Some(tree) = self.trees.get(&id) else { return Ok(None) };
        let mut rows = Rows::new(core, tree, false, RangeDeletes::default());
        fill(self, &mut rows)?;
        let Rows { writer, blobs, .. } = rows;
        let tables = writer.finish()?;
        let run =
            SpilledRun::new(tables.into_iter().map(|meta| core.open_run(meta)).collect(), tier);
        drop(blobs);
        run
    }

    /// Commits what is in runs and in memory; durably, since tables are.
    pub(super) fn commit_spilled(&mut self) -> Result<()> {
        let core = self.handle.core.clone();
        core.check_writable()?;
        self.check_trees()?;
        let tables = self.write_tables(&core)?;
        tables.put(|parts| core.ingest(parts))?;
        core.count_commit(self.counted());
        Ok(())
    }

    fn counted(&self) -> Written {
        Written { ops: self.writes.count(), user_bytes: self.writes.user_bytes() }
    }

    /// Prepares what is in runs and in memory.
    pub(super) fn prepare_spilled(&mut self, xid: &[u8]) -> Result<()> {
        let core = self.handle.core.clone();
        self.check_trees()?;
        let tables = self.write_tables(&core)?;
        let written = self.counted();
        let trees: Vec<_> = tables.parts.iter().map(|part| part.tree.clone()).collect();
        tables.put(|parts| {
            let result = core.prepare_tables(xid, parts, written, &mut self.owner);
            if result.is_err() {
                let tables = parts.iter().flat_map(|part| &part.tables);
                core.discard_runs(&tables.map(|meta| meta.id).collect::<Vec<_>>());
            }
            result
        })?;
        // The commit flushes them, and others may wait for its end (under a binary log's lock): it
        // is left with what comes in between.
        for tree in trees {
            if let Err(error) = core.flush(Some(&tree)) {
                tracing::warn!(%error, "not flushed after a prepare: the commit tries again");
            }
        }
        Ok(())
    }

    /// Writes what is to be committed to tables of the trees.
    fn write_tables(&self, core: &Arc<Core>) -> Result<FinalTables> {
        let mut tables = FinalTables { core: core.clone(), parts: Vec::new(), blobs: Vec::new() };
        for id in self.writes.tree_ids() {
            let Some(tree) = self.trees.get(&id) else { continue };
            let deletes = self.writes.range_deletes(id).numbered(0);
            let mut rows = Rows::new(core, tree, true, deletes);
            self.writes.each_newest(id, &mut |kind, key, value| rows.add(key, 0, kind, value))?;
            let Rows { writer, blobs, .. } = rows;
            let metas = writer.finish()?;
            let ids: BTreeSet<FileId> =
                metas.iter().flat_map(|meta| meta.blobs.iter().copied()).collect();
            tables.blobs.extend(ids.into_iter().map(|id| core.blob(id)));
            drop(blobs);
            if !metas.is_empty() {
                tables.parts.push(IngestPart { tree: tree.clone(), tables: metas });
            }
        }
        Ok(tables)
    }
}

/// Tables of a transaction about to be committed. They are removed unless they are installed.
struct FinalTables {
    core: Arc<Core>,
    parts: Vec<IngestPart>,
    /// What they refer to.
    blobs: Vec<Arc<Blob>>,
}

impl FinalTables {
    /// Hands them to `put`, which makes an edit that names them or else removes them.
    fn put(mut self, put: impl FnOnce(&mut [IngestPart]) -> Result<()>) -> Result<()> {
        let core = self.core.clone();
        self.blobs.iter().for_each(|blob| blob.keep());
        let bytes = self.parts.iter().flat_map(|part| &part.tables).map(|meta| meta.file_bytes);
        let bytes = bytes.sum();
        let result = put(&mut self.parts);
        match result {
            Ok(()) => core.recorder.add(Counter::IngestBytes, bytes),
            // An edit of unknown outcome may name them.
            Err(_) if core.is_poisoned() => {}
            Err(_) => self.blobs.iter().for_each(|blob| blob.mark_obsolete()),
        }
        self.parts.clear();
        result
    }
}

impl Drop for FinalTables {
    fn drop(&mut self) {
        let tables = self.parts.iter().flat_map(|part| &part.tables);
        self.core.discard_files(FileKind::Run, tables.map(|meta| meta.id));
    }
}
