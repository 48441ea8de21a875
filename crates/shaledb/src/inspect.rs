//! What is in the files of a database, for people and tools: nothing is changed and no lock is
//! taken, so that a database in use, or one too damaged to be opened, can be looked at too. (Of one
//! in use the answer may mix two moments.)
//!
//! [`directory`] tells which files there are and what each is for, [`open`] what is in one of them.
//! What they answer with can be written as JSON (serde). Names of fields may change with any
//! version of the format.

use crate::base::config::TreeConfig;
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SEQ_MAX, SeqNo};
use crate::fs::{DirEntry, Env};
use crate::table::blob::{BlobReader, BlobRef};
use crate::table::format::{FileKind, file_name, parse_file_name};
use crate::version::manifest::{self, Recovered, RecoveredTree};
use crate::version::{TreeId, mark};
use crate::wal::inspect::salvage;
use crate::wal::payload::prepared_ops;
use crate::wal::{Op, PreparedLog, WalBatch};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub use crate::table::meta::{FileId, TableMeta, Why};
pub use crate::table::tools::inspect::{
    BlockInspection, CodecTotal, RangeDeleteInspection, TableInspection, key_text,
};
pub use crate::version::PreparedTables;
pub use crate::version::edit::{Edit, LogStart, TreeEdit};
pub use crate::version::manifest::{ManifestDump, ManifestLine};
pub use crate::wal::inspect::{WalDump, WalLine};

/// What is in one file; see [`open`].
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.flush()?;
/// # let dir = std::path::Path::new("/db");
/// use shaledb::inspect::{Inspection, directory_in, open_in};
///
/// for file in directory_in(&env, dir)?.files.iter().filter(|file| file.name != "LOCK") {
///     match open_in(&env, &dir.join(&file.name))? {
///         Inspection::Table(table) => println!("{} entries", table.meta.entries),
///         Inspection::Wal(records) => println!("{} records", records.count()),
///         Inspection::Manifest(edits) => println!("{} edits", edits.count()),
///         Inspection::Blob(blob) => println!("a value of {} bytes", blob.value_bytes),
///         Inspection::Current { manifest } => println!("{manifest} is the current manifest"),
///     }
/// }
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Debug)]
pub enum Inspection {
    /// A table, read already.
    Table(Box<TableInspection>),
    /// A log file; its records are read one by one.
    Wal(WalDump),
    /// A manifest; its edits are read one by one.
    Manifest(ManifestDump),
    /// A large value, read and checked already.
    Blob(BlobInspection),
    /// The file that names the current manifest.
    Current {
        /// The name of that manifest.
        manifest: String,
    },
}

/// A blob file, described.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let dir = std::path::Path::new("/db");
/// use shaledb::inspect::{Inspection, directory_in, open_in};
///
/// db.tree_or_create("t")?.put(b"video", &vec![7; 2 << 20])?;
/// let files = directory_in(&env, dir)?.files;
/// let file = files.iter().find(|file| file.name.ends_with(".blob")).unwrap();
/// let Inspection::Blob(blob) = open_in(&env, &dir.join(&file.name))? else { panic!() };
/// assert_eq!((blob.value_bytes, blob.damage), (2 << 20, None));
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct BlobInspection {
    /// Its number.
    pub id: FileId,
    /// Its length in bytes.
    pub file_bytes: u64,
    /// The length of the value in it in bytes, as its own length tells.
    pub value_bytes: u64,
    /// What is wrong with it, if anything.
    pub damage: Option<String>,
}

/// Reads a file of a database, of whatever kind its name says it is. Tables and blobs are read
/// whole and checked; of logs and manifests only the start is read before they are iterated over.
///
/// # Errors
/// [`Error::InvalidArgument`] if no file of a database has such a name; [`Error::Corruption`] if it
/// is damaged so that nothing can be said of it.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("people.db");
/// # shaledb::Db::open(&path, shaledb::Config::default())?;
/// use shaledb::inspect::{Inspection, open};
///
/// let Inspection::Current { manifest } = open(&path.join("CURRENT"))? else { panic!() };
/// assert!(manifest.starts_with("MANIFEST-"));
/// # Ok::<(), shaledb::Error>(())
/// ```
pub fn open(path: &Path) -> Result<Inspection> {
    open_in(&Env::os(), path)
}

