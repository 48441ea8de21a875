//! The only file that spawns threads: workers that run background jobs, one that works ahead of the
//! log's writers and one that clears up behind them, and a timer for logs that are synced every so
//! often.

use super::next_job::{Job, Next};
use crate::base::config::SyncPolicy;
use crate::base::error::{Error, Result};
use crate::base::sync::Arc;
use crate::db::core::Core;
use crate::fs::Preparer;
use crate::memtable::chunk;
use crate::table::gone;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often an idle worker looks whether writes have stopped.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How many cores this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The running threads of a database.
pub(crate) struct Threads {
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// No threads.
    pub fn none() -> Threads {
        Threads { handles: Vec::new() }
    }

    /// Starts the workers (and the timer, if one is needed). After an error the database is closed:
    /// threads that run would work on, and hold its lock, for as long as the process lives.
    pub fn start(core: &Arc<Core>) -> Result<Threads> {
        let mut threads = Threads::none();
        let started = threads.start_all(core);
        if started.is_err() {
            core.stop_background();
            threads.join();
            if let Err(error) = core.close() {
                tracing::warn!(%error, "closing after a thread could not be started failed");
            }
        }
        started.map(|()| threads)
    }

    fn start_all(&mut self, core: &Arc<Core>) -> Result<()> {
        core.tables.wake_helpers_by(if_open(core, |core| core.sched.wake_worker()));
        core.tables.wake_remover_by(if_open(core, |core| core.log_keeper.call_later()));
        for index in 0..core.settings.background_threads {
            let core = core.clone();
            self.spawn(format!("shale-work-{index}"), move || or_poison(&core, || work(&core)))?;
        }
        let kept = core.clone();
        self.spawn("shale-ahead".to_owned(), move || or_poison(&kept, || work_ahead(&kept)))?;
        let kept = core.clone();
        self.spawn("shale-behind".to_owned(), move || work_behind(&kept))?;
        if let SyncPolicy::EveryMillis(millis) = core.settings.sync {
            let core = core.clone();
            let every = Duration::from_millis(millis.into());
            self.spawn("shale-sync".to_owned(), move || {
                or_poison(&core, || sync_every(&core, every));
            })?;
        }
        Ok(())
    }

    fn spawn(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> Result<()> {
        let run = move || {
            gone::engines_own_thread();
            run();
        };
        let handle = spawn_thread(name, run).map_err(|error| {
            Error::io("start a background thread for", std::path::Path::new("."), error)
        })?;
        self.handles.push(handle);
        Ok(())
    }

    /// Forgets threads that are another process's.
    pub fn forget(&mut self) {
        std::mem::take(&mut self.handles).into_iter().for_each(std::mem::forget);
    }

    /// Waits for all threads to end. They end once background work has been stopped.
    pub fn join(&mut self) {
        let own = std::thread::current().id();
        for handle in self.handles.drain(..) {
            // The last handle of a database may be dropped by one of its own threads.
            if handle.thread().id() != own && handle.join().is_err() {
                tracing::error!("a background thread panicked");
            }
        }
    }
}

#[cfg(not(all(test, not(feature = "shuttle"))))]
fn spawn_thread(
    name: String,
    run: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name).spawn(run)
}

#[cfg(all(test, not(feature = "shuttle")))]
use tests::spawn_thread;

/// Calls this as long as the database is there.
fn if_open(core: &Arc<Core>, call: fn(&Core)) -> impl Fn() + Send + Sync + 'static {
    let core = Arc::downgrade(core);
    move || {
        if let Some(core) = core.upgrade() {
            call(&core);
        }
    }
}

fn work(core: &Core) {
    loop {
        if let Some(job) = core.next_job() {
            run(core, job);
            continue;
        }
        if core.sched.lock().closing {
            return;
        }
        if help_readers(core) {
            continue;
        }
        let mut state = core.sched.lock();
        if state.closing {
            return;
        }
        // What was wanted since the look above has woken nobody: this one waits only now.
        match core.next_job_in(&mut state) {
            Next::Job(job) => {
                drop(state);
                run(core, job);
                continue;
            }
            Next::LookOn => continue,
            Next::Nothing => {}
        }
        let wait = || drop(core.sched.wait_for_work(state, LOOK_EVERY));
        core.tables.helpers.idle_while(wait);
    }
}

fn run(core: &Core, job: Job) {
    // A failure has been noted and is tried again later.
    or_poison(core, || drop(core.run_job(job)));
}

/// Does this. After a panic the marks of what was under way stay set for ever, and nobody may be
/// there to do what comes next: whoever waits for it must learn that it will not end.
fn or_poison(core: &Core, work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        drop(core.poison_after_panic());
        core.sched.wake_all();
    }
}

/// Shares the work of a reader who has asked for help, until there is work of one's own. Whether
/// anyone had asked.
fn help_readers(core: &Core) -> bool {
    let Some(work) = core.tables.helpers.take() else { return false };
    let until = core.env.clock.now_nanos() + LOOK_EVERY.as_nanos() as u64;
    // After a panic the reader does the same himself, and learns of it.
    let help = || catch_unwind(AssertUnwindSafe(|| work.help())).unwrap_or(false);
    while help() && core.env.clock.now_nanos() < until && !core.sched.lock().has_work() {}
    work.leave();
    true
}

/// Works ahead of writers: pages of the log, memory for memtables. A thread of its own, which
/// sleeps nearly always, so that no merge keeps a writer waiting.
fn work_ahead(core: &Core) {
    while let Some(mut logs) = core.log_keeper.wait() {
        loop {
            chunk::refill();
            core.log_keeper.prepare(&mut logs);
            if logs.is_empty() {
                break;
            }
        }
    }
}

/// Does behind writers what may take long: mappings go back, the device writes, files are cut, and
/// behind readers: files are removed. It makes the next log file, too. A thread of its own, so that
/// none of that makes the one ahead late.
fn work_behind(core: &Core) {
    or_poison(core, || {
        while let Some(logs) = core.log_keeper.wait_later() {
            work_behind_once(core, logs);
        }
    });
    core.tables.remove_last_gone();
}

fn work_behind_once(core: &Core, logs: Vec<Arc<dyn Preparer>>) {
    // Workers may be busy for as long as a log lasts, and then a writer would make the next.
    if core.sched.takes_wish_for_log() && !core.is_poisoned() {
        drop(core.run_job(Job::SpareLog));
    }
    for log in logs {
        if !log.clear() {
            core.log_keeper.forget(&log);
        }
    }
    // One by one: each takes long.
    if core.tables.remove_one_gone() {
        core.log_keeper.call_later();
        if core.space().is_limited() {
            core.sched.want_looks(core.trees.load().by_id.keys().copied());
            core.sched.wake_all();
        }
    }
}

fn sync_every(core: &Core, every: Duration) {
    loop {
        let next = core.env.clock.now_nanos() + every.as_nanos() as u64;
        loop {
            let state = core.sched.lock();
            if state.closing {
                return;
            }
            let left = next.saturating_sub(core.env.clock.now_nanos());
            if left == 0 {
                break;
            }
            // Closing ends the wait.
            drop(core.sched.wait_for_progress(state, Duration::from_nanos(left)));
        }
        if core.sync_commits().is_err() && core.check_writable().is_err() {
            return;
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "threads_tests.rs"]
mod tests;

#[cfg(all(test, feature = "shuttle"))]
#[path = "threads_shuttle_tests.rs"]
mod shuttle_tests;
