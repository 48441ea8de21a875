//! Trees: open, create, drop, and what concerns one as a whole.

use crate::config::shale_tree_config;
use crate::db::shale_db;
use crate::error::shale_error;
use crate::guard::{bound, can_store, free, give, guard, handle, quiet, store, text};
use std::ffi::{CString, c_char, c_void};

/// A named tree: an ordered map from keys to values.
#[derive(Debug)]
pub struct shale_tree {
    pub(crate) tree: shale::Tree,
    name: CString,
}

impl shale_tree {
    fn new(tree: shale::Tree) -> shale_tree {
        let name = CString::new(tree.name()).unwrap_or_default();
        shale_tree { tree, name }
    }
}

/// The tree of this name, which must exist.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_open(
    db: *const shale_db,
    name: *const c_char,
    tree: *mut *mut shale_tree,
) -> *mut shale_error {
    // SAFETY: a live handle, a text, a place for a pointer.
    guard(|| unsafe {
        can_store(tree, "tree")?;
        let opened = handle(db, "db")?.0.tree(text(name, "name")?)?;
        give(tree, "tree", shale_tree::new(opened))
    })
}

/// The tree of this name; if there is none it is created, with the settings that the database has
/// for new trees.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_open_or_create(
    db: *const shale_db,
    name: *const c_char,
    tree: *mut *mut shale_tree,
) -> *mut shale_error {
    // SAFETY: a live handle, a text, a place for a pointer.
    guard(|| unsafe {
        can_store(tree, "tree")?;
        let opened = handle(db, "db")?.0.tree_or_create(text(name, "name")?)?;
        give(tree, "tree", shale_tree::new(opened))
    })
}

/// Creates a tree, which must not exist. `config` may be NULL: all defaults.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_create(
    db: *const shale_db,
    name: *const c_char,
    config: *const shale_tree_config,
    tree: *mut *mut shale_tree,
) -> *mut shale_error {
    // SAFETY: a live handle, a text, NULL or a live handle, a place for a pointer.
    guard(|| unsafe {
        can_store(tree, "tree")?;
        let config = config.as_ref().map_or_else(shale::TreeConfig::default, |own| own.0.clone());
        let created = handle(db, "db")?.0.create_tree(text(name, "name")?, config)?;
        give(tree, "tree", shale_tree::new(created))
    })
}

/// Drops a tree, at the same cost whatever its size. Its space is free as soon as no scan and no
/// snapshot's read is in it; calls with its handles return SHALE_NO_SUCH_TREE.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_drop(
    db: *const shale_db,
    name: *const c_char,
) -> *mut shale_error {
    // SAFETY: a live handle and a text.
    guard(|| unsafe { Ok(handle(db, "db")?.0.drop_tree(text(name, "name")?)?) })
}

/// A tree's name, valid until the handle is freed. Of NULL: an empty text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_name(tree: *const shale_tree) -> *const c_char {
    // SAFETY: NULL or a live handle.
    let name = quiet(None, || unsafe { tree.as_ref() }.map(|tree| tree.name.as_ptr()));
    name.unwrap_or(c"".as_ptr())
}

/// Frees a handle; the tree stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_free(tree: *mut shale_tree) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(tree) }
}

/// Writes the tree's memtables to tables, and returns when it is done.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_flush(tree: *const shale_tree) -> *mut shale_error {
    // SAFETY: a live handle.
    guard(|| unsafe { Ok(handle(tree, "tree")?.tree.flush()?) })
}

/// Flushes, and compacts the keys from `lower` up to but without `upper` into the last level. NULL
/// for either is no bound.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_compact(
    tree: *const shale_tree,
    lower: *const c_void,
    lower_len: usize,
    upper: *const c_void,
    upper_len: usize,
) -> *mut shale_error {
    // SAFETY: a live handle, and bytes with their lengths.
    guard(|| unsafe {
        let (lower, upper) = (bound(lower, lower_len)?, bound(upper, upper_len)?);
        Ok(handle(tree, "tree")?.tree.compact_range(lower.unwrap_or(&[]), upper)?)
    })
}

/// About how many bytes on disk the keys from `lower` up to but without `upper` take. NULL for
/// either is no bound.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_approximate_bytes(
    tree: *const shale_tree,
    lower: *const c_void,
    lower_len: usize,
    upper: *const c_void,
    upper_len: usize,
    size: *mut u64,
) -> *mut shale_error {
    // SAFETY: a live handle, bytes with their lengths, a place for a number.
    guard(|| unsafe {
        let (lower, upper) = (bound(lower, lower_len)?, bound(upper, upper_len)?);
        let found = handle(tree, "tree")?.tree.approximate_bytes(lower.unwrap_or(&[]), upper)?;
        store(size, "size", found)
    })
}

/// How many rows have keys from `lower` up to but without `upper` (NULL for either is no bound), at
/// a bounded cost, for the choice between plans of a query. Up to `exact_max` rows (some hundreds
/// are cheap) are counted, unless many deletes are in the way; more are estimated: `exact` (which
/// may be NULL) becomes whether `rows` is a count. An estimate is at least 1.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_estimate_rows(
    tree: *const shale_tree,
    lower: *const c_void,
    lower_len: usize,
    upper: *const c_void,
    upper_len: usize,
    exact_max: u64,
    rows: *mut u64,
    exact: *mut bool,
) -> *mut shale_error {
    // SAFETY: a live handle, bytes with their lengths, a place for a number, NULL or one for a
    // truth.
    guard(|| unsafe {
        let (lower, upper) = (bound(lower, lower_len)?, bound(upper, upper_len)?);
        let tree = &handle(tree, "tree")?.tree;
        let found = tree.estimate_rows(lower.unwrap_or(&[]), upper, exact_max)?;
        store(rows, "rows", found.rows)?;
        if exact.is_null() { Ok(()) } else { store(exact, "exact", found.exact) }
    })
}
