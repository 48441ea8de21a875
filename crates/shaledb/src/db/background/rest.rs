//! Merges leave processor and disk to readers while nobody waits for them: when no write has come
//! for a second and users read, a merge rests for as long as it works, and only half of the threads
//! merge. Not while writes come, nor while level 0 has many tables: one that is merged later costs
//! the reads meanwhile more than the rests give them.

use crate::db::core::{Core, State};
use crate::version::TreeId;

/// How long a merge works before it rests, in nanoseconds: a read that it delays waits less.
const WORK_NANOS: u64 = 2_000_000;

/// The longest rest, in nanoseconds: a flush that waits for a thread waits less.
const REST_NANOS_MAX: u64 = 10_000_000;

/// With more tables in level 0 than these each read looks into so many, and what they hold of the
/// same rows takes so much of the cache, that the merge that takes them down does not rest.
const LEVEL0_TABLES: usize = 8;

/// What a part of a merge has worked and rested.
pub(super) struct Rests {
    /// When it last rested, in clock nanoseconds.
    since: u64,
    /// The time of all rests.
    pub nanos: u64,
}

impl Rests {
    /// For a part that begins now.
    pub fn new(now: u64) -> Rests {
        Rests { since: now, nanos: 0 }
    }

    /// The thread has done something else until now.
    pub fn resume(&mut self, now: u64) {
        self.since = now;
    }
}

impl Core {
    /// Whether users read, and nobody waits for what merges do.
    pub fn merges_may_rest(&self, state: &mut State, now: u64) -> bool {
        !self.sched.is_awaited()
            && state.flush.is_empty()
            && !state.closing
            && self.sched.is_quiet(state, now)
            && self.readers.are_active(&self.recorder, now)
    }

    /// How many merges, and parts of one, may run now.
    pub fn merges_max(&self, state: &mut State, now: u64) -> usize {
        let most = self.compactions_max();
        if self.merges_may_rest(state, now) { most.div_ceil(2) } else { most }
    }

    /// Between two steps of a merge of a tree: rests, if it has worked for a while and may.
    pub(super) fn rest(&self, tree: TreeId, rests: &mut Rests) {
        let clock = &*self.env.clock;
        let now = clock.now_nanos();
        let worked = now.saturating_sub(rests.since);
        if worked < WORK_NANOS {
            return;
        }
        rests.since = now;
        let mut state = self.sched.lock();
        let debt = state.debts.get(&tree);
        if debt.is_some_and(|debt| debt.level0_tables > LEVEL0_TABLES)
            || !self.merges_may_rest(&mut state, now)
        {
            return;
        }
        drop(state);
        clock.sleep_nanos(worked.min(REST_NANOS_MAX));
        rests.since = clock.now_nanos();
        rests.nanos += rests.since.saturating_sub(now);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "rest_tests.rs"]
mod tests;
