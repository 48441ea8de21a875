//! Sorted tables become part of their trees, at one sequence number.
//!
//! Their rows get one number, all the same, in the manifest: under the leader's lock, so that
//! nothing can be committed in between, and after memtables that hold keys of the same range have
//! been flushed, so that a newer version always lies above an older one.

use crate::base::error::Result;
use crate::compaction::policy::LAST;
use crate::compaction::range::KeyRange;
use crate::db::background::Change;
use crate::db::core::{Core, Leader, TreeCore};
use crate::table::meta::TableMeta;
use crate::version::edit::TreeEdit;
use crate::version::{TreeId, Version};
use std::sync::Arc;

/// What is to be ingested into one tree.
pub(crate) struct IngestPart {
    pub tree: Arc<TreeCore>,
    /// Tables in key order that do not overlap, whose entries have no numbers yet; durable, their
    /// names not yet, and called runs.
    pub tables: Vec<TableMeta>,
}

impl IngestPart {
    fn range(&self) -> Option<KeyRange> {
        let mut tables = self.tables.iter();
        let mut hull = KeyRange::of(tables.next()?);
        tables.for_each(|table| hull.extend(table));
        Some(hull)
    }
}

impl Core {
    /// Makes the tables visible and durable, of all trees at one sequence number. After
    /// an error nothing has changed, and the tables are gone.
    pub fn ingest(&self, parts: &mut [IngestPart]) -> Result<()> {
        let result = self.try_ingest(parts);
        let left = parts.iter().flat_map(|part| &part.tables);
        self.discard_runs(&left.map(|meta| meta.id).collect::<Vec<_>>());
        result
    }

    fn try_ingest(&self, parts: &mut [IngestPart]) -> Result<()> {
        let _paused = self.pause_flushes(parts)?;
        let mut leader = self.leader.lock();
        self.check_writable()?;
        self.ingest_locked(&mut leader, parts, None)
    }

