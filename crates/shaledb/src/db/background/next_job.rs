//! What to do next. Looks at the scheduler's state and at the trees' shapes, marks the job it
//! chooses as running, and answers with it. Threads and the stepping caller run what they get.

use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::compaction::manual::{self, Step};
use crate::compaction::picker;
use crate::compaction::plan::{self, Load, Plan};
use crate::db::core::{Core, Manual, MergeJob, State, TreeCore};
use crate::memtable::Memtable;
use crate::version::TreeId;

/// The most trees that are flushed together: each has a file open until it is synced.
const FLUSH_TREES_MAX: usize = 128;

/// How often a tree is looked at again because a snapshot that was in the way has ended meanwhile:
/// not without end, since it is under the scheduler's lock.
const LOOKS: u32 = 3;

/// The bytes of a tree's sealed memtables; 0 if it has none.
fn sealed_bytes(tree: &TreeCore) -> u64 {
    let bytes = |memtable: &Arc<Memtable>| memtable.bytes().max(1) as u64;
    tree.state.load().sealed.iter().map(bytes).sum()
}

/// One piece of background work.
pub(crate) enum Job {
    /// Writes the sealed memtables of some trees to level 0.
    Flush(Vec<Arc<TreeCore>>),
    /// Starts a compaction and does its first part.
    Compact(Arc<TreeCore>, Box<Plan>),
    /// Does one more part of a compaction.
    Part(Arc<MergeJob>, usize),
    /// Seals what is left in memtables, since writes have stopped.
    SealAll,
    /// Makes a log file in advance.
    Log,
}

impl Core {
    /// The next job, marked as running; `None` if there is nothing to do now.
    pub fn next_job(&self) -> Option<Job> {
        let now = self.env.clock.now_nanos();
        let mut state = self.sched.lock();
        // A poisoned database can install nothing, and keeps what it has tried to install.
        if state.closing || self.read_only || self.is_poisoned() {
            return None;
        }
        if now >= state.flush_failure.again
            && let Some(job) = self.next_flush(&mut state)
        {
            return Some(job);
        }
        if std::mem::take(&mut state.log_wanted) {
            return Some(Job::Log);
        }
        let quiet = self.sched.is_quiet(&mut state, now);
        let idle = quiet || state.idle_wanted > 0;
        if quiet && !state.quiet_handled {
            state.quiet_handled = true;
            state.look.extend(self.trees.load().by_id.keys());
            return Some(Job::SealAll);
        }
        if state.running_compactions >= self.compactions_max() {
            return None;
        }
        if let Some((run, index)) = state.parts.pop_front() {
            state.running_compactions += 1;
            return Some(Job::Part(run, index));
        }
        let waits = now < state.compaction_failure.again;
        self.next_compaction(&mut state, idle, waits)
    }

    /// Every thread may compact: a merge stops for a flush that waits ([`Core::flush_first`]), so
    /// no thread need be kept free for one.
    pub fn compactions_max(&self) -> usize {
        self.settings.background_threads
    }

    /// Does a flush that waits for a thread, if there is one: called by a merge every few thousand
    /// rows, so that no writer waits for the end of it. Answers with the CPU time that it took,
    /// in nanoseconds.
    pub fn flush_first(&self) -> u64 {
        let job = {
            let mut state = self.sched.lock();
            if state.flush.is_empty()
                || state.closing
                || self.env.clock.now_nanos() < state.flush_failure.again
                || self.is_poisoned()
            {
                return 0;
            }
            self.next_flush(&mut state)
        };
        let Some(job) = job else { return 0 };
        let before = self.env.clock.thread_cpu_nanos();
        // A failure is noted with the scheduler, which tries again; it is none of the merge's.
        let _ = self.run_job(job);
        self.env.clock.thread_cpu_nanos() - before
    }

    /// One tree that has much in sealed memtables, or some that have little.
    fn next_flush(&self, state: &mut State) -> Option<Job> {
        let trees = self.trees.load();
        let wanted: Vec<_> = state.flush.difference(&state.flushing).copied().collect();
        let mut chosen = Vec::new();
        let mut bytes = 0;
        for id in wanted {
            let Some(tree) = trees.by_id.get(&id) else {
                state.flush.remove(&id);
                continue;
            };
            let own = sealed_bytes(tree);
            if own > 0 && !chosen.is_empty() && bytes + own > self.settings.memtable_bytes {
                continue;
            }
            state.flush.remove(&id);
            if own == 0 {
                continue;
            }
            state.flushing.insert(id);
            chosen.push(tree.clone());
            bytes += own;
            if bytes >= self.settings.memtable_bytes || chosen.len() == FLUSH_TREES_MAX {
                break;
            }
        }
        (!chosen.is_empty()).then_some(Job::Flush(chosen))
    }

