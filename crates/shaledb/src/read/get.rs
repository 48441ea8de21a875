//! Looking up one key or several: the sources from new to old, up to the first version that the
//! reader may see. Why that one is the newest: see [`crate::state`].
//!
//! Range deletes are looked at first, and only if there are any: a source all of which is older
//! than the delete that covers the key need not be asked.

use super::sources::is_in_order;
use super::value::{BlobSource, Value};
use crate::base::coding;
use crate::base::error::Result;
use crate::base::key::{Kind, SeqNo};
use crate::base::sync::Arc;
use crate::state::TreeState;
use crate::table::{Look, Missed, Misses, Table, TableEntry};

/// The newest version of a key that a reader may see, if it is not a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// When it was written.
    pub seq: SeqNo,
    /// [`Kind::Put`], or [`Kind::Blob`] if `value` is a reference.
    pub kind: Kind,
    /// The value, or the reference to it.
    pub value: Value,
}

impl Found {
    /// The value itself.
    fn resolve(self, blobs: &dyn BlobSource) -> Result<Value> {
        match self.kind {
            Kind::Blob => blobs.read(&self.value).map(Value::owned),
            _ => Ok(self.value),
        }
    }
}

/// The value of `key` that a reader at `seq` sees.
pub fn get(
    state: &TreeState,
    key: &[u8],
    seq: SeqNo,
    blobs: &dyn BlobSource,
) -> Result<Option<Value>> {
    find(state, key, seq)?.map(|found| found.resolve(blobs)).transpose()
}

/// As [`get`], but a large value is not read: the caller gets the reference to it.
pub fn find(state: &TreeState, key: &[u8], seq: SeqNo) -> Result<Option<Found>> {
    debug_assert!(is_in_order(state));
    let deleted = newest_covering(state, key, seq)?;
    let mut hash = None;
    if let Some(answer) = find_in_memtables(state, key, &mut hash, seq, deleted) {
        return Ok(answer);
    }
    for table in tables_of(state, key) {
        if table.meta.max_seq < deleted {
            continue;
        }
        let hash = *hash.get_or_insert_with(|| coding::hash(key));
        if let Some(answer) = find_in_table(table, key, hash, seq, deleted)? {
            return Ok(answer);
        }
    }
    Ok(None)
}

/// What each of several keys, in any order, reads as; as [`get`] for each, but the blocks needed
/// are asked for before the first of them is waited for, and idle threads help to decode them.
pub fn multi_get(
    state: &TreeState,
    keys: &[&[u8]],
    seq: SeqNo,
    blobs: &dyn BlobSource,
) -> Result<Vec<Option<Value>>> {
    let found = multi_find(state, keys, seq)?;
    found.into_iter().map(|found| found.map(|f| f.resolve(blobs)).transpose()).collect()
}

/// As [`multi_get`], but large values are not read: the caller gets the references to them.
pub fn multi_find(state: &TreeState, keys: &[&[u8]], seq: SeqNo) -> Result<Vec<Option<Found>>> {
    debug_assert!(is_in_order(state));
    let mut found = vec![None; keys.len()];
    let mut open: Vec<Open<'_>> = Vec::with_capacity(keys.len());
    for (index, &key) in keys.iter().enumerate() {
        let deleted = newest_covering(state, key, seq)?;
        let mut hash = None;
        match find_in_memtables(state, key, &mut hash, seq, deleted) {
            Some(answer) => found[index] = answer,
            None => {
                let hash = hash.unwrap_or_else(|| coding::hash(key));
                open.push(Open { index, key, hash, deleted, missed: None });
            }
        }
    }
    // In key order, so that neighbors find their blocks, and the nodes of the index, warm.
    open.sort_unstable_by(|a, b| a.key.cmp(b.key));
    let (level_0, deeper) = state.version.level0_and_deeper();
    for table in level_0 {
        find_in_source(&mut open, &mut found, seq, |_| Some(table))?;
    }
    for level in deeper.iter().filter(|level| !level.is_empty()) {
        find_in_source(&mut open, &mut found, seq, |key| level.find(key))?;
    }
    debug_assert!(open.iter().all(|open| found[open.index].is_none()), "one answer a key");
    Ok(found)
}

/// Asks the file system for the blocks that look-ups of several keys need and that are not in
/// memory; answers of how many.
pub fn prefetch(state: &TreeState, keys: &[&[u8]]) -> u64 {
    let asked = keys.iter().map(|key| {
        let hash = coding::hash(key);
        tables_of(state, key).filter(|table| table.prefetch_block(key, hash)).count() as u64
    });
    asked.sum()
}

/// A key of a [`multi_find`] that has not been answered yet.
struct Open<'a> {
    index: usize,
    key: &'a [u8],
    hash: u64,
    deleted: SeqNo,
    /// The number of the block that has to be read for it, among those that are.
    missed: Option<usize>,
}

