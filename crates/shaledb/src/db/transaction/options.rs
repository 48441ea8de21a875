//! How a transaction behaves; for [`Db::begin`](crate::Db::begin).

use crate::txn::Mode;
use std::time::Duration;

/// What a transaction's reads see of what others commit meanwhile, and which anomalies can be.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// use shaledb::{Isolation, TransactionOptions};
///
/// let with = |isolation| TransactionOptions { isolation, ..TransactionOptions::default() };
/// let mut newest = db.begin(with(Isolation::ReadCommitted))?;
/// let mut snapshot = db.begin(with(Isolation::RepeatableRead))?;
/// assert!(newest.get(&tree, b"a")?.is_none() && snapshot.get(&tree, b"a")?.is_none());
/// tree.put(b"a", b"1")?;
/// assert!(newest.get(&tree, b"a")?.is_some());
/// assert!(snapshot.get(&tree, b"a")?.is_none());
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Every read sees the newest committed version, or that of the statement's first read (see
    /// [`Transaction::begin_statement`](crate::Transaction::begin_statement)). Locking scans lock
    /// the rows that they return, and no gaps.
    ReadCommitted,
    /// All plain reads see one snapshot. The first of them takes it; that of an optimistic
    /// transaction is its beginning. There are no lost updates, see [`OnConflict`]. Write skew is
    /// possible, except on rows read by locking reads. The default.
    #[default]
    RepeatableRead,
    /// As if transactions ran one after the other. Reads lock what they read, rows or no rows.
    /// Those of an optimistic transaction are checked at commit. On a follower all reads see what
    /// it showed when the transaction began.
    Serializable,
}

impl Isolation {
    /// As reports call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Isolation::ReadCommitted => "read committed",
            Isolation::RepeatableRead => "repeatable read",
            Isolation::Serializable => "serializable",
        }
    }
}

/// Whether a transaction locks, or is checked at its end.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// use shaledb::{Concurrency, Error, TransactionOptions, WriteOptions};
///
/// let concurrency = Concurrency::Optimistic;
/// let options = TransactionOptions { concurrency, ..TransactionOptions::default() };
/// let (mut a, mut b) = (db.begin(options)?, db.begin(options)?);
/// a.put(&tree, b"k", b"a")?;
/// b.put(&tree, b"k", b"b")?; // does not wait
/// a.commit(WriteOptions::default())?;
/// assert!(matches!(b.commit(WriteOptions::default()), Err(Error::Conflict { .. })));
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Concurrency {
    /// A write locks its key at once, and waits for those who have it locked. The default.
    #[default]
    Pessimistic,
    /// No call waits. Conflicts are found at commit, which then fails. Good where they are rare.
    Optimistic,
}

/// What a write does, at [`Isolation::RepeatableRead`], to a row that was changed by others since
/// the snapshot.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// use shaledb::{Error, OnConflict, TransactionOptions};
///
/// let options = TransactionOptions::default();
/// let mut strict = db.begin(options)?;
/// let mut lenient = db.begin(TransactionOptions { on_conflict: OnConflict::Latest, ..options })?;
/// assert!(strict.get(&tree, b"k")?.is_none() && lenient.get(&tree, b"k")?.is_none());
/// tree.put(b"k", b"1")?; // somebody else
/// assert!(matches!(strict.put(&tree, b"k", b"2"), Err(Error::Conflict { .. })));
/// drop(strict); // which had locked it
/// assert_eq!(lenient.get_for_update(&tree, b"k")?.unwrap(), b"1");
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnConflict {
    /// The write fails with [`Error::Conflict`](crate::Error::Conflict), and so does a read that
    /// locks to update. The first to commit wins, and no update is lost. The default.
    #[default]
    Error,
    /// The write is made on top of the change, as InnoDB does it. An update is lost if this one was
    /// computed from a plain read.
    Latest,
}

/// How a read locks what it reads.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// use shaledb::{LockMode, ScanOptions, TransactionOptions};
///
/// let options = TransactionOptions::default();
/// let (mut a, mut b) = (db.begin(options)?, db.begin(options)?);
/// for txn in [&mut a, &mut b] {
///     let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Shared)?;
///     assert!(!scan.next(txn)?); // no rows, and none can come
/// }
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// Others may read and lock it shared, and not write it.
    Shared,
    /// Others may read it without a lock only.
    Exclusive,
}

impl LockMode {
    /// As the lock table calls it.
    pub(super) fn as_mode(self) -> Mode {
        match self {
            LockMode::Shared => Mode::Shared,
            LockMode::Exclusive => Mode::Exclusive,
        }
    }
}

/// How a transaction behaves; for [`Db::begin`](crate::Db::begin).
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// use shaledb::{Error, TransactionOptions};
/// use std::time::Duration;
///
/// let options = TransactionOptions { lock_timeout: Duration::ZERO, ..Default::default() };
/// let (mut a, mut b) = (db.begin(options)?, db.begin(options)?);
/// a.put(&tree, b"k", b"a")?;
/// assert!(matches!(b.put(&tree, b"k", b"b"), Err(Error::LockTimeout { .. })));
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionOptions {
    /// Default [`Isolation::RepeatableRead`].
    pub isolation: Isolation,
    /// Default [`Concurrency::Pessimistic`].
    pub concurrency: Concurrency,
    /// Default [`OnConflict::Error`].
    pub on_conflict: OnConflict,
    /// How long a call waits for a lock before it fails with
    /// [`Error::LockTimeout`](crate::Error::LockTimeout). Default 10 s; zero does not wait.
    pub lock_timeout: Duration,
    /// The bytes of memory that the write set may take: 1 byte to 512 MiB. Default 0, which is a
    /// sixteenth of the database's `memory_bytes`, at most 64 MiB.
    ///
    /// Beyond it a pessimistic transaction spills: its writes go to files of any size, values of at
    /// least `blob_bytes` each to one. Its commit writes them once more, to tables, and installs
    /// these as a bulk load does. Range deletes do not spill. If they alone take more than the
    /// bound (and more than 1 MiB), the call fails with
    /// [`Error::TransactionFull`](crate::Error::TransactionFull).
    ///
    /// An optimistic transaction does not spill. Its default is 512 MiB, and beyond its bound a
    /// write fails with that error. What it has read may take a quarter as much.
    pub memory_bytes: u64,
}

impl Default for TransactionOptions {
    fn default() -> TransactionOptions {
        TransactionOptions {
            isolation: Isolation::default(),
            concurrency: Concurrency::default(),
            on_conflict: OnConflict::default(),
            lock_timeout: Duration::from_secs(10),
            memory_bytes: 0,
        }
    }
}
