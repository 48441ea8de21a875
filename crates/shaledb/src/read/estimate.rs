//! How many rows a range has, at a bounded cost: counted if they are few, else estimated.
//!
//! Each source (a memtable, a table of level 0, a deeper level) knows about how many entries it has
//! in the range. Entries are not rows: a key may be in several sources, and may be deleted. So
//! some entries of each source are looked up in the others: a key counts in the oldest source that
//! has it, and counts as gone in the newest source that has it if that deletes it. Whether a table
//! has a key its filter says, so this reads few blocks.
//!
//! Range deletes cut the range into pieces, in each of which what is older does not count. If they
//! are too many for that, entries of all sources are looked up in them, and a key counts in the
//! newest source that has it.
//!
//! How many are looked up does not grow with the range (but with the pieces, 65 at most): few at
//! first, from each source as many as its share of all entries, and more only where these show
//! that most entries are no rows. What the optimizer of a server asks for with every statement must
//! cost less than the statement.

use super::sources::{self, ScanRange};
use crate::base::coding;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{Kind, SEQ_MAX, SeqNo};
use crate::base::ranges::{RangeDelete, RangeDeletes};
use crate::base::sync::Arc;
use crate::memtable::{Memtable, Sample};
use crate::state::TreeState;
use crate::table::meta::TableMeta;
use crate::table::{CursorOptions, Table};

/// The least entries of a memtable by which it is known how many it has: to a sixth, and if it has
/// most of all entries, to an eleventh.
const MEMTABLE_SAMPLE: usize = 32;
const MEMTABLE_SAMPLE_MAX: usize = 128;
/// By so many it is seen whether a memtable matters; all are found if they are fewer.
const MEMTABLE_GLANCE: usize = 8;

/// About how many entries of all sources are looked up in the others at first; some of each source
/// that counts.
const LOOK_UPS: usize = 16;
const LOOK_UPS_OF_SOURCE: usize = 5;

/// If these show that few of the entries are rows, so many are looked up that the standard error is
/// about this part of the rows.
const ERROR: f64 = 0.15;

/// The most that are looked up, and how many where there are many range deletes.
const LOOK_UPS_MAX: usize = 128;

/// If one source has nearly all entries of a range, and these are rows, the others are not looked
/// into: they are off by at most one part of all entries in so many. Of few it is enough to know
/// that they are few.
const DOUBT_PARTS: u64 = 8;
const DOUBT_PARTS_OF_FEW: u64 = 2;
/// Up to so many entries are few. They are counted rather than looked up, also for who has not
/// asked for it.
const FEW: u64 = 48;
/// Up to so many are as good as rows where there is more than a memtable: no plan depends on it.
const VERY_FEW: u64 = 8;

/// As many entries of a memtable, and as many look-ups, if the range is the whole tree: that is not
/// asked for often, and much depends on it.
const OF_WHOLE_TREE: usize = 512;

/// Of how many places of a table entries are looked up, one for so many entries: a block is read
/// for each.
const LOOK_UPS_OF_PLACE: usize = 10;
const PLACES_MIN: usize = 2;
const PLACES_MAX: usize = 8;

/// Up to so many fragments of range deletes the range is cut at them; of more, entries are looked
/// up in them.
const PIECES: usize = 32;

/// How many rows a range has; see [`Tree::estimate_rows`](crate::Tree::estimate_rows).
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// tree.put(b"a", b"1")?;
/// let estimate: shaledb::RowEstimate = tree.estimate_rows(b"", None, 10)?;
/// assert_eq!(estimate, shaledb::RowEstimate { rows: 1, exact: true });
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowEstimate {
    /// How many rows; at least 1 if that is not exact.
    pub rows: u64,
    /// Whether it is exactly so many, as of the call.
    pub exact: bool,
}

