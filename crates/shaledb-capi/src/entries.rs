//! What an index of rows needs: a row and its entries written as a whole, entries that follow from
//! rows that the transaction has locked, and which of them a snapshot shows otherwise than they
//! are.

use crate::bytes::{give_value, shale_bytes};
use crate::error::{Fail, shale_error};
use crate::guard::{
    bytes, can_store, guard, handle, handle_mut, store, store_if_wanted, value_bytes,
};
use crate::tree::shale_tree;
use crate::txn::shale_txn;
use shaledb::{Action, LockMode, Operation, Watch};
use std::ffi::{c_int, c_void};

/// What an operation of shale_txn_apply does with its key.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum shale_action {
    /// As shale_txn_put.
    SHALE_ACTION_PUT = 0,
    /// As shale_txn_insert with SHALE_LOCK_EXCLUSIVE.
    SHALE_ACTION_INSERT = 1,
    /// As shale_txn_insert with SHALE_LOCK_SHARED.
    SHALE_ACTION_INSERT_OR_SHARE = 2,
    /// As shale_txn_delete of one key; the value is not used.
    SHALE_ACTION_DELETE = 3,
    /// As shale_txn_put_unlocked, but only if `changed` has become true.
    SHALE_ACTION_PUT_IF_CHANGED = 4,
    /// As shale_txn_put_unlocked.
    SHALE_ACTION_PUT_UNLOCKED = 5,
    /// Nothing, but the key must have a value, own writes included: it is locked shared, and looked
    /// at as it is now. The value is not used.
    SHALE_ACTION_REQUIRE = 6,
    /// As SHALE_ACTION_DELETE, but as shale_txn_put_unlocked without a lock, and without a look at
    /// whether the key has been changed.
    SHALE_ACTION_DELETE_UNLOCKED = 7,
}

use shale_action::*;

fn action_of(number: c_int) -> Result<Action, Fail> {
    match number {
        n if n == SHALE_ACTION_PUT as c_int => Ok(Action::Put),
        n if n == SHALE_ACTION_INSERT as c_int => Ok(Action::Insert(LockMode::Exclusive)),
        n if n == SHALE_ACTION_INSERT_OR_SHARE as c_int => Ok(Action::Insert(LockMode::Shared)),
        n if n == SHALE_ACTION_DELETE as c_int => Ok(Action::Delete),
        n if n == SHALE_ACTION_PUT_IF_CHANGED as c_int => Ok(Action::PutIfChanged),
        n if n == SHALE_ACTION_PUT_UNLOCKED as c_int => Ok(Action::PutUnlocked),
        n if n == SHALE_ACTION_REQUIRE as c_int => Ok(Action::Require),
        n if n == SHALE_ACTION_DELETE_UNLOCKED as c_int => Ok(Action::DeleteUnlocked),
        other => Err(Fail::Argument(format!("{other} is no action"))),
    }
}

/// One operation of shale_txn_apply.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct shale_operation {
    /// The tree that it writes to, or looks at.
    pub tree: *const shale_tree,
    /// A shale_action.
    pub action: c_int,
    /// The key.
    pub key: *const c_void,
    /// Its length.
    pub key_len: usize,
    /// The value.
    pub value: *const c_void,
    /// Its length.
    pub value_len: usize,
}

/// # Safety
/// The handle is live, and key and value are bytes with their lengths, during the call.
unsafe fn operation_of<'a>(operation: &shale_operation) -> Result<Operation<'a>, Fail> {
    let shale_operation { tree, action, key, key_len, value, value_len } = *operation;
    // SAFETY: the caller's word.
    unsafe {
        Ok(Operation {
            tree: &handle(tree, "tree")?.tree,
            action: action_of(action)?,
            key: bytes(key, key_len, "key")?,
            value: value_bytes(value, value_len)?,
        })
    }
}

/// Does `count` operations, in this order, all or none: a row and its entries in indexes. If one
/// fails, what those before it have written is undone, as by a savepoint. `place` becomes `count`
/// if all are done. Otherwise none is done, and it is the place of an insert whose key has a value,
/// which `existing` becomes, or of a key that is required and has none: `existing` is NULL then,
/// and the locks of what was required stay.
///
/// With `watched` (not NULL) `changed` becomes true if others have written one of the keys in this
/// tree since the snapshot that plain reads see: see shale_txn_wrote. It comes with what earlier
/// calls for the same row have found.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_apply(
    txn: *mut shale_txn,
    operations: *const shale_operation,
    count: usize,
    watched: *const shale_tree,
    changed: *mut bool,
    place: *mut usize,
    existing: *mut *mut shale_bytes,
) -> *mut shale_error {
    guard(|| {
        can_store(place, "place")?;
        can_store(existing, "existing")?;
        if operations.is_null() && count > 0 {
            return Err(Fail::null("operations"));
        }
        // SAFETY: so many operations, with live handles, and bytes with their lengths.
        let operation_at = |at| unsafe { operation_of(&*operations.add(at)) };
        // All are looked at first, then taken again: a list of them would be an allocation a row.
        for at in 0..count {
            operation_at(at)?;
        }
        let list = (0..count).map_while(|at| operation_at(at).ok());
        let mut watch = None;
        if !watched.is_null() {
            can_store(changed, "changed")?;
            // SAFETY: a live handle, and a place for a truth that has one.
            watch = Some(unsafe {
                Watch { tree: &handle(watched, "watched")?.tree, changed: *changed }
            });
        }
        // SAFETY: a live handle.
        let txn = unsafe { handle_mut(txn, "txn") }?;
        let (at, found) = match txn.txn.apply(list, watch.as_mut())? {
            Some((at, value)) => (at, value),
            None => (count, None),
        };
        // SAFETY: places for a number, for a truth where one was asked for, and for a pointer.
        unsafe {
            store(place, "place", at)?;
            if let Some(watch) = watch {
                store(changed, "changed", watch.changed)?;
            }
            give_value(existing, found)
        }
    })
}

/// As shale_txn_put, but without a lock, and without a look at whether the key has been changed. It
/// is for keys that nobody writes who has not locked another key, which this transaction has: as an
/// entry of an index belongs to its row.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_put_unlocked(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: bytes with their lengths.
        let (key, value) = unsafe { (bytes(key, key_len, "key")?, value_bytes(value, value_len)?) };
        // SAFETY: live handles.
        let (tree, txn) = unsafe { (handle(tree, "tree")?, handle_mut(txn, "txn")?) };
        Ok(txn.txn.put_unlocked(&tree.tree, key, value)?)
    })
}

/// `wrote` becomes whether the transaction itself has written a key, or deleted it, and not undone
/// that; `changed` whether others have written it since the snapshot that plain reads of the
/// transaction see, so that what these show is no longer so (not as long as there is no snapshot).
/// Either may be NULL, and is not looked for then.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_wrote(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    wrote: *mut bool,
    changed: *mut bool,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle, and bytes with their length.
        let (tree, key) = unsafe { (handle(tree, "tree")?, bytes(key, key_len, "key")?) };
        // SAFETY: a live handle.
        let txn = unsafe { handle_mut(txn, "txn") }?;
        let written = if wrote.is_null() { false } else { txn.txn.has_written(&tree.tree, key)? };
        if !changed.is_null() {
            let found = txn.txn.changed_since_snapshot(&tree.tree, key)?;
            // SAFETY: a place for a truth.
            unsafe { store(changed, "changed", found) }?;
        }
        // SAFETY: NULL or a place for a truth.
        unsafe { store_if_wanted(wrote, written) };
        Ok(())
    })
}
