//! Compaction on request: everything in a key range goes, level by level, to the last level.

use super::choose::{INPUT_TABLES, PickInput};
use super::deletes::rewrite_last;
use super::level0::level0;
use super::plan::{Busy, Load, Plan, Reason, Settings, Shape, Space};
use super::policy::{self, LAST};
use super::range::{KeyRange, bytes_of, overlapping};
use super::score::Targets;
use crate::table::meta::TableMeta;

/// What a manual compaction has to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run this, then ask again.
    Run(Box<Plan>),
    /// Running jobs are in the way: ask again when one has ended.
    Wait,
    /// All of the range is in the last level, written for it.
    Done,
}

/// The next step of compacting the keys from `lower` up to (not including) `upper`; `None` means
/// no bound.
pub fn pick_manual(
    shape: &Shape,
    settings: &Settings,
    busy: &Busy,
    load: &Load<'_>,
    bounds: (Option<&[u8]>, Option<&[u8]>),
) -> Step {
    let targets = Targets::of(shape, settings);
    let input = PickInput { shape, settings, busy, targets: &targets, space: load.space };
    let (lower, upper) = bounds;
    let inside = |table: &TableMeta| table.meets(lower, upper);
    let run = |plan: Option<Plan>| plan.map_or(Step::Wait, |plan| Step::Run(Box::new(plan)));
    if input.level(0).iter().any(|table| inside(table)) {
        // Tables between level 0 and the base (of an ingest, or from when the tree was larger)
        // must go down first where they are in its way.
        return run(level0(&input, Reason::Manual).or_else(|| drain_above_base(&input)));
    }
    for level in 1..LAST {
        let tables = input.level(level);
        let mut wanted = (0..tables.len()).filter(|&index| inside(&tables[index])).peekable();
        if wanted.peek().is_none() {
            continue;
        }
        for index in wanted {
            if let Some(plan) = chunk(&input, level, index, inside) {
                return Step::Run(Box::new(plan));
            }
        }
        return run(drain_above_base(&input));
    }
    let oldest = load.oldest_snapshot();
    let stale =
        |table: &TableMeta| inside(table) && policy::wants_rewrite(&settings.codecs, table, oldest);
    // Without room for it, it is done all the same: nothing is in the wrong place.
    let kept = |table: &TableMeta| inside(table) && policy::may_have_kept(table, oldest);
    let waits = input.space.room == u64::MAX;
    match rewrite_last(&input, Reason::Manual, |table| stale(table) || kept(table)) {
        Some(plan) => Step::Run(Box::new(plan)),
        None if input.level(LAST).iter().any(|table| stale(table) || waits && kept(table)) => {
            Step::Wait
        }
        None => Step::Done,
    }
}

/// The next step of merging two neighbouring levels until some level below 0 is empty: those that
/// have the least. In a tree that is being built there is nothing else to do: deletes stay, and
/// what comes beneath decides its shape.
pub fn pick_room_beneath(shape: &Shape, settings: &Settings, busy: &Busy, space: Space) -> Step {
    if shape.levels[1..].iter().any(|level| level.is_empty()) {
        return Step::Done;
    }
    let targets = Targets::of(shape, settings);
    let input = PickInput { shape, settings, busy, targets: &targets, space };
    // From above that they would pass levels that have tables.
    let first = (targets.base - 1).max(1);
    let bytes = |level: usize| bytes_of(input.level(level)) + bytes_of(input.level(level + 1));
    let mut levels: Vec<usize> = (first..LAST).collect();
    levels.sort_by_key(|&level| bytes(level));
    let chunk_of = |&level: &usize| {
        (0..input.level(level).len()).find_map(|at| chunk(&input, level, at, |_| true))
    };
    let plan = levels.iter().find_map(chunk_of);
    plan.map_or(Step::Wait, |plan| Step::Run(Box::new(plan)))
}

/// Takes tables of levels that should be empty down.
fn drain_above_base(input: &PickInput<'_>) -> Option<Plan> {
    (1..input.targets.base).find_map(|level| {
        let tables = input.level(level);
        (0..tables.len()).find_map(|first| chunk(input, level, first, |_| true))
    })
}

/// Takes the table at `first` down, together with those after it as long as the job stays small.
fn chunk(
    input: &PickInput<'_>,
    level: usize,
    first: usize,
    inside: impl Fn(&TableMeta) -> bool,
) -> Option<Plan> {
    let tables = input.level(level);
    let output = input.targets.below(level);
    let limit = INPUT_TABLES * input.settings.table_bytes;
    let mut range = KeyRange::of(&tables[first]);
    let mut end = first + 1;
    while end < tables.len() && inside(&tables[end]) && !input.busy.has(&tables[end]) {
        range.extend(&tables[end]);
        let lower = input.level(output);
        let bytes = bytes_of(&tables[first..=end]) + bytes_of(&lower[overlapping(lower, &range)]);
        if bytes > limit {
            break;
        }
        end += 1;
    }
    input
        .down(Reason::Manual, level, first..end, false)
        .or_else(|| input.down(Reason::Manual, level, first..first + 1, false))
}