/// How many rows there are from `lower` up to (not including) `upper` for a reader at `seq`, who
/// sees the newest. Up to `exact_max` are counted.
pub fn estimate_rows(
    state: &TreeState,
    lower: &[u8],
    upper: Option<&[u8]>,
    seq: SeqNo,
    exact_max: u64,
) -> Result<RowEstimate> {
    let none = RowEstimate { rows: 0, exact: true };
    if upper.is_some_and(|upper| upper <= lower) {
        return Ok(none);
    }
    let whole_tree = lower.is_empty() && upper.is_none();
    let sample = if whole_tree { OF_WHOLE_TREE } else { MEMTABLE_SAMPLE };
    let sources = sources_of(state, lower, upper, 0, sample)?;
    let entries: u64 = sources.iter().map(|source| source.entries).sum();
    let passed: u64 = sources.iter().map(|source| source.passed).sum();
    if entries == 0 {
        return Ok(none);
    }
    let deletes = deletes_of(state)?;
    if entries <= exact_max && deletes.is_empty() && only_rows(&sources, lower, upper, seq)? {
        return Ok(RowEstimate { rows: entries, exact: true });
    }
    let mut exact_max = exact_max;
    if exact_max == 0 && !whole_tree && deletes.is_empty() {
        // To count these in several sources takes as long as to read them.
        if entries <= VERY_FEW && state.version.tables().next().is_some() {
            return Ok(RowEstimate { rows: entries, exact: false });
        }
        if let Some(rows) = nearly_rows(&sources, entries) {
            return Ok(RowEstimate { rows: rows.max(1), exact: false });
        }
        if passed <= FEW {
            exact_max = FEW;
        }
    }
    // Old versions and deletes are walked through as well, so many at most. Where there seem to be
    // more entries than that there are mostly more rows, too: counting would be in vain.
    let steps = exact_max.saturating_mul(2).saturating_add(16);
    let mut counted = 0;
    if exact_max > 0 && passed <= steps {
        let (rows, exact) = count_rows(state, lower, upper, seq, exact_max, steps)?;
        assert!(rows <= exact_max, "no more are counted than asked for");
        if exact {
            return Ok(RowEstimate { rows, exact });
        }
        counted = rows;
    }
    let mut sum = 0.0;
    for piece in pieces(&deletes, lower, upper, seq) {
        sum += if !deletes.is_empty() {
            let (lower, upper) = (piece.lower.as_slice(), piece.upper.as_deref());
            let sources = sources_of(state, lower, upper, piece.since, sample)?;
            estimate_piece(&sources, &deletes, &piece)?
        } else if whole_tree {
            sample_piece(&sources, &deletes, &piece, OF_WHOLE_TREE)?.count
        } else {
            estimate_piece(&sources, &deletes, &piece)?
        };
    }
    Ok(RowEstimate { rows: (sum.round() as u64).max(counted).max(1), exact: false })
}

