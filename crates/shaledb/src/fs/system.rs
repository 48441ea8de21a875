//! A file system: names, directories, locks, and the way to files.

use super::file::{ReadFile, WriteFile};
use crate::base::error::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One name in a directory; see [`Fs::list`].
///
/// ```
/// # let fs = shaledb::Env::memory().fs;
/// fs.create("/greeting".as_ref())?.append(b"hello")?;
/// let entry = &fs.list("/".as_ref())?[0];
/// assert_eq!((entry.name.as_str(), entry.bytes, entry.is_dir), ("greeting", 5, false));
/// # Ok::<(), shaledb::Error>(())
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
/// # let fs = shaledb::Env::memory().fs;
/// let lock: Box<dyn shaledb::fs::Lock> = fs.lock("/LOCK".as_ref())?;
/// assert!(fs.lock("/LOCK".as_ref()).is_err());
/// drop(lock);
/// assert!(fs.lock("/LOCK".as_ref()).is_ok());
/// # Ok::<(), shaledb::Error>(())
/// ```
pub trait Lock: Send + Sync {}

/// A file system.
///
/// Every call answers with [`Error::Io`](crate::Error::Io), naming the path, if the system refuses
/// it; what else it may answer with is said there.
///
/// ```
/// use shaledb::fs::Fs;
///
/// fn total_bytes(fs: &dyn Fs, dir: &std::path::Path) -> shaledb::Result<u64> {
///     Ok(fs.list(dir)?.iter().map(|entry| entry.bytes).sum())
/// }
///
/// let env = shaledb::Env::memory();
/// env.fs.create("/a".as_ref())?.append(b"12")?;
/// env.fs.create("/b".as_ref())?.append(b"345")?;
/// assert_eq!(total_bytes(&*env.fs, "/".as_ref())?, 5);
/// # Ok::<(), shaledb::Error>(())
/// ```
pub trait Fs: Send + Sync {
    /// Creates an empty file for appending; an existing one of that name is emptied.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// fs.create("/a".as_ref())?.append(b"12345")?;
    /// assert_eq!(fs.create("/a".as_ref())?.len(), 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>>;

    /// As [`Fs::create`], for a log: many small appends, of which each outlives the process. The
    /// file may be longer than what was appended, with zeros behind it, until its writer and the
    /// [`Preparer`](crate::fs::Preparer) have gone; after a crash it may stay so.
    ///
    /// `pace` is how many bytes are likely to be appended from one sync to the next, as
    /// [`WriteFile::pace`](crate::fs::WriteFile::pace) of the log before it says; 0 if not known.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// let mut log = fs.create_log("/log".as_ref(), 0)?;
    /// log.append(b"12345")?;
    /// assert_eq!(log.len(), 5);
    /// drop(log);
    /// assert_eq!(fs.open("/log".as_ref())?.len()?, 5);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn create_log(&self, path: &Path, pace: u64) -> Result<Box<dyn WriteFile>> {
        let _ = pace;
        self.create(path)
    }

    /// Opens an existing file for appending at its end.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// fs.create("/a".as_ref())?.append(b"123")?;
    /// fs.append("/a".as_ref())?.append(b"45")?;
    /// assert_eq!(fs.open("/a".as_ref())?.len()?, 5);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn append(&self, path: &Path) -> Result<Box<dyn WriteFile>>;

    /// Opens an existing file for reading.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// assert!(fs.open("/a".as_ref()).is_err());
    /// fs.create("/a".as_ref())?;
    /// assert!(fs.open("/a".as_ref()).is_ok());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>>;

    /// Renames a file, replacing any of the new name atomically; or a directory, whose new name
    /// must not exist or be an empty directory.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// fs.create("/new".as_ref())?.append(b"1")?;
    /// fs.rename("/new".as_ref(), "/current".as_ref())?;
    /// assert!(fs.exists("/current".as_ref())? && !fs.exists("/new".as_ref())?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file. Those who have it open can go on reading it.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// fs.create("/a".as_ref())?;
    /// fs.remove("/a".as_ref())?;
    /// assert!(!fs.exists("/a".as_ref())?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn remove(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// fs.create_dir_all("/dir".as_ref())?;
    /// fs.remove_dir("/dir".as_ref())?;
    /// assert!(!fs.exists("/dir".as_ref())?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// Gives an existing file a second name, on the same file system.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// fs.create("/a".as_ref())?.append(b"12345")?;
    /// fs.link("/a".as_ref(), "/b".as_ref())?;
    /// fs.remove("/a".as_ref())?;
    /// assert_eq!(fs.open("/b".as_ref())?.len()?, 5);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn link(&self, from: &Path, to: &Path) -> Result<()>;

    /// Lists a directory, sorted by name.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// fs.create("/b".as_ref())?;
    /// fs.create("/a".as_ref())?;
    /// let names: Vec<String> = fs.list("/".as_ref())?.into_iter().map(|e| e.name).collect();
    /// assert_eq!(names, ["a", "b"]);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>>;

    /// Whether there is a file or directory of this name.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// assert!(!fs.exists("/a".as_ref())?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn exists(&self, path: &Path) -> Result<bool>;

    /// Creates a directory and those above it; nothing happens if it is there.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// fs.create_dir_all("/data/2026".as_ref())?;
    /// assert!(fs.list("/data".as_ref())?[0].is_dir);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// Makes the names in a directory durable (not the content of its files).
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// fs.create("/a".as_ref())?.sync()?; // durable, but under no name yet
    /// fs.sync_dir("/".as_ref())?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Takes the lock file `path`, creating it if needed.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked) if another holder has it, in this process or in
    /// another.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// let held = fs.lock("/LOCK".as_ref())?;
    /// assert!(matches!(fs.lock("/LOCK".as_ref()), Err(shaledb::Error::Locked { .. })));
    /// # Ok::<(), shaledb::Error>(())
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
    /// # let fs = shaledb::Env::memory().fs;
    /// drop(fs.lock("/LOCK".as_ref())?); // makes the file
    /// let one = fs.lock_shared("/LOCK".as_ref())?;
    /// let other = fs.lock_shared("/LOCK".as_ref())?;
    /// assert!(matches!(fs.lock("/LOCK".as_ref()), Err(shaledb::Error::Locked { .. })));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.lock(path)
    }

    /// Bytes free for use on the device that holds `dir`.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// assert!(fs.free_bytes("/".as_ref())? > 1_000_000);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn free_bytes(&self, dir: &Path) -> Result<u64>;

    /// Bytes that the file occupies on the device (allocated blocks).
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// fs.create("/a".as_ref())?.append(b"1")?;
    /// assert_eq!(fs.allocated_bytes("/a".as_ref())?, 4096);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn allocated_bytes(&self, path: &Path) -> Result<u64>;

    /// A path that goes on naming the same file when the process changes its directory. It is asked
    /// for once, when a database is opened. The default is for a file system that knows no such
    /// directory; one that hands relative paths on to another hands this on too.
    ///
    /// ```
    /// let fs = shaledb::Env::os().fs;
    /// assert_eq!(fs.absolute("a".as_ref())?, std::env::current_dir().unwrap().join("a"));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// How many files the process may have open, if there is a bound: a database keeps a part of
    /// that open. It is asked for once, when a database is opened. The default is for a file system
    /// without one.
    ///
    /// ```
    /// assert!(shaledb::Env::os().fs.files_open_max().is_none_or(|files| files > 2));
    /// assert!(shaledb::Env::memory().fs.files_open_max().is_none());
    /// ```
    fn files_open_max(&self) -> Option<u64> {
        None
    }
}
