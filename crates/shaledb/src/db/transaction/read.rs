//! What a transaction reads: its own writes, and below them the view that its isolation gives it.

use super::options::{Isolation, LockMode};
use super::txn::Transaction;
use crate::base::error::{Error, Result};
use crate::base::key::Kind;
use crate::db::api::{ScanOptions, Snapshot, Tree};
use crate::read::conflict::{self, Scope};
use crate::read::{BlobSource, Scan, Value};
use crate::txn::write_set::Written;
use crate::txn::{Mode, Span};

impl Transaction {
    /// Takes the snapshot that plain reads see, if it is to be taken by the first of them.
    fn begin_view(&mut self) {
        let view = match self.options.isolation {
            Isolation::RepeatableRead => &mut self.snapshot,
            Isolation::ReadCommitted if self.has_statements => &mut self.statement,
            Isolation::ReadCommitted | Isolation::Serializable => return,
        };
        if view.is_none() {
            *view = Some(Snapshot::take(&self.handle.core));
        }
    }

    /// What plain reads see: a snapshot, or without one the newest that is committed.
    fn view(&self) -> Option<&Snapshot> {
        match self.options.isolation {
            Isolation::ReadCommitted => self.statement.as_ref(),
            Isolation::Serializable | Isolation::RepeatableRead => self.snapshot.as_ref(),
        }
    }

    pub(super) fn read_at(
        &self,
        tree: &Tree,
        key: &[u8],
        view: Option<&Snapshot>,
    ) -> Result<Option<Value>> {
        match view {
            Some(snapshot) => tree.get_at(key, snapshot),
            None => tree.get(key),
        }
    }

    /// What the transaction itself has made of a key; `None` if nothing.
    pub(super) fn written(&self, tree: &Tree, key: &[u8]) -> Result<Option<Option<Value>>> {
        Ok(match self.writes.get(tree.id(), key)? {
            Written::Nothing => None,
            Written::Deleted => Some(None),
            Written::Value(Kind::Blob, reference) => {
                Some(Some(Value::owned(self.core().read(&reference)?)))
            }
            Written::Value(_, value) => Some(Some(value)),
        })
    }

    /// Does what the isolation asks for before a plain read.
    fn before_read(&mut self, tree: &Tree, span: Span<'_>) -> Result<()> {
        if self.options.isolation != Isolation::Serializable {
            return Ok(());
        }
        self.keep_unchanged(tree, span, Mode::Shared)
    }

    /// Makes sure that what is read stays so until the end: by a lock or, for an optimistic
    /// transaction, by a check at commit.
    pub(super) fn protect(&mut self, tree: &Tree, span: Span<'_>, mode: Mode) -> Result<()> {
        self.reads_for_update = true;
        self.keep_unchanged(tree, span, mode)
    }

    fn keep_unchanged(&mut self, tree: &Tree, span: Span<'_>, mode: Mode) -> Result<()> {
        if !self.is_optimistic() {
            return self.lock_span(tree, span, mode);
        }
        match span {
            Span::Key(key) => self.reads.add_key(tree.id(), key),
            Span::Range(lower, upper) => self.reads.add_range(tree.id(), lower, upper),
        }
        Ok(())
    }

