//! Repair: what a damaged database still has is written to a new one.
//!
//! 1. Find out which trees and tables there are: from the manifest; from those of its edits that
//!    are sound if it is damaged; from the tables themselves, each of which names its tree, if
//!    there is none.
//! 2. Read every table and note what cannot be read.
//! 3. Read the log: the operations that are in no table, and those older ones that damaged parts
//!    of tables may have held.
//! 4. Tree by tree, merge all of that by key and sequence number, apply deletes, read the values
//!    that are blobs, and load the rows that are left into a tree of the same name and settings.
//!
//! The damaged database is not changed. The result has no history: a snapshot's worth of rows.
//! Sources are ordered by sequence numbers alone, so levels need not be known.
//!
//! # What may come back
//! Data that is lost can no longer hide what is older. Where a lost part held the newest version
//! of a key, an older one may show; where it held a delete, the row may be there again. If the
//! manifest is lost, tables that it no longer named, but that were not yet removed, are taken in,
//! and so are log files: rows deleted long ago may come back, dropped trees too. Equal sequence
//! numbers (0, for rows that a compaction found to be older than every reader) are then decided
//! by the number of the file; bulk-loaded rows, whose numbers only the manifest knew, count as 0.
//! So do those of transactions that did not fit their memory. What was not committed does not come
//! back: until then files are called `.run`, which are left out unless a `.prepared` file says that
//! they are of a prepared transaction. One that was being committed, or prepared, when the machine
//! stopped may be found committed, or prepared; of a bulk load, or a large commit that was not
//! prepared, that was just being finished, a part.

mod catalog;
mod prepared;
mod report;
mod rows;

pub use report::{CatalogStanding, FileDamage, LostRange, RepairReport, RepairedTree};

use self::catalog::Catalog;
use self::rows::Sources;
use super::{Background, Db, OpenOptions};
use crate::base::config::Config;
use crate::base::error::{Error, Result};
use crate::fs::Env;
use crate::table::format::{FileKind, file_name, parse_file_name};
use crate::table::meta::FileId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// How to repair.
///
/// ```
/// use shale::repair::RepairOptions;
/// use shale::{Config, TreeConfig};
///
/// // If the settings of a tree are lost, it gets those.
/// let tree = TreeConfig { block_bytes: 4096, ..TreeConfig::default() };
/// let config = Config { tree, ..Config::default() };
/// let options = RepairOptions { config, ..RepairOptions::default() };
/// assert!(options.config.validate().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct RepairOptions {
    /// The settings of the new database; [`Config::tree`] is used for trees whose own settings are
    /// lost.
    pub config: Config,
    /// Disk and clock, of both databases. Default [`Env::os`].
    pub env: Env,
}

impl Default for RepairOptions {
    fn default() -> RepairOptions {
        RepairOptions { config: Config::default(), env: Env::os() }
    }
}

/// What a repair is doing.
///
/// ```
/// # let env = shale::Env::memory();
/// # let options = shale::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.flush()?;
/// # db.close()?;
/// # let (from, to) = ("/db".as_ref(), "/saved".as_ref());
/// # let options = shale::repair::RepairOptions { env, ..Default::default() };
/// use shale::repair::{RepairStep, repair};
///
/// let mut steps = Vec::new();
/// repair(from, to, &options, &mut |at| steps.push(at.step))?;
/// assert_eq!(steps.first(), Some(&RepairStep::Reading));
/// assert_eq!(steps.last(), Some(&RepairStep::Writing));
/// # Ok::<(), shale::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairStep {
    /// Reading and checking the damaged database.
    Reading,
    /// Writing rows to the new one.
    Writing,
}

/// How far a repair has come.
///
/// ```
/// # let env = shale::Env::memory();
/// # let options = shale::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.close()?;
/// # let (from, to) = ("/db".as_ref(), "/saved".as_ref());
/// # let options = shale::repair::RepairOptions { env, ..Default::default() };
/// use shale::repair::{RepairProgress, repair};
///
/// let mut show = |at: RepairProgress| {
///     println!("{:?} {}: {} of {} bytes", at.step, at.name, at.bytes_done, at.bytes_total);
/// };
/// repair(from, to, &options, &mut show)?;
/// # Ok::<(), shale::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct RepairProgress {
    /// What it is doing.
    pub step: RepairStep,
    /// The file read, or the tree written.
    pub name: String,
    /// Bytes of files read so far.
    pub bytes_done: u64,
    /// Bytes of files to be read in all.
    pub bytes_total: u64,
    /// Rows written so far.
    pub rows: u64,
}

/// The numbered files of a directory, with their lengths.
type Files = BTreeMap<(FileKind, FileId), u64>;

