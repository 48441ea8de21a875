//! Databases: open and close, and what a follower shows.

use crate::config::shale_config;
use crate::error::shale_error;
use crate::guard::{can_store, give, guard, handle, store_if_wanted, take, text};
use std::ffi::c_char;

/// An open database.
#[derive(Debug)]
pub struct shale_db(pub(crate) shaledb::Db);

/// The version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn shale_version() -> *const c_char {
    const { concat!(env!("CARGO_PKG_VERSION"), "\0") }.as_ptr().cast()
}

/// The settings that were given, or the defaults.
///
/// # Safety
/// NULL, or a live handle.
unsafe fn config_of(config: *const shale_config) -> shaledb::Config {
    // SAFETY: NULL, or a live handle.
    unsafe { config.as_ref() }.map_or_else(shaledb::Config::default, |config| config.0.clone())
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
    guard(|| {
        can_store(db, "db")?;
        // SAFETY: a text, and NULL or a live handle.
        let (path, config) = unsafe { (text(path, "path")?, config_of(config)) };
        let opened = match read_only {
            true => shaledb::Db::open_read_only(path, config)?,
            false => shaledb::Db::open(path, config)?,
        };
        // SAFETY: a place for a pointer.
        unsafe { give(db, "db", shale_db(opened)) }
    })
}

/// Opens the database in the folder `path` for reading, also while another process writes it. What
/// is seen is the state at one position in the commit order, and stays so until
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
    guard(|| {
        can_store(db, "db")?;
        // SAFETY: a text, and NULL or a live handle.
        let (path, config) = unsafe { (text(path, "path")?, config_of(config)) };
        let opened = shaledb::Db::open_follower(path, config)?;
        // SAFETY: a place for a pointer.
        unsafe { give(db, "db", shale_db(opened)) }
    })
}

/// Moves a follower on to what the writer has committed by now. Writes the position in the
/// commit order that it shows to `seq`, which may be NULL. Snapshots, scans and plain reads of
/// transactions go on reading what they have seen; those at SHALE_READ_COMMITTED move on, and so do
/// locking reads but for SHALE_SERIALIZABLE. After an error all is as it was, and another call may
/// succeed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_follower_refresh(
    db: *const shale_db,
    seq: *mut u64,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let db = unsafe { handle(db, "db") }?;
        let shown = db.0.refresh()?;
        // SAFETY: NULL or a place for a number.
        unsafe { store_if_wanted(seq, shown) };
        Ok(())
    })
}

/// Closes a database and frees its handle, also if it fails: no other call with this handle may be
/// under way, as for any handle that is freed. Calls with trees, scans and other handles may be;
/// they end as before the close, or return SHALE_CLOSED. What was committed is there at the next
/// open, whether or not this succeeds; an error says that the last of it may not survive a crash of
/// the machine. Of NULL: nothing.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_close(db: *mut shale_db) -> *mut shale_error {
    guard(|| {
        if db.is_null() {
            return Ok(());
        }
        // SAFETY: a handle that the caller gives back.
        let db = unsafe { take(db, "db") }?;
        Ok(db.0.close()?)
    })
}
