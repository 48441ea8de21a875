//! Level 0, whose tables overlap: down into the base level, or merged with each other.

use super::choose::PickInput;
use super::plan::{Action, Plan, Reason};
use super::policy;
use super::range::{KeyRange, bytes_of};
use super::score::{LEVEL0_TABLES_MAX, LEVEL0_TIER};
use crate::table::meta::TableMeta;
use std::sync::Arc;

/// The most tables of level 0 that one compaction takes.
const LEVEL0_INPUTS_MAX: usize = 64;

/// A table that is written keeps so many bytes of each row in mind, for the filter. One of level 0
/// is not cut, so merges there have rows for a memtable's worth of that.
const BYTES_PER_ROW: u64 = 16;

fn rows_max(input: &PickInput<'_>) -> u64 {
    input.settings.memtable_bytes / BYTES_PER_ROW
}

/// Takes tables of level 0 to the base level: the oldest ones, so that no table is passed by a
/// newer one that overlaps it.
pub(super) fn level0(input: &PickInput<'_>, reason: Reason) -> Option<Plan> {
    let tables = input.level(0);
    if input.busy.writes(0, &KeyRange::hull(tables)?) {
        return None;
    }
    if let Some(plan) = move_level0(input, reason) {
        return Some(plan);
    }
    let output = input.targets.base;
    let mut count = tables.len().min(LEVEL0_INPUTS_MAX);
    while count > 0 {
        let chosen = &tables[tables.len() - count..];
        if input.any_busy(chosen) {
            return None;
        }
        let range = KeyRange::hull(chosen)?;
        input.clear_between(0, output, &range)?;
        let lower = &input.level(output)[input.free_overlap(output, &range)?];
        let merge = input.plan(reason, Action::Merge, &[(0, chosen), (output, lower)], output);
        if merge.is_some() {
            return merge;
        }
        if input.space.room == u64::MAX {
            break;
        }
        // There may be no room for so many.
        count -= 1;
    }
    None
}

/// A move of a table that overlaps nothing older in level 0 and nothing in the base level, and is
/// not better cut.
pub(super) fn move_level0(input: &PickInput<'_>, reason: Reason) -> Option<Plan> {
    let tables = input.level(0);
    let output = input.targets.base;
    let has_debt = tables.len() >= 2 * LEVEL0_TIER;
    for (index, table) in tables.iter().enumerate().rev() {
        let older_overlaps = tables[index + 1..].iter().any(|older| older.overlaps(table));
        if older_overlaps || input.busy.has(table) || input.is_unwieldy(table, output) {
            continue;
        }
        let range = KeyRange::of(table);
        if input.clear_between(0, output, &range).is_none() {
            continue;
        }
        if input.free_overlap(output, &range).is_some_and(|found| found.is_empty())
            && policy::may_move(
                &input.settings.codecs,
                std::slice::from_ref(table),
                (0, output, output),
                has_debt,
            )
        {
            let chosen = std::slice::from_ref(table);
            return input.plan(reason, Action::Move, &[(0, chosen)], output);
        }
    }
    None
}

/// Whether level 0, filled with tables of the size of these, would have more tables when it goes
/// down than it should: only then is merging them with each other worth what it writes.
pub(super) fn too_small(input: &PickInput<'_>, tables: &[Arc<TableMeta>]) -> bool {
    let each = bytes_of(tables) / (tables.len() as u64).max(1);
    input.targets.level0 / each.max(1) > LEVEL0_TABLES_MAX as u64
}

