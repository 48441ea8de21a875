//! Room near the limit on space: what the picker is told of it, what merges are promised, and who
//! asks for room to be made.

use crate::base::error::Error;
use crate::base::key::SeqNo;
use crate::base::sync::atomic::Ordering::{Acquire, Relaxed};
use crate::compaction::plan::{Plan, Space};
use crate::compaction::room::{at_most, output_bytes};
use crate::compaction::stages::Stages;
use crate::db::core::{Core, Inputs, RoomOfMerge};
use crate::table::meta::TableMeta;
use crate::write::space::{self, SpaceState};

/// How long nobody asks again for room to be made, in nanoseconds, unless an eighth of a memtable
/// has been written: each time memtables are flushed, however small, and all goes down.
const ASK_AGAIN_NANOS: u64 = 100_000_000;

impl Core {
    /// What the picker is told of the limit on space.
    pub fn pick_space(&self) -> Space {
        if !self.space().is_limited() {
            return Space::default();
        }
        let balance = self.space().balance();
        let waited_for = self.sched.room_waited_for.load(Relaxed) > 0;
        Space {
            room: balance.for_merges(),
            level0_merge: space::level0_merge_bytes(self.settings.memtable_bytes),
            is_tight: waited_for || space::is_tight(&balance),
            is_short: waited_for || space::state(&balance) > SpaceState::Free,
            is_unpromised: balance.promised == 0,
        }
    }

    /// Whether work is under way that may make room on the disk.
    pub fn makes_room(&self) -> bool {
        !self.is_poisoned() && (self.sched.lock().makes_room() || self.tables.has_gone())
    }

    /// What there is that room may be made of: the last commit, and the oldest one that a reader
    /// sees.
    pub fn room_now(&self) -> (SeqNo, SeqNo) {
        let visible = self.visible.load(Acquire);
        (visible, self.reader_seqs().first().map_or(visible, |oldest| visible.min(*oldest)))
    }

    /// Has background work make room: what is in memory is flushed, since the log goes with that,
    /// and all trees are looked at. Answers whether it was asked, or may be soon: not if that was
    /// done when there was at least what is `wanted`, so that nothing has come of it.
    pub fn ask_for_room(&self, wanted: (SeqNo, SeqNo)) -> bool {
        let there = self.room_now();
        let now = self.env.clock.now_nanos();
        let memtables = self.space().balance().memtables;
        let mut state = self.sched.lock();
        if state.room_asked.0 >= wanted.0 && state.room_asked.1 >= wanted.1 {
            return false;
        }
        let is_soon = now < state.room_again && memtables < self.settings.memtable_bytes / 8;
        if is_soon && !self.stepped {
            return true;
        }
        state.room_again = now + ASK_AGAIN_NANOS;
        state.room_asked = there;
        // With nothing in memtables too: the log may be long of what is gone.
        state.seal_wanted = true;
        state.look.extend(self.trees.load().by_id.keys());
        if state.compaction_failure.error.as_ref().is_some_and(Error::is_space_limit) {
            // There may be room for it now.
            state.compaction_failure.again = now;
            state.failed.clear();
        }
        drop(state);
        self.sched.wake_all();
        true
    }

    /// Promises a merge the room for all of its output; `None` if there is not as much.
    pub fn room_of_all(&self, plan: &Plan, inputs: &Inputs) -> Option<RoomOfMerge> {
        if !self.space().is_limited() {
            return Some(RoomOfMerge::default());
        }
        let tables = inputs.iter().flat_map(|(_, tables)| tables);
        let bytes = tables.map(|table| output_bytes(&table.meta, plan.choice)).sum();
        let promise = Some(self.space().promise(at_most(bytes))?);
        Some(RoomOfMerge { promise, in_turn: false })
    }

    /// Promises a merge the room for one stage after the other; `None` if there is not even that.
    pub fn room_in_turn(
        &self,
        plan: &Plan,
        inputs: &Inputs,
        stages: &Stages,
    ) -> Option<RoomOfMerge> {
        let bytes = |table: &TableMeta| output_bytes(table, plan.choice);
        let above = inputs.iter().filter(|(level, _)| *level != plan.output_level || *level == 0);
        let above = above.flat_map(|(_, tables)| tables).map(|table| bytes(&table.meta));
        let needed = at_most(above.sum::<u64>() + stages.largest(&bytes));
        Some(RoomOfMerge { promise: Some(self.space().promise(needed)?), in_turn: true })
    }
}

#[cfg(test)]
#[path = "space_tests.rs"]
mod tests;
