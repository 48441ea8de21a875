//! What the cursors of this module are made of.

use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{SEQ_MAX, SeqNo};

/// A cursor that knows how new its entries are at most, so that a range delete newer than all of
/// them can be jumped over instead of walked through.
pub trait Source: Cursor {
    /// No entry that the reader may see is newer than this.
    fn max_seq(&self) -> SeqNo;

    /// How many entries follow the current one, up to `bound`, that are puts written at or before
    /// `seq`, each of another key: a reader at `seq` sees them, if no other source has to do with
    /// them. May answer with fewer.
    #[inline]
    fn plain_ahead<'a>(&self, seq: SeqNo, bound: impl FnOnce() -> Option<&'a [u8]>) -> usize {
        let _ = (seq, bound);
        0
    }

    /// Whether the current entry is a put written at or before `seq`, the only entry of its key
    /// here, and its key is at or after `lower` and after `rival`. If so, how many entries before
    /// it are that as well; may answer with fewer. May answer that it is not.
    #[inline]
    fn plain_behind(&self, seq: SeqNo, lower: &[u8], rival: Option<&[u8]>) -> Option<usize> {
        let _ = (seq, lower, rival);
        None
    }

    /// Goes forward to the first entry with a key at or after `key`, or less far, if every entry
    /// passed over is older than `below`. Answers whether it moved.
    fn skip_to(&mut self, key: &[u8], below: SeqNo) -> Result<bool> {
        if self.max_seq() >= below {
            return Ok(false);
        }
        self.seek(key, SEQ_MAX)?;
        Ok(true)
    }

    /// Goes back to the last entry with a key before `key`, or less far, if every entry passed over
    /// is older than `below`. Answers whether it moved.
    fn skip_back_to(&mut self, key: &[u8], below: SeqNo) -> Result<bool> {
        if self.max_seq() >= below {
            return Ok(false);
        }
        self.seek_back(key, SEQ_MAX)?;
        Ok(true)
    }
}
