//! Transactions.

use crate::bytes::{give_value, give_values, shale_bytes};
use crate::db::shale_db;
use crate::error::{Fail, shale_error};
use crate::guard::{
    bound, bytes, bytes_or_null, can_store, give, guard, handle, handle_mut, many_keys, store,
    store_if_wanted, take, value_bytes,
};
use crate::quiet::{free, quiet};
use crate::tree::shale_tree;
use shaledb::{Concurrency, Isolation, LockMode, OnConflict, TransactionOptions};
use std::ffi::{c_int, c_void};
use std::time::Duration;

/// What a transaction sees of others.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum shale_isolation {
    /// Each read, or each statement (shale_txn_begin_statement), sees what is committed then.
    SHALE_READ_COMMITTED = 0,
    /// Plain reads see one snapshot, locking reads the newest; locking scans lock the gaps too.
    SHALE_REPEATABLE_READ = 1,
    /// As if transactions ran one after the other: plain reads lock.
    SHALE_SERIALIZABLE = 2,
}

/// What keeps transactions apart, and what happens when one writes what others have changed since
/// its snapshot.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum shale_concurrency {
    /// Locks, for which it waits. What was changed since its snapshot is SHALE_CONFLICT: nothing
    /// is overwritten that was not seen.
    SHALE_LOCKS = 0,
    /// Locks; what was changed since its snapshot is overwritten, as InnoDB does.
    SHALE_LOCKS_LATEST = 1,
    /// No locks and no waits: it is checked at commit, which may be SHALE_CONFLICT.
    SHALE_OPTIMISTIC = 2,
}

/// Is told that the transaction `waiter` waits for a lock that `holder` has, by the numbers of
/// shale_txn_id; or that it waits no more, with the holder 0. No exception may leave it.
pub type shale_wait_callback =
    Option<unsafe extern "C" fn(context: *mut c_void, waiter: u64, holder: u64)>;

/// What came from C, to be called by any thread.
struct WaitCallback(unsafe extern "C" fn(*mut c_void, u64, u64), *mut c_void);

// SAFETY: shale_observe_lock_waits asks for a function that any thread may call at any time.
unsafe impl Send for WaitCallback {}
// SAFETY: as above.
unsafe impl Sync for WaitCallback {}

impl WaitCallback {
    fn tell(&self, waiter: u64, holders: &[u64]) {
        let ended: &[u64] = &[0];
        for &holder in if holders.is_empty() { ended } else { holders } {
            // SAFETY: the word of who gave the function, good until the database is closed; from
            // then on it is not called.
            unsafe { self.0(self.1, waiter, holder) }
        }
    }
}

/// From now on `callback` is told of waits for locks, once for each transaction that is in the way:
/// before a wait begins, and about every 50 milliseconds while it lasts; and with the holder 0 when
/// it has ended. The thread that waits calls it, several at once; it may not use the waiting
/// transaction, nor close the database. It cannot be taken back: `context` is needed until
/// shale_close has returned, which waits for calls under way; there are none from then on.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_observe_lock_waits(
    db: *const shale_db,
    callback: shale_wait_callback,
    context: *mut c_void,
) -> *mut shale_error {
    guard(|| {
        let callback = callback.ok_or_else(|| Fail::null("callback"))?;
        let callback = WaitCallback(callback, context);
        // SAFETY: a live handle.
        let db = unsafe { handle(db, "db") }?;
        db.0.observe_lock_waits(move |waiter, holders| {
            callback.tell(waiter, holders);
        })?;
        Ok(())
    })
}

/// How a read locks its rows.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum shale_lock {
    /// Not, but for SHALE_SERIALIZABLE.
    SHALE_LOCK_NONE = 0,
    /// Others may read and lock shared, not write.
    SHALE_LOCK_SHARED = 1,
    /// Others may neither write nor lock.
    SHALE_LOCK_EXCLUSIVE = 2,
}

use shale_concurrency::*;
use shale_isolation::*;
use shale_lock::*;

