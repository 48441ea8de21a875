//! What an index of rows needs: entries that follow from rows that the transaction has locked, and
//! which of them a snapshot shows otherwise than they are.

use crate::error::shale_error;
use crate::guard::{bytes, guard, handle, handle_mut, store, value_bytes};
use crate::tree::shale_tree;
use crate::txn::shale_txn;
use std::ffi::c_void;

/// As shale_txn_put, but without a lock, and without a look at whether the key has been changed. It
/// is for keys that nobody writes who has not locked another key, which this transaction has: as an
/// entry of an index belongs to its row.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_put_unlocked(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: bytes with their lengths.
        let (key, value) = unsafe { (bytes(key, key_len, "key")?, value_bytes(value, value_len)?) };
        // SAFETY: live handles.
        let (tree, txn) = unsafe { (handle(tree, "tree")?, handle_mut(txn, "txn")?) };
        Ok(txn.txn.put_unlocked(&tree.tree, key, value)?)
    })
}

/// `wrote` becomes whether the transaction itself has written a key, or deleted it, and not undone
/// that; `changed` whether others have written it since the snapshot that plain reads of the
/// transaction see, so that what these show is no longer so (not as long as there is no snapshot).
/// Either may be NULL, and is not looked for then.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_wrote(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    wrote: *mut bool,
    changed: *mut bool,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle, and bytes with their length.
        let (tree, key) = unsafe { (handle(tree, "tree")?, bytes(key, key_len, "key")?) };
        // SAFETY: a live handle.
        let txn = unsafe { handle_mut(txn, "txn") }?;
        if !wrote.is_null() {
            let found = txn.txn.has_written(&tree.tree, key)?;
            // SAFETY: a place for a truth.
            unsafe { store(wrote, "wrote", found) }?;
        }
        if !changed.is_null() {
            let found = txn.txn.changed_since_snapshot(&tree.tree, key)?;
            // SAFETY: a place for a truth.
            unsafe { store(changed, "changed", found) }?;
        }
        Ok(())
    })
}
