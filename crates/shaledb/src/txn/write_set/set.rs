//! The writes of one transaction, which nobody else sees until it commits.
//!
//! They are in a memtable for each tree, with numbers from [`WRITE_SET_FIRST`] on, so that the
//! cursors that show committed rows show these as well. What does not fit memory is in `runs`
//! below it, with the same numbers. What is undone stays in the memtable: its numbers are noted as
//! a span that nobody sees, and when most of it is such the memtable is written anew; runs of which
//! all is undone go. Range deletes are kept beside, in memory, since one that is undone must not
//! hide anything.

use super::deletes::{self, Deletes};
use super::runs::{RUNS_TO_MERGE, RunSource, SpilledRun};
use super::spare;
use crate::base::coding;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{Kind, SEQ_MAX, SeqNo, WRITE_SET_FIRST};
use crate::base::ranges::{RangeDelete, RangeDeletes};
use crate::iter::{Merge, Undone, WriteSetView};
use crate::memtable::Memtable;
use crate::read::{Value, WriteSetSources};
use crate::version::TreeId;
use crate::write::ops::Ops;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a write takes in memory beside its key and value, about.
const WRITE_BYTES: u64 = 48;

/// A filter is made for so many times the writes that there are, and for at most so many bytes of
/// them: it takes a 25th of that, or less.
const FILTERED_GROWTH: u64 = 8;
const FILTERED_BYTES: u64 = 16 << 20;

/// Undone bytes up to which nothing is written anew.
const UNDONE_BYTES: u64 = 1 << 20;

/// A position in the write set, to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    next: SeqNo,
    count: u64,
    bytes: u64,
}

#[derive(Debug)]
struct TreeWrites {
    memtable: Arc<Memtable>,
    /// Oldest first; all older than the memtable.
    runs: Vec<SpilledRun>,
    deletes: Deletes,
}

impl Default for TreeWrites {
    fn default() -> TreeWrites {
        let memtable = spare::take();
        TreeWrites { memtable, runs: Vec::new(), deletes: Deletes::default() }
    }
}

/// What the transaction itself says of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// Nothing: what is committed counts.
    Nothing,
    /// It has deleted it.
    Deleted,
    /// It has given it this value; or the value that this is the reference to.
    Value(Kind, Value),
}

/// What is told of a write: the tree, the kind, the key and the value.
pub type Each<'a> = dyn FnMut(TreeId, Kind, &[u8], &[u8]) -> Result<()> + 'a;

/// What is told of an entry: the key, the number, the kind and the value.
pub type EachEntry<'a> = dyn FnMut(&[u8], SeqNo, Kind, &[u8]) -> Result<()> + 'a;

/// What is told of the newest write of a key: the kind, the key and the value.
pub type EachNewest<'a> = dyn FnMut(Kind, &[u8], &[u8]) -> Result<()> + 'a;

/// The writes of one transaction.
#[derive(Debug)]
pub struct WriteSet {
    trees: BTreeMap<TreeId, TreeWrites>,
    next: SeqNo,
    /// The first number that may be in a memtable: what is older is in runs.
    memory_first: SeqNo,
    undone: Undone,
    /// What is in memtables and was undone.
    undone_bytes: u64,
    /// What is in memtables, with what was undone.
    memory_bytes: u64,
    /// What range deletes take.
    deletes_bytes: u64,
    count: u64,
    /// Of all that was not undone, in memory or not, and of what was forgotten.
    bytes: u64,
    /// What was forgotten of memory, by the position where that was.
    forgotten: Vec<(SeqNo, u64)>,
}

impl Default for WriteSet {
    fn default() -> WriteSet {
        WriteSet {
            trees: BTreeMap::new(),
            next: WRITE_SET_FIRST,
            memory_first: WRITE_SET_FIRST,
            undone: Undone::default(),
            undone_bytes: 0,
            memory_bytes: 0,
            deletes_bytes: 0,
            count: 0,
            bytes: 0,
            forgotten: Vec::new(),
        }
    }
}

impl Drop for WriteSet {
    fn drop(&mut self) {
        for writes in std::mem::take(&mut self.trees).into_values() {
            spare::give(writes.memtable);
        }
    }
}

/// About how many bytes of memory a write takes.
pub fn write_bytes(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64 + WRITE_BYTES
}

/// What range deletes count as writes, and what they take in memory.
fn bytes_of(deletes: &[RangeDelete]) -> (u64, u64) {
    let written = deletes.iter().map(|delete| write_bytes(&delete.start, &delete.end));
    (written.sum(), deletes.iter().map(deletes::memory_bytes).sum())
}