// C may pass any number for these: they come as such and are looked up.

fn isolation_of(number: c_int) -> Result<Isolation, Fail> {
    match number {
        n if n == SHALE_READ_COMMITTED as c_int => Ok(Isolation::ReadCommitted),
        n if n == SHALE_REPEATABLE_READ as c_int => Ok(Isolation::RepeatableRead),
        n if n == SHALE_SERIALIZABLE as c_int => Ok(Isolation::Serializable),
        other => Err(Fail::Argument(format!("{other} is no isolation level"))),
    }
}

fn concurrency_of(number: c_int) -> Result<(Concurrency, OnConflict), Fail> {
    match number {
        n if n == SHALE_LOCKS as c_int => Ok((Concurrency::Pessimistic, OnConflict::Error)),
        n if n == SHALE_LOCKS_LATEST as c_int => Ok((Concurrency::Pessimistic, OnConflict::Latest)),
        n if n == SHALE_OPTIMISTIC as c_int => Ok((Concurrency::Optimistic, OnConflict::Error)),
        other => Err(Fail::Argument(format!("{other} is no kind of concurrency"))),
    }
}

/// `None`: without a lock.
pub(crate) fn lock_of(number: c_int) -> Result<Option<LockMode>, Fail> {
    match number {
        n if n == SHALE_LOCK_NONE as c_int => Ok(None),
        n if n == SHALE_LOCK_SHARED as c_int => Ok(Some(LockMode::Shared)),
        n if n == SHALE_LOCK_EXCLUSIVE as c_int => Ok(Some(LockMode::Exclusive)),
        other => Err(Fail::Argument(format!("{other} is no lock"))),
    }
}

/// A transaction over any trees of one database. Used by one thread at a time. SHALE_LOCK_TIMEOUT
/// and SHALE_LOCKS_FULL leave it as it was before the call; SHALE_DEADLOCK has rolled it back:
/// calls with it then return SHALE_ROLLED_BACK, and it is to be ended by shale_txn_rollback.
#[derive(Debug)]
pub struct shale_txn {
    pub(crate) txn: shaledb::Transaction,
    savepoints: Vec<shaledb::Savepoint>,
    /// What shale_txn_read has found.
    read: Option<shaledb::Value>,
}

/// Begins a transaction, of a shale_isolation and a shale_concurrency. It waits for each lock for
/// up to `lock_timeout_millis`, 0: not at all.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_begin(
    db: *const shale_db,
    isolation: c_int,
    concurrency: c_int,
    lock_timeout_millis: u64,
    txn: *mut *mut shale_txn,
) -> *mut shale_error {
    guard(|| {
        can_store(txn, "txn")?;
        let (concurrency, on_conflict) = concurrency_of(concurrency)?;
        let options = TransactionOptions {
            isolation: isolation_of(isolation)?,
            concurrency,
            on_conflict,
            lock_timeout: Duration::from_millis(lock_timeout_millis),
            ..TransactionOptions::default()
        };
        // SAFETY: a live handle.
        let db = unsafe { handle(db, "db") }?;
        let begun = shale_txn { txn: db.0.begin(options)?, savepoints: Vec::new(), read: None };
        // SAFETY: a place for a pointer.
        unsafe { give(txn, "txn", begun) }
    })
}

/// The number of a transaction, which errors about locks name. Of NULL: 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_id(txn: *const shale_txn) -> u64 {
    // SAFETY: NULL or a live handle.
    quiet(0, || unsafe { txn.as_ref() }.map_or(0, |txn| txn.txn.id()))
}

/// At SHALE_READ_COMMITTED: begins a statement, whose plain reads all see what is committed when
/// the first of them is made. At SHALE_REPEATABLE_READ: takes the snapshot now, if no read has
/// taken it yet.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_begin_statement(txn: *mut shale_txn) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let txn = &mut unsafe { handle_mut(txn, "txn") }?.txn;
        txn.begin_statement()?;
        Ok(txn.take_snapshot()?)
    })
}

