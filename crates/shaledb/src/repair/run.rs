//! The steps of a repair, in their order.

use super::catalog::Catalog;
use super::options::{RepairOptions, RepairProgress};
use super::prepared;
use super::report::{CatalogStanding, RepairReport, RepairedTree};
use super::rows::{self, Sources};
use super::work::{Work, list};
use crate::base::config::Config;
use crate::base::error::{Error, Result};
use crate::db::{Background, Db, OpenOptions, make_whole};
use crate::fs::{Env, Fs, Lock};
use crate::table::format::{Files, LOCK};
use std::collections::BTreeMap;
use std::path::Path;

/// Writes what can be salvaged of the database in `from` to a new one in `to`, which must be empty
/// or absent. See the module for what that is. The new one is made in a directory beside `to`,
/// whose name ends in `.unfinished`, and gets its name when all of it is durable; if that fails it
/// is removed, and what a killed process left of one is replaced. `from` is not changed, and nobody
/// can write to it meanwhile; where its lock cannot be had (nothing can be written there, and it
/// has no lock file) a warning is logged. `progress` is called now and then.
///
/// # Errors
/// [`Error::NoDatabase`] if `from` has no file of a database; [`Error::InvalidArgument`] if `to`
/// is not empty; [`Error::Locked`] if `from` is in use; [`Error::Config`] for a setting out of
/// range. Damage is no error: it is reported.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// # tree.put(b"a", b"1")?;
/// # db.flush()?;
/// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
/// # db.close()?;
/// # let name = &files.iter().find(|file| file.level.is_some()).unwrap().name;
/// # let path = std::path::Path::new("/db").join(name);
/// # let mut bytes = shaledb::fs::read_all(&*env.fs, &path)?;
/// # bytes[10] ^= 1; // in its only block
/// # env.fs.create(&path)?.append(&bytes)?;
/// use shaledb::repair::{RepairOptions, repair};
///
/// let options = RepairOptions { env, ..RepairOptions::default() };
/// let report = repair("/db".as_ref(), "/saved".as_ref(), &options, &mut |_| ())?;
/// print!("{report}"); // what was damaged, what was saved
/// assert!(!report.is_clean());
/// # Ok::<(), shaledb::Error>(())
/// ```
pub fn repair(
    from: &Path,
    to: &Path,
    options: &RepairOptions,
    progress: &mut dyn FnMut(RepairProgress),
) -> Result<RepairReport> {
    let fs = &*options.env.fs;
    options.config.validate()?;
    let files = list(&options.env, from)?;
    // It takes long, and the process may change its directory meanwhile.
    let from = &fs.absolute(from)?;
    let _lock = lock(fs, from)?;
    make_whole(fs, to, "repaired database", |to| write(from, &files, to, options, progress))
}

/// Reads all that a repair of the database in `from` would, and says what is damaged, without
/// writing anything: for a database that does not open ([`Db::verify`] checks one that does).
/// Values in files of their own are not read. The report names no trees.
///
/// # Errors
/// [`Error::NoDatabase`] if `from` has no file of a database; [`Error::Locked`] if it is in use.
/// Damage is no error: it is reported.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// # tree.put(b"a", b"1")?;
/// # db.flush()?;
/// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
/// # db.close()?;
/// # let name = &files.iter().find(|file| file.level.is_some()).unwrap().name;
/// # env.fs.remove(&std::path::Path::new("/db").join(name))?;
/// let report = shaledb::repair::examine(&env, "/db".as_ref(), &mut |_| ())?;
/// assert_eq!(&report.files[0].name, name);
/// # Ok::<(), shaledb::Error>(())
/// ```
pub fn examine(
    env: &Env,
    from: &Path,
    progress: &mut dyn FnMut(RepairProgress),
) -> Result<RepairReport> {
    let files = list(env, from)?;
    let from = &env.fs.absolute(from)?;
    let _lock = lock(&*env.fs, from)?;
    let mut report = RepairReport::default();
    read(env, from, &files, &mut report, progress)?;
    Ok(report)
}

/// The lock of the damaged database; `None` if it cannot be had.
fn lock(fs: &dyn Fs, from: &Path) -> Result<Option<Box<dyn Lock>>> {
    match fs.lock_shared(&from.join(LOCK)) {
        // No lock file, no right to open it, or a file system without locks.
        Err(error @ Error::Io { .. }) => {
            tracing::warn!(%error, "the damaged database is read without its lock");
            Ok(None)
        }
        other => Ok(Some(other?)),
    }
}

/// Reads what is left of the files.
fn read<'a>(
    env: &'a Env,
    from: &'a Path,
    files: &'a Files,
    report: &mut RepairReport,
    progress: &mut dyn FnMut(RepairProgress),
) -> Result<(Catalog, Work<'a>, Sources)> {
    let mut catalog = Catalog::find(env, from, files, report)?;
    let dictionaries = None;
    let mut work = Work { env, from, files, bytes_done: 0, bytes_total: 0, rows: 0, dictionaries };
    work.bytes_total = work.total();
    let sources = Sources::read(&mut work, &mut catalog, report, progress)?;
    assert_eq!(catalog.complete, report.catalog == CatalogStanding::Sound);
    Ok((catalog, work, sources))
}

/// Writes what can be salvaged of these files to a database in `to`.
fn write(
    from: &Path,
    files: &Files,
    to: &Path,
    options: &RepairOptions,
    progress: &mut dyn FnMut(RepairProgress),
) -> Result<RepairReport> {
    let env = &options.env;
    let mut report = RepairReport::default();
    let (catalog, mut work, mut sources) = read(env, from, files, &mut report, progress)?;
    let config = Config { create: true, ..options.config.clone() };
    let open = OpenOptions { env: env.clone(), background: Background::Stepped, read_only: false };
    let db = Db::open_any(to, &config, open)?;
    let mut trees = BTreeMap::new();
    for (id, known) in catalog.trees {
        let Some(source) = sources.trees.remove(&id) else { continue };
        let tree_config = known.config.unwrap_or_else(|| options.config.tree.clone());
        let tree = db.create_tree(&known.name, tree_config)?;
        let repaired = rows::write(&mut work, source, &tree, &mut report, progress)?;
        report.trees.push(RepairedTree { named: known.named, ..repaired });
        trees.insert(id, tree);
    }
    assert!(sources.trees.is_empty(), "all that was found is written");
    assert_eq!(report.rows(), work.rows, "each row is of a tree");
    for (xid, undecided) in &sources.prepared.undecided {
        if catalog.prepared.contains_key(xid) {
            let what = format!(
                "the decision on a transaction `{}` is lost, and another one is prepared under the \
                 same name; the one in the log is left out",
                xid.escape_ascii()
            );
            report.note(&work.last_log(), None, what);
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
