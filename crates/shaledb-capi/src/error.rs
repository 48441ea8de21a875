//! Error objects.

use crate::quiet::{free, quiet};
use std::any::Any;
use std::ffi::{CString, c_char, c_void};

/// What went wrong, by what a caller can do about it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum shale_error_kind {
    /// Nothing: there is no error.
    SHALE_OK = 0,
    /// The operating system refused an operation on a file; the text names both.
    SHALE_IO = 1,
    /// No space on the device: the write has had no effect. Reads go on, and writes succeed again
    /// by themselves once there is space.
    SHALE_DISK_FULL = 2,
    /// Bytes on disk are not what was written; the text names file and offset.
    SHALE_CORRUPTION = 3,
    /// A setting is unknown, out of range, or contradicts another.
    SHALE_CONFIG = 4,
    /// An argument is out of its bounds.
    SHALE_INVALID_ARGUMENT = 5,
    /// The database is in use by another process or another handle.
    SHALE_LOCKED = 6,
    /// There is no such tree, or it has been dropped.
    SHALE_NO_SUCH_TREE = 7,
    /// A tree of that name exists.
    SHALE_TREE_EXISTS = 8,
    /// There is no database at the path, and none was to be created.
    SHALE_NO_DATABASE = 9,
    /// An earlier failure makes further writes unsafe: close and open anew.
    SHALE_POISONED = 10,
    /// The database is open for reading only.
    SHALE_READ_ONLY = 11,
    /// The database has been closed.
    SHALE_CLOSED = 12,
    /// Write conflict: another transaction changed the same rows. Roll back and try again from the
    /// beginning.
    SHALE_CONFLICT = 13,
    /// Lock wait timeout: a lock was not granted in time. The text names it, and who blocks it. The
    /// transaction keeps its locks: try the call again, or roll back.
    SHALE_LOCK_TIMEOUT = 14,
    /// Transactions waited for each other, and this one was rolled back; the text says who waited
    /// for whom. Try again from the beginning.
    SHALE_DEADLOCK = 15,
    /// The lock table is full, and escalation failed: other transactions hold keys in between.
    SHALE_LOCKS_FULL = 16,
    /// The part of a write set that cannot leave memory is full.
    SHALE_TRANSACTION_FULL = 17,
    /// The transaction was rolled back before; the text says why.
    SHALE_ROLLED_BACK = 18,
    /// A wait for a lock was interrupted. The transaction keeps its locks.
    SHALE_INTERRUPTED = 19,
    /// The process is a fork of the one that opened the database and cannot write to it: open it
    /// after the fork, in one process.
    SHALE_FORKED = 20,
    /// Two rows have the same key, so no unique tree can be built; shale_error_duplicate has them.
    SHALE_DUPLICATE = 21,
    /// The files of the database may take no more, by its `space_limit`: the write has had no
    /// effect. Reads and deletes go on, and writes succeed again by themselves once there is room.
    SHALE_SPACE_LIMIT = 22,
    /// Something that this version of the interface has no kind for; see the text.
    SHALE_OTHER = 98,
    /// A defect of the library; the text says where.
    SHALE_PANIC = 99,
}

use shale_error_kind::*;

/// Why a call failed.
#[derive(Debug)]
pub struct shale_error {
    kind: shale_error_kind,
    text: CString,
    /// Of a duplicate: the key, and two rows that have it.
    duplicate: Option<[Vec<u8>; 3]>,
}

/// A failure on its way to C.
#[derive(Debug)]
pub(crate) enum Fail {
    Engine(shaledb::Error),
    Argument(String),
    Config(String),
    Panic(String),
}

impl Fail {
    pub(crate) fn null(name: &str) -> Fail {
        Fail::Argument(format!("{name} is NULL"))
    }

    pub(crate) fn panic(payload: &(dyn Any + Send)) -> Fail {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Fail::Panic(text.unwrap_or("no message").to_owned())
    }
}

impl From<shaledb::Error> for Fail {
    fn from(error: shaledb::Error) -> Fail {
        Fail::Engine(error)
    }
}

