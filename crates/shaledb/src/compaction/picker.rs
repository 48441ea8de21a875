//! Which compaction to run next.
//!
//! In this order: tables that range deletes cover are dropped unread; then, near the limit on
//! space, what makes room (`space`); then level 0's tables go down as they are, or are merged with
//! each other, if there are many; then the level that is furthest over its target is relieved; then
//! tables full of deletes are taken down; then, if the load has ended, the tree is brought into a
//! better shape for reading.
//!
//! Level 0 goes into the base level when it has gathered enough bytes. Level 0's tables are merged
//! with each other, four of about one size into one, in two cases: reaching that size would take
//! many of them, or running jobs hold the base level and very many have come meanwhile. So a read
//! looks into few. (Merging fewer would keep them from going down when the base level is free.)

use super::choose::PickInput;
use super::level0::{level0, merge_level0, move_level0, too_small};
use super::plan::{Busy, Load, Plan, Reason, Settings, Shape};
use super::policy::LAST;
use super::score::{LEVEL0_CROWDED, LEVEL0_TIER, Scores, Targets};
use super::{deletes, idle, space};

/// The next compaction to run beside those in `busy`, if one is due. A pure function.
pub fn pick(shape: &Shape, settings: &Settings, busy: &Busy, load: &Load<'_>) -> Option<Plan> {
    let targets = Targets::of(shape, settings);
    let input = PickInput { shape, settings, busy, targets: &targets, space: load.space };
    if let Some(plan) = deletes::drop_covered(&input, load) {
        return Some(plan);
    }
    let scores = Scores::of(shape, &targets, busy);
    if settings.building {
        // Deletes go nowhere, and rows that come below change what is the best shape.
        return due(&input, &scores);
    }
    if load.space.is_short
        && let Some(plan) = space::pick(&input, load)
    {
        return Some(plan);
    }
    if let Some(plan) = space::pick_ahead(&input) {
        return Some(plan);
    }
    due(&input, &scores)
        .or_else(|| deletes::pick(&input, load))
        .or_else(|| if load.idle { idle::pick(&input, load) } else { None })
}

/// The compaction of the level that is furthest over its target.
fn due(input: &PickInput<'_>, scores: &Scores) -> Option<Plan> {
    let mut order: Vec<usize> = (0..LAST).filter(|&level| scores.0[level] >= 1.0).collect();
    order.sort_by(|&a, &b| scores.0[b].total_cmp(&scores.0[a]).then(a.cmp(&b)));
    let mut level0_waits = false;
    if scores.0[0] < 1.0 && input.level(0).len() >= LEVEL0_TIER {
        // What can go down as it is costs nothing; what overlaps is gathered.
        let merge = || merge_level0(input, LEVEL0_TIER, |chosen| too_small(input, chosen));
        if let Some(plan) = move_level0(input, Reason::Level0).or_else(merge) {
            return Some(plan);
        }
    }
    for level in order {
        if level == 0 {
            let plan = level0(input, Reason::Level0);
            let free = input.level(0).iter().filter(|table| !input.busy.has(table)).count();
            let crowded = free > LEVEL0_CROWDED;
            let merge = || if crowded { merge_level0(input, LEVEL0_TIER, |_| true) } else { None };
            if let Some(plan) = plan.or_else(merge) {
                return Some(plan);
            }
            level0_waits = true;
            continue;
        }
        // Level 0 waits for jobs that hold the base level: do not start more of them.
        if level0_waits && level == input.targets.base {
            continue;
        }
        if let Some(index) = input.cheapest(level, |_| true)
            && let Some(plan) = input.down(Reason::Size, level, index..index + 1, true)
        {
            return Some(plan);
        }
    }
    None
}
