//! The only door to disk, clock and chance: what a database asks of the world that it lives in.
//!
//! [`Env::os`] is the real machine, [`Env::memory`] a disk in memory. An [`Fs`] or a [`Clock`] of
//! one's own goes into an [`Env`] likewise, for another kind of storage or for tests.
//!
//! What a caller may rely on, and no more: appended bytes are durable after [`WriteFile::sync`];
//! a created, renamed, linked or removed name is durable after [`Fs::sync_dir`] of its directory.
//! All paths are absolute or relative to the process; every error names the path.

mod files;
#[cfg_attr(doc, doc(hidden))]
pub mod guard;
#[cfg_attr(doc, doc(hidden))]
pub mod mem;
#[cfg_attr(doc, doc(hidden))]
pub mod meter;
#[cfg_attr(doc, doc(hidden))]
pub mod os;

pub use files::{create_dirs, read_all, remove_dirs, replace};

use crate::base::error::Result;
use std::path::Path;
use std::sync::Arc;

/// A file open for reading at any position. Thread-safe.
///
/// ```
/// # let fs = shale::Env::memory().fs;
/// # let path = std::path::Path::new("/greeting");
/// # fs.create(path)?.append(b"hello world")?;
/// let file = fs.open(path)?;
/// let mut word = [0; 5];
/// file.read_at(6, &mut word)?;
/// assert_eq!(&word, b"world");
/// # Ok::<(), shale::Error>(())
/// ```
#[allow(clippy::len_without_is_empty)] // An empty file is nothing special.
pub trait ReadFile: Send + Sync {
    /// Fills all of `buf` from byte `offset` on.
    ///
    /// # Errors
    /// [`Error::Corruption`](crate::Error::Corruption) if the file ends before `buf` is full:
    /// whoever reads knows from elsewhere how long the file was when it was written.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// # let path = std::path::Path::new("/greeting");
    /// # fs.create(path)?.append(b"hello world")?;
    /// # let file = fs.open(path)?;
    /// let mut word = [0; 5];
    /// file.read_at(0, &mut word)?;
    /// assert_eq!(&word, b"hello");
    /// assert!(file.read_at(7, &mut word).unwrap_err().is_corruption());
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// The file's length in bytes.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// # let path = std::path::Path::new("/greeting");
    /// # fs.create(path)?.append(b"hello world")?;
    /// assert_eq!(fs.open(path)?.len()?, 11);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn len(&self) -> Result<u64>;

    /// Tells the system that `bytes` bytes from `offset` on will be read soon. Never fails; it may
    /// do nothing.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// # let path = std::path::Path::new("/greeting");
    /// # fs.create(path)?.append(b"hello world")?;
    /// let file = fs.open(path)?;
    /// file.prefetch(0, file.len()?);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn prefetch(&self, offset: u64, bytes: u64);

    /// Where the file is, for messages.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// # let path = std::path::Path::new("/greeting");
    /// # fs.create(path)?;
    /// assert_eq!(fs.open(path)?.path(), path);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn path(&self) -> &Path;
}

/// A file open for appending, by one owner.
///
/// ```
/// # let fs = shale::Env::memory().fs;
/// # let dir = std::path::Path::new("/");
/// let mut file = fs.create(&dir.join("greeting"))?;
/// file.append(b"hello")?;
/// file.sync()?; // its content is durable
/// fs.sync_dir(dir)?; // and so is its name
/// # Ok::<(), shale::Error>(())
/// ```
#[allow(clippy::len_without_is_empty)] // An empty file is nothing special.
pub trait WriteFile: Send {
    /// Appends all of `bytes`, or fails. After a failure the tail of the file is unknown until
    /// [`WriteFile::truncate`] succeeds.
    ///
    /// # Errors
    /// [`Error::DiskFull`](crate::Error::DiskFull) if there is no space.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// let mut file = fs.create("/greeting".as_ref())?;
    /// file.append(b"hello ")?;
    /// file.append(b"world")?;
    /// assert_eq!(file.len(), 11);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes everything appended so far durable. After a failure the file must not be trusted, and
    /// a second try proves nothing.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// let mut file = fs.create("/greeting".as_ref())?;
    /// file.append(b"hello")?;
    /// file.sync()?;
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn sync(&mut self) -> Result<()>;

