//! The locks of a transaction: asked for, waited for, given up.

use super::options::{Isolation, LockMode};
use super::txn::Transaction;
use crate::base::error::{Error, Result};
use crate::base::sync::Arc;
use crate::db::api::Tree;
use crate::txn::{Interrupt, Lock, Mode, Refusal, Span, Wait};
use crate::version::TreeId;

impl Transaction {
    pub(super) fn wait(&self) -> Wait {
        let nanos = self.options.lock_timeout.as_nanos().min(u64::MAX.into()) as u64;
        if nanos == 0 {
            Wait::Never
        } else if self.core().stepped {
            Wait::Step
        } else {
            Wait::Nanos(nanos)
        }
    }

    /// From now on `interrupt` ends its waits for locks while it is set.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let stop = shaledb::Interrupt::default();
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.set_interrupt(&stop);
    /// txn.put(&tree, b"a", b"1")?; // nobody is in the way: the flag does not matter
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn set_interrupt(&mut self, interrupt: &Interrupt) {
        self.owner.interrupt = Some(interrupt.clone());
    }

    /// Undoes [`Transaction::set_interrupt`]: from now on nothing but its time limit ends its waits
    /// for locks.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// use shaledb::{Error, Interrupt, TransactionOptions};
    /// use std::time::Duration;
    ///
    /// let mut holder = db.begin(TransactionOptions::default())?;
    /// holder.put(&tree, b"a", b"1")?;
    /// let stop = Interrupt::default();
    /// let lock_timeout = Duration::from_millis(1);
    /// let mut txn = db.begin(TransactionOptions { lock_timeout, ..Default::default() })?;
    /// txn.set_interrupt(&stop);
    /// stop.set(true);
    /// assert!(matches!(txn.put(&tree, b"a", b"2"), Err(Error::Interrupted { .. })));
    /// txn.clear_interrupt();
    /// assert!(matches!(txn.put(&tree, b"a", b"2"), Err(Error::LockTimeout { .. })));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn clear_interrupt(&mut self) {
        self.owner.interrupt = None;
    }

    /// How long its calls wait for a lock from now on; zero does not wait. So a statement that is
    /// to skip what others have locked sets zero, and takes [`Error::LockTimeout`] for an answer.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let jobs = db.tree_or_create("jobs")?;
    /// # for key in [b"1", b"2"] { jobs.put(key, b"")?; }
    /// use std::time::Duration;
    ///
    /// let options = shaledb::TransactionOptions::default();
    /// let (mut one, mut two) = (db.begin(options)?, db.begin(options)?);
    /// one.get_for_update(&jobs, b"1")?;
    /// two.set_lock_timeout(Duration::ZERO);
    /// let free = [b"1", b"2"].iter().find(|key| two.get_for_update(&jobs, **key).is_ok());
    /// assert_eq!(free, Some(&b"2"));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn set_lock_timeout(&mut self, timeout: std::time::Duration) {
        self.options.lock_timeout = timeout;
    }

    /// Locks a key, there or not, as [`Transaction::get_for_share`] or
    /// [`Transaction::get_for_update`] does, but does not look it up. So many keys are locked one
    /// by one, and then looked up together by [`Transaction::multi_get_locked`].
    ///
    /// # Errors
    /// As those calls: those of locks; [`Error::Conflict`] if the lock is exclusive and the key has
    /// been changed since the transaction's snapshot (see [`OnConflict`](crate::OnConflict)).
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// use shaledb::{LockMode, TransactionOptions};
    /// use std::time::Duration;
    ///
    /// let options = TransactionOptions { lock_timeout: Duration::ZERO, ..Default::default() };
    /// let (mut one, mut two) = (db.begin(options)?, db.begin(options)?);
    /// one.lock(&tree, b"a", LockMode::Shared)?;
    /// two.lock(&tree, b"a", LockMode::Shared)?;
    /// assert!(two.put(&tree, b"a", b"1").is_err());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn lock(&mut self, tree: &Tree, key: &[u8], mode: LockMode) -> Result<()> {
        self.check(tree)?;
        self.protect(tree, Span::Key(key), mode.as_mode())?;
        if mode == LockMode::Exclusive && !self.is_optimistic() {
            self.check_unchanged(tree, Span::Key(key))?;
        }
        Ok(())
    }

    /// Gives up the lock of a key that the last locking read of it (or [`Transaction::lock`]) has
    /// taken, as for a row that does not match after all; answers whether nothing of it is left. It
    /// does so at [`Isolation::ReadCommitted`] only, and of a key that was not written. A lock that
    /// the key had before that read it keeps: one that was shared is so again. Locks of gaps stay.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # tree.put(b"a", b"1")?;
    /// use shaledb::{Isolation, TransactionOptions};
    ///
    /// let isolation = Isolation::ReadCommitted;
    /// let mut txn = db.begin(TransactionOptions { isolation, ..TransactionOptions::default() })?;
    /// assert!(txn.get_for_update(&tree, b"a")?.unwrap() != b"2");
    /// assert!(txn.unlock(&tree, b"a")?);
    /// assert!(!txn.unlock(&tree, b"a")?); // it holds it no more
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn unlock(&mut self, tree: &Tree, key: &[u8]) -> Result<bool> {
        self.check(tree)?;
        if self.options.isolation != Isolation::ReadCommitted {
            return Ok(false);
        }
        let locks = &self.handle.core.locks;
        Ok(locks.give_up_last(&mut self.owner, tree.id(), key))
    }

    /// Escalates locks: makes ranges of its locks of keys, from one key to the next that it has
    /// locked, where nobody else holds or waits for anything in between. Answers whether it has
    /// fewer locks now. Escalation happens by itself when a transaction holds more than is left for
    /// others, so that a transaction of any size finds room for its locks. A range also locks what
    /// is between the keys, and [`Transaction::unlock`] does not release it.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// for n in 0..1_000u32 {
    ///     txn.put(&tree, &n.to_be_bytes(), b"")?;
    /// }
    /// assert!(txn.escalate_locks()?);
    /// assert_eq!(db.locks(10)?.len(), 1);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn escalate_locks(&mut self) -> Result<bool> {
        self.alive()?;
        Ok(self.handle.core.locks.escalate(&mut self.owner, 2))
    }

    /// Locks keys for a pessimistic transaction.
    pub(super) fn lock_span(&mut self, tree: &Tree, span: Span<'_>, mode: Mode) -> Result<()> {
        self.lock_with(tree.id(), span, mode, self.wait())
    }

    pub(super) fn lock_with(
        &mut self,
        tree: TreeId,
        span: Span<'_>,
        mode: Mode,
        wait: Wait,
    ) -> Result<()> {
        let lock = Lock { tree, span, mode };
        let core = &self.handle.core;
        match core.locks.acquire(&mut self.owner, lock, wait, &*core.env.clock) {
            Ok(()) => Ok(()),
            Err(refusal) => Err(self.refused(lock, refusal)),
        }
    }

    /// As [`Transaction::protect`], of a row and the gap that it is in, together.
    pub(super) fn protect_row(
        &mut self,
        tree: &Tree,
        gap: Span<'_>,
        row: &[u8],
        mode: Mode,
    ) -> Result<()> {
        if self.is_optimistic() {
            self.protect(tree, gap, Mode::Gap)?;
            return self.protect(tree, Span::Key(row), mode);
        }
        let wait = self.wait();
        let gap = Lock { tree: tree.id(), span: gap, mode: Mode::Gap };
        let row = Lock { tree: tree.id(), span: Span::Key(row), mode };
        let core = &self.handle.core;
        match core.locks.acquire_row(&mut self.owner, gap, row, wait, &*core.env.clock) {
            Ok(()) => Ok(()),
            Err(refusal) => Err(self.refused(row, refusal)),
        }
    }

    /// Locks gaps of which a scan is going to make use, if nobody is in the way; answers with the
    /// number of the claim.
    pub(super) fn claim(&mut self, tree: &Tree, lower: &[u8], upper: &[u8]) -> Result<u64> {
        let core = &self.handle.core;
        let clock = &*core.env.clock;
        match core.locks.claim(&mut self.owner, tree.id(), (lower, upper), clock) {
            Ok(number) => Ok(number),
            Err(refusal) => {
                let span = Span::Range(lower, Some(upper));
                let lock = Lock { tree: tree.id(), span, mode: Mode::Gap };
                Err(self.refused(lock, refusal))
            }
        }
    }

    /// Gives up what was claimed of a tree and has not been used.
    pub(super) fn give_up_claim(&mut self, tree: TreeId) {
        self.handle.core.locks.give_up_claim(&mut self.owner, tree);
    }

    #[cold]
    fn refused(&mut self, lock: Lock<'_>, refusal: Refusal) -> Error {
        let words = |lock: Lock<'_>| self.core().lock_text(lock);
        match refusal {
            Refusal::Timeout { holder } => Error::LockTimeout {
                lock: words(lock),
                holder,
                limit_millis: self.options.lock_timeout.as_millis() as u64,
            },
            Refusal::Interrupted { .. } if self.core().locks.is_closed() => Error::Closed,
            Refusal::Interrupted { holder } => Error::Interrupted { lock: words(lock), holder },
            Refusal::Queued { holder } => Error::LockQueued { lock: words(lock), holder },
            Refusal::Full { bytes_max } => Error::LocksFull { bytes_max },
            Refusal::Deadlock(report) => {
                let error = Error::Deadlock(std::sync::Arc::new(self.core().deadlock(&report)));
                self.end();
                self.over = Some(Arc::new(error.clone()));
                error
            }
        }
    }
}
