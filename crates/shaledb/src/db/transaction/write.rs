//! What a transaction writes: locked first, then kept to itself until it commits.

use super::txn::Transaction;
use crate::base::error::{Error, Result};
use crate::base::key::Kind;
use crate::db::api::Tree;
use crate::read::Value;
use crate::txn::{Lock, Mode, Span, Wait};
use crate::write::ops;

impl Transaction {
    /// Sets `key` to `value`. Others see it when the transaction has committed.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the key is longer than 64 KiB or the value than 4 GiB;
    /// [`Error::TransactionFull`], see
    /// [`memory_bytes`](crate::TransactionOptions::memory_bytes); [`Error::Conflict`] if another
    /// transaction changed the key after this one's snapshot; those of locks. Nothing has been
    /// written then.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// assert!(tree.get(b"a")?.is_none());
    /// txn.commit(shaledb::WriteOptions::default())?;
    /// assert_eq!(tree.get(b"a")?.unwrap(), b"1");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(tree, Kind::Put, key, value)
    }

    /// As [`Transaction::put`], but without a lock and without a conflict check. It is for keys
    /// that another lock protects, which this transaction holds: an entry of an index is written
    /// only by those who have locked its row.
    ///
    /// # Errors
    /// As [`Transaction::put`], but for those of locks and [`Error::Conflict`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let (rows, by_name) = (db.tree_or_create("rows")?, db.tree_or_create("by name")?);
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&rows, b"7", b"ada")?;
    /// txn.put_unlocked(&by_name, b"ada 7", b"")?;
    /// assert_eq!(db.locks(10)?.len(), 1);
    /// txn.commit(shaledb::WriteOptions::default())?;
    /// assert!(by_name.get(b"ada 7")?.is_some());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn put_unlocked(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_write(tree, key, value)?;
        self.keep(tree, Kind::Put, key, value)
    }

    /// Removes `key`, if it is there.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"a", b"1")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.delete(&tree, b"a")?;
    /// assert!(txn.get(&tree, b"a")?.is_none());
    /// assert!(tree.get(b"a")?.is_some());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn delete(&mut self, tree: &Tree, key: &[u8]) -> Result<()> {
        self.write(tree, Kind::Delete, key, b"")
    }

    /// As [`Transaction::delete`], but as [`Transaction::put_unlocked`] without a lock and without
    /// a conflict check.
    ///
    /// # Errors
    /// As [`Transaction::put_unlocked`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let (rows, by_name) = (db.tree_or_create("rows")?, db.tree_or_create("by name")?);
    /// # rows.put(b"7", b"ada")?;
    /// # by_name.put(b"ada 7", b"")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.delete(&rows, b"7")?;
    /// txn.delete_unlocked(&by_name, b"ada 7")?;
    /// assert_eq!(db.locks(10)?.len(), 1);
    /// txn.commit(shaledb::WriteOptions::default())?;
    /// assert!(by_name.get(b"ada 7")?.is_none());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn delete_unlocked(&mut self, tree: &Tree, key: &[u8]) -> Result<()> {
        self.check_write(tree, key, b"")?;
        self.keep(tree, Kind::Delete, key, b"")
    }

    /// Removes every key from `start` up to, not including, `end`. The whole range is locked, rows
    /// or no rows.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.delete_range(&tree, b"a", b"c")?;
    /// txn.put(&tree, b"b", b"again")?;
    /// txn.commit(shaledb::WriteOptions::default())?;
    /// assert_eq!(tree.scan::<&[u8]>(..)?.count(), 2);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn delete_range(&mut self, tree: &Tree, start: &[u8], end: &[u8]) -> Result<()> {
        if start >= end {
            return self.check(tree);
        }
        ops::check_bounds(end, b"")?;
        self.write(tree, Kind::RangeDelete, start, end)
    }

    /// Sets `key` to `value` if it has none. Otherwise answers with the value that it has: the
    /// transaction's own, or the newest that is committed, whatever the snapshot shows. In either
    /// case the key is locked as by a write: another insert of the same key waits, and then finds
    /// it.
    ///
    /// An optimistic transaction looks at its snapshot. Its commit fails if the key has changed.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let emails = db.tree_or_create("emails")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// assert_eq!(txn.insert(&emails, b"ada@example.org", b"7")?, None);
    /// assert_eq!(txn.insert(&emails, b"ada@example.org", b"8")?.unwrap(), b"7");
    /// txn.commit(shaledb::WriteOptions::default())?;
    /// assert_eq!(emails.get(b"ada@example.org")?.unwrap(), b"7");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn insert(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<Option<Value>> {
        self.before_write(tree, Kind::Put, key, value)?;
        let existing = self.insert_locked(tree, key, value)?;
        if existing.is_some() {
            self.keep_lock(tree, key, Mode::Write);
        }
        Ok(existing)
    }

    /// As [`Transaction::insert`], for a caller who leaves an existing value as it is. Such a key
    /// is locked shared, so that others who do the same do not wait. A lock that the transaction
    /// has on it already stays.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let words = db.tree_or_create("words")?;
    /// words.put(b"a", b"1")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// let mut other = db.begin(shaledb::TransactionOptions::default())?;
    /// assert_eq!(txn.insert_or_share(&words, b"a", b"2")?.unwrap(), b"1");
    /// assert_eq!(other.insert_or_share(&words, b"a", b"3")?.unwrap(), b"1");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn insert_or_share(
        &mut self,
        tree: &Tree,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Value>> {
        if self.is_optimistic() {
            return self.insert(tree, key, value);
        }
        self.check_write(tree, key, value)?;
        let span = Span::Key(key);
        let shared = Lock { tree: tree.id(), span, mode: Mode::Shared };
        let waited = self.owner.has_asked(shared);
        let asked = (!waited).then(|| self.lock_with(tree.id(), span, Mode::Write, Wait::Never));
        match asked {
            Some(Ok(())) => {}
            None | Some(Err(Error::LockTimeout { .. })) => {
                // Perhaps it is there, and others have found it too, or wait for who inserts it.
                self.lock_span(tree, span, Mode::Shared)?;
                if let Some(existing) = self.read_at(tree, key, None)? {
                    self.check_unchanged(tree, span)?;
                    self.keep_lock(tree, key, Mode::Shared);
                    return Ok(Some(existing));
                }
                // Of two who held it shared and then asked to write one would have to give way.
                self.handle.core.locks.give_up_last(&mut self.owner, tree.id(), key);
                self.lock_span(tree, span, Mode::Write)?;
            }
            Some(Err(error)) => return Err(error),
        }
        self.check_unchanged(tree, span)?;
        let existing = self.insert_locked(tree, key, value)?;
        if existing.is_some() {
            self.keep_lock(tree, key, Mode::Shared);
        }
        Ok(existing)
    }

    fn keep_lock(&mut self, tree: &Tree, key: &[u8], mode: Mode) {
        self.handle.core.locks.keep_as(&self.owner, tree.id(), key, mode);
    }

    /// Inserts a key that is locked, unless it has a value: then answers with that.
    fn insert_locked(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<Option<Value>> {
        let mut view = None;
        if self.is_optimistic() {
            self.reads.add_key(tree.id(), key);
            self.reads_for_update = true;
            view = self.snapshot.clone();
        }
        let existing = match self.written(tree, key)? {
            Some(written) => written,
            None => self.read_at(tree, key, view.as_ref())?,
        };
        if existing.is_none() {
            self.keep(tree, Kind::Put, key, value)?;
        }
        Ok(existing)
    }

    fn write(&mut self, tree: &Tree, kind: Kind, key: &[u8], value: &[u8]) -> Result<()> {
        self.before_write(tree, kind, key, value)?;
        self.keep(tree, kind, key, value)
    }

    /// Refuses what cannot be written.
    fn check_write(&self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.check(tree)?;
        self.core().check_writable()?;
        ops::check_bounds(key, value)
    }

    /// Refuses what cannot be written, and locks it.
    fn before_write(&mut self, tree: &Tree, kind: Kind, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_write(tree, key, value)?;
        if self.is_optimistic() {
            return Ok(());
        }
        let span = match kind {
            Kind::RangeDelete => Span::Range(key, Some(value)),
            _ => Span::Key(key),
        };
        self.lock_span(tree, span, Mode::Write)?;
        self.check_unchanged(tree, span)
    }

    /// Notes a write.
    fn keep(&mut self, tree: &Tree, kind: Kind, key: &[u8], value: &[u8]) -> Result<()> {
        self.make_room(kind, key, value)?;
        self.large |=
            kind == Kind::Put && value.len() as u64 >= u64::from(tree.config().blob_bytes);
        self.writes.add(tree.id(), kind, key, value);
        self.owner.note_writes(self.writes.count(), self.writes.memory_bytes());
        self.trees.entry(tree.id()).or_insert_with(|| tree.inner.clone());
        Ok(())
    }
}
