//! The one iterator interface. Memtables, tables, runs and merges of them all speak it.

use super::error::Result;
use super::key::{Kind, SeqNo};

/// A position in a sorted sequence of entries (see [`super::key`] for the order).
///
/// A new cursor is not valid until one of the four seeks. `key`, `seq`, `kind` and `value` may be
/// called only while it is valid. After an error the cursor is not valid. Used by static dispatch:
/// a cursor over several kinds of source is an enum, never a trait object.
pub trait Cursor {
    /// Whether the cursor is at an entry.
    fn valid(&self) -> bool;
    /// Goes to the first entry.
    fn seek_first(&mut self) -> Result<()>;
    /// Goes to the last entry.
    fn seek_last(&mut self) -> Result<()>;
    /// Goes to the first entry at or after (key, seq): `k > key`, or `k == key` and `s <= seq`.
    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()>;
    /// Goes to the last entry before (key, seq): `k < key`, or `k == key` and `s > seq`.
    fn seek_back(&mut self, key: &[u8], seq: SeqNo) -> Result<()>;
    /// Goes to the next entry; past the last one the cursor is no longer valid.
    fn next(&mut self) -> Result<()>;
    /// Goes to the previous entry; before the first one the cursor is no longer valid.
    fn prev(&mut self) -> Result<()>;
    /// The user key here.
    fn key(&self) -> &[u8];
    /// The sequence number here.
    fn seq(&self) -> SeqNo;
    /// The kind here.
    fn kind(&self) -> Kind;
    /// The value here: empty for a delete; a blob reference for a blob.
    fn value(&self) -> &[u8];
}
