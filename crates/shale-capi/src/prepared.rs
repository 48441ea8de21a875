//! Two-phase commit: transactions that were prepared, and how they are decided.

use crate::db::shale_db;
use crate::error::{Fail, shale_error};
use crate::guard::{bound, bytes, can_store, give, guard, handle, store};
use crate::quiet::{free, quiet};
use crate::txn::shale_txn;
use std::ffi::c_void;

/// A transaction that was prepared: durable, seen by nobody, its keys locked until it is committed
/// or rolled back, also after a crash or another open. Freeing the handle decides nothing.
#[derive(Debug)]
pub struct shale_prepared(shale::Prepared);

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
    // SAFETY: a handle that the caller gives back, bytes with their length, a place for a pointer.
    guard(|| unsafe {
        if txn.is_null() {
            return Err(Fail::null("txn"));
        }
        let txn = Box::from_raw(txn);
        can_store(prepared, "prepared")?;
        let options = shale::WriteOptions { sync };
        let done = txn.into_inner().prepare_with(bytes(xid, xid_len, "xid")?, options)?;
        give(prepared, "prepared", shale_prepared(done))
    })
}

/// With `commit` makes what was prepared visible, at one place of the commit order, else undoes it;
/// and lets go of its locks. Without `sync` a crash of the machine may leave it prepared. If it
/// fails it stays prepared, and can be tried again; what has been decided before is
/// SHALE_INVALID_ARGUMENT. The handle is to be freed in any case.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_prepared_decide(
    prepared: *const shale_prepared,
    commit: bool,
    sync: bool,
) -> *mut shale_error {
    // SAFETY: a live handle.
    guard(|| unsafe {
        let prepared = handle(prepared, "prepared")?.0.clone();
        let options = shale::WriteOptions { sync };
        if commit {
            prepared.commit(options)?
        } else {
            prepared.rollback(options)?
        }
        Ok(())
    })
}

/// The name that it was prepared under, valid until the handle is freed. Of NULL: NULL, 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_prepared_xid(
    prepared: *const shale_prepared,
    len: *mut usize,
) -> *const c_void {
    quiet(std::ptr::null(), || {
        // SAFETY: NULL or a live handle, NULL or a place for a number.
        let xid = unsafe { prepared.as_ref() }.map(|own| own.0.xid());
        if !len.is_null() {
            // SAFETY: as above.
            unsafe { len.write(xid.map_or(0, <[u8]>::len)) };
        }
        xid.map_or(std::ptr::null(), |xid| xid.as_ptr().cast())
    })
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
    // SAFETY: a live handle, NULL or bytes with their length, a place for a pointer.
    guard(|| unsafe {
        can_store(prepared, "prepared")?;
        let name = bound(xid, xid_len)?;
        let all = handle(db, "db")?.0.prepared()?.into_iter();
        let wanted = all.filter(|one| match name {
            Some(name) if after => one.xid() > name,
            Some(name) => one.xid() == name,
            None => after,
        });
        give_found(prepared, wanted.min_by(|a, b| a.xid().cmp(b.xid())))
    })
}

/// Hands over what was found, or NULL.
///
/// # Safety
/// `to` is writable for a pointer.
unsafe fn give_found(
    to: *mut *mut shale_prepared,
    found: Option<shale::Prepared>,
) -> Result<(), Fail> {
    // SAFETY: the caller's word.
    unsafe {
        match found {
            Some(found) => give(to, "prepared", shale_prepared(found)),
            None => store(to, "prepared", std::ptr::null_mut()),
        }
    }
}