/// The value of a key, own writes included; with a lock (a shale_lock), the newest. `value`
/// becomes NULL if there is none: that is no error, and the key is locked all the same.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_get(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    lock: c_int,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut shale_bytes,
) -> *mut shale_error {
    guard(|| {
        can_store(value, "value")?;
        // SAFETY: live handles, and bytes with their length.
        let found = unsafe { get(handle_mut(txn, "txn")?, tree, lock, (key, key_len)) }?;
        // SAFETY: a place for a pointer.
        unsafe { give_value(value, found) }
    })
}

/// # Safety
/// A live handle, and a key with its length.
unsafe fn get(
    txn: &mut shale_txn,
    tree: *const shale_tree,
    lock: c_int,
    key: (*const c_void, usize),
) -> Result<Option<shaledb::Value>, Fail> {
    // SAFETY: the caller's word.
    let (tree, key) = unsafe { (&handle(tree, "tree")?.tree, bytes(key.0, key.1, "key")?) };
    Ok(match lock_of(lock)? {
        None => txn.txn.get(tree, key)?,
        Some(LockMode::Shared) => txn.txn.get_for_share(tree, key)?,
        Some(LockMode::Exclusive) => txn.txn.get_for_update(tree, key)?,
    })
}

/// As shale_txn_get, for who needs the value for a moment: the transaction keeps it until the next
/// call of this, and to its end. `value` becomes NULL if there is none.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_read(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    lock: c_int,
    key: *const c_void,
    key_len: usize,
    value: *mut *const c_void,
    value_len: *mut usize,
) -> *mut shale_error {
    guard(|| {
        can_store(value, "value")?;
        can_store(value_len, "value_len")?;
        // SAFETY: a live handle.
        let txn = unsafe { handle_mut(txn, "txn") }?;
        // SAFETY: a live handle, and bytes with their length.
        let found = unsafe { get(txn, tree, lock, (key, key_len)) }?;
        txn.read = found;
        // SAFETY: two places.
        unsafe { store(value, "value", bytes_or_null(txn.read.as_deref(), value_len)) }
    })
}

/// Sets a key. Others see it when the transaction has committed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_put(
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
        let (txn, tree) = unsafe { (handle_mut(txn, "txn")?, handle(tree, "tree")?) };
        Ok(txn.txn.put(&tree.tree, key, value)?)
    })
}

/// Deletes a key, whether or not it is there; with `end` (not NULL) all keys from `key` up to but
/// without `end`, and locks the whole range.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_delete(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    end: *const c_void,
    end_len: usize,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: bytes with their lengths.
        let (key, end) = unsafe { (bytes(key, key_len, "key")?, bound(end, end_len)?) };
        // SAFETY: live handles.
        let (txn, tree) = unsafe { (handle_mut(txn, "txn")?, handle(tree, "tree")?) };
        match end {
            Some(end) => txn.txn.delete_range(&tree.tree, key, end)?,
            None => txn.txn.delete(&tree.tree, key)?,
        }
        Ok(())
    })
}

/// A position to roll back to, such as before a statement: 0, 1, and so on.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_savepoint(
    txn: *mut shale_txn,
    savepoint: *mut usize,
) -> *mut shale_error {
    guard(|| {
        can_store(savepoint, "savepoint")?;
        // SAFETY: a live handle.
        let txn = unsafe { handle_mut(txn, "txn") }?;
        txn.savepoints.push(txn.txn.savepoint());
        // SAFETY: a place for a number.
        unsafe { store(savepoint, "savepoint", txn.savepoints.len() - 1) }
    })
}

fn of(txn: &shale_txn, savepoint: usize) -> Result<shaledb::Savepoint, Fail> {
    let found = txn.savepoints.get(savepoint).copied();
    found.ok_or_else(|| Fail::Argument(format!("there is no savepoint {savepoint}")))
}

