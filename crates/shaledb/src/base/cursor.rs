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

/// Implements [`Cursor`] for an enum of cursors by what each of its variants holds. The patterns,
/// one a variant, bind that to the name that is given.
macro_rules! cursor_by_variant {
    ($name:ty, $cursor:ident in $($variant:pat),+) => {
        impl $crate::base::cursor::Cursor for $name {
            #[inline]
            fn valid(&self) -> bool {
                match self { $($variant => $cursor.valid()),+ }
            }
            fn seek_first(&mut self) -> $crate::base::error::Result<()> {
                match self { $($variant => $cursor.seek_first()),+ }
            }
            fn seek_last(&mut self) -> $crate::base::error::Result<()> {
                match self { $($variant => $cursor.seek_last()),+ }
            }
            fn seek(
                &mut self,
                key: &[u8],
                seq: $crate::base::key::SeqNo,
            ) -> $crate::base::error::Result<()> {
                match self { $($variant => $cursor.seek(key, seq)),+ }
            }
            fn seek_back(
                &mut self,
                key: &[u8],
                seq: $crate::base::key::SeqNo,
            ) -> $crate::base::error::Result<()> {
                match self { $($variant => $cursor.seek_back(key, seq)),+ }
            }
            #[inline]
            fn next(&mut self) -> $crate::base::error::Result<()> {
                match self { $($variant => $cursor.next()),+ }
            }
            #[inline]
            fn prev(&mut self) -> $crate::base::error::Result<()> {
                match self { $($variant => $cursor.prev()),+ }
            }
            #[inline]
            fn key(&self) -> &[u8] {
                match self { $($variant => $cursor.key()),+ }
            }
            #[inline]
            fn seq(&self) -> $crate::base::key::SeqNo {
                match self { $($variant => $cursor.seq()),+ }
            }
            #[inline]
            fn kind(&self) -> $crate::base::key::Kind {
                match self { $($variant => $cursor.kind()),+ }
            }
            #[inline]
            fn value(&self) -> &[u8] {
                match self { $($variant => $cursor.value()),+ }
            }
        }
    };
}
pub(crate) use cursor_by_variant;
