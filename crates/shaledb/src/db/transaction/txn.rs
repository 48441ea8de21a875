//! A transaction: its beginning, its savepoints, its rollback.

use super::options::{Concurrency, Isolation, OnConflict, TransactionOptions};
use crate::base::error::{Error, Result};
use crate::base::lock_error::{Deadlock, DeadlockEdge, changed_text, keys_text};
use crate::base::sync::Arc;
use crate::db::api::{Db, Handle, Snapshot, Tree};
use crate::db::core::{Core, TreeCore};
use crate::read::conflict::{self, Scope};
use crate::txn::deadlock::Report;
use crate::txn::reads::ReadSet;
use crate::txn::write_set::{Mark, WriteSet};
use crate::txn::{About, KeysMark, Lock, Owner, Span};
use crate::version::TreeId;
use std::collections::BTreeMap;

/// Reads and writes over any number of trees of one database. They become visible, and durable, as
/// a whole or not at all. [`Isolation`] says how they are kept apart from those of others. A
/// transaction reads its own writes. Dropped without a commit, it is rolled back.
///
/// Writes outside of transactions ([`Tree::put`] and the like) take no locks and wait for none. Do
/// not mix them with transactions on the same keys, unless [`OnConflict::Error`] and snapshots are
/// enough.
///
/// Calls that lock may fail with [`Error::LockTimeout`] or [`Error::LocksFull`]. They have then
/// changed nothing, and the transaction goes on. After [`Error::Deadlock`] it has been rolled back,
/// and each further call fails with [`Error::RolledBack`].
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let accounts = db.tree_or_create("accounts")?;
/// # accounts.put(b"ada", b"10")?;
/// # accounts.put(b"bob", b"20")?;
/// use shaledb::{Transaction, TransactionOptions, Tree, WriteOptions};
///
/// fn add(txn: &mut Transaction, tree: &Tree, key: &[u8], amount: i64) -> shaledb::Result<()> {
///     let value = txn.get_for_update(tree, key)?.map_or(0, |value| {
///         String::from_utf8_lossy(&value).parse::<i64>().unwrap_or(0)
///     });
///     txn.put(tree, key, (value + amount).to_string().as_bytes())
/// }
/// let mut txn = db.begin(TransactionOptions::default())?;
/// add(&mut txn, &accounts, b"ada", -5)?;
/// add(&mut txn, &accounts, b"bob", 5)?;
/// assert_eq!(accounts.get(b"ada")?.unwrap(), b"10"); // others do not see it yet
/// txn.commit(WriteOptions::SYNC)?;
/// assert_eq!(accounts.get(b"ada")?.unwrap(), b"5");
/// # Ok::<(), shaledb::Error>(())
/// ```
pub struct Transaction {
    pub(super) options: TransactionOptions,
    pub(super) owner: Owner,
    pub(super) writes: WriteSet,
    pub(super) reads: ReadSet,
    /// Whether some of these were asked to stay as they are, and not by the isolation alone.
    pub(super) reads_for_update: bool,
    /// The trees written to.
    pub(super) trees: BTreeMap<TreeId, Arc<TreeCore>>,
    /// Whether a value may be large enough for a blob file.
    pub(super) large: bool,
    pub(super) snapshot: Option<Snapshot>,
    /// Whether it is serializable and on a follower.
    follows: bool,
    /// What the present statement sees, at read committed, once it has read.
    pub(super) statement: Option<Snapshot>,
    /// Whether statements are told of, at read committed.
    pub(super) has_statements: bool,
    pub(super) savepoints: Vec<(u64, Mark, KeysMark)>,
    pub(super) next_savepoint: u64,
    /// Why it was rolled back by the engine.
    pub(super) over: Option<Arc<Error>>,
    /// After the writes, whose files are removed while the database is open.
    pub(super) handle: Arc<Handle>,
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transaction({}, {} writes)", self.owner.id(), self.writes.count())
    }
}

/// A position in a transaction to roll back to; see [`Transaction::savepoint`].
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
/// let before: shaledb::Savepoint = txn.savepoint();
/// txn.put(&tree, b"a", b"1")?;
/// txn.rollback_to(before)?;
/// assert!(txn.get(&tree, b"a")?.is_none());
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    transaction: u64,
    number: u64,
}