impl WriteSet {
    /// Notes a write. `kind` is a put or a delete, or a range delete up to the key `value`; key and
    /// value are within their bounds.
    pub fn add(&mut self, tree: TreeId, kind: Kind, key: &[u8], value: &[u8]) {
        debug_assert!(matches!(kind, Kind::Put | Kind::Delete | Kind::RangeDelete));
        debug_assert!((WRITE_SET_FIRST..SEQ_MAX).contains(&self.next), "apart from commits");
        let writes = self.trees.entry(tree).or_default();
        let bytes = write_bytes(key, value);
        if kind == Kind::RangeDelete {
            let (start, end) = (key.to_vec(), value.to_vec());
            let delete = RangeDelete { start, end, seq: self.next };
            self.deletes_bytes += deletes::memory_bytes(&delete);
            writes.deletes.add(delete);
        } else {
            writes.memtable.insert(key, self.next, kind, value);
            // Whoever adds has all of the writes.
            if writes.memtable.wants_filter() {
                let most = FILTERED_GROWTH * writes.memtable.used_bytes() as u64;
                writes.memtable.begin_filter(most.min(FILTERED_BYTES));
            }
            self.memory_bytes += bytes;
        }
        self.next += 1;
        self.count += 1;
        self.bytes += bytes;
    }

    /// How many writes there are, those to trees that were forgotten included.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// About how many bytes of memory those take that can go to runs, with those undone.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// The bytes of all keys and values that were not undone.
    pub fn user_bytes(&self) -> u64 {
        self.bytes - self.count * WRITE_BYTES
    }

    /// About how many bytes of memory range deletes take, which stay in memory.
    pub fn deletes_bytes(&self) -> u64 {
        self.deletes_bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0 || self.trees.is_empty()
    }

    /// Undoes all that was written to a tree, for good. What it counted for stays counted, since
    /// marks have it too.
    pub fn forget(&mut self, tree: TreeId) {
        let Some(writes) = self.trees.remove(&tree) else { return };
        let (mut kept, mut undone) = (0, 0);
        for (key, entry) in writes.memtable.entries() {
            let of = if self.undone.has(entry.seq) { &mut undone } else { &mut kept };
            *of += write_bytes(key, entry.value);
        }
        // What was undone is an estimate.
        self.undone_bytes = self.undone_bytes.saturating_sub(undone);
        self.memory_bytes -= (kept + undone).min(self.memory_bytes);
        let (deletes, taken) = bytes_of(writes.deletes.all());
        self.deletes_bytes -= taken;
        self.forgotten.push((self.next, kept + deletes));
    }

    /// The newest write to `key` in a tree that is newer than `covered` and was not undone; range
    /// deletes apart.
    fn newest(
        &self,
        writes: &TreeWrites,
        key: &[u8],
        covered: SeqNo,
    ) -> Result<Option<(Kind, Value)>> {
        let mut at = SEQ_MAX;
        while let Some(entry) = writes.memtable.get(key, at) {
            if entry.seq < covered {
                return Ok(None);
            }
            if !self.undone.has(entry.seq) {
                return Ok(Some((entry.kind, Value::owned(entry.value.to_vec()))));
            }
            at = entry.seq - 1;
        }
        let hash = if writes.runs.is_empty() { 0 } else { coding::hash(key) };
        for run in writes.runs.iter().rev().take_while(|run| run.last() > covered) {
            let Some(table) = run.find(key) else { continue };
            let mut at = SEQ_MAX;
            while let Some(entry) = table.get(key, hash, at)? {
                if entry.seq < covered {
                    return Ok(None);
                }
                if !self.undone.has(entry.seq) {
                    return Ok(Some((entry.kind, Value::block(entry.value))));
                }
                at = entry.seq - 1;
            }
        }
        Ok(None)
    }

    /// What they say of a key.
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Written> {
        let Some(writes) = self.trees.get(&tree) else { return Ok(Written::Nothing) };
        let covered = writes.deletes.covering(key);
        Ok(match self.newest(writes, key, covered)? {
            Some((Kind::Delete, _)) => Written::Deleted,
            Some((kind, value)) => Written::Value(kind, value),
            None if covered > 0 => Written::Deleted,
            None => Written::Nothing,
        })
    }

    /// What a scan of a tree made now shows of them.
    pub fn of_tree(&self, tree: TreeId) -> Option<WriteSetSources> {
        let (last, undone) = (self.next - 1, self.undone.clone());
        let writes = self.trees.get(&tree)?;
        let deletes = writes.deletes.sets();
        Some(WriteSetSources {
            memtable: writes.memtable.clone(),
            runs: writes.runs.iter().map(|run| run.level().clone()).collect(),
            writes: WriteSetView { last, undone, deletes },
        })
    }

    /// The present position.
    pub fn mark(&self) -> Mark {
        Mark { next: self.next, count: self.count, bytes: self.bytes }
    }

