//! Ending waits for locks from another thread.

use crate::error::shale_error;
use crate::guard::{give, guard, handle, handle_mut};
use crate::quiet::{free, quiet};
use crate::txn::shale_txn;

/// A flag that ends waits for locks. Threads may set it while others wait.
#[derive(Debug)]
pub struct shale_interrupt(shaledb::Interrupt);

/// A new flag, not set.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_interrupt_new(
    interrupt: *mut *mut shale_interrupt,
) -> *mut shale_error {
    // SAFETY: a place for a pointer.
    guard(|| unsafe {
        give(interrupt, "interrupt", shale_interrupt(shaledb::Interrupt::default()))
    })
}

/// Sets a flag, or takes it back. While it is set, calls with the transactions that have it return
/// SHALE_INTERRUPTED instead of waiting for a lock; those that wait do so within 50 milliseconds.
/// Of NULL: nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_interrupt_set(interrupt: *const shale_interrupt, on: bool) {
    quiet((), || {
        // SAFETY: NULL or a live handle.
        if let Some(interrupt) = unsafe { interrupt.as_ref() } {
            interrupt.0.set(on);
        }
    })
}

/// Frees a flag. Transactions that have it go on, without one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_interrupt_free(interrupt: *mut shale_interrupt) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(interrupt) }
}

/// Gives a transaction its flag; several may have the same.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_set_interrupt(
    txn: *mut shale_txn,
    interrupt: *const shale_interrupt,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: live handles.
        let (flag, txn) = unsafe { (handle(interrupt, "interrupt")?, handle_mut(txn, "txn")?) };
        txn.txn.set_interrupt(&flag.0);
        Ok(())
    })
}