/// Undoes what was written since a savepoint, which stays; later ones are gone. Locks are kept, but
/// for those of keys of which nothing else was asked (at SHALE_SERIALIZABLE also those).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_rollback_to(
    txn: *mut shale_txn,
    savepoint: usize,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let txn = unsafe { handle_mut(txn, "txn") }?;
        txn.txn.rollback_to(of(txn, savepoint)?)?;
        txn.savepoints.truncate(savepoint + 1);
        Ok(())
    })
}

/// Gives up a savepoint and all later ones; what was written stays.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_release(
    txn: *mut shale_txn,
    savepoint: usize,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let txn = unsafe { handle_mut(txn, "txn") }?;
        txn.txn.release(of(txn, savepoint)?)?;
        txn.savepoints.truncate(savepoint);
        Ok(())
    })
}

/// Undoes all that was written to a tree, whatever savepoints there are: for one that is to be
/// dropped, or was. Otherwise the commit of a transaction that has written to a tree that is not
/// there fails. Locks are kept.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_forget(
    txn: *mut shale_txn,
    tree: *const shale_tree,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: live handles.
        let (txn, tree) = unsafe { (handle_mut(txn, "txn")?, handle(tree, "tree")?) };
        Ok(txn.txn.forget(&tree.tree)?)
    })
}

/// Bounds what the writes from now on may take of memory, 512 MiB at most; what is beyond goes to
/// files. Without this: a sixteenth of the database's memory_bytes, 64 MiB at most. Of
/// SHALE_OPTIMISTIC what is beyond is SHALE_TRANSACTION_FULL, and without this it is 512 MiB.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_set_memory(
    txn: *mut shale_txn,
    memory_bytes: u64,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let txn = unsafe { handle_mut(txn, "txn") }?;
        Ok(txn.txn.set_memory_bytes(memory_bytes)?)
    })
}

/// Makes all that was written visible, at one position in the commit order, and with `sync`
/// durable. It frees the transaction, also if it fails: then it has been rolled back (of
/// SHALE_POISONED the outcome is known after the next open).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_commit(txn: *mut shale_txn, sync: bool) -> *mut shale_error {
    guard(|| {
        // SAFETY: NULL or a handle that the caller gives back.
        let txn = unsafe { take(txn, "txn") }?;
        Ok(txn.txn.commit(shaledb::WriteOptions { sync })?)
    })
}

/// Undoes all of it, and frees the transaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_rollback(txn: *mut shale_txn) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(txn) }
}

/// Sets a key if it has no value, and locks it in either case, in one step: `inserted` becomes
/// whether it was set, `existing` (which may be NULL) the value that is in the way, or NULL. Looked
/// at is the newest that is committed, whatever a snapshot shows, and what the transaction has
/// written. Who inserts the same key waits, and then finds it. What is in the way is locked as
/// `lock` says: SHALE_LOCK_SHARED for one who leaves it as it is, or SHALE_LOCK_EXCLUSIVE.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_insert(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    lock: c_int,
    inserted: *mut bool,
    existing: *mut *mut shale_bytes,
) -> *mut shale_error {
    guard(|| {
        can_store(inserted, "inserted")?;
        // SAFETY: bytes with their lengths.
        let (key, value) = unsafe { (bytes(key, key_len, "key")?, value_bytes(value, value_len)?) };
        // SAFETY: live handles.
        let (txn, tree) = unsafe { (handle_mut(txn, "txn")?, handle(tree, "tree")?) };
        let (txn, tree) = (&mut txn.txn, &tree.tree);
        let found = match lock_of(lock)? {
            Some(LockMode::Shared) => txn.insert_or_share(tree, key, value)?,
            Some(LockMode::Exclusive) => txn.insert(tree, key, value)?,
            None => {
                let text = "what an insert finds is locked shared or exclusive";
                return Err(Fail::Argument(text.to_owned()));
            }
        };
        // SAFETY: a place for a truth, NULL or one for a pointer.
        unsafe {
            store(inserted, "inserted", found.is_none())?;
            if existing.is_null() { Ok(()) } else { give_value(existing, found) }
        }
    })
}

