//! Reading single keys, and the bytes that reads give.

use crate::db::shale_snapshot;
use crate::error::{Fail, shale_error};
use crate::guard::{bytes, can_store, free, give, guard, handle, handle_mut, quiet, store};
use crate::tree::shale_tree;
use serde::Serialize;
use std::ffi::c_void;
use std::io::Read;

/// Bytes that belong to the caller: a value (often a part of a block in the cache, which stays
/// there while this lives), or a report.
#[derive(Debug)]
pub struct shale_bytes(Bytes);

#[derive(Debug)]
enum Bytes {
    Value(shale::Value),
    Owned(Vec<u8>),
}

impl shale_bytes {
    pub(crate) fn owned(bytes: impl Into<Vec<u8>>) -> shale_bytes {
        shale_bytes(Bytes::Owned(bytes.into()))
    }

    pub(crate) fn json(value: &impl Serialize) -> Result<shale_bytes, Fail> {
        let text = serde_json::to_vec(value).map_err(|error| Fail::Panic(error.to_string()))?;
        Ok(shale_bytes::owned(text))
    }

    fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Bytes::Value(value) => value,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

/// Stores a value, or NULL if there is none.
///
/// # Safety
/// `to` is writable for a pointer.
pub(crate) unsafe fn give_value(
    to: *mut *mut shale_bytes,
    value: Option<shale::Value>,
) -> Result<(), Fail> {
    // SAFETY: the caller's word.
    unsafe {
        match value {
            Some(value) => give(to, "value", shale_bytes(Bytes::Value(value))),
            None => store(to, "value", std::ptr::null_mut()),
        }
    }
}

/// Where the bytes are, valid until they are freed, and in `len`, which may be NULL, how many. Of
/// NULL: NULL and 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_bytes_data(
    bytes: *const shale_bytes,
    len: *mut usize,
) -> *const c_void {
    // SAFETY: NULL or a live handle.
    let own = quiet(None, || unsafe { bytes.as_ref() }.map(shale_bytes::as_slice));
    // SAFETY: NULL or a place for a number.
    if let Some(len) = unsafe { len.as_mut() } {
        *len = own.map_or(0, <[u8]>::len);
    }
    own.map_or(std::ptr::null(), |own| own.as_ptr().cast())
}

/// Frees them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_bytes_free(bytes: *mut shale_bytes) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(bytes) }
}

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
    // SAFETY: a live handle, NULL or one, bytes with their length, a place for a pointer.
    guard(|| unsafe {
        can_store(value, "value")?;
        let (tree, key) = (&handle(tree, "tree")?.tree, bytes(key, key_len, "key")?);
        let found = match snapshot.as_ref() {
            Some(snapshot) => tree.get_at(key, &snapshot.0)?,
            None => tree.get(key)?,
        };
        give_value(value, found)
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
    // SAFETY: a live handle, and three arrays of `count`.
    guard(|| unsafe {
        let tree = &handle(tree, "tree")?.tree;
        let keys = many_keys(keys, key_lens, count, values)?;
        give_values(values, tree.multi_get(&keys)?)
    })
}

/// The keys of a call with many, whose results go to `values`.
///
/// # Safety
/// The two arrays have `count` entries, and each key is readable during the call; or `count` is 0.
pub(crate) unsafe fn many_keys<'a>(
    keys: *const *const c_void,
    key_lens: *const usize,
    count: usize,
    values: *mut *mut shale_bytes,
) -> Result<Vec<&'a [u8]>, Fail> {
    if count == 0 {
        return Ok(Vec::new());
    }
    can_store(values, "values")?;
    if keys.is_null() || key_lens.is_null() {
        return Err(Fail::null("keys or key_lens"));
    }
    // SAFETY: the caller's word.
    let key = |at| unsafe { bytes(*keys.add(at), *key_lens.add(at), "a key") };
    (0..count).map(key).collect()
}

/// Stores values, NULL where there is none.
///
/// # Safety
/// `to` has room for as many pointers.
pub(crate) unsafe fn give_values(
    to: *mut *mut shale_bytes,
    values: Vec<Option<shale::Value>>,
) -> Result<(), Fail> {
    for (at, value) in values.into_iter().enumerate() {
        // SAFETY: the caller's word.
        unsafe { give_value(to.add(at), value)? };
    }
    Ok(())
}

/// A value that is read in parts.
#[derive(Debug)]
pub struct shale_reader(shale::ValueReader);

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
    // SAFETY: a live handle, bytes with their length, a place for a pointer, NULL or one for a
    // number.
    guard(|| unsafe {
        can_store(reader, "reader")?;
        let found = handle(tree, "tree")?.tree.get_reader(bytes(key, key_len, "key")?)?;
        if !len.is_null() {
            store(len, "len", found.as_ref().map_or(0, shale::ValueReader::len))?;
        }
        match found {
            Some(found) => give(reader, "reader", shale_reader(found)),
            None => store(reader, "reader", std::ptr::null_mut()),
        }
    })
}

/// Copies the next bytes, up to `capacity` of them, to `buffer`; `count` becomes how many, 0 at the
/// end.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_reader_read(
    reader: *mut shale_reader,
    buffer: *mut c_void,
    capacity: usize,
    count: *mut usize,
) -> *mut shale_error {
    // SAFETY: a live handle, a buffer with its length, a place for a number.
    guard(|| unsafe {
        can_store(count, "count")?;
        let reader = handle_mut(reader, "reader")?;
        if capacity == 0 {
            return store(count, "count", 0);
        }
        can_store(buffer, "buffer")?;
        // So that no uninitialized byte is ever seen through a reference.
        buffer.cast::<u8>().write_bytes(0, capacity);
        let room = std::slice::from_raw_parts_mut(buffer.cast::<u8>(), capacity);
        let read = reader.0.read(room).map_err(|error| match error.downcast::<shale::Error>() {
            Ok(own) => Fail::Engine(own),
            Err(other) => Fail::Engine(shale::Error::io("read", "a value".as_ref(), other)),
        })?;
        store(count, "count", read)
    })
}

/// Ends reading.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_reader_free(reader: *mut shale_reader) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(reader) }
}
