//! Reading the log back into memtables, within the bound on these.

use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::db::core::{Core, TreeCore, Trees};
use crate::version::TreeId;
use crate::version::manifest::Recovered;
use crate::wal::Op as LogOp;
use std::collections::BTreeMap;
use std::path::Path;

/// Puts operations of the log into memtables, within the bound on these.
pub(super) struct Replay<'a> {
    core: &'a Core,
    trees: Arc<Trees>,
    /// Every operation of a tree up to this one is in its tables.
    flushed: BTreeMap<TreeId, SeqNo>,
    /// The most that all memtables may take.
    bound: u64,
    /// About how many bytes they have grown by since they were last counted.
    grown: u64,
    /// The number of the last operation.
    last_seq: SeqNo,
    /// Trees whose active memtable is full.
    full: Vec<Arc<TreeCore>>,
}

/// All memtables are counted when they may have grown by this part of their bound.
const COUNT_SHARE: u64 = 64;
/// What an entry takes in a memtable beside key and value, about.
const ENTRY_BYTES: usize = 56;

impl Replay<'_> {
    pub fn new<'a>(core: &'a Core, recovered: &Recovered) -> Replay<'a> {
        let flushed = recovered.trees.iter().map(|(id, tree)| (*id, tree.flushed_seq)).collect();
        let settings = &core.settings;
        // Who only reads needs no room for more to come. Half of the memory is always as much as
        // what memtables take when the database is open for writing.
        let bound =
            if core.read_only { settings.memory_bytes / 2 } else { settings.memtables_bytes_max };
        let trees = core.trees.load_full();
        Replay { core, trees, flushed, bound, grown: 0, last_seq: 0, full: Vec::new() }
    }

    /// Puts an operation into its memtable. All operations of a prepared transaction have the
    /// number of its decision. They go into one memtable, since a tree's `flushed_seq` says that
    /// all of a number is in tables, or nothing.
    pub fn apply(&mut self, op: &LogOp<'_>, needs_log_from: Option<SeqNo>) -> Result<()> {
        if op.seq != self.last_seq {
            self.make_room()?;
            debug_assert!(op.seq > self.last_seq, "sequence numbers never go back");
            self.last_seq = op.seq;
        }
        // A tree that is not there has been dropped since.
        let Some(tree) = self.trees.by_id.get(&op.tree) else { return Ok(()) };
        if self.flushed.get(&op.tree).is_some_and(|&seq| op.seq <= seq) {
            return Ok(());
        }
        let core = self.core;
        let state = tree.state.load();
        if let Some(from) = needs_log_from {
            state.active.needs_log_from(from);
        }
        core.apply_op(&state.active, op);
        let is_full = core.is_full(tree, &state.active);
        if is_full && !core.read_only && !self.full.iter().any(|full| full.id == op.tree) {
            self.full.push(tree.clone());
        }
        self.grown += (op.key.len() + op.value.len() + ENTRY_BYTES) as u64;
        Ok(())
    }

    /// Seals what is full, and keeps the bound. To be called when all of a number is in.
    pub fn make_room(&mut self) -> Result<()> {
        for tree in self.full.drain(..) {
            self.core.seal(&mut self.core.leader.lock(), [&*tree]);
        }
        if self.grown < self.bound / COUNT_SHARE {
            return Ok(());
        }
        self.grown = 0;
        self.keep_bound()
    }

    /// While memtables take more than they may, the tree with most in them is written to a table;
    /// or the open is refused if nothing may be written.
    fn keep_bound(&self) -> Result<()> {
        let core = self.core;
        core.update_pressure();
        while core.memtables().bytes > self.bound {
            if core.read_only {
                return Err(log_too_large(&core.dir, self.bound));
            }
            let bytes = |tree: &&Arc<TreeCore>| -> usize {
                let state = tree.state.load();
                state.memtables().map(|memtable| memtable.bytes()).sum()
            };
            let Some(largest) = self.trees.by_id.values().max_by_key(bytes) else { break };
            core.seal(&mut core.leader.lock(), [&**largest]);
            if largest.state.load().sealed.is_empty() {
                break;
            }
            core.run_flush(&[largest])?;
        }
        Ok(())
    }
}

/// The error for a log that cannot be in memory as a whole.
pub(super) fn log_too_large(dir: &Path, bound: u64) -> Error {
    let what = format!(
        "the log of {} has more data that is not in tables than half of `memory_bytes` ({bound} \
         bytes); to read without writing, all of it must be in memory, with what is prepared and \
         not decided; raise `memory_bytes` (the writer's value suffices but for that), or open the \
         database or a copy of it once for writing, which makes tables",
        dir.display()
    );
    Error::Config { setting: "memory_bytes", what }
}