/// The values of `count` keys as by shale_txn_get without a lock, all as of one moment: cheaper
/// than one by one. `values` has room for so many; those of keys that are not there become NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_multi_get(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    keys: *const *const c_void,
    key_lens: *const usize,
    count: usize,
    values: *mut *mut shale_bytes,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: live handles.
        let (txn, tree) = unsafe { (handle_mut(txn, "txn")?, handle(tree, "tree")?) };
        // SAFETY: `count` keys with their lengths.
        let keys = unsafe { many_keys(keys, key_lens, count, values) }?;
        let found = txn.txn.multi_get(&tree.tree, &keys)?;
        // SAFETY: `count` places for pointers.
        unsafe { give_values(values, found) }
    })
}

/// Locks a key, there or not, as shale_txn_get with SHALE_LOCK_SHARED or SHALE_LOCK_EXCLUSIVE does,
/// but does not look it up. So many keys are locked one by one, and then looked up together by
/// shale_txn_multi_get_locked.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_lock(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    lock: c_int,
    key: *const c_void,
    key_len: usize,
) -> *mut shale_error {
    guard(|| {
        let mode = lock_of(lock)?
            .ok_or_else(|| Fail::Argument("a key is locked shared or exclusive".to_owned()))?;
        // SAFETY: a live handle, and bytes with their length.
        let (tree, key) = unsafe { (handle(tree, "tree")?, bytes(key, key_len, "key")?) };
        // SAFETY: a live handle.
        let txn = unsafe { handle_mut(txn, "txn") }?;
        Ok(txn.txn.lock(&tree.tree, key, mode)?)
    })
}

/// The newest values of `count` keys that the transaction has locked, shared or exclusive: what
/// shale_txn_get with a lock gives for each, but cheaper. It locks nothing itself: of a key that is
/// not locked the value may be out of date at once. `values` has room for `count`; those of keys
/// that are not there become NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_multi_get_locked(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    keys: *const *const c_void,
    key_lens: *const usize,
    count: usize,
    values: *mut *mut shale_bytes,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: live handles.
        let (txn, tree) = unsafe { (handle_mut(txn, "txn")?, handle(tree, "tree")?) };
        // SAFETY: `count` keys with their lengths.
        let keys = unsafe { many_keys(keys, key_lens, count, values) }?;
        let found = txn.txn.multi_get_locked(&tree.tree, &keys)?;
        // SAFETY: `count` places for pointers.
        unsafe { give_values(values, found) }
    })
}

/// How long calls of the transaction wait for a lock from now on, 0: not at all. So a statement
/// that is to skip what others have locked sets 0 and takes SHALE_LOCK_TIMEOUT for an answer.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_set_lock_timeout(
    txn: *mut shale_txn,
    millis: u64,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let txn = unsafe { handle_mut(txn, "txn") }?;
        txn.txn.set_lock_timeout(Duration::from_millis(millis));
        Ok(())
    })
}

/// Gives up the lock of a key that the last locking read or scan of it, or shale_txn_lock, has
/// taken, as for a row that does not match after all. It does so at SHALE_READ_COMMITTED only, and
/// of a key that was not written. A lock that the key had before that read it keeps: one that was
/// shared is so again. `unlocked`, which may be NULL, becomes whether nothing of it is left.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_unlock(
    txn: *mut shale_txn,
    tree: *const shale_tree,
    key: *const c_void,
    key_len: usize,
    unlocked: *mut bool,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle, and bytes with their length.
        let (tree, key) = unsafe { (handle(tree, "tree")?, bytes(key, key_len, "key")?) };
        // SAFETY: a live handle.
        let txn = unsafe { handle_mut(txn, "txn") }?;
        let did = txn.txn.unlock(&tree.tree, key)?;
        // SAFETY: NULL or a place for a truth.
        unsafe { store_if_wanted(unlocked, did) };
        Ok(())
    })
}
