//! Snapshots.

use crate::db::shale_db;
use crate::error::shale_error;
use crate::guard::{can_store, give, guard, handle, store_if_wanted};
use crate::quiet::free;

/// A moment in the commit order at which reads can be repeated. What was there then is kept on disk
/// while the snapshot lives.
#[derive(Debug)]
pub struct shale_snapshot(pub(crate) shaledb::Snapshot);

/// A snapshot of the database as it is now. `seq`, which may be NULL, becomes its sequence number:
/// its position in the commit order.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_snapshot_new(
    db: *const shale_db,
    snapshot: *mut *mut shale_snapshot,
    seq: *mut u64,
) -> *mut shale_error {
    guard(|| {
        can_store(snapshot, "snapshot")?;
        // SAFETY: a live handle.
        let db = unsafe { handle(db, "db") }?;
        let taken = db.0.snapshot();
        // SAFETY: NULL or a place for a number, and a place for a pointer.
        unsafe {
            store_if_wanted(seq, taken.seq());
            give(snapshot, "snapshot", shale_snapshot(taken))
        }
    })
}

/// Ends a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_snapshot_free(snapshot: *mut shale_snapshot) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(snapshot) }
}
