//! Writes rows in key order to tables, one after the other: bulk loads, and the runs of
//! transactions. Until they are committed their files are called runs: see [`Core::name_tables`].

use crate::base::error::Result;
use crate::base::key::{Kind, SeqNo};
use crate::base::ranges::RangeDeletes;
use crate::base::sync::Arc;
use crate::compaction::job::BYTES_PER_ROW;
use crate::db::core::Core;
use crate::fs::Env;
use crate::fs::ledger::Payer;
use crate::table::format::FileKind;
use crate::table::meta::{FileId, TableMeta};
use crate::table::{TableOptions, TableWriter};
use std::path::PathBuf;

/// A file is begun only where there is room for so much of it, in bytes.
const FILE_BYTES: u64 = 32 << 10;

/// A run being written. Dropping it before its end removes what it has written.
pub(crate) struct RunWriter {
    core: Arc<Core>,
    env: Env,
    durable: bool,
    options: TableOptions,
    deletes: RangeDeletes,
    /// The first key that belongs to the present table: range deletes are cut here.
    start: Vec<u8>,
    writer: Option<TableWriter>,
    tables: Vec<TableMeta>,
    files: Vec<FileId>,
}

impl RunWriter {
    /// Begins a run that is to have these range deletes. Its files are made durable if that is
    /// asked for; their names are not.
    pub fn new(
        core: &Arc<Core>,
        durable: bool,
        options: TableOptions,
        deletes: RangeDeletes,
    ) -> RunWriter {
        RunWriter {
            core: core.clone(),
            env: core.env_paid_by(Payer::User),
            durable,
            options,
            deletes,
            start: Vec::new(),
            writer: None,
            tables: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Adds an entry, which must come after all those before it.
    pub fn add(&mut self, key: &[u8], seq: SeqNo, kind: Kind, value: &[u8]) -> Result<()> {
        debug_assert!(kind != Kind::RangeDelete, "those are given at the beginning");
        let table_bytes = self.core.settings.table_bytes;
        let entries_max = self.core.settings.merge_bytes() / BYTES_PER_ROW;
        // A user key is never cut in two.
        let full = |writer: &TableWriter| {
            (writer.estimated_bytes() >= table_bytes || writer.entries() >= entries_max)
                && writer.last_key() != key
        };
        if self.writer.as_ref().is_some_and(full) {
            self.end_table(Some(key))?;
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.begin_table()?,
        };
        writer.add(key, seq, kind, value)
    }

    fn begin_table(&mut self) -> Result<&mut TableWriter> {
        let core = &self.core;
        let id = core.new_file();
        core.foresee(FILE_BYTES, 0, false)?;
        let file = self.env.fs.create(&core.path(FileKind::Run, id))?;
        self.files.push(id);
        let writer = TableWriter::new(file, id, self.options.clone()).lent_by(&core.tables.memory);
        Ok(self.writer.insert(writer))
    }

    /// Ends the present table, if there is one; the next begins with the key `next`.
    fn end_table(&mut self, next: Option<&[u8]>) -> Result<()> {
        assert!(next.is_none_or(|next| *self.start <= *next), "tables of a run are in key order");
        let deletes = self.deletes.clip(&self.start, next);
        if self.writer.is_none() && !deletes.is_empty() {
            self.begin_table()?;
        }
        if let Some(next) = next {
            debug_assert!(self.start.as_slice() < next, "tables ascend");
            self.start = next.to_vec();
        }
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        writer.add_range_deletes(&deletes);
        let meta = if self.durable { writer.finish()? } else { writer.complete()?.0 };
        self.tables.push(meta);
        Ok(())
    }

    /// Ends the run. Whoever gets the tables has to see to their files.
    pub fn finish(mut self) -> Result<Vec<TableMeta>> {
        self.end_table(None)?;
        assert_eq!(self.files.len(), self.tables.len(), "each file is a table of the run");
        self.files.clear();
        Ok(std::mem::take(&mut self.tables))
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        self.writer = None;
        self.core.discard_files(FileKind::Run, self.files.drain(..));
    }
}

impl Core {
    /// Calls these runs, which are about to be committed, tables; the names are durable on return.
    /// A file that is called a run is of something that was not committed, whatever happened: a
    /// repair without a manifest goes by that.
    pub fn name_tables<'a>(&self, metas: impl Iterator<Item = &'a TableMeta>) -> Result<()> {
        let fs = &*self.env.fs;
        for meta in metas {
            let (run, table) = self.run_names(meta.id);
            // A commit that failed may have left it with its new name.
            if fs.exists(&run)? || !fs.exists(&table)? {
                fs.rename(&run, &table)?;
            }
        }
        fs.sync_dir(&self.dir)
    }

    /// Calls these tables, which are not committed, runs.
    pub fn name_runs<'a>(&self, metas: impl Iterator<Item = &'a TableMeta>) -> Result<()> {
        let fs = &*self.env.fs;
        for meta in metas {
            let (run, table) = self.run_names(meta.id);
            if !fs.exists(&run)? {
                fs.rename(&table, &run)?;
            }
        }
        Ok(())
    }

    /// What a table that is not committed is called: a run, unless a commit has failed.
    pub fn kind_of_run(&self, id: FileId) -> FileKind {
        let is_run = self.env.fs.exists(&self.path(FileKind::Run, id));
        if is_run.unwrap_or(true) { FileKind::Run } else { FileKind::Table }
    }

    fn run_names(&self, id: FileId) -> (PathBuf, PathBuf) {
        (self.path(FileKind::Run, id), self.path(FileKind::Table, id))
    }

    /// Removes files that are called runs or, since a commit has failed, tables, and that no edit
    /// names; not after a failure that leaves that open.
    pub fn discard_runs(&self, ids: &[FileId]) {
        if self.is_poisoned() {
            return;
        }
        for &id in ids {
            let (run, table) = self.run_names(id);
            let there = [(FileKind::Run, run), (FileKind::Table, table)];
            for (kind, path) in there {
                if self.env.fs.exists(&path).unwrap_or(true) {
                    self.discard_files(kind, [id]);
                }
            }
        }
    }
}
