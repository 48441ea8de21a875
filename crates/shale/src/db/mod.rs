//! The database: opening it, its trees, its background work. Reads as the architecture: a write
//! goes through [`commit`], a flush or compaction through [`work`] and [`compact`] to [`install`],
//! the only place where what readers see changes. [`threads`] is the only file that spawns.

mod admin;
mod batch;
mod blobs;
mod checkpoint;
mod commit;
mod compact;
mod core;
mod ingest;
pub mod inspect;
mod install;
mod open;
pub mod repair;
mod sched;
mod snapshot;
mod stats;
mod threads;
mod throttle_state;
mod tree;
mod verify;
mod work;

pub use batch::Batch;
pub use blobs::ValueReader;
pub use ingest::Ingest;
pub use snapshot::Snapshot;
pub use stats::{CodecBytes, LevelStats, OperationStats, Stats, TreeStats};
pub use tree::{ScanOptions, Tree};
pub use verify::{VerifyProgress, VerifyReport};

use self::core::Core;
use crate::base::config::{Config, TreeConfig};
use crate::base::error::{Error, Result};
use crate::base::sync::{Arc, Mutex};
use crate::fs::Env;
use std::path::Path;

/// How one commit is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether the commit, and with it every earlier one, is durable when the call returns.
    /// Default false: it survives a crash of the process, and after a crash of the machine what
    /// survives is a prefix of the commit order.
    pub sync: bool,
}

impl WriteOptions {
    /// Durable when the call returns.
    pub const SYNC: WriteOptions = WriteOptions { sync: true };
}

/// Who runs flushes and compactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// Threads of the database.
    #[default]
    Threads,
    /// The caller, one piece at a time, with [`Db::step`]; a writer that must wait for room steps
    /// too. For simulations.
    Stepped,
}

/// The world and the manner in which a database is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Disk and clock.
    pub env: Env,
    /// Who does the background work.
    pub background: Background,
    /// Whether nothing on disk may be changed.
    pub read_only: bool,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions { env: Env::os(), background: Background::Threads, read_only: false }
    }
}

/// A database: named trees over one log, one commit order, one memory bound. Cheap to clone; any
/// number of threads may use it at once. It is closed when the last handle to it or to one of its
/// trees is dropped, or by [`Db::close`].
///
/// ```
/// # fn main() -> shale::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let db = shale::Db::open(dir.path(), shale::Config::default())?;
/// let tree = db.tree_or_create("greetings")?;
/// tree.put(b"en", b"hello")?;
/// assert_eq!(tree.get(b"en")?.unwrap(), b"hello");
/// assert!(tree.get(b"xx")?.is_none());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Db {
    handle: Arc<Handle>,
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Db({:?})", self.handle.core.dir)
    }
}

/// What handles share; dropping the last one closes the database.
pub(crate) struct Handle {
    pub core: Arc<Core>,
    pub threads: Mutex<threads::Threads>,
}

impl Handle {
    pub fn path(&self) -> &Path {
        &self.core.dir
    }

    pub fn write(&self, batch: &Batch, options: WriteOptions) -> Result<()> {
        batch.check()?;
        for tree in &batch.trees {
            if !Arc::ptr_eq(&tree.handle.core, &self.core) {
                return Err(Error::InvalidArgument(format!(
                    "the batch names tree `{}` of another database",
                    tree.name()
                )));
            }
            tree.check()?;
        }
        if batch.is_empty() && !options.sync {
            return Ok(());
        }
        if batch.has_large {
            return self.core.commit_large(batch, options.sync);
        }
        self.core.commit(&batch.ops, options.sync)
    }

    fn close(&self) -> Result<()> {
        self.core.stop_background();
        self.threads.lock().join();
        self.core.close()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(database = %self.core.dir.display(), %error, "closing failed");
        }
    }
}

impl Db {
    /// Opens the database in the directory `path`, creating it if there is none (and
    /// [`Config::create`] is set), and recovers what was committed.
    ///
    /// # Errors
    /// [`Error::Locked`] if it is open already, here or in another process;
    /// [`Error::Corruption`] if files are damaged; [`Error::Config`] for a setting out of range.
    pub fn open(path: impl AsRef<Path>, config: Config) -> Result<Db> {
        Db::open_in(path, config, OpenOptions::default())
    }

    /// Opens an existing database for reading: nothing on disk is changed, what the log holds is
    /// replayed into memory. It must not be open elsewhere.
    pub fn open_read_only(path: impl AsRef<Path>, config: Config) -> Result<Db> {
        let options = OpenOptions { read_only: true, ..OpenOptions::default() };
        Db::open_in(path, config, options)
    }

