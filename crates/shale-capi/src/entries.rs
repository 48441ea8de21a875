//! What an index of rows needs: entries that follow from rows that the transaction has locked, and
//! which of them a snapshot shows otherwise than they are.

use crate::error::shale_error;
use crate::guard::{bytes, can_store, guard, handle, handle_mut, store};
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
    // SAFETY: live handles, and bytes with their lengths.
    guard(|| unsafe {
        let (key, value) = (bytes(key, key_len, "key")?, bytes(value, value_len, "value")?);
        let tree = &handle(tree, "tree")?.tree;
        Ok(handle_mut(txn, "txn")?.inner().put_unlocked(tree, key, value)?)
    })
}

/// `changed` becomes whether others have written a key since the snapshot that plain reads of the
/// transaction see: what these show is no longer so. Not as long as there is no snapshot.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_changed(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    changed: *mut bool,
) -> *mut shale_error {
    // SAFETY: live handles, bytes with their length, a place for a truth.
    guard(|| unsafe {
        can_store(changed, "changed")?;
        let (tree, key) = (&handle(tree, "tree")?.tree, bytes(key, key_len, "key")?);
        let found = handle_mut(txn, "txn")?.inner().changed_since_snapshot(tree, key)?;
        store(changed, "changed", found)
    })
}

/// `wrote` becomes whether the transaction itself has written a key, or deleted it, and not undone
/// that.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_wrote(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    wrote: *mut bool,
) -> *mut shale_error {
    // SAFETY: live handles, bytes with their length, a place for a truth.
    guard(|| unsafe {
        can_store(wrote, "wrote")?;
        let (tree, key) = (&handle(tree, "tree")?.tree, bytes(key, key_len, "key")?);
        let found = handle_mut(txn, "txn")?.inner().has_written(tree, key)?;
        store(wrote, "wrote", found)
    })
}
