//! What the steps of a repair share.

use super::options::{RepairProgress, RepairStep};
use crate::base::error::{Error, Result};
use crate::fs::Env;
use crate::table::compress::Dictionary;
use crate::table::format::{FileKind, Files, file_name, list_files};
use crate::table::salvage;
use std::path::Path;
use std::sync::Arc;

/// What the steps share.
pub(super) struct Work<'a> {
    pub env: &'a Env,
    pub from: &'a Path,
    pub files: &'a Files,
    pub bytes_done: u64,
    pub bytes_total: u64,
    pub rows: u64,
    /// The dictionaries of all tables, once a table has lost its own.
    pub dictionaries: Option<Arc<[Arc<Dictionary>]>>,
}

impl Work<'_> {
    /// The bytes of tables and logs.
    pub fn total(&self) -> u64 {
        let read = |kind| matches!(kind, FileKind::Table | FileKind::Run | FileKind::Wal);
        self.files.iter().filter(|((kind, _), _)| read(*kind)).map(|(_, bytes)| bytes).sum()
    }

    /// The dictionaries that sound tables have.
    pub fn dictionaries(&mut self) -> Arc<[Arc<Dictionary>]> {
        let all = self.dictionaries.get_or_insert_with(|| {
            let mut all: Vec<Arc<Dictionary>> = Vec::new();
            for &(kind, id) in self.files.keys() {
                if !matches!(kind, FileKind::Table | FileKind::Run) {
                    continue;
                }
                let path = self.from.join(file_name(kind, id));
                let found = salvage::dictionary_of(self.env, &path);
                all.extend(found.filter(|found| !all.iter().any(|other| other.is(found))));
            }
            all.into()
        });
        Arc::clone(all)
    }

    /// The name of the log's last file.
    pub fn last_log(&self) -> String {
        let mut logs = self.files.keys().filter(|(kind, _)| *kind == FileKind::Wal);
        file_name(FileKind::Wal, logs.next_back().map_or(0, |(_, id)| *id))
    }

    pub fn progress(&self, step: RepairStep, name: &str) -> RepairProgress {
        RepairProgress {
            step,
            name: name.to_owned(),
            bytes_done: self.bytes_done.min(self.bytes_total),
            bytes_total: self.bytes_total,
            rows: self.rows,
        }
    }
}

/// The numbered files of a directory that has any.
pub(super) fn list(env: &Env, dir: &Path) -> Result<Files> {
    if !env.fs.exists(dir)? {
        return Err(Error::NoDatabase(dir.to_owned()));
    }
    let files = list_files(&*env.fs, dir)?;
    if files.keys().all(|(kind, _)| *kind == FileKind::Lock) {
        return Err(Error::NoDatabase(dir.to_owned()));
    }
    Ok(files)
}
