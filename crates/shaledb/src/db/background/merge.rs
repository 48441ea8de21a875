//! Merging: a compaction that reads and writes, cut into parts by key range.
//!
//! Threads share the parts. They are small, so that a thread comes by the scheduler often, and so
//! that what is merged is installed, and what it replaces removed, long before the end of a large
//! merge: `compaction/stages` says how, and why readers may see a merge that is half done.
//!
//! A flush that waits does not wait for a part: a part is merged in steps, and between two steps is
//! a yield point, at which the thread runs that flush first.

use super::codecs::WrittenTable;
use super::rest::Rests;
use crate::base::activity::Activity;
use crate::base::config::Codec;
use crate::base::error::{Error, Result};
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};
use crate::compaction::job::{Context, Done, PartMerge};
use crate::compaction::plan::Plan;
use crate::compaction::policy::LAST;
use crate::compaction::room;
use crate::compaction::split::{self, Part};
use crate::compaction::stages::{Removed, Stage, Stages};
use crate::db::core::{Core, Inputs, MergeJob, MergeWork, Progress, TreeCore};
use crate::fs::ledger::Payer;
use crate::table::format::FileKind;
use crate::table::meta::{FileId, TableMeta};
use crate::table::{Probe, Table, TableDictionary};
use crate::version::edit::TreeEdit;
use std::path::PathBuf;

impl Core {
    /// Starts a merge: cuts it into parts, of which the first is the caller's and the others wait
    /// for threads. `None` if there is no room for it now.
    pub fn start_merge(&self, tree: Arc<TreeCore>, plan: Plan) -> Result<Option<Arc<MergeJob>>> {
        let started = self.env.clock.now_nanos();
        let version = tree.state.load().version.clone();
        let mut inputs = Vec::new();
        for (level, ids) in &plan.inputs {
            let tables: Vec<Arc<Table>> =
                ids.iter().filter_map(|id| version.table(*level, *id).cloned()).collect();
            assert!(tables.len() == ids.len() || tree.is_dropped(), "the inputs are in the tree");
            inputs.push((*level, tables));
        }
        // It would hold the inputs' files.
        drop(version);
        let whole = self.room_of_all(&plan, &inputs);
        let parts = match self.cut(&plan, &inputs, whole.is_some()) {
            Ok(parts) => parts,
            Err(error) => {
                self.end_compaction(&tree, &plan, &[], true);
                return Err(error);
            }
        };
        let metas = |(level, tables): &(usize, Vec<Arc<Table>>)| {
            let level = *level;
            tables.iter().map(|table| (level, table.meta.clone())).collect::<Vec<_>>()
        };
        let stages = Stages::new(&plan, &parts, inputs.iter().flat_map(metas).collect());
        let room = whole.or_else(|| self.room_in_turn(&plan, &inputs, &stages));
        let Some(room) = room else {
            // Whoever needs room has it looked at again, or has already.
            self.end_compaction(&tree, &plan, &[], false);
            return Ok(None);
        };
        let count = parts.len();
        let progress = Progress {
            inputs,
            stages,
            left: count,
            done: Vec::new(),
            early_outputs: Vec::new(),
            read_counted: 0,
            cpu_nanos: 0,
            rested_nanos: 0,
            error: None,
        };
        // The end of a snapshot lets only the last level be written anew for what was kept there.
        let snapshots = match plan.output_level {
            LAST => self.reader_seqs_to_keep(),
            _ => self.reader_seqs(),
        };
        let of_inputs = progress.inputs.iter().flat_map(|(_, tables)| tables);
        let entries = of_inputs.map(|table| table.meta.entries).sum();
        let progress = Mutex::new(progress);
        let mut state = self.sched.lock();
        let of_tree = state.debts.get(&tree.id).copied().unwrap_or_default();
        let flushed_of_all = state.debts.values().map(|debt| debt.flushed_bytes).sum();
        let job = Arc::new(MergeJob {
            tree,
            plan,
            snapshots,
            parts,
            room,
            progress,
            started,
            entries,
            merged: AtomicU64::new(0),
            level0_tables: of_tree.level0_tables,
            flushed: (of_tree.flushed_bytes, flushed_of_all),
        });
        if job.plan.relieves_level0() {
            state.level0_merges.insert(job.tree.id, job.clone());
        }
        drop(state);
        if count > 1 && !job.room.in_turn {
            let mut state = self.sched.lock();
            state.parts.extend((1..count).map(|index| (job.clone(), index)));
            drop(state);
            self.sched.wake_all();
        }
        Ok(Some(job))
    }