/// About how many rows there are, if that is known well enough by how many entries the sources
/// have. Entries of the oldest one are rows if it has no deletes; one of another source may be the
/// same row again, or delete it.
fn nearly_rows(sources: &[Source<'_>], entries: u64) -> Option<u64> {
    let (oldest, newer) = sources.split_last()?;
    let most_off = |source: &Source<'_>| source.entries << u64::from(source.mixed);
    let doubt: u64 = newer.iter().map(most_off).sum();
    let parts = if entries <= FEW { DOUBT_PARTS_OF_FEW } else { DOUBT_PARTS };
    let plain = !oldest.mixed && doubt * (parts / 2) <= entries;
    plain.then(|| entries - doubt / 2)
}

/// Whether all entries of a range are rows, and their number is exact: they are in one source, and
/// [`Table::has_only_rows`].
fn only_rows(
    sources: &[Source<'_>],
    lower: &[u8],
    upper: Option<&[u8]>,
    seq: SeqNo,
) -> Result<bool> {
    let [Source { place: Place::Tables(tables), mixed: false, .. }] = sources else {
        return Ok(false);
    };
    for (table, _) in tables {
        if !table.has_only_rows(lower, upper, seq)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Counts rows, at most `rows_max` of them and passing at most `steps` entries; and whether these
/// are all.
fn count_rows(
    state: &TreeState,
    lower: &[u8],
    upper: Option<&[u8]>,
    seq: SeqNo,
    rows_max: u64,
    steps: u64,
) -> Result<(u64, bool)> {
    let cursor = CursorOptions { readahead: 0, ..CursorOptions::default() };
    let range = ScanRange { lower: lower.to_vec(), upper: upper.map(<[u8]>::to_vec), cursor };
    let (mut merge, deletes) = sources::open(state, None, &range)?;
    merge.seek(lower, SEQ_MAX)?;
    let mut rows = 0;
    let mut last: Option<Vec<u8>> = None;
    for _ in 0..steps {
        if !merge.valid() || upper.is_some_and(|upper| upper <= merge.key()) {
            return Ok((rows, true));
        }
        let key = merge.key();
        if merge.seq() <= seq && last.as_deref() != Some(key) {
            let covers = |set: &Arc<RangeDeletes>| set.newest_covering(key, seq) > merge.seq();
            if merge.kind() != Kind::Delete && !deletes.iter().any(covers) {
                if rows == rows_max {
                    break;
                }
                rows += 1;
            }
            let kept = last.get_or_insert_default();
            kept.clear();
            kept.extend_from_slice(key);
        }
        merge.next()?;
    }
    Ok((rows, false))
}

/// All range deletes.
fn deletes_of(state: &TreeState) -> Result<Vec<Arc<RangeDeletes>>> {
    let with = state.memtables().filter(|memtable| memtable.has_range_deletes());
    let mut deletes: Vec<_> = with.map(|memtable| memtable.range_deletes()).collect();
    if state.version.has_range_deletes() {
        deletes.push(Arc::clone(state.version.range_deletes()?));
    }
    Ok(deletes)
}

/// A part of the range in which all that is older than `since` is deleted.
struct Piece {
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    since: SeqNo,
    /// Whether there may be other range deletes.
    more: bool,
}

/// The whole range in one, if there are no range deletes.
fn pieces(
    deletes: &[Arc<RangeDeletes>],
    lower: &[u8],
    upper: Option<&[u8]>,
    seq: SeqNo,
) -> Vec<Piece> {
    let fragments = deletes.iter().flat_map(|set| set.meeting(lower, upper));
    let taken: Vec<RangeDelete> = fragments
        .take(PIECES + 1)
        .map(|part| RangeDelete {
            start: part.start.clone(),
            end: part.end.clone(),
            seq: part.newest_at(seq),
        })
        .collect();
    let more = taken.len() > PIECES;
    let mut all = Vec::new();
    let mut at = lower.to_vec();
    let union = RangeDeletes::new(if more { Vec::new() } else { taken });
    for part in union.clip(lower, upper).fragments() {
        if at < part.start {
            let upper = Some(part.start.clone());
            all.push(Piece { lower: at.clone(), upper, since: 0, more });
        }
        let (lower, upper) = (part.start.clone(), Some(part.end.clone()));
        all.push(Piece { lower, upper, since: part.newest_at(seq), more });
        at.clone_from(&part.end);
    }
    if upper.is_none_or(|upper| at.as_slice() < upper) {
        all.push(Piece { lower: at, upper: upper.map(<[u8]>::to_vec), since: 0, more });
    }
    debug_assert!(all.first().is_some_and(|first| first.lower == lower));
    debug_assert!(all.last().is_some_and(|last| last.upper.as_deref() == upper));
    debug_assert!(all.is_sorted_by(|a, b| a.upper.as_ref() == Some(&b.lower)), "without gaps");
    all
}

/// Where entries are.
enum Place<'a> {
    /// A memtable; with some of its entries, or, if these are all, with the newest of each key.
    Memtable(&'a Memtable, Vec<Sample<'a>>, bool),
    /// A table of level 0, or those of a deeper level; with about how many entries.
    Tables(Vec<(&'a Arc<Table>, u64)>),
}

struct Source<'a> {
    place: Place<'a>,
    /// About how many entries, more than none; without those that are known to be old versions.
    entries: u64,
    /// With them.
    passed: u64,
    /// Whether any may be a delete, or an old version: of tables it is not known whether a snapshot
    /// keeps old versions in them.
    mixed: bool,
}

/// An entry.
struct Entry {
    key: Vec<u8>,
    seq: SeqNo,
    kind: Kind,
    newest: bool,
}

/// The sources that have entries in a range that are not older than `since`, from new to old. Of a
/// memtable it is known by at least so many entries how many it has.
fn sources_of<'a>(
    state: &'a TreeState,
    lower: &[u8],
    upper: Option<&[u8]>,
    since: SeqNo,
    memtable_sample: usize,
) -> Result<Vec<Source<'a>>> {
    let meets = |meta: &TableMeta| meta.max_seq >= since && meta.meets(Some(lower), upper);
    let add = |sources: &mut Vec<Source<'a>>, tables: &'a [Arc<Table>]| {
        let mut found = Vec::with_capacity(tables.len());
        for table in tables {
            let meta = &table.meta;
            if !meets(meta) {
                continue;
            }
            let inside = meta.smallest.as_slice() >= lower
                && upper.is_none_or(|upper| meta.is_before(upper));
            let entries = match inside {
                true => meta.entries,
                false => table.entries_between(lower, upper)?,
            };
            if entries > 0 {
                found.push((table, entries));
            }
        }
        let entries = found.iter().map(|(_, entries)| entries).sum();
        let mixed = found.iter().any(|(table, _)| table.meta.deletes > 0);
        if entries > 0 {
            sources.push(Source { place: Place::Tables(found), entries, passed: entries, mixed });
        }
        Result::Ok(())
    };
    let (level_0, deeper) = state.version.level0_and_deeper();
    let mut older = Vec::with_capacity(level_0.len() + deeper.len());
    for table in level_0.iter().filter(|table| meets(&table.meta)) {
        add(&mut older, std::slice::from_ref(table))?;
    }
    for level in deeper.iter().filter(|level| !level.is_empty()) {
        let range = level.meeting(lower, upper);
        add(&mut older, level.tables().get(range).unwrap_or_default())?;
    }
    let in_tables: u64 = older.iter().map(|source| source.entries).sum();
    let mut sources = Vec::with_capacity(1 + state.sealed.len() + older.len());
    for memtable in state.memtables().filter(|memtable| memtable.last_seq() >= since) {
        let (mut entries, mut found) = memtable.sample(lower, upper, MEMTABLE_GLANCE);
        // The glance may be wrong by a factor of two.
        if found.len() >= MEMTABLE_GLANCE
            && (memtable_sample > MEMTABLE_SAMPLE || entries > in_tables / (2 * LOOK_UPS as u64))
        {
            (entries, found) = memtable.sample(lower, upper, memtable_sample);
        }
        if entries > 0 {
            let place = Place::Memtable(memtable, found, false);
            sources.push(Source { place, entries, passed: entries, mixed: true });
        }
    }
    sources.append(&mut older);
    let all: u64 = sources.iter().map(|source| source.entries).sum();
    for source in &mut sources {
        let Place::Memtable(memtable, found, are_all) = &mut source.place else { continue };
        if source.entries > all / 2
            && source.entries > memtable_sample as u64
            && memtable_sample < MEMTABLE_SAMPLE_MAX
        {
            (source.entries, *found) = memtable.sample(lower, upper, MEMTABLE_SAMPLE_MAX);
        }
        source.passed = source.entries;
        *are_all = found.len() as u64 == source.entries;
        if *are_all {
            found.dedup_by(|older, newer| older.key == newer.key);
            source.entries = found.len() as u64;
        }
    }
    Ok(sources)
}

impl Source<'_> {
    fn has(&self, key: &[u8], hash: u64) -> Result<bool> {
        match &self.place {
            Place::Memtable(memtable, ..) => Ok(memtable.get(key, SEQ_MAX).is_some()),
            Place::Tables(tables) => {
                let after = tables.partition_point(|(table, _)| table.meta.is_before(key));
                tables.get(after).map_or(Ok(false), |(table, _)| table.may_contain(key, hash))
            }
        }
    }

    /// About `count` of the entries in a range, or of those of a few of its blocks; and of how many
    /// these are. Deletes and others apart where it is known how many there are of each.
    fn sample(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        count: usize,
    ) -> Result<Vec<(f64, Vec<Entry>)>> {
        let found = match &self.place {
            Place::Memtable(_, all, true) => {
                let (gone, others): (Vec<Sample<'_>>, _) =
                    all.iter().partition(|one| one.kind == Kind::Delete);
                let parts = [gone, others].into_iter().filter(|part| !part.is_empty());
                let some = |part: Vec<Sample<'_>>| {
                    let found = some_of(&part, count.div_ceil(2).max(LOOK_UPS_OF_SOURCE));
                    (part.len() as f64, found.map(|one| Entry::of(one, true)).collect())
                };
                return Ok(parts.map(some).collect());
            }
            Place::Memtable(memtable, found, false) => {
                let entry_of = |one: &Sample<'_>| {
                    let newest = memtable.get(one.key, SEQ_MAX).map(|entry| entry.seq);
                    Entry::of(one, newest == Some(one.seq))
                };
                some_of(found, count).map(entry_of).collect()
            }
            Place::Tables(tables) => {
                let wanted = count.div_ceil(LOOK_UPS_OF_PLACE).clamp(PLACES_MIN, PLACES_MAX);
                let mut places: Vec<(&Arc<Table>, usize)> = Vec::new();
                for place in 0..wanted {
                    let part = (2 * place + 1) as f64 / (2 * wanted) as f64;
                    let (table, part) = at_part(tables, part * self.entries as f64);
                    let Some(at) = table.block_at(lower, upper, part)? else { continue };
                    if places.last().is_none_or(|last| (last.0.id(), last.1) != (table.id(), at)) {
                        places.push((table, at));
                    }
                }
                let mut found = Vec::new();
                for &(table, at) in &places {
                    for one in table.sample(lower, upper, at, count.div_ceil(places.len()))? {
                        let (seq, kind, newest) = (one.seq, one.kind, one.newest);
                        found.push(Entry { key: one.key, seq, kind, newest });
                    }
                }
                found
            }
        };
        Ok(vec![(self.entries as f64, found)])
    }
}

