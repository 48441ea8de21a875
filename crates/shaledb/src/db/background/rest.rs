//! Merges leave processor and disk to readers while nobody waits for them: when no write has come
//! for a second and users read, a merge rests for as long as it works, and only half of the threads
//! merge. Not while writes come: a level 0 that is merged later costs the reads meanwhile more than
//! the rests give them.

use crate::db::core::{Core, State};

/// How long a merge works before it rests, in nanoseconds: a read that it delays waits less.
const WORK_NANOS: u64 = 2_000_000;

/// The longest rest, in nanoseconds: a flush that waits for a thread waits less.
const REST_NANOS_MAX: u64 = 10_000_000;

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

    /// Between two steps of a merge: rests, if it has worked for a while and may.
    pub(super) fn rest(&self, rests: &mut Rests) {
        let clock = &*self.env.clock;
        let now = clock.now_nanos();
        let worked = now.saturating_sub(rests.since);
        if worked < WORK_NANOS {
            return;
        }
        rests.since = now;
        if !self.merges_may_rest(&mut self.sched.lock(), now) {
            return;
        }
        clock.sleep_nanos(worked.min(REST_NANOS_MAX));
        rests.since = clock.now_nanos();
        rests.nanos += rests.since.saturating_sub(now);
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "rest_tests.rs"]
mod tests;
