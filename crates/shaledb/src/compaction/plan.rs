//! The values that go into and come out of the picker.
//!
//! Invariants of a [`Plan`]: its inputs are tables of the shape it was picked from, none of them
//! busy; every table of the output level whose keys overlap [`Plan::range`] is an input; a table
//! that leaves level 0 takes all older overlapping tables of level 0 with it. So outputs that stay
//! inside the range can replace the inputs whenever the job ends, whatever other
//! plans, picked with this one in [`Busy`], have done meanwhile.

use super::policy::chosen::{Choice, LevelCodecs};
use super::range::KeyRange;
use crate::base::key::SeqNo;
use crate::base::ranges::RangeDeletes;
use crate::table::meta::{FileId, TableMeta};
use std::collections::BTreeSet;
use std::sync::Arc;

pub use crate::version::version::Shape;

/// What the picker needs to know of the settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The size at which memtables are flushed, in bytes; what is in use where `Config` has 0.
    pub memtable_bytes: u64,
    /// The aim for the size of a table, in bytes.
    pub table_bytes: u64,
    /// The codec of each level.
    pub codecs: LevelCodecs,
    /// Filter bits per key in the last level.
    pub filter_bits: u8,
    /// Whether older rows are still to be put beneath all tables, so that every delete stays.
    pub building: bool,
}

/// Why a compaction runs. The order is the order of the rows in the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Level 0 has enough tables or bytes to be merged into the base level.
    Level0,
    /// Level 0 has many small tables and cannot be merged down yet: they become one.
    Level0Merge,
    /// A level is larger than its target.
    Size,
    /// Tables are full of deletes, or of entries that deletes cover.
    Deletes,
    /// The load has turned read-only: fewer runs make reads cheaper.
    Idle,
    /// The caller asked for it.
    Manual,
    /// Tables of the last level were moved there without being compressed for it.
    Recode,
    /// The files take nearly as much as they may.
    Space,
}

impl Reason {
    /// All reasons, in order.
    pub const ALL: [Reason; 8] = [
        Reason::Level0,
        Reason::Level0Merge,
        Reason::Size,
        Reason::Deletes,
        Reason::Idle,
        Reason::Manual,
        Reason::Recode,
        Reason::Space,
    ];

    /// The reason's name in statistics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Level0 => "level0",
            Reason::Level0Merge => "level0-merge",
            Reason::Size => "size",
            Reason::Deletes => "deletes",
            Reason::Idle => "idle",
            Reason::Manual => "manual",
            Reason::Recode => "recode",
            Reason::Space => "space",
        }
    }
}

/// What is done with the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// They become tables of the output level as they are; nothing is read or written.
    Move,
    /// They are merged into new tables of the output level.
    Merge,
    /// They are removed: newer range deletes cover all that is in them.
    DropFiles,
}

/// One compaction to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Why.
    pub reason: Reason,
    /// What.
    pub action: Action,
    /// The tables taken, by level; levels ascend and are never empty. Level 0 newest first.
    pub inputs: Vec<(usize, Vec<FileId>)>,
    /// The level that receives the outputs.
    pub output_level: usize,
    /// Whether no deeper level than the output has a table that overlaps `range`.
    pub is_last: bool,
    /// The keys of the inputs; outputs must stay inside.
    pub range: KeyRange,
    /// The bytes of the inputs.
    pub input_bytes: u64,
    /// Bytes of the inputs that the output level has already (rewritten, not moved).
    pub output_level_bytes: u64,
    /// The overlapping tables one level below the output: output tables are cut so that none
    /// overlaps too many of them.
    pub grandparents: Vec<Arc<TableMeta>>,
    /// For each level below the output, the tables that overlap `range`: a delete must be kept
    /// while one of them may have its key. Empty for outputs to level 0, where no delete goes.
    pub below: Vec<Vec<Arc<TableMeta>>>,
    /// Whether rows that nobody knows yet may come to lie below the output.
    pub building: bool,
    /// How output blocks are compressed.
    pub choice: Choice,
    /// How large they are, in bytes before compression; `None`: as is chosen when a part begins.
    pub block_bytes: Option<usize>,
    /// Filter bits per key of the outputs.
    pub filter_bits: u8,
    /// The aim for the size of an output table, in bytes.
    pub table_bytes: u64,
}

impl Plan {
    /// The ids of all inputs.
    pub fn input_ids(&self) -> impl Iterator<Item = FileId> + '_ {
        self.inputs.iter().flat_map(|(_, ids)| ids.iter().copied())
    }

    /// How many tables of level 0 it takes.
    pub fn level0_tables(&self) -> usize {
        self.inputs.first().map_or(0, |(level, ids)| if *level == 0 { ids.len() } else { 0 })
    }

    /// Whether it takes tables of level 0 down.
    pub fn relieves_level0(&self) -> bool {
        self.output_level > 0 && self.level0_tables() > 0
    }
}

