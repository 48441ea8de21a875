//! In which steps a merge that was cut into parts becomes visible.
//!
//! A stage is a group of neighbouring parts that no table of the output level reaches out of. Once
//! all of its parts are done it is installed: its outputs take the place of the output level's
//! tables in it. So a merge of much data needs room for one stage at a time, not for all of its
//! output beside all of its input. The tables that came from above stay until the last stage, but
//! for those of a level below 0 that lie in stages already installed.
//!
//! Until then the output level holds copies of entries that tables from above hold too, some with
//! sequence number 0. That is harmless, also if the job ends there (a failure, a crash) and the
//! picker plans anew, for one reason: for each key that has a copy below, the table that the newest
//! copy was taken from, or what newer merges made of it, stays above and hides all copies. It goes
//! down only in a merge with all that overlaps it in the output level. In detail:
//!
//! - A reader finds the newest version that it may see above, as before. If it may see none of
//!   those above, the output level has for it what it would have after the whole job. An entry has
//!   sequence number 0 only if every reader from then on may see it.
//! - A merge of both meets the upper copy first or one that is as old; copies are of one stripe,
//!   and all but the first go. (An operand that must be applied once,
//!   [`Kind::Merge`](crate::base::key::Kind::Merge), could not be installed so; none is made.)
//! - A merge of a copy with older tables of level 0 only, which can come before the newest goes
//!   down, may take an older version for newer than a copy with number 0, or a range delete for
//!   newer than it: what it makes is still hidden by the newest, above.
//! - A tombstone that was dropped at the bottom, or with its put, stays in the upper table, and
//!   deletes nothing.
//! - Range deletes from above cover copies with number 0 for scans, gets and the dropping of whole
//!   tables: the upper entry is found first, and has its own number.
//!
//! Blobs: one is let go when no table of the new version refers to it, copies included.

use super::plan::Plan;
use super::split::{Part, groups};
use crate::table::meta::{FileId, TableMeta};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Tables by level, with the levels they leave.
pub type Removed = Vec<(usize, FileId)>;

/// What is to be installed at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The parts whose outputs are added.
    pub parts: Range<usize>,
    /// The inputs that leave.
    pub removed: Removed,
    /// Whether this completes the merge.
    pub is_last: bool,
}

/// How far a merge has come.
#[derive(Debug)]
pub struct Stages {
    output_level: usize,
    parts: Vec<Part>,
    /// The stage of each part.
    stage: Vec<usize>,
    done: Vec<bool>,
    installed: Vec<bool>,
    /// The inputs that have not left.
    inputs: Vec<(usize, Arc<TableMeta>)>,
    /// Those that leave with a stage that is being installed, or have left: stages that are
    /// installed at the same time must not both remove what an earlier pair has left behind.
    leaving: BTreeSet<FileId>,
}

impl Stages {
    /// The stages of a merge of `inputs`, the plan's tables by level.
    pub fn new(plan: &Plan, parts: &[Part], inputs: Vec<(usize, Arc<TableMeta>)>) -> Stages {
        let of_output = inputs.iter().filter(|(level, _)| *level == plan.output_level);
        let output: Vec<Arc<TableMeta>> = of_output.map(|(_, table)| table.clone()).collect();
        // Where nothing would leave before the end there is nothing to gain.
        let whole = plan.output_level == 0 || output.is_empty();
        let stage = if whole { vec![0; parts.len()] } else { groups(parts, &output) };
        let count = stage.last().map_or(0, |last| last + 1);
        Stages {
            output_level: plan.output_level,
            parts: parts.to_vec(),
            done: vec![false; stage.len()],
            stage,
            installed: vec![false; count],
            inputs,
            leaving: BTreeSet::new(),
        }
    }

    /// The bytes of the output level's tables of the stage that has most of them, by `bytes`.
    pub fn largest(&self, bytes: &dyn Fn(&TableMeta) -> u64) -> u64 {
        let mut of_stages = vec![0; self.count()];
        for (_, table) in self.inputs.iter().filter(|(level, _)| *level == self.output_level) {
            let met = self.parts.iter().zip(&self.stage).find(|(part, _)| part.meets(table));
            if let Some((_, stage)) = met {
                of_stages[*stage] += bytes(table);
            }
        }
        if self.output_level == 0 { 0 } else { of_stages.into_iter().max().unwrap_or(0) }
    }

    /// How many stages there are.
    pub fn count(&self) -> usize {
        self.installed.len()
    }

    /// Notes that a part has been done; answers with its stage if that is to be installed now.
    pub fn done(&mut self, part: usize) -> Option<Stage> {
        assert!(!self.done[part], "a part is done once");
        self.done[part] = true;
        let stage = self.stage[part];
        let start = self.stage.partition_point(|&other| other < stage);
        let end = self.stage.partition_point(|&other| other <= stage);
        if !self.done[start..end].iter().all(|&done| done) {
            return None;
        }
        let is_last = (0..self.count()).all(|other| other == stage || self.installed[other]);
        let leaves = |table: &TableMeta| {
            let meets = |part: &usize| self.parts[*part].meets(table);
            let mut met = (0..self.parts.len()).filter(meets).map(|part| self.stage[part]);
            met.all(|other| other == stage || self.installed[other])
        };
        // Of levels above the output only the lowest: a table of it hides nothing of another input.
        // What is leaving can still be seen, and counts.
        let upper = self.inputs.iter().map(|(level, _)| *level).filter(|&l| l < self.output_level);
        let upper = upper.max().filter(|&level| level > 0);
        let removed = self.inputs.iter().filter(|(level, table)| {
            !self.leaving.contains(&table.id)
                && (is_last
                    || (*level == self.output_level || Some(*level) == upper) && leaves(table))
        });
        let removed: Removed = removed.map(|(level, table)| (*level, table.id)).collect();
        self.leaving.extend(removed.iter().map(|(_, id)| id));
        Some(Stage { parts: start..end, removed, is_last })
    }

    /// Notes that a stage has been installed.
    pub fn installed(&mut self, stage: &Stage) {
        let number = self.stage[stage.parts.start];
        assert!(!self.installed[number], "a stage is installed once");
        self.installed[number] = true;
        let before = self.inputs.len();
        self.inputs.retain(|(level, table)| !stage.removed.contains(&(*level, table.id)));
        assert_eq!(self.inputs.len() + stage.removed.len(), before, "an input leaves once");
    }

    /// Whether all stages have been installed.
    pub fn are_installed(&self) -> bool {
        self.installed.iter().all(|&installed| installed)
    }

    /// The inputs that have not left: with all stages installed they can.
    pub fn rest(&self) -> Removed {
        self.inputs.iter().map(|(level, table)| (*level, table.id)).collect()
    }
}

#[cfg(test)]
#[path = "stages_tests.rs"]
mod tests;
