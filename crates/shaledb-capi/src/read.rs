//! Reading single keys.

use crate::bytes::{give_value, give_values, shale_bytes};
use crate::error::{Fail, shale_error};
use crate::guard::{
    bytes, can_store, give_or_null, guard, handle, handle_mut, many_keys, store, store_if_wanted,
};
use crate::quiet::free;
use crate::snapshot::shale_snapshot;
use crate::tree::shale_tree;
use std::ffi::c_void;
use std::io::Read;

/// The value of a key, at a snapshot or (NULL) as of now. `value` becomes NULL if there is none:
/// that is no error.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_get(
    tree: *const shale_tree,
    snapshot: *const shale_snapshot,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut shale_bytes,
) -> *mut shale_error {
    guard(|| {
        can_store(value, "value")?;
        // SAFETY: a live handle, and bytes with their length.
        let (tree, key) = unsafe { (handle(tree, "tree")?, bytes(key, key_len, "key")?) };
        // SAFETY: NULL or a live handle.
        let found = match unsafe { snapshot.as_ref() } {
            Some(snapshot) => tree.tree.get_at(key, &snapshot.0)?,
            None => tree.tree.get(key)?,
        };
        // SAFETY: a place for a pointer.
        unsafe { give_value(value, found) }
    })
}

/// The values of `count` keys, all as of one moment: cheaper than one by one. `values` has room for
/// so many; those of keys that are not there become NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_multi_get(
    tree: *const shale_tree,
    keys: *const *const c_void,
    key_lens: *const usize,
    count: usize,
    values: *mut *mut shale_bytes,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let tree = unsafe { handle(tree, "tree") }?;
        // SAFETY: two arrays of `count`.
        let keys = unsafe { many_keys(keys, key_lens, count, values) }?;
        let found = tree.tree.multi_get(&keys)?;
        // SAFETY: `count` places for pointers.
        unsafe { give_values(values, found) }
    })
}

/// Asks the file system for what look-ups of `count` keys read, and does not wait for it. `asked`
/// becomes for how many blocks; 0 if all that is there is in memory.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_prefetch(
    tree: *const shale_tree,
    keys: *const *const c_void,
    key_lens: *const usize,
    count: usize,
    asked: *mut u64,
) -> *mut shale_error {
    guard(|| {
        can_store(asked, "asked")?;
        // SAFETY: a live handle.
        let tree = unsafe { handle(tree, "tree") }?;
        // SAFETY: two arrays of `count`.
        let keys = unsafe { many_keys(keys, key_lens, count, asked) }?;
        let blocks = tree.tree.prefetch(&keys)?;
        // SAFETY: a place for a number.
        unsafe { store(asked, "asked", blocks) }
    })
}

/// A value that is read in parts.
#[derive(Debug)]
pub struct shale_reader(shaledb::ValueReader);

/// Reads the value of a key in parts, so that a large one is never in memory as a whole. `reader`
/// becomes NULL if there is no such key, and `len`, which may be NULL, the length of the whole
/// value. It is the cheapest way to ask whether a key is there: a large value is not read.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_reader_open(
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    reader: *mut *mut shale_reader,
    len: *mut u64,
) -> *mut shale_error {
    guard(|| {
        can_store(reader, "reader")?;
        // SAFETY: a live handle, and bytes with their length.
        let (tree, key) = unsafe { (handle(tree, "tree")?, bytes(key, key_len, "key")?) };
        let found = tree.tree.get_reader(key)?;
        // SAFETY: NULL or a place for a number, and a place for a pointer.
        unsafe {
            store_if_wanted(len, found.as_ref().map_or(0, shaledb::ValueReader::len));
            give_or_null(reader, "reader", found.map(shale_reader))
        }
    })
}

/// Copies the next bytes, up to `capacity` of them, to `buffer`; `count` becomes how many, 0 at the
/// end. The rest of `buffer`, and all of it if the call fails, is zeros or bytes of the value.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_reader_read(
    reader: *mut shale_reader,
    buffer: *mut c_void,
    capacity: usize,
    count: *mut usize,
) -> *mut shale_error {
    guard(|| {
        can_store(count, "count")?;
        // SAFETY: a live handle.
        let reader = unsafe { handle_mut(reader, "reader") }?;
        if capacity == 0 {
            // SAFETY: a place for a number.
            return unsafe { store(count, "count", 0) };
        }
        can_store(buffer, "buffer")?;
        let buffer = buffer.cast::<u8>();
        // SAFETY: a buffer with its length; no byte of it is uninitialized when it is referred to.
        let room = unsafe {
            buffer.write_bytes(0, capacity);
            std::slice::from_raw_parts_mut(buffer, capacity)
        };
        let read =
            reader.0.read(room).map_err(|error| match error.downcast::<shaledb::Error>() {
                Ok(own) => Fail::Engine(own),
                Err(other) => Fail::Engine(shaledb::Error::io("read", "a value".as_ref(), other)),
            })?;
        // SAFETY: a place for a number.
        unsafe { store(count, "count", read) }
    })
}

/// Ends reading.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_reader_free(reader: *mut shale_reader) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(reader) }
}
