//! Committing and rolling back what is prepared.

use super::names::not_prepared;
use crate::base::activity::Activity;
use crate::base::error::Result;
use crate::db::core::Core;

impl Core {
    /// Of what is prepared under this name only what is to be written stays locked.
    pub fn release_reads(&self, xid: &[u8]) -> Result<()> {
        let mut all = self.prepared.lock();
        let prepared = all.get_mut(xid).ok_or_else(|| not_prepared(xid))?;
        self.locks.release_reads(&mut prepared.owner);
        Ok(())
    }

    /// Commits what is prepared under this name, or rolls it back.
    pub fn decide(&self, xid: &[u8], commit: bool, sync: bool) -> Result<()> {
        self.check_writable()?;
        let logged = self.prepared.lock().get(xid).map(|p| p.logged().is_some());
        if !logged.ok_or_else(|| not_prepared(xid))? {
            return if commit { self.commit_tables(xid) } else { self.rollback_tables(xid) };
        }
        let started = if commit { self.tables.meter.begin(Activity::Write) } else { None };
        // It does not wait for room: the prepare has, when it could still be refused.
        let mut leader = self.leader.lock();
        self.check_writable()?;
        let mut prepared = self.decide_locked(&mut leader, xid, commit)?;
        drop(leader);
        self.locks.release(&mut prepared.owner);
        if commit || prepared.blobs.is_empty() {
            self.sync_if(sync)?;
            self.tables.meter.end(Activity::Write, started);
            return Ok(());
        }
        // If a crash took the rollback, it would be prepared again and need its blobs.
        self.sync_commits()?;
        prepared.blobs.iter().for_each(|blob| blob.mark_obsolete());
        Ok(())
    }
}
