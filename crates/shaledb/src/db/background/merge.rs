//! Merging: a compaction that reads and writes, cut into parts by key range.
//!
//! Threads share the parts. They are small, so that a thread comes by the scheduler often (where a
//! flush that waits goes first), and so that what is merged is installed, and what it replaces
//! removed, long before the end of a large merge: `compaction/stages` says how, and why readers
//! may see a merge that is half done.

use crate::base::activity::Activity;
use crate::base::error::{Error, Result};
use crate::db::core::{Core, Inputs, MergeJob, Progress, TreeCore};

use crate::base::sync::atomic::Ordering;
use crate::base::sync::{Arc, Mutex};
use crate::compaction::job::{self, Context, Done};
use crate::compaction::plan::Plan;
use crate::compaction::split::{self, Cuts, Part};
use crate::compaction::stages::{Removed, Stage, Stages};
use crate::table::Table;
use crate::table::format::FileKind;
use crate::table::meta::{FileId, TableMeta};
use crate::version::edit::TreeEdit;
use std::cell::Cell;

/// A compaction is worth a second thread from this many input bytes on.
const PART_BYTES_MIN: u64 = 8 << 20;

/// How many output tables' worth of input a part has, if it can be cut so.
const PART_TABLES: u64 = 4;

/// Into how many pieces a table is cut for finding the bounds of parts, for each part that there
/// will be.
const PIECES: u64 = 4;

impl Core {
    /// Starts a merge and does its first part; answers whether the merge has ended.
    pub fn run_merge(&self, tree: Arc<TreeCore>, plan: Plan) -> Result<bool> {
        let started = self.env.clock.now_nanos();
        let version = tree.state.load().version.clone();
        let mut inputs = Vec::new();
        for (level, ids) in &plan.inputs {
            let tables = ids.iter().filter_map(|id| version.table(*level, *id).cloned()).collect();
            inputs.push((*level, tables));
        }
        // Whoever waits for the end finds the inputs' files gone.
        drop(version);
        let parts = match self.cut(&plan, &inputs) {
            Ok(parts) => parts,
            Err(error) => {
                self.end_compaction(&tree, &plan, &[]);
                return Err(error);
            }
        };
        let metas = |(level, tables): &(usize, Vec<Arc<Table>>)| {
            let level = *level;
            tables.iter().map(|table| (level, table.meta.clone())).collect::<Vec<_>>()
        };
        let stages = Stages::new(&plan, &parts, inputs.iter().flat_map(metas).collect());
        let count = parts.len();
        let progress = Progress {
            inputs,
            stages,
            left: count,
            done: Vec::new(),
            early_outputs: Vec::new(),
            written: 0,
            dropped: 0,
            cpu_nanos: 0,
            error: None,
        };
        let snapshots = self.reader_seqs_to_keep();
        let progress = Mutex::new(progress);
        let run = Arc::new(MergeJob { tree, plan, snapshots, parts, progress, started });
        if count > 1 {
            let mut state = self.sched.lock();
            state.parts.extend((1..count).map(|index| (run.clone(), index)));
            drop(state);
            self.sched.wake_all();
        }
        self.run_part(&run, 0)
    }

    /// Where this plan is cut: into parts small enough, and enough of them for the threads that
    /// may share it now.
    fn cut(&self, plan: &Plan, inputs: &Inputs) -> Result<Vec<Part>> {
        let free = {
            let state = self.sched.lock();
            self.compactions_max().saturating_sub(state.running_compactions) + 1
        };
        let share = (plan.input_bytes / free as u64).max(PART_BYTES_MIN);
        let bytes = plan.table_bytes.saturating_mul(PART_TABLES);
        let bytes = if free > 1 { bytes.min(share) } else { bytes };
        if plan.input_bytes <= bytes {
            return Ok(vec![Part::default()]);
        }
        let pieces = PIECES * plan.input_bytes.div_ceil(bytes);
        let mut cuts = Vec::new();
        let mut aligned = Vec::new();
        for (level, tables) in inputs {
            let is_output = *level > 0 && *level == plan.output_level;
            for table in tables {
                // A small table of a level in order has its bytes in one place.
                let small = is_output && table.meta.file_bytes <= bytes / PIECES;
                let keys = if small { Vec::new() } else { table.split_points(pieces as usize)? };
                cuts.push(Cuts { table: &table.meta, keys });
                if is_output {
                    aligned.push(table.meta.smallest.as_slice());
                }
            }
        }
        Ok(split::parts(&cuts, &aligned, bytes))
    }