    /// Trees whose last compaction has failed come last, and not at all while failures wait for
    /// their next try: a damaged table of one tree must not keep others from being compacted.
    fn next_compaction(&self, state: &mut State, idle: bool, waits: bool) -> Option<Job> {
        let trees = self.trees.load();
        let (mut looks, failed): (Vec<_>, Vec<_>) =
            state.look.iter().copied().partition(|id| !state.failed.contains(id));
        if !waits {
            looks.extend(failed);
        }
        for id in looks {
            let plan = trees.by_id.get(&id).and_then(|tree| {
                let busy = state.busy.entry(id).or_default();
                self.pick(tree, busy, idle).map(|plan| (tree.clone(), plan))
            });
            match plan {
                Some((tree, plan)) => {
                    state.busy.entry(id).or_default().start(&plan);
                    state.running_compactions += 1;
                    return Some(Job::Compact(tree, Box::new(plan)));
                }
                None => {
                    state.look.remove(&id);
                }
            }
        }
        None
    }

    fn pick(&self, tree: &TreeCore, busy: &plan::Busy, idle: bool) -> Option<Plan> {
        let mut looks = 0;
        loop {
            looks += 1;
            let again = |seen: &[SeqNo]| !self.snapshots.keep_for(seen) && looks < LOOKS;
            let version = tree.state.load().version.clone();
            // After the version: a snapshot taken later sees all range deletes that it has.
            let snapshots = self.reader_seqs();
            let shape = version.shape();
            let settings = self.pick_settings(tree);
            // Damage there is reported by the job that reads the table.
            let range_deletes = version.range_deletes().ok();
            let range_deletes = range_deletes.map(|set| &**set);
            let load = Load { idle, snapshots: &snapshots, range_deletes };
            let readers = snapshots.len() > 1;
            if let Some(wanted) = tree.manual.lock().as_ref() {
                if readers && again(&snapshots) {
                    continue;
                }
                return match self.manual_step(tree, busy, wanted, &load) {
                    Step::Run(plan) => Some(*plan),
                    Step::Wait | Step::Done => None,
                };
            }
            let plan = picker::pick(&shape, &settings, busy, &load);
            if plan.is_none() && readers {
                let newest = &snapshots[snapshots.len() - 1..];
                let without = Load { snapshots: newest, ..load };
                if picker::pick(&shape, &settings, busy, &without).is_some() && again(&snapshots) {
                    continue;
                }
            }
            return plan;
        }
    }

    /// The next step of a compaction on request.
    pub fn manual_step(
        &self,
        tree: &TreeCore,
        busy: &plan::Busy,
        wanted: &Manual,
        load: &Load<'_>,
    ) -> Step {
        let shape = tree.state.load().version.shape();
        let bounds = (wanted.lower.as_deref(), wanted.upper.as_deref());
        manual::pick_manual(&shape, &self.pick_settings(tree), busy, load, bounds)
    }

    /// What the picker is told of this tree's settings.
    pub fn pick_settings(&self, tree: &TreeCore) -> plan::Settings {
        plan::Settings {
            memtable_bytes: self.settings.memtable_bytes,
            table_bytes: self.settings.table_bytes,
            codecs: tree.config.codecs,
            filter_bits: tree.config.filter_bits,
        }
    }

    /// Runs a job to its end and says how it went. Its marks are taken back in any case.
    pub fn run_job(&self, job: Job) -> crate::Result<()> {
        let flush = matches!(job, Job::Flush(_) | Job::SealAll);
        let compacts = match &job {
            Job::Compact(tree, _) => Some(tree.id),
            Job::Part(run, _) => Some(run.tree.id),
            _ => None,
        };
        let result = match job {
            Job::Flush(trees) => {
                let result = self.run_flush(&trees.iter().map(|tree| &**tree).collect::<Vec<_>>());
                let mut state = self.sched.lock();
                for tree in trees {
                    state.flushing.remove(&tree.id);
                    if !tree.is_dropped() && !tree.state.load().sealed.is_empty() {
                        state.flush.insert(tree.id);
                    }
                }
                result.map(|()| true)
            }
            Job::Compact(tree, plan) => self.run_compaction(tree, *plan),
            Job::Part(run, index) => self.run_part(&run, index),
            Job::SealAll => self.seal_all(None).map(|()| true),
            Job::Log => {
                if let Err(error) = self.make_spare_log() {
                    tracing::debug!(%error, "no log file could be made in advance");
                }
                Ok(false)
            }
        };
        // How a compaction fares is known when its last part has ended; a log tells nothing.
        let ended = !matches!(result, Ok(false));
        let result = result.map(|_| ());
        if ended {
            self.note_outcome(&result, flush, compacts);
        }
        self.update_pressure();
        self.sched.wake_all();
        result
    }

    /// Notes how a job has ended, for its next try and for who asks.
    fn note_outcome(&self, result: &crate::Result<()>, flush: bool, compacts: Option<TreeId>) {
        let mut state = self.sched.lock();
        let closing = state.closing;
        if let Err(error) = result
            && !closing
        {
            tracing::warn!(%error, flush, "background work failed and is tried again");
        }
        match compacts {
            Some(tree) if result.is_err() => drop(state.failed.insert(tree)),
            Some(tree) => drop(state.failed.remove(&tree)),
            None => {}
        }
        if result.is_ok() || !closing {
            let now = self.env.clock.now_nanos();
            let kind = if flush { &mut state.flush_failure } else { &mut state.compaction_failure };
            kind.note(result, now);
        }
    }
}
