//! Batches: operations that are committed as a whole, by shale_write.

use crate::error::shale_error;
use crate::guard::{bound, bytes, give, guard, handle, handle_mut, value_bytes};
use crate::quiet::{free, quiet};
use crate::tree::shale_tree;
use std::ffi::c_void;

/// Operations on any trees of one database. Of several on one key the last counts.
#[derive(Debug)]
pub struct shale_batch(pub(crate) shaledb::Batch);

/// An empty batch.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_batch_new(batch: *mut *mut shale_batch) -> *mut shale_error {
    // SAFETY: a place for a pointer.
    guard(|| unsafe { give(batch, "batch", shale_batch(shaledb::Batch::new())) })
}

/// Sets a key.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_batch_put(
    batch: *mut shale_batch,
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
        let (batch, tree) = unsafe { (handle_mut(batch, "batch")?, handle(tree, "tree")?) };
        batch.0.put(&tree.tree, key, value);
        Ok(())
    })
}

/// Deletes a key; with `end` (not NULL) all keys from `key` up to but without `end`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_batch_delete(
    batch: *mut shale_batch,
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    end: *const c_void,
    end_len: usize,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: bytes with their lengths.
        let (key, end) = unsafe { (bytes(key, key_len, "key")?, bound(end, end_len)?) };
        // SAFETY: live handles.
        let (batch, tree) = unsafe { (handle_mut(batch, "batch")?, handle(tree, "tree")?) };
        match end {
            Some(end) => batch.0.delete_range(&tree.tree, key, end),
            None => batch.0.delete(&tree.tree, key),
        }
        Ok(())
    })
}

/// How many operations are in it. Of NULL: 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_batch_count(batch: *const shale_batch) -> usize {
    // SAFETY: NULL or a live handle.
    quiet(0, || unsafe { batch.as_ref() }.map_or(0, |batch| batch.0.len()))
}

/// Empties it, and keeps its memory for what comes. Of NULL: nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_batch_clear(batch: *mut shale_batch) {
    quiet((), || {
        // SAFETY: NULL or a live handle.
        if let Some(batch) = unsafe { batch.as_mut() } {
            batch.0.clear();
        }
    });
}

/// Frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_batch_free(batch: *mut shale_batch) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(batch) }
}
