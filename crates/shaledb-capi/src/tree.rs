//! Trees: open, create, drop, and what concerns one as a whole.

use crate::config::shale_config;
use crate::db::shale_db;
use crate::error::{Fail, shale_error};
use crate::guard::{bound, can_store, give, guard, handle, store, store_if_wanted, text};
use crate::quiet::{free, quiet};
use std::ffi::{CString, c_char, c_int, c_void};

/// Whether a tree must be there.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum shale_tree_mode {
    /// It must exist.
    SHALE_TREE_THERE = 0,
    /// It must not exist, and is created.
    SHALE_TREE_NEW = 1,
    /// It is created if it does not exist.
    SHALE_TREE_THERE_OR_NEW = 2,
}

use shale_tree_mode::*;

/// A named tree: an ordered map from keys to values.
#[derive(Debug)]
pub struct shale_tree {
    pub(crate) tree: shaledb::Tree,
    name: CString,
}

impl shale_tree {
    pub(crate) fn new(tree: shaledb::Tree) -> shale_tree {
        let name = CString::new(tree.name()).unwrap_or_default();
        shale_tree { tree, name }
    }
}

/// The tree of this name, as a shale_tree_mode says. What is created gets the settings of `config`
/// that begin with `tree.`; NULL: all defaults with SHALE_TREE_NEW, with SHALE_TREE_THERE_OR_NEW
/// those that the database has for new trees.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_open(
    db: *const shale_db,
    name: *const c_char,
    mode: c_int,
    config: *const shale_config,
    tree: *mut *mut shale_tree,
) -> *mut shale_error {
    guard(|| {
        can_store(tree, "tree")?;
        // SAFETY: a live handle, and a text.
        let (db, name) = unsafe { (handle(db, "db")?, text(name, "name")?) };
        // SAFETY: NULL or a live handle.
        let config = unsafe { config.as_ref() }.map(|own| own.0.tree.clone());
        let opened = open(&db.0, name, mode, config)?;
        // SAFETY: a place for a pointer.
        unsafe { give(tree, "tree", shale_tree::new(opened)) }
    })
}

fn open(
    db: &shaledb::Db,
    name: &str,
    mode: c_int,
    config: Option<shaledb::TreeConfig>,
) -> Result<shaledb::Tree, Fail> {
    use shaledb::Error::{NoSuchTree, TreeExists};
    match (mode, config) {
        (n, _) if n == SHALE_TREE_THERE as c_int => Ok(db.tree(name)?),
        (n, config) if n == SHALE_TREE_NEW as c_int => {
            Ok(db.create_tree(name, config.unwrap_or_default())?)
        }
        (n, None) if n == SHALE_TREE_THERE_OR_NEW as c_int => Ok(db.tree_or_create(name)?),
        // Somebody else may create it meanwhile.
        (n, Some(config)) if n == SHALE_TREE_THERE_OR_NEW as c_int => Ok(match db.tree(name) {
            Err(NoSuchTree(_)) => match db.create_tree(name, config) {
                Err(TreeExists(_)) => db.tree(name)?,
                other => other?,
            },
            other => other?,
        }),
        (other, _) => Err(Fail::Argument(format!("{other} is no way to open a tree"))),
    }
}

/// Drops a tree, at the same cost whatever its size. Its space is free as soon as no scan and no
/// snapshot's read is in it; calls with its handles return SHALE_NO_SUCH_TREE.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_drop(
    db: *const shale_db,
    name: *const c_char,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle and a text.
        let (db, name) = unsafe { (handle(db, "db")?, text(name, "name")?) };
        Ok(db.0.drop_tree(name)?)
    })
}

