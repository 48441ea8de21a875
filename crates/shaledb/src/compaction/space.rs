//! Merges that make room near the limit on space.

use super::choose::PickInput;
use super::level0::level0;
use super::plan::{Load, Plan, Reason};
use super::policy::LAST;
use super::{deletes, deletes::rewrite_last};
use crate::table::meta::TableMeta;

/// The next compaction where room has to be made: first of tables full of deletes, then of levels
/// over their targets, then of all that lies above the last level, which may hide what is below;
/// at last of tables that were written for a snapshot that has ended.
pub(super) fn pick(input: &PickInput<'_>, load: &Load<'_>) -> Option<Plan> {
    let above = |level: usize| {
        let tables = 0..input.level(level).len();
        let cheapest = input.cheapest(level, |_| true);
        let mut order = cheapest.into_iter().chain(tables);
        order.find_map(|index| input.down(Reason::Space, level, index..index + 1, false))
    };
    deletes::pick(input, load)
        .or_else(|| level0(input, Reason::Space))
        .or_else(|| (1..LAST).find_map(above))
        .or_else(|| {
            let oldest = load.oldest_snapshot();
            let is_stale = |table: &TableMeta| table.max_seq > 0 && table.max_seq <= oldest;
            rewrite_last(input, Reason::Space, is_stale)
        })
}

#[cfg(test)]
#[path = "space_tests.rs"]
mod tests;
