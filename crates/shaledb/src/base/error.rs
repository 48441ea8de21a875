//! The one error type. Kinds are few and chosen by what the caller does about them.

use super::lock_error::Deadlock;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of every fallible call of this crate.
///
/// ```
/// fn count(tree: &shaledb::Tree) -> shaledb::Result<usize> {
///     let mut rows = 0;
///     for row in tree.scan::<&[u8]>(..)? {
///         row?;
///         rows += 1;
///     }
///     Ok(rows)
/// }
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// assert_eq!(count(&db.tree_or_create("t")?)?, 0);
/// # Ok::<(), shaledb::Error>(())
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, where, and what to do about it.
///
/// Cheap to clone, so that one failed background job can be reported to every writer. As text it
/// is a sentence for people, with the file or the setting that it is about.
///
/// ```
/// use shaledb::{Config, Db, Env, Error, OpenOptions};
///
/// let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
/// let config = Config { create: false, ..Config::default() };
/// match Db::open_in("/db", config, options) {
///     Err(Error::NoDatabase(path)) => println!("nothing at {}", path.display()),
///     Err(Error::Locked { .. }) => println!("in use elsewhere"),
///     Err(error) if error.is_corruption() => println!("damaged: {error}"),
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation on a file.
    Io {
        /// The operation, such as `read` or `sync`.
        op: &'static str,
        /// The file it was tried on.
        path: PathBuf,
        /// The system's own answer (or that of the reader that a value was read from).
        source: Arc<io::Error>,
    },
    /// There is no space left on the device. A write that gets this has had no effect. Reads go
    /// on; writes tried again succeed once there is space, without a reopen.
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The database's files may not take more: the limit is the setting
    /// [`space_limit`](crate::Config::space_limit). What gets this has had no effect. Reads and
    /// deletes go on; writes tried again succeed once there is room, without a reopen.
    SpaceLimit {
        /// The limit, in bytes.
        limit: u64,
        /// What the files take, in bytes.
        used: u64,
        /// How much more was to be written, in bytes.
        needed: u64,
    },
    /// Bytes on disk are not what was written. Nothing was returned from them.
    Corruption {
        /// The damaged file.
        path: PathBuf,
        /// Where in the file, in bytes from its start.
        offset: u64,
        /// What was expected and what was found.
        what: String,
    },
    /// A setting is unknown, out of range, or contradicts another.
    Config {
        /// The name of the setting.
        setting: &'static str,
        /// What is wrong with it, and what would be right.
        what: String,
    },
    /// An argument of a call is out of its documented bounds.
    InvalidArgument(String),
    /// Another process (or another handle of this one) has the database open.
    Locked {
        /// The lock file that is held.
        path: PathBuf,
    },
    /// There is no such tree, or it has been dropped.
    NoSuchTree(String),
    /// A tree of that name exists already.
    TreeExists(String),
    /// Two rows have the same key, so no unique tree can be built of them.
    Duplicate {
        /// The tree that was being built.
        tree: String,
        /// The key.
        key: Vec<u8>,
        /// Two of the rows that have it.
        rows: [Vec<u8>; 2],
    },
    /// There is no database at this path and none was to be created.
    NoDatabase(PathBuf),
    /// An earlier failure (such as a failed sync) makes further writes unsafe. Reads go on. Close
    /// and reopen the database: what was durable before is there.
    Poisoned(Arc<Error>),
    /// Write conflict: another transaction changed the same rows. An optimistic transaction gets
    /// it, or one that has a snapshot. Roll it back and try it again from its beginning.
    Conflict {
        /// What was changed by others.
        what: String,
    },
    /// Lock wait timeout: a lock was not granted in the time that the transaction may wait. The
    /// call has changed nothing. The transaction keeps its locks: try the call again, or roll back.
    LockTimeout {
        /// The lock asked for, in words.
        lock: String,
        /// A transaction that was in the way; 0 if it has just ended.
        holder: u64,
        /// For how long the call was to wait at most, in milliseconds.
        limit_millis: u64,
    },
    /// A lock was not to be had at once, and the transaction's [`Interrupt`](crate::Interrupt) was
    /// set. The call has done nothing; the transaction keeps what it has.
    Interrupted {
        /// The lock asked for, in words.
        lock: String,
        /// A transaction that was in the way; 0 if it has just ended.
        holder: u64,
    },
    /// Only with [`Background::Stepped`](crate::Background::Stepped): the call has to wait for a
    /// lock, and its place in the queue is kept. Make the same call again when others have gone on.
    LockQueued {
        /// The lock asked for, in words.
        lock: String,
        /// A transaction that is in the way.
        holder: u64,
    },
    /// Transactions waited for each other, and this one had to give way: it has been rolled back.
    /// Try it again from its beginning.
    Deadlock(Arc<Deadlock>),
    /// The lock table is full, and escalation failed: other transactions hold keys in between.
    /// (Escalation makes ranges of a transaction's keys. It happens by itself.) The call has
    /// changed nothing. End transactions that hold many locks, or raise `memory_bytes`.
    LocksFull {
        /// What all locks together may take, in bytes: a sixteenth of `memory_bytes`.
        bytes_max: u64,
    },
    /// The part of a write set that cannot leave memory is full: of an optimistic transaction all
    /// that it writes, of others the range deletes. The call has changed nothing.
    TransactionFull {
        /// What they may take, in bytes.
        bytes_max: u64,
    },
    /// The transaction was rolled back before, because of this.
    RolledBack(Arc<Error>),
    /// The process is a fork of the one that opened the database: what it writes would not be that
    /// one's, and would be lost. Reads go on, but for those of transactions. Open the database
    /// after the fork, in one process.
    Forked {
        /// The database's directory, or a file of it.
        path: PathBuf,
        /// The process that opened it.
        opened_by: u32,
    },
    /// The database was opened for reading only.
    ReadOnly,
    /// The database has been closed.
    Closed,
}