/// Creates trees and drops others, in one step, at the cost of one: all of it is durable on return,
/// or nothing has changed. A name that is dropped may be created again. `create` are `created`
/// names, `drop` are `dropped`; `config` is as by shale_tree_open, the same for all. `trees` are
/// `created` places for the handles, in the order of the names.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_trees_change(
    db: *const shale_db,
    create: *const *const c_char,
    created: usize,
    config: *const shale_config,
    drop: *const *const c_char,
    dropped: usize,
    trees: *mut *mut shale_tree,
) -> *mut shale_error {
    guard(|| {
        if created > 0 {
            can_store(trees, "trees")?;
        }
        // SAFETY: NULL or a live handle.
        let config = unsafe { config.as_ref() }.map(|own| own.0.tree.clone()).unwrap_or_default();
        // SAFETY: lists of texts with their lengths.
        let (create, drop) =
            unsafe { (texts(create, created, "create")?, texts(drop, dropped, "drop")?) };
        let create: Vec<_> = create.into_iter().map(|name| (name, config.clone())).collect();
        // SAFETY: a live handle.
        let db = unsafe { handle(db, "db") }?;
        let made = db.0.change_trees(&create, &drop)?;
        for (at, tree) in made.into_iter().enumerate() {
            // SAFETY: a place for each name that was to be created.
            unsafe { give(trees.add(at), "trees", shale_tree::new(tree))? };
        }
        Ok(())
    })
}

/// A list of `count` texts.
///
/// # Safety
/// Each is a text that ends with a zero, or NULL, which is refused.
unsafe fn texts<'a>(
    list: *const *const c_char,
    count: usize,
    what: &str,
) -> Result<Vec<&'a str>, Fail> {
    if list.is_null() && count > 0 {
        return Err(Fail::null(what));
    }
    // SAFETY: so many places, as the caller says.
    (0..count).map(|at| unsafe { text(*list.add(at), what) }).collect()
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

/// Whether a transaction that has not ended, a prepared one too, has an exclusive lock in the tree
/// or one to write: a scan that locks all rows shared would wait for it. Batches and optimistic
/// transactions have no locks before they commit.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_is_locked(
    tree: *const shale_tree,
    is_locked: *mut bool,
) -> *mut shale_error {
    guard(|| {
        can_store(is_locked, "is_locked")?;
        // SAFETY: a live handle.
        let found = unsafe { handle(tree, "tree") }?.tree.is_locked()?;
        // SAFETY: a place for a truth.
        unsafe { store(is_locked, "is_locked", found) }
    })
}

/// How much the keys from `lower` up to but without `upper` have (NULL for either is no bound), at
/// a bounded cost, for the choice between plans of a query. Up to `exact_max` rows (some hundreds
/// are cheap) are counted, unless many deletes are in the way; more are estimated: `exact` becomes
/// whether `rows` is a count. With 0, the cheapest, few are estimated too. An estimate is never 0.
/// `size` becomes about how many bytes on disk they take. Each of the three may be NULL, and then
/// costs nothing.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_estimate(
    tree: *const shale_tree,
    lower: *const c_void,
    lower_len: usize,
    upper: *const c_void,
    upper_len: usize,
    exact_max: u64,
    rows: *mut u64,
    exact: *mut bool,
    size: *mut u64,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: bytes with their lengths.
        let (lower, upper) = unsafe { (bound(lower, lower_len)?, bound(upper, upper_len)?) };
        let lower = lower.unwrap_or(&[]);
        // SAFETY: a live handle.
        let tree = &unsafe { handle(tree, "tree") }?.tree;
        let found = match rows.is_null() {
            true => None,
            false => Some(tree.estimate_rows(lower, upper, exact_max)?),
        };
        if !size.is_null() {
            let found = tree.approximate_bytes(lower, upper)?;
            // SAFETY: a place for a number.
            unsafe { store(size, "size", found) }?;
        }
        if let Some(found) = found {
            // SAFETY: a place for a number, NULL or one for a truth.
            unsafe {
                store(rows, "rows", found.rows)?;
                store_if_wanted(exact, found.exact);
            }
        }
        Ok(())
    })
}