    /// A second handle that can make what was appended so far durable, from another thread.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// let mut file = fs.create("/greeting".as_ref())?;
    /// file.append(b"hello")?;
    /// let syncer = file.syncer()?;
    /// std::thread::spawn(move || syncer.sync()).join().unwrap()?;
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn syncer(&self) -> Result<Box<dyn Syncer>>;

    /// Starts writing appended bytes to the device without waiting. Never fails; it may do nothing.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// let mut file = fs.create("/greeting".as_ref())?;
    /// file.append(b"hello")?;
    /// file.flush_hint(); // so that the sync finds less to do
    /// file.sync()?;
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn flush_hint(&mut self);

    /// Cuts the file back to its first `bytes` bytes, undoing a failed append.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// let mut file = fs.create("/greeting".as_ref())?;
    /// file.append(b"hello world")?;
    /// file.truncate(5)?;
    /// assert_eq!(file.len(), 5);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn truncate(&mut self, bytes: u64) -> Result<()>;

    /// The file's length in bytes, as far as appends have succeeded.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// let mut file = fs.create("/greeting".as_ref())?;
    /// file.append(b"hello")?;
    /// assert_eq!(file.len(), 5);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn len(&self) -> u64;

    /// Where the file is, for messages.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// let file = fs.create("/greeting".as_ref())?;
    /// assert_eq!(file.path().display().to_string(), "/greeting");
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn path(&self) -> &Path;
}

/// Makes a file durable from a thread other than its writer's; see [`WriteFile::syncer`].
///
/// ```
/// # let fs = shale::Env::memory().fs;
/// let mut file = fs.create("/greeting".as_ref())?;
/// file.append(b"hello")?;
/// let syncer: Box<dyn shale::fs::Syncer> = file.syncer()?;
/// std::thread::spawn(move || syncer.sync()).join().unwrap()?;
/// # Ok::<(), shale::Error>(())
/// ```
pub trait Syncer: Send + Sync {
    /// Makes everything appended before this call durable. After a failure the file must not be
    /// trusted.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// # let mut file = fs.create("/greeting".as_ref())?;
    /// let syncer = file.syncer()?;
    /// file.append(b"hello")?;
    /// syncer.sync()?;
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn sync(&self) -> Result<()>;
}

/// One name in a directory; see [`Fs::list`].
///
/// ```
/// # let fs = shale::Env::memory().fs;
/// fs.create("/greeting".as_ref())?.append(b"hello")?;
/// let entry = &fs.list("/".as_ref())?[0];
/// assert_eq!((entry.name.as_str(), entry.bytes, entry.is_dir), ("greeting", 5, false));
/// # Ok::<(), shale::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name, without its directory. Names that are not UTF-8 are left out of a listing.
    pub name: String,
    /// The length in bytes; 0 for a directory.
    pub bytes: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// Held while a directory is in use; released when dropped. See [`Fs::lock`].
///
/// ```
/// # let fs = shale::Env::memory().fs;
/// let lock: Box<dyn shale::fs::Lock> = fs.lock("/LOCK".as_ref())?;
/// assert!(fs.lock("/LOCK".as_ref()).is_err());
/// drop(lock);
/// assert!(fs.lock("/LOCK".as_ref()).is_ok());
/// # Ok::<(), shale::Error>(())
/// ```
pub trait Lock: Send + Sync {}