/// As [`open`], in a world of the caller's choice.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// use shaledb::inspect::{Inspection, open_in};
///
/// let found = open_in(&env, "/db/CURRENT".as_ref())?;
/// assert!(matches!(found, Inspection::Current { .. }));
/// # Ok::<(), shaledb::Error>(())
/// ```
pub fn open_in(env: &Env, path: &Path) -> Result<Inspection> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let fs = &*env.fs;
    match parse_file_name(name) {
        Some((FileKind::Table | FileKind::Run, id)) => {
            Ok(Inspection::Table(Box::new(TableInspection::open(env, path, id)?)))
        }
        Some((FileKind::Wal, id)) => Ok(Inspection::Wal(WalDump::open(fs, path, id)?)),
        Some((FileKind::Manifest | FileKind::Prepared, id)) => {
            Ok(Inspection::Manifest(ManifestDump::open(fs, path, id)?))
        }
        Some((FileKind::Blob, id)) => Ok(Inspection::Blob(inspect_blob(env, path, id)?)),
        Some((FileKind::Current, _)) => {
            let id = manifest::current(fs, path.parent().unwrap_or(Path::new(".")))?;
            Ok(Inspection::Current { manifest: file_name(FileKind::Manifest, id) })
        }
        Some((FileKind::Lock, _)) | None => Err(Error::InvalidArgument(format!(
            "{} cannot be inspected; name a file such as 000123.table, 000123.run, 000123.wal, \
             000123.blob, 000123.prepared, MANIFEST-000123 or CURRENT",
            path.display()
        ))),
    }
}

fn inspect_blob(env: &Env, path: &Path, id: FileId) -> Result<BlobInspection> {
    let file = env.fs.open(path)?;
    let file_bytes = file.len()?;
    let value_bytes = BlobRef::value_bytes(file_bytes).unwrap_or(0);
    let reference = BlobRef { file: id, bytes: value_bytes };
    let damage = match BlobReader::open(file, reference).and_then(|mut reader| reader.verify()) {
        Ok(_) => None,
        Err(Error::Corruption { offset, what, .. }) => Some(format!("at byte {offset}: {what}")),
        Err(error) => return Err(error),
    };
    Ok(BlobInspection { id, file_bytes, value_bytes, damage })
}

/// What a file is to its database.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// use shaledb::inspect::{Standing, directory_in};
///
/// env.fs.create("/db/999999.table".as_ref())?; // as a crash may leave it
/// env.fs.create("/db/notes".as_ref())?;
/// let files = directory_in(&env, "/db".as_ref())?.files;
/// let standing = |name| files.iter().find(|file| file.name == name).unwrap().standing;
/// assert_eq!(standing("CURRENT"), Standing::Needed);
/// assert_eq!(standing("999999.table"), Standing::Orphan);
/// assert_eq!(standing("notes"), Standing::Foreign);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The database needs it.
    Needed,
    /// The next open removes it: left over by a crash, or no longer needed.
    Orphan,
    /// The database needs it and it is not there.
    Missing,
    /// Since the manifest cannot be read, it is not known whether it is needed.
    Unknown,
    /// It is not a database's.
    Foreign,
}

/// A file of a directory.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.flush()?;
/// # let dir = std::path::Path::new("/db");
/// for file in shaledb::inspect::directory_in(&env, dir)?.files {
///     let tree = file.tree.as_deref().unwrap_or("");
///     println!("{:>10} {} {tree} {:?}", file.bytes, file.name, file.standing);
///     assert_eq!(file.damage, None);
/// }
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct FileInspection {
    /// Its name.
    pub name: String,
    /// Its length in bytes; of a missing table what it should be, of other missing files 0.
    pub bytes: u64,
    /// What it is to the database.
    pub standing: Standing,
    /// The name of the tree that a table or blob belongs to.
    pub tree: Option<String>,
    /// The level that a table is in.
    pub level: Option<usize>,
    /// What is plainly wrong with it. (Only lengths are looked at.)
    pub damage: Option<String>,
}

/// A tree by the manifest.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.flush()?;
/// # let dir = std::path::Path::new("/db");
/// let tree = &shaledb::inspect::directory_in(&env, dir)?.trees[0];
/// assert_eq!((tree.name.as_str(), tree.tables, tree.entries), ("t", 1, 1));
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct TreeInspection {
    /// Its number.
    pub id: TreeId,
    /// Its name.
    pub name: String,
    /// Its settings.
    pub config: TreeConfig,
    /// Whether its build has not ended: it is being built now, or the next open drops it.
    pub unfinished: bool,
    /// How many tables it has.
    pub tables: u64,
    /// The bytes of its tables.
    pub bytes: u64,
    /// The entries of its tables.
    pub entries: u64,
    /// Every operation up to this number is in its tables.
    pub flushed_seq: SeqNo,
}