impl Error {
    /// An I/O error on `path`; a full disk becomes [`Error::DiskFull`]. For an [`Fs`] of one's own.
    ///
    /// ```
    /// use std::io;
    ///
    /// let refused = io::Error::from(io::ErrorKind::PermissionDenied);
    /// let error = shaledb::Error::io("open", "/db/CURRENT".as_ref(), refused);
    /// assert!(error.to_string().starts_with("could not open /db/CURRENT"));
    ///
    /// let full = io::Error::from(io::ErrorKind::StorageFull);
    /// assert!(shaledb::Error::io("write", "/db/000001.wal".as_ref(), full).is_disk_full());
    /// ```
    ///
    /// [`Fs`]: crate::fs::Fs
    pub fn io(op: &'static str, path: &Path, source: io::Error) -> Error {
        if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            Error::DiskFull { path: path.to_owned() }
        } else {
            Error::Io { op, path: path.to_owned(), source: Arc::new(source) }
        }
    }

    /// Damage found in `path` at byte `offset`.
    ///
    /// ```
    /// let path = "/db/000001.table".as_ref();
    /// let error = shaledb::Error::corruption(path, 4096, "the checksum is wrong");
    /// assert!(error.to_string().contains("000001.table is damaged at byte 4096"));
    /// ```
    pub fn corruption(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        Error::Corruption { path: path.to_owned(), offset, what: what.into() }
    }

    /// Whether this is [`Error::Corruption`].
    ///
    /// ```
    /// let error = shaledb::Error::corruption("/db/CURRENT".as_ref(), 0, "it is empty");
    /// assert!(error.is_corruption());
    /// assert!(!shaledb::Error::Closed.is_corruption());
    /// ```
    pub fn is_corruption(&self) -> bool {
        matches!(self, Error::Corruption { .. })
    }

    /// Whether there is no file of that name.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the device could not read or write.
    pub(crate) fn is_of_the_device(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.raw_os_error() == Some(libc::EIO))
    }

    /// Whether the process, or the system, has as many files open as it may.
    pub(crate) fn is_of_too_many_files(&self) -> bool {
        matches!(self, Error::Io { source, .. } if is_of_too_many_files(source))
    }

    /// As it is, but that a file that is not there is damage: something durable names it.
    pub(crate) fn missing_is_damage(self, path: &Path, what: &str) -> Error {
        if self.is_not_found() { Error::corruption(path, 0, what) } else { self }
    }

    /// Whether the system refused it for lack of rights.
    pub(crate) fn is_permission_denied(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Whether a transaction that gets this may succeed if it is tried again from its beginning:
    /// others were in its way.
    ///
    /// ```
    /// use shaledb::{Db, Error, Result, Transaction, TransactionOptions, WriteOptions};
    ///
    /// fn run(db: &Db, work: impl Fn(&mut Transaction) -> Result<()>) -> Result<()> {
    ///     loop {
    ///         let mut txn = db.begin(TransactionOptions::default())?;
    ///         match work(&mut txn).and_then(|()| txn.commit(WriteOptions::default())) {
    ///             Err(error) if error.is_retryable() => {}
    ///             other => return other,
    ///         }
    ///     }
    /// }
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// run(&db, |txn| txn.put(&tree, b"a", b"1"))?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Conflict { .. } | Error::LockTimeout { .. } | Error::Deadlock(_) => true,
            Error::RolledBack(cause) => cause.is_retryable(),
            _ => false,
        }
    }

    /// Whether this is [`Error::DiskFull`].
    ///
    /// ```
    /// let error = shaledb::Error::DiskFull { path: "/db/000001.wal".into() };
    /// assert!(error.is_disk_full());
    /// ```
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Error::DiskFull { .. })
    }

    /// Whether this is [`Error::SpaceLimit`].
    ///
    /// ```
    /// let error = shaledb::Error::SpaceLimit { limit: 4 << 20, used: 4 << 20, needed: 100 };
    /// assert!(error.is_space_limit() && !error.is_disk_full());
    /// ```
    pub fn is_space_limit(&self) -> bool {
        matches!(self, Error::SpaceLimit { .. })
    }

    /// Whether there was no room, on the device or by the limit: nothing was written then.
    pub(crate) fn is_without_room(&self) -> bool {
        self.is_disk_full() || self.is_space_limit()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { op, path, source } => write_io(f, op, path, source),
            Error::DiskFull { path } => write!(
                f,
                "no space left on the device while writing {}; reads go on; free some space, then \
                 writes resume by themselves",
                path.display()
            ),
            Error::SpaceLimit { limit, used, needed } => write_space(f, *limit, *used, *needed),
            Error::Corruption { path, offset, what } => write!(
                f,
                "{} is damaged at byte {offset}: {what}; run `shale verify` to list all damage, \
                 `shale repair` to salvage the rest",
                path.display()
            ),
            Error::Config { setting, what } => write!(f, "setting `{setting}`: {what}"),
            Error::InvalidArgument(what) => f.write_str(what),
            Error::Locked { path } => write!(
                f,
                "the database is open in another process, or by another handle of this one, which \
                 has locked {}; close that first, or open a follower or a checkpoint to read",
                path.display()
            ),
            Error::NoSuchTree(name) => write!(f, "there is no tree named `{name}`"),
            Error::TreeExists(name) => write!(f, "a tree named `{name}` exists already"),
            Error::Duplicate { tree, key, rows } => write_duplicate(f, tree, key, rows),
            Error::NoDatabase(path) => {
                write!(f, "there is no Shale database at {}", path.display())
            }
            Error::Poisoned(cause) => write!(
                f,
                "writes are refused, because an earlier failure may have lost data ({cause}); \
                 close and reopen the database"
            ),
            Error::Conflict { what } => {
                write!(f, "write conflict: {what}; roll the transaction back and retry it")
            }
            Error::LockTimeout { lock, holder, limit_millis } => write!(
                f,
                "lock wait timeout after {limit_millis} ms: transaction {holder} blocks {lock}; \
                 nothing was changed; retry the call or roll back"
            ),
            Error::Interrupted { lock, holder } => write!(
                f,
                "lock wait interrupted: transaction {holder} blocks {lock}; nothing was changed"
            ),
            Error::LockQueued { lock, holder } => write!(
                f,
                "lock wait: transaction {holder} blocks {lock}; repeat the call when that one has \
                 gone on"
            ),
            Error::Deadlock(met) => write!(f, "deadlock: {met} and was rolled back; try it again"),
            Error::LocksFull { bytes_max } => write!(
                f,
                "the lock table is full ({bytes_max} bytes, a sixteenth of `memory_bytes`), and \
                 escalation failed: other transactions hold keys in between; end transactions \
                 that hold many locks, or raise `memory_bytes`"
            ),
            Error::TransactionFull { bytes_max } => write!(
                f,
                "the write set is full: what cannot leave memory (all writes of an optimistic \
                 transaction, else range deletes) takes its {bytes_max} bytes; commit in parts, \
                 raise the transaction's `memory_bytes`, or make it pessimistic"
            ),
            Error::RolledBack(cause) => write!(f, "the transaction was rolled back: {cause}"),
            Error::Forked { path, opened_by } => write!(
                f,
                "{} was opened by process {opened_by}; this process is a fork of it and cannot \
                 write there; open the database after the fork, in one process",
                path.display()
            ),
            Error::ReadOnly => {
                f.write_str("the database is open for reading only; reopen it to write")
            }
            Error::Closed => f.write_str("the database is closed"),
        }
    }
}

