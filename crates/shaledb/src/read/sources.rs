//! What a scan reads: a cursor for each memtable, each table of level 0 and each level below it
//! that meets the range, and a merge of those.

use super::write_set::WriteSetSources;
use crate::base::cursor::{Cursor, cursor_by_variant};
use crate::base::error::Result;
use crate::base::key::{SEQ_MAX, SeqNo, WRITE_SET_FIRST, common_prefix};
use crate::base::ranges::RangeDeletes;
use crate::base::sync::Arc;
use crate::iter::concat::{Concat, Run};
use crate::iter::{Merge, Source};
use crate::memtable::MemCursor;
use crate::state::TreeState;
use crate::table::meta::TableMeta;
use crate::table::{CursorOptions, Table, TableCursor};
use crate::version::Level;
use std::ops::Range;

/// What part of a tree to scan, and how.
#[derive(Clone, Debug)]
pub struct ScanRange {
    /// The first key that may be seen.
    pub lower: Vec<u8>,
    /// The first key that may no longer be seen; `None`: there is no such bound.
    pub upper: Option<Vec<u8>>,
    /// How to read the tables.
    pub cursor: CursorOptions,
}

/// Of how many tables of a level the bytes are added up; for more the level's mean is taken.
const TABLES_ADDED: usize = 8;

/// One source of a scan. Large, but a hop to the heap on every step would cost more.
pub enum ScanSource {
    Memtable { cursor: MemCursor, max_seq: SeqNo },
    Table { cursor: TableCursor, max_seq: SeqNo },
    Run(Concat<TableCursor>),
}

impl ScanSource {
    /// Tells the cursor [`CursorOptions::range_bytes`].
    fn set_range_bytes(&mut self, bytes: u64) {
        match self {
            ScanSource::Memtable { .. } => {}
            ScanSource::Table { cursor, .. } => cursor.set_range_bytes(bytes),
            ScanSource::Run(concat) => {
                concat.options_mut().range_bytes = bytes;
                if let Some(cursor) = concat.open_cursor() {
                    cursor.set_range_bytes(bytes);
                }
            }
        }
    }

    /// Of one that is of all keys, or was bound to others: binds it to a range. Answers as
    /// [`add_level`].
    fn bind(&mut self, lower: &[u8], upper: Option<&[u8]>) -> u64 {
        match self {
            ScanSource::Memtable { .. } => 0,
            ScanSource::Table { cursor, .. } => {
                let meta = &cursor.table().meta;
                let idle = !meta.meets(Some(lower), upper);
                let bytes = if idle { 0 } else { meta.raw_bytes };
                cursor.set_idle(idle);
                bytes
            }
            ScanSource::Run(concat) => {
                concat.restrict(lower, upper);
                match concat.run() {
                    Run::Level { level, range } => raw_bytes(level, range.clone()),
                    Run::Tables(_) => 0,
                }
            }
        }
    }
}

cursor_by_variant!(ScanSource, cursor in
    ScanSource::Memtable { cursor, .. },
    ScanSource::Table { cursor, .. },
    ScanSource::Run(cursor)
);

impl Source for ScanSource {
    fn max_seq(&self) -> SeqNo {
        match self {
            ScanSource::Memtable { max_seq, .. } | ScanSource::Table { max_seq, .. } => *max_seq,
            ScanSource::Run(concat) => concat.max_seq(),
        }
    }
    #[inline]
    fn plain_ahead<'a>(&self, seq: SeqNo, bound: impl FnOnce() -> Option<&'a [u8]>) -> usize {
        match self {
            ScanSource::Memtable { .. } => 0,
            ScanSource::Table { cursor, .. } => cursor.plain_ahead(seq, bound),
            ScanSource::Run(concat) => concat.current().plain_ahead(seq, bound),
        }
    }
    #[inline]
    fn plain_behind(&self, seq: SeqNo, lower: &[u8], rival: Option<&[u8]>) -> Option<usize> {
        match self {
            ScanSource::Memtable { .. } => None,
            ScanSource::Table { cursor, .. } => cursor.plain_behind(seq, lower, rival),
            ScanSource::Run(concat) => concat.current().plain_behind(seq, lower, rival),
        }
    }
    fn skip_to(&mut self, key: &[u8], below: SeqNo) -> Result<bool> {
        if let ScanSource::Run(concat) = self {
            return concat.skip_to(key, below);
        }
        let old = self.max_seq() < below;
        if old {
            self.seek(key, SEQ_MAX)?;
        }
        Ok(old)
    }
    fn skip_back_to(&mut self, key: &[u8], below: SeqNo) -> Result<bool> {
        if let ScanSource::Run(concat) = self {
            return concat.skip_back_to(key, below);
        }
        let old = self.max_seq() < below;
        if old {
            self.seek_back(key, SEQ_MAX)?;
        }
        Ok(old)
    }
}