    /// Does one part, and installs the stage that it completes; answers whether the merge has
    /// ended. The error of a part is the error of the merge, told when it ends.
    pub fn run_part(&self, run: &Arc<MergeJob>, index: usize) -> Result<bool> {
        let clock = &*self.env.clock;
        let cpu = clock.thread_cpu_nanos();
        let failed = run.progress.lock().error.is_some();
        // What flushes take that are done in between is theirs.
        let flushes = Cell::new(0);
        let outcome =
            if failed { Err(Error::Closed) } else { self.merge_part(run, index, &flushes) };
        let cpu = clock.thread_cpu_nanos() - cpu - flushes.get();
        self.recorder.spent_exactly(Activity::Compaction, cpu);
        let stage = {
            let mut progress = run.progress.lock();
            progress.cpu_nanos += cpu;
            progress.note(index, outcome)
        };
        if let Some((stage, done)) = stage {
            let result = self.install_stage(run, &stage, &done);
            let mut progress = run.progress.lock();
            if let Err(error) = result {
                progress.error.get_or_insert(error);
            }
        }
        let mut progress = run.progress.lock();
        progress.left -= 1;
        let ended = progress.left == 0;
        drop(progress);
        if !ended {
            self.sched.lock().running_compactions -= 1;
            return Ok(false);
        }
        let result = self.finish_run(run);
        let (inputs, outputs) = {
            let mut progress = run.progress.lock();
            (std::mem::take(&mut progress.inputs), std::mem::take(&mut progress.early_outputs))
        };
        // Before anyone learns that the compaction has ended: its inputs' files go now, and not
        // under the lock.
        drop(inputs);
        self.end_compaction(&run.tree, &run.plan, &outputs);
        if run.tree.is_dropped() { Ok(true) } else { result.map(|()| true) }
    }

    fn merge_part(&self, run: &MergeJob, index: usize, flushes: &Cell<u64>) -> Result<Done> {
        let part = &run.parts[index];
        // Not more than it needs, so that the files of others go while it runs.
        let inputs: Inputs = {
            let progress = run.progress.lock();
            let of_part = |tables: &[Arc<Table>]| {
                tables.iter().filter(|table| part.meets(&table.meta)).cloned().collect()
            };
            progress.inputs.iter().map(|(level, tables)| (*level, of_part(tables))).collect()
        };
        let context = Context {
            env: &self.env,
            meter: &self.tables.meter,
            plan: &run.plan,
            inputs: &inputs,
            snapshots: &run.snapshots,
            tree: run.tree.id,
            codecs: &run.tree.config.codecs,
            dictionary: run.tree.config.dictionary,
            block_bytes: run.tree.config.block_bytes as usize,
            new_file: &|| {
                let id = self.new_file();
                (id, self.path(FileKind::Table, id))
            },
            cancelled: &|| {
                flushes.set(flushes.get() + self.flush_first());
                self.sched.cancel.load(Ordering::Relaxed) || run.tree.is_dropped()
            },
        };
        let mut written = Vec::new();
        job::merge(&context, part, &mut written).inspect_err(|_| self.discard(&written))
    }

    /// Puts the outputs of a stage in the place of the inputs that leave with it.
    fn install_stage(&self, run: &MergeJob, stage: &Stage, done: &[Done]) -> Result<()> {
        let outputs: Vec<TableMeta> =
            done.iter().flat_map(|done| done.tables.iter().cloned()).collect();
        let ids: Vec<FileId> = outputs.iter().map(|meta| meta.id).collect();
        let written: u64 = outputs.iter().map(|meta| meta.file_bytes).sum();
        if !stage.is_last {
            // Before anyone sees them: other jobs leave them alone while this one goes on.
            run.progress.lock().early_outputs.extend(&ids);
            let mut state = self.sched.lock();
            let busy = state.busy.entry(run.tree.id).or_default();
            ids.iter().for_each(|&id| busy.take(id));
        }
        if let Err(error) = self.replace(run, outputs, stage.removed.clone()) {
            self.discard(&ids);
            return Err(error);
        }
        let mut progress = run.progress.lock();
        progress.written += written;
        progress.dropped += done.iter().map(|done| done.entries_in - done.entries_out).sum::<u64>();
        progress.stages.installed(stage);
        let gone: Vec<Arc<Table>> = progress.take_removed(&stage.removed);
        drop(progress);
        // The files go with the last handles, and not under the lock.
        drop(gone);
        let mut levels = run.tree.levels.lock();
        done.iter().for_each(|done| levels.carried(&run.plan, done));
        if !stage.is_last {
            levels.installed_early(&run.plan);
        }
        Ok(())
    }

    fn replace(&self, run: &MergeJob, outputs: Vec<TableMeta>, removed: Removed) -> Result<()> {
        let edit = TreeEdit {
            tree: run.tree.id,
            added: outputs.into_iter().map(|meta| (run.plan.output_level, meta)).collect(),
            removed,
            flushed_seq: None,
        };
        self.env.fs.sync_dir(&self.dir)?;
        self.install(&run.tree, edit, &[])
    }

    /// What remains when all parts have ended.
    fn finish_run(&self, run: &MergeJob) -> Result<()> {
        let mut progress = run.progress.lock();
        let done = std::mem::take(&mut progress.done);
        let rest = progress.stages.rest();
        let error = progress.error.take();
        let (written, dropped, cpu) = (progress.written, progress.dropped, progress.cpu_nanos);
        drop(progress);
        if let Some(error) = error {
            let tables = done.iter().flat_map(|(_, done)| &done.tables);
            self.discard(&tables.map(|meta| meta.id).collect::<Vec<_>>());
            return Err(error);
        }
        // Stages installed at the same time leave what waited for both.
        if !rest.is_empty() {
            self.replace(run, Vec::new(), rest)?;
        }
        let nanos = self.env.clock.now_nanos() - run.started;
        self.throttle.note_compaction(run.plan.input_bytes, nanos);
        run.tree.levels.lock().merged(&run.plan, written, nanos, cpu, dropped);
        Ok(())
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
