//! How a database is opened, written to and scanned. (Its settings are in `base/config`.)

use super::snapshot::Snapshot;
use crate::fs::Env;

/// How one commit is made.
///
/// ```
/// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
/// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// use shale::WriteOptions;
///
/// tree.put_with(b"draft", b"...", WriteOptions::default())?;
/// tree.put_with(b"paid", b"100", WriteOptions { sync: true })?; // both are durable now
/// # Ok::<(), shale::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether the commit, and with it every earlier one, is durable when the call returns.
    /// Default false: it survives a crash of the process, and after a crash of the machine what
    /// survives is a prefix of the commit order.
    pub sync: bool,
}

impl WriteOptions {
    /// Durable when the call returns.
    ///
    /// ```
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put_with(b"paid", b"100", shale::WriteOptions::SYNC)?;
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub const SYNC: WriteOptions = WriteOptions { sync: true };
}

/// Who runs flushes and compactions.
///
/// ```
/// use shale::{Background, Config, Db, Env, OpenOptions};
///
/// let options =
///     OpenOptions { env: Env::memory(), background: Background::Stepped, read_only: false };
/// let db = Db::open_in("/db", Config::default(), options)?; // starts no thread
/// db.tree_or_create("t")?.put(b"a", b"1")?;
/// while db.step()? {}
/// # Ok::<(), shale::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// Threads of the database.
    #[default]
    Threads,
    /// The caller, one piece at a time, with [`Db::step`](crate::Db::step); whoever must wait (a
    /// writer for room, a flush, a compaction on request) steps too. For simulations.
    Stepped,
}

/// The world and the manner in which a database is opened, by [`Db::open_in`](crate::Db::open_in).
///
/// ```
/// use shale::{Config, Db, Env, OpenOptions};
///
/// // For a test: a disk in memory, which leaves nothing behind.
/// let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
/// let db = Db::open_in("/db", Config::default(), options)?;
/// assert!(db.tree_names().is_empty());
/// # Ok::<(), shale::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Disk and clock. Default [`Env::os`].
    pub env: Env,
    /// Who does the background work. Default [`Background::Threads`].
    pub background: Background,
    /// Whether nothing on disk may be changed; see
    /// [`Db::open_read_only`](crate::Db::open_read_only). Default false.
    pub read_only: bool,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions { env: Env::os(), background: Background::Threads, read_only: false }
    }
}

/// What a scan covers and how it reads; for [`Tree::scan_with`](crate::Tree::scan_with).
///
/// ```
/// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
/// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// # for key in [b"a1", b"a2", b"b1"] { tree.put(key, b"")?; }
/// use shale::ScanOptions;
///
/// let options = ScanOptions {
///     prefix: Some(b"a".to_vec()),
///     lower: Some(b"a2".to_vec()),
///     fill_cache: false,
///     ..ScanOptions::default()
/// };
/// let keys: Vec<_> = tree.scan_with(options)?.map(|row| row.unwrap().0).collect();
/// assert_eq!(keys, [b"a2"]);
/// # Ok::<(), shale::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScanOptions<'a> {
    /// The smallest key that may be seen; `None` starts at the beginning. Default `None`.
    pub lower: Option<Vec<u8>>,
    /// The smallest key that may no longer be seen; `None` goes to the end. Default `None`. A scan
    /// whose bounds leave nothing in between has no rows.
    pub upper: Option<Vec<u8>>,
    /// Only keys with this prefix (inside the bounds, if there are any). Default `None`.
    pub prefix: Option<Vec<u8>>,
    /// The moment to read at; `None`, the default, is when the scan is made.
    pub snapshot: Option<&'a Snapshot>,
    /// Whether blocks that had to be read are kept in the cache. Default true; false suits a scan
    /// of much that will not be read again soon.
    pub fill_cache: bool,
}

impl Default for ScanOptions<'_> {
    fn default() -> Self {
        ScanOptions { lower: None, upper: None, prefix: None, snapshot: None, fill_cache: true }
    }
}
