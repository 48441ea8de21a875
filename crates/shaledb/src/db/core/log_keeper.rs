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
        self.wait_on(&self.called, |state| &mut state.is_called)
    }

    /// Prepares a piece of each of the logs, and has the other thread do what that leaves for
    /// later: not only at the end, since a writer that keeps pace never lets this one rest. Only
    /// logs that wish more are left: who holds one last may have to cut its file.
    pub fn prepare(&self, logs: &mut Vec<Arc<dyn Preparer>>) {
        logs.retain(|log| log.prepare());
        self.call_later();
    }

    /// Wakes the thread that does what may be late. Not for each write.
    pub fn call_later(&self) {
        self.state.lock().is_called_later = true;
        self.called_later.notify_one();
    }

    /// As [`LogKeeper::wait`], for what may be late.
    pub fn wait_later(&self) -> Option<Vec<Arc<dyn Preparer>>> {
        self.wait_on(&self.called_later, |state| &mut state.is_called_later)
    }

    fn wait_on(
        &self,
        called: &Condvar,
        is_called: fn(&mut Kept) -> &mut bool,
    ) -> Option<Vec<Arc<dyn Preparer>>> {
        let mut state = self.state.lock();
        while !*is_called(&mut state) && !state.has_ended {
            state = called.wait(state);
        }
        *is_called(&mut state) = false;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A log whose writer keeps pace with the thread ahead of it.
    struct Hungry;

    impl Preparer for Hungry {
        fn takes_wish(&self) -> bool {
            true
        }

        fn prepare(&self) -> bool {
            true
        }

        fn clear(&self) -> bool {
            true
        }
    }

    #[test]
    fn what_may_be_late_is_done_while_a_writer_keeps_pace() {
        let keeper = LogKeeper::default();
        keeper.keep(Some(Arc::new(Hungry)));
        keeper.call();
        let mut logs = keeper.wait().expect("it was called");
        for _ in 0..3 {
            keeper.prepare(&mut logs);
            assert_eq!(logs.len(), 1, "it wishes more");
            assert!(keeper.state.lock().is_called_later);
            assert_eq!(keeper.wait_later().map(|logs| logs.len()), Some(1));
        }
    }
}