impl Db {
    /// From now on calls `observer` with the number of a transaction that waits for a lock, and
    /// those that block it ([`Transaction::id`]): before the wait begins, and about every 50
    /// milliseconds while it lasts, then without those that have merely asked for the same before.
    /// When it has ended, in whatever way, `observer` is called with
    /// none that block it. The thread that waits makes the calls; it then holds none of the
    /// engine's mutexes. The observer should be quick, and may not use the waiting transaction.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the database has an observer already: it stays.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// use std::sync::{Arc, Mutex};
    /// use std::time::Duration;
    ///
    /// let waits = Arc::new(Mutex::new(Vec::new()));
    /// let seen = waits.clone();
    /// db.observe_lock_waits(move |waiter, holders| {
    ///     seen.lock().unwrap().push((waiter, holders.to_vec()));
    /// })?;
    /// let mut one = db.begin(shaledb::TransactionOptions::default())?;
    /// one.put(&tree, b"a", b"1")?;
    /// let mut two = db.begin(shaledb::TransactionOptions {
    ///     lock_timeout: Duration::from_millis(1),
    ///     ..Default::default()
    /// })?;
    /// assert!(two.put(&tree, b"a", b"2").is_err());
    /// assert_eq!(waits.lock().unwrap()[0], (two.id(), vec![one.id()]));
    /// assert_eq!(waits.lock().unwrap().last(), Some(&(two.id(), Vec::new())));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn observe_lock_waits(
        &self,
        observer: impl Fn(u64, &[u64]) + Send + Sync + 'static,
    ) -> Result<()> {
        if self.core().locks.observed.set(Box::new(observer)) {
            return Ok(());
        }
        Err(Error::InvalidArgument(
            "the database has an observer of lock waits already; it stays the only one".into(),
        ))
    }

    /// Begins a transaction.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// txn.commit(shaledb::WriteOptions::default())?;
    /// assert_eq!(tree.get(b"a")?.unwrap(), b"1");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn begin(&self, options: TransactionOptions) -> Result<Transaction> {
        let core = self.core();
        core.check_open()?;
        core.guard.check_process()?;
        let bytes_max = Transaction::MEMORY_BYTES_MAX;
        let mut options = options;
        if options.memory_bytes == 0 {
            options.memory_bytes = match options.concurrency {
                Concurrency::Pessimistic => (core.settings.memory_bytes / 16).min(64 << 20),
                Concurrency::Optimistic => bytes_max,
            };
        }
        if options.memory_bytes > bytes_max {
            return Err(Error::InvalidArgument(format!(
                "`memory_bytes` of a transaction is at most {bytes_max}, not {}",
                options.memory_bytes
            )));
        }
        let optimistic = options.concurrency == Concurrency::Optimistic;
        // Its locks do not keep the writer of another process from moving what it reads.
        let follows = core.followed.is_some() && options.isolation == Isolation::Serializable;
        Ok(Transaction {
            handle: self.handle.clone(),
            options,
            owner: core.locks.live_owner(About {
                began: core.env.clock.now_nanos(),
                isolation: options.isolation.name(),
                optimistic,
            }),
            writes: WriteSet::default(),
            reads: ReadSet::new((options.memory_bytes / 4) as usize),
            reads_for_update: false,
            trees: BTreeMap::new(),
            large: false,
            snapshot: (optimistic || follows).then(|| Snapshot::take(core)),
            follows,
            statement: None,
            has_statements: false,
            savepoints: Vec::new(),
            next_savepoint: 0,
            over: None,
        })
    }
}

