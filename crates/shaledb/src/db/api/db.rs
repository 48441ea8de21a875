//! A database as a whole: opening, its trees, batches, snapshots, what is done to it, closing.

use super::batch::Batch;
use super::handle::{Db, Handle};
use super::snapshot::Snapshot;
use super::stats::Stats;
use super::tree::Tree;
use crate::base::config::{Config, TreeConfig};
use crate::base::error::{Error, Result};
use crate::base::sync::atomic::Ordering;
use crate::base::sync::{Arc, Mutex};
use crate::db::background::Threads;
use crate::db::core::TreeCore;
use crate::db::lifecycle::{self, VerifyProgress, VerifyReport};
use crate::db::options::{Background, OpenOptions, WriteOptions};
use std::path::Path;

impl Db {
    fn handle_to(&self, tree: Arc<TreeCore>) -> Tree {
        Tree { handle: self.handle.clone(), inner: tree }
    }

    /// Opens the database in the directory `path`, creating it if there is none (and
    /// [`Config::create`] is set), and recovers what was committed. A relative path means what it
    /// means now, also when the process changes its directory afterwards.
    ///
    /// # Errors
    /// [`Error::Locked`] if it is open already, here or in another process;
    /// [`Error::NoDatabase`] if there is none to open; [`Error::Corruption`] if files are damaged
    /// ([`repair`](crate::repair) salvages them); [`Error::Config`] for a setting out of range.
    ///
    /// ```
    /// use shaledb::{Config, Db, Error};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("people.db");
    /// let db = Db::open(&path, Config::default())?;
    /// assert!(matches!(Db::open(&path, Config::default()), Err(Error::Locked { .. })));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn open(path: impl AsRef<Path>, config: Config) -> Result<Db> {
        Db::open_in(path, config, OpenOptions::default())
    }

    /// Opens an existing database for reading. Nothing on disk is changed; the log is replayed into
    /// memory. Others may read it meanwhile, but nobody may write: to read beside a writer, see
    /// [`Db::open_follower`]. If there is no lock file, or no right to read it, the database is
    /// read as of now, as by a follower, and a warning is logged.
    ///
    /// # Errors
    /// [`Error::Locked`] if it is open for writing; [`Error::Config`] naming `memory_bytes` if the
    /// part of the log that is not in tables takes more than half of it; else as [`Db::open`].
    /// Writes to what was opened fail with [`Error::ReadOnly`].
    ///
    /// ```
    /// use shaledb::{Config, Db, Error};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("people.db");
    /// # Db::open(&path, Config::default())?.tree_or_create("people")?.put(b"ada", b"1815")?;
    /// let db = Db::open_read_only(&path, Config::default())?;
    /// let people = db.tree("people")?;
    /// assert_eq!(people.get(b"ada")?.unwrap(), b"1815");
    /// assert!(matches!(people.delete(b"ada"), Err(Error::ReadOnly)));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn open_read_only(path: impl AsRef<Path>, config: Config) -> Result<Db> {
        let options = OpenOptions { read_only: true, ..OpenOptions::default() };
        Db::open_in(path, config, options)
    }

    /// Opens a database in a world and a manner of the caller's choice.
    ///
    /// # Errors
    /// As [`Db::open`].
    ///
    /// ```
    /// use shaledb::{Config, Db, Env, OpenOptions};
    ///
    /// let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    /// let db = Db::open_in("/db", Config::default(), options)?;
    /// assert_eq!(db.tree_or_create("t")?.get(b"a")?, None);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn open_in(path: impl AsRef<Path>, config: Config, options: OpenOptions) -> Result<Db> {
        lifecycle::refuse_unfinished(path.as_ref())?;
        Db::open_any(path.as_ref(), &config, options)
    }

    /// As [`Db::open_in`], of a directory of any name: for whoever makes a database in it.
    pub(crate) fn open_any(path: &Path, config: &Config, options: OpenOptions) -> Result<Db> {
        let background = options.background;
        let core = lifecycle::open(path, config, options)?;
        let threads = match background {
            Background::Threads if !core.read_only => Threads::start(&core)?,
            _ => Threads::none(),
        };
        Ok(Db { handle: Arc::new(Handle { core, threads: Mutex::new(threads), follower: None }) })
    }

    /// The directory it is in, as given when it was opened.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = shaledb::Db::open(dir.path(), shaledb::Config::default())?;
    /// assert_eq!(db.path(), dir.path());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        self.handle.path()
    }

    /// The tree of this name.
    ///
    /// # Errors
    /// [`Error::NoSuchTree`] if there is none.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// assert!(db.tree("users").is_err());
    /// db.tree_or_create("users")?;
    /// assert_eq!(db.tree("users")?.name(), "users");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn tree(&self, name: &str) -> Result<Tree> {
        self.core().check_open()?;
        match self.core().trees.load().by_name.get(name) {
            Some(tree) => Ok(self.handle_to(tree.clone())),
            None => Err(Error::NoSuchTree(name.to_owned())),
        }
    }

    /// Creates a tree with a name of 1 to 1024 bytes; durable on return, and with it every earlier
    /// commit.
    ///
    /// # Errors
    /// [`Error::TreeExists`] if there is one of this name; [`Error::InvalidArgument`] if the name
    /// is empty or too long; [`Error::Config`] for a setting out of range.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// use shaledb::{Codec, Codecs, TreeConfig};
    ///
    /// let config = TreeConfig { codecs: Codecs::all(Codec::Lz4), ..TreeConfig::default() };
    /// let logs = db.create_tree("logs", config)?;
    /// assert_eq!(logs.config().codecs.bottommost, Codec::Lz4);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn create_tree(&self, name: &str, config: TreeConfig) -> Result<Tree> {
        let mut trees = self.change_trees(&[(name, config)], &[])?;
        trees.pop().ok_or(Error::Closed)
    }

    /// Drops trees and creates others in one step: all of it is durable on return, or nothing has
    /// changed. It costs as much as one [`Db::drop_tree`] or [`Db::create_tree`]. A name that is
    /// dropped may be created again. The new trees come in the order of `create`.
    ///
    /// # Errors
    /// Those of [`Db::create_tree`] and [`Db::drop_tree`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// let config = shaledb::TreeConfig::default();
    /// let trees = db.change_trees(&[("rows", config.clone()), ("index", config.clone())], &[])?;
    /// trees[0].put(b"1", b"ada")?;
    /// // Emptied together.
    /// let again = [("rows", config.clone()), ("index", config)];
    /// let trees = db.change_trees(&again, &["rows", "index"])?;
    /// assert!(trees[0].get(b"1")?.is_none());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn change_trees(&self, create: &[(&str, TreeConfig)], drop: &[&str]) -> Result<Vec<Tree>> {
        let trees = self.core().change_trees(create, drop)?;
        Ok(trees.into_iter().map(|tree| self.handle_to(tree)).collect())
    }

    /// The tree of this name; created with [`Config::tree`] if there is none. One that exists
    /// keeps the settings that it has.
    ///
    /// # Errors
    /// As [`Db::create_tree`], but for [`Error::TreeExists`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// db.tree_or_create("users")?.put(b"ada", b"1815")?;
    /// assert!(db.tree_or_create("users")?.contains(b"ada")?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
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
    /// does not depend on its size. Durable on return. Handles to it that are left answer with
    /// [`Error::NoSuchTree`] from now on, also if a tree of the same name is created.
    ///
    /// # Errors
    /// [`Error::NoSuchTree`] if there is none of this name.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// let old = db.tree_or_create("sessions")?;
    /// db.drop_tree("sessions")?;
    /// assert!(matches!(old.get(b"a"), Err(shaledb::Error::NoSuchTree(_))));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn drop_tree(&self, name: &str) -> Result<()> {
        self.change_trees(&[], &[name]).map(|_| ())
    }

    /// The names of all trees, sorted.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// db.tree_or_create("users")?;
    /// db.tree_or_create("emails")?;
    /// assert_eq!(db.tree_names(), ["emails", "users"]);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn tree_names(&self) -> Vec<String> {
        self.core().trees.load().by_name.keys().cloned().collect()
    }

    /// Applies a batch: all of it or nothing. It may wait while background work is behind.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the batch is too large (see [`Batch`]), has a key or value
    /// that is, or names a tree of another database; [`Error::NoSuchTree`] if a tree of it has been
    /// dropped; and, also for a batch of nothing, those of a database that takes no writes:
    /// [`Error::Closed`], [`Error::Poisoned`], [`Error::ReadOnly`]. Nothing of the batch is done
    /// then.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut batch = shaledb::Batch::new();
    /// batch.put(&tree, b"a", b"1");
    /// batch.put(&tree, b"b", b"2");
    /// db.write(&batch, shaledb::WriteOptions::SYNC)?;
    /// assert_eq!(tree.get(b"b")?.unwrap(), b"2");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn write(&self, batch: &Batch, options: WriteOptions) -> Result<()> {
        batch.write(&self.handle, options)
    }

    /// A snapshot of all trees, as of now.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let snapshot = db.snapshot();
    /// tree.put(b"a", b"1")?;
    /// assert_eq!(tree.get_at(b"a", &snapshot)?, None);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.core())
    }

    /// Makes every commit that has returned durable.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// for n in 0..1000u32 {
    ///     tree.put(&n.to_be_bytes(), b"")?;
    /// }
    /// db.sync()?; // one sync for all of them
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn sync(&self) -> Result<()> {
        self.core().sync_commits()
    }

    /// Writes all memtables to tables and waits for it. Seldom needed: memtables are written by
    /// themselves as they fill, and what is only in them is in the log too.
    ///
    /// # Errors
    /// What flushes fail with meanwhile.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"a", b"1")?;
    /// db.flush()?;
    /// let tables: u64 = db.stats().trees[0].levels.iter().map(|level| level.tables).sum();
    /// assert_eq!(tables, 1);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn flush(&self) -> Result<()> {
        self.core().check_open()?;
        self.core().flush(None)
    }

    /// Brings all data of all trees to the last level, tree by tree, and waits for it. It rewrites
    /// what is not there yet; afterwards deleted rows take no space (unless a snapshot sees them).
    ///
    /// # Errors
    /// What background work fails with meanwhile.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"a", b"1")?;
    /// tree.delete(b"a")?;
    /// db.compact()?;
    /// assert_eq!(db.stats().trees[0].levels.iter().map(|level| level.entries).sum::<u64>(), 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
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
    /// reading. Without this call that begins one second after the last write. It is for benchmarks
    /// and before a checkpoint. It may not return while others write. Trees whose compactions are
    /// held are not waited for: those of a [`ChangeRound`](crate::ChangeRound) that has not ended,
    /// and one into which a build is just being put.
    ///
    /// # Errors
    /// What background work fails with meanwhile.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"a", b"1")?;
    /// db.wait_idle()?;
    /// assert_eq!(db.stats().trees[0].memtables_sealed, 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn wait_idle(&self) -> Result<()> {
        self.core().wait_idle()
    }

    /// Sets what all files of the database may take together, in bytes; 0 for no limit. It holds
    /// until the database is closed: see [`Config::space_limit`]. (The sizes of memtables and
    /// tables stay as they were chosen when it was opened.)
    ///
    /// # Errors
    /// [`Error::Config`] if the limit is too little for memtables of the size that they have, or
    /// the files take more than that, or will with what is in memory.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// db.set_space_limit(10 << 30)?;
    /// assert_eq!(db.stats().space_limit, 10 << 30);
    /// assert!(db.set_space_limit(1000).unwrap_err().to_string().contains("`space_limit`"));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn set_space_limit(&self, bytes: u64) -> Result<()> {
        self.core().set_space_limit(bytes)
    }

    /// Makes a second database of the present state in the new directory `dir`. That must be on the
    /// same file system: tables are hard links, so a checkpoint costs little time and space.
    /// Memtables are flushed first; commits go on meanwhile. It is made in `dir` with `.unfinished`
    /// after its name, and renamed when it is complete.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `dir` is not empty; [`Error::Locked`] if another checkpoint of
    /// this name is being made. After any error `dir` is not there, unless only its name could not
    /// be made durable: then it is complete, and may be gone after a crash of the machine.
    ///
    /// ```
    /// # use shaledb::{Config, Db};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (path, copy) = (dir.path().join("people.db"), dir.path().join("people.backup"));
    /// let db = Db::open(&path, Config::default())?;
    /// let people = db.tree_or_create("people")?;
    /// people.put(b"ada", b"1815")?;
    /// db.checkpoint(&copy)?;
    /// people.delete(b"ada")?;
    ///
    /// let copy = Db::open(&copy, Config::default())?;
    /// assert!(copy.tree("people")?.contains(b"ada")?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.core().checkpoint(dir.as_ref())
    }

    /// Reads and checks every byte of every file that the database needs, past the cache: manifest,
    /// log, tables and blobs. `progress` is called after every file.
    ///
    /// # Errors
    /// What keeps a file from being read. Damage is no error, nor is a file that is missing or that
    /// the device cannot read: they are in the report.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"a", b"1")?;
    /// db.flush()?;
    /// let report = db.verify(&mut |at| eprintln!("{} of {}", at.bytes_done, at.bytes_total))?;
    /// assert!(report.damage.is_empty());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn verify(&self, progress: &mut dyn FnMut(VerifyProgress)) -> Result<VerifyReport> {
        self.core().verify(progress)
    }

    /// What the database has done and what it looks like. Its `Display` is a set of tables. Cheap
    /// enough to be asked for every second, not for every operation.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"a", b"1")?;
    /// let stats = db.stats();
    /// println!("{stats}");
    /// assert_eq!(stats.user_bytes, 2);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.core().stats()
    }

    /// With [`Background::Stepped`]: does one piece of background work; false if there was none to
    /// do now.
    ///
    /// # Errors
    /// What the work fails with; it is tried again by a later step.
    ///
    /// ```
    /// # use shaledb::{Background, Config, Db, Env, OpenOptions};
    /// let options =
    ///     OpenOptions { env: Env::memory(), background: Background::Stepped, read_only: false };
    /// let db = Db::open_in("/db", Config::default(), options)?;
    /// while db.step()? {}
    /// assert!(!db.step()?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn step(&self) -> Result<bool> {
        match self.core().next_job() {
            Some(job) => self.core().run_job(job).map(|()| true),
            None => Ok(false),
        }
    }

    /// Ends background work, makes the log durable and closes; other handles get
    /// [`Error::Closed`] from now on, scans and readers too. The same happens when the last handle
    /// is dropped, but an error is then only logged, and scans that are left go on.
    ///
    /// When it returns, the directory may be opened anew, here or by another process, or removed:
    /// calls that other threads are in the middle of change nothing in it any more. What they, or
    /// scans that are left, would have removed the next open removes.
    ///
    /// # Errors
    /// What keeps the log from being made durable; [`Error::Poisoned`] if an earlier failure has
    /// kept commits from it that were not synced.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"a", b"1")?;
    /// db.close()?;
    /// assert!(matches!(tree.get(b"a"), Err(shaledb::Error::Closed)));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn close(self) -> Result<()> {
        let result = self.handle.close();
        self.core().ended.store(true, Ordering::Release);
        result
    }
}
