//! Asking for background work and waiting for it.

use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::compaction::manual::Step;
use crate::compaction::plan::{Busy, Load};
use crate::compaction::policy;
use crate::db::core::{Core, Manual, State, TreeCore};
use crate::memtable::Memtable;
use crate::version::TreeId;
use std::time::Duration;

const WAIT: Duration = Duration::from_millis(100);

/// Whether a table above the last level has keys of the range committed up to `through`.
fn has_older_above(tree: &TreeCore, wanted: &Manual, through: SeqNo) -> bool {
    let version = tree.state.load().version.clone();
    version.tables().any(|(level, table)| {
        let meta = &table.meta;
        level < policy::LAST
            && meta.min_seq <= through
            && meta.meets(wanted.lower.as_deref(), wanted.upper.as_deref())
    })
}

/// What a caller waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaited {
    Flushes,
    /// Those of this tree.
    CompactionsOf(TreeId),
    All,
}

impl Awaited {
    /// The error of the last try, if it failed.
    fn failure(self, state: &State) -> Option<&Error> {
        let flushes = state.flush_failure.error.as_ref();
        match self {
            Awaited::Flushes => flushes,
            Awaited::CompactionsOf(tree) => state.failed.get(&tree).map(|(error, _)| error),
            Awaited::All => flushes.or(state.compaction_failure.error.as_ref()),
        }
    }

    /// Differs once there has been another failure.
    fn failures(self, state: &State) -> (u64, u64) {
        match self {
            Awaited::Flushes => (state.flush_failure.total, 0),
            Awaited::CompactionsOf(tree) => (0, state.failed.get(&tree).map_or(0, |(_, at)| *at)),
            Awaited::All => (state.flush_failure.total, state.compaction_failure.total),
        }
    }
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
        self.wait_until(Awaited::Flushes, || {
            waiting.iter().all(|(tree, newest)| {
                tree.is_dropped()
                    || !tree.state.load().sealed.iter().any(|sealed| Arc::ptr_eq(sealed, newest))
            })
        })
    }

    /// Waits until `done`, running background work here if it is stepped. A failure of what is
    /// `awaited` that happens meanwhile ends the wait; other work is tried again by itself.
    pub fn wait_until(&self, awaited: Awaited, done: impl Fn() -> bool) -> Result<()> {
        if done() { Ok(()) } else { self.sched.waiting_while(|| self.wait_for(awaited, done)) }
    }

    fn wait_for(&self, awaited: Awaited, done: impl Fn() -> bool) -> Result<()> {
        let before = awaited.failures(&self.sched.lock());
        loop {
            if done() {
                return Ok(());
            }
            self.check_writable()?;
            let state = self.sched.lock();
            let failure = awaited.failure(&state);
            let news = awaited.failures(&state) != before;
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
                // If it is awaited, its failure is found above.
                (Some(job), _) => drop(self.run_job(job)),
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
            self.wait_until(Awaited::CompactionsOf(tree.id), || tree.manual.lock().is_none())?;
        }
        // What is committed from now on is not waited for: writes may never stop.
        let through = self.visible.load(Ordering::Acquire);
        self.sched.want_look(tree.id);
        let without_room = AtomicBool::new(false);
        let result = self.wait_until(Awaited::CompactionsOf(tree.id), || {
            if tree.is_dropped() {
                return true;
            }
            let snapshots = self.reader_seqs_to_keep();
            let space = self.pick_space();
            let load = Load { idle: true, snapshots: &snapshots, range_deletes: None, space };
            let mut state = self.sched.lock();
            if state.busy.get(&tree.id).is_some_and(|busy| !busy.is_empty()) {
                return false;
            }
            match self.manual_step(tree, &Busy::new(), &wanted, &load) {
                Step::Done => true,
                // Nothing is in the way: there is no room, and nothing that makes any.
                Step::Wait
                    if space.room < u64::MAX && state.nothing_runs() && !self.tables.has_gone() =>
                {
                    without_room.store(true, Ordering::Relaxed);
                    true
                }
                Step::Wait => false,
                Step::Run(plan) => {
                    let above = |(level, _): &(usize, Vec<_>)| *level < policy::LAST;
                    let done =
                        plan.inputs.iter().any(above) && !has_older_above(tree, &wanted, through);
                    if !done && space.room < u64::MAX && state.look.insert(tree.id) {
                        // Whoever looked before found no room.
                        drop(state);
                        self.sched.wake_all();
                    }
                    done
                }
            }
        });
        *tree.manual.lock() = None;
        self.sched.want_look(tree.id);
        self.sched.wake_all();
        // Whoever has waited for the end finds the inputs' files gone.
        self.tables.remove_gone();
        if without_room.into_inner() {
            return result.and(Err(self.space().refusal(self.settings.table_bytes)));
        }
        result
    }

    pub fn wait_idle(&self) -> Result<()> {
        self.flush(None)?;
        {
            let mut state = self.sched.lock();
            state.idle_wanted += 1;
            self.codec_price.want();
            state.look.extend(self.trees.load().by_id.keys());
        }
        self.sched.wake_all();
        let result = self.wait_until(Awaited::All, || self.sched.lock().is_idle());
        self.sched.lock().idle_wanted -= 1;
        self.tables.remove_gone();
        result
    }

    /// Ends background work: running jobs stop early, none is started any more.
    pub fn stop_background(&self) {
        self.sched.lock().closing = true;
        self.sched.cancel.store(true, Ordering::Relaxed);
        self.sched.wake_all();
        self.log_keeper.end();
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "on_request_tests.rs"]
mod tests;
