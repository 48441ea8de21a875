//! Databases: open, close, and what concerns all trees.

use crate::batch::shale_batch;
use crate::config::shale_config;
use crate::error::{Fail, shale_error};
use crate::guard::{bound, can_store, free, give, guard, handle, store, text};
use crate::read::shale_bytes;
use crate::tree::shale_tree;
use std::ffi::{c_char, c_void};

/// An open database.
#[derive(Debug)]
pub struct shale_db(pub(crate) shale::Db);

/// A moment in the commit order at which reads can be repeated. What was there then is kept on disk
/// while the snapshot lives.
#[derive(Debug)]
pub struct shale_snapshot(pub(crate) shale::Snapshot);

/// The version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn shale_version() -> *const c_char {
    const { concat!(env!("CARGO_PKG_VERSION"), "\0") }.as_ptr().cast()
}

/// The settings that were given, or the defaults.
///
/// # Safety
/// NULL, or a live handle.
unsafe fn config_of(config: *const shale_config) -> shale::Config {
    // SAFETY: NULL, or a live handle.
    unsafe { config.as_ref() }.map_or_else(shale::Config::default, |config| config.0.clone())
}

/// Opens the database in the folder `path`, or creates it. `config` may be NULL: all defaults. With
/// `read_only` nobody may have it open for writing, nothing is changed on disk, and what its log
/// holds is read too; beside a writer, see shale_open_follower.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_open(
    path: *const c_char,
    config: *const shale_config,
    read_only: bool,
    db: *mut *mut shale_db,
) -> *mut shale_error {
    // SAFETY: a text, NULL or a live handle, a place for a pointer.
    guard(|| unsafe {
        can_store(db, "db")?;
        let (path, config) = (text(path, "path")?, config_of(config));
        let opened = match read_only {
            true => shale::Db::open_read_only(path, config)?,
            false => shale::Db::open(path, config)?,
        };
        give(db, "db", shale_db(opened))
    })
}

/// Opens the database in the folder `path` for reading, also while another process writes it. What
/// is seen is the state at one place of the commit order, and stays so until
/// shale_follower_refresh; commits may be seen that are not durable yet. No lock is taken and
/// nothing is changed on disk. It holds every table and blob file open, and must run on the
/// writer's machine. `config` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_open_follower(
    path: *const c_char,
    config: *const shale_config,
    db: *mut *mut shale_db,
) -> *mut shale_error {
    // SAFETY: a text, NULL or a live handle, a place for a pointer.
    guard(|| unsafe {
        can_store(db, "db")?;
        let (path, config) = (text(path, "path")?, config_of(config));
        give(db, "db", shale_db(shale::Db::open_follower(path, config)?))
    })
}

/// Moves a follower on to what the writer has committed by now. Writes the place in the commit
/// order that it shows to `seq`, which may be NULL. Snapshots, scans and transactions go on reading
/// what they have seen. After an error all is as it was, and another call may succeed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_follower_refresh(
    db: *const shale_db,
    seq: *mut u64,
) -> *mut shale_error {
    // SAFETY: a live handle, and NULL or a place for a number.
    guard(|| unsafe {
        let shown = handle(db, "db")?.0.refresh()?;
        if !seq.is_null() {
            store(seq, "seq", shown)?;
        }
        Ok(())
    })
}

/// Closes a database and frees its handle, also if it fails. What was committed is there at the
/// next open, whether or not this succeeds; an error says that the last of it may not survive a
/// crash of the machine.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_close(db: *mut shale_db) -> *mut shale_error {
    guard(|| {
        if db.is_null() {
            return Err(Fail::null("db"));
        }
        // SAFETY: a handle from `Box::into_raw` that the caller gives back.
        let db = unsafe { Box::from_raw(db) };
        Ok(db.0.close()?)
    })
}

/// Commits a batch: all of it or nothing, over all its trees. With `sync` it is durable when the
/// call returns, and so is every commit before it. The batch stays as it is and can be used again.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_write(
    db: *const shale_db,
    batch: *const shale_batch,
    sync: bool,
) -> *mut shale_error {
    // SAFETY: live handles.
    guard(|| unsafe {
        let batch = handle(batch, "batch")?;
        Ok(handle(db, "db")?.0.write(&batch.0, shale::WriteOptions { sync })?)
    })
}