/// A database's directory, described.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.flush()?;
/// # let dir = std::path::Path::new("/db");
/// let found = shaledb::inspect::directory_in(&env, dir)?;
/// assert!(found.damage.is_none());
/// let bytes: u64 = found.files.iter().map(|file| file.bytes).sum();
/// println!("{} trees, {bytes} bytes", found.trees.len());
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct DirectoryInspection {
    /// The directory.
    pub path: PathBuf,
    /// What keeps the manifest from being read, if anything does; then no tree is known.
    pub damage: Option<String>,
    /// The trees, by number.
    pub trees: Vec<TreeInspection>,
    /// The files, by name; missing ones last.
    pub files: Vec<FileInspection>,
}

/// Looks at a directory: what files there are and which of them its database needs.
///
/// # Errors
/// [`Error::NoDatabase`] if it has no file of a database.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("people.db");
/// # shaledb::Db::open(&path, shaledb::Config::default())?;
/// let found = shaledb::inspect::directory(&path)?;
/// assert!(found.files.iter().any(|file| file.name == "CURRENT"));
/// # Ok::<(), shaledb::Error>(())
/// ```
pub fn directory(path: &Path) -> Result<DirectoryInspection> {
    directory_in(&Env::os(), path)
}

/// As [`directory`], in a world of the caller's choice.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.flush()?;
/// # let dir = std::path::Path::new("/db");
/// assert_eq!(shaledb::inspect::directory_in(&env, dir)?.trees[0].name, "t");
/// # Ok::<(), shaledb::Error>(())
/// ```
pub fn directory_in(env: &Env, path: &Path) -> Result<DirectoryInspection> {
    let fs = &*env.fs;
    if !fs.exists(path)? {
        return Err(Error::NoDatabase(path.to_owned()));
    }
    let entries: Vec<_> = fs.list(path)?.into_iter().filter(|entry| !entry.is_dir).collect();
    if !entries.iter().any(|entry| parse_file_name(&entry.name).is_some()) {
        return Err(Error::NoDatabase(path.to_owned()));
    }
    let (catalog, damage) = match manifest::recover(fs, path) {
        Ok(catalog) => (Some(catalog), None),
        Err(error @ (Error::Corruption { .. } | Error::NoDatabase(_))) => {
            (None, Some(error.to_string()))
        }
        Err(error) => return Err(error),
    };
    let (mut needed, mut unfinished) = (BTreeMap::new(), BTreeMap::new());
    if let Some(catalog) = &catalog {
        needed = needed_files(env, path, catalog, &entries)?;
        catalog.unfinished.values().for_each(|tree| add_tables(&mut unfinished, tree));
    }
    let files = describe(entries, needed, unfinished, catalog.is_some());
    let all = catalog.iter().flat_map(|catalog| catalog.trees.iter().chain(&catalog.unfinished));
    let mut trees: Vec<TreeInspection> = all
        .map(|(id, tree)| {
            let tables = || tree.levels.iter().flatten();
            let is_there = catalog.as_ref().is_some_and(|catalog| catalog.trees.contains_key(id));
            TreeInspection {
                id: *id,
                name: tree.name.clone(),
                config: tree.config.clone(),
                unfinished: !is_there,
                tables: tables().count() as u64,
                bytes: tables().map(|meta| meta.file_bytes).sum(),
                entries: tables().map(|meta| meta.entries).sum(),
                flushed_seq: tree.flushed_seq,
            }
        })
        .collect();
    trees.sort_by_key(|tree| tree.id);
    assert!(trees.is_sorted_by(|a, b| a.id < b.id), "a tree is there, or is being built");
    assert!(damage.is_none() || trees.is_empty(), "without a manifest no tree is known");
    Ok(DirectoryInspection { path: path.to_owned(), damage, trees, files })
}

/// What is known of a file that is needed.
#[derive(Default)]
struct Need {
    bytes: Option<u64>,
    tree: Option<String>,
    level: Option<usize>,
}

type Needed = BTreeMap<(FileKind, FileId), Need>;

/// The tables of a tree, and the blobs that they name.
fn add_tables(needed: &mut Needed, tree: &RecoveredTree) {
    for (level, meta) in
        tree.levels.iter().enumerate().flat_map(|(at, t)| t.iter().map(move |t| (at, t)))
    {
        let need = |bytes, level| Need { bytes, tree: Some(tree.name.clone()), level };
        needed.insert((FileKind::Table, meta.id), need(Some(meta.file_bytes), Some(level)));
        for &blob in &meta.blobs {
            needed.insert((FileKind::Blob, blob), need(None, None));
        }
    }
}

