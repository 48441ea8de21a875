//! What concerns all trees at once: flush, compact, copy, check, name them.

use crate::bytes::shale_bytes;
use crate::db::shale_db;
use crate::error::{Fail, shale_error};
use crate::guard::{bound, can_store, give, guard, handle, store, text};
use crate::tree::shale_tree;
use std::ffi::{c_char, c_void};

/// Writes the memtables of a tree, or (NULL) of all trees, to tables, and returns when it is done.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_flush(
    db: *const shale_db,
    tree: *const shale_tree,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle, NULL or one.
        let (db, tree) = unsafe { (handle(db, "db")?, tree.as_ref()) };
        Ok(tree.map_or_else(|| db.0.flush(), |tree| tree.tree.flush())?)
    })
}

/// Flushes, and compacts into the last level the keys of a tree from `lower` up to but without
/// `upper` (NULL for either is no bound), or, if `tree` is NULL, every tree, without bounds. It is
/// never needed: when writes stop the engine by itself brings its trees into the best shape for
/// reading.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_compact(
    db: *const shale_db,
    tree: *const shale_tree,
    lower: *const c_void,
    lower_len: usize,
    upper: *const c_void,
    upper_len: usize,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle, NULL or one.
        let (db, tree) = unsafe { (handle(db, "db")?, tree.as_ref()) };
        // SAFETY: bytes with their lengths.
        let (lower, upper) = unsafe { (bound(lower, lower_len)?, bound(upper, upper_len)?) };
        match tree {
            Some(tree) => Ok(tree.tree.compact_range(lower.unwrap_or(&[]), upper)?),
            None if lower.or(upper).is_some() => {
                Err(Fail::Argument("bounds are of one tree, and `tree` is NULL".to_owned()))
            }
            None => Ok(db.0.compact()?),
        }
    })
}

/// Waits until background work has nothing left to do. Writes meanwhile make the wait longer.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_wait_idle(db: *const shale_db) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let db = unsafe { handle(db, "db") }?;
        Ok(db.0.wait_idle()?)
    })
}

/// Sets what all files of the database may take together, in bytes; 0 is no limit. It is refused
/// (SHALE_CONFIG) if the files take more, or if it is too little for the memtables.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_set_space_limit(
    db: *const shale_db,
    bytes: u64,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let db = unsafe { handle(db, "db") }?;
        Ok(db.0.set_space_limit(bytes)?)
    })
}

/// Makes a copy of the database in the folder `dir`, which must not exist, by hard links: it takes
/// no space for what both share, and opens as a database of its own. Complete, or not there.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_checkpoint(
    db: *const shale_db,
    dir: *const c_char,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle and a text.
        let (db, dir) = unsafe { (handle(db, "db")?, text(dir, "dir")?) };
        Ok(db.0.checkpoint(dir)?)
    })
}

/// Reads and checks every byte of the database. `report` becomes JSON: tables, blobs, bytes,
/// entries, and damage, a list of texts. It fails if there is damage, and gives the report all the
/// same.
/// `report` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_verify(
    db: *const shale_db,
    report: *mut *mut shale_bytes,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let db = unsafe { handle(db, "db") }?;
        let found = db.0.verify(&mut |_| ())?;
        if !report.is_null() {
            // SAFETY: a place for a pointer.
            unsafe { give(report, "report", shale_bytes::json(&found)?)? };
        }
        found.damage.first().map_or(Ok(()), |damage| Err(damage.clone().into()))
    })
}

/// The names of the trees, in order, each ended by a zero, one after the other; `count` becomes how
/// many there are.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_names(
    db: *const shale_db,
    names: *mut *mut shale_bytes,
    count: *mut usize,
) -> *mut shale_error {
    guard(|| {
        can_store(names, "names")?;
        // SAFETY: a live handle.
        let db = unsafe { handle(db, "db") }?;
        let all = db.0.tree_names();
        let text: String = all.iter().flat_map(|name| [name.as_str(), "\0"]).collect();
        // SAFETY: two places.
        unsafe {
            store(count, "count", all.len())?;
            give(names, "names", shale_bytes::owned(text))
        }
    })
}
