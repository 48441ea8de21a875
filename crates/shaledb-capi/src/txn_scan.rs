//! Plain scans of transactions.

use crate::error::shale_error;
use crate::guard::{bound, can_store, give, guard, handle, handle_mut};
use crate::scan::{range, shale_scan};
use crate::tree::shale_tree;
use crate::txn::shale_txn;
use std::ffi::c_void;

/// A scan of what shale_txn_get finds without a lock, own writes of before the scan included. It
/// may be used beside other calls, and after the transaction's end. With `newest` it is of what is
/// committed by now instead, and of own writes: for reads that look for rows which they then lock.
/// It locks nothing, and takes no snapshot for later reads.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_scan(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    newest: bool,
    lower: *const c_void,
    lower_len: usize,
    upper: *const c_void,
    upper_len: usize,
    fill_cache: bool,
    scan: *mut *mut shale_scan,
) -> *mut shale_error {
    guard(|| {
        can_store(scan, "scan")?;
        // SAFETY: bytes with their lengths.
        let options = unsafe { range((lower, lower_len), (upper, upper_len), fill_cache) }?;
        // SAFETY: live handles.
        let (txn, tree) = unsafe { (&mut handle_mut(txn, "txn")?.txn, handle(tree, "tree")?) };
        let begun = match newest {
            true => txn.scan_newest(&tree.tree, options)?,
            false => txn.scan(&tree.tree, options)?,
        };
        // SAFETY: a place for a pointer.
        unsafe { give(scan, "scan", shale_scan(begun)) }
    })
}

/// Makes a scan by shale_txn_scan one of another range, as if it were made anew, which costs less.
/// If it fails the scan is at no row.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_scan_again(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    scan: *mut shale_scan,
    lower: *const c_void,
    lower_len: usize,
    upper: *const c_void,
    upper_len: usize,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: bytes with their lengths.
        let (lower, upper) = unsafe { (bound(lower, lower_len)?, bound(upper, upper_len)?) };
        // SAFETY: live handles.
        let (txn, tree, scan) =
            unsafe { (handle_mut(txn, "txn")?, handle(tree, "tree")?, handle_mut(scan, "scan")?) };
        let lower = lower.unwrap_or_default();
        Ok(txn.txn.scan_again(&tree.tree, &mut scan.0, lower, upper)?)
    })
}
