//! Ending waits for locks from another thread.

use crate::error::shale_error;
use crate::guard::{give, guard, handle_mut};
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

/// Frees a flag. Transactions that have it go on, without one: if it was set, it is so no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_interrupt_free(interrupt: *mut shale_interrupt) {
    // They share it, and nobody could take it back any more.
    // SAFETY: NULL or a live handle.
    unsafe { shale_interrupt_set(interrupt, false) };
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(interrupt) }
}

/// Gives a transaction its flag, instead of one that it has; several may have the same. NULL takes
/// it away.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_txn_set_interrupt(
    txn: *mut shale_txn,
    interrupt: *const shale_interrupt,
) -> *mut shale_error {
    guard(|| {
        // SAFETY: a live handle, and NULL or one.
        let (flag, txn) = unsafe { (interrupt.as_ref(), handle_mut(txn, "txn")?) };
        match flag {
            Some(flag) => txn.txn.set_interrupt(&flag.0),
            None => txn.txn.clear_interrupt(),
        }
        Ok(())
    })
}
