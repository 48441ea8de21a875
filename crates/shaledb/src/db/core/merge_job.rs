//! A merge under way, as the threads that share its parts see it.

use super::counters::MergeWork;
use super::trees::TreeCore;
use crate::base::error::{Error, Result};
use crate::base::rank;
use crate::base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::base::sync::{Arc, Mutex};
use crate::compaction::job::Done;
use crate::compaction::plan::Plan;
use crate::compaction::split::Part;
use crate::compaction::stages::{Removed, Stage, Stages};
use crate::fs::ledger::Promise;
use crate::table::Table;
use crate::table::meta::FileId;
use crate::write::level0::UnderWay;

/// Tables by level.
pub(crate) type Inputs = Vec<(usize, Vec<Arc<Table>>)>;

/// The room that a merge was promised, if space has a limit.
#[derive(Default)]
pub(crate) struct RoomOfMerge {
    pub promise: Option<Arc<Promise>>,
    /// Whether parts are merged one after the other, since the room is for one stage.
    pub in_turn: bool,
}

/// A merge under way.
pub(crate) struct MergeJob {
    pub tree: Arc<TreeCore>,
    pub plan: Plan,
    pub snapshots: Vec<u64>,
    pub parts: Vec<Part>,
    pub room: RoomOfMerge,
    pub progress: Mutex<Progress, { rank::MERGE }>,
    pub started: u64,
    /// The entries of all inputs.
    pub entries: u64,
    /// How many of them have been merged.
    pub merged: AtomicU64,
    /// How many tables level 0 had when it began.
    pub level0_tables: usize,
    /// What had been flushed then: of this tree, and of all.
    pub flushed: (u64, u64),
}

impl MergeJob {
    /// How far it has come, at a moment of the clock, with so many tables in level 0.
    pub fn under_way(&self, now: u64, level0_tables: usize) -> UnderWay {
        UnderWay {
            tables: self.plan.level0_tables(),
            came: level0_tables.saturating_sub(self.level0_tables),
            input_bytes: self.plan.input_bytes,
            nanos: now.saturating_sub(self.started),
            done: self.merged.load(Relaxed) as f64 / self.entries.max(1) as f64,
        }
    }
}

/// How far a merge has come.
pub(crate) struct Progress {
    /// The tables of the plan, let go as soon as they have left the tree.
    pub inputs: Inputs,
    pub stages: Stages,
    /// How many parts have not ended.
    pub left: usize,
    /// What parts have made that is not installed.
    pub done: Vec<(usize, Done)>,
    /// The tables of stages installed before the last.
    pub early_outputs: Vec<FileId>,
    /// Of the inputs what was counted with stages that are installed.
    pub read_counted: u64,
    /// What parts have taken since the last of them.
    pub cpu_nanos: u64,
    /// How long parts have rested, added up.
    pub rested_nanos: u64,
    pub error: Option<Error>,
}

impl Progress {
    /// What parts have taken that none was counted with yet: of the inputs' bytes, their share by
    /// entries.
    pub fn take_spent(&mut self, job: &MergeJob, entries: u64) -> MergeWork {
        let share = entries as f64 / job.entries.max(1) as f64;
        let left = job.plan.input_bytes - self.read_counted;
        let read_bytes = ((job.plan.input_bytes as f64 * share) as u64).min(left);
        self.read_counted += read_bytes;
        MergeWork { read_bytes, cpu_nanos: std::mem::take(&mut self.cpu_nanos) }
    }

    /// Notes how a part has ended; answers with the stage that is to be installed now, and what its
    /// parts have made, in order.
    pub fn note(&mut self, index: usize, outcome: Result<Done>) -> Option<(Stage, Vec<Done>)> {
        assert!(self.done.iter().all(|(other, _)| *other != index), "a part is done once");
        match outcome {
            Ok(done) => self.done.push((index, done)),
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
        if self.error.is_some() {
            return None;
        }
        let stage = self.stages.done(index)?;
        let parts = stage.parts.clone();
        let mut done: Vec<(usize, Done)> =
            self.done.extract_if(.., |(index, _)| parts.contains(index)).collect();
        assert_eq!(done.len(), stage.parts.len(), "all parts of a stage are done");
        done.sort_by_key(|(index, _)| *index);
        Some((stage, done.into_iter().map(|(_, done)| done).collect()))
    }

    /// The inputs that a part meets.
    pub fn inputs_of(&self, part: &Part) -> Inputs {
        let of_part = |tables: &[Arc<Table>]| {
            tables.iter().filter(|table| part.meets(&table.meta)).cloned().collect()
        };
        self.inputs.iter().map(|(level, tables)| (*level, of_part(tables))).collect()
    }

    /// Notes that a part and its installing have ended; answers whether it was the last.
    pub fn end_part(&mut self) -> bool {
        assert!(self.left > 0, "no part ends twice");
        self.left -= 1;
        self.left == 0
    }

    /// Takes the inputs that have left the tree.
    pub fn take_removed(&mut self, removed: &Removed) -> Vec<Arc<Table>> {
        let mut gone = Vec::new();
        for (level, tables) in &mut self.inputs {
            let level = *level;
            gone.extend(tables.extract_if(.., |table| removed.contains(&(level, table.meta.id))));
        }
        assert_eq!(gone.len(), removed.len(), "what leaves was an input");
        gone
    }
}
