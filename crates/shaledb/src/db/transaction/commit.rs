//! The commit of a transaction. A pessimistic one holds locks on all that it writes and commits as
//! a batch does. An optimistic one is checked, and the check and the commit are one step of the
//! commit order: see docs/decisions/0006-transactions.md.
//!
//! Locks end before the sync, so that those who wait for a row share the next sync with each other.
//! Whoever relies on what was written is behind it in the log.

use super::options::{Isolation, OnConflict};
use super::txn::Transaction;
use crate::base::activity::Activity;
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SeqNo};
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::db::api::{Batch, Prepared, Tree};
use crate::db::core::{Core, Leader, TreeCore};
use crate::db::options::WriteOptions;
use crate::read::conflict::Scope;
use crate::txn::{Mode, Span, Wait};
use crate::version::TreeId;
use crate::write::ops::Ops;
use std::collections::BTreeSet;

impl Transaction {
    /// Makes all that was written visible, at one position in the commit order. It is durable on
    /// return if the options say so. Many that commit at once share a sync.
    ///
    /// # Errors
    /// [`Error::Conflict`] for an optimistic transaction that others were in the way of;
    /// [`Error::NoSuchTree`] if a tree was dropped that it has written to; what a write may fail
    /// with. The transaction has then been rolled back, but for a failure after which its outcome
    /// is not known ([`Error::Poisoned`]).
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let (users, emails) = (db.tree_or_create("users")?, db.tree_or_create("emails")?);
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&users, b"7", b"ada@example.org")?;
    /// txn.put(&emails, b"ada@example.org", b"7")?;
    /// txn.commit(shaledb::WriteOptions::SYNC)?;
    /// assert_eq!(emails.get(b"ada@example.org")?.unwrap(), b"7");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn commit(mut self, options: WriteOptions) -> Result<()> {
        self.alive()?;
        if self.writes.is_empty() {
            return self.commit_nothing(options);
        }
        if self.writes.has_runs() {
            return self.commit_spilled();
        }
        let optimistic = self.is_optimistic();
        if optimistic {
            self.lock_all()?;
        }
        let batch = self.batch()?;
        if batch.is_empty() {
            // All that counts as written was undone, or forgotten with its tree.
            return self.commit_nothing(options);
        }
        self.check_trees()?;
        let since = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.seq());
        let core = &self.handle.core;
        let started = core.store_large(&batch, |ops| {
            let started = core.tables.meter.begin(Activity::Write);
            if optimistic {
                let check = |searched, since: Option<SeqNo>| self.check_all(searched, since);
                core.commit_checked(ops, &self.touched(), since, &check, &mut |leader| {
                    core.commit_locked(leader, ops)
                })?;
            } else {
                core.commit_unsynced(ops)?;
            }
            Ok(started)
        })?;
        core.locks.release(&mut self.owner);
        core.sync_if(options.sync)?;
        core.tables.meter.end(Activity::Write, started);
        Ok(())
    }

    /// Makes the transaction durable without committing it: after this it can be committed and
    /// rolled back, whatever happens to the process or the machine meanwhile. `xid` names it, in 1
    /// to 256 bytes; after a crash [`Db::prepared`](crate::Db::prepared) finds it. Its locks stay
    /// (after a crash, those of what it has written). Until it is decided its writes count against
    /// no bound on memory, and the log is kept; but those of one that did not fit its memory are in
    /// tables, as after a commit, and nothing of them is in the log. It waits for flushes that lag,
    /// as a commit does; what is prepared is then committed without waiting for them.
    ///
    /// # Errors
    /// As [`Transaction::commit`]; [`Error::InvalidArgument`] if the name is empty or too long, or
    /// another transaction is prepared under it.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// let prepared = txn.prepare(b"order 17")?;
    /// prepared.commit(shaledb::WriteOptions::default())?;
    /// assert!(tree.get(b"a")?.is_some());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn prepare(self, xid: &[u8]) -> Result<Prepared> {
        self.prepare_with(xid, WriteOptions::SYNC)
    }

    /// As [`Transaction::prepare`]; without a sync a crash of the machine may undo it, and what was
    /// done later without one, up to the next sync (see [`Db::sync`](crate::Db::sync)). One that
    /// did not fit its memory is durable whatever is asked for.
    ///
    /// # Errors
    /// As [`Transaction::prepare`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// txn.prepare_with(b"order 17", shaledb::WriteOptions::default())?;
    /// assert_eq!(db.prepared()?.len(), 1);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn prepare_with(mut self, xid: &[u8], options: WriteOptions) -> Result<Prepared> {
        self.alive()?;
        let handle = self.handle.clone();
        let core = &handle.core;
        core.check_writable()?;
        core.check_xid(xid)?;
        if self.writes.has_runs() {
            self.prepare_spilled(xid)?;
            return Ok(Prepared::new(handle.clone(), xid));
        }
        if self.is_optimistic() {
            self.lock_reads()?;
            self.lock_all()?;
        }
        let batch = self.batch()?;
        self.check_trees()?;
        let since = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.seq());
        let touched = self.touched();
        let optimistic = self.is_optimistic();
        let mut owner = std::mem::replace(&mut self.owner, core.locks.owner());
        let result = core.store_large(&batch, |ops| {
            let started = core.tables.meter.begin(Activity::Write);
            let mut prepare =
                |leader: &mut Leader| core.prepare_locked(leader, xid, ops, &mut owner);
            if optimistic {
                let check = |searched, since: Option<SeqNo>| self.check_all(searched, since);
                core.commit_checked(ops, &touched, since, &check, &mut prepare)?;
            } else {
                core.check_commit(ops)?;
                let _room = core.wait_for_room(ops)?;
                let mut leader = core.leader.lock();
                core.check_writable()?;
                prepare(&mut leader)?;
            }
            Ok(started)
        });
        assert!(result.is_err() || owner.keys() == 0, "what is prepared has the locks");
        // With its locks, if they were not handed over.
        core.locks.release(&mut owner);
        let started = result?;
        core.sync_if(options.sync)?;
        core.tables.meter.end(Activity::Write, started);
        Ok(Prepared::new(handle.clone(), xid))
    }

    /// Locks what an optimistic transaction has read, so that it stays so while it is prepared.
    fn lock_reads(&mut self) -> Result<()> {
        let keys: Vec<_> = self.reads.keys().map(|(id, key)| (id, key.to_vec())).collect();
        let ranges: Vec<_> = self.reads.ranges().map(|(id, range)| (id, range.clone())).collect();
        for (id, key) in &keys {
            self.lock_now(*id, Span::Key(key), Mode::Shared)?;
        }
        for (id, (lower, upper)) in &ranges {
            self.lock_now(*id, Span::Range(lower, upper.as_deref()), Mode::Shared)?;
        }
        Ok(())
    }

    /// Locks without waiting; who is in the way is a conflict.
    fn lock_now(&mut self, tree: TreeId, span: Span<'_>, mode: Mode) -> Result<()> {
        match self.lock_with(tree, span, mode, Wait::Never) {
            Err(Error::LockTimeout { lock, holder, .. }) => {
                let what = format!("transaction {holder} blocks {lock}");
                Err(Error::Conflict { what })
            }
            other => other,
        }
    }

    /// The trees that it has to do with.
    fn touched(&self) -> BTreeSet<TreeId> {
        let read = self.reads.keys().map(|(tree, _)| tree);
        let ranges = self.reads.ranges().map(|(tree, _)| tree);
        self.trees.keys().copied().chain(read).chain(ranges).collect()
    }

    /// Refuses to write to trees that were dropped.
    pub(super) fn check_trees(&self) -> Result<()> {
        self.core().check_open()?;
        match self.trees.values().find(|tree| tree.is_dropped()) {
            Some(tree) => Err(Error::NoSuchTree(tree.name.clone())),
            None => Ok(()),
        }
    }

    /// All that is to be committed, with its trees only if large values ask for their settings.
    fn batch(&self) -> Result<Batch> {
        let of = |inner: &Arc<TreeCore>| Tree { handle: self.handle.clone(), inner: inner.clone() };
        let trees = if self.large { self.trees.values().map(of).collect() } else { Vec::new() };
        Ok(Batch { ops: self.writes.ops()?, trees, has_large: self.large, refused: None })
    }

    /// Locks what an optimistic transaction has written, so that those who rely on locks are not
    /// overrun; without waiting.
    fn lock_all(&mut self) -> Result<()> {
        let mut wanted: Vec<(TreeId, Kind, Vec<u8>, Vec<u8>)> = Vec::new();
        self.writes.each(&mut |tree, kind, key, value| {
            let end = if kind == Kind::RangeDelete { value.to_vec() } else { Vec::new() };
            wanted.push((tree, kind, key.to_vec(), end));
            Ok(())
        })?;
        wanted.iter().try_for_each(|(tree, kind, key, end)| {
            let span = match kind {
                Kind::RangeDelete => Span::Range(key, Some(end)),
                _ => Span::Key(key),
            };
            self.lock_now(*tree, span, Mode::Write)
        })
    }

    /// What it has read was so at one moment: its snapshot, or now, since it holds locks. What was
    /// read for update is looked at: if none of it has changed, neither had what was looked at
    /// first when the last was.
    fn commit_nothing(&self, options: WriteOptions) -> Result<()> {
        if self.reads_for_update && self.is_optimistic() {
            self.check_all(Scope::All, None)?;
        }
        if options.sync { self.core().sync_commits() } else { Ok(()) }
    }

    /// Looks whether anything that counts was changed after `since`, or else after the snapshot.
    fn check_all(&self, scope: Scope, since: Option<SeqNo>) -> Result<()> {
        let snapshot = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.seq());
        let since = since.unwrap_or(snapshot);
        let tree_of = |id| self.core().trees.load().by_id.get(&id).cloned();
        let check = |id, span: Span<'_>| match tree_of(id) {
            // A tree that was dropped is read no more.
            None => Ok(()),
            Some(inner) => {
                let tree = Tree { handle: self.handle.clone(), inner };
                self.check_since(&tree, span, since, scope)
            }
        };
        for (id, key) in self.reads.keys() {
            check(id, Span::Key(key))?;
        }
        for (id, (lower, upper)) in self.reads.ranges() {
            check(id, Span::Range(lower, upper.as_deref()))?;
        }
        let first_wins = match self.options.isolation {
            Isolation::ReadCommitted => false,
            Isolation::RepeatableRead => self.options.on_conflict == OnConflict::Error,
            // What was written without having been read may be overwritten.
            Isolation::Serializable => false,
        };
        if !first_wins {
            return Ok(());
        }
        self.writes.each(&mut |id, kind, key, value| match kind {
            Kind::RangeDelete => check(id, Span::Range(key, Some(value))),
            _ => check(id, Span::Key(key)),
        })
    }
}