/// What the keys of a range are known to begin with: the longer of what the bounds have in common
/// and what the key ranges of the tables have in common.
struct Prefix<'a> {
    bounds: &'a [u8],
    tables: Option<&'a [u8]>,
}

impl<'a> Prefix<'a> {
    fn new(range: &'a ScanRange) -> Prefix<'a> {
        let shared = range.upper.as_ref().map_or(0, |upper| common_prefix(&range.lower, upper));
        Prefix { bounds: &range.lower[..shared], tables: None }
    }

    /// Takes a table's key range into account.
    fn add(&mut self, meta: &'a TableMeta) {
        for key in [&meta.smallest, &meta.largest] {
            let shared = self.tables.unwrap_or(key);
            self.tables = Some(&shared[..common_prefix(shared, key)]);
        }
    }

    fn get(&self) -> &'a [u8] {
        let tables = self.tables.unwrap_or_default();
        if tables.len() > self.bounds.len() { tables } else { self.bounds }
    }
}

/// Adds cursors for those tables of a level that meet the range: one for each in level 0, where
/// tables overlap, and one for all together elsewhere. Answers about how many bytes their blocks
/// have when decoded.
fn add_level<'a>(
    sources: &mut Vec<ScanSource>,
    prefix: &mut Prefix<'a>,
    state: &'a TreeState,
    level: usize,
    range: &ScanRange,
) -> u64 {
    let tables = state.version.levels[level].tables();
    let (lower, upper) = (range.lower.as_slice(), range.upper.as_deref());
    let meets = |table: &&Arc<Table>| table.meta.meets(Some(lower), upper);
    let single = |table: &Arc<Table>| ScanSource::Table {
        cursor: table.cursor(range.cursor),
        max_seq: table.meta.max_seq,
    };
    if level == 0 {
        let mut bytes = 0;
        for table in tables.iter().filter(meets) {
            prefix.add(&table.meta);
            sources.push(single(table));
            bytes = u64::saturating_add(bytes, table.meta.raw_bytes);
        }
        return bytes;
    }
    if tables.is_empty() {
        return 0;
    }
    let meeting = state.version.levels[level].meeting(lower, upper);
    let (first, after) = (meeting.start, meeting.end);
    debug_assert!(tables[..first].iter().all(|table| table.meta.is_before(lower)));
    debug_assert!(
        tables[after..]
            .iter()
            .all(|table| upper.is_some_and(|to| table.meta.smallest.as_slice() >= to)),
        "what meets the range is read"
    );
    match &tables[first..after] {
        [] => {}
        [table] => {
            prefix.add(&table.meta);
            sources.push(single(table));
        }
        [left, .., right] => {
            prefix.add(&left.meta);
            prefix.add(&right.meta);
            let level = Arc::clone(&state.version.levels[level]);
            let run = Run::Level { level, range: first..after };
            sources.push(ScanSource::Run(Concat::new(run, range.cursor)));
        }
    }
    raw_bytes(&state.version.levels[level], first..after)
}

/// About how many bytes the blocks of some tables of a level have when decoded.
fn raw_bytes(level: &Level, range: Range<usize>) -> u64 {
    match &level.tables()[range] {
        few if few.len() <= TABLES_ADDED => {
            few.iter().fold(0, |sum, table| u64::saturating_add(sum, table.meta.raw_bytes))
        }
        many => level.raw_bytes() / level.len() as u64 * many.len() as u64,
    }
}

/// Binds the sources of all keys of a tree to a range, the first `own` aside, which are the
/// reader's own writes.
pub fn bind(sources: &mut [ScanSource], own: usize, lower: &[u8], upper: Option<&[u8]>) {
    let mut bytes = 0;
    for source in &mut sources[own..] {
        bytes = u64::saturating_add(bytes, source.bind(lower, upper));
    }
    for source in sources {
        source.set_range_bytes(bytes);
    }
}

