//! What to do next. Looks at the scheduler's state and at the trees' shapes, marks the job it
//! chooses as running, and answers with it. Threads and the stepping caller run what they get, by
//! `run_job`.

use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::compaction::manual::{self, Step};
use crate::compaction::picker;
use crate::compaction::plan::{self, Load, Plan};
use crate::db::core::{Core, Manual, MergeJob, State, TreeCore};
use crate::memtable::Memtable;
use crate::version::TreeId;
use std::ops::Bound;

/// The most trees that are flushed together: each has a file open until it is synced.
const FLUSH_TREES_MAX: usize = 128;

/// How often a tree is looked at again because a snapshot that was in the way has ended meanwhile:
/// not without end, since it is under the scheduler's lock.
const LOOKS: u32 = 3;

/// How many trees are looked at before others may have the scheduler's lock.
const TREES_AT_ONCE: usize = 32;
/// And for how long it is left to them, in nanoseconds.
const LET_GO_NANOS: u64 = 50_000;

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
    /// Seals what is left in memtables, since writes have stopped or room has to be made.
    SealAll,
    /// Makes a log file in advance.
    SpareLog,
    /// Removes old logs that no flush has taken with it.
    FreeLogs,
}

/// What there is to do.
pub(crate) enum Next {
    /// This, which is marked as running.
    Job(Job),
    /// Nothing now.
    Nothing,
    /// That is not known yet: not all trees were looked at.
    LookOn,
}

impl Core {
    /// The next job, marked as running; `None` if there is nothing to do now.
    pub fn next_job(&self) -> Option<Job> {
        self.renew_codecs();
        loop {
            match self.next_job_in(&mut self.sched.lock()) {
                Next::Job(job) => return Some(job),
                Next::Nothing => return None,
                Next::LookOn => {}
            }
            if !self.stepped {
                // Who waits for the lock is woken by its release, and would come too late.
                self.env.clock.sleep_nanos(LET_GO_NANOS);
            }
        }
    }

    /// As [`Core::next_job`], for who holds the scheduler's lock, which is to be let go if there is
    /// more to look at: thousands of trees take long.
    pub fn next_job_in(&self, state: &mut State) -> Next {
        let now = self.env.clock.now_nanos();
        // A poisoned database can install nothing, and keeps what it has tried to install.
        if state.closing || self.read_only || self.is_poisoned() {
            return Next::Nothing;
        }
        if let Some(job) = self.next_chore(state, now) {
            return Next::Job(job);
        }
        let quiet = self.sched.is_quiet(state, now);
        if quiet && !state.quiet_handled {
            state.quiet_handled = true;
            self.codec_price.want();
            state.look.extend(self.trees.load().by_id.keys());
            state.making_room += 1;
            return Next::Job(Job::SealAll);
        }
        if state.running_compactions >= self.merges_max(state, now) {
            return Next::Nothing;
        }
        if let Some((job, index)) = state.parts.pop_front() {
            assert!(index < job.parts.len(), "a job has the part that waits");
            state.running_compactions += 1;
            return Next::Job(Job::Part(job, index));
        }
        let waits = now < state.compaction_failure.again;
        let idle = quiet || state.idle_wanted > 0;
        self.next_compaction(state, idle, waits)
    }

    /// What comes before all merges, and is wanted.
    fn next_chore(&self, state: &mut State, now: u64) -> Option<Job> {
        if now >= state.flush_failure.again
            && let Some(trees) = self.next_flush(state)
        {
            return Some(Job::Flush(trees));
        }
        if std::mem::take(&mut state.spare_log_wanted) {
            return Some(Job::SpareLog);
        }
        if std::mem::take(&mut state.seal_wanted) {
            state.making_room += 1;
            return Some(Job::SealAll);
        }
        if std::mem::take(&mut state.old_logs_wanted) {
            state.making_room += 1;
            return Some(Job::FreeLogs);
        }
        None
    }

    /// Every thread may compact: a merge runs a flush that waits at its yield points, so no thread
    /// need be kept free for one.
    pub fn compactions_max(&self) -> usize {
        self.settings.background_threads
    }