/// What running jobs of the tree have reserved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    files: BTreeSet<FileId>,
    outputs: Vec<(usize, KeyRange)>,
}

impl Busy {
    /// Nothing runs.
    pub fn new() -> Busy {
        Busy::default()
    }

    /// Notes that `plan` runs.
    pub fn start(&mut self, plan: &Plan) {
        for id in plan.input_ids() {
            assert!(self.files.insert(id), "an input is of one job");
        }
        if plan.action != Action::DropFiles {
            assert!(!self.writes(plan.output_level, &plan.range), "a range is written by one job");
            self.outputs.push((plan.output_level, plan.range.clone()));
        }
    }

    /// Notes that `plan`, which had been started, has ended.
    pub fn finish(&mut self, plan: &Plan) {
        for id in plan.input_ids() {
            assert!(self.files.remove(&id), "a job ends once");
        }
        if plan.action == Action::DropFiles {
            return;
        }
        let is_its = |(level, range): &(usize, KeyRange)| {
            *level == plan.output_level && *range == plan.range
        };
        if let Some(index) = self.outputs.iter().position(is_its) {
            self.outputs.swap_remove(index);
        }
    }

    /// Notes that a job which is not a plan (an ingest) writes tables of `range` to `level`.
    pub fn reserve_range(&mut self, level: usize, range: KeyRange) {
        self.outputs.push((level, range));
    }

    /// Takes back one [`Busy::reserve_range`].
    pub fn release_range(&mut self, level: usize, range: &KeyRange) {
        if let Some(index) =
            self.outputs.iter().position(|(at, reserved)| *at == level && reserved == range)
        {
            self.outputs.swap_remove(index);
        }
    }

    /// Notes that a job reserves the table, which is not an input of a plan.
    pub fn reserve_table(&mut self, table: FileId) {
        assert!(self.files.insert(table), "a table is reserved once");
    }

    /// Takes back one [`Busy::reserve_table`].
    pub fn release_table(&mut self, table: FileId) {
        assert!(self.files.remove(&table), "a table that is released was reserved");
    }

    /// Whether no job runs.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.outputs.is_empty()
    }

    /// Whether a running job reads the table.
    pub fn has(&self, table: &TableMeta) -> bool {
        self.files.contains(&table.id)
    }

    /// Whether a running job may write keys of `range` to `level`.
    pub fn writes(&self, level: usize, range: &KeyRange) -> bool {
        self.outputs.iter().any(|(at, reserved)| *at == level && reserved.overlaps(range))
    }

    /// Whether level 0 is being read or written by a job.
    pub fn level0(&self, shape: &Shape) -> bool {
        self.outputs.iter().any(|(level, _)| *level == 0)
            || shape.levels.first().is_some_and(|tables| tables.iter().any(|t| self.has(t)))
    }
}

/// What the picker needs to know of the moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load<'a> {
    /// Whether writes have stopped for a while, so that spare time may be spent on the shape.
    pub idle: bool,
    /// The sequence numbers of open snapshots, ascending.
    pub snapshots: &'a [SeqNo],
    /// All range deletes that are in tables of the tree, if any.
    pub range_deletes: Option<&'a RangeDeletes>,
    /// What files may take.
    pub space: Space,
}

/// What the picker needs to know of the limit on space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The most that a merge may take beside its inputs, in bytes.
    pub room: u64,
    /// The largest merge of level 0's tables with each other.
    pub level0_merge: u64,
    /// Whether bytes count more than the time to compress them.
    pub is_tight: bool,
    /// Whether room has to be made.
    pub is_short: bool,
    /// Whether none is promised to a merge that runs, or to one that has ended and whose inputs
    /// readers still have.
    pub is_unpromised: bool,
}

impl Default for Space {
    /// No limit.
    fn default() -> Space {
        Space {
            room: u64::MAX,
            level0_merge: u64::MAX,
            is_tight: false,
            is_short: false,
            is_unpromised: true,
        }
    }
}

impl Load<'_> {
    /// Whether a snapshot reads at a sequence number from `low` up to (not including) `high`.
    pub fn snapshot_between(&self, low: SeqNo, high: SeqNo) -> bool {
        let first = self.snapshots.partition_point(|&s| s < low);
        self.snapshots.get(first).is_some_and(|&s| s < high)
    }

    /// The oldest snapshot; [`SEQ_MAX`](crate::base::key::SEQ_MAX) if there is none.
    pub fn oldest_snapshot(&self) -> SeqNo {
        self.snapshots.first().copied().unwrap_or(crate::base::key::SEQ_MAX)
    }
}