    /// Undoes all writes after a mark, which was not itself undone.
    pub fn undo_to(&mut self, mark: Mark) {
        assert!(
            mark.next <= self.next && mark.count <= self.count && mark.bytes <= self.bytes,
            "a mark is from before"
        );
        if mark.next == self.next {
            return;
        }
        self.undone.undo(mark.next, self.next - 1);
        let mut forgotten = 0;
        for (position, bytes) in self.forgotten.iter_mut().rev().take_while(|of| of.0 > mark.next) {
            forgotten += *bytes;
            // What is left of it was before the mark.
            *position = mark.next;
        }
        // At least: of what was forgotten some may have been before the mark.
        let mut undone_bytes = (self.bytes - mark.bytes).saturating_sub(forgotten);
        (self.count, self.bytes) = (mark.count, mark.bytes);
        for writes in self.trees.values_mut() {
            let (gone, taken) = bytes_of(writes.deletes.since(mark.next));
            self.deletes_bytes -= taken;
            undone_bytes = undone_bytes.saturating_sub(gone);
            writes.deletes.undo_from(mark.next);
            writes.runs.retain(|run| run.first() < mark.next);
        }
        // The rest of them was in runs.
        self.undone_bytes = self.memory_bytes.min(self.undone_bytes + undone_bytes);
        let kept = self.memory_bytes - self.undone_bytes;
        if self.undone_bytes > UNDONE_BYTES && self.undone_bytes > kept {
            self.write_anew();
        }
    }

    /// Leaves out what was undone. Scans go on with what they have.
    fn write_anew(&mut self) {
        let trees: Vec<TreeId> = self.trees.keys().copied().collect();
        self.memory_bytes = 0;
        for tree in trees {
            let new = Memtable::new();
            for (key, entry) in self.trees[&tree].memtable.entries() {
                if !self.undone.has(entry.seq) {
                    self.memory_bytes += write_bytes(key, entry.value);
                    new.insert(key, entry.seq, entry.kind, entry.value);
                }
            }
            if let Some(writes) = self.trees.get_mut(&tree) {
                writes.memtable = Arc::new(new);
            }
        }
        // Nothing is left in memory that spans from there on would hide.
        let spans = self.undone.spans().iter().filter(|span| span.0 < self.memory_first);
        self.undone = Undone::new(spans.copied().collect());
        self.undone_bytes = 0;
    }

    /// Whether anything is in runs.
    pub fn has_runs(&self) -> bool {
        self.trees.values().any(|writes| !writes.runs.is_empty())
    }

    /// The bytes of the files of all runs.
    pub fn run_bytes(&self) -> u64 {
        self.trees.values().flat_map(|writes| &writes.runs).map(SpilledRun::bytes).sum()
    }

