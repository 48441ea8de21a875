//! The part of WiredTiger's C interface that the adapter calls, written down by hand from
//! `wiredtiger.h` of 3.2.1: its handles are structures of function pointers, so their order here is
//! that of the header. [`version`] is asked before any handle is used.

use std::ffi::{c_char, c_int, c_void};

pub(crate) const ROLLBACK: c_int = -31800;
pub(crate) const NOTFOUND: c_int = -31803;
pub(crate) const EBUSY: c_int = 16;

/// Statistics of a connection, by their keys: bytes written by the block manager, and to the log;
/// microseconds in which the application's threads wrote pages out.
pub(crate) const BLOCK_BYTE_WRITE: c_int = 1027;
pub(crate) const CACHE_WRITE_APP_TIME: c_int = 1034;
pub(crate) const LOG_BYTES_WRITTEN: c_int = 1233;

/// A place that the adapter does not call.
type Other = *const c_void;

/// `WT_ITEM`.
#[repr(C)]
pub(crate) struct Item {
    pub(crate) data: *const c_void,
    pub(crate) size: usize,
    mem: *mut c_void,
    memsize: usize,
    flags: u32,
}

impl Item {
    pub(crate) fn new(bytes: &[u8]) -> Item {
        let data = bytes.as_ptr().cast();
        Item { data, size: bytes.len(), mem: std::ptr::null_mut(), memsize: 0, flags: 0 }
    }
}

/// `WT_CURSOR`, of which only pointers are used.
#[repr(C)]
pub(crate) struct Cursor {
    session: *mut Session,
    uri: *const c_char,
    key_format: *const c_char,
    value_format: *const c_char,
    pub(crate) get_key: unsafe extern "C" fn(*mut Cursor, ...) -> c_int,
    pub(crate) get_value: unsafe extern "C" fn(*mut Cursor, ...) -> c_int,
    pub(crate) set_key: unsafe extern "C" fn(*mut Cursor, ...),
    pub(crate) set_value: unsafe extern "C" fn(*mut Cursor, ...),
    compare: Other,
    equals: Other,
    pub(crate) next: unsafe extern "C" fn(*mut Cursor) -> c_int,
    prev: Other,
    pub(crate) reset: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub(crate) search: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub(crate) search_near: unsafe extern "C" fn(*mut Cursor, *mut c_int) -> c_int,
    pub(crate) insert: unsafe extern "C" fn(*mut Cursor) -> c_int,
    modify: Other,
    update: Other,
    pub(crate) remove: unsafe extern "C" fn(*mut Cursor) -> c_int,
    reserve: Other,
    pub(crate) close: unsafe extern "C" fn(*mut Cursor) -> c_int,
}

/// `WT_SESSION`, of which only pointers are used.
#[repr(C)]
pub(crate) struct Session {
    connection: *mut Connection,
    app_private: *mut c_void,
    pub(crate) close: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
    reconfigure: Other,
    strerror: Other,
    pub(crate) open_cursor: unsafe extern "C" fn(
        *mut Session,
        *const c_char,
        *mut Cursor,
        *const c_char,
        *mut *mut Cursor,
    ) -> c_int,
    alter: Other,
    pub(crate) create: unsafe extern "C" fn(*mut Session, *const c_char, *const c_char) -> c_int,
    import: Other,
    compact: Other,
    pub(crate) drop: unsafe extern "C" fn(*mut Session, *const c_char, *const c_char) -> c_int,
    join: Other,
    log_flush: Other,
    log_printf: Other,
    rebalance: Other,
    rename: Other,
    reset: Other,
    salvage: Other,
    pub(crate) truncate: unsafe extern "C" fn(
        *mut Session,
        *const c_char,
        *mut Cursor,
        *mut Cursor,
        *const c_char,
    ) -> c_int,
    upgrade: Other,
    verify: Other,
    pub(crate) begin_transaction: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
    pub(crate) commit_transaction: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
    prepare_transaction: Other,
    pub(crate) rollback_transaction: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
    timestamp_transaction: Other,
    query_timestamp: Other,
    pub(crate) checkpoint: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
}

/// `WT_CONNECTION`, of which only pointers are used.
#[repr(C)]
pub(crate) struct Connection {
    async_flush: Other,
    async_new_op: Other,
    pub(crate) close: unsafe extern "C" fn(*mut Connection, *const c_char) -> c_int,
    debug_info: Other,
    reconfigure: Other,
    get_home: Other,
    configure_method: Other,
    is_new: Other,
    pub(crate) open_session: unsafe extern "C" fn(
        *mut Connection,
        *mut c_void,
        *const c_char,
        *mut *mut Session,
    ) -> c_int,
}

#[link(name = "wiredtiger")]
unsafe extern "C" {
    pub(crate) fn wiredtiger_open(
        home: *const c_char,
        handler: *mut c_void,
        config: *const c_char,
        connection: *mut *mut Connection,
    ) -> c_int;
    pub(crate) fn wiredtiger_strerror(error: c_int) -> *const c_char;
    fn wiredtiger_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int)
    -> *const c_char;
}

/// The version of the library that is linked.
pub(crate) fn version() -> (c_int, c_int, c_int) {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the function writes three ints.
    unsafe { wiredtiger_version(&mut major, &mut minor, &mut patch) };
    (major, minor, patch)
}
