//! Which rows of a tree are changed while it is copied in another form.

use crate::error::shale_error;
use crate::guard::{can_store, give, guard, handle, handle_mut, store, take, text};
use crate::quiet::free;
use crate::snapshot::shale_snapshot;
use crate::tree::shale_tree;
use shaledb::{ChangeRound, ChangeTracker, ChangedKeys};
use std::ffi::{c_char, c_void};
use std::time::Duration;

/// Tells which rows of a tree have been changed since they were copied.
#[derive(Debug)]
pub struct shale_tracker(ChangeTracker);

/// The keys that were changed between two snapshots.
#[derive(Debug)]
pub struct shale_round(ChangeRound);

/// A walk through the keys of a shale_round.
#[derive(Debug)]
pub struct shale_keys {
    keys: ChangedKeys,
    key: Vec<u8>,
}

/// Waits until no transaction, prepared ones too, holds a lock to write in the tree: until all have
/// ended that have written to it. SHALE_LOCK_TIMEOUT after `wait_millis`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tree_wait_for_writers(
    tree: *const shale_tree,
    wait_millis: u64,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let tree = unsafe { handle(tree, "tree") }?;
        Ok(tree.tree.wait_for_writers(Duration::from_millis(wait_millis))?)
    })
}

/// Begins to keep which rows of `source` are changed, so that it can be copied in another form
/// while writers go on. `tree` becomes the handle of a new tree, `name`: whoever changes a row from
/// now on puts its key there too, in the same batch or transaction (SHALE_ACTION_PUT_UNLOCKED),
/// whatever the change is. While this call runs nobody may be changing the source who does not;
/// transactions that have written to it, prepared ones too, are waited for, `wait_millis` at most.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tracker_new(
    source: *const shale_tree,
    name: *const c_char,
    wait_millis: u64,
    tracker: *mut *mut shale_tracker,
    tree: *mut *mut shale_tree,
) -> *mut shale_error {
    guard(|| {
        can_store(tracker, "tracker")?;
        can_store(tree, "tree")?;
        // SAFETY: a live handle and a text.
        let (source, name) = unsafe { (handle(source, "source")?, text(name, "name")?) };
        let begun = source.tree.track_changes(name, Duration::from_millis(wait_millis))?;
        let made = shale_tree::new(begun.tree().clone());
        // SAFETY: places for pointers.
        unsafe {
            give(tree, "tree", made)?;
            give(tracker, "tracker", shale_tracker(begun))
        }
    })
}

/// Waits for those who have written to the source or to the tree of changes, as by
/// shale_tree_wait_for_writers.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tracker_wait(
    tracker: *const shale_tracker,
    wait_millis: u64,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let tracker = unsafe { handle(tracker, "tracker") }?;
        Ok(tracker.0.wait_for_writers(Duration::from_millis(wait_millis))?)
    })
}

/// The snapshot that the copy has: at first what it begins with, later what the last round has
/// ended with.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tracker_copied(
    tracker: *const shale_tracker,
    snapshot: *mut *mut shale_snapshot,
) -> *mut shale_error {
    guard(|| {
        can_store(snapshot, "snapshot")?;
        // SAFETY: a live handle.
        let copied = unsafe { handle(tracker, "tracker") }?.0.copied().clone();
        // SAFETY: a place for a pointer.
        unsafe { give(snapshot, "snapshot", shale_snapshot(copied)) }
    })
}

/// What was changed since shale_tracker_copied, up to `snapshot`. While rounds have many keys,
/// begin them with a `flush` of the tree of changes, so that the next one reads none of them again.
/// The last one is begun without, when nobody writes and shale_tracker_wait has ended.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_round_begin(
    tracker: *const shale_tracker,
    flush: bool,
    round: *mut *mut shale_round,
    snapshot: *mut *mut shale_snapshot,
) -> *mut shale_error {
    guard(|| {
        can_store(round, "round")?;
        can_store(snapshot, "snapshot")?;
        // SAFETY: a live handle.
        let begun = unsafe { handle(tracker, "tracker") }?.0.begin_round(flush)?;
        // SAFETY: places for pointers.
        unsafe {
            give(snapshot, "snapshot", shale_snapshot(begun.snapshot().clone()))?;
            give(round, "round", shale_round(begun))
        }
    })
}

/// Begins a walk through the keys of a round, ascending. There may be several, one after the other.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_round_keys(
    round: *const shale_round,
    keys: *mut *mut shale_keys,
) -> *mut shale_error {
    guard(|| {
        can_store(keys, "keys")?;
        // SAFETY: a live handle.
        let walk = unsafe { handle(round, "round") }?.0.keys();
        // SAFETY: a place for a pointer.
        unsafe { give(keys, "keys", shale_keys { keys: walk, key: Vec::new() }) }
    })
}

/// The next key, valid until the next call; NULL: there is none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_keys_next(
    keys: *mut shale_keys,
    key: *mut *const c_void,
    key_len: *mut usize,
) -> *mut shale_error {
    guard(|| {
        can_store(key, "key")?;
        can_store(key_len, "key_len")?;
        // SAFETY: a live handle.
        let keys = unsafe { handle_mut(keys, "keys") }?;
        let next = keys.keys.next().transpose()?;
        let found = next.is_some();
        keys.key = next.unwrap_or_default();
        let bytes: *const c_void = if found { keys.key.as_ptr().cast() } else { std::ptr::null() };
        // SAFETY: places for a pointer and a number.
        unsafe {
            store(key_len, "key_len", keys.key.len())?;
            store(key, "key", bytes)
        }
    })
}

/// Ends a walk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_keys_free(keys: *mut shale_keys) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(keys) }
}

/// The copy has what the round has. Frees the round, after an error too; the copy is of no use
/// then.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_round_end(
    tracker: *mut shale_tracker,
    round: *mut shale_round,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: the handle, which the caller gives back.
        let round = unsafe { take(round, "round") }?;
        // SAFETY: a live handle.
        let tracker = unsafe { handle_mut(tracker, "tracker") }?;
        Ok(tracker.0.end_round(round.0)?)
    })
}

/// Gives a round up; its keys come again in the next one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_round_free(round: *mut shale_round) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(round) }
}

/// Ends it, and drops the tree of changes. Hold writers off meanwhile: who then writes there gets
/// SHALE_NO_SUCH_TREE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tracker_free(tracker: *mut shale_tracker) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(tracker) }
}
