//! Running compactions: from a plan to an installed edit.
//!
//! A compaction is cut into parts by key range, at every level, so that idle threads share it. The
//! parts of one compaction are installed together by whichever ends last: readers see all of it or
//! nothing.

use super::core::{Core, TreeCore};
use crate::base::error::{Error, Result};
use crate::base::stats::Counter;
use crate::base::sync::atomic::{AtomicUsize, Ordering};
use crate::base::sync::{Arc, Mutex};
use crate::compaction::job::{self, Context, Done};
use crate::compaction::plan::{Action, Busy, Plan};
use crate::compaction::policy;
use crate::compaction::score::Targets;
use crate::compaction::split::{self, Cuts, Part};
use crate::table::format::FileKind;
use crate::table::meta::{FileId, TableMeta};
use crate::table::{Table, TableOptions};
use crate::version::edit::TreeEdit;

/// A compaction is worth a second thread from this many input bytes on.
const PART_BYTES_MIN: u64 = 8 << 20;

/// Tables by level.
type Inputs = Vec<(usize, Vec<Arc<Table>>)>;

/// A compaction under way.
pub(crate) struct Run {
    pub tree: Arc<TreeCore>,
    pub plan: Plan,
    /// The tables of the plan, let go as soon as the outputs are installed.
    inputs: Mutex<Inputs>,
    snapshots: Vec<u64>,
    parts: Vec<Part>,
    left: AtomicUsize,
    done: Mutex<Vec<(usize, Done)>>,
    error: Mutex<Option<Error>>,
    started: u64,
}

impl Core {
    /// How tables of a level of this tree are written.
    pub fn table_options(&self, tree: &TreeCore, level: usize) -> TableOptions {
        let settings = self.pick_settings(tree);
        let shape = tree.state.load().version.shape();
        let base = Targets::of(&shape, &settings).base;
        TableOptions {
            codec: policy::codec(&tree.config.codecs, level, base),
            block_bytes: tree.config.block_bytes as usize,
            filter_bits: policy::filter_bits(tree.config.filter_bits, level),
            tree: tree.id,
        }
    }

    /// Removes files that no edit names. After a failure that leaves open whether an edit became
    /// durable they stay: the next open knows whether they are needed.
    pub fn discard(&self, ids: &[FileId]) {
        if self.is_poisoned() {
            return;
        }
        for &id in ids {
            let path = self.path(FileKind::Table, id);
            if let Err(error) = self.env.fs.remove(&path) {
                tracing::debug!(%error, "an unfinished table is left for the next open to remove");
            }
        }
    }

