//! What was committed to a tree after one sequence number, up to another: of each key the newest
//! entry, deletes too.
//!
//! The caller holds a snapshot at the second number, so that the newest entry up to it is there.
//! And neither a flush nor a merge has let a delete go, or an entry's number: so it is while a tree
//! is being built, and those that are asked for changes are.

use super::sources::{self, ScanSource};
use super::value::BlobSource;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{Kind, SeqNo};
use crate::base::sync::Arc;
use crate::iter::Merge;
use crate::state::TreeState;

/// A walk through the changes of a tree, in the order of keys.
pub struct Changes {
    merge: Merge<ScanSource>,
    after: SeqNo,
    through: SeqNo,
    blobs: Arc<dyn BlobSource>,
    /// The key of the change that was told last.
    key: Vec<u8>,
    begun: bool,
}

impl Changes {
    /// Before the first change after `after`, up to `through`.
    pub fn new(
        state: &TreeState,
        after: SeqNo,
        through: SeqNo,
        blobs: Arc<dyn BlobSource>,
    ) -> Changes {
        debug_assert!(after <= through);
        let merge = Merge::new(sources::newer(state, after));
        Changes { merge, after, through, blobs, key: Vec::new(), begun: false }
    }

    /// Goes to the next change; false: there is none.
    pub fn step(&mut self) -> Result<bool> {
        let first = !std::mem::replace(&mut self.begun, true);
        if first {
            self.merge.seek_first()?;
        }
        let mut passed = !first;
        while self.merge.valid() {
            let seq = self.merge.seq();
            let is_older = passed && self.merge.key() == self.key;
            if is_older || seq > self.through {
                self.merge.next()?;
                continue;
            }
            debug_assert!(!passed || self.merge.key() > self.key.as_slice(), "a key is told once");
            self.key.clear();
            self.key.extend_from_slice(self.merge.key());
            if seq > self.after {
                return Ok(true);
            }
            passed = true;
            self.merge.next()?;
        }
        Ok(false)
    }

    /// The key that has changed.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value that it has now; `None`: it was deleted.
    pub fn value(&self) -> Result<Option<Vec<u8>>> {
        match self.merge.kind() {
            Kind::Delete => Ok(None),
            Kind::Blob => self.blobs.read(self.merge.value()).map(Some),
            _ => Ok(Some(self.merge.value().to_vec())),
        }
    }
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
