//! Merges that make room near the limit on space.

use super::choose::PickInput;
use super::level0::level0;
use super::plan::{Load, Plan, Reason};
use super::policy::{LAST, would_shrink};
use super::range::{KeyRange, bytes_of, overlapping};
use super::{deletes, deletes::rewrite_last};
use crate::table::meta::TableMeta;
use std::cmp::Reverse;

/// The next compaction where room has to be made: first of tables full of deletes; then of all that
/// lies above the last level, which may hide what is below, from the level that has the most, since
/// what little there is meets as much; then of tables that were written for a snapshot that has
/// ended; at last of tables of the last level whose codec was a light one while there was room.
pub(super) fn pick(input: &PickInput<'_>, load: &Load<'_>) -> Option<Plan> {
    let above = |level: usize| {
        if level == 0 {
            return level0(input, Reason::Space);
        }
        let tables = 0..input.level(level).len();
        let cheapest = input.cheapest(level, |_| true);
        let mut order = cheapest.into_iter().chain(tables);
        order.find_map(|index| input.down(Reason::Space, level, index..index + 1, false))
    };
    let mut levels: Vec<usize> = (0..LAST).collect();
    levels.sort_by_key(|&level| Reverse(bytes_of(input.level(level))));
    deletes::pick(input, load).or_else(|| levels.into_iter().find_map(above)).or_else(|| {
        let oldest = load.oldest_snapshot();
        let is_stale = |table: &TableMeta| table.max_seq > 0 && table.max_seq <= oldest;
        rewrite_last(input, Reason::Space, is_stale).or_else(|| {
            // One at a time: each has room that others may need, until no reader has what it has
            // replaced.
            let shrinks = |table: &TableMeta| would_shrink(table, input.choice(LAST));
            let may = input.space.is_unpromised;
            if may { rewrite_last(input, Reason::Space, shrinks) } else { None }
        })
    })
}

/// Takes level 0 down while there is room for all of it: what is taken in two goes costs twice
/// as much, since each go writes what it meets in the base level.
pub(super) fn pick_ahead(input: &PickInput<'_>) -> Option<Plan> {
    let (room, tables) = (input.space.room, input.level(0));
    if room == u64::MAX || bytes_of(tables) < input.space.level0_merge {
        return None;
    }
    let range = KeyRange::hull(tables)?;
    let output = input.targets.base;
    let lower = &input.level(output)[overlapping(input.level(output), &range)];
    let next = bytes_of(tables) / tables.len() as u64;
    let needed = input.needed(&[(0, tables), (output, lower)], output);
    let fits_later = needed + 3 * next <= room;
    if fits_later { None } else { level0(input, Reason::Space) }
}

#[cfg(test)]
#[path = "space_tests.rs"]
mod tests;
