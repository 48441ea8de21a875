//! The shape for reading: what to do when the load has ended.
//!
//! The cost rule: a compaction is worth its while if it rewrites at most [`COST`] bytes of the
//! output level for each byte that it takes down, or no more than [`FLOOR`] in all. By this rule
//! a byte is taken down for about what the load itself would have paid for it later, so that
//! a load which comes and goes pays little more than one that stays; and a small write into a
//! large tree does not start a rewrite of the tree.
//!
//! Level 0 is merged down if the rule allows it, and else into one table if any of it overlaps. If
//! the rule allows it and running jobs do not, it waits, and nothing else begins that would hold
//! the level below. Then level by level, from the top, tables go down whose way is cheap by the
//! rule. At last tables are rewritten that were moved into the last level without its codec.

use super::choose::PickInput;
use super::deletes::rewrite_last;
use super::level0::{level0, merge_all_level0};
use super::plan::{Load, Plan, Reason};
use super::policy::{self, LAST};
use super::range::{KeyRange, bytes_of, overlapping};

/// After this much time without a write the load has ended.
pub const IDLE_AFTER_NANOS: u64 = 1_000_000_000;

/// Bytes of the output level that may be rewritten for each byte taken down.
pub const COST: u64 = 12;

/// A compaction that small is always worth it.
pub const FLOOR: u64 = 1 << 20;

/// The next compaction towards the best shape for reading; `None` when it is reached.
pub(super) fn pick(input: &PickInput<'_>, load: &Load<'_>) -> Option<Plan> {
    let worthwhile = |plan: &Plan| {
        let moved = plan.input_bytes - plan.output_level_bytes;
        is_worthwhile(moved, plan.output_level_bytes)
    };
    let down = level0(input, Reason::Idle);
    // What only waits for those who hold the level below is not merged twice, and no more of them
    // begin.
    let waits = down.is_none() && level0_waits(input);
    if let Some(plan) = down.filter(worthwhile) {
        return Some(plan);
    }
    if !waits
        && let Some(plan) = merge_all_level0(input, Reason::Idle)
        && cheap_merge(input, plan.input_bytes)
    {
        return Some(plan);
    }
    for level in 1..LAST {
        if waits && level == input.targets.base {
            continue;
        }
        if let Some(index) = input.cheapest(level, |_| true)
            && let Some(plan) =
                input.down(Reason::Idle, level, index..index + 1, false).filter(worthwhile)
        {
            return Some(plan);
        }
    }
    if waits {
        return None;
    }
    let oldest = load.oldest_snapshot();
    rewrite_last(input, Reason::Recode, |table| {
        policy::wants_rewrite(&input.settings.codecs, table, oldest)
            || policy::may_have_kept(table, oldest)
    })
}

/// The cost rule.
fn is_worthwhile(moved: u64, rewritten: u64) -> bool {
    moved + rewritten <= FLOOR || rewritten <= COST * moved
}

/// Whether level 0, of which nothing is under way, would be taken down if no job ran.
fn level0_waits(input: &PickInput<'_>) -> bool {
    let (tables, below) = (input.level(0), input.level(input.targets.base));
    let Some(range) = KeyRange::hull(tables) else { return false };
    let rewritten = bytes_of(&below[overlapping(below, &range)]);
    let is_held = !input.busy.is_empty() && !input.any_busy(tables);
    is_held && is_worthwhile(bytes_of(tables), rewritten)
}

/// Whether merging level 0 into one table follows the cost rule: its largest table counts as the
/// output that is rewritten, the others as taken to it.
fn cheap_merge(input: &PickInput<'_>, bytes: u64) -> bool {
    let largest = input.level(0).iter().map(|table| table.file_bytes).max().unwrap_or(0);
    is_worthwhile(bytes - largest, largest)
}
