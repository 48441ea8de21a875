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
pub struct shale_round {
    round: ChangeRound,
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
/// `snapshot` becomes what the copy begins with.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_tracker_new(
    source: *const shale_tree,
    name: *const c_char,
    wait_millis: u64,
    tracker: *mut *mut shale_tracker,
    tree: *mut *mut shale_tree,
    snapshot: *mut *mut shale_snapshot,
) -> *mut shale_error {
    guard(|| {
        can_store(tracker, "tracker")?;
        can_store(tree, "tree")?;
        can_store(snapshot, "snapshot")?;
        // SAFETY: a live handle and a text.
        let (source, name) = unsafe { (handle(source, "source")?, text(name, "name")?) };
        let begun = source.tree.track_changes(name, Duration::from_millis(wait_millis))?;
        let made = shale_tree::new(begun.tree().clone());
        // SAFETY: places for pointers.
        unsafe {
            give(tree, "tree", made)?;
            give(snapshot, "snapshot", shale_snapshot(begun.copied().clone()))?;
            give(tracker, "tracker", shale_tracker(begun))
        }
    })
}

/// What was changed since `before`: the snapshot of shale_tracker_new, or that with which the last
/// round has ended; up to `after`. While rounds have many keys, begin them with a `flush` of the
/// tree of changes, so that the next one reads none of them again. The last one is begun without,
/// when nobody writes and shale_tree_wait_for_writers of the source has ended.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_round_begin(
    tracker: *const shale_tracker,
    flush: bool,
    round: *mut *mut shale_round,
    before: *mut *mut shale_snapshot,
    after: *mut *mut shale_snapshot,
) -> *mut shale_error {
    guard(|| {
        can_store(round, "round")?;
        can_store(before, "before")?;
        can_store(after, "after")?;
        // SAFETY: a live handle.
        let tracker = &unsafe { handle(tracker, "tracker") }?.0;
        let begun = tracker.begin_round(flush)?;
        let (was, is) = (tracker.copied().clone(), begun.snapshot().clone());
        let keys = begun.keys();
        // SAFETY: places for pointers.
        unsafe {
            give(before, "before", shale_snapshot(was))?;
            give(after, "after", shale_snapshot(is))?;
            give(round, "round", shale_round { round: begun, keys, key: Vec::new() })
        }
    })
}

/// The next key of a round, ascending, or the `first`: there may be several walks, one after the
/// other. It is valid until the next call; NULL: there is none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_round_next(
    round: *mut shale_round,
    first: bool,
    key: *mut *const c_void,
    key_len: *mut usize,
) -> *mut shale_error {
    guard(|| {
        can_store(key, "key")?;
        can_store(key_len, "key_len")?;
        // SAFETY: a live handle.
        let round = unsafe { handle_mut(round, "round") }?;
        if first {
            round.keys = round.round.keys();
        }
        let next = round.keys.next().transpose()?;
        let found = next.is_some();
        round.key = next.unwrap_or_default();
        let bytes: *const c_void = if found { round.key.as_ptr().cast() } else { std::ptr::null() };
        // SAFETY: places for a pointer and a number.
        unsafe {
            store(key_len, "key_len", round.key.len())?;
            store(key, "key", bytes)
        }
    })
}

/// The copy has what the round has. Frees the round, after an error too; the copy is of no use
/// then. But a round of another tracker, or one that began before the last one ended, is
/// SHALE_INVALID_ARGUMENT, and nothing has changed.
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
        let shale_round { round, keys, .. } = *round;
        drop(keys);
        Ok(tracker.0.end_round(round)?)
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