/// A file system.
///
/// Every call answers with [`Error::Io`](crate::Error::Io), naming the path, if the system refuses
/// it; what else it may answer with is said there.
///
/// ```
/// use shale::fs::Fs;
///
/// fn total_bytes(fs: &dyn Fs, dir: &std::path::Path) -> shale::Result<u64> {
///     Ok(fs.list(dir)?.iter().map(|entry| entry.bytes).sum())
/// }
///
/// let env = shale::Env::memory();
/// env.fs.create("/a".as_ref())?.append(b"12")?;
/// env.fs.create("/b".as_ref())?.append(b"345")?;
/// assert_eq!(total_bytes(&*env.fs, "/".as_ref())?, 5);
/// # Ok::<(), shale::Error>(())
/// ```
pub trait Fs: Send + Sync {
    /// Creates an empty file for appending; an existing one of that name is emptied.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// fs.create("/a".as_ref())?.append(b"12345")?;
    /// assert_eq!(fs.create("/a".as_ref())?.len(), 0);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>>;

    /// Opens an existing file for appending at its end.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// fs.create("/a".as_ref())?.append(b"123")?;
    /// fs.append("/a".as_ref())?.append(b"45")?;
    /// assert_eq!(fs.open("/a".as_ref())?.len()?, 5);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn append(&self, path: &Path) -> Result<Box<dyn WriteFile>>;

    /// Opens an existing file for reading.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// assert!(fs.open("/a".as_ref()).is_err());
    /// fs.create("/a".as_ref())?;
    /// assert!(fs.open("/a".as_ref()).is_ok());
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>>;

    /// Renames a file, replacing any of the new name atomically; or a directory, whose new name
    /// must not exist or be an empty directory.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// fs.create("/new".as_ref())?.append(b"1")?;
    /// fs.rename("/new".as_ref(), "/current".as_ref())?;
    /// assert!(fs.exists("/current".as_ref())? && !fs.exists("/new".as_ref())?);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file. Those who have it open can go on reading it.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// fs.create("/a".as_ref())?;
    /// fs.remove("/a".as_ref())?;
    /// assert!(!fs.exists("/a".as_ref())?);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn remove(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// fs.create_dir_all("/dir".as_ref())?;
    /// fs.remove_dir("/dir".as_ref())?;
    /// assert!(!fs.exists("/dir".as_ref())?);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// Gives an existing file a second name, on the same file system.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// fs.create("/a".as_ref())?.append(b"12345")?;
    /// fs.link("/a".as_ref(), "/b".as_ref())?;
    /// fs.remove("/a".as_ref())?;
    /// assert_eq!(fs.open("/b".as_ref())?.len()?, 5);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn link(&self, from: &Path, to: &Path) -> Result<()>;

    /// Lists a directory, sorted by name.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// fs.create("/b".as_ref())?;
    /// fs.create("/a".as_ref())?;
    /// let names: Vec<String> = fs.list("/".as_ref())?.into_iter().map(|e| e.name).collect();
    /// assert_eq!(names, ["a", "b"]);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>>;

    /// Whether there is a file or directory of this name.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// assert!(!fs.exists("/a".as_ref())?);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn exists(&self, path: &Path) -> Result<bool>;

