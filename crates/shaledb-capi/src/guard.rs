//! What calls share: arguments from C, results to C, and errors instead of panics.

use crate::error::{Fail, shale_error};
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a call. What it was doing when it panicked is not used again by this call; handles that it
/// had are the engine's, which poisons what a panic left half done.
pub(crate) fn guard(call: impl FnOnce() -> Result<(), Fail>) -> *mut shale_error {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => std::ptr::null_mut(),
        Ok(Err(fail)) => shale_error::new(fail),
        Err(panic) => shale_error::new(Fail::panic(&*panic)),
    }
}

/// A handle that is read.
///
/// # Safety
/// NULL, or a live handle of this type that nobody frees or changes during the call.
pub(crate) unsafe fn handle<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Fail> {
    // SAFETY: the caller's word.
    unsafe { pointer.as_ref() }.ok_or_else(|| Fail::null(name))
}

/// A handle that is changed.
///
/// # Safety
/// NULL, or a live handle of this type that nobody else uses during the call.
pub(crate) unsafe fn handle_mut<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T, Fail> {
    // SAFETY: the caller's word.
    unsafe { pointer.as_mut() }.ok_or_else(|| Fail::null(name))
}

/// The longest key, and the byte more that the bound just after one has.
const KEY_LEN_MAX: usize = shaledb::base::key::KEY_BYTES_MAX + 1;

/// The longest value.
const VALUE_LEN_MAX: u64 = shaledb::base::key::VALUE_BYTES_MAX;

/// A key, a bound or a name. A length that none has is refused before anything is read.
///
/// # Safety
/// `data` is readable for `len` bytes during the call, or `len` is none that a key can have.
pub(crate) unsafe fn bytes<'a>(
    data: *const c_void,
    len: usize,
    name: &str,
) -> Result<&'a [u8], Fail> {
    // SAFETY: the caller's word.
    unsafe { up_to(KEY_LEN_MAX as u64, data, len, name) }
}

/// A value. A length that none has is refused before anything is read.
///
/// # Safety
/// As of [`bytes`], for values.
pub(crate) unsafe fn value_bytes<'a>(data: *const c_void, len: usize) -> Result<&'a [u8], Fail> {
    // SAFETY: the caller's word.
    unsafe { up_to(VALUE_LEN_MAX, data, len, "value") }
}

/// # Safety
/// As of [`bytes`], with `max` as the longest.
unsafe fn up_to<'a>(
    max: u64,
    data: *const c_void,
    len: usize,
    name: &str,
) -> Result<&'a [u8], Fail> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Fail::null(name));
    }
    if len as u64 > max || isize::try_from(len).is_err() {
        let what = format!("{name} has a length of {len} bytes; the most is {max}");
        return Err(Fail::Argument(what));
    }
    // SAFETY: the caller's word; not NULL and no longer than memory can be.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

/// A bound of a range: NULL means none.
///
/// # Safety
/// As of [`bytes`].
pub(crate) unsafe fn bound<'a>(data: *const c_void, len: usize) -> Result<Option<&'a [u8]>, Fail> {
    if data.is_null() && len == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's word.
    unsafe { bytes(data, len, "bound") }.map(Some)
}

/// The keys of a call with many, whose results go to `values`.
///
/// # Safety
/// The two arrays have `count` entries, and each key is readable during the call; or `count` is 0.
pub(crate) unsafe fn many_keys<'a, T>(
    keys: *const *const c_void,
    key_lens: *const usize,
    count: usize,
    values: *mut T,
) -> Result<Vec<&'a [u8]>, Fail> {
    if count == 0 {
        return Ok(Vec::new());
    }
    can_store(values, "values")?;
    if keys.is_null() || key_lens.is_null() {
        return Err(Fail::null("keys or key_lens"));
    }
    // SAFETY: the caller's word.
    let key = |at| unsafe { bytes(*keys.add(at), *key_lens.add(at), "a key") };
    (0..count).map(key).collect()
}

/// A name, a path or a setting.
///
/// # Safety
/// NULL, or bytes that end with a zero and stay during the call.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Fail> {
    if text.is_null() {
        return Err(Fail::null(name));
    }
    // SAFETY: the caller's word.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Fail::Argument(format!("{name} is not UTF-8: {text:?}")))
}

/// Stores a result through a pointer.
///
/// # Safety
/// NULL, or writable for a `T`.
pub(crate) unsafe fn store<T>(to: *mut T, name: &str, value: T) -> Result<(), Fail> {
    if to.is_null() {
        return Err(Fail::null(name));
    }
    // SAFETY: the caller's word.
    unsafe { to.write(value) };
    Ok(())
}

/// Stores a result that the caller may not want.
///
/// # Safety
/// NULL, or writable for a `T`.
pub(crate) unsafe fn store_if_wanted<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's word.
        unsafe { to.write(value) };
    }
}

/// Bytes as C takes them, with their length in `len`; NULL and 0 if there are none.
///
/// # Safety
/// `len` is NULL, or writable for a number.
pub(crate) unsafe fn bytes_or_null(own: Option<&[u8]>, len: *mut usize) -> *const c_void {
    // SAFETY: the caller's word.
    unsafe { store_if_wanted(len, own.map_or(0, <[u8]>::len)) };
    own.map_or(std::ptr::null(), |own| own.as_ptr().cast())
}

/// Refuses to begin what could then not be handed over.
pub(crate) fn can_store<T>(to: *mut T, name: &str) -> Result<(), Fail> {
    if to.is_null() { Err(Fail::null(name)) } else { Ok(()) }
}

/// Hands a new handle over.
///
/// # Safety
/// `to` is writable for a pointer.
pub(crate) unsafe fn give<T>(to: *mut *mut T, name: &str, value: T) -> Result<(), Fail> {
    can_store(to, name)?;
    // SAFETY: the caller's word.
    unsafe { store(to, name, Box::into_raw(Box::new(value))) }
}

/// Hands a new handle over, or NULL if there is none.
///
/// # Safety
/// `to` is writable for a pointer.
pub(crate) unsafe fn give_or_null<T>(
    to: *mut *mut T,
    name: &str,
    value: Option<T>,
) -> Result<(), Fail> {
    // SAFETY: the caller's word.
    unsafe {
        match value {
            Some(value) => give(to, name, value),
            None => store(to, name, std::ptr::null_mut()),
        }
    }
}

/// Takes a handle back that the call uses up.
///
/// # Safety
/// NULL, or a handle of this type that is not used from now on.
pub(crate) unsafe fn take<T>(handle: *mut T, name: &str) -> Result<Box<T>, Fail> {
    if handle.is_null() {
        return Err(Fail::null(name));
    }
    // SAFETY: the caller's word; handles come from `Box::into_raw`.
    Ok(unsafe { Box::from_raw(handle) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{shale_error_free, shale_error_kind, shale_error_kind_of};

    #[test]
    fn a_panic_is_an_error_and_goes_no_further() {
        let error = guard(|| panic!("on purpose"));
        // SAFETY: an error just made, which is given back.
        unsafe {
            assert_eq!(shale_error_kind_of(error), shale_error_kind::SHALE_PANIC);
            shale_error_free(error);
        }
    }
}
