//! What the files of a database are called.

use crate::base::error::Result;
use crate::fs::Fs;
use crate::table::meta::FileId;
use std::collections::BTreeMap;
use std::path::Path;

/// The kinds of files in a database's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// `000123.table`
    Table,
    /// `000123.wal`
    Wal,
    /// `000123.blob`
    Blob,
    /// `000123.run`: a table with what is not committed.
    Run,
    /// `000123.prepared`: the name of a prepared transaction, and its tables.
    Prepared,
    /// `MANIFEST-000123`
    Manifest,
    /// `CURRENT`, which names the manifest in use.
    Current,
    /// `LOCK`, held while the database is open.
    Lock,
}

/// The name of the lock file.
pub const LOCK: &str = "LOCK";

/// The files of a database by kind and number, with their lengths.
pub type Files = BTreeMap<(FileKind, FileId), u64>;

/// The files of a database that are in a directory.
pub fn list_files(fs: &dyn Fs, dir: &Path) -> Result<Files> {
    let named = fs.list(dir)?.into_iter().filter(|entry| !entry.is_dir);
    Ok(named.filter_map(|entry| Some((parse_file_name(&entry.name)?, entry.bytes))).collect())
}

/// The name of a file; `id` is ignored for kinds of which there is only one.
pub fn file_name(kind: FileKind, id: FileId) -> String {
    match kind {
        FileKind::Table => format!("{id:06}.table"),
        FileKind::Wal => format!("{id:06}.wal"),
        FileKind::Blob => format!("{id:06}.blob"),
        FileKind::Run => format!("{id:06}.run"),
        FileKind::Prepared => format!("{id:06}.prepared"),
        FileKind::Manifest => format!("MANIFEST-{id:06}"),
        FileKind::Current => "CURRENT".to_owned(),
        FileKind::Lock => LOCK.to_owned(),
    }
}

/// The kind and number of the file of this name (number 0 for `CURRENT` and `LOCK`), if it is one
/// of a database's.
pub fn parse_file_name(name: &str) -> Option<(FileKind, FileId)> {
    let (kind, digits) = match name {
        "CURRENT" => return Some((FileKind::Current, 0)),
        LOCK => return Some((FileKind::Lock, 0)),
        _ => match (name.strip_prefix("MANIFEST-"), name.split_once('.')) {
            (Some(digits), _) => (FileKind::Manifest, digits),
            (None, Some((digits, "table"))) => (FileKind::Table, digits),
            (None, Some((digits, "wal"))) => (FileKind::Wal, digits),
            (None, Some((digits, "blob"))) => (FileKind::Blob, digits),
            (None, Some((digits, "run"))) => (FileKind::Run, digits),
            (None, Some((digits, "prepared"))) => (FileKind::Prepared, digits),
            _ => return None,
        },
    };
    let id = digits.parse().ok()?;
    // Only the one way in which the number is written counts.
    (file_name(kind, id) == name).then_some((kind, id))
}
