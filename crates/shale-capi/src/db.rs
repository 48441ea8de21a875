//! Databases: open, close, and what concerns all trees.

use crate::batch::shale_batch;
use crate::config::shale_config;
use crate::error::{Fail, shale_error};
use crate::guard::{can_store, free, give, guard, handle, quiet, store, text};
use crate::read::shale_bytes;
use std::ffi::c_char;

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

/// Opens the database in the folder `path`, or creates it. `config` may be NULL: all defaults.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_open(
    path: *const c_char,
    config: *const shale_config,
    db: *mut *mut shale_db,
) -> *mut shale_error {
    // SAFETY: a text, NULL or a live handle, a place for a pointer.
    guard(|| unsafe {
        can_store(db, "db")?;
        give(db, "db", shale_db(shale::Db::open(text(path, "path")?, config_of(config))?))
    })
}

/// Opens a database that nobody has open for writing, and changes nothing on disk. What its log
/// holds is read too.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_open_read_only(
    path: *const c_char,
    config: *const shale_config,
    db: *mut *mut shale_db,
) -> *mut shale_error {
    // SAFETY: a text, NULL or a live handle, a place for a pointer.
    guard(|| unsafe {
        can_store(db, "db")?;
        let opened = shale::Db::open_read_only(text(path, "path")?, config_of(config))?;
        give(db, "db", shale_db(opened))
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

/// Writes all memtables to tables, and returns when it is done.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_flush(db: *const shale_db) -> *mut shale_error {
    // SAFETY: a live handle.
    guard(|| unsafe { Ok(handle(db, "db")?.0.flush()?) })
}

/// Flushes, and compacts every tree into its last level. It is never needed: when writes stop the
/// engine by itself brings its trees into the best shape for reading.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_compact(db: *const shale_db) -> *mut shale_error {
    // SAFETY: a live handle.
    guard(|| unsafe { Ok(handle(db, "db")?.0.compact()?) })
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

/// The statistics: levels, compactions, stalls, cache, filters, latencies, CPU. As JSON, or as
/// tables to read.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_stats(
    db: *const shale_db,
    json: bool,
    stats: *mut *mut shale_bytes,
) -> *mut shale_error {
    // SAFETY: a live handle and a place for a pointer.
    guard(|| unsafe {
        let now = handle(db, "db")?.0.stats();
        let bytes =
            if json { shale_bytes::json(&now)? } else { shale_bytes::owned(now.to_string()) };
        give(stats, "stats", bytes)
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

/// A snapshot of the database as it is now.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_snapshot_new(
    db: *const shale_db,
    snapshot: *mut *mut shale_snapshot,
) -> *mut shale_error {
    // SAFETY: a live handle and a place for a pointer.
    guard(|| unsafe {
        can_store(snapshot, "snapshot")?;
        give(snapshot, "snapshot", shale_snapshot(handle(db, "db")?.0.snapshot()))
    })
}

/// The sequence number of a snapshot: its place in the commit order. Of NULL: 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_snapshot_seq(snapshot: *const shale_snapshot) -> u64 {
    // SAFETY: NULL or a live handle.
    quiet(0, || unsafe { snapshot.as_ref() }.map_or(0, |snapshot| snapshot.0.seq()))
}

/// Ends a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_snapshot_free(snapshot: *mut shale_snapshot) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(snapshot) }
}
