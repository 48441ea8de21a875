//! The shape for reading: what to do when the load has ended.
//!
//! The cost rule: a compaction is worth its while if it rewrites at most [`COST`] bytes of the
//! output level for each byte that it takes down, or no more than one table in all. By this rule
//! a byte is taken down for about what the load itself would have paid for it later, so that
//! a load which comes and goes pays little more than one that stays; and a small write into a
//! large tree does not start a rewrite of the tree.
//!
//! Level 0 is merged down if the rule allows it, and else into one table. Then level by level,
//! from the top, tables go down whose way is cheap by the rule. At last tables are rewritten that
//! were moved into the last level without its codec.

use super::choose::View;
use super::deletes::rewrite_last;
use super::level0::{level0, merge_level0};
use super::plan::{Load, Plan, Reason};
use super::policy::{self, LAST};
use super::range::bytes_of;

/// Bytes of the output level that may be rewritten for each byte taken down.
pub const COST: u64 = 12;

/// The next compaction towards the best shape for reading; `None` when it is reached.
pub(super) fn pick(view: &View<'_>, load: &Load<'_>) -> Option<Plan> {
    let floor = view.settings.table_bytes;
    let worthwhile = |plan: &Plan| {
        let moved = plan.input_bytes - plan.output_level_bytes;
        plan.input_bytes <= floor || plan.output_level_bytes <= COST * moved
    };
    if let Some(plan) = level0(view, Reason::Idle).filter(worthwhile) {
        return Some(plan);
    }
    if !view.busy.level0(view.shape)
        && let Some(mut plan) = merge_level0(view, 2)
        && plan.input_bytes <= bytes_of(view.level(0))
    {
        plan.reason = Reason::Idle;
        return Some(plan);
    }
    for level in 1..LAST {
        if let Some((index, _)) = view.cheapest(level, |_| true)
            && let Some(plan) =
                view.down(Reason::Idle, level, index..index + 1, false).filter(worthwhile)
        {
            return Some(plan);
        }
    }
    let oldest = load.oldest_snapshot();
    rewrite_last(view, Reason::Recode, |table| {
        policy::wants_rewrite(&view.settings.codecs, table, oldest)
    })
}
