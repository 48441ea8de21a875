//! Building a plan from tables chosen to move down: the inputs that must go with them, what lies
//! below, and whether a move will do.

use super::plan::{Action, Busy, Plan, Reason, Settings, Shape, Space};
use super::policy::chosen::Choice;
use super::policy::{self, LAST};
use super::range::{KeyRange, bytes_of, overlapping};
use super::room;
use super::score::Targets;
use crate::table::meta::TableMeta;
use std::ops::Range;
use std::sync::Arc;

/// How many tables' worth of the level below the output an output table may overlap.
pub const GRANDPARENT_TABLES: u64 = 20;

/// How many tables' worth of inputs a compaction that could be smaller may have.
pub const INPUT_TABLES: u64 = 25;

/// Everything that picking looks at.
#[derive(Clone, Copy, Debug)]
pub struct PickInput<'a> {
    /// The tables.
    pub shape: &'a Shape,
    /// The settings.
    pub settings: &'a Settings,
    /// What runs.
    pub busy: &'a Busy,
    /// The sizes that levels should have.
    pub targets: &'a Targets,
    /// What files may take.
    pub space: Space,
}

impl<'a> PickInput<'a> {
    /// The tables of a level.
    pub fn level(&self, level: usize) -> &'a [Arc<TableMeta>] {
        self.shape.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// Whether any of the tables is an input of a running job.
    pub fn any_busy(&self, tables: &[Arc<TableMeta>]) -> bool {
        tables.iter().any(|table| self.busy.has(table))
    }

    /// A plan that takes `inputs` (levels ascending) to `output`; `None` if there is no room for
    /// it. Levels without tables are left out. The caller has made sure of the invariants.
    pub fn plan(
        &self,
        reason: Reason,
        action: Action,
        inputs: &[(usize, &[Arc<TableMeta>])],
        output: usize,
    ) -> Option<Plan> {
        let range = KeyRange::hull(inputs.iter().flat_map(|(_, tables)| tables.iter()))?;
        let clip = |level: usize| {
            let tables = self.level(level);
            tables[overlapping(tables, &range)].to_vec()
        };
        let below: Vec<Vec<Arc<TableMeta>>> =
            if output == 0 { Vec::new() } else { (output + 1..=LAST).map(clip).collect() };
        assert!(
            output <= LAST && inputs.iter().all(|(level, _)| *level <= output),
            "data goes down"
        );
        assert!(inputs.is_sorted_by(|a, b| a.0 < b.0), "levels ascend");
        assert!(inputs.iter().all(|(_, tables)| !self.any_busy(tables)), "inputs are free");
        if action == Action::Merge && !self.has_room(inputs, output) {
            return None;
        }
        let of_output = inputs.iter().filter(|(level, _)| *level == output);
        Some(Plan {
            reason,
            action,
            inputs: inputs
                .iter()
                .filter(|(_, tables)| !tables.is_empty())
                .map(|(level, tables)| (*level, tables.iter().map(|table| table.id).collect()))
                .collect(),
            output_level: output,
            is_last: output > 0 && below.iter().all(Vec::is_empty),
            input_bytes: inputs.iter().map(|(_, tables)| bytes_of(*tables)).sum(),
            output_level_bytes: of_output.map(|(_, tables)| bytes_of(*tables)).sum(),
            grandparents: if output == 0 || output == LAST { Vec::new() } else { clip(output + 1) },
            below,
            building: self.settings.building,
            choice: self.choice(output),
            block_bytes: self.block_bytes(output),
            filter_bits: policy::filter_bits(self.settings.filter_bits, output),
            table_bytes: self.table_bytes(output),
            range,
        })
    }

    /// How outputs are compressed.
    pub fn choice(&self, output: usize) -> Choice {
        let choice = self.settings.codecs.of(output, self.targets.base);
        if self.space.is_tight { room::tight(choice, output) } else { choice }
    }

    /// How large blocks are: what the room was reckoned with where it is little. Else what is
    /// chosen meanwhile, since a merge may be long.
    fn block_bytes(&self, output: usize) -> Option<usize> {
        self.space.is_tight.then(|| self.settings.codecs.blocks.of(output).0 as usize)
    }

    /// How large outputs are.
    fn table_bytes(&self, output: usize) -> u64 {
        let target = self.targets.bytes.get(output).copied().unwrap_or(0);
        policy::table_bytes(self.settings.table_bytes, output, target)
    }

    /// The room that a merge needs beside its inputs.
    pub fn needed(&self, inputs: &[(usize, &[Arc<TableMeta>])], output: usize) -> u64 {
        room::needed(inputs, output, self.table_bytes(output), self.choice(output))
    }

    /// Whether a merge has the room that it needs.
    fn has_room(&self, inputs: &[(usize, &[Arc<TableMeta>])], output: usize) -> bool {
        if self.space.room == u64::MAX {
            return true;
        }
        let level0 = || inputs.iter().map(|(_, tables)| bytes_of(*tables)).sum::<u64>();
        self.needed(inputs, output) <= self.space.room
            && (output > 0 || level0() <= self.space.level0_merge)
    }

    /// The tables of `level` that a job which writes `range` there must take; `None` if a running
    /// job is in the way.
    pub fn free_overlap(&self, level: usize, range: &KeyRange) -> Option<Range<usize>> {
        let tables = self.level(level);
        let found = overlapping(tables, range);
        (!self.any_busy(&tables[found.clone()]) && !self.busy.writes(level, range)).then_some(found)
    }

