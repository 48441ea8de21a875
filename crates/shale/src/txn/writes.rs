//! The writes of one transaction, which nobody else sees until it commits.
//!
//! Each tree has a memtable of its own for them, with numbers from [`OWN_FIRST`] on, so that the
//! cursors that show committed rows show these as well. What is undone stays in the memtable: its
//! numbers are noted as a span that nobody sees, and when most of it is such the memtable is
//! written anew. Range deletes are kept beside it, since one that is undone must not hide anything.

use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{Kind, OWN_FIRST, SEQ_MAX, SeqNo};
use crate::base::ranges::{RangeDelete, RangeDeletes};
use crate::iter::OwnWrites;
use crate::memtable::{MemEntry, Memtable};
use crate::version::TreeId;
use crate::write::ops::Ops;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a write takes in memory beside its key and value, about.
const WRITE_BYTES: u64 = 48;

/// Undone bytes up to which nothing is written anew.
const UNDONE_BYTES: u64 = 1 << 20;

/// A place among the writes, to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    next: SeqNo,
    count: u64,
    bytes: u64,
}

#[derive(Debug, Default)]
struct OwnTree {
    memtable: Arc<Memtable>,
    deletes: Vec<RangeDelete>,
    /// The same as a set, once it has been asked for.
    set: Option<Arc<RangeDeletes>>,
}

/// What the transaction itself says of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own<'a> {
    /// Nothing: what is committed counts.
    Nothing,
    /// It has deleted it.
    Deleted,
    /// It has given it this value.
    Value(&'a [u8]),
}

/// What is told of a write: the tree, the kind, the key and the value.
pub type Each<'a> = dyn FnMut(TreeId, Kind, &[u8], &[u8]) -> Result<()> + 'a;

/// The writes of one transaction.
#[derive(Debug)]
pub struct WriteSet {
    trees: BTreeMap<TreeId, OwnTree>,
    next: SeqNo,
    /// Spans of numbers, first and last, of writes that were undone; ascending.
    undone: Arc<[(SeqNo, SeqNo)]>,
    undone_bytes: u64,
    count: u64,
    bytes: u64,
}

impl Default for WriteSet {
    fn default() -> WriteSet {
        WriteSet {
            trees: BTreeMap::new(),
            next: OWN_FIRST,
            undone: Arc::default(),
            undone_bytes: 0,
            count: 0,
            bytes: 0,
        }
    }
}

impl WriteSet {
    /// Notes a write. `kind` is a put or a delete, or a range delete up to the key `value`; key and
    /// value are within their bounds.
    pub fn add(&mut self, tree: TreeId, kind: Kind, key: &[u8], value: &[u8]) {
        let own = self.trees.entry(tree).or_default();
        if kind == Kind::RangeDelete {
            let (start, end) = (key.to_vec(), value.to_vec());
            own.deletes.push(RangeDelete { start, end, seq: self.next });
            own.set = None;
        } else {
            own.memtable.insert(key, self.next, kind, value);
        }
        self.next += 1;
        self.count += 1;
        self.bytes += (key.len() + value.len()) as u64 + WRITE_BYTES;
    }