fn kind_of(error: &shaledb::Error) -> shale_error_kind {
    use shaledb::Error;
    match error {
        Error::Io { .. } => SHALE_IO,
        Error::DiskFull { .. } => SHALE_DISK_FULL,
        Error::SpaceLimit { .. } => SHALE_SPACE_LIMIT,
        Error::Corruption { .. } => SHALE_CORRUPTION,
        Error::Config { .. } => SHALE_CONFIG,
        Error::InvalidArgument(_) => SHALE_INVALID_ARGUMENT,
        Error::Locked { .. } => SHALE_LOCKED,
        Error::NoSuchTree(_) => SHALE_NO_SUCH_TREE,
        Error::TreeExists(_) => SHALE_TREE_EXISTS,
        Error::Duplicate { .. } => SHALE_DUPLICATE,
        Error::NoDatabase(_) => SHALE_NO_DATABASE,
        Error::Poisoned(_) => SHALE_POISONED,
        Error::ReadOnly => SHALE_READ_ONLY,
        Error::Forked { .. } => SHALE_FORKED,
        Error::Closed => SHALE_CLOSED,
        Error::Conflict { .. } => SHALE_CONFLICT,
        Error::LockTimeout { .. } => SHALE_LOCK_TIMEOUT,
        Error::Deadlock(_) => SHALE_DEADLOCK,
        Error::Interrupted { .. } => SHALE_INTERRUPTED,
        Error::LocksFull { .. } => SHALE_LOCKS_FULL,
        Error::TransactionFull { .. } => SHALE_TRANSACTION_FULL,
        Error::RolledBack(_) => SHALE_ROLLED_BACK,
        _ => SHALE_OTHER,
    }
}

impl shale_error {
    pub(crate) fn new(fail: Fail) -> *mut shale_error {
        let duplicate = match &fail {
            Fail::Engine(shaledb::Error::Duplicate { key, rows: [one, other], .. }) => {
                Some([key.clone(), one.clone(), other.clone()])
            }
            _ => None,
        };
        let (kind, text) = match fail {
            Fail::Engine(error) => (kind_of(&error), error.to_string()),
            Fail::Argument(text) => (SHALE_INVALID_ARGUMENT, text),
            Fail::Config(text) => (SHALE_CONFIG, text),
            Fail::Panic(text) => (SHALE_PANIC, format!("a defect of Shale, please report: {text}")),
        };
        // A name inside the text may hold a zero.
        let text = CString::new(text.replace('\0', "\\0")).unwrap_or_default();
        Box::into_raw(Box::new(shale_error { kind, text, duplicate }))
    }
}

/// The kind of an error; SHALE_OK of NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_error_kind_of(error: *const shale_error) -> shale_error_kind {
    // SAFETY: NULL or a live error.
    quiet(SHALE_OTHER, || unsafe { error.as_ref() }.map_or(SHALE_OK, |error| error.kind))
}

/// What went wrong, with which file or setting, and what to do: a sentence in English, valid until
/// the error is freed. Of NULL: an empty text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_error_text(error: *const shale_error) -> *const c_char {
    // SAFETY: NULL or a live error.
    let text = quiet(None, || unsafe { error.as_ref() }.map(|error| error.text.as_ptr()));
    text.unwrap_or(c"".as_ptr())
}

/// Of a SHALE_DUPLICATE: puts the key into the first of these three places, and the keys of two
/// rows that have it into the others, with their lengths; they are valid until the error is freed.
/// False of any other error, and nothing is stored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_error_duplicate(
    error: *const shale_error,
    places: *mut *const c_void,
    lens: *mut usize,
) -> bool {
    quiet(false, || {
        // SAFETY: NULL or a live error.
        let duplicate = unsafe { error.as_ref() }.and_then(|error| error.duplicate.as_ref());
        let Some(found) = duplicate.filter(|_| !places.is_null() && !lens.is_null()) else {
            return false;
        };
        for (at, bytes) in found.iter().enumerate() {
            // SAFETY: both have three places.
            unsafe {
                places.add(at).write(bytes.as_ptr().cast());
                lens.add(at).write(bytes.len());
            }
        }
        true
    })
}

/// Frees an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_error_free(error: *mut shale_error) {
    // SAFETY: NULL or an error that the caller gives back.
    unsafe { free(error) }
}
