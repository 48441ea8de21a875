//! What the steps of a repair share.

use super::options::{RepairProgress, RepairStep};
use crate::base::error::{Error, Result};
use crate::fs::Env;
use crate::table::format::{FileKind, Files, list_files};
use std::path::Path;

/// What the steps share.
pub(super) struct Work<'a> {
    pub env: &'a Env,
    pub from: &'a Path,
    pub files: &'a Files,
    pub bytes_done: u64,
    pub bytes_total: u64,
    pub rows: u64,
}

impl Work<'_> {
    /// The bytes of tables and logs.
    pub fn total(&self) -> u64 {
        let read = |kind| matches!(kind, FileKind::Table | FileKind::Run | FileKind::Wal);
        self.files.iter().filter(|((kind, _), _)| read(*kind)).map(|(_, bytes)| bytes).sum()
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
