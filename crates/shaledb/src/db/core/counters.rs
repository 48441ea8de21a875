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

/// What a part of a merge has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergeWork {
    pub read_bytes: u64,
    pub cpu_nanos: u64,
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

    /// Counts a stage of a merge that is installed: a large merge is not counted at its end only.
    pub fn installed(&mut self, plan: &Plan, parts: &[Done], spent: MergeWork, is_last: bool) {
        let level = &mut self.levels[plan.output_level];
        for part in parts {
            level.write_bytes += part.tables.iter().map(|meta| meta.file_bytes).sum::<u64>();
            level.dropped += part.entries_in - part.entries_out;
            level.blocks_reused += part.blocks_reused;
            level.bytes_reused += part.bytes_reused;
        }
        level.read_bytes += spent.read_bytes;
        level.cpu_nanos += spent.cpu_nanos;
        level.early_installs += u64::from(!is_last);
    }

    /// Counts the end of a merge, and what no stage was counted with.
    pub fn merged(&mut self, plan: &Plan, wall_nanos: u64, rest: MergeWork) {
        *self.reasons.entry(plan.reason.name()).or_default() += 1;
        let level = &mut self.levels[plan.output_level];
        level.jobs += 1;
        level.wall_nanos += wall_nanos;
        level.read_bytes += rest.read_bytes;
        level.cpu_nanos += rest.cpu_nanos;
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