    /// Does the first part of a merge, and the others as well if they are done in turn; answers
    /// whether the merge has ended.
    pub fn run_first_parts(&self, job: &MergeJob) -> Result<bool> {
        let mut ended = self.run_part(job, 0)?;
        if job.room.in_turn {
            for index in 1..job.parts.len() {
                assert!(!ended, "a merge ends with its last part");
                self.sched.lock().running_compactions += 1;
                ended = self.run_part(job, index)?;
            }
        }
        Ok(ended)
    }

    /// Where this plan is cut: into parts small enough, and enough of them for the threads that
    /// may share it now; where there is no room for all of it at once, into its stages.
    fn cut(&self, plan: &Plan, inputs: &Inputs, has_room: bool) -> Result<Vec<Part>> {
        let free = {
            let state = self.sched.lock();
            self.compactions_max().saturating_sub(state.running_compactions) + 1
        };
        let outputs = inputs.iter().find(|(level, _)| *level > 0 && *level == plan.output_level);
        if let Some((_, tables)) = outputs
            && !has_room
        {
            let tables: Vec<_> = tables.iter().map(|table| table.meta.clone()).collect();
            let bytes = plan.table_bytes.saturating_mul(room::PART_TABLES);
            let to = plan.choice;
            return Ok(split::by_tables(&tables, bytes, &|table| room::output_bytes(table, to)));
        }
        let tables: Vec<(usize, &Arc<Table>)> = inputs
            .iter()
            .flat_map(|(level, tables)| tables.iter().map(|table| (*level, table)))
            .collect();
        let metas: Vec<_> = tables.iter().map(|(level, table)| (*level, &*table.meta)).collect();
        split::for_threads(plan, &metas, free, |at, pieces| {
            tables[at].1.split_points(pieces as usize)
        })
    }

    /// Does one part, and installs the stage that it completes; answers whether the merge has
    /// ended. The error of a part is the error of the merge, reported when it ends.
    pub fn run_part(&self, job: &MergeJob, index: usize) -> Result<bool> {
        let clock = &*self.env.clock;
        let cpu = clock.thread_cpu_nanos();
        let failed = job.progress.lock().error.is_some();
        // What flushes take that are done at yield points is theirs.
        let mut flush_cpu = 0;
        let outcome =
            if failed { Err(Error::Closed) } else { self.merge_part(job, index, &mut flush_cpu) };
        let cpu = clock.thread_cpu_nanos() - cpu - flush_cpu;
        self.recorder.spent_exactly(Activity::Compaction, cpu);
        let stage = {
            let mut progress = job.progress.lock();
            progress.cpu_nanos += cpu;
            progress.note(index, outcome)
        };
        if let Some((stage, done)) = stage
            && let Err(error) = self.install_stage(job, &stage, &done)
        {
            job.progress.lock().error.get_or_insert(error);
        }
        if !job.progress.lock().end_part() {
            let mut state = self.sched.lock();
            assert!(state.running_compactions > 0, "a part that ends was counted as running");
            state.running_compactions -= 1;
            return Ok(false);
        }
        let result = self.finish_merge(job);
        let (inputs, outputs) = {
            let mut progress = job.progress.lock();
            (std::mem::take(&mut progress.inputs), std::mem::take(&mut progress.early_outputs))
        };
        // Before anyone learns that the compaction has ended, so that whoever waits for that finds
        // their files among those that go; and not under the lock.
        drop(inputs);
        // Nor does anyone look for work while room is promised to what has ended.
        if let Some(promise) = &job.room.promise {
            promise.end();
        }
        // Only its own: another job of the tree may have begun, or moved a table meanwhile.
        let mut state = self.sched.lock();
        let noted = state.level0_merges.get(&job.tree.id);
        if noted.is_some_and(|noted| std::ptr::eq(&**noted, job)) {
            state.level0_merges.remove(&job.tree.id);
        }
        drop(state);
        if result.is_err() {
            // What it has installed is to be merged once more.
            self.note_debt(&job.tree);
        }
        self.end_compaction(&job.tree, &job.plan, &outputs, true);
        if job.tree.is_dropped() { Ok(true) } else { result.map(|()| true) }
    }

