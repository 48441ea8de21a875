//! The files of an open database's log.

use crate::db::core::Core;
use crate::table::format::{FileKind, Files};
use crate::table::meta::FileId;
use std::path::PathBuf;

/// The files of the log from `first` on, in the order in which they are read.
pub(super) fn log_files(core: &Core, first: FileId, files: &Files) -> Vec<(FileId, PathBuf)> {
    let logs = files.keys().filter(|(kind, id)| *kind == FileKind::Wal && *id >= first);
    logs.map(|(kind, id)| (*id, core.path(*kind, *id))).collect()
}