impl Entry {
    fn of(one: &Sample<'_>, newest: bool) -> Entry {
        Entry { key: one.key.to_vec(), seq: one.seq, kind: one.kind, newest }
    }
}

/// About `count` of these, or all: one of each step, at random (see `Table::sample`).
fn some_of<'a, 'b>(
    all: &'b [Sample<'a>],
    count: usize,
) -> impl Iterator<Item = &'b Sample<'a>> + use<'a, 'b> {
    let of_steps = all.chunks((all.len() / count.max(1)).max(1)).enumerate();
    of_steps.map(|(at, step)| &step[coding::hash(&at.to_le_bytes()) as usize % step.len()])
}

/// The table that the entry at this place of all is in, and what part of its entries are before.
fn at_part<'a>(tables: &[(&'a Arc<Table>, u64)], mut place: f64) -> (&'a Arc<Table>, f64) {
    let mut found = tables[0];
    for &(table, entries) in tables {
        found = (table, entries);
        if place < entries as f64 {
            break;
        }
        place -= entries as f64;
    }
    (found.0, (place / found.1 as f64).clamp(0.0, 1.0))
}

/// About how many rows there are.
#[derive(Clone, Copy, Debug, Default)]
struct Rows {
    count: f64,
    /// The square of the standard error, about.
    variance: f64,
}