/// The files that there are, and those that are missing; which of them are `unfinished` trees'.
fn describe(
    entries: Vec<DirEntry>,
    mut needed: Needed,
    mut unfinished: Needed,
    catalog: bool,
) -> Vec<FileInspection> {
    let mut files = Vec::new();
    for entry in entries {
        let kind = parse_file_name(&entry.name);
        let need = kind.and_then(|kind| needed.remove(&kind));
        let standing = match (kind, &need, catalog) {
            (None, ..) => Standing::Foreign,
            (Some((FileKind::Current | FileKind::Lock, _)), ..) | (_, Some(_), _) => {
                Standing::Needed
            }
            (_, None, true) => Standing::Orphan,
            (_, None, false) => Standing::Unknown,
        };
        let of_build = kind.and_then(|kind| unfinished.remove(&kind));
        let need = need.or(of_build).unwrap_or_default();
        let damage = need
            .bytes
            .filter(|bytes| *bytes != entry.bytes)
            .map(|bytes| format!("it has {} bytes, {bytes} were written", entry.bytes));
        files.push(FileInspection {
            name: entry.name,
            bytes: entry.bytes,
            standing,
            tree: need.tree,
            level: need.level,
            damage,
        });
    }
    for ((kind, id), need) in needed {
        files.push(FileInspection {
            name: file_name(kind, id),
            bytes: need.bytes.unwrap_or(0),
            standing: Standing::Missing,
            tree: need.tree,
            level: need.level,
            damage: Some("it is missing".to_owned()),
        });
    }
    let names: BTreeSet<&String> = files.iter().map(|file| &file.name).collect();
    assert_eq!(names.len(), files.len(), "a file is there or is missing");
    files
}

/// The numbered files that the database needs.
fn needed_files(
    env: &Env,
    dir: &Path,
    catalog: &Recovered,
    entries: &[DirEntry],
) -> Result<Needed> {
    let mut needed = BTreeMap::new();
    needed.insert((FileKind::Manifest, catalog.manifest_id), Need::default());
    catalog.trees.values().for_each(|tree| add_tables(&mut needed, tree));
    for (tree, tables) in catalog.prepared.values().flatten() {
        let tree = catalog.trees.get(tree).map(|tree| tree.name.clone());
        for meta in tables {
            let need = Need { bytes: Some(meta.file_bytes), tree: tree.clone(), level: None };
            let is_run = entries.iter().any(|file| file.name == file_name(FileKind::Run, meta.id));
            let kind = if is_run { FileKind::Run } else { FileKind::Table };
            needed.insert((kind, meta.id), need);
            needed.extend(meta.blobs.iter().map(|id| ((FileKind::Blob, *id), Need::default())));
        }
    }
    let files = || entries.iter().filter_map(|entry| parse_file_name(&entry.name));
    for (kind, id) in files().filter(|(kind, _)| *kind == FileKind::Prepared) {
        let mut found = mark::read(&*env.fs, &dir.join(file_name(kind, id)), id)?;
        if let Ok(found) = &mut found {
            found.trees.retain(|(tree, _)| !catalog.unfinished.contains_key(tree));
        }
        let known = |found: &PreparedTables| catalog.prepared.get(&found.xid).cloned();
        if found.is_ok_and(|found| known(&found).is_some_and(|trees| trees == found.trees)) {
            needed.insert((kind, id), Need::default());
        }
    }
    let wals = files().filter(|(kind, id)| *kind == FileKind::Wal && *id >= catalog.log.file);
    let wals: BTreeSet<(FileKind, FileId)> = wals.collect();
    needed.extend(wals.iter().map(|wal| (*wal, Need::default())));
    let mut add_blob = |op: &Op<'_>| {
        if let Some(tree) = catalog.trees.get(&op.tree)
            && op.kind == Kind::Blob
            && op.seq > tree.flushed_seq
            && let Some(blob) = BlobRef::decode(op.value)
        {
            let need = Need { tree: Some(tree.name.clone()), ..Need::default() };
            needed.insert((FileKind::Blob, blob.file), need);
        }
    };
    let mut prepared = PreparedLog::default();
    for (kind, id) in wals {
        let mut read = |batch: WalBatch<'_>| {
            prepared.read(&batch, &mut |op, _| {
                add_blob(op);
                Ok(())
            })
        };
        salvage(&*env.fs, &dir.join(file_name(kind, id)), id, &mut read)?;
    }
    for undecided in prepared.undecided.values() {
        prepared_ops(&undecided.ops, SEQ_MAX).for_each(|op| add_blob(&op));
    }
    Ok(needed)
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
