//! Compactions that make room: tables that newer range deletes cover are dropped unread; tables
//! full of deletes go down early, where the deletes meet what they delete.

use super::choose::PickInput;
use super::plan::{Action, Load, Plan, Reason};
use super::policy::LAST;
use super::range::{KeyRange, overlapping};
use crate::base::ranges::RangeDeletes;
use crate::table::meta::TableMeta;
use std::slice;
use std::sync::Arc;

/// Drops all tables of which newer range deletes cover everything, if no snapshot reads between.
pub(super) fn drop_covered(input: &PickInput<'_>, load: &Load<'_>) -> Option<Plan> {
    let deletes = load.range_deletes.filter(|deletes| !deletes.is_empty())?;
    let mut inputs: Vec<(usize, Vec<Arc<TableMeta>>)> = Vec::new();
    for level in 0..=LAST {
        let covered: Vec<Arc<TableMeta>> = input
            .level(level)
            .iter()
            .filter(|table| !input.busy.has(table) && is_covered(table, deletes, load))
            .cloned()
            .collect();
        if !covered.is_empty() {
            inputs.push((level, covered));
        }
    }
    let output = inputs.last()?.0;
    let inputs: Vec<(usize, &[Arc<TableMeta>])> =
        inputs.iter().map(|(level, tables)| (*level, tables.as_slice())).collect();
    input.plan(Reason::Deletes, Action::DropFiles, &inputs, output)
}

/// Whether for every key of the table's range there is a delete newer than all of the table, with
/// no snapshot that sees the table but not the delete.
fn is_covered(table: &TableMeta, deletes: &RangeDeletes, load: &Load<'_>) -> bool {
    let mut at = table.smallest.as_slice();
    while let Some(fragment) = deletes.covering(at) {
        // The oldest delete that is newer than the table: the fewest snapshots lie before it.
        let newer = fragment.seqs.partition_point(|&seq| seq > table.max_seq);
        let Some(&seq) = fragment.seqs[..newer].last() else { return false };
        if load.snapshot_between(table.min_seq, seq) {
            return false;
        }
        if table.is_before(&fragment.end) {
            return true;
        }
        at = &fragment.end;
    }
    false
}

/// Whether a table should go down because of the deletes in it, whatever its level's size.
pub(super) fn is_full_of_deletes(table: &TableMeta) -> bool {
    table.range_deletes > 0 || table.deletes > 0 && table.deletes * 2 >= table.entries
}

/// Whether the deletes of a table of `level` would meet anything there that they delete: a snapshot
/// between a table and its deletes keeps all of it. A merge would only write it anew, in pieces
/// with the deletes, which are then no longer newer than the whole.
fn meets_what_may_go(
    input: &PickInput<'_>,
    load: &Load<'_>,
    level: usize,
    table: &TableMeta,
) -> bool {
    let tables = input.level(input.targets.below(level));
    let met = &tables[overlapping(tables, &KeyRange::of(table))];
    let kept = |below: &Arc<TableMeta>| load.snapshot_between(below.max_seq, table.min_seq);
    met.is_empty() || !met.iter().all(kept)
}

/// Takes a table full of deletes one level down; or, in the last level, rewrites it without them
/// once no snapshot needs them.
pub(super) fn pick(input: &PickInput<'_>, load: &Load<'_>) -> Option<Plan> {
    for level in (1..LAST).rev() {
        let wanted = |table: &TableMeta| {
            is_full_of_deletes(table) && meets_what_may_go(input, load, level, table)
        };
        if let Some(index) = input.cheapest(level, wanted)
            && let Some(plan) = input.down(Reason::Deletes, level, index..index + 1, true)
        {
            return Some(plan);
        }
    }
    let oldest = load.oldest_snapshot();
    let droppable = |table: &TableMeta| {
        is_full_of_deletes(table) && table.max_seq > 0 && table.max_seq <= oldest
    };
    rewrite_last(input, Reason::Deletes, droppable)
}

/// Rewrites the first free table of the last level that `wanted` accepts where it is, if there is
/// room for that.
pub(super) fn rewrite_last(
    input: &PickInput<'_>,
    reason: Reason,
    wanted: impl Fn(&TableMeta) -> bool,
) -> Option<Plan> {
    let mut tables = input.level(LAST).iter().filter(|table| {
        !input.busy.has(table) && wanted(table) && !input.busy.writes(LAST, &KeyRange::of(table))
    });
    let plan = |table| input.plan(reason, Action::Merge, &[(LAST, slice::from_ref(table))], LAST);
    tables.find_map(plan)
}
