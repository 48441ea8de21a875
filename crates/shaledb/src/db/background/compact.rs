//! Running compactions: from a plan to an installed edit. How data is merged is in
//! [`super::merge`].

use crate::base::error::Result;
use crate::base::sync::Arc;
use crate::compaction::plan::{Action, Busy, Plan};
use crate::compaction::policy;
use crate::compaction::score::Targets;
use crate::db::core::{Core, TreeCore};
use crate::table::TableOptions;
use crate::table::format::FileKind;
use crate::table::meta::{FileId, TableMeta};
use crate::version::edit::TreeEdit;

impl Core {
    /// How tables of a level of this tree are written.
    pub fn table_options(&self, tree: &TreeCore, level: usize) -> TableOptions {
        let settings = self.pick_settings(tree);
        let shape = tree.state.load().version.shape();
        let base = Targets::of(&shape, &settings).base;
        TableOptions {
            codec: policy::codec(&tree.config.codecs, level, base),
            dictionary: tree.config.dictionary,
            block_bytes: tree.config.block_bytes as usize,
            filter_bits: policy::filter_bits(tree.config.filter_bits, level),
            tree: tree.id,
        }
    }

    /// Removes files that no edit names. After a failure that leaves open whether an edit became
    /// durable they stay: the next open knows whether they are needed.
    pub fn discard(&self, ids: &[FileId]) {
        if !self.is_poisoned() {
            self.discard_files(FileKind::Table, ids.iter().copied());
        }
    }

    /// Removes files that no edit can name.
    pub fn discard_files(&self, kind: FileKind, ids: impl IntoIterator<Item = FileId>) {
        for id in ids {
            let path = self.path(kind, id);
            if let Err(error) = self.env.fs.remove(&path) {
                tracing::debug!(%error, "an unfinished table is left for the next open to remove");
            }
        }
    }

    /// Carries out a plan, or its first part (the others wait for a thread), and answers whether
    /// that was all.
    pub fn run_compaction(&self, tree: Arc<TreeCore>, plan: Plan) -> Result<bool> {
        if plan.action == Action::Merge {
            return self.run_merge(tree, plan);
        }
        let started = self.env.clock.now_nanos();
        let result = self.run_edit_only(&tree, &plan, started);
        self.end_compaction(&tree, &plan, &[]);
        if tree.is_dropped() { Ok(true) } else { result.map(|()| true) }
    }

    /// Moves tables down, or lets fully deleted ones go: an edit and no data.
    fn run_edit_only(&self, tree: &TreeCore, plan: &Plan, started: u64) -> Result<()> {
        let version = tree.state.load().version.clone();
        let mut added = Vec::new();
        if plan.action == Action::Move {
            for (level, ids) in &plan.inputs {
                for id in ids {
                    if let Some(table) = version.table(*level, *id) {
                        added.push((plan.output_level, TableMeta::clone(&table.meta)));
                    }
                }
            }
        }
        let edit = TreeEdit { tree: tree.id, added, removed: removed(plan), flushed_seq: None };
        self.install(tree, edit, &[])?;
        let nanos = self.env.clock.now_nanos() - started;
        tree.levels.lock().moved(plan, nanos);
        Ok(())
    }

    /// Takes back what marks the compaction as running; `outputs` are outputs marked as in use.
    pub fn end_compaction(&self, tree: &TreeCore, plan: &Plan, outputs: &[FileId]) {
        let mut state = self.sched.lock();
        state.running_compactions -= 1;
        if let Some(busy) = state.busy.get_mut(&tree.id) {
            busy.finish(plan);
            outputs.iter().for_each(|&id| busy.give_back(id));
        }
        if !tree.is_dropped() {
            state.look.insert(tree.id);
        } else if state.busy.get(&tree.id).is_some_and(Busy::is_empty) {
            state.busy.remove(&tree.id);
        }
    }
}

fn removed(plan: &Plan) -> Vec<(usize, FileId)> {
    let tables = plan.inputs.iter();
    tables.flat_map(|(level, ids)| ids.iter().map(move |id| (*level, *id))).collect()
}
