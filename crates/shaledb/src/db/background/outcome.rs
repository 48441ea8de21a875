//! How background work has ended: its marks are taken back, its next try is set, and whoever waits
//! for it looks again.

use crate::base::error::{Error, Result};
use crate::compaction::plan::{Busy, Plan};
use crate::db::core::{Core, TreeCore};
use crate::table::meta::FileId;
use crate::version::TreeId;

/// What kind of work has ended: each kind has its own failures and next try.
#[derive(Clone, Copy)]
pub(super) enum Work {
    Flush,
    /// Of this tree.
    Compaction(TreeId),
}

impl Core {
    /// Notes how a job has ended, for its next try and for who asks; answers with the same.
    pub(super) fn note_outcome(&self, work: Work, result: Result<()>) -> Result<()> {
        if result.as_ref().is_err_and(Error::is_without_room) {
            // The next try has the room of what waits for its removal.
            self.tables.remove_gone();
        }
        let mut state = self.sched.lock();
        let closing = state.closing;
        let flush = matches!(work, Work::Flush);
        if let Err(error) = &result
            && !closing
        {
            tracing::warn!(%error, flush, "background work failed and is tried again");
        }
        if result.is_ok() || !closing {
            let now = self.env.clock.now_nanos();
            let kind = if flush { &mut state.flush_failure } else { &mut state.compaction_failure };
            kind.note(&result, now);
        }
        if let Work::Compaction(tree) = work {
            let total = state.compaction_failure.total;
            match &result {
                Ok(()) => drop(state.failed.remove(&tree)),
                Err(error) => drop(state.failed.insert(tree, (error.clone(), total))),
            }
        }
        result
    }

    /// Lets writers and waiters see what a job has changed.
    pub(super) fn announce_progress(&self) {
        self.update_pressure();
        self.sched.wake_all();
    }

    /// Takes back what marks the compaction as running; `outputs` are outputs marked as in use.
    /// The tree is looked at `again`, unless nothing was done.
    pub(super) fn end_compaction(
        &self,
        tree: &TreeCore,
        plan: &Plan,
        outputs: &[FileId],
        again: bool,
    ) {
        let mut state = self.sched.lock();
        assert!(state.running_compactions > 0, "a compaction that ends was counted as running");
        state.running_compactions -= 1;
        if let Some(busy) = state.busy.get_mut(&tree.id) {
            busy.finish(plan);
            outputs.iter().for_each(|&id| busy.release_table(id));
        }
        if !tree.is_dropped() {
            if again {
                state.look.insert(tree.id);
            }
        } else if state.busy.get(&tree.id).is_some_and(Busy::is_empty) {
            state.busy.remove(&tree.id);
        }
    }
}
