//! Waiting for background work, closing.

use super::core::{Core, Leader, TreeCore};
use super::sched::State;
use super::work::Manual;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::compaction::manual::Step;
use crate::compaction::plan::{Busy, Load};
use crate::compaction::policy;
use crate::memtable::Memtable;
use crate::table::meta::FileId;
use crate::version::edit::Edit;
use crate::wal::payload;
use std::time::Duration;

const WAIT: Duration = Duration::from_millis(100);

/// Whether a table above the last level has keys of the range committed up to `through`.
fn has_older_above(tree: &TreeCore, wanted: &Manual, through: SeqNo) -> bool {
    let version = tree.state.load().version.clone();
    version.tables().any(|(level, table)| {
        let meta = &table.meta;
        level < policy::LAST
            && meta.min_seq <= through
            && wanted.lower.as_deref().is_none_or(|lower| !meta.is_before(lower))
            && wanted.upper.as_deref().is_none_or(|upper| meta.smallest.as_slice() < upper)
    })
}

impl Core {
    /// Writes memtables to tables and waits until that is done.
    pub fn flush(&self, only: Option<&TreeCore>) -> Result<()> {
        self.check_writable()?;
        self.seal_all(only)?;
        // Only what is sealed now is waited for, so that a stream of writes cannot keep us here.
        let trees = self.trees.load_full();
        let waiting: Vec<(Arc<TreeCore>, Arc<Memtable>)> = trees
            .by_id
            .values()
            .filter(|tree| only.is_none_or(|only| only.id == tree.id))
            .filter_map(|tree| Some((tree.clone(), tree.state.load().sealed.first()?.clone())))
            .collect();
        self.wait_until(|| {
            waiting.iter().all(|(tree, newest)| {
                tree.is_dropped()
                    || !tree.state.load().sealed.iter().any(|held| Arc::ptr_eq(held, newest))
            })
        })
    }

    /// Waits until `done`, running background work here if it is stepped. A failure of background
    /// work that happens meanwhile ends the wait.
    pub fn wait_until(&self, done: impl Fn() -> bool) -> Result<()> {
        let failures = |state: &State| (state.flush_failure.total, state.compaction_failure.total);
        let before = failures(&self.sched.lock());
        loop {
            if done() {
                return Ok(());
            }
            self.check_writable()?;
            let state = self.sched.lock();
            let (flushes, compactions) = (&state.flush_failure, &state.compaction_failure);
            let news = failures(&state) != before;
            let failure = flushes.error.as_ref().or(compactions.error.as_ref());
            if let Some(error) = failure.filter(|_| news) {
                return Err(error.clone());
            }
            if !self.stepped {
                drop(self.sched.wait_for_progress(state, WAIT));
                continue;
            }
            let failure = failure.cloned();
            drop(state);
            match (self.next_job(), failure) {
                (Some(job), _) => self.run_job(job)?,
                (None, Some(error)) => return Err(error),
                // Nothing can be done now; time must pass (a simulated clock moves by sleeping).
                (None, None) => self.env.clock.sleep_nanos(1_000_000),
            }
        }
    }

    /// Brings a range of a tree to the last level.
    pub fn compact(&self, tree: &TreeCore, wanted: Manual) -> Result<()> {
        self.flush(Some(tree))?;
        // One request at a time per tree.
        loop {
            let mut manual = tree.manual.lock();
            if manual.is_none() {
                *manual = Some(wanted.clone());
                break;
            }
            drop(manual);
            self.wait_until(|| tree.manual.lock().is_none())?;
        }
        // What is committed from now on is not waited for: writes may never stop.
        let through = self.visible.load(Ordering::Acquire);
        self.sched.want_look(tree.id);
        let result = self.wait_until(|| {
            if tree.is_dropped() {
                return true;
            }
            let snapshots = self.reader_seqs_to_keep();
            let load = Load { idle: true, snapshots: &snapshots, range_deletes: None };
            let state = self.sched.lock();
            if state.busy.get(&tree.id).is_some_and(|busy| !busy.is_empty()) {
                return false;
            }
            match self.manual_step(tree, &Busy::new(), &wanted, &load) {
                Step::Done => true,
                Step::Wait => false,
                Step::Run(plan) => {
                    let above = |(level, _): &(usize, Vec<_>)| *level < policy::LAST;
                    plan.inputs.iter().any(above) && !has_older_above(tree, &wanted, through)
                }
            }
        });
        *tree.manual.lock() = None;
        self.sched.want_look(tree.id);
        self.sched.wake_all();
        result
    }

    pub fn wait_idle(&self) -> Result<()> {
        self.flush(None)?;
        {
            let mut state = self.sched.lock();
            state.idle_wanted += 1;
            state.look.extend(self.trees.load().by_id.keys());
        }
        self.sched.wake_all();
        let result = self.wait_until(|| self.sched.lock().is_settled());
        self.sched.lock().idle_wanted -= 1;
        result
    }

    /// Ends background work: running jobs stop early, none is started any more.
    pub fn stop_background(&self) {
        self.sched.lock().closing = true;
        self.sched.cancel.store(true, Ordering::Relaxed);
        self.sched.wake_all();
    }

    /// Makes the log durable, marks it as complete, and lets go of the directory. An error also if
    /// an earlier failure has kept commits from becoming durable.
    pub fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            let _first = self.leader.lock();
            return self.check_kept();
        }
        let mut leader = self.leader.lock();
        let ended = if self.read_only || self.is_poisoned() {
            self.check_kept().map(|()| None)
        } else {
            self.end_log(&mut leader)
        };
        leader.wal = None;
        if let Some(spare) = self.spare_log.lock().take() {
            // Empty; if it stays, the next open removes it.
            let _ = self.env.fs.remove(spare.path());
        }
        let last_seq = Some(leader.next_seq - 1);
        drop(leader);
        let mut result = ended.as_ref().map(|_| ()).map_err(Error::clone);
        if let (Some(mut manifest), Ok(log_end)) = (self.manifest.lock().take(), ended)
            && !self.is_poisoned()
        {
            // A mark at the end: damage of what is before it cannot pass for a torn last edit, nor
            // the end of the log for one that was never durable.
            result = manifest.append(&Edit { last_seq, log_end, ..Edit::default() });
        }
        *self.lock.lock() = None;
        self.sched.wake_all();
        result
    }

    /// Makes the log durable and marks its end; answers with its last file and that one's length.
    fn end_log(&self, leader: &mut Leader) -> Result<Option<(FileId, u64)>> {
        let through = leader.next_seq - 1;
        self.sync_log(leader, through)?;
        let Some(wal) = leader.wal.as_mut() else { return Ok(None) };
        let mut mark = Vec::new();
        wal.framer().frame(&mut mark, |out| payload::begin(out, through + 1, through));
        wal.append(&mark)?;
        wal.sync()?;
        Ok(Some((wal.id(), wal.bytes())))
    }

    /// After a failure: an error if something that was committed is not known to be durable.
    fn check_kept(&self) -> Result<()> {
        let (durable, visible) = (&self.durable, &self.visible);
        match self.guard.check() {
            Err(_) if durable.load(Ordering::Acquire) >= visible.load(Ordering::Acquire) => Ok(()),
            other => other,
        }
    }
}