/// Makes every commit so far durable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_sync(db: *const shale_db) -> *mut shale_error {
    // SAFETY: a live handle.
    guard(|| unsafe { Ok(handle(db, "db")?.0.sync()?) })
}

/// Writes the memtables of a tree, or (NULL) of all trees, to tables, and returns when it is done.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_flush(
    db: *const shale_db,
    tree: *const shale_tree,
) -> *mut shale_error {
    // SAFETY: a live handle, NULL or one.
    guard(|| unsafe {
        let db = &handle(db, "db")?.0;
        Ok(tree.as_ref().map_or_else(|| db.flush(), |tree| tree.tree.flush())?)
    })
}

/// Flushes, and compacts into the last level the keys of a tree from `lower` up to but without
/// `upper` (NULL for either is no bound), or, if `tree` is NULL, every tree, without bounds. It is
/// never needed: when writes stop the engine by itself brings its trees into the best shape for
/// reading.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_compact(
    db: *const shale_db,
    tree: *const shale_tree,
    lower: *const c_void,
    lower_len: usize,
    upper: *const c_void,
    upper_len: usize,
) -> *mut shale_error {
    // SAFETY: a live handle, NULL or one, and bytes with their lengths.
    guard(|| unsafe {
        let db = &handle(db, "db")?.0;
        let (lower, upper) = (bound(lower, lower_len)?, bound(upper, upper_len)?);
        match tree.as_ref() {
            Some(tree) => Ok(tree.tree.compact_range(lower.unwrap_or(&[]), upper)?),
            None if lower.or(upper).is_some() => {
                Err(Fail::Argument("bounds are of one tree, and `tree` is NULL".to_owned()))
            }
            None => Ok(db.compact()?),
        }
    })
}

/// Waits until background work has nothing left to do. Writes meanwhile make the wait longer.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_wait_idle(db: *const shale_db) -> *mut shale_error {
    // SAFETY: a live handle.
    guard(|| unsafe { Ok(handle(db, "db")?.0.wait_idle()?) })
}

/// Makes a copy of the database in the folder `dir`, which must not exist, by hard links: it takes
/// no space for what both share, and opens as a database of its own. Complete, or not there.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_checkpoint(
    db: *const shale_db,
    dir: *const c_char,
) -> *mut shale_error {
    // SAFETY: a live handle and a text.
    guard(|| unsafe { Ok(handle(db, "db")?.0.checkpoint(text(dir, "dir")?)?) })
}

/// Reads and checks every byte of the database. `report` becomes JSON: tables, blobs, bytes,
/// entries, and damage, a list of texts. It fails if there is damage, and gives the report all the
/// same.
/// `report` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_verify(
    db: *const shale_db,
    report: *mut *mut shale_bytes,
) -> *mut shale_error {
    // SAFETY: a live handle, NULL or a place for a pointer.
    guard(|| unsafe {
        let found = handle(db, "db")?.0.verify(&mut |_| ())?;
        if !report.is_null() {
            give(report, "report", shale_bytes::json(&found)?)?;
        }
        found.damage.first().map_or(Ok(()), |damage| Err(damage.clone().into()))
    })
}

/// The names of the trees, in order, each ended by a zero, one after the other; `count` becomes how
/// many there are.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_names(
    db: *const shale_db,
    names: *mut *mut shale_bytes,
    count: *mut usize,
) -> *mut shale_error {
    // SAFETY: a live handle and two places.
    guard(|| unsafe {
        can_store(names, "names")?;
        let all = handle(db, "db")?.0.tree_names();
        store(count, "count", all.len())?;
        let text: String = all.iter().flat_map(|name| [name.as_str(), "\0"]).collect();
        give(names, "names", shale_bytes::owned(text))
    })
}

/// A snapshot of the database as it is now. `seq`, which may be NULL, becomes its sequence number:
/// its place in the commit order.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_snapshot_new(
    db: *const shale_db,
    snapshot: *mut *mut shale_snapshot,
    seq: *mut u64,
) -> *mut shale_error {
    // SAFETY: a live handle, a place for a pointer, NULL or one for a number.
    guard(|| unsafe {
        can_store(snapshot, "snapshot")?;
        let taken = handle(db, "db")?.0.snapshot();
        if !seq.is_null() {
            store(seq, "seq", taken.seq())?;
        }
        give(snapshot, "snapshot", shale_snapshot(taken))
    })
}

/// Ends a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_snapshot_free(snapshot: *mut shale_snapshot) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(snapshot) }
}