    /// How many writes there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// About how many bytes of memory they take, with those undone.
    pub fn bytes(&self) -> u64 {
        self.bytes + self.undone_bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn is_undone(&self, seq: SeqNo) -> bool {
        let after = self.undone.partition_point(|span| span.0 <= seq);
        after > 0 && seq <= self.undone[after - 1].1
    }

    /// The newest write to `key` in a tree that was not undone; range deletes apart.
    fn newest<'a>(&self, own: &'a OwnTree, key: &[u8]) -> Option<MemEntry<'a>> {
        let mut at = SEQ_MAX;
        loop {
            let entry = own.memtable.get(key, at)?;
            if !self.is_undone(entry.seq) {
                return Some(entry);
            }
            at = entry.seq - 1;
        }
    }

    fn covering(own: &OwnTree, key: &[u8]) -> SeqNo {
        let covers =
            |delete: &&RangeDelete| delete.start.as_slice() <= key && key < delete.end.as_slice();
        own.deletes.iter().filter(covers).map(|delete| delete.seq).max().unwrap_or(0)
    }

    /// What they say of a key.
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Own<'_> {
        let Some(own) = self.trees.get(&tree) else { return Own::Nothing };
        let covered = Self::covering(own, key);
        match self.newest(own, key) {
            Some(entry) if entry.seq > covered => match entry.kind {
                Kind::Delete => Own::Deleted,
                _ => Own::Value(entry.value),
            },
            _ if covered > 0 => Own::Deleted,
            _ => Own::Nothing,
        }
    }

    /// What a scan of a tree made now shows of them.
    pub fn of_tree(&mut self, tree: TreeId) -> Option<(Arc<Memtable>, OwnWrites)> {
        let (last, undone) = (self.next - 1, self.undone.clone());
        let own = self.trees.get_mut(&tree)?;
        let set = || Arc::new(RangeDeletes::new(own.deletes.iter().cloned()));
        let deletes = own.set.get_or_insert_with(set).clone();
        Some((own.memtable.clone(), OwnWrites { last, undone, deletes }))
    }

    /// The present place.
    pub fn mark(&self) -> Mark {
        Mark { next: self.next, count: self.count, bytes: self.bytes }
    }

    /// Undoes all writes after a mark, which was not itself undone.
    pub fn undo_to(&mut self, mark: Mark) {
        if mark.next == self.next {
            return;
        }
        let mut spans: Vec<(SeqNo, SeqNo)> =
            self.undone.iter().copied().filter(|span| span.0 < mark.next).collect();
        match spans.last_mut() {
            Some(last) if last.1 + 1 == mark.next => last.1 = self.next - 1,
            _ => spans.push((mark.next, self.next - 1)),
        }
        self.undone = spans.into();
        self.undone_bytes += self.bytes - mark.bytes;
        (self.count, self.bytes) = (mark.count, mark.bytes);
        for own in self.trees.values_mut() {
            let before = own.deletes.len();
            own.deletes.retain(|delete| delete.seq < mark.next);
            if own.deletes.len() < before {
                own.set = None;
            }
        }
        if self.undone_bytes > UNDONE_BYTES && self.undone_bytes > self.bytes {
            self.write_anew();
        }
    }

    /// Leaves out what was undone. Scans go on with what they have.
    fn write_anew(&mut self) {
        let trees: Vec<TreeId> = self.trees.keys().copied().collect();
        for tree in trees {
            let new = Memtable::new();
            let mut cursor = self.trees[&tree].memtable.cursor();
            // A memtable's cursor does not fail.
            let mut moved = cursor.seek_first();
            while moved.is_ok() && cursor.valid() {
                if !self.is_undone(cursor.seq()) {
                    new.insert(cursor.key(), cursor.seq(), cursor.kind(), cursor.value());
                }
                moved = cursor.next();
            }
            if let Some(own) = self.trees.get_mut(&tree) {
                own.memtable = Arc::new(new);
            }
        }
        self.undone_bytes = 0;
    }

    /// Tells `write` of what is to be committed: by tree, first the range deletes in order and then
    /// the newest write of each key that no newer range delete covers, in key order.
    pub fn each(&self, write: &mut Each<'_>) -> Result<()> {
        for (&tree, own) in &self.trees {
            for delete in &own.deletes {
                write(tree, Kind::RangeDelete, &delete.start, &delete.end)?;
            }
            let covers = RangeDeletes::new(own.deletes.iter().cloned());
            let mut cursor = own.memtable.cursor();
            let mut last: Option<Vec<u8>> = None;
            cursor.seek_first()?;
            while cursor.valid() {
                let (key, seq) = (cursor.key(), cursor.seq());
                if last.as_deref() != Some(key) && !self.is_undone(seq) {
                    if covers.newest_covering(key, SEQ_MAX) < seq {
                        write(tree, cursor.kind(), key, cursor.value())?;
                    }
                    let kept = last.get_or_insert_default();
                    kept.clear();
                    kept.extend_from_slice(key);
                }
                cursor.next()?;
            }
        }
        Ok(())
    }

    /// What is to be committed, as operations.
    pub fn ops(&self) -> Result<Ops> {
        let mut ops = Ops::new();
        self.each(&mut |tree, kind, key, value| ops.push(kind, tree, key, value))?;
        Ok(ops)
    }
}

#[cfg(test)]
#[path = "writes_tests.rs"]
mod tests;