    /// The trees with anything in memory that can go to runs.
    pub fn in_memory(&self) -> impl Iterator<Item = TreeId> + '_ {
        self.trees.iter().filter(|(_, writes)| !writes.memtable.is_empty()).map(|(tree, _)| *tree)
    }

    /// Tells `write` of all entries of a tree's memtable that were not undone, in order.
    pub fn each_in_memory(&self, tree: TreeId, write: &mut EachEntry<'_>) -> Result<()> {
        let Some(writes) = self.trees.get(&tree) else { return Ok(()) };
        for (key, entry) in writes.memtable.entries() {
            if !self.undone.has(entry.seq) {
                write(key, entry.seq, entry.kind, entry.value)?;
            }
        }
        Ok(())
    }

    fn each_entry(&self, sources: Vec<RunSource>, write: &mut EachEntry<'_>) -> Result<()> {
        let mut cursor = Merge::new(sources);
        cursor.seek_first()?;
        while cursor.valid() {
            if !self.undone.has(cursor.seq()) {
                write(cursor.key(), cursor.seq(), cursor.kind(), cursor.value())?;
            }
            cursor.next()?;
        }
        Ok(())
    }

    /// Notes that what is in memory is in these runs as well, and forgets it. A tree that has
    /// nothing left to write has no run.
    pub fn spilled(&mut self, runs: Vec<(TreeId, SpilledRun)>) {
        for writes in self.trees.values_mut() {
            writes.memtable = Arc::default();
        }
        for (tree, run) in runs {
            let runs = &mut self.trees.entry(tree).or_default().runs;
            assert!(
                runs.last().is_none_or(|last| last.last() < run.first()),
                "a run is newer than those before it"
            );
            runs.push(run);
        }
        // Runs have nothing that was undone by now.
        let undone = self.undone.spans().iter().filter(|span| span.0 < self.memory_first);
        self.undone = Undone::new(undone.copied().collect());
        self.memory_first = self.next;
        (self.memory_bytes, self.undone_bytes) = (0, 0);
    }

    /// A tree with so many runs of about one size that they should be made one; the first of them,
    /// to which the last belongs.
    pub fn due_merge(&self) -> Option<(TreeId, usize)> {
        self.trees.iter().find_map(|(tree, writes)| {
            let tier = writes.runs.last()?.tier();
            let first =
                writes.runs.iter().rposition(|run| run.tier() != tier).map_or(0, |at| at + 1);
            (writes.runs.len() - first >= RUNS_TO_MERGE).then_some((*tree, first))
        })
    }

    /// Tells `write` of the entries of a tree's runs from `first` on that were not undone.
    pub fn each_in_runs(
        &self,
        tree: TreeId,
        first: usize,
        write: &mut EachEntry<'_>,
    ) -> Result<()> {
        let Some(writes) = self.trees.get(&tree) else { return Ok(()) };
        self.each_entry(writes.runs[first..].iter().map(RunSource::new).collect(), write)
    }

    /// Puts `run` in the place of a tree's runs from `first` on. `None` if nothing is left of them.
    pub fn merged(&mut self, tree: TreeId, first: usize, run: Option<SpilledRun>) {
        if let Some(writes) = self.trees.get_mut(&tree) {
            assert!(first < writes.runs.len(), "a merge has inputs");
            let spans = |run: &SpilledRun| {
                writes.runs[first].first() <= run.first()
                    && run.last() <= writes.runs.last().map_or(0, SpilledRun::last)
            };
            assert!(run.as_ref().is_none_or(spans), "a merge adds no entries");
            writes.runs.truncate(first);
            writes.runs.extend(run);
        }
    }

    /// The tier of the run that a tree's runs from `first` on are merged to.
    pub fn next_tier(&self, tree: TreeId, first: usize) -> u32 {
        let run = self.trees.get(&tree).and_then(|writes| writes.runs.get(first));
        run.map_or(0, |run| run.tier() + 1)
    }

    /// The trees that anything was written to, in order.
    pub fn tree_ids(&self) -> impl Iterator<Item = TreeId> + '_ {
        self.trees.keys().copied()
    }

    /// The range deletes of a tree: where they overlap, the newest.
    pub fn range_deletes(&self, tree: TreeId) -> RangeDeletes {
        self.trees.get(&tree).map_or_else(RangeDeletes::default, |writes| writes.deletes.newest())
    }

    /// Tells `write` of the newest write of each key of a tree, without those that a newer range
    /// delete covers, in key order.
    pub fn each_newest(&self, tree: TreeId, write: &mut EachNewest<'_>) -> Result<()> {
        let Some(writes) = self.trees.get(&tree) else { return Ok(()) };
        if writes.runs.is_empty() && writes.deletes.all().is_empty() {
            return self.each_newest_of(&writes.memtable, write);
        }
        let covers = self.range_deletes(tree);
        let mut sources = vec![RunSource::Memtable(writes.memtable.cursor())];
        sources.extend(writes.runs.iter().rev().map(RunSource::new));
        let mut last: Option<Vec<u8>> = None;
        self.each_entry(sources, &mut |key, seq, kind, value| {
            if last.as_deref() == Some(key) {
                return Ok(());
            }
            debug_assert!(last.as_deref().is_none_or(|last| last < key), "keys ascend");
            let kept = last.get_or_insert_default();
            kept.clear();
            kept.extend_from_slice(key);
            if covers.newest_covering(key, SEQ_MAX) < seq {
                write(kind, key, value)
            } else {
                Ok(())
            }
        })
    }

    /// As [`WriteSet::each_newest`], of a tree that has no more than its memtable. Most have, and
    /// then this allocates nothing.
    fn each_newest_of(&self, memtable: &Memtable, write: &mut EachNewest<'_>) -> Result<()> {
        let mut last: Option<&[u8]> = None;
        for (key, entry) in memtable.entries() {
            if last == Some(key) || self.undone.has(entry.seq) {
                continue;
            }
            debug_assert!(last.is_none_or(|last| last < key), "keys ascend");
            last = Some(key);
            write(entry.kind, key, entry.value)?;
        }
        Ok(())
    }

    /// Tells `write` of what is to be committed: by tree, first the range deletes in order and then
    /// as [`WriteSet::each_newest`]. A value that is in a file of its own is told as a reference.
    pub fn each(&self, write: &mut Each<'_>) -> Result<()> {
        for (&tree, writes) in &self.trees {
            for delete in writes.deletes.all() {
                write(tree, Kind::RangeDelete, &delete.start, &delete.end)?;
            }
            self.each_newest(tree, &mut |kind, key, value| write(tree, kind, key, value))?;
        }
        Ok(())
    }

    /// What is to be committed, as operations.
    pub fn ops(&self) -> Result<Ops> {
        let mut ops = Ops::with_room(self.count, self.user_bytes());
        self.each(&mut |tree, kind, key, value| ops.push(kind, tree, key, value))?;
        Ok(ops)
    }
}

#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
