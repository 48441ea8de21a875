//! The files of a database by their names.

use crate::base::error::Result;
use crate::fs::{DirEntry, Env};
use crate::table::format::{FileKind, parse_file_name};
use crate::table::meta::FileId;
use std::collections::BTreeMap;
use std::path::Path;

/// The lock file.
pub(super) const LOCK: &str = "LOCK";

/// Numbered files, with their lengths.
pub(super) type Files = BTreeMap<(FileKind, FileId), u64>;

/// The files of a database by kind and number, with their lengths.
pub(super) fn list(env: &Env, dir: &Path) -> Result<Files> {
    let entries: Vec<DirEntry> = env.fs.list(dir)?;
    let named = entries.into_iter().filter(|entry| !entry.is_dir);
    Ok(named.filter_map(|entry| Some((parse_file_name(&entry.name)?, entry.bytes))).collect())
}
