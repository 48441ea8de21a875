//! Online builds: a tree is filled from live data while writers go on.

use crate::config::shale_config;
use crate::error::{Fail, shale_error};
use crate::guard::{
    bytes, can_store, give, guard, handle, handle_mut, store, store_if_wanted, take, text,
    value_bytes,
};
use crate::quiet::{free, quiet};
use crate::tree::shale_tree;
use shaledb::UniqueRow;
use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

/// A tree that is being built while writers go on.
#[derive(Debug)]
pub struct shale_build(shaledb::OnlineBuild);

/// Whether keys of a tree that is built are of one row each, and how an entry's value says which.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum shale_unique {
    /// They need not be: a key tells its row.
    SHALE_NOT_UNIQUE = 0,
    /// The value is the row's key.
    SHALE_UNIQUE_VALUE = 1,
    /// The value begins with the length of the row's key, as a varint (seven bits a byte, the
    /// lowest first, the eighth set in all bytes but the last), then the row's key. A length of 0
    /// is for entries that are not unique, such as those with a NULL: their own key tells their
    /// row.
    SHALE_UNIQUE_COUNTED = 2,
}

use shale_unique::*;

fn unique_of(number: c_int) -> Result<Option<UniqueRow>, Fail> {
    match number {
        n if n == SHALE_NOT_UNIQUE as c_int => Ok(None),
        n if n == SHALE_UNIQUE_VALUE as c_int => Ok(Some(UniqueRow::Value)),
        n if n == SHALE_UNIQUE_COUNTED as c_int => Ok(Some(UniqueRow::Counted)),
        other => Err(Fail::Argument(format!("{other} is no shale_unique"))),
    }
}

/// Begins to build the tree `name` from `source`. `tree` becomes the handle of the tree that
/// whoever changes the source from now on writes to: the entries that come and go, in the same
/// batch or transaction. While this call runs nobody may be changing the source who does not;
/// transactions that hold locks there, prepared ones too, are waited for, `wait_millis` at most.
/// `config` is as by shale_tree_open. Sorting takes `memory_bytes`; what is beyond goes to files.
/// 0: entries come in the order of their keys, and each is written at once (not of unique builds).
///
/// If keys are `unique` (a shale_unique), that tree is not the new one but one of its changes, and
/// writers put and delete entries there under keys by shale_entry_of_row, without any look for
/// duplicates. The new tree cannot be written to before it is finished.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_build_new(
    source: *const shale_tree,
    name: *const c_char,
    config: *const shale_config,
    unique: c_int,
    memory_bytes: u64,
    wait_millis: u64,
    build: *mut *mut shale_build,
    tree: *mut *mut shale_tree,
) -> *mut shale_error {
    guard(|| {
        can_store(build, "build")?;
        can_store(tree, "tree")?;
        // SAFETY: NULL or a live handle.
        let config = unsafe { config.as_ref() }.map(|own| own.0.tree.clone()).unwrap_or_default();
        // SAFETY: a live handle and a text.
        let (source, name) = unsafe { (handle(source, "source")?, text(name, "name")?) };
        let writers_wait = Duration::from_millis(wait_millis);
        let unique = unique_of(unique)?;
        let options = shaledb::BuildOptions { memory_bytes, writers_wait, unique };
        let begun = source.tree.build_online(name, config, options)?;
        let made = shale_tree::new(begun.tree().clone());
        // SAFETY: places for pointers.
        unsafe {
            give(tree, "tree", made)?;
            give(build, "build", shale_build(begun))
        }
    })
}

/// Adds an entry (key and value, not by shale_entry_of_row), in any order (but see
/// shale_build_new). All must be those of one snapshot of the source, taken since the build has
/// begun. After an error the build has failed: free it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_build_add(
    build: *mut shale_build,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: bytes with their lengths.
        let (key, value) = unsafe { (bytes(key, key_len, "key")?, value_bytes(value, value_len)?) };
        // SAFETY: a live handle.
        let build = unsafe { handle_mut(build, "build") }?;
        Ok(build.0.add(key, value)?)
    })
}

/// Of a unique build, once all entries were added: takes what writers have changed since the last
/// call, while they go on. `changes` becomes how many entries that were. Call it until they are
/// few, or no fewer than before. SHALE_DUPLICATE: two entries that were added have the same key.
/// After an error the build has failed: free it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_build_catch_up(
    build: *mut shale_build,
    changes: *mut u64,
) -> *mut shale_error {
    guard(|| {
        can_store(changes, "changes")?;
        // SAFETY: a live handle.
        let count = unsafe { handle_mut(build, "build") }?.0.catch_up()?;
        // SAFETY: a place for a number.
        unsafe { store(changes, "changes", count) }
    })
}

/// Completes the tree with the entries added, beneath what writers have written meanwhile, and
/// frees the build. After an error the build is there, and what writers write to: free it once they
/// are held off. `entries` becomes how many were added; it may be NULL.
///
/// Of a unique build: takes the last changes, so nobody may be writing to the source meanwhile;
/// prepared transactions are waited for. SHALE_DUPLICATE: two rows have the same key. Afterwards
/// open the tree by its name, and write to it instead of to its changes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_build_finish(
    build: *mut shale_build,
    entries: *mut u64,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let unfinished = unsafe { handle_mut(build, "build") }?;
        let count = unfinished.0.entries();
        unfinished.0.try_finish()?;
        // SAFETY: the handle, which the caller gives back.
        drop(unsafe { take(build, "build") }?);
        // SAFETY: NULL or a place for a number.
        unsafe { store_if_wanted(entries, count) };
        Ok(())
    })
}

/// Gives a build up, and drops its tree and that of its changes. Hold writers off meanwhile: who
/// then writes there gets SHALE_NO_SUCH_TREE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_build_free(build: *mut shale_build) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(build) }
}

/// The key under which writers put and delete an entry of a unique tree while it is built: the
/// entry's key, with a byte 1 after each 0; two bytes 0; the key of its row (none if the entry's
/// key tells it). Answers with its length, and writes it to `to` if that has room for `to_len`
/// bytes or more. 0: an argument is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_entry_of_row(
    key: *const c_void,
    key_len: usize,
    row: *const c_void,
    row_len: usize,
    to: *mut c_void,
    to_len: usize,
) -> usize {
    quiet(0, || {
        // SAFETY: bytes with their lengths.
        let both = unsafe { (bytes(key, key_len, "key"), bytes(row, row_len, "row")) };
        let (Ok(key), Ok(row)) = both else { return 0 };
        let entry = shaledb::entry_of_row(key, row);
        if !to.is_null() && entry.len() <= to_len {
            // SAFETY: room for that many bytes, which are in memory of their own.
            unsafe { std::ptr::copy_nonoverlapping(entry.as_ptr(), to.cast(), entry.len()) };
        }
        entry.len()
    })
}
