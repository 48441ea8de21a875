//! The end of an online build: tables come to lie beneath all that its tree has.
//!
//! What the tree has was written while the tables were made, and is newer. One edit makes room in
//! the last level, by calling tables of levels below 0 tables of the level above, and adds the new
//! ones there. So it takes the same time whatever the size, needs no lock of writers, and memtables
//! stay as they are.

use super::install::is_run;
use crate::base::error::Result;
use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::compaction::policy::LAST;
use crate::db::background::Awaited;
use crate::db::core::{Core, Manual, TreeCore};
use crate::table::meta::{FileId, TableMeta};
use crate::version::edit::TreeEdit;
use crate::version::{TreeId, Version};

impl Core {
    /// Puts tables of a run beneath all that a tree has, each of their entries at `seq`, and ends
    /// its build if it `ends` with that. All that the tree has is newer than that. After an error
    /// nothing has changed, and the tables are gone.
    pub fn put_beneath(
        self: &Arc<Core>,
        tree: &Arc<TreeCore>,
        mut run: Vec<TableMeta>,
        seq: SeqNo,
        ends: bool,
    ) -> Result<()> {
        let ids: Vec<FileId> = run.iter().map(|meta| meta.id).collect();
        for meta in &mut run {
            assert_eq!(meta.ingest_seq, 0, "a table is ingested once");
            (meta.ingest_seq, meta.min_seq, meta.max_seq) = (seq, seq, seq);
        }
        let result = self.try_put_beneath(tree, run, ends);
        if result.is_err() {
            self.discard_runs(&ids);
        }
        result
    }

    fn try_put_beneath(
        self: &Arc<Core>,
        tree: &Arc<TreeCore>,
        run: Vec<TableMeta>,
        ends: bool,
    ) -> Result<()> {
        assert!(is_run(&run), "tables of a run are in order and disjoint");
        if ends {
            // The run has rows that were committed meanwhile: they are not to outlive the log.
            self.sync_beside_commits()?;
        }
        self.name_tables(run.iter())?;
        let mut held = self.hold_compactions(tree)?;
        // Flushes and bulk loads go on: they change level 0 only.
        let mut edit = loop {
            if let Some(edit) = make_room_below(&tree.state.load().version) {
                break edit;
            }
            // Large commits have filled level after level. Before this has begun again there may
            // have been more of them.
            drop(held);
            self.compact(tree, Manual { for_room: true, ..Manual::default() })?;
            held = self.hold_compactions(tree)?;
        };
        let _held = held;
        edit.tree = tree.id;
        edit.added.extend(run.into_iter().map(|meta| (LAST, meta)));
        if !ends {
            return self.install(tree, edit, &[]);
        }
        self.install_built(tree, edit)?;
        tree.building.store(false, Ordering::Release);
        Ok(())
    }

    /// Ends the build of a tree that has all its rows. What was committed to it is durable then.
    pub fn end_build(&self, tree: &TreeCore) -> Result<()> {
        // The log's end must not be lost while the edit stays.
        self.sync_beside_commits()?;
        self.install_built(tree, TreeEdit { tree: tree.id, ..TreeEdit::default() })?;
        tree.building.store(false, Ordering::Release);
        Ok(())
    }

    /// Keeps others from compacting a tree, and waits until none does; several may.
    pub fn hold_compactions(self: &Arc<Core>, tree: &TreeCore) -> Result<Held> {
        *self.sched.lock().held.entry(tree.id).or_default() += 1;
        let held = Held { core: self.clone(), tree: tree.id };
        self.wait_until(Awaited::CompactionsOf(tree.id), || {
            tree.is_dropped() || self.sched.lock().busy.get(&tree.id).is_none_or(|b| b.is_empty())
        })?;
        Ok(held)
    }
}

/// The edit that leaves the last level empty: what is there, and above it without a gap, goes one
/// level up, in the order that it has. `None` if there is no gap.
fn make_room_below(version: &Version) -> Option<TreeEdit> {
    let mut edit = TreeEdit::default();
    let gap = (1..=LAST).rev().find(|&level| version.levels[level].is_empty())?;
    for level in gap + 1..=LAST {
        for meta in version.levels[level].metas() {
            edit.removed.push((level, meta.id));
            edit.added.push((level - 1, TableMeta::clone(meta)));
        }
    }
    Some(edit)
}

/// Keeps others from compacting a tree until it is dropped.
pub(crate) struct Held {
    core: Arc<Core>,
    tree: TreeId,
}

impl Drop for Held {
    fn drop(&mut self) {
        let core = &self.core;
        // In a fork whoever held the mutex is not here.
        if core.guard.is_foreign() {
            return;
        }
        let mut state = core.sched.lock();
        if let Some(count) = state.held.get_mut(&self.tree) {
            *count -= 1;
            if *count == 0 {
                state.held.remove(&self.tree);
            }
        }
        drop(state);
        core.sched.want_look(self.tree);
        core.sched.wake_all();
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "beneath_tests.rs"]
mod tests;
