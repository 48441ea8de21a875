//! What flushes and compactions have done to a tree, counted.

use super::learned::Learned;
use crate::base::config::LEVELS;
use crate::compaction::job::Done;
use crate::compaction::plan::{Action, Plan};
use std::collections::BTreeMap;

/// What flushes and compactions into each level of a tree have done since the database was opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct LevelCounters {
    pub levels: [LevelCounter; LEVELS],
    pub flush_bytes: u64,
    pub reasons: BTreeMap<&'static str, u64>,
    pub learned: Learned,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LevelCounter {
    pub jobs: u64,
    pub moves: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub moved_bytes: u64,
    pub blocks_reused: u64,
    pub bytes_reused: u64,
    pub wall_nanos: u64,
    pub cpu_nanos: u64,
    pub dropped: u64,
    pub early_installs: u64,
}

impl LevelCounters {
    pub fn flushed(&mut self, written: u64, wall_nanos: u64, cpu_nanos: u64) {
        self.flush_bytes += written;
        let level = &mut self.levels[0];
        level.jobs += 1;
        level.write_bytes += written;
        level.wall_nanos += wall_nanos;
        level.cpu_nanos += cpu_nanos;
    }

    pub fn merged(&mut self, plan: &Plan, written: u64, wall: u64, cpu: u64, dropped: u64) {
        *self.reasons.entry(plan.reason.name()).or_default() += 1;
        let level = &mut self.levels[plan.output_level];
        level.jobs += 1;
        level.read_bytes += plan.input_bytes;
        level.write_bytes += written;
        level.wall_nanos += wall;
        level.cpu_nanos += cpu;
        level.dropped += dropped;
    }

    /// Notes what a part of a compaction has reused.
    pub fn reused(&mut self, plan: &Plan, part: &Done) {
        let level = &mut self.levels[plan.output_level];
        level.blocks_reused += part.blocks_reused;
        level.bytes_reused += part.bytes_reused;
    }

    pub fn installed_early(&mut self, plan: &Plan) {
        self.levels[plan.output_level].early_installs += 1;
    }

    pub fn moved(&mut self, plan: &Plan, wall_nanos: u64) {
        *self.reasons.entry(plan.reason.name()).or_default() += 1;
        let level = &mut self.levels[plan.output_level];
        level.moves += 1;
        level.wall_nanos += wall_nanos;
        if plan.action == Action::Move {
            level.moved_bytes += plan.input_bytes;
        }
    }
}