    /// Carries out a plan, or its first part if other threads can take the others.
    pub fn run_compaction(&self, tree: Arc<TreeCore>, plan: Plan) -> Result<()> {
        let started = self.env.clock.now_nanos();
        if plan.action != Action::Merge {
            let result = self.run_edit_only(&tree, &plan, started);
            self.end_compaction(&tree, &plan);
            return if tree.is_dropped() { Ok(()) } else { result };
        }
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
                self.end_compaction(&tree, &plan);
                return Err(error);
            }
        };
        let count = parts.len();
        let run = Arc::new(Run {
            tree,
            plan,
            inputs: Mutex::new(inputs),
            snapshots: self.reader_seqs(),
            parts,
            left: AtomicUsize::new(count),
            done: Mutex::new(Vec::new()),
            error: Mutex::new(None),
            started,
        });
        if count > 1 {
            let mut state = self.sched.lock();
            state.parts.extend((1..count).map(|index| (run.clone(), index)));
            drop(state);
            self.sched.wake_all();
        }
        self.run_part(&run, 0)
    }

    /// How many threads may share this plan now, and where it is cut for them.
    fn cut(&self, plan: &Plan, inputs: &Inputs) -> Result<Vec<Part>> {
        let free = {
            let state = self.sched.lock();
            self.compactions_max(&state).saturating_sub(state.running_compactions) + 1
        };
        if free <= 1 || plan.input_bytes < 2 * PART_BYTES_MIN {
            return Ok(vec![Part::default()]);
        }
        let tables: Vec<&Arc<Table>> = inputs.iter().flat_map(|(_, tables)| tables).collect();
        let mut cuts = Vec::new();
        for table in &tables {
            cuts.push(Cuts { table: &table.meta, keys: table.split_points(4 * free)? });
        }
        Ok(split::parts(&cuts, free, PART_BYTES_MIN))
    }

    /// Does one part; the last one to end installs all of them.
    pub fn run_part(&self, run: &Arc<Run>, index: usize) -> Result<()> {
        let clock = &*self.env.clock;
        let cpu = clock.thread_cpu_nanos();
        let failed = run.error.lock().is_some();
        let outcome = if failed { Err(Error::Closed) } else { self.merge_part(run, index) };
        self.recorder.add(Counter::CompactCpuNanos, clock.thread_cpu_nanos() - cpu);
        match outcome {
            Ok(mut done) => {
                done.cpu_nanos = clock.thread_cpu_nanos() - cpu;
                run.done.lock().push((index, done));
            }
            Err(error) => {
                run.error.lock().get_or_insert(error);
            }
        }
        if run.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            self.sched.lock().running_compactions -= 1;
            return Ok(());
        }
        let result = self.finish_run(run);
        // Before anyone learns that the compaction has ended: its inputs' files go now.
        run.inputs.lock().clear();
        self.end_compaction(&run.tree, &run.plan);
        if run.tree.is_dropped() { Ok(()) } else { result }
    }

    fn merge_part(&self, run: &Run, index: usize) -> Result<Done> {
        let inputs = run.inputs.lock().clone();
        let context = Context {
            env: &self.env,
            plan: &run.plan,
            inputs: &inputs,
            snapshots: &run.snapshots,
            tree: run.tree.id,
            codecs: &run.tree.config.codecs,
            block_bytes: run.tree.config.block_bytes as usize,
            new_file: &|| {
                let id = self.new_file();
                (id, self.path(FileKind::Table, id))
            },
            cancelled: &|| self.sched.cancel.load(Ordering::Relaxed) || run.tree.is_dropped(),
        };
        let mut written = Vec::new();
        job::merge(&context, &run.parts[index], &mut written).inspect_err(|_| {
            self.discard(&written);
        })
    }

    fn finish_run(&self, run: &Run) -> Result<()> {
        let mut done = std::mem::take(&mut *run.done.lock());
        done.sort_by_key(|(index, _)| *index);
        let outputs: Vec<TableMeta> =
            done.iter().flat_map(|(_, done)| done.tables.iter().cloned()).collect();
        let ids: Vec<FileId> = outputs.iter().map(|meta| meta.id).collect();
        if let Some(error) = run.error.lock().take() {
            self.discard(&ids);
            return Err(error);
        }
        let written = outputs.iter().map(|meta| meta.file_bytes).sum();
        let edit = TreeEdit {
            tree: run.tree.id,
            added: outputs.into_iter().map(|meta| (run.plan.output_level, meta)).collect(),
            removed: removed(&run.plan),
            flushed_seq: None,
        };
        let install = || {
            self.env.fs.sync_dir(&self.dir)?;
            self.install(&run.tree, edit, &[])
        };
        if let Err(error) = install() {
            self.discard(&ids);
            return Err(error);
        }
        let nanos = self.env.clock.now_nanos() - run.started;
        let cpu = done.iter().map(|(_, done)| done.cpu_nanos).sum();
        let dropped = done.iter().map(|(_, done)| done.entries_in - done.entries_out).sum();
        self.throttle.note_compaction(run.plan.input_bytes, nanos);
        let mut levels = run.tree.levels.lock();
        levels.merged(&run.plan, written, nanos, cpu, dropped);
        done.iter().for_each(|(_, done)| levels.carried(&run.plan, done));
        Ok(())
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

    fn end_compaction(&self, tree: &TreeCore, plan: &Plan) {
        let mut state = self.sched.lock();
        state.running_compactions -= 1;
        if let Some(busy) = state.busy.get_mut(&tree.id) {
            busy.finish(plan);
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
