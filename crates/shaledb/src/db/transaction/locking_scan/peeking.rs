//! Scans that show what others have locked instead of waiting for it.

use super::state::{LockingScan, Position};
use crate::base::error::Result;
use crate::db::transaction::txn::Transaction;
use crate::txn::Span;
#[cfg(doc)]
use crate::{Error, Isolation};

impl LockingScan {
    /// From now on, or not any more, rows that others have locked are shown as they were last
    /// committed, without a wait and without a lock: [`LockingScan::is_locked`] says so. Who wants
    /// such a row calls [`LockingScan::lock_row`], who does not goes on. So a change passes over
    /// what it has no use for. At [`Isolation::ReadCommitted`] only; elsewhere it changes nothing.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b"] { tree.put(key, b"1")?; }
    /// # use shaledb::{Isolation, LockMode, ScanOptions, TransactionOptions};
    /// let isolation = Isolation::ReadCommitted;
    /// let options = TransactionOptions { isolation, ..TransactionOptions::default() };
    /// let (mut other, mut txn) = (db.begin(options)?, db.begin(options)?);
    /// other.put(&tree, b"a", b"2")?;
    /// let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Exclusive)?;
    /// scan.peek_locked(true);
    /// assert!(scan.next(&mut txn)?);
    /// assert_eq!((scan.key(), scan.value(), scan.is_locked()), (&b"a"[..], &b"1"[..], false));
    /// other.commit(shaledb::WriteOptions::default())?;
    /// assert!(scan.lock_row(&mut txn)?);
    /// assert_eq!((scan.value(), scan.is_locked()), (&b"2"[..], true));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn peek_locked(&mut self, peeks: bool) {
        self.peeks = peeks;
    }

    /// Whether the row that it is at is locked: always, but after [`LockingScan::peek_locked`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # tree.put(b"a", b"1")?;
    /// # use shaledb::{LockMode, ScanOptions, TransactionOptions};
    /// let mut txn = db.begin(TransactionOptions::default())?;
    /// let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Shared)?;
    /// assert!(!scan.is_locked());
    /// scan.next(&mut txn)?;
    /// assert!(scan.is_locked());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn is_locked(&self) -> bool {
        matches!(self.position, Position::Row(_)) && !self.unlocked
    }

    /// Locks the row that it is at, if it only shows it, and shows it as it is then; false if it is
    /// not there any more.
    ///
    /// # Errors
    /// Those of locks, after which the scan is where it was.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # tree.put(b"a", b"1")?;
    /// # use shaledb::{Isolation, LockMode, ScanOptions, TransactionOptions};
    /// let isolation = Isolation::ReadCommitted;
    /// let options = TransactionOptions { isolation, ..TransactionOptions::default() };
    /// let (mut other, mut txn) = (db.begin(options)?, db.begin(options)?);
    /// other.delete(&tree, b"a")?;
    /// let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Exclusive)?;
    /// scan.peek_locked(true);
    /// assert!(scan.next(&mut txn)?);
    /// other.commit(shaledb::WriteOptions::default())?;
    /// assert!(!scan.lock_row(&mut txn)?);
    /// assert!(!scan.next(&mut txn)?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn lock_row(&mut self, transaction: &mut Transaction) -> Result<bool> {
        self.check(transaction)?;
        let Position::Row(key) = &self.position else { return Ok(false) };
        if !self.unlocked {
            return Ok(true);
        }
        transaction.protect(&self.tree, Span::Key(key), self.lock_mode())?;
        let newest = transaction.read_at(&self.tree, key, None)?;
        if newest.is_none() {
            transaction.unlock(&self.tree, key)?;
        }
        self.unlocked = newest.is_none();
        Ok(newest.map(|value| self.show(&value)).is_some())
    }

    fn show(&mut self, value: &[u8]) {
        self.value.clear();
        self.value.extend_from_slice(value);
    }

    /// Comes to a row that another has locked, as it was last committed; false if it was not there.
    pub(super) fn peek(&mut self, transaction: &Transaction, row: Option<Vec<u8>>) -> Result<bool> {
        let Some(key) = row.filter(|_| !self.skips) else { return Ok(false) };
        let Some(value) = transaction.read_at(&self.tree, &key, None)? else { return Ok(false) };
        self.show(&value);
        debug_assert!(self.has(&key), "a row is within bounds");
        (self.position, self.unlocked) = (Position::Row(key), true);
        Ok(true)
    }
}