/// Whether the sources of look-ups are from new to old.
pub(super) fn is_in_order(state: &TreeState) -> bool {
    let level_0 = state
        .version
        .levels
        .first()
        .is_none_or(|level| level.tables().is_sorted_by_key(|table| table.meta.age()));
    level_0 && state.sealed.is_sorted_by(|newer, older| newer.last_seq() >= older.last_seq())
}

/// As many sources as there may be, or more. They are large: a vector that grows would move them.
pub fn most_sources(state: &TreeState, write_set: Option<&WriteSetSources>) -> usize {
    let own = write_set.map_or(0, |write_set| 1 + write_set.runs.len());
    let (level_0, deeper) = state.version.level0_and_deeper();
    let deeper = deeper.iter().filter(|level| !level.is_empty()).count();
    own + 1 + state.sealed.len() + level_0.len() + deeper
}

/// A merge of all sources of a range, from new to old, and the range deletes of all of them. `own`
/// are the reader's own writes, on top.
pub fn open(
    state: &TreeState,
    write_set: Option<&WriteSetSources>,
    range: &ScanRange,
) -> Result<(Merge<ScanSource>, Vec<Arc<RangeDeletes>>)> {
    let mut deletes = Vec::new();
    let mut sources = Vec::with_capacity(most_sources(state, write_set));
    debug_assert!(is_in_order(state));
    if let Some(write_set) = write_set {
        debug_assert!(write_set.memtable.first_seq().is_none_or(|seq| seq >= WRITE_SET_FIRST));
        let (cursor, max_seq) = (write_set.memtable.cursor(), write_set.writes.last);
        sources.push(ScanSource::Memtable { cursor, max_seq });
        sources.extend(write_set.run_cursors(range.cursor).map(ScanSource::Run));
    }
    for memtable in state.memtables() {
        if memtable.has_range_deletes() {
            deletes.push(memtable.range_deletes());
        }
        // What is inserted from now on is newer than what the reader may see.
        if memtable.is_empty() {
            continue;
        }
        let max_seq = memtable.last_seq();
        sources.push(ScanSource::Memtable { cursor: memtable.cursor(), max_seq });
    }
    if state.version.has_range_deletes() {
        deletes.push(Arc::clone(state.version.range_deletes()?));
    }
    let mut prefix = Prefix::new(range);
    let mut bytes = 0;
    for level in 0..state.version.levels.len() {
        let level = add_level(&mut sources, &mut prefix, state, level, range);
        bytes = u64::saturating_add(bytes, level);
    }
    debug_assert!(sources.len() <= most_sources(state, write_set));
    for source in &mut sources {
        source.set_range_bytes(bytes);
    }
    Ok((Merge::new(sources).with_prefix(prefix.get()), deletes))
}

/// A cursor for each memtable, table of level 0 and deeper level that has an entry after `after`.
pub fn newer(state: &TreeState, after: SeqNo) -> Vec<ScanSource> {
    let options = CursorOptions { fill_cache: false, ..CursorOptions::default() };
    let is_newer = |table: &Arc<Table>| table.meta.max_seq > after;
    let mut sources = Vec::new();
    for memtable in state.memtables() {
        let max_seq = memtable.last_seq();
        if !memtable.is_empty() && max_seq > after {
            sources.push(ScanSource::Memtable { cursor: memtable.cursor(), max_seq });
        }
    }
    for (number, level) in state.version.levels.iter().enumerate() {
        let tables = level.tables();
        let (first, last) = (tables.iter().position(is_newer), tables.iter().rposition(is_newer));
        let (Some(first), Some(last)) = (first, last) else { continue };
        if number > 0 {
            let run = Run::Level { level: Arc::clone(level), range: first..last + 1 };
            sources.push(ScanSource::Run(Concat::new(run, options)));
            continue;
        }
        for table in tables.iter().filter(|table| is_newer(table)) {
            let (cursor, max_seq) = (table.cursor(options), table.meta.max_seq);
            sources.push(ScanSource::Table { cursor, max_seq });
        }
    }
    debug_assert!(sources.iter().all(|source| source.max_seq() > after));
    sources
}
