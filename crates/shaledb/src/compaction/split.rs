//! Where to cut: a compaction into parts for several threads, and its output into tables.

use super::plan::Plan;
use crate::table::meta::TableMeta;
use std::sync::Arc;

/// A compaction is worth a second thread from this many input bytes on.
pub const PART_BYTES_MIN: u64 = 8 << 20;

/// A part may have so many tables' bytes.
const PART_TABLES: u64 = 4;

/// Into how many pieces a table is cut for finding the bounds of parts, for each part that there
/// will be.
const PIECES: u64 = 4;

/// A part of a compaction: the keys from `start` up to (not including) `end`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The first key; `None` means from the beginning.
    pub start: Option<Vec<u8>>,
    /// The first key of the next part; `None` means to the end.
    pub end: Option<Vec<u8>>,
}

impl Part {
    /// Whether the table may have keys of this part.
    pub fn meets(&self, table: &TableMeta) -> bool {
        table.meets(self.start.as_deref(), self.end.as_deref())
    }
}

/// One input table as [`parts`] sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cuts<'a> {
    /// The table.
    pub table: &'a TableMeta,
    /// Keys that cut it into pieces of about equal bytes, ascending; may be empty.
    pub keys: Vec<Vec<u8>>,
}

/// Cuts a compaction of these tables, each with its level, into parts that `free` threads may share
/// now: small enough that a thread comes by the scheduler often, and so many that each has one. A
/// merge that stays in level 0 is one part.
/// `points` answers with keys that cut the table at this place of `inputs` into so many pieces.
///
/// # Errors
/// Those of `points`.
pub fn for_threads<E>(
    plan: &Plan,
    inputs: &[(usize, &TableMeta)],
    free: usize,
    mut points: impl FnMut(usize, u64) -> Result<Vec<Vec<u8>>, E>,
) -> Result<Vec<Part>, E> {
    if plan.output_level == 0 {
        // Each part makes a table, and level 0's are counted: what is merged there becomes one.
        return Ok(vec![Part::default()]);
    }
    let share = (plan.input_bytes / free.max(1) as u64).max(PART_BYTES_MIN);
    let bytes = plan.table_bytes.saturating_mul(PART_TABLES);
    let bytes = if free > 1 { bytes.min(share) } else { bytes };
    if plan.input_bytes <= bytes {
        return Ok(vec![Part::default()]);
    }
    let pieces = PIECES * plan.input_bytes.div_ceil(bytes);
    let mut cuts = Vec::with_capacity(inputs.len());
    let mut aligned = Vec::new();
    for (at, &(level, table)) in inputs.iter().enumerate() {
        let is_output = level == plan.output_level;
        // A small table of a level in order has its bytes in one place.
        let small = is_output && table.file_bytes <= bytes / PIECES;
        cuts.push(Cuts { table, keys: if small { Vec::new() } else { points(at, pieces)? } });
        if is_output {
            aligned.push(table.smallest.as_slice());
        }
    }
    Ok(parts(&cuts, &aligned, bytes))
}

/// Cuts a compaction into parts of about `bytes` each, if possible where one of the tables that
/// begin at the keys `aligned` (ascending) begins. Parts meet at user keys, so that no key is in
/// two of them.
pub fn parts(tables: &[Cuts<'_>], aligned: &[&[u8]], bytes: u64) -> Vec<Part> {
    // The bytes of a piece count where the piece ends.
    let mut ends: Vec<(&[u8], u64)> = Vec::new();
    for cuts in tables {
        let piece = cuts.table.file_bytes / (cuts.keys.len() as u64 + 1);
        ends.extend(cuts.keys.iter().map(|key| (key.as_slice(), piece)));
        ends.push((&cuts.table.largest, cuts.table.file_bytes - piece * cuts.keys.len() as u64));
    }
    ends.extend(aligned.iter().map(|key| (*key, 0)));
    ends.sort_unstable();
    let mut left: u64 = tables.iter().map(|cuts| cuts.table.file_bytes).sum();
    let (quarter, mut here) = (bytes / 4, 0u64);
    let mut parts = Vec::new();
    let mut start: Option<Vec<u8>> = None;
    for (index, &(key, bytes_here)) in ends.iter().enumerate() {
        here += bytes_here;
        left -= bytes_here;
        if ends.get(index + 1).is_some_and(|next| next.0 == key) {
            continue;
        }
        // An aligned cut is worth a part that is smaller, and waiting for it one that is larger.
        let is_aligned = aligned.binary_search(&key).is_ok();
        let due = if is_aligned { bytes - quarter } else { bytes + quarter };
        // Nothing comes before the empty key.
        let moves_on = start.as_deref().unwrap_or_default() < key;
        if here >= due.max(1) && left > quarter && moves_on {
            parts.push(Part { start: start.take(), end: Some(key.to_vec()) });
            start = Some(key.to_vec());
            here = 0;
        }
    }
    parts.push(Part { start, end: None });
    assert_eq!(left, 0, "each byte is in a part");
    assert!(
        parts.windows(2).all(|two| two[0].end.is_some() && two[0].end == two[1].start),
        "parts leave no gap"
    );
    parts
}

/// Cuts a compaction only where tables of its output level (in order) begin, so that each part can
/// be installed by itself: each has `bytes` of them, by `of`, and not more than one table beyond
/// that.
pub fn by_tables(
    outputs: &[Arc<TableMeta>],
    bytes: u64,
    of: &dyn Fn(&TableMeta) -> u64,
) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut start, mut here) = (None, 0);
    for table in outputs {
        if here >= bytes.max(1) {
            let end = table.smallest.clone();
            parts.push(Part { start: start.replace(end.clone()), end: Some(end) });
            here = 0;
        }
        here += of(table);
    }
    parts.push(Part { start, end: None });
    assert!(parts.windows(2).all(|two| two[0].end == two[1].start), "parts leave no gap");
    parts
}

