//! How a database is opened and written to. (Its settings are in `base/config`.)

use crate::fs::Env;

/// How one commit is made.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// use shaledb::WriteOptions;
///
/// tree.put_with(b"draft", b"...", WriteOptions::default())?;
/// tree.put_with(b"paid", b"100", WriteOptions { sync: true })?; // both are durable now
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether the commit, and with it every earlier one, is durable when the call returns.
    /// Default false. Then the commit survives a crash of the process. After a crash of the machine
    /// a prefix of the commit order survives.
    pub sync: bool,
}

impl WriteOptions {
    /// Durable when the call returns.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put_with(b"paid", b"100", shaledb::WriteOptions::SYNC)?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub const SYNC: WriteOptions = WriteOptions { sync: true };
}

/// Who runs flushes and compactions.
///
/// ```
/// use shaledb::{Background, Config, Db, Env, OpenOptions};
///
/// let options =
///     OpenOptions { env: Env::memory(), background: Background::Stepped, read_only: false };
/// let db = Db::open_in("/db", Config::default(), options)?; // starts no thread
/// db.tree_or_create("t")?.put(b"a", b"1")?;
/// while db.step()? {}
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// Threads of the database.
    #[default]
    Threads,
    /// The caller, one piece at a time, with [`Db::step`](crate::Db::step). A call that must wait
    /// (a write for room, a flush, a compaction on request) steps too. For simulations.
    Stepped,
}

/// The world and the manner in which a database is opened, by [`Db::open_in`](crate::Db::open_in).
///
/// ```
/// use shaledb::{Config, Db, Env, OpenOptions};
///
/// // For a test: a disk in memory, which leaves nothing behind.
/// let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
/// let db = Db::open_in("/db", Config::default(), options)?;
/// assert!(db.tree_names().is_empty());
/// # Ok::<(), shaledb::Error>(())
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
