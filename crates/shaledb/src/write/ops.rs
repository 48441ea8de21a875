//! Operations in the form in which batches hold them and the write-ahead log keeps them.
//!
//! An operation is `kind u8 | tree varint | key bytes | rest`, where `bytes` is a length as varint
//! and then the bytes, and `rest` is the value bytes of a put, the end key bytes of a range delete,
//! the blob reference bytes of a blob, and nothing for a delete. See docs/format.md.

use crate::base::error::{Error, Result};
use crate::base::key::{KEY_BYTES_MAX, Kind, VALUE_BYTES_MAX};
use crate::table::blob::BlobRef;
use crate::wal::payload::put_op;

/// What an operation takes beside its key and value, at most.
const OP_BYTES: usize = 24;

/// The most room that is made for operations before they come.
const ROOM_BYTES_MAX: usize = 64 << 10;

/// A sequence of encoded operations.
#[derive(Clone, Debug, Default)]
pub struct Ops {
    bytes: Vec<u8>,
    count: u32,
    user_bytes: u64,
}

impl Ops {
    /// No operations.
    pub const fn new() -> Ops {
        Ops { bytes: Vec::new(), count: 0, user_bytes: 0 }
    }

    /// No operations, and room for so many with keys and values of so many bytes, unless that is
    /// much: then the room grows with them, of whom there may be fewer in the end.
    pub fn with_room(count: u64, user_bytes: u64) -> Ops {
        let bytes = user_bytes.saturating_add(count.saturating_mul(OP_BYTES as u64));
        let room = usize::try_from(bytes).unwrap_or(usize::MAX).min(ROOM_BYTES_MAX);
        Ops { bytes: Vec::with_capacity(room), ..Ops::new() }
    }

    /// Appends an operation; the key and the value are checked against their bounds.
    #[inline]
    pub fn push(&mut self, kind: Kind, tree: u32, key: &[u8], value: &[u8]) -> Result<()> {
        check_bounds(key, value)?;
        self.bytes.reserve(key.len() + value.len() + OP_BYTES);
        put_op(&mut self.bytes, kind, tree, key, value);
        self.count += 1;
        self.user_bytes += user_bytes(kind, key, value);
        Ok(())
    }

    /// Appends all operations of another sequence.
    #[inline]
    pub fn append(&mut self, other: &Ops) {
        debug_assert_eq!(other.count == 0, other.bytes.is_empty(), "each operation has bytes");
        self.bytes.extend_from_slice(&other.bytes);
        self.count += other.count;
        self.user_bytes += other.user_bytes;
    }

    /// The encoded operations.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many there are; each takes one sequence number.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bytes of keys and values.
    pub fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Forgets all operations and keeps the memory for the next, unless it is much.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(1 << 20);
        self.count = 0;
        self.user_bytes = 0;
    }
}

/// The bytes of an operation's key and value; of a large value those of the value itself, which are
/// in a blob file.
#[inline]
pub fn user_bytes(kind: Kind, key: &[u8], value: &[u8]) -> u64 {
    let value_bytes = match kind {
        Kind::Blob => BlobRef::decode(value).map_or(0, |reference| reference.bytes),
        _ => value.len() as u64,
    };
    key.len() as u64 + value_bytes
}

/// Refuses a key or a value that is too long.
#[inline]
pub fn check_bounds(key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > KEY_BYTES_MAX || value.len() as u64 > VALUE_BYTES_MAX {
        return Err(too_long(key, value));
    }
    Ok(())
}

#[cold]
fn too_long(key: &[u8], value: &[u8]) -> Error {
    if key.len() > KEY_BYTES_MAX {
        Error::InvalidArgument(format!(
            "a key of {} bytes is longer than {KEY_BYTES_MAX}",
            key.len()
        ))
    } else {
        Error::InvalidArgument(format!(
            "a value of {} bytes is longer than {VALUE_BYTES_MAX}",
            value.len()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_checked() {
        let mut ops = Ops::new();
        assert!(ops.push(Kind::Put, 1, &vec![0; KEY_BYTES_MAX], b"").is_ok());
        assert!(ops.push(Kind::Put, 1, &vec![0; KEY_BYTES_MAX + 1], b"").is_err());
        assert_eq!(ops.count(), 1);
        let copy = ops.clone();
        ops.append(&copy);
        assert_eq!((ops.count(), ops.bytes().len()), (2, 2 * copy.bytes().len()));
        ops.clear();
        assert!(ops.is_empty() && ops.bytes().is_empty());
    }

    #[test]
    fn room_that_is_made_is_enough_and_not_much() {
        let mut ops = Ops::with_room(100, 100 * 7);
        let room = ops.bytes.capacity();
        for n in 0..100u32 {
            ops.push(Kind::Put, u32::MAX, &n.to_be_bytes(), b"abc").unwrap();
        }
        assert_eq!((ops.bytes.capacity(), ops.user_bytes()), (room, 700));
        assert!(Ops::with_room(u64::MAX, u64::MAX).bytes.capacity() <= ROOM_BYTES_MAX);
    }
}
