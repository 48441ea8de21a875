//! Single writes, each a commit of its own.

use crate::error::{Fail, shale_error};
use crate::guard::{bound, bytes, guard, handle, value_bytes};
use crate::tree::shale_tree;
use shaledb::WriteOptions;
use std::ffi::c_void;
use std::io::{self, Read};

/// Sets a key, which may be up to 64 KiB, to a value of up to 4 GiB. With `sync` it is durable when
/// the call returns, and so is every commit before it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_put(
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    sync: bool,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: bytes with their lengths.
        let (key, value) = unsafe { (bytes(key, key_len, "key")?, value_bytes(value, value_len)?) };
        // SAFETY: a live handle.
        let tree = unsafe { handle(tree, "tree") }?;
        Ok(tree.tree.put_with(key, value, WriteOptions { sync })?)
    })
}

/// Gives the next bytes of a value: up to `capacity` of them, to `buffer`. Answers how many, 0 at
/// the end, and a negative number to give up. No exception may leave it.
pub type shale_read_fn =
    Option<unsafe extern "C" fn(context: *mut c_void, buffer: *mut c_void, capacity: usize) -> i64>;

/// What C gives as a reader.
struct Source {
    read: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> i64,
    context: *mut c_void,
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the caller's function, with its own context and a buffer of this length.
        let count = unsafe { (self.read)(self.context, buffer.as_mut_ptr().cast(), buffer.len()) };
        match usize::try_from(count) {
            Ok(count) if count <= buffer.len() => Ok(count),
            Ok(_) => Err(io::Error::other("the reader says that it gave more than was asked for")),
            Err(_) => Err(io::Error::other("the reader gave up")),
        }
    }
}

/// As shale_put, with a value that `read` gives in parts, so that a large one is never in memory
/// as a whole. If it gives up the key keeps what it had. `read` must not use the database.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_put_stream(
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    read: shale_read_fn,
    context: *mut c_void,
    sync: bool,
) -> *mut shale_error {
    guard(|| {
        let read = read.ok_or_else(|| Fail::null("read"))?;
        let mut source = Source { read, context };
        // SAFETY: bytes with their length, and a live handle.
        let (key, tree) = unsafe { (bytes(key, key_len, "key")?, handle(tree, "tree")?) };
        Ok(tree.tree.put_reader(key, &mut source, WriteOptions { sync })?)
    })
}

/// Deletes a key, whether or not it is there; with `end` (not NULL) all keys from `key` up to but
/// without `end`, at the cost of one write. `sync` as of shale_put.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_delete(
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    end: *const c_void,
    end_len: usize,
    sync: bool,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: bytes with their lengths.
        let (key, end) = unsafe { (bytes(key, key_len, "key")?, bound(end, end_len)?) };
        // SAFETY: a live handle.
        let tree = &unsafe { handle(tree, "tree") }?.tree;
        let options = WriteOptions { sync };
        match end {
            Some(end) => tree.delete_range_with(key, end, options)?,
            None => tree.delete_with(key, options)?,
        }
        Ok(())
    })
}