    /// Opens a database in a world of the caller's choice.
    pub fn open_in(path: impl AsRef<Path>, config: Config, options: OpenOptions) -> Result<Db> {
        let background = options.background;
        let core = open::open(path.as_ref(), &config, options)?;
        let threads = match background {
            Background::Threads if !core.read_only => threads::Threads::start(&core)?,
            _ => threads::Threads::none(),
        };
        Ok(Db { handle: Arc::new(Handle { core, threads: Mutex::new(threads) }) })
    }

    fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }

    /// The directory it is in.
    pub fn path(&self) -> &Path {
        self.handle.path()
    }

    fn handle_to(&self, tree: Arc<self::core::TreeCore>) -> Tree {
        Tree { handle: self.handle.clone(), inner: tree }
    }

    /// The tree of this name.
    ///
    /// # Errors
    /// [`Error::NoSuchTree`] if there is none.
    pub fn tree(&self, name: &str) -> Result<Tree> {
        self.core().check_open()?;
        match self.core().trees.load().by_name.get(name) {
            Some(tree) => Ok(self.handle_to(tree.clone())),
            None => Err(Error::NoSuchTree(name.to_owned())),
        }
    }

    /// Creates a tree; durable on return.
    ///
    /// # Errors
    /// [`Error::TreeExists`] if there is one of this name.
    pub fn create_tree(&self, name: &str, config: TreeConfig) -> Result<Tree> {
        Ok(self.handle_to(self.core().create_tree(name, config)?))
    }

    /// The tree of this name; created with [`Config::tree`] if there is none.
    pub fn tree_or_create(&self, name: &str) -> Result<Tree> {
        loop {
            match self.tree(name) {
                Err(Error::NoSuchTree(_)) => {}
                other => return other,
            }
            match self.create_tree(name, self.core().settings.tree.clone()) {
                Err(Error::TreeExists(_)) => {}
                other => return other,
            }
        }
    }

    /// Drops a tree: its space is free at once (or when the last scan of it ends), at a cost that
    /// does not depend on its size. Durable on return.
    pub fn drop_tree(&self, name: &str) -> Result<()> {
        self.core().drop_tree(name)
    }

    /// The names of all trees, sorted.
    pub fn tree_names(&self) -> Vec<String> {
        self.core().trees.load().by_name.keys().cloned().collect()
    }

    /// Applies a batch: all of it or nothing.
    pub fn write(&self, batch: &Batch, options: WriteOptions) -> Result<()> {
        self.handle.write(batch, options)
    }

    /// A snapshot of all trees, as of now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.core())
    }

    /// Makes every commit that has returned durable.
    pub fn sync(&self) -> Result<()> {
        self.core().commit(&crate::write::ops::Ops::new(), true)
    }

    /// Writes all memtables to tables and waits for it.
    pub fn flush(&self) -> Result<()> {
        self.core().check_open()?;
        self.core().flush(None)
    }

    /// Brings all data of all trees to the last level and waits for it.
    pub fn compact(&self) -> Result<()> {
        for name in self.tree_names() {
            match self.tree(&name).and_then(|tree| tree.compact()) {
                Err(Error::NoSuchTree(_)) => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Flushes, and waits until background work has brought every tree into its best shape for
    /// reading, as it would by itself some time after the last write.
    pub fn wait_idle(&self) -> Result<()> {
        self.core().wait_idle()
    }

    /// Makes a second database of the present state in the new directory `dir`, which must be on
    /// the same file system: tables are hard links, so it costs little time and space. It is made
    /// beside, in `dir` with `.unfinished` after its name, and renamed when it is complete.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `dir` is not empty; [`Error::Locked`] if another checkpoint of
    /// this name is being made. After any error `dir` is not there, unless only its name could not
    /// be made durable: then it is complete, and may be gone after a crash of the machine.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.core().checkpoint(dir.as_ref())
    }

    /// Reads and checks every byte of every table and blob.
    pub fn verify(&self, progress: &mut dyn FnMut(VerifyProgress)) -> Result<VerifyReport> {
        self.core().verify(progress)
    }

    /// What the database has done and what it looks like. Its `Display` is a set of tables.
    pub fn stats(&self) -> Stats {
        self.core().stats()
    }

    /// With [`Background::Stepped`]: does one piece of background work; false if there was none.
    pub fn step(&self) -> Result<bool> {
        match self.core().next_job() {
            Some(job) => self.core().run_job(job).map(|()| true),
            None => Ok(false),
        }
    }

    /// Ends background work, makes the log durable and closes; other handles get
    /// [`Error::Closed`] from now on.
    pub fn close(self) -> Result<()> {
        self.handle.close()
    }
}

#[cfg(all(test, shuttle))]
#[path = "shuttle_tests.rs"]
mod shuttle_tests;
