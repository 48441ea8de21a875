//! Compactions that read and write no data: tables that move down, or that range deletes cover.

use crate::base::error::Result;
use crate::compaction::plan::{Action, Plan};
use crate::db::core::{Core, TreeCore};
use crate::table::meta::{FileId, TableMeta};
use crate::version::Version;
use crate::version::edit::TreeEdit;

impl Core {
    /// Moves tables down, or lets fully deleted ones go.
    pub fn run_edit_only(&self, tree: &TreeCore, plan: &Plan) -> Result<()> {
        let started = self.env.clock.now_nanos();
        let edit = edit_of(tree, plan, &tree.state.load().version);
        let result = self.install(tree, edit, &[]);
        if result.is_ok() {
            let nanos = self.env.clock.now_nanos() - started;
            tree.levels.lock().moved(plan, nanos);
        }
        self.end_compaction(tree, plan, &[], true);
        if tree.is_dropped() { Ok(()) } else { result }
    }
}

/// The edit that carries out a plan without data.
fn edit_of(tree: &TreeCore, plan: &Plan, version: &Version) -> TreeEdit {
    let inputs = plan.inputs.iter();
    let removed: Vec<(usize, FileId)> =
        inputs.flat_map(|(level, ids)| ids.iter().map(move |id| (*level, *id))).collect();
    let mut added = Vec::new();
    if plan.action == Action::Move {
        for (level, id) in &removed {
            if let Some(table) = version.table(*level, *id) {
                added.push((plan.output_level, TableMeta::clone(&table.meta)));
            }
        }
    }
    TreeEdit { tree: tree.id, added, removed, flushed_seq: None }
}