/// Writes what can be salvaged of the database in `from` to a new one in `to`, which must be empty
/// or absent. See the module for what that is. `from` is not changed, and nobody can write to it
/// meanwhile; where its lock cannot be had (nothing can be written there, and it has no lock file)
/// a warning is logged. `progress` is called now and then.
///
/// # Errors
/// [`Error::NoDatabase`] if `from` has no file of a database; [`Error::InvalidArgument`] if `to`
/// is not empty; [`Error::Locked`] if `from` is in use; [`Error::Config`] for a setting out of
/// range. Damage is no error: it is reported.
///
/// ```
/// # let env = shale::Env::memory();
/// # let options = shale::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// # tree.put(b"a", b"1")?;
/// # db.flush()?;
/// # let files = shale::inspect::directory_in(&env, "/db".as_ref())?.files;
/// # db.close()?;
/// # let name = &files.iter().find(|file| file.level.is_some()).unwrap().name;
/// # let path = std::path::Path::new("/db").join(name);
/// # let mut bytes = shale::fs::read_all(&*env.fs, &path)?;
/// # bytes[10] ^= 1; // in its only block
/// # env.fs.create(&path)?.append(&bytes)?;
/// use shale::repair::{RepairOptions, repair};
///
/// let options = RepairOptions { env, ..RepairOptions::default() };
/// let report = repair("/db".as_ref(), "/saved".as_ref(), &options, &mut |_| ())?;
/// print!("{report}"); // what was damaged, what was saved
/// assert!(!report.is_clean());
/// # Ok::<(), shale::Error>(())
/// ```
pub fn repair(
    from: &Path,
    to: &Path,
    options: &RepairOptions,
    progress: &mut dyn FnMut(RepairProgress),
) -> Result<RepairReport> {
    let env = &options.env;
    let fs = &*env.fs;
    options.config.validate()?;
    let files = list(env, from)?;
    if fs.exists(to)? && !fs.list(to)?.is_empty() {
        return Err(Error::InvalidArgument(format!(
            "the directory {} is not empty; name a new one for the repaired database",
            to.display()
        )));
    }
    let _lock = match fs.lock_shared(&from.join("LOCK")) {
        // No lock file, no right to open it, or a file system without locks.
        Err(error @ Error::Io { .. }) => {
            tracing::warn!(%error, "the damaged database is read without its lock");
            None
        }
        other => Some(other?),
    };
    let mut report = RepairReport::default();
    let mut catalog = Catalog::find(env, from, &files, &mut report)?;
    let mut work = Work { env, from, files: &files, bytes_done: 0, bytes_total: 0, rows: 0 };
    work.bytes_total = work.total();
    let mut sources = Sources::read(&mut work, &mut catalog, &mut report, progress)?;

    let config = Config { create: true, ..options.config.clone() };
    let open = OpenOptions { env: env.clone(), background: Background::Stepped, read_only: false };
    let db = Db::open_in(to, config, open)?;
    let mut trees = BTreeMap::new();
    for (id, known) in catalog.trees {
        let Some(source) = sources.trees.remove(&id) else { continue };
        let tree_config = known.config.unwrap_or_else(|| options.config.tree.clone());
        let tree = db.create_tree(&known.name, tree_config)?;
        let repaired = rows::write(&mut work, source, &tree, &mut report, progress)?;
        report.trees.push(RepairedTree { named: known.named, ..repaired });
        trees.insert(id, tree);
    }
    for (xid, undecided) in &sources.prepared.undecided {
        if catalog.prepared.contains_key(xid) {
            let what = format!(
                "what became of a transaction `{}` is lost, and another one is prepared under the \
                 same name; the one in the log is left out",
                xid.escape_ascii()
            );
            let mut logs = files.keys().filter(|(kind, _)| *kind == FileKind::Wal);
            let last = logs.next_back().map_or(0, |(_, id)| *id);
            report.note(&file_name(FileKind::Wal, last), None, what);
            continue;
        }
        prepared::logged(&work, &db, &trees, xid, &undecided.ops, &mut report)?;
    }
    for (xid, tables) in &catalog.prepared {
        let what = (&xid[..], &tables[..]);
        prepared::in_tables(&mut work, &db, &trees, what, &mut report, progress)?;
    }
    drop(trees);
    db.close()?;
    Ok(report)
}

/// What the steps share.
struct Work<'a> {
    env: &'a Env,
    from: &'a Path,
    files: &'a Files,
    bytes_done: u64,
    bytes_total: u64,
    rows: u64,
}

impl Work<'_> {
    /// The bytes of tables and logs.
    fn total(&self) -> u64 {
        let read = |kind| matches!(kind, FileKind::Table | FileKind::Run | FileKind::Wal);
        self.files.iter().filter(|((kind, _), _)| read(*kind)).map(|(_, bytes)| bytes).sum()
    }

    fn progress(&self, step: RepairStep, name: &str) -> RepairProgress {
        RepairProgress {
            step,
            name: name.to_owned(),
            bytes_done: self.bytes_done.min(self.bytes_total),
            bytes_total: self.bytes_total,
            rows: self.rows,
        }
    }
}

fn list(env: &Env, dir: &Path) -> Result<Files> {
    if !env.fs.exists(dir)? {
        return Err(Error::NoDatabase(dir.to_owned()));
    }
    let entries = env.fs.list(dir)?.into_iter().filter(|entry| !entry.is_dir);
    let files: Files =
        entries.filter_map(|entry| Some((parse_file_name(&entry.name)?, entry.bytes))).collect();
    if files.keys().all(|(kind, _)| *kind == FileKind::Lock) {
        return Err(Error::NoDatabase(dir.to_owned()));
    }
    Ok(files)
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
