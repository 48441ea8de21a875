//! Two-phase commit: transactions that were prepared, and how they are decided.

use crate::db::shale_db;
use crate::error::shale_error;
use crate::guard::{
    bound, bytes, bytes_or_null, can_store, give, give_or_null, guard, handle, take,
};
use crate::quiet::{free, quiet};
use crate::txn::shale_txn;
use std::ffi::c_void;

/// A transaction that was prepared: durable, seen by nobody, its keys locked until it is committed
/// or rolled back, also after a crash or another open. Freeing the handle decides nothing.
#[derive(Debug)]
pub struct shale_prepared(shaledb::Prepared);

/// Prepares a transaction under a name of 1 to 256 bytes: it is neither committed nor rolled back
/// until it is decided, and with `sync` not even a crash of the machine changes that. It frees the
/// transaction, also if it fails: then it has been rolled back (of SHALE_POISONED the outcome is
/// known after the next open).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_prepare(
    txn: *mut shale_txn,
    xid: *const c_void,
    xid_len: usize,
    sync: bool,
    prepared: *mut *mut shale_prepared,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: NULL or a handle that the caller gives back.
        let txn = unsafe { take(txn, "txn") }?;
        can_store(prepared, "prepared")?;
        // SAFETY: bytes with their length.
        let xid = unsafe { bytes(xid, xid_len, "xid") }?;
        let done = txn.txn.prepare_with(xid, shaledb::WriteOptions { sync })?;
        // SAFETY: a place for a pointer.
        unsafe { give(prepared, "prepared", shale_prepared(done)) }
    })
}

/// With `commit` makes what was prepared visible, at one position in the commit order, else undoes
/// it; and lets go of its locks. Without `sync` a crash of the machine may leave it prepared. If it
/// fails it stays prepared, and can be tried again; but if it is the sync that fails, it is
/// decided, a crash may leave it prepared, and all later writes are SHALE_POISONED. What has been
/// decided before is SHALE_INVALID_ARGUMENT. The handle is to be freed in any case.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_prepared_decide(
    prepared: *const shale_prepared,
    commit: bool,
    sync: bool,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let prepared = unsafe { handle(prepared, "prepared") }?.0.clone();
        let options = shaledb::WriteOptions { sync };
        if commit {
            prepared.commit(options)?
        } else {
            prepared.rollback(options)?
        }
        Ok(())
    })
}

/// Lets go of its locks but for those to write: of what it has read, and of gaps. Whoever waits for
/// these goes on before it is decided. What it has read may then change before it is committed.
/// What has been decided is SHALE_INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_prepared_release_reads(
    prepared: *const shale_prepared,
) -> *mut shale_error {
    // SAFETY: a live handle.
    guard(|| Ok(unsafe { handle(prepared, "prepared") }?.0.release_reads()?))
}

/// The name that it was prepared under, valid until the handle is freed. Of NULL: NULL, 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_prepared_xid(
    prepared: *const shale_prepared,
    len: *mut usize,
) -> *const c_void {
    // SAFETY: NULL or a live handle.
    let xid = quiet(None, || unsafe { prepared.as_ref() }.map(|own| own.0.xid()));
    // SAFETY: NULL or a place for a number.
    unsafe { bytes_or_null(xid, len) }
}

/// Frees the handle, which decides nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_prepared_free(prepared: *mut shale_prepared) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(prepared) }
}

/// What is prepared under this name and not decided; with `after` the first whose name comes after
/// this one in the order of bytes, so that from NULL on it tells all, also if they are decided
/// meanwhile: after a crash, those that the caller has to decide. `prepared` becomes NULL if there
/// is none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_prepared_find(
    db: *const shale_db,
    xid: *const c_void,
    xid_len: usize,
    after: bool,
    prepared: *mut *mut shale_prepared,
) -> *mut shale_error {
    guard(|| {
        can_store(prepared, "prepared")?;
        // SAFETY: NULL or bytes with their length, and a live handle.
        let (name, db) = unsafe { (bound(xid, xid_len)?, handle(db, "db")?) };
        let found = match (name, after) {
            (name, true) => db.0.prepared_after(name)?,
            (Some(name), false) => db.0.prepared_named(name)?,
            (None, false) => None,
        };
        // SAFETY: a place for a pointer.
        unsafe { give_or_null(prepared, "prepared", found.map(shale_prepared)) }
    })
}
