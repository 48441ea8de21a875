//! The conflict check: what has been written since a sequence number. So a transaction finds out
//! that what it has read, or is about to write, is no longer as its snapshot shows it.
//!
//! The check is exact for the number of an open snapshot, since compaction keeps the numbers of all
//! newer versions. Exception: a key inserted and deleted again since the snapshot may be missed; no
//! reader can tell. Memtables and tables that have nothing newer are not searched.

use super::get::{newest_covering, newest_covering_in_memtables, tables_of};
use crate::base::coding;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{SEQ_MAX, SeqNo};
use crate::base::ranges::RangeDeletes;
use crate::state::TreeState;
use crate::table::CursorOptions;

/// Where the check looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In memtables and tables.
    All,
    /// In memtables only: tables are known to be older.
    Memtables,
}

/// The number of the newest write to `key` after `since`: a value, a delete or a range delete.
pub fn newest_after(
    state: &TreeState,
    key: &[u8],
    since: SeqNo,
    scope: Scope,
) -> Result<Option<SeqNo>> {
    let mut newest = match scope {
        Scope::All => newest_covering(state, key, SEQ_MAX)?,
        Scope::Memtables => newest_covering_in_memtables(state, key, SEQ_MAX),
    };
    let mut hash = None;
    for memtable in state.memtables().filter(|memtable| memtable.last_seq() > since) {
        if let Some(entry) = memtable.get_hashed(key, &mut hash, SEQ_MAX) {
            newest = newest.max(entry.seq);
        }
    }
    if scope == Scope::All {
        for table in tables_of(state, key).filter(|table| table.meta.max_seq > since) {
            let hash = *hash.get_or_insert_with(|| coding::hash(key));
            if let Some(entry) = table.get(key, hash, SEQ_MAX)? {
                newest = newest.max(entry.seq);
            }
        }
    }
    Ok((newest > since).then_some(newest))
}

/// A key from `lower` up to (not including) `upper` that was written after `since`, if there is
/// one. Costs a walk through the range in memtables and in tables that have anything newer.
pub fn changed_after(
    state: &TreeState,
    lower: &[u8],
    upper: Option<&[u8]>,
    since: SeqNo,
    scope: Scope,
) -> Result<Option<Vec<u8>>> {
    if upper.is_some_and(|upper| upper <= lower) {
        return Ok(None);
    }
    for memtable in state.memtables().filter(|memtable| memtable.last_seq() > since) {
        if memtable.has_range_deletes()
            && let Some(key) = covered_after(&memtable.range_deletes(), lower, upper, since)
        {
            return Ok(Some(key));
        }
        let found = walk(memtable.cursor(), lower, upper, since)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    if scope == Scope::Memtables {
        return Ok(None);
    }
    if state.version.has_range_deletes()
        && let Some(key) = covered_after(state.version.range_deletes()?, lower, upper, since)
    {
        return Ok(Some(key));
    }
    for (_, table) in state.version.tables() {
        let meta = &table.meta;
        if meta.max_seq <= since || !meta.meets(Some(lower), upper) {
            continue;
        }
        let found = walk(table.cursor(CursorOptions::default()), lower, upper, since)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn walk(
    mut cursor: impl Cursor,
    lower: &[u8],
    upper: Option<&[u8]>,
    since: SeqNo,
) -> Result<Option<Vec<u8>>> {
    cursor.seek(lower, SEQ_MAX)?;
    while cursor.valid() && upper.is_none_or(|upper| cursor.key() < upper) {
        if cursor.seq() > since {
            return Ok(Some(cursor.key().to_vec()));
        }
        cursor.next()?;
    }
    Ok(None)
}

fn covered_after(
    deletes: &RangeDeletes,
    lower: &[u8],
    upper: Option<&[u8]>,
    since: SeqNo,
) -> Option<Vec<u8>> {
    let inside = deletes.clip(lower, upper);
    let newer = inside.fragments().iter().find(|fragment| fragment.newest_at(SEQ_MAX) > since);
    debug_assert!(newer.is_none_or(|fragment| {
        let start = fragment.start.as_slice();
        start >= lower && upper.is_none_or(|upper| start < upper)
    }));
    newer.map(|fragment| fragment.start.clone())
}

#[cfg(test)]
#[path = "conflict_tests.rs"]
mod tests;
