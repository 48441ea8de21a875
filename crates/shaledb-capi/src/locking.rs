//! Scans that lock what they show.

use crate::error::{Fail, shale_error};
use crate::guard::{can_store, give, guard, handle, handle_mut, store};
use crate::quiet::{free, quiet};
use crate::scan::range;
use crate::tree::shale_tree;
use crate::txn::{lock_of, shale_txn};
use std::ffi::{c_int, c_void};

/// A scan that locks what it passes, rows and gaps, until its transaction ends.
#[derive(Debug)]
pub struct shale_locking_scan(shaledb::LockingScan);

/// A scan that shows the newest rows and locks them, shared or exclusive. It begins before the
/// first row, or after the last, as its first step says.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_locking_scan_new(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    lock: c_int,
    lower: *const c_void,
    lower_len: usize,
    upper: *const c_void,
    upper_len: usize,
    scan: *mut *mut shale_locking_scan,
) -> *mut shale_error {
    guard(|| {
        can_store(scan, "scan")?;
        let mode = lock_of(lock)?
            .ok_or_else(|| Fail::Argument("a locking scan locks shared or exclusive".to_owned()))?;
        // SAFETY: bytes with their lengths.
        let options = unsafe { range((lower, lower_len), (upper, upper_len), true) }?;
        // SAFETY: live handles.
        let (tree, txn) = unsafe { (handle(tree, "tree")?, handle_mut(txn, "txn")?) };
        let begun = txn.txn.scan_locking(&tree.tree, options, mode)?;
        // SAFETY: a place for a pointer.
        unsafe { give(scan, "scan", shale_locking_scan(begun)) }
    })
}

/// Goes to the next row, or to the one before, of the transaction that the scan is of; `found`
/// becomes false at the end. If it fails the scan is where it was.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_locking_scan_step(
    scan: *mut shale_locking_scan,
    txn: *mut shale_txn,
    backward: bool,
    found: *mut bool,
) -> *mut shale_error {
    guard(|| {
        can_store(found, "found")?;
        // SAFETY: live handles.
        let (scan, txn) = unsafe { (handle_mut(scan, "scan")?, handle_mut(txn, "txn")?) };
        let (scan, txn) = (&mut scan.0, &mut txn.txn);
        let there = if backward { scan.prev(txn)? } else { scan.next(txn)? };
        // SAFETY: a place for a truth.
        unsafe { store(found, "found", there) }
    })
}

/// The row that a scan stands on, valid until it steps, locks its row or is freed; both empty
/// without a row.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_locking_scan_row(
    scan: *const shale_locking_scan,
    key: *mut *const c_void,
    key_len: *mut usize,
    value: *mut *const c_void,
    value_len: *mut usize,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let scan = &unsafe { handle(scan, "scan") }?.0;
        let (own_key, own_value) = (scan.key(), scan.value());
        // SAFETY: four places.
        unsafe {
            store(key, "key", own_key.as_ptr().cast())?;
            store(key_len, "key_len", own_key.len())?;
            store(value, "value", own_value.as_ptr().cast())?;
            store(value_len, "value_len", own_value.len())
        }
    })
}

/// From now on the scan passes over rows that others have locked, without a wait, and does not keep
/// others from adding rows to what it has passed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_locking_scan_skip_locked(
    scan: *mut shale_locking_scan,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle that nobody else uses during the call.
        let scan = unsafe { handle_mut(scan, "scan") }?;
        scan.0.skip_locked();
        Ok(())
    })
}

/// Shows rows that others have locked as last committed, unlocked; at SHALE_READ_COMMITTED only.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_locking_scan_peek_locked(
    scan: *mut shale_locking_scan,
    peeks: bool,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle that nobody else uses during the call.
        let scan = unsafe { handle_mut(scan, "scan") }?;
        scan.0.peek_locked(peeks);
        Ok(())
    })
}

/// Whether the row that the scan stands on is locked, and not only shown.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_locking_scan_is_locked(scan: *const shale_locking_scan) -> bool {
    // SAFETY: NULL or a live handle.
    quiet(false, || unsafe { scan.as_ref() }.is_some_and(|scan| scan.0.is_locked()))
}

/// Locks the row that is only shown, and shows it anew; `found`: whether it is still there.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_locking_scan_lock_row(
    scan: *mut shale_locking_scan,
    txn: *mut shale_txn,
    found: *mut bool,
) -> *mut shale_error {
    guard(|| {
        can_store(found, "found")?;
        // SAFETY: live handles.
        let (txn, scan) = unsafe { (handle_mut(txn, "txn")?, handle_mut(scan, "scan")?) };
        let there = scan.0.lock_row(&mut txn.txn)?;
        // SAFETY: a place for a truth.
        unsafe { store(found, "found", there) }
    })
}

/// Ends a scan; what it has locked stays locked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_locking_scan_free(scan: *mut shale_locking_scan) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(scan) }
}