    /// Merges one part into new tables, which are removed if that fails. The CPU time of flushes at
    /// its yield points is added to `flush_cpu`, in nanoseconds.
    fn merge_part(&self, job: &MergeJob, index: usize, flush_cpu: &mut u64) -> Result<Done> {
        let part = &job.parts[index];
        // Not more than it needs, so that the files of others go while it runs.
        let inputs = job.progress.lock().inputs_of(part);
        let codecs = job.tree.level_codecs();
        let chosen = || codecs.blocks.of(job.plan.output_level).0 as usize;
        let probe = job.tree.probe(job.plan.choice.codec);
        let mut choice = job.plan.choice;
        // Since the merge was planned blocks may have become small for a dictionary.
        let is_as_chosen = job.plan.output_level == LAST && job.plan.block_bytes.is_none();
        let suits = is_as_chosen && matches!(choice.codec, Codec::Zstd(1..));
        choice.dictionary |= suits && codecs.of(LAST, LAST).dictionary;
        let dictionary = self.table_dictionary(&job.tree, choice);
        let env = match &job.room.promise {
            Some(promise) => self.env_paid_by(Payer::Merge(promise.clone())),
            None => self.env.clone(),
        };
        let context = Context {
            env: &env,
            meter: &self.tables.meter,
            memory: &self.tables.memory,
            memory_bytes: self.settings.merge_bytes(),
            plan: &job.plan,
            inputs: &inputs,
            part_bytes: job.plan.input_bytes / job.parts.len() as u64,
            snapshots: &job.snapshots,
            state: Some(&job.tree.state),
            tree: job.tree.id,
            codecs: &codecs,
            probe: probe.as_ref(),
            dictionary: &dictionary,
            block_bytes: job.plan.block_bytes.unwrap_or_else(chosen),
            dir: &self.dir,
            next_file: &self.next_file,
        };
        let mut merge = self.counted(|| PartMerge::begin(&context, part))?;
        let done = self.merge_rows(job, &mut merge, flush_cpu);
        let done = done.inspect_err(|_| self.discard(&merge.into_files()))?;
        self.learn_from(job, &done, &dictionary, probe.as_ref());
        Ok(done)
    }

    /// Learns from the tables of a part; those that were reused are spread over them evenly.
    fn learn_from(
        &self,
        job: &MergeJob,
        done: &Done,
        dictionary: &TableDictionary,
        probe: Option<&Probe>,
    ) {
        let stored: u64 = done.tables.iter().map(|meta| meta.data_bytes).sum();
        for (at, meta) in done.tables.iter().enumerate() {
            let share = meta.data_bytes as f64 / stored.max(1) as f64;
            let reused = (done.bytes_reused as f64 * share) as u64;
            let probe = probe.filter(|_| at == 0);
            let codec = job.plan.choice.codec;
            let written = WrittenTable { meta, codec, reused, dictionary };
            self.learn(&job.tree, job.plan.output_level, &written, probe);
        }
    }

    fn merge_rows(
        &self,
        job: &MergeJob,
        merge: &mut PartMerge<'_>,
        flush_cpu: &mut u64,
    ) -> Result<Done> {
        let mut rests = Rests::new(self.env.clock.now_nanos());
        let mut merged = 0;
        while self.counted(|| merge.step())? {
            job.merged.fetch_add(merge.entries_in() - merged, Ordering::Relaxed);
            merged = merge.entries_in();
            let flushed = self.yield_to_flush();
            if flushed > 0 {
                *flush_cpu += flushed;
                rests.resume(self.env.clock.now_nanos());
            }
            // A caller's own thread, which steps, does not sleep for other callers.
            if !self.stepped {
                self.rest(job.tree.id, &mut rests);
            }
            if self.sched.cancel.load(Ordering::Relaxed) || job.tree.is_dropped() {
                return Err(Error::Closed);
            }
        }
        job.progress.lock().rested_nanos += rests.nanos;
        self.counted(|| merge.finish())
    }

    /// A yield point: runs a flush that waits for a thread, or makes the next log file, if that is
    /// wanted, so that no writer waits for the end of a merge. Answers with the CPU time that it
    /// took, in nanoseconds.
    fn yield_to_flush(&self) -> u64 {
        let Some(job) = self.urgent_job() else { return 0 };
        let before = self.env.clock.thread_cpu_nanos();
        // A failure is noted with the scheduler, which tries again; it is none of the merge's.
        let _ = self.run_job(job);
        self.env.clock.thread_cpu_nanos() - before
    }

