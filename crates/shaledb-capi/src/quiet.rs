//! What calls that return no error share: a panic ends here, and nobody is told of it.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs what cannot fail and drops the result if it panics: for calls that return no error.
pub(crate) fn quiet<T>(otherwise: T, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(otherwise)
}

/// Takes a handle back and ends it.
///
/// # Safety
/// NULL, or a handle of this type that is not used from now on.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        quiet((), || {
            // SAFETY: the caller's word; handles come from `Box::into_raw`.
            drop(unsafe { Box::from_raw(handle) });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_goes_no_further() {
        assert_eq!(quiet(7, || panic!("on purpose")), 7);
    }
}
