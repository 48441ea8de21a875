//! The bytes that reads and reports give.

use crate::error::Fail;
use crate::guard::{bytes_or_null, give_or_null};
use crate::quiet::{free, quiet};
use serde::Serialize;
use std::ffi::c_void;

/// Bytes that belong to the caller: a value (often a part of a block in the cache, which stays
/// there while this lives), or a report.
#[derive(Debug)]
pub struct shale_bytes(Bytes);

#[derive(Debug)]
enum Bytes {
    Value(shaledb::Value),
    Owned(Vec<u8>),
}

impl shale_bytes {
    pub(crate) fn owned(bytes: impl Into<Vec<u8>>) -> shale_bytes {
        shale_bytes(Bytes::Owned(bytes.into()))
    }

    pub(crate) fn json(value: &impl Serialize) -> Result<shale_bytes, Fail> {
        let text = serde_json::to_vec(value).map_err(|error| Fail::Panic(error.to_string()))?;
        Ok(shale_bytes::owned(text))
    }

    fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Bytes::Value(value) => value,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

/// Stores a value, or NULL if there is none.
///
/// # Safety
/// `to` is writable for a pointer.
pub(crate) unsafe fn give_value(
    to: *mut *mut shale_bytes,
    value: Option<shaledb::Value>,
) -> Result<(), Fail> {
    let value = value.map(|value| shale_bytes(Bytes::Value(value)));
    // SAFETY: the caller's word.
    unsafe { give_or_null(to, "value", value) }
}

/// Stores values, NULL where there is none.
///
/// # Safety
/// `to` has room for as many pointers.
pub(crate) unsafe fn give_values(
    to: *mut *mut shale_bytes,
    values: Vec<Option<shaledb::Value>>,
) -> Result<(), Fail> {
    for (at, value) in values.into_iter().enumerate() {
        // SAFETY: the caller's word.
        unsafe { give_value(to.add(at), value)? };
    }
    Ok(())
}

/// Where the bytes are, valid until they are freed, and in `len`, which may be NULL, how many. Of
/// NULL: NULL and 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_bytes_data(
    bytes: *const shale_bytes,
    len: *mut usize,
) -> *const c_void {
    // SAFETY: NULL or a live handle.
    let own = quiet(None, || unsafe { bytes.as_ref() }.map(shale_bytes::as_slice));
    // SAFETY: NULL or a place for a number.
    unsafe { bytes_or_null(own, len) }
}

/// Frees them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_bytes_free(bytes: *mut shale_bytes) {
    // SAFETY: NULL or a handle that the caller gives back.
    unsafe { free(bytes) }
}