/// The number of the group of each part: parts that one of the `outputs` level's tables reaches
/// into are of one group, and can be installed only together. Groups are numbered from 0 in
/// order.
pub fn groups(parts: &[Part], outputs: &[Arc<TableMeta>]) -> Vec<usize> {
    let mut group = 0;
    let mut groups = Vec::with_capacity(parts.len());
    for part in parts {
        groups.push(group);
        let Some(end) = part.end.as_deref() else { continue };
        let at = outputs.partition_point(|table| table.is_before(end));
        if outputs.get(at).is_none_or(|table| table.smallest.as_slice() >= end) {
            group += 1;
        }
    }
    assert!(groups.len() == parts.len() && groups.is_sorted(), "groups are neighbours");
    groups
}

/// Decides where the output of a compaction is cut into tables.
///
/// A table ends when it has the bytes wanted; a little early where a table of the level below the
/// output ends, so that tables line up and overlap less; and in any case before it overlaps so
/// much of that level that compacting it later would be a burden.
#[derive(Clone, Debug)]
pub struct OutputCut {
    bytes: u64,
    overlap_max: u64,
    grandparents: Vec<Arc<TableMeta>>,
    at: usize,
    /// Bytes of the grandparents passed since the output table began.
    overlap: u64,
    /// Whether the output table is long enough to end with the next grandparent.
    is_near_end: bool,
}

impl OutputCut {
    /// The cuts for the outputs of `plan`, or of the part of it that begins with `start`: what lies
    /// below the parts before it is not passed by this one.
    pub fn new(plan: &Plan, start: Option<&[u8]>) -> OutputCut {
        OutputCut::with(plan.table_bytes, plan.grandparents.clone(), start)
    }

    fn with(bytes: u64, grandparents: Vec<Arc<TableMeta>>, start: Option<&[u8]>) -> OutputCut {
        let overlap_max = bytes.saturating_mul(super::choose::GRANDPARENT_TABLES);
        let before = |start| grandparents.partition_point(|table| table.is_before(start));
        let at = start.map_or(0, before);
        OutputCut { bytes, overlap_max, grandparents, at, overlap: 0, is_near_end: false }
    }

    /// The next of the tables below that the output has not passed.
    pub fn next(&self) -> Option<&TableMeta> {
        self.grandparents.get(self.at).map(|table| &**table)
    }

    /// Whether the table ends before `key` because the next table below does. With a few rows more
    /// it would overlap the one after that, which is then rewritten with it.
    #[inline]
    pub fn ends_with_next(&self, key: &[u8]) -> bool {
        self.is_near_end && self.next().is_some_and(|table| table.is_before(key))
    }

    /// Whether a table of so many bytes ends where the next table below does.
    pub fn is_near_end(&self, bytes: u64) -> bool {
        self.is_near_end || bytes >= self.bytes - self.bytes / 4
    }

    /// As [`OutputCut::before`] a key where the table does not end. From now on it ends with the
    /// next table below, if it has the bytes for that.
    pub fn pass(&mut self, key: &[u8], bytes: u64) {
        self.cross(key);
        self.is_near_end = self.is_near_end(bytes);
    }

    /// Leaves the tables below behind that end before `key`; whether there are any.
    fn cross(&mut self, key: &[u8]) -> bool {
        let before = self.at;
        while let Some(table) = self.grandparents.get(self.at)
            && table.is_before(key)
        {
            self.overlap += table.file_bytes;
            self.at += 1;
        }
        self.at > before
    }

    /// Whether a new table must begin with `key`, when the table before it has `bytes`. To be asked
    /// at the first entry of a user key, in order: once a block is enough, and where
    /// [`OutputCut::ends_with_next`] says so.
    pub fn before(&mut self, key: &[u8], bytes: u64) -> bool {
        let crossed = self.cross(key);
        let cut = bytes >= self.bytes
            || crossed && self.is_near_end
            || crossed && self.overlap > self.overlap_max && bytes > 0;
        if cut {
            self.overlap = 0;
        }
        self.is_near_end = !cut && bytes >= self.bytes - self.bytes / 4;
        cut
    }
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
