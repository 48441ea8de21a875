//! Scans: rows in order, forward and backward.

use crate::error::{Fail, shale_error};
use crate::guard::{
    bound, bytes, bytes_or_null, can_store, give, guard, handle, handle_mut, store,
};
use crate::quiet::{free, quiet};
use crate::snapshot::shale_snapshot;
use crate::tree::shale_tree;
use std::ffi::{c_int, c_void};

/// Where a scan goes. Inside its bounds, and without a row to start from SHALE_NEXT and SHALE_PREV
/// do nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum shale_seek {
    /// To the first row.
    SHALE_FIRST = 0,
    /// To the last row.
    SHALE_LAST = 1,
    /// To the next row, or to none after the last.
    SHALE_NEXT = 2,
    /// To the previous row, or to none before the first.
    SHALE_PREV = 3,
    /// To the first row at or after a key.
    SHALE_AT_OR_AFTER = 4,
    /// To the last row at or before a key.
    SHALE_AT_OR_BEFORE = 5,
}

use shale_seek::*;

/// A position in the rows of a tree as they were at one moment.
pub struct shale_scan(pub(crate) shaledb::Scan);

/// A range, from `lower` up to but without `upper`; NULL for either is no bound.
///
/// # Safety
/// As of `guard::bound`.
pub(crate) unsafe fn range(
    lower: (*const c_void, usize),
    upper: (*const c_void, usize),
    fill_cache: bool,
) -> Result<shaledb::ScanOptions<'static>, Fail> {
    // SAFETY: the caller's word.
    let (lower, upper) = unsafe { (bound(lower.0, lower.1)?, bound(upper.0, upper.1)?) };
    Ok(shaledb::ScanOptions {
        lower: lower.map(<[u8]>::to_vec),
        upper: upper.map(<[u8]>::to_vec),
        fill_cache,
        ..shaledb::ScanOptions::default()
    })
}

/// Scans the keys from `lower` up to but without `upper` (NULL for either: no bound), at a snapshot
/// or (NULL) as of now. `fill_cache` keeps blocks that had to be read in the cache: say false for a
/// scan of much that will not be read again soon. It stands on no row until it is told where to go.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_scan_new(
    tree: *const shale_tree,
    snapshot: *const shale_snapshot,
    lower: *const c_void,
    lower_len: usize,
    upper: *const c_void,
    upper_len: usize,
    fill_cache: bool,
    scan: *mut *mut shale_scan,
) -> *mut shale_error {
    guard(|| {
        can_store(scan, "scan")?;
        // SAFETY: bytes with their lengths.
        let range = unsafe { range((lower, lower_len), (upper, upper_len), fill_cache) }?;
        // SAFETY: NULL or a live handle, and a live one.
        let (snapshot, tree) = unsafe { (snapshot.as_ref(), handle(tree, "tree")?) };
        let snapshot = snapshot.map(|snapshot| &snapshot.0);
        let begun = tree.tree.scan_with(shaledb::ScanOptions { snapshot, ..range })?;
        // SAFETY: a place for a pointer.
        unsafe { give(scan, "scan", shale_scan(begun)) }
    })
}

/// Goes to a row, as a shale_seek says; to none if there is no such row. `key` is for those that
/// name one, else it may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_scan_move(
    scan: *mut shale_scan,
    how: c_int,
    key: *const c_void,
    key_len: usize,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle, and bytes with their length.
        let (scan, key) = unsafe { (handle_mut(scan, "scan")?, bytes(key, key_len, "key")?) };
        go(&mut scan.0, how, key)
    })
}

/// Moves a scan by SHALE_FIRST, SHALE_LAST, SHALE_NEXT or SHALE_PREV and gives its row, as
/// shale_scan_key and shale_scan_value do, in one call. Without a row, and if it fails, `key` and
/// `value` become NULL. With NULL for `value` and `value_len` no value is read, which saves the
/// read of a file where it is large.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_scan_step(
    scan: *mut shale_scan,
    how: c_int,
    key: *mut *const c_void,
    key_len: *mut usize,
    value: *mut *const c_void,
    value_len: *mut usize,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let scan = &mut unsafe { handle_mut(scan, "scan") }?.0;
        let is_wanted = !value.is_null() || !value_len.is_null();
        // SAFETY: places for pointers.
        unsafe {
            store(key, "key", std::ptr::null())?;
            if is_wanted {
                store(value, "value", std::ptr::null())?;
            }
        }
        go(scan, how, &[])?;
        if !scan.valid() {
            // SAFETY: two places.
            return unsafe {
                store(key_len, "key_len", 0)?;
                if is_wanted { store(value_len, "value_len", 0) } else { Ok(()) }
            };
        }
        let row = (scan.key(), if is_wanted { scan.value()? } else { &[] });
        // SAFETY: four places, two if no value is wanted.
        unsafe {
            store(key_len, "key_len", row.0.len())?;
            if is_wanted {
                store(value_len, "value_len", row.1.len())?;
                store(value, "value", row.1.as_ptr().cast())?;
            }
            store(key, "key", row.0.as_ptr().cast())
        }
    })
}

#[inline]
fn go(scan: &mut shaledb::Scan, how: c_int, key: &[u8]) -> Result<(), Fail> {
    match how {
        n if n == SHALE_NEXT as c_int => scan.next()?,
        n if n == SHALE_PREV as c_int => scan.prev()?,
        n if n == SHALE_FIRST as c_int => scan.seek_first()?,
        n if n == SHALE_LAST as c_int => scan.seek_last()?,
        n if n == SHALE_AT_OR_AFTER as c_int => scan.seek(key)?,
        n if n == SHALE_AT_OR_BEFORE as c_int => scan.seek_back(key)?,
        other => return Err(Fail::Argument(format!("{other} is no way to move a scan"))),
    }
    Ok(())
}

/// The row's key, valid until the scan moves or is freed, with its length in `len`, which may be
/// NULL. NULL and 0 without a row: so it tells whether there is one. Of NULL: NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_scan_key(scan: *const shale_scan, len: *mut usize) -> *const c_void {
    let key = quiet(None, || {
        // SAFETY: NULL or a live handle.
        unsafe { scan.as_ref() }.filter(|scan| scan.0.valid()).map(|scan| scan.0.key())
    });
    // SAFETY: NULL or a place for a number.
    unsafe { bytes_or_null(key, len) }
}

/// The row's value, valid until the scan moves or is freed. A large one is read from its file, as a
/// whole. Without a row: SHALE_INVALID_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_scan_value(
    scan: *const shale_scan,
    value: *mut *const c_void,
    len: *mut usize,
) -> *mut shale_error {
    guard(|| {
        can_store(value, "value")?;
        // SAFETY: a live handle.
        let scan = &unsafe { handle(scan, "scan") }?.0;
        if !scan.valid() {
            return Err(Fail::Argument("the scan stands on no row".to_owned()));
        }
        let bytes = scan.value()?;
        // SAFETY: two places.
        unsafe {
            store(len, "len", bytes.len())?;
            store(value, "value", bytes.as_ptr().cast())
        }
    })
}

/// Ends a scan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_scan_free(scan: *mut shale_scan) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(scan) }
}