fn write_io(f: &mut fmt::Formatter<'_>, op: &str, path: &Path, source: &io::Error) -> fmt::Result {
    write!(f, "could not {op} {}: {source}", path.display())?;
    match is_of_too_many_files(source) {
        true => f.write_str("; close files, or raise the limit (ulimit -n)"),
        false => Ok(()),
    }
}

fn is_of_too_many_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

fn write_space(f: &mut fmt::Formatter<'_>, limit: u64, used: u64, needed: u64) -> fmt::Result {
    write!(
        f,
        "the space limit is reached: the database's files take {used} of the {limit} bytes of \
         `space_limit`, and beside what is kept back for flushes, compactions and deletes there is \
         no room for {needed} more; reads and deletes go on; delete rows, drop trees or raise the \
         limit, then writes resume by themselves"
    )
}

fn write_duplicate(
    f: &mut fmt::Formatter<'_>,
    tree: &str,
    key: &[u8],
    [one, other]: &[Vec<u8>; 2],
) -> fmt::Result {
    write!(
        f,
        "duplicate key `{}` for the unique tree `{tree}`: the rows `{}` and `{}` both have it; \
         change or delete one of them, then build the tree again",
        key.escape_ascii(),
        one.escape_ascii(),
        other.escape_ascii()
    )
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::Poisoned(cause) | Error::RolledBack(cause) => Some(cause),
            _ => None,
        }
    }
}
