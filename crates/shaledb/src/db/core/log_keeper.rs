//! Which log files are prepared ahead of their writer, for the threads that do it: one that writers
//! may come to wait for, and one that does what may take long.

use crate::base::rank;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Arc, Condvar, Mutex};
use crate::fs::Preparer;

/// The log files of a database as its threads for logs see them.
#[derive(Default)]
pub(crate) struct LogKeeper {
    state: Mutex<Kept, { rank::LOG_KEEPER }>,
    called: Condvar,
    /// For the thread that does what may be late.
    called_later: Condvar,
    /// How many bytes the last log was given from one sync to the next.
    pace: AtomicU64,
}

#[derive(Default)]
struct Kept {
    logs: Vec<Arc<dyn Preparer>>,
    /// Whether there has been a call since the thread last looked, and since the other one did.
    is_called: bool,
    is_called_later: bool,
    has_ended: bool,
}

impl LogKeeper {
    /// Notes how many bytes a log that is full was given from one sync to the next.
    pub fn note_pace(&self, bytes: u64) {
        self.pace.store(bytes, Ordering::Relaxed);
    }

    /// The same of the last log that was full; 0 before.
    pub fn pace(&self) -> u64 {
        self.pace.load(Ordering::Relaxed)
    }

    /// Prepares this log from now on, until its writer has gone.
    pub fn keep(&self, log: Option<Arc<dyn Preparer>>) {
        let Some(log) = log else { return };
        let mut state = self.state.lock();
        if !state.has_ended {
            state.logs.push(log);
        }
    }

    /// Wakes the thread: a log wishes something, or its writer has gone.
    pub fn call(&self) {
        self.state.lock().is_called = true;
        self.called.notify_one();
    }

    /// Ends the thread, and lets go of all logs.
    pub fn end(&self) {
        let mut state = self.state.lock();
        state.has_ended = true;
        let logs = std::mem::take(&mut state.logs);
        drop(state);
        self.called.notify_one();
        self.called_later.notify_one();
        drop(logs);
    }

    /// Waits for a call; answers with the logs, or `None` at the end.
    pub fn wait(&self) -> Option<Vec<Arc<dyn Preparer>>> {
        let mut state = self.state.lock();
        while !state.is_called && !state.has_ended {
            state = self.called.wait(state);
        }
        state.is_called = false;
        (!state.has_ended).then(|| state.logs.clone())
    }

    /// Wakes the thread that does what may be late. Not for writers: one call wakes one thread.
    pub fn call_later(&self) {
        self.state.lock().is_called_later = true;
        self.called_later.notify_one();
    }

    /// As [`LogKeeper::wait`], for what may be late.
    pub fn wait_later(&self) -> Option<Vec<Arc<dyn Preparer>>> {
        let mut state = self.state.lock();
        while !state.is_called_later && !state.has_ended {
            state = self.called_later.wait(state);
        }
        state.is_called_later = false;
        (!state.has_ended).then(|| state.logs.clone())
    }

    /// Lets go of a log whose writer has gone. What that does to the file is done by the caller's
    /// thread, when `log` goes.
    pub fn forget(&self, log: &Arc<dyn Preparer>) {
        let mut state = self.state.lock();
        let found = state.logs.iter().position(|kept| Arc::ptr_eq(kept, log));
        let kept = found.map(|index| state.logs.swap_remove(index));
        drop(state);
        drop(kept);
    }
}