    /// Whether a move of tables that span `range` to `output` would leave a table there that
    /// overlaps too much of the level below.
    fn overlaps_too_much(&self, range: &KeyRange, output: usize) -> bool {
        if output >= LAST {
            return false;
        }
        let tables = self.level(output + 1);
        let bytes = bytes_of(&tables[overlapping(tables, range)]);
        bytes > GRANDPARENT_TABLES * self.settings.table_bytes
    }

    /// Whether a table of level 0, moved to `output` as it is, would make merges there large: it
    /// lies over much of the level below, or is larger than a flush or a merge below level 0 makes
    /// any. A merge cuts it.
    pub fn is_unwieldy(&self, table: &Arc<TableMeta>, output: usize) -> bool {
        let usual = self.settings.table_bytes.max(self.settings.memtable_bytes);
        table.file_bytes / 2 > usual || self.overlaps_too_much(&KeyRange::of(table), output)
    }

    /// Takes the tables `chosen` of `level` (below 0) to the next level in use: moves them if they
    /// overlap nothing there, and else merges them.
    pub fn down(
        &self,
        reason: Reason,
        level: usize,
        chosen: Range<usize>,
        debt: bool,
    ) -> Option<Plan> {
        let output = self.targets.below(level);
        let tables = self.level(level);
        if self.any_busy(&tables[chosen.clone()]) {
            return None;
        }
        let range = KeyRange::hull(&tables[chosen.clone()])?;
        self.clear_between(level, output, &range)?;
        let below = self.free_overlap(output, &range)?;
        let codecs = &self.settings.codecs;
        if below.is_empty()
            && policy::may_move(
                codecs,
                &tables[chosen.clone()],
                (level, output, self.targets.base),
                debt,
            )
            && !self.overlaps_too_much(&range, output)
        {
            return self.plan(reason, Action::Move, &[(level, &tables[chosen])], output);
        }
        let lower = &self.level(output)[below];
        let wide = self.widen(level, chosen.clone(), output, lower);
        let merge = |chosen: Range<usize>| {
            self.plan(reason, Action::Merge, &[(level, &tables[chosen]), (output, lower)], output)
        };
        merge(wide.clone()).or_else(|| if wide == chosen { None } else { merge(chosen) })
    }

    /// Answers `Some` if no level between the two has, or will have, keys of `range`: then data
    /// may pass them.
    pub fn clear_between(&self, from: usize, to: usize, range: &KeyRange) -> Option<()> {
        (from + 1..to)
            .all(|level| {
                overlapping(self.level(level), range).is_empty() && !self.busy.writes(level, range)
            })
            .then_some(())
    }

    /// Adds neighbours of the chosen tables as long as the output level has no more inputs for it.
    fn widen(
        &self,
        level: usize,
        chosen: Range<usize>,
        output: usize,
        lower: &[Arc<TableMeta>],
    ) -> Range<usize> {
        let Some(hull) = KeyRange::hull(lower) else { return chosen };
        let tables = self.level(level);
        let limit = INPUT_TABLES * self.settings.table_bytes;
        let mut bytes = bytes_of(&tables[chosen.clone()]) + bytes_of(lower);
        let (mut start, mut end) = (chosen.start, chosen.end);
        let fits = |table: &Arc<TableMeta>, bytes: u64| {
            let range = KeyRange::of(table);
            hull.spans(table)
                && !self.busy.has(table)
                && bytes + table.file_bytes <= limit
                && self.clear_between(level, output, &range).is_some()
        };
        while end < tables.len() && fits(&tables[end], bytes) {
            bytes += tables[end].file_bytes;
            end += 1;
        }
        while start > 0 && fits(&tables[start - 1], bytes) {
            start -= 1;
            bytes += tables[start].file_bytes;
        }
        assert!(start <= chosen.start && chosen.end <= end, "what was chosen stays");
        start..end
    }

    /// The table of `level` whose way down is the cheapest: the fewest bytes of the next level for
    /// each byte moved; of equals, the oldest. Only tables that `wanted` accepts.
    pub fn cheapest(&self, level: usize, wanted: impl Fn(&TableMeta) -> bool) -> Option<usize> {
        let output = self.targets.below(level);
        let lower = self.level(output);
        let mut at = 0;
        let mut best: Option<(f64, u64, usize)> = None;
        for (index, table) in self.level(level).iter().enumerate() {
            while at < lower.len() && lower[at].is_before(&table.smallest) {
                at += 1;
            }
            if self.busy.has(table) || !wanted(table) {
                continue;
            }
            let overlap = lower[at..].iter().take_while(|t| !table.is_before(&t.smallest));
            let mut bytes = 0;
            let mut blocked = false;
            for below in overlap {
                bytes += below.file_bytes;
                blocked |= self.busy.has(below);
            }
            let ratio = bytes as f64 / table.file_bytes.max(1) as f64;
            let better = best.is_none_or(|(least, id, _)| (ratio, table.id) < (least, id));
            if blocked || !better || self.busy.writes(output, &KeyRange::of(table)) {
                continue;
            }
            best = Some((ratio, table.id, index));
        }
        best.map(|(_, _, index)| index)
    }
}
