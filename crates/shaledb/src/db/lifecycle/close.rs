//! Closing: the log becomes durable, its end is marked, and the directory is let go of.
//!
//! Calls of other threads may be in the middle of writing files that nothing names yet: large
//! values, tables. They are not waited for, since they may take as long as their callers like. So,
//! before the lock is released, all changes of files end (`fs/changes`): such a call is refused
//! with its next one, and what it leaves behind the next open removes.

use crate::base::error::{Error, Result};
use crate::base::sync::atomic::Ordering;
use crate::db::core::{Core, Leader};
use crate::table::meta::FileId;
use crate::version::edit::Edit;
use crate::wal::payload;

impl Core {
    /// Makes the log durable, marks it as complete, and lets go of the directory: nobody makes,
    /// names or removes a file there any more. An error also if an earlier failure has kept commits
    /// from becoming durable.
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
        self.guard.end_changes();
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

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "close_tests.rs"]
mod tests;