    /// Creates a directory and those above it; nothing happens if it is there.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// fs.create_dir_all("/data/2026".as_ref())?;
    /// assert!(fs.list("/data".as_ref())?[0].is_dir);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// Makes the names in a directory durable (not the content of its files).
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// fs.create("/a".as_ref())?.sync()?; // durable, but under no name yet
    /// fs.sync_dir("/".as_ref())?;
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Takes the lock file `path`, creating it if needed.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked) if another holder has it, in this process or in
    /// another.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// let held = fs.lock("/LOCK".as_ref())?;
    /// assert!(matches!(fs.lock("/LOCK".as_ref()), Err(shale::Error::Locked { .. })));
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>>;

    /// Takes a share of the lock file `path`, which must exist, and changes nothing: others may
    /// take a share of it too, and nobody may [`Fs::lock`] it. Where a file system has no shares,
    /// this takes the whole lock.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked) if another holder has the whole lock.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// drop(fs.lock("/LOCK".as_ref())?); // makes the file
    /// let one = fs.lock_shared("/LOCK".as_ref())?;
    /// let other = fs.lock_shared("/LOCK".as_ref())?;
    /// assert!(matches!(fs.lock("/LOCK".as_ref()), Err(shale::Error::Locked { .. })));
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.lock(path)
    }

    /// Bytes free for use on the device that holds `dir`.
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// assert!(fs.free_bytes("/".as_ref())? > 1_000_000);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn free_bytes(&self, dir: &Path) -> Result<u64>;

    /// Bytes that the file occupies on the device (allocated blocks).
    ///
    /// ```
    /// # let fs = shale::Env::memory().fs;
    /// fs.create("/a".as_ref())?.append(b"1")?;
    /// assert_eq!(fs.allocated_bytes("/a".as_ref())?, 4096);
    /// # Ok::<(), shale::Error>(())
    /// ```
    fn allocated_bytes(&self, path: &Path) -> Result<u64>;
}

/// Time, as the engine sees it.
///
/// ```
/// use shale::fs::Clock;
///
/// fn timed(clock: &dyn Clock, work: impl FnOnce()) -> u64 {
///     let start = clock.now_nanos();
///     work();
///     clock.now_nanos() - start
/// }
///
/// let env = shale::Env::os();
/// assert!(timed(&*env.clock, || env.clock.sleep_nanos(1_000)) >= 1_000);
/// ```
pub trait Clock: Send + Sync {
    /// Nanoseconds since some fixed moment; never goes back.
    ///
    /// ```
    /// let clock = shale::Env::os().clock;
    /// let before = clock.now_nanos();
    /// assert!(clock.now_nanos() >= before);
    /// ```
    fn now_nanos(&self) -> u64;

    /// Nanoseconds of CPU that the calling thread has used.
    ///
    /// ```
    /// let clock = shale::Env::os().clock;
    /// let before = clock.thread_cpu_nanos();
    /// assert!(clock.thread_cpu_nanos() >= before);
    /// ```
    fn thread_cpu_nanos(&self) -> u64;

    /// Waits for so many nanoseconds, or somewhat longer.
    ///
    /// ```
    /// let clock = shale::Env::os().clock;
    /// let before = clock.now_nanos();
    /// clock.sleep_nanos(1_000);
    /// assert!(clock.now_nanos() >= before + 1_000);
    /// ```
    fn sleep_nanos(&self, nanos: u64);
}

/// The world that a database lives in; see [`OpenOptions`](crate::OpenOptions).
///
/// ```
/// use shale::{Config, Db, Env, OpenOptions};
///
/// let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
/// let db = Db::open_in("/db", Config::default(), options)?;
/// db.tree_or_create("t")?.put(b"a", b"1")?;
/// # Ok::<(), shale::Error>(())
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
    /// let env = shale::Env::os();
    /// assert!(env.fs.exists(&std::env::temp_dir())?);
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn os() -> Env {
        Env { fs: Arc::new(os::OsFs), clock: Arc::new(os::OsClock::new()) }
    }

    /// An empty disk in memory, with the machine's clock, for tests: it leaves nothing behind.
    /// Clones share the disk, so a database on it can be closed and opened again; it is gone with
    /// the last clone. Its files come on top of [`Config::memory_bytes`](crate::Config).
    ///
    /// ```
    /// # use shale::{Config, Db, Env, OpenOptions};
    /// let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    /// let db = Db::open_in("/db", Config::default(), options.clone())?;
    /// db.tree_or_create("t")?.put(b"a", b"1")?;
    /// db.close()?;
    ///
    /// let db = Db::open_in("/db", Config::default(), options)?;
    /// assert_eq!(db.tree("t")?.get(b"a")?.unwrap(), b"1");
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn memory() -> Env {
        Env { fs: Arc::new(mem::MemFs::new()), clock: Arc::new(os::OsClock::new()) }
    }
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Env")
    }
}