    /// The value of `key`: what the transaction itself has written, or else what its isolation
    /// shows.
    ///
    /// # Errors
    /// At [`Isolation::Serializable`] those of locks.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// assert_eq!(txn.get(&tree, b"a")?.unwrap(), b"1");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn get(&mut self, tree: &Tree, key: &[u8]) -> Result<Option<Value>> {
        self.check(tree)?;
        if let Some(written) = self.written(tree, key)? {
            return Ok(written);
        }
        self.before_read(tree, Span::Key(key))?;
        self.begin_view();
        self.read_at(tree, key, self.view())
    }

    /// The values of several keys, as by [`Transaction::get`] for each, but cheaper; as of one
    /// moment.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # tree.put(b"a", b"1")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"b", b"2")?;
    /// let values = txn.multi_get(&tree, &["a", "b", "c"])?;
    /// assert_eq!(values.iter().flatten().count(), 2);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &mut self,
        tree: &Tree,
        keys: &[K],
    ) -> Result<Vec<Option<Value>>> {
        self.check(tree)?;
        for key in keys {
            self.before_read(tree, Span::Key(key.as_ref()))?;
        }
        self.begin_view();
        self.read_many(tree, keys, self.view())
    }

    /// What the transaction itself has made of several keys, or else what is seen at `view`.
    fn read_many<K: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        keys: &[K],
        view: Option<&Snapshot>,
    ) -> Result<Vec<Option<Value>>> {
        let mut found = tree.multi_get_as(keys, view)?;
        for (key, value) in keys.iter().zip(&mut found) {
            if let Some(written) = self.written(tree, key.as_ref())? {
                *value = written;
            }
        }
        Ok(found)
    }

    /// Whether others have written `key` after the snapshot that plain reads see. False as long as
    /// there is no snapshot. Much cheaper than a read.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.take_snapshot()?;
    /// assert!(!txn.changed_since_snapshot(&tree, b"a")?);
    /// tree.put(b"a", b"1")?;
    /// assert!(txn.changed_since_snapshot(&tree, b"a")?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn changed_since_snapshot(&self, tree: &Tree, key: &[u8]) -> Result<bool> {
        self.check(tree)?;
        let Some(snapshot) = self.view() else { return Ok(false) };
        let state = tree.state()?;
        Ok(conflict::newest_after(&state, key, snapshot.seq(), Scope::All)?.is_some())
    }

    /// Whether the transaction itself has written `key`, or deleted it, and not undone that.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.delete(&tree, b"a")?;
    /// assert!(txn.has_written(&tree, b"a")?);
    /// assert!(!txn.has_written(&tree, b"b")?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn has_written(&self, tree: &Tree, key: &[u8]) -> Result<bool> {
        self.check(tree)?;
        Ok(self.writes.get(tree.id(), key)? != Written::Nothing)
    }

    /// The newest value of `key`, locked exclusive: until the transaction ends, nobody else writes
    /// it or reads it to update. A key that is not there is locked as well.
    ///
    /// An optimistic transaction reads its snapshot. Its commit fails if the key has changed.
    ///
    /// # Errors
    /// Those of locks; [`Error::Conflict`] if the key has been changed since the transaction's
    /// snapshot (see [`OnConflict`](crate::OnConflict)).
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// if txn.get_for_update(&tree, b"name")?.is_none() {
    ///     txn.put(&tree, b"name", b"mine")?; // nobody has come in between
    /// }
    /// txn.commit(shaledb::WriteOptions::default())?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn get_for_update(&mut self, tree: &Tree, key: &[u8]) -> Result<Option<Value>> {
        self.get_locked(tree, key, LockMode::Exclusive)
    }

    /// The newest value of `key`, locked shared: until the transaction ends, nobody else writes it.
    /// Others may lock it shared too.
    ///
    /// # Errors
    /// Those of locks.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let (parents, children) = (db.tree_or_create("p")?, db.tree_or_create("c")?);
    /// # parents.put(b"7", b"")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// assert!(txn.get_for_share(&parents, b"7")?.is_some());
    /// txn.put(&children, b"7/1", b"")?; // its parent stays as long
    /// txn.commit(shaledb::WriteOptions::default())?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn get_for_share(&mut self, tree: &Tree, key: &[u8]) -> Result<Option<Value>> {
        self.get_locked(tree, key, LockMode::Shared)
    }

    fn get_locked(&mut self, tree: &Tree, key: &[u8], mode: LockMode) -> Result<Option<Value>> {
        self.lock(tree, key, mode)?;
        match self.written(tree, key)? {
            Some(written) => Ok(written),
            None => self.read_at(tree, key, self.locked_view()),
        }
    }

    /// Whether a key has a value, as [`Transaction::get_for_share`] finds it; a large one is not
    /// read.
    pub(super) fn is_there_locked(&mut self, tree: &Tree, key: &[u8]) -> Result<bool> {
        self.lock(tree, key, LockMode::Shared)?;
        match self.writes.get(tree.id(), key)? {
            Written::Deleted => Ok(false),
            Written::Value(..) => Ok(true),
            Written::Nothing => match self.locked_view() {
                None => tree.contains(key),
                Some(snapshot) => Ok(tree.get_at(key, snapshot)?.is_some()),
            },
        }
    }

    /// What reads of locked keys see: the newest, asked for when the locks are held, since whoever
    /// held one before has let go of it after his commit was visible. A transaction of one view
    /// sees its snapshot.
    pub(super) fn locked_view(&self) -> Option<&Snapshot> {
        if self.has_one_view() { self.snapshot.as_ref() } else { None }
    }

    /// The newest values of several keys that the transaction has locked, shared or exclusive: what
    /// [`Transaction::get_for_share`] gives for each, but cheaper. It locks nothing itself.
    ///
    /// The caller has locked each key, by [`Transaction::lock`] or another call that locks it, and
    /// not given it up since. Of a key that is not locked the value may be out of date at once;
    /// builds with debug assertions panic.
    ///
    /// An optimistic transaction reads its snapshot. Its commit fails if a key that it has locked
    /// has changed.
    ///
    /// # Errors
    /// What a read may fail with.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// use shaledb::LockMode;
    ///
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.take_snapshot()?;
    /// tree.put(b"a", b"1")?;
    /// for key in [b"a", b"b"] {
    ///     txn.lock(&tree, key, LockMode::Shared)?;
    /// }
    /// let values = txn.multi_get_locked(&tree, &["a", "b"])?;
    /// assert_eq!(values[0].as_deref(), Some(&b"1"[..]));
    /// assert_eq!(values[1], None);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn multi_get_locked<K: AsRef<[u8]>>(
        &mut self,
        tree: &Tree,
        keys: &[K],
    ) -> Result<Vec<Option<Value>>> {
        self.check(tree)?;
        debug_assert!(
            self.is_optimistic() || keys.iter().all(|key| self.holds(tree, key.as_ref())),
            "each key is locked before it is looked up with others"
        );
        self.read_many(tree, keys, self.locked_view())
    }

    /// Whether a key is locked, shared at least.
    fn holds(&self, tree: &Tree, key: &[u8]) -> bool {
        self.core().locks.holds(&self.owner, tree.id(), key, Mode::Shared)
    }

    /// A scan of what [`Transaction::get`] would find, own writes included. It shows one moment:
    /// what the transaction writes from now on is not in it. It may be used beside other calls and
    /// after the transaction's end.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the options name a snapshot: the transaction has its own. At
    /// [`Isolation::Serializable`] those of locks: the whole range is locked.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.delete(&tree, b"b")?;
    /// txn.put(&tree, b"bb", b"2")?;
    /// let rows = txn.scan(&tree, shaledb::ScanOptions::default())?;
    /// let keys: shaledb::Result<Vec<_>> = rows.map(|row| row.map(|(key, _)| key)).collect();
    /// assert_eq!(keys?, [b"a".to_vec(), b"bb".to_vec(), b"c".to_vec()]);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn scan(&mut self, tree: &Tree, options: ScanOptions<'_>) -> Result<Scan> {
        self.check(tree)?;
        refuse_snapshot(&options)?;
        if self.options.isolation == Isolation::Serializable {
            let (lower, upper) = options.clone().into_bounds();
            let span = Span::Range(&lower, upper.as_deref());
            self.protect(tree, span, Mode::Shared)?;
        }
        self.begin_view();
        let write_set = self.writes.of_tree(tree.id());
        tree.scan_as(ScanOptions { snapshot: self.view(), ..options }, write_set)
    }

    /// Makes a scan by [`Transaction::scan`] one of other bounds (`None`: no upper one), as if it
    /// were made anew. That costs less from the third time on, as long as it reads at the same
    /// moment: for look-ups of many ranges of one tree. The scan may be of another transaction or
    /// tree. After an error it is at no row.
    ///
    /// # Errors
    /// As [`Transaction::scan`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a1", b"b1", b"c1"] { tree.put(key, b"1")?; }
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// let mut scan = txn.scan(&tree, shaledb::ScanOptions::default())?;
    /// for lower in [b"c", b"b"] {
    ///     txn.scan_again(&tree, &mut scan, lower, Some(&[lower[0] + 1]))?;
    ///     scan.seek_first()?;
    ///     assert!(scan.valid() && scan.key().starts_with(lower));
    ///     scan.next()?;
    ///     assert!(!scan.valid());
    /// }
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn scan_again(
        &mut self,
        tree: &Tree,
        scan: &mut Scan,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Result<()> {
        scan.leave_row();
        self.check(tree)?;
        if self.options.isolation == Isolation::Serializable {
            self.protect(tree, Span::Range(lower, upper), Mode::Shared)?;
        }
        self.begin_view();
        let write_set = self.writes.of_tree(tree.id());
        tree.scan_again(scan, (lower, upper), self.view(), write_set)
    }

    /// A scan of what is committed by now, and of the transaction's own writes, at any isolation:
    /// for reads that look for rows which they then lock. It locks nothing, and takes no snapshot
    /// for later reads. An optimistic transaction sees its snapshot.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the options name a snapshot.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.take_snapshot()?;
    /// tree.put(b"a", b"1")?;
    /// txn.put(&tree, b"b", b"2")?;
    /// assert_eq!(txn.scan_newest(&tree, shaledb::ScanOptions::default())?.count(), 2);
    /// assert_eq!(txn.scan(&tree, shaledb::ScanOptions::default())?.count(), 1);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn scan_newest(&mut self, tree: &Tree, options: ScanOptions<'_>) -> Result<Scan> {
        self.check(tree)?;
        refuse_snapshot(&options)?;
        let write_set = self.writes.of_tree(tree.id());
        tree.scan_as(ScanOptions { snapshot: self.locked_view(), ..options }, write_set)
    }
}

pub(super) fn refuse_snapshot(options: &ScanOptions<'_>) -> Result<()> {
    match options.snapshot {
        None => Ok(()),
        Some(_) => Err(Error::InvalidArgument(
            "a transaction reads at its own snapshot; leave `snapshot` out of the scan's options"
                .to_owned(),
        )),
    }
}