    /// Flushes the trees of the parts and keeps others from flushing them, for
    /// [`Core::ingest_locked`]. To be called before the leader's lock is taken, since a flush that
    /// runs may need that lock to come to its end.
    pub fn pause_flushes(&self, parts: &mut [IngestPart]) -> Result<PausedFlushes<'_>> {
        // Taken in order, so that two who ingest do not wait for each other.
        parts.sort_by_key(|part| part.tree.id);
        assert!(parts.is_sorted_by(|a, b| a.tree.id < b.tree.id), "a tree has one part");
        for part in &*parts {
            // Flushing without the lock first keeps the time under the lock short.
            self.flush(Some(&part.tree))?;
        }
        let mut paused = PausedFlushes { core: self, trees: Vec::new() };
        for part in &*parts {
            paused.add(part.tree.id)?;
        }
        Ok(paused)
    }

    /// Installs tables under the leader's lock, and takes those out of `parts` that it has
    /// installed. Nobody flushes their trees meanwhile: see [`Core::pause_flushes`]. `decided` is a
    /// prepared transaction whose tables these are.
    pub fn ingest_locked(
        &self,
        leader: &mut Leader,
        parts: &mut [IngestPart],
        decided: Option<&[u8]>,
    ) -> Result<()> {
        let trees: Vec<&TreeCore> = parts.iter().map(|part| &*part.tree).collect();
        self.seal(leader, trees.iter().copied());
        if trees.iter().any(|tree| !tree.state.load().sealed.is_empty()) {
            // With the log durable the flush does not ask for the lock that is held here.
            let through = leader.next_seq - 1;
            self.sync_log(leader, through)?;
            self.run_flush(&trees)?;
        }
        let is_flushed = |tree: &&TreeCore| {
            tree.is_dropped() || tree.state.load().memtables().all(|memtable| memtable.is_empty())
        };
        assert!(trees.iter().all(is_flushed), "nothing older is in memory");
        for part in &*parts {
            assert!(is_run(&part.tables), "tables of a run are in order and disjoint");
        }
        self.name_tables(parts.iter().flat_map(|part| &part.tables))?;
        let seq = leader.next_seq;
        // A log whose numbers have a gap would count as damaged: the number gets a record.
        // And everything before it must be durable, since the ingest will be.
        self.append_nothing(leader)?;
        assert_eq!(leader.next_seq, seq + 1, "the number is in the log");
        self.sched.note_write();
        self.sync_log(leader, seq)?;
        let mut changes = Vec::new();
        let mut reserved: Vec<(TreeId, usize, KeyRange)> = Vec::new();
        for part in &mut *parts {
            let Some(range) = part.range() else { continue };
            for meta in &mut part.tables {
                assert_eq!(meta.ingest_seq, 0, "a table is ingested once");
                (meta.ingest_seq, meta.min_seq, meta.max_seq) = (seq, seq, seq);
            }
            let level = self.reserve_level(&part.tree, &range);
            reserved.push((part.tree.id, level, range));
            let edit = TreeEdit {
                tree: part.tree.id,
                added: part.tables.iter().map(|meta| (level, meta.clone())).collect(),
                removed: Vec::new(),
                flushed_seq: None,
            };
            changes.push(Change { tree: &part.tree, edit, flushed: &[] });
        }
        let result = self.install_all(changes, decided, Some(seq));
        if result.is_err() {
            // The number is used up in the log; what comes next goes on after it.
            self.publish(seq);
        }
        for (tree, level, range) in reserved {
            if let Some(busy) = self.sched.lock().busy.get_mut(&tree) {
                busy.release_range(level, &range);
            }
            self.sched.want_look(tree);
        }
        let installed = result?;
        for part in parts.iter_mut().filter(|part| installed.contains(&part.tree.id)) {
            part.tables.clear();
        }
        Ok(())
    }

    /// Chooses the level for rows of a range. A compaction that runs may be about to write keys of
    /// it to any level below 0, so the level is chosen, and reserved, under the scheduler's lock.
    /// While compactions are held, only level 0 may change: a build's older rows come to the last.
    fn reserve_level(&self, tree: &TreeCore, range: &KeyRange) -> usize {
        let mut state = self.sched.lock();
        let held = state.held.contains_key(&tree.id);
        let busy = state.busy.entry(tree.id).or_default();
        let chosen = || ingest_level(&tree.state.load().version, busy, range);
        let level = if held { 0 } else { chosen() };
        busy.reserve_range(level, range.clone());
        level
    }
}

/// Whether the tables are in key order and do not overlap.
pub(super) fn is_run(tables: &[TableMeta]) -> bool {
    tables.is_sorted_by(|a, b| a.is_before(&b.smallest))
}

/// Keeps others from flushing trees until it is dropped.
pub(crate) struct PausedFlushes<'a> {
    core: &'a Core,
    trees: Vec<TreeId>,
}

impl PausedFlushes<'_> {
    /// Waits until nobody flushes this tree and keeps others from it.
    fn add(&mut self, tree: TreeId) -> Result<()> {
        let core = self.core;
        loop {
            core.check_writable()?;
            let mut state = core.sched.lock();
            if state.flushing.insert(tree) {
                self.trees.push(tree);
                return Ok(());
            }
            drop(core.sched.wait_for_progress(state, std::time::Duration::from_millis(10)));
        }
    }
}

impl Drop for PausedFlushes<'_> {
    fn drop(&mut self) {
        let mut state = self.core.sched.lock();
        self.trees.iter().for_each(|tree| {
            let paused = state.flushing.remove(tree);
            debug_assert!(paused, "nobody else has ended the pause");
        });
        drop(state);
        self.core.sched.wake_all();
    }
}

/// The deepest level that ingested tables of this range can go to: nothing of the range may lie in
/// it, above it, or be on its way there.
fn ingest_level(
    version: &Version,
    busy: &crate::compaction::plan::Busy,
    range: &KeyRange,
) -> usize {
    let free = |level: usize| {
        let mut metas = version.levels[level].metas();
        !busy.writes(level, range) && !metas.any(|meta| range.overlaps_table(meta))
    };
    let mut best = 0;
    for level in 0..=LAST {
        if !free(level) {
            break;
        }
        best = level;
    }
    assert!((0..best).all(free), "nothing newer lies below");
    best
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "install_tests.rs"]
mod tests;