/// Asks one table, or one run of tables, for all open keys.
fn find_in_source<'t>(
    open: &mut Vec<Open<'_>>,
    found: &mut [Option<Found>],
    seq: SeqNo,
    table_of: impl Fn(&[u8]) -> Option<&'t Arc<Table>>,
) -> Result<()> {
    let mut missed = Misses::default();
    let mut look = |open: &mut Open<'_>| {
        let table = table_of(open.key)
            .filter(|table| table.meta.covers(open.key) && table.meta.max_seq >= open.deleted);
        let Some(table) = table else { return Ok(None) };
        match table.get_in_memory(open.key, open.hash, seq)? {
            Look::Known(entry) => Ok(entry),
            Look::Miss(miss) => {
                open.missed = Some(missed.add(table, miss));
                Ok(None)
            }
        }
    };
    let mut answer = |open: &Open<'_>, entry| {
        let entry: Option<TableEntry> = entry?;
        if let Some(entry) = entry {
            found[open.index] = found_in_table(entry, seq, open.deleted);
            return Ok(false);
        }
        Ok(true)
    };
    // First what is in memory, then the blocks of the others together.
    try_retain(open, |open| {
        let entry = look(open);
        answer(open, entry)
    })?;
    if missed.is_empty() {
        return Ok(());
    }
    let missed = Missed::new(missed);
    let blocks = missed.read()?;
    try_retain(open, |open| match open.missed.take() {
        Some(at) => answer(open, missed.find(at, &blocks[at], open.key, seq)),
        None => Ok(true),
    })
}

/// As [`Vec::retain_mut`]; after the first error nothing more is asked, and all others are kept.
fn try_retain<T>(items: &mut Vec<T>, mut keep: impl FnMut(&mut T) -> Result<bool>) -> Result<()> {
    let mut failed = Ok(());
    items.retain_mut(|item| {
        failed.is_err()
            || keep(item).unwrap_or_else(|error| {
                failed = Err(error);
                true
            })
    });
    failed
}

/// The newest range delete that covers `key` for a reader at `seq`, or 0.
#[inline]
pub(super) fn newest_covering(state: &TreeState, key: &[u8], seq: SeqNo) -> Result<SeqNo> {
    let mut newest = newest_covering_in_memtables(state, key, seq);
    if state.version.has_range_deletes() {
        newest = newest.max(state.version.range_deletes()?.newest_covering(key, seq));
    }
    debug_assert!(newest <= seq, "what is newer hides nothing");
    Ok(newest)
}

/// As [`newest_covering`], of those in memtables.
#[inline]
pub(super) fn newest_covering_in_memtables(state: &TreeState, key: &[u8], seq: SeqNo) -> SeqNo {
    state.memtables().map(|memtable| memtable.newest_covering(key, seq)).max().unwrap_or(0)
}

/// What the memtables say of the key: nothing, that it is deleted, or its value.
#[inline]
fn find_in_memtables(
    state: &TreeState,
    key: &[u8],
    hash: &mut Option<u64>,
    seq: SeqNo,
    deleted: SeqNo,
) -> Option<Option<Found>> {
    for memtable in state.memtables() {
        if let Some(entry) = memtable.get_hashed(key, hash, seq) {
            debug_assert!(entry.seq <= seq, "only what the reader may see");
            let live = entry.seq >= deleted && entry.kind != Kind::Delete;
            return Some(live.then(|| Found {
                seq: entry.seq,
                kind: entry.kind,
                value: Value::owned(entry.value.to_vec()),
            }));
        }
    }
    None
}

/// What a table says of the key: nothing, that it is deleted, or its value.
#[inline]
fn find_in_table(
    table: &Table,
    key: &[u8],
    hash: u64,
    seq: SeqNo,
    deleted: SeqNo,
) -> Result<Option<Option<Found>>> {
    let Some(entry) = table.get(key, hash, seq)? else { return Ok(None) };
    Ok(Some(found_in_table(entry, seq, deleted)))
}

/// What a table's entry says of its key: that it is deleted, or its value.
#[inline]
fn found_in_table(entry: TableEntry, seq: SeqNo, deleted: SeqNo) -> Option<Found> {
    debug_assert!(entry.seq <= seq, "only what the reader may see");
    let live = entry.seq >= deleted && entry.kind != Kind::Delete;
    live.then_some(Found { seq: entry.seq, kind: entry.kind, value: Value::block(entry.value) })
}

/// The tables whose key range has `key`, newest first.
#[inline]
pub(super) fn tables_of<'a>(
    state: &'a TreeState,
    key: &'a [u8],
) -> impl Iterator<Item = &'a Arc<Table>> {
    let (level_0, deeper) = state.version.level0_and_deeper();
    let level_0 = level_0.iter().filter(move |table| table.meta.covers(key));
    let deeper = deeper.iter().filter(|level| !level.is_empty());
    level_0.chain(deeper.filter_map(move |level| level.find(key)))
}

#[cfg(test)]
#[path = "get_tests.rs"]
mod tests;