/// How often a check is made again because tables came in between, before it counts as a conflict.
const TRIES: u32 = 100;

impl Core {
    /// Does `act` under the leader's lock if `check` finds nothing in the way: first anywhere,
    /// then, under that lock, in memtables, of what was committed since.
    fn commit_checked(
        &self,
        ops: &Ops,
        touched: &BTreeSet<TreeId>,
        since: SeqNo,
        check: &dyn Fn(Scope, Option<SeqNo>) -> Result<()>,
        act: &mut dyn FnMut(&mut Leader) -> Result<()>,
    ) -> Result<()> {
        self.check_commit(ops)?;
        let _room = self.wait_for_room(ops)?;
        for _ in 0..TRIES {
            let seen = self.visible.load(Ordering::Acquire);
            check(Scope::All, None)?;
            let mut leader = self.leader.lock();
            self.check_writable()?;
            assert!(seen < leader.next_seq, "what is visible has a number");
            if leader.next_seq - 1 > seen {
                // In this order: what a flush takes from the memtables meanwhile, without this
                // lock, is in tables by then.
                check(Scope::Memtables, Some(seen))?;
                if self.has_newer_tables(touched, seen) {
                    continue;
                }
            }
            return act(&mut leader);
        }
        let what = format!(
            "the check for changes after the transaction's snapshot (sequence number {since}) was \
             given up, because new tables were written during each of {TRIES} tries"
        );
        Err(Error::Conflict { what })
    }

    fn has_newer_tables(&self, touched: &BTreeSet<TreeId>, seq: SeqNo) -> bool {
        let trees = self.trees.load();
        touched
            .iter()
            .filter_map(|id| trees.by_id.get(id))
            .any(|tree| tree.state.load().version.max_seq() > seq)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "commit_tests.rs"]
mod tests;