/// Merges neighbours in age of level 0 with each other: the newest `count` or more that are of
/// about one size, so that each byte is merged once in each tier. Only tables that are `wanted`.
pub(super) fn merge_level0(
    input: &PickInput<'_>,
    count: usize,
    wanted: impl Fn(&[Arc<TableMeta>]) -> bool,
) -> Option<Plan> {
    let tables = input.level(0);
    if input.busy.writes(0, &KeyRange::hull(tables)?) {
        return None;
    }
    let mut first = 0;
    while first < tables.len() {
        let bound = tables[first].file_bytes.saturating_mul(2);
        let alike = |table: &&Arc<TableMeta>| {
            !input.busy.has(table) && table.file_bytes <= bound && table.file_bytes >= bound / 4
        };
        let mut rows = 0u64;
        let fits = |table: &&Arc<TableMeta>| {
            rows = rows.saturating_add(table.entries);
            rows <= rows_max(input)
        };
        let taken = tables[first..].iter().take_while(alike).take_while(fits).count();
        let chosen = &tables[first..first + taken];
        // Tables that overlap no other (a sequential load) cost a read nothing side by side.
        if taken >= count && wanted(chosen) && overlap_somewhere(chosen) {
            return input.plan(Reason::Level0Merge, Action::Merge, &[(0, chosen)], 0);
        }
        first += taken.max(1);
    }
    None
}

/// Whether any two of the tables overlap.
fn overlap_somewhere(tables: &[Arc<TableMeta>]) -> bool {
    let mut by_key: Vec<&Arc<TableMeta>> = tables.iter().collect();
    by_key.sort_by(|a, b| a.smallest.cmp(&b.smallest));
    by_key.windows(2).any(|pair| pair[0].overlaps(pair[1]))
}

/// Merges all of level 0 into one table, if any of its tables overlap and it has few rows enough.
pub(super) fn merge_all_level0(input: &PickInput<'_>, reason: Reason) -> Option<Plan> {
    let tables = input.level(0);
    let is_free = !input.any_busy(tables) && !input.busy.writes(0, &KeyRange::hull(tables)?);
    let rows: u64 = tables.iter().map(|table| table.entries).sum();
    if !is_free || rows > rows_max(input) || !overlap_somewhere(tables) {
        return None;
    }
    input.plan(reason, Action::Merge, &[(0, tables)], 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::config::{Codecs, LEVELS};
    use crate::compaction::picker;
    use crate::compaction::plan::{Busy, Load, Settings, Shape};

    const MEMTABLE: u64 = 16 << 20;

    fn pick(tables: u64, rows: u64) -> Option<Plan> {
        let table = |id: u64, bytes, seq| {
            let (smallest, largest) = (vec![0], vec![200]);
            Arc::new(TableMeta {
                id,
                file_bytes: bytes,
                data_bytes: bytes,
                raw_bytes: bytes,
                entries: rows,
                smallest,
                largest,
                min_seq: seq,
                max_seq: seq,
                ..TableMeta::default()
            })
        };
        let mut levels = vec![Vec::new(); LEVELS];
        levels[0] = (0..tables).map(|at| table(at + 1, 1 << 20, 100 - at)).collect();
        levels[LEVELS - 1] = vec![table(1000, 4 << 30, 0)];
        let settings = Settings {
            memtable_bytes: MEMTABLE,
            table_bytes: 64 << 20,
            codecs: Codecs::default().into(),
            filter_bits: 10,
            building: false,
        };
        let load = Load { snapshots: &[1000], ..Load::default() };
        picker::pick(&Shape { levels }, &settings, &Busy::new(), &load)
    }

    /// The table that is written is one, and keeps some bytes of each row in mind until it is.
    #[test]
    fn merges_that_stay_have_rows_for_a_memtable() {
        let most = MEMTABLE / BYTES_PER_ROW;
        let stays = |plan: &Option<Plan>| plan.as_ref().is_some_and(|plan| plan.output_level == 0);
        let taken = |plan: Option<Plan>| plan.map_or(0, |plan| plan.inputs[0].1.len());
        let few = pick(8, 1000);
        assert!(stays(&few), "{few:?}");
        assert_eq!(taken(few), 8);
        assert_eq!(taken(pick(8, most / 5)), 5, "the newest that fit");
        assert!(!stays(&pick(8, most / 2)));
    }
}
