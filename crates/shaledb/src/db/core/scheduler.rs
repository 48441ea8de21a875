//! What background work is wanted and what runs: a value under one lock, changed in small steps.
//! Threads (or the stepping caller) ask `background/next_job` for the next job; nothing here does
//! any work.

use super::merge_job::MergeJob;
use crate::base::error::Error;
use crate::base::key::SeqNo;
use crate::base::rank;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::base::sync::{Arc, Condvar, Mutex, MutexGuard};
use crate::compaction::idle::IDLE_AFTER_NANOS;
use crate::compaction::plan::Busy;
use crate::version::TreeId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// How much of its level 0 and of other levels a tree has to compact.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TreeDebt {
    pub level0_tables: usize,
    pub level0_bytes: u64,
    /// What has been flushed to it since the database was opened.
    pub flushed_bytes: u64,
    pub bytes: u64,
    /// The debts from which writers are slowed, and at which they are slowed most.
    pub soft: u64,
    pub hard: u64,
    /// The room that the table needs which needs the most to go down by itself.
    pub merge_needs: u64,
}

/// How one kind of background work fares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure {
    /// The error of the last try, if it failed.
    pub error: Option<Error>,
    /// When to try again, in clock nanoseconds.
    pub again: u64,
    /// How often in a row it has failed.
    pub in_a_row: u32,
    /// How often it has failed since the database was opened.
    pub total: u64,
}

impl Failure {
    /// Notes how a job ended. After a failure the next try comes after a while that doubles up to
    /// ten seconds.
    pub fn note(&mut self, result: &Result<(), Error>, now: u64) {
        match result {
            Ok(()) => {
                self.error = None;
                self.in_a_row = 0;
                self.again = 0;
            }
            Err(error) => {
                self.error = Some(error.clone());
                self.in_a_row += 1;
                self.total += 1;
                let wait = 50_000_000u64 << self.in_a_row.min(8);
                self.again = now + wait.min(10_000_000_000);
            }
        }
    }
}

#[derive(Default)]
pub(crate) struct State {
    /// Trees with sealed memtables.
    pub flush: BTreeSet<TreeId>,
    pub flushing: BTreeSet<TreeId>,
    /// Trees whose shape, load or snapshots have changed since the picker found nothing to do.
    pub look: BTreeSet<TreeId>,
    /// Of these, trees that have nothing due: there may be work for an idle time.
    pub idle_look: BTreeSet<TreeId>,
    /// The tree of the last compaction: the next ones have their turn first.
    pub turn: TreeId,
    /// What running compactions have reserved, by tree.
    pub busy: BTreeMap<TreeId, Busy>,
    /// Parts of compactions that wait for a thread.
    pub parts: VecDeque<(Arc<MergeJob>, usize)>,
    pub running_compactions: usize,
    pub debts: BTreeMap<TreeId, TreeDebt>,
    /// By tree, the merge under way that makes its level 0 smaller.
    pub level0_merges: BTreeMap<TreeId, Arc<MergeJob>>,
    pub flush_failure: Failure,
    pub compaction_failure: Failure,
    /// Trees whose last compaction has failed: the error, and the total of failures with it.
    pub failed: BTreeMap<TreeId, (Error, u64)>,
    /// Trees of which no compaction may start.
    pub held: BTreeMap<TreeId, usize>,
    /// Whether a log file is to be made in advance.
    pub spare_log_wanted: bool,
    /// Whether memtables are to be sealed, since their flush makes room on the disk.
    pub seal_wanted: bool,
    /// Whether old logs may have become free that no flush takes with it.
    pub old_logs_wanted: bool,
    /// How many jobs run that do what one of these two asks for.
    pub making_room: usize,
    /// When room may be asked for again, in clock nanoseconds.
    pub room_again: u64,
    /// What there was when room was asked for last: the last commit, and the oldest one that a
    /// reader sees.
    pub room_asked: (SeqNo, SeqNo),
    pub closing: bool,
    /// How many callers want the best shape for reading now.
    pub idle_wanted: usize,
    /// The count of writes when last looked at, and since when it has not changed.
    seen_writes: u64,
    quiet_since: u64,
    /// Whether the present quiet time has been acted on.
    pub quiet_handled: bool,
}

impl State {
    /// Whether nothing runs and nothing is wanted that could run now: trees that are held have to
    /// wait for who holds them.
    pub fn is_idle(&self) -> bool {
        let mut looks = self.look.iter().chain(&self.idle_look);
        let waits = |id: &TreeId| self.held.contains_key(id);
        self.flush.is_empty() && looks.all(waits) && self.nothing_runs()
    }

    fn looked_at(&self) -> bool {
        self.look.is_empty() && self.idle_look.is_empty()
    }