impl Rows {
    /// Of `entries` so many were looked up, which are so many rows together: each of `counted` is
    /// one or takes one away, the others are none.
    fn add(&mut self, entries: f64, rows: f64, counted: u32, looked: usize) {
        let of = looked as f64;
        // Of an empty place nothing is known.
        let part = if looked == 0 { 1.0 } else { rows / of };
        debug_assert!(part <= 1.0, "an entry is one row at most");
        self.count += part * entries;
        // As if there had been one more, half a row: a few may be alike by chance.
        let square = (f64::from(counted) + 0.5) / (of + 1.0);
        let mean = ((rows.abs() + 0.5) / (of + 1.0)).min(1.0);
        let others = (1.0 - of / entries).max(0.0);
        self.variance += entries * entries * others * (square - mean * mean) / of.max(1.0);
    }
}

/// About how many rows a piece has.
fn estimate_piece(
    sources: &[Source<'_>],
    deletes: &[Arc<RangeDeletes>],
    piece: &Piece,
) -> Result<f64> {
    let all: u64 = sources.iter().map(|source| source.entries).sum();
    if all == 0 {
        return Ok(0.0);
    }
    if piece.more {
        return Ok(sample_piece(sources, deletes, piece, LOOK_UPS_MAX)?.count);
    }
    let rows = sample_piece(sources, deletes, piece, LOOK_UPS)?;
    let tolerated = ERROR * rows.count + VERY_FEW as f64 / 2.0;
    let wanted = LOOK_UPS as f64 * rows.variance / (tolerated * tolerated);
    // Where most is deleted as a range few rows are what is expected.
    if wanted <= LOOK_UPS as f64 || piece.since > 0 {
        return Ok(rows.count);
    }
    let most = all.min(LOOK_UPS_MAX as u64) as f64;
    Ok(sample_piece(sources, deletes, piece, wanted.min(most) as usize)?.count)
}

/// As [`estimate_piece`], by about so many entries.
fn sample_piece(
    sources: &[Source<'_>],
    deletes: &[Arc<RangeDeletes>],
    piece: &Piece,
    look_ups: usize,
) -> Result<Rows> {
    let (lower, upper) = (piece.lower.as_slice(), piece.upper.as_deref());
    let all: u64 = sources.iter().map(|source| source.entries).sum();
    debug_assert!(all > 0, "of nothing there are no shares");
    // Small sources are not looked into that have less together than what a look-up stands for.
    let mut negligible = all as f64 / look_ups as f64;
    let mut rows = Rows::default();
    for (at, source) in sources.iter().enumerate() {
        let (newer, older) = (&sources[..at], &sources[at + 1..]);
        let entries = source.entries as f64;
        let share = entries / all as f64;
        if older.is_empty() && !source.mixed && !piece.more {
            rows.count += entries;
            continue;
        }
        if entries <= negligible && !piece.more {
            negligible -= entries;
            rows.count += entries;
            continue;
        }
        let count = (share * look_ups as f64).ceil() as usize;
        for (entries, found) in source.sample(lower, upper, count.max(LOOK_UPS_OF_SOURCE))? {
            let (mut fresh, mut gone, mut counted) = (0u32, 0u32, 0);
            for entry in &found {
                let key = &entry.key;
                let covers =
                    |set: &Arc<RangeDeletes>| set.newest_covering(key, SEQ_MAX) > entry.seq;
                if !entry.newest || deletes.iter().any(covers) {
                    continue;
                }
                let hash = coding::hash(key);
                let delete = entry.kind == Kind::Delete;
                let (is_fresh, is_gone) = if piece.more {
                    // What older sources have may be deleted as a range.
                    (!delete && !any_has(newer, key, hash)?, false)
                } else {
                    (!any_has(older, key, hash)?, delete && !any_has(newer, key, hash)?)
                };
                fresh += u32::from(is_fresh);
                gone += u32::from(is_gone);
                counted += u32::from(is_fresh != is_gone);
            }
            rows.add(entries, f64::from(fresh) - f64::from(gone), counted, found.len());
        }
    }
    rows.count = rows.count.max(0.0);
    Ok(rows)
}

fn any_has(sources: &[Source<'_>], key: &[u8], hash: u64) -> Result<bool> {
    for source in sources {
        if source.has(key, hash)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
