//! Bulk loads: sorted rows that are written once, past the log and the memtables.

use crate::error::shale_error;
use crate::guard::{
    bytes, can_store, give, guard, handle, handle_mut, store_if_wanted, take, value_bytes,
};
use crate::quiet::free;
use crate::tree::shale_tree;
use std::ffi::c_void;

/// A bulk load that is under way. Its rows are seen when it is finished, all at once.
#[derive(Debug)]
pub struct shale_ingest(shaledb::Ingest);

/// Begins a bulk load.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_ingest_new(
    tree: *const shale_tree,
    ingest: *mut *mut shale_ingest,
) -> *mut shale_error {
    guard(|| {
        can_store(ingest, "ingest")?;
        // SAFETY: a live handle.
        let tree = unsafe { handle(tree, "tree") }?;
        let begun = tree.tree.ingest()?;
        // SAFETY: a place for a pointer.
        unsafe { give(ingest, "ingest", shale_ingest(begun)) }
    })
}

/// Adds a row; its key must be greater than that of the row before. If it is not, the load can go
/// on with another row; after any other error free it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_ingest_add(
    ingest: *mut shale_ingest,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: bytes with their lengths.
        let (key, value) = unsafe { (bytes(key, key_len, "key")?, value_bytes(value, value_len)?) };
        // SAFETY: a live handle.
        let ingest = unsafe { handle_mut(ingest, "ingest") }?;
        Ok(ingest.0.add(key, value)?)
    })
}

/// Makes the rows durable and seen, and ends the load, also if it fails: then none is. `rows`
/// becomes how many there are; it may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_ingest_finish(
    ingest: *mut shale_ingest,
    rows: *mut u64,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: NULL or a handle that the caller gives back.
        let ingest = unsafe { take(ingest, "ingest") }?;
        let count = ingest.0.finish()?;
        // SAFETY: NULL or a place for a number.
        unsafe { store_if_wanted(rows, count) };
        Ok(())
    })
}

/// Gives a load up: none of its rows is seen.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_ingest_free(ingest: *mut shale_ingest) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(ingest) }
}