    /// Whether work is under way, or may begin at once, that may make room on the disk.
    pub fn makes_room(&self) -> bool {
        let flushes = !self.flush.is_empty() || !self.flushing.is_empty() || self.seal_wanted;
        let may_begin = |id: &TreeId| !self.failed.contains_key(id) && !self.held.contains_key(id);
        !self.closing
            && (flushes && self.flush_failure.error.is_none()
                || self.old_logs_wanted
                || self.making_room > 0
                || self.running_compactions > 0
                || !self.parts.is_empty()
                || self.look.iter().chain(&self.idle_look).any(may_begin))
    }

    /// Whether a thread that has nothing to do should look for a job.
    pub fn has_work(&self) -> bool {
        self.closing
            || self.spare_log_wanted
            || self.seal_wanted
            || self.old_logs_wanted
            || !(self.flush.is_empty() && self.looked_at() && self.parts.is_empty())
    }

    pub fn nothing_runs(&self) -> bool {
        self.flushing.is_empty() && self.running_compactions == 0 && self.parts.is_empty()
    }
}

pub(crate) struct Scheduler {
    state: Mutex<State, { rank::SCHEDULER }>,
    /// Wakes threads that wait for work.
    work: Condvar,
    /// Wakes callers that wait for background work to get somewhere.
    progress: Condvar,
    writes: AtomicU64,
    /// How many callers wait for background work to get somewhere.
    waiting: AtomicUsize,
    /// How many writers wait for room on the disk.
    pub room_waited_for: AtomicUsize,
    /// Set when the database closes, so that long jobs end early.
    pub cancel: AtomicBool,
}

impl Scheduler {
    pub fn new() -> Scheduler {
        Scheduler {
            state: Mutex::new(State::default()),
            work: Condvar::new(),
            progress: Condvar::new(),
            writes: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            room_waited_for: AtomicUsize::new(0),
            cancel: AtomicBool::new(false),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Runs `wait` as a caller who waits for background work.
    pub fn waiting_while<T>(&self, wait: impl FnOnce() -> T) -> T {
        struct Waits<'a>(&'a AtomicUsize);
        impl Drop for Waits<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waits = Waits(&self.waiting);
        // More threads may merge now.
        self.work.notify_all();
        let done = wait();
        drop(waits);
        done
    }

    /// Counts the caller among the writers that wait for room on the disk, until it is dropped.
    pub fn wait_for_room(&self) -> WaitsForRoom<'_> {
        self.room_waited_for.fetch_add(1, Ordering::Relaxed);
        WaitsForRoom(&self.room_waited_for)
    }

    /// Whether anyone waits for background work to get somewhere.
    pub fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Counts a write, for telling when they stop. Called by the leader only.
    #[inline]
    pub fn note_write(&self) {
        let writes = self.writes.load(Ordering::Relaxed);
        self.writes.store(writes + 1, Ordering::Relaxed);
    }

    pub fn want_flushes(&self, trees: impl IntoIterator<Item = TreeId>) {
        self.state.lock().flush.extend(trees);
        self.work.notify_one();
    }

    pub fn want_spare_log(&self) {
        self.state.lock().spare_log_wanted = true;
        self.work.notify_one();
    }

    /// Whether a log file is wanted in advance that nobody else makes.
    pub fn takes_wish_for_log(&self) -> bool {
        let mut state = self.state.lock();
        !state.closing && std::mem::take(&mut state.spare_log_wanted)
    }

    pub fn want_old_logs_freed(&self) {
        self.state.lock().old_logs_wanted = true;
        self.work.notify_one();
    }

    pub fn want_look(&self, tree: TreeId) {
        self.state.lock().look.insert(tree);
        self.work.notify_one();
    }

    pub fn want_looks(&self, trees: impl Iterator<Item = TreeId>) {
        self.state.lock().look.extend(trees);
        self.work.notify_one();
    }

    /// Wakes every thread and every waiting caller.
    pub fn wake_all(&self) {
        self.work.notify_all();
        self.progress.notify_all();
    }

    pub fn wake_worker(&self) {
        self.work.notify_one();
    }

    /// Waits for work to be wanted, for at most `limit`.
    pub fn wait_for_work<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        limit: Duration,
    ) -> MutexGuard<'a, State> {
        self.work.wait_timeout(state, limit)
    }

    /// Waits for a job to end, for at most `limit`.
    pub fn wait_for_progress<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        limit: Duration,
    ) -> MutexGuard<'a, State> {
        self.progress.wait_timeout(state, limit)
    }

    /// Whether no write has come for [`IDLE_AFTER_NANOS`], as of `now`.
    pub fn is_quiet(&self, state: &mut State, now: u64) -> bool {
        let writes = self.writes.load(Ordering::Relaxed);
        if writes != state.seen_writes || state.quiet_since == 0 {
            state.seen_writes = writes;
            state.quiet_since = now;
            state.quiet_handled = false;
        }
        now.saturating_sub(state.quiet_since) >= IDLE_AFTER_NANOS
    }
}

/// A writer that waits for room on the disk.
pub(crate) struct WaitsForRoom<'a>(&'a AtomicUsize);

impl Drop for WaitsForRoom<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
