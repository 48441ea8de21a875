//! Commits of batches, and making commits durable.

use crate::batch::shale_batch;
use crate::db::shale_db;
use crate::error::shale_error;
use crate::guard::{guard, handle};

/// Commits a batch: all of it or nothing, over all its trees. With `sync` it is durable when the
/// call returns, and so is every commit before it. The batch stays as it is and can be used again.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_write(
    db: *const shale_db,
    batch: *const shale_batch,
    sync: bool,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: live handles.
        let (batch, db) = unsafe { (handle(batch, "batch")?, handle(db, "db")?) };
        Ok(db.0.write(&batch.0, shaledb::WriteOptions { sync })?)
    })
}

/// Makes every commit so far durable.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_sync(db: *const shale_db) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle.
        let db = unsafe { handle(db, "db") }?;
        Ok(db.0.sync()?)
    })
}
