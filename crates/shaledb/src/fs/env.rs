//! Disk and clock together: of the machine, or in memory.

use super::clock::Clock;
use super::mem::MemFs;
use super::os::{OsClock, OsFs};
use super::system::Fs;
use std::sync::Arc;

/// The world that a database lives in; see [`OpenOptions`](crate::OpenOptions).
///
/// ```
/// use shaledb::{Config, Db, Env, OpenOptions};
///
/// let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
/// let db = Db::open_in("/db", Config::default(), options)?;
/// db.tree_or_create("t")?.put(b"a", b"1")?;
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone)]
pub struct Env {
    /// Its disk.
    pub fs: Arc<dyn Fs>,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
}

impl Env {
    /// The real machine: its files, its monotonic clock.
    ///
    /// ```
    /// let env = shaledb::Env::os();
    /// assert!(env.fs.exists(&std::env::temp_dir())?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn os() -> Env {
        Env { fs: Arc::new(OsFs), clock: Arc::new(OsClock::new()) }
    }

    /// An empty disk in memory, with the machine's clock, for tests: it leaves nothing behind.
    /// Clones share the disk, so a database on it can be closed and opened again; it is gone with
    /// the last clone. Its files come on top of [`Config::memory_bytes`](crate::Config).
    ///
    /// ```
    /// # use shaledb::{Config, Db, Env, OpenOptions};
    /// let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    /// let db = Db::open_in("/db", Config::default(), options.clone())?;
    /// db.tree_or_create("t")?.put(b"a", b"1")?;
    /// db.close()?;
    ///
    /// let db = Db::open_in("/db", Config::default(), options)?;
    /// assert_eq!(db.tree("t")?.get(b"a")?.unwrap(), b"1");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn memory() -> Env {
        Env { fs: Arc::new(MemFs::new()), clock: Arc::new(OsClock::new()) }
    }
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Env")
    }
}