impl Transaction {
    /// What the log takes in one record.
    const MEMORY_BYTES_MAX: u64 = 512 << 20;

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }

    /// Its number: later ones have larger numbers. Errors about locks name it.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// let first = db.begin(shaledb::TransactionOptions::default())?;
    /// let second = db.begin(shaledb::TransactionOptions::default())?;
    /// assert!(first.id() < second.id());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn id(&self) -> u64 {
        self.owner.id()
    }

    /// How many writes it has made and not undone.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// txn.delete(&tree, b"b")?;
    /// assert_eq!(txn.writes(), 2);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn writes(&self) -> u64 {
        self.writes.count()
    }

    /// At [`Isolation::ReadCommitted`] all plain reads from now on, until the next call of this,
    /// see what is committed when the first of them is made: a statement that waits for a lock
    /// before it reads sees what the one before it has done. Without it, each read is a statement
    /// of its own. At the other levels it does nothing.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// use shaledb::{Isolation, TransactionOptions};
    ///
    /// let isolation = Isolation::ReadCommitted;
    /// let mut txn = db.begin(TransactionOptions { isolation, ..TransactionOptions::default() })?;
    /// txn.begin_statement()?;
    /// assert!(txn.get(&tree, b"a")?.is_none());
    /// tree.put(b"a", b"1")?;
    /// assert!(txn.get(&tree, b"a")?.is_none());
    /// txn.begin_statement()?;
    /// assert!(txn.get(&tree, b"a")?.is_some());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn begin_statement(&mut self) -> Result<()> {
        self.alive()?;
        if self.options.isolation == Isolation::ReadCommitted {
            (self.statement, self.has_statements) = (None, true);
        }
        Ok(())
    }

    /// Takes the snapshot that plain reads see, if there is none yet, instead of with the first of
    /// them.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.take_snapshot()?;
    /// tree.put(b"a", b"1")?;
    /// assert!(txn.get(&tree, b"a")?.is_none());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn take_snapshot(&mut self) -> Result<()> {
        self.alive()?;
        if self.options.isolation == Isolation::RepeatableRead && self.snapshot.is_none() {
            self.snapshot = Some(Snapshot::take(self.core()));
        }
        Ok(())
    }

    /// Changes the bound on the memory of the write set, in bytes, for what it writes from now on:
    /// see [`TransactionOptions::memory_bytes`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for 0, and for more than 512 MiB.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.set_memory_bytes(512 << 20)?;
    /// txn.put(&tree, b"a", &[0; 100_000])?;
    /// txn.prepare(b"order 17")?.commit(shaledb::WriteOptions::default())?;
    /// assert_eq!(tree.get(b"a")?.unwrap().len(), 100_000);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn set_memory_bytes(&mut self, bytes: u64) -> Result<()> {
        self.alive()?;
        let bytes_max = Transaction::MEMORY_BYTES_MAX;
        if bytes == 0 || bytes > bytes_max {
            return Err(Error::InvalidArgument(format!(
                "`memory_bytes` of a transaction is 1 to {bytes_max}, not {bytes}"
            )));
        }
        self.options.memory_bytes = bytes;
        Ok(())
    }

    /// A position to roll back to: [`Transaction::rollback_to`] undoes what is written from now on.
    /// Costs next to nothing.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// let statement = txn.savepoint();
    /// txn.put(&tree, b"a", b"2")?;
    /// txn.rollback_to(statement)?; // the statement failed
    /// assert_eq!(txn.get(&tree, b"a")?.unwrap(), b"1");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn savepoint(&mut self) -> Savepoint {
        self.next_savepoint += 1;
        debug_assert!(self.savepoints.last().is_none_or(|last| last.0 < self.next_savepoint));
        self.savepoints.push((self.next_savepoint, self.writes.mark(), self.owner.mark()));
        Savepoint { transaction: self.id(), number: self.next_savepoint }
    }

    fn index_of(&self, savepoint: Savepoint) -> Result<usize> {
        let of_this = savepoint.transaction == self.id();
        let at = self.savepoints.binary_search_by_key(&savepoint.number, |(number, ..)| *number);
        at.ok().filter(|_| of_this).ok_or_else(|| {
            Error::InvalidArgument(
                "the savepoint belongs to another transaction, or ended when an earlier one was \
                 rolled back to; nothing was undone"
                    .to_owned(),
            )
        })
    }

    /// Undoes what was written since the savepoint. It stays; later ones end. The locks of keys
    /// that were locked only for these writes are released, except at [`Isolation::Serializable`].
    /// All other locks stay. Scans made before go on showing what they did.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the savepoint is not one of this transaction, or no longer.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// let outer = txn.savepoint();
    /// let inner = txn.savepoint();
    /// txn.put(&tree, b"a", b"1")?;
    /// txn.rollback_to(outer)?;
    /// assert!(txn.get(&tree, b"a")?.is_none());
    /// assert!(txn.rollback_to(inner).is_err());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.alive()?;
        let at = self.index_of(savepoint)?;
        let (_, writes, keys) = self.savepoints[at];
        self.undo_to(writes, keys);
        self.savepoints.truncate(at + 1);
        assert_eq!(self.savepoints.last().map(|last| last.0), Some(savepoint.number));
        Ok(())
    }

    /// Undoes what was written since two marks of one moment, and gives up the locks of it.
    pub(super) fn undo_to(&mut self, writes: Mark, keys: KeysMark) {
        self.writes.undo_to(writes);
        if self.options.isolation != Isolation::Serializable {
            self.handle.core.locks.release_undone(&mut self.owner, keys);
        }
        self.owner.note_writes(self.writes.count(), self.writes.memory_bytes());
    }

    /// Ends a savepoint and all later ones; what was written stays.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the savepoint is not one of this transaction, or no longer.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// let savepoint = txn.savepoint();
    /// txn.put(&tree, b"a", b"1")?;
    /// txn.release(savepoint)?;
    /// assert_eq!(txn.writes(), 1);
    /// assert!(txn.rollback_to(savepoint).is_err());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn release(&mut self, savepoint: Savepoint) -> Result<()> {
        self.alive()?;
        let at = self.index_of(savepoint)?;
        self.savepoints.truncate(at);
        Ok(())
    }

    /// Undoes all that was written to a tree, whatever savepoints there are. It is for a tree that
    /// is dropped: otherwise the commit fails with [`Error::NoSuchTree`]. Locks are kept, and so is
    /// the number of [`Transaction::writes`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the tree is of another database.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let scratch = db.tree_or_create("scratch")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// txn.put(&scratch, b"b", b"2")?;
    /// db.drop_tree("scratch")?;
    /// txn.forget(&scratch)?;
    /// txn.commit(shaledb::WriteOptions::default())?;
    /// assert!(tree.get(b"a")?.is_some());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn forget(&mut self, tree: &Tree) -> Result<()> {
        self.alive()?;
        self.check_database(tree)?;
        self.writes.forget(tree.id());
        self.trees.remove(&tree.id());
        self.owner.note_writes(self.writes.count(), self.writes.memory_bytes());
        Ok(())
    }

    /// Undoes all of it, as dropping it does.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// txn.rollback();
    /// assert!(tree.get(b"a")?.is_none());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn rollback(self) {
        drop(self);
    }

    /// Lets go of everything, while the transaction is still there.
    pub(super) fn end(&mut self) {
        self.handle.core.locks.release(&mut self.owner);
        self.writes = WriteSet::default();
        self.reads = ReadSet::new(0);
        self.reads_for_update = false;
        self.savepoints.clear();
        assert!(self.owner.keys() == 0 && self.writes.is_empty(), "what has ended has nothing");
        (self.snapshot, self.statement) = (None, None);
    }

    /// Refuses use of a transaction that was rolled back, and in a fork, where whoever held a mutex
    /// of the locks is not.
    pub(super) fn alive(&self) -> Result<()> {
        self.core().check_open()?;
        self.core().guard.check_process()?;
        self.over.clone().map_or(Ok(()), |cause| Err(Error::RolledBack(cause)))
    }

    pub(super) fn check(&self, tree: &Tree) -> Result<()> {
        self.alive()?;
        self.check_database(tree)?;
        tree.check()
    }

    fn check_database(&self, tree: &Tree) -> Result<()> {
        if !Arc::ptr_eq(tree.core(), self.core()) {
            return Err(Error::InvalidArgument(format!(
                "tree `{}` belongs to another database than the transaction",
                tree.name()
            )));
        }
        Ok(())
    }

    pub(super) fn is_optimistic(&self) -> bool {
        self.options.concurrency == Concurrency::Optimistic
    }

    /// Whether locking reads see the snapshot that it began with, too.
    pub(super) fn has_one_view(&self) -> bool {
        self.is_optimistic() || self.follows
    }

    /// Refuses to write what was changed since the snapshot, if there is one.
    pub(super) fn check_unchanged(&self, tree: &Tree, span: Span<'_>) -> Result<()> {
        let checked = self.options.isolation == Isolation::RepeatableRead
            && self.options.on_conflict == OnConflict::Error;
        match &self.snapshot {
            Some(snapshot) if checked => self.check_since(tree, span, snapshot.seq(), Scope::All),
            _ => Ok(()),
        }
    }

    /// Refuses what was changed after `since`.
    pub(super) fn check_since(
        &self,
        tree: &Tree,
        span: Span<'_>,
        since: u64,
        scope: Scope,
    ) -> Result<()> {
        let state = tree.state()?;
        let changed = match span {
            Span::Key(key) => {
                conflict::newest_after(&state, key, since, scope)?.map(|_| key.to_vec())
            }
            Span::Range(lower, upper) => {
                conflict::changed_after(&state, lower, upper, since, scope)?
            }
        };
        match changed {
            None => Ok(()),
            Some(key) => {
                let what = changed_text(&keys_text(&key, None, tree.name()), since);
                Err(Error::Conflict { what })
            }
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // In a fork nobody asks for the locks, and whoever held a mutex of them is not here.
        if !self.handle.core.guard.is_foreign() {
            self.handle.core.locks.release(&mut self.owner);
        }
    }
}

impl Core {
    /// The words for a lock.
    pub(in crate::db) fn lock_text(&self, lock: Lock<'_>) -> String {
        let tree = self.tree_name(lock.tree);
        let keys = match lock.span {
            Span::Key(key) => keys_text(key, None, &tree),
            Span::Range(lower, upper) => keys_text(lower, Some(upper), &tree),
        };
        format!("{} on {keys}", lock.mode.name())
    }

    pub(in crate::db) fn deadlock(&self, report: &Report) -> Deadlock {
        let waits = report.edges.iter().map(|edge| {
            let waiting = &edge.waiting;
            let span = waiting.span.get();
            let lock = Lock { tree: waiting.tree, span, mode: waiting.mode };
            DeadlockEdge {
                transaction: edge.waiter,
                writes: waiting.writes,
                lock: self.lock_text(lock),
                holder: edge.holder,
            }
        });
        Deadlock { waits: waits.collect(), victim: report.victim }
    }
}
