//! Writes rows in key order to tables, one after the other: bulk loads, and the runs of
//! transactions.

use super::core::Core;
use crate::base::error::Result;
use crate::base::key::{Kind, SeqNo};
use crate::base::ranges::RangeDeletes;
use crate::base::sync::Arc;
use crate::table::format::FileKind;
use crate::table::meta::{FileId, TableMeta};
use crate::table::{TableOptions, TableWriter};

/// A run being written. Dropping it before its end removes what it has written.
pub(crate) struct RunWriter {
    core: Arc<Core>,
    kind: FileKind,
    options: TableOptions,
    deletes: RangeDeletes,
    /// The first key that belongs to the present table: range deletes are cut here.
    start: Vec<u8>,
    writer: Option<TableWriter>,
    tables: Vec<TableMeta>,
    files: Vec<FileId>,
}

impl RunWriter {
    /// Begins a run of files of this kind, which is to have these range deletes. Those of kind
    /// [`FileKind::Table`] are made durable.
    pub fn new(
        core: &Arc<Core>,
        kind: FileKind,
        options: TableOptions,
        deletes: RangeDeletes,
    ) -> RunWriter {
        RunWriter {
            core: core.clone(),
            kind,
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
        let table_bytes = self.core.settings.table_bytes;
        // A user key is never cut in two.
        let full = |writer: &TableWriter| {
            writer.estimated_bytes() >= table_bytes && writer.last_key() != key
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
        self.files.push(id);
        let file = core.env.fs.create(&core.path(self.kind, id))?;
        Ok(self.writer.insert(TableWriter::new(file, id, self.options)))
    }

    /// Ends the present table, if there is one; the next begins with the key `next`.
    fn end_table(&mut self, next: Option<&[u8]>) -> Result<()> {
        let deletes = self.deletes.clip(&self.start, next);
        if self.writer.is_none() && !deletes.is_empty() {
            self.begin_table()?;
        }
        if let Some(next) = next {
            self.start = next.to_vec();
        }
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        writer.add_range_deletes(&deletes);
        let meta = match self.kind {
            FileKind::Table => writer.finish()?,
            _ => writer.complete()?.0,
        };
        self.tables.push(meta);
        Ok(())
    }

    /// Ends the run. Whoever gets the tables has to see to their files.
    pub fn finish(mut self) -> Result<Vec<TableMeta>> {
        self.end_table(None)?;
        self.files.clear();
        Ok(std::mem::take(&mut self.tables))
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        self.writer = None;
        self.core.discard_files(self.kind, self.files.drain(..));
    }
}
