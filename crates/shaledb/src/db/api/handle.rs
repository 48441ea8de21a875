//! What all handles to a database share.

#[cfg(doc)]
use crate::base::error::Error;
use crate::base::error::Result;
use crate::base::rank;
use crate::base::sync::{Arc, Mutex};
use crate::db::background::Threads;
use crate::db::core::Core;
use crate::db::lifecycle::Follower;
use std::path::Path;

/// A database: named trees over one log, one commit order, one memory bound. Cheap to clone; any
/// number of threads may use it at once. It is closed when the last handle to it or to one of its
/// trees is dropped, or by [`Db::close`]; snapshots and scans do not keep it open.
///
/// Every call that writes or waits may answer, besides what is said there, with [`Error::Io`] or
/// [`Error::DiskFull`] from the disk, [`Error::Poisoned`] after a failure that may have lost data,
/// [`Error::ReadOnly`], [`Error::Forked`] and [`Error::Closed`]; every call that reads tables with
/// [`Error::Io`], [`Error::Corruption`] and [`Error::Closed`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = shaledb::Db::open(dir.path(), shaledb::Config::default())?;
/// let tree = db.tree_or_create("greetings")?;
/// tree.put(b"en", b"hello")?;
/// assert_eq!(tree.get(b"en")?.unwrap(), b"hello");
/// assert!(tree.get(b"xx")?.is_none());
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone)]
pub struct Db {
    pub(crate) handle: Arc<Handle>,
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Db({:?})", self.handle.core.given)
    }
}

/// What handles share; dropping the last one closes the database.
pub(crate) struct Handle {
    pub core: Arc<Core>,
    pub threads: Mutex<Threads, { rank::THREADS }>,
    /// How far the log and the manifest of another process have been read, if it writes them.
    pub follower: Option<Follower>,
}

impl Handle {
    pub fn path(&self) -> &Path {
        &self.core.given
    }

    pub fn close(&self) -> Result<()> {
        if self.core.guard.is_foreign() {
            // Threads and lock are the parent's; whoever held a lock of ours is not here.
            return if self.core.read_only { Ok(()) } else { self.core.guard.check_process() };
        }
        self.core.locks.close();
        self.core.stop_background();
        // Held to the end: another who closes finds it closed when this is done.
        let mut threads = self.threads.lock();
        threads.join();
        self.core.close()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.core.guard.is_foreign() {
            self.threads.lock().forget();
        } else if let Err(error) = self.close() {
            tracing::warn!(database = %self.core.given.display(), %error, "closing failed");
        }
    }
}

impl Db {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }
}
