//! Online builds: a tree is filled from live data while writers go on.

use crate::config::shale_config;
use crate::error::shale_error;
use crate::guard::{
    bytes, can_store, give, guard, handle, handle_mut, store_if_wanted, take, text, value_bytes,
};
use crate::quiet::free;
use crate::tree::shale_tree;
use std::ffi::{c_char, c_void};
use std::time::Duration;

/// A tree that is being built while writers go on.
#[derive(Debug)]
pub struct shale_build(shaledb::OnlineBuild);

/// Begins to build the tree `name` from `source`; `tree` becomes its handle. Whoever changes the
/// source from now on writes the entries that come and go to it, in the same batch or transaction.
/// While this call runs nobody may be changing the source who does not; transactions that hold
/// locks there, prepared ones too, are waited for, `wait_millis` at most. `config` is as by
/// shale_tree_open. Sorting takes `memory_bytes`; what is beyond goes to files. 0: entries come in
/// the order of their keys, and each is written at once.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_build_new(
    source: *const shale_tree,
    name: *const c_char,
    config: *const shale_config,
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
        let options = shaledb::BuildOptions { memory_bytes, writers_wait };
        let begun = source.tree.build_online(name, config, options)?;
        let made = shale_tree::new(begun.tree().clone());
        // SAFETY: places for pointers.
        unsafe {
            give(tree, "tree", made)?;
            give(build, "build", shale_build(begun))
        }
    })
}

/// Adds an entry, in any order (but see shale_build_new). All must be those of one snapshot of the
/// source, taken since the build has begun.
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

/// Completes the tree with the entries added, beneath what writers have written to it meanwhile,
/// and ends the build, also if it fails: then there is no such tree. `entries` becomes how many
/// were added; it may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_build_finish(
    build: *mut shale_build,
    entries: *mut u64,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: NULL or a handle that the caller gives back.
        let build = unsafe { take(build, "build") }?;
        let count = build.0.entries();
        build.0.finish()?;
        // SAFETY: NULL or a place for a number.
        unsafe { store_if_wanted(entries, count) };
        Ok(())
    })
}

/// Gives a build up, and drops its tree.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_build_free(build: *mut shale_build) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(build) }
}