    /// Installs the outputs of a stage instead of the inputs that leave with it.
    fn install_stage(&self, job: &MergeJob, stage: &Stage, done: &[Done]) -> Result<()> {
        let outputs: Vec<TableMeta> =
            done.iter().flat_map(|done| done.tables.iter().cloned()).collect();
        assert!(
            outputs.is_sorted_by(|a, b| a.is_before(&b.smallest)),
            "outputs are in order and disjoint"
        );
        assert!(outputs.iter().all(|meta| job.plan.range.spans(meta)), "outputs are in the range");
        let ids: Vec<FileId> = outputs.iter().map(|meta| meta.id).collect();
        if !stage.is_last {
            // Before anyone sees them: other jobs leave them alone while this one goes on.
            job.progress.lock().early_outputs.extend(&ids);
            let mut state = self.sched.lock();
            let busy = state.busy.entry(job.tree.id).or_default();
            ids.iter().for_each(|&id| busy.reserve_table(id));
        }
        // Before writers are told what is left to be done.
        let entries = done.iter().map(|done| done.entries_in).sum();
        let spent = job.progress.lock().take_spent(job, entries);
        if let Err(error) = self.replace(job, outputs, stage.removed.clone()) {
            self.discard(&ids);
            return Err(error);
        }
        let mut progress = job.progress.lock();
        progress.stages.installed(stage);
        let gone: Vec<Arc<Table>> = progress.take_removed(&stage.removed);
        drop(progress);
        self.note_replaced(job, &ids, gone, stage.is_last);
        job.tree.levels.lock().installed(&job.plan, done, spent, stage.is_last);
        Ok(())
    }

    /// Notes for whom room is now that tables are in the place of others, and lets go of those.
    fn note_replaced(
        &self,
        job: &MergeJob,
        added: &[FileId],
        gone: Vec<Arc<Table>>,
        is_last: bool,
    ) {
        if let Some(promise) = &job.room.promise {
            let path = |id: FileId| self.path(FileKind::Table, id);
            let added: Vec<PathBuf> = added.iter().map(|id| path(*id)).collect();
            let removed: Vec<PathBuf> = gone.iter().map(|table| path(table.meta.id)).collect();
            promise.installed(&added, &removed, is_last);
        }
        // The files go with the last handles, and not under a lock.
        drop(gone);
    }

    fn replace(&self, job: &MergeJob, outputs: Vec<TableMeta>, removed: Removed) -> Result<()> {
        let edit = TreeEdit {
            tree: job.tree.id,
            added: outputs.into_iter().map(|meta| (job.plan.output_level, meta)).collect(),
            removed,
            flushed_seq: None,
        };
        self.env.fs.sync_dir(&self.dir)?;
        self.install(&job.tree, edit, &[])
    }

    /// What remains when all parts have ended.
    fn finish_merge(&self, job: &MergeJob) -> Result<()> {
        let mut progress = job.progress.lock();
        let done = std::mem::take(&mut progress.done);
        let error = progress.error.take();
        let rest = progress.stages.rest();
        assert!(error.is_some() || progress.stages.are_installed(), "no stage is missing");
        let read_bytes = job.plan.input_bytes - progress.read_counted;
        let uncounted = MergeWork { read_bytes, cpu_nanos: progress.cpu_nanos };
        let rested = progress.rested_nanos;
        drop(progress);
        if let Some(error) = error {
            let tables = done.iter().flat_map(|(_, done)| &done.tables);
            self.discard(&tables.map(|meta| meta.id).collect::<Vec<_>>());
            return Err(error);
        }
        assert!(done.is_empty(), "all parts are installed");
        // Stages installed at the same time leave what waited for both.
        if !rest.is_empty() {
            self.replace(job, Vec::new(), rest.clone())?;
            let gone = job.progress.lock().take_removed(&rest);
            self.note_replaced(job, &[], gone, true);
        }
        let nanos = self.env.clock.now_nanos() - job.started;
        // About how fast it could have been: parts that run side by side rest side by side.
        self.throttle.note_compaction(job.plan.input_bytes, nanos - rested.min(nanos / 2));
        job.tree.levels.lock().merged(&job.plan, nanos, uncounted);
        Ok(())
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