    /// What a writer may have to wait for, marked as running, for the yield points of a merge: a
    /// flush that waits for a thread, or the next log file.
    pub fn urgent_job(&self) -> Option<Job> {
        let mut state = self.sched.lock();
        if (state.flush.is_empty() && !state.spare_log_wanted)
            || state.closing
            || self.is_poisoned()
        {
            return None;
        }
        if self.env.clock.now_nanos() >= state.flush_failure.again
            && let Some(trees) = self.next_flush(&mut state)
        {
            return Some(Job::Flush(trees));
        }
        std::mem::take(&mut state.spare_log_wanted).then_some(Job::SpareLog)
    }

    /// One tree that has much in sealed memtables, or some that have little.
    fn next_flush(&self, state: &mut State) -> Option<Vec<Arc<TreeCore>>> {
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
            assert!(state.flushing.insert(id), "a tree has one flush at a time");
            chosen.push(tree.clone());
            bytes += own;
            if bytes >= self.settings.memtable_full_bytes || chosen.len() == FLUSH_TREES_MAX {
                break;
            }
        }
        (!chosen.is_empty()).then_some(chosen)
    }

    /// Trees take turns, since one may have work all the time; and what an idle time is good for
    /// comes after what is due in all others.
    fn next_compaction(&self, state: &mut State, idle: bool, waits: bool) -> Next {
        let mut left = TREES_AT_ONCE;
        let mut found = self.next_of(state, false, waits, &mut left);
        if !idle {
            state.idle_look.clear();
        } else if found.is_none() && left > 0 {
            found = self.next_of(state, true, waits, &mut left);
        }
        let Some((tree, plan)) = found else {
            return if left == 0 { Next::LookOn } else { Next::Nothing };
        };
        state.busy.entry(tree.id).or_default().start(&plan);
        state.turn = tree.id;
        state.running_compactions += 1;
        Next::Job(Job::Compact(tree, Box::new(plan)))
    }

    /// Trees whose last compaction has failed come last, and not at all while failures wait for
    /// their next try: a damaged table of one tree must not keep others from being compacted. Looks
    /// at no more trees than `left`, and counts them off.
    fn next_of(
        &self,
        state: &mut State,
        idle: bool,
        waits: bool,
        left: &mut usize,
    ) -> Option<(Arc<TreeCore>, Plan)> {
        let trees = self.trees.load();
        let seen: &State = state;
        let set = if idle { &seen.idle_look } else { &seen.look };
        let in_turn = || {
            let after = set.range((Bound::Excluded(seen.turn), Bound::Unbounded));
            let all = after.chain(set.range(..=seen.turn)).copied();
            all.filter(|id| !seen.held.contains_key(id))
        };
        let failed = |id: &TreeId| seen.failed.contains_key(id);
        let again = in_turn().filter(|id| !waits && failed(id));
        let mut last = None;
        let looks: Vec<_> = in_turn().filter(|id| !failed(id)).chain(again).take(*left).collect();
        for id in looks {
            *left -= 1;
            last = Some(id);
            let tree = trees.by_id.get(&id);
            let plan =
                tree.and_then(|tree| self.pick(tree, state.busy.entry(id).or_default(), idle));
            if let Some(found) = tree.cloned().zip(plan) {
                return Some(found);
            }
            if idle {
                state.idle_look.remove(&id);
            } else {
                state.look.remove(&id);
                state.idle_look.insert(id);
            }
        }
        // Others may want all looks again before the next of these.
        if let Some(last) = last.filter(|_| *left == 0) {
            state.turn = last;
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
            let space = self.pick_space();
            let settings = self.pick_settings(tree, space);
            // Damage there is reported by the job that reads the table.
            let range_deletes = version.range_deletes().ok();
            let range_deletes = range_deletes.map(|set| &**set);
            let load = Load { idle, snapshots: &snapshots, range_deletes, space };
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
        let settings = self.pick_settings(tree, load.space);
        if tree.is_building() {
            // What it has cannot be brought into its last shape yet.
            return match wanted.for_room {
                true => manual::pick_room_beneath(&shape, &settings, busy, load.space),
                false => Step::Done,
            };
        }
        let bounds = (wanted.lower.as_deref(), wanted.upper.as_deref());
        manual::pick_manual(&shape, &settings, busy, load, bounds)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "next_job_tests.rs"]
mod tests;
