//! A file as whoever reads or writes it sees it.

use crate::base::error::Result;
use std::path::Path;
use std::sync::Arc;

/// A file open for reading at any position. Thread-safe.
///
/// ```
/// # let fs = shaledb::Env::memory().fs;
/// # let path = std::path::Path::new("/greeting");
/// # fs.create(path)?.append(b"hello world")?;
/// let file = fs.open(path)?;
/// let mut word = [0; 5];
/// file.read_at(6, &mut word)?;
/// assert_eq!(&word, b"world");
/// # Ok::<(), shaledb::Error>(())
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
    /// # let fs = shaledb::Env::memory().fs;
    /// # let path = std::path::Path::new("/greeting");
    /// # fs.create(path)?.append(b"hello world")?;
    /// # let file = fs.open(path)?;
    /// let mut word = [0; 5];
    /// file.read_at(0, &mut word)?;
    /// assert_eq!(&word, b"hello");
    /// assert!(file.read_at(7, &mut word).unwrap_err().is_corruption());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// The file's length in bytes.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// # let path = std::path::Path::new("/greeting");
    /// # fs.create(path)?.append(b"hello world")?;
    /// assert_eq!(fs.open(path)?.len()?, 11);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn len(&self) -> Result<u64>;

    /// Tells the system that `bytes` bytes from `offset` on will be read soon. Never fails; it may
    /// do nothing.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// # let path = std::path::Path::new("/greeting");
    /// # fs.create(path)?.append(b"hello world")?;
    /// let file = fs.open(path)?;
    /// file.prefetch(0, file.len()?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn prefetch(&self, offset: u64, bytes: u64);

    /// Where the file is, for messages.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// # let path = std::path::Path::new("/greeting");
    /// # fs.create(path)?;
    /// assert_eq!(fs.open(path)?.path(), path);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn path(&self) -> &Path;
}

/// A file open for appending, by one owner.
///
/// ```
/// # let fs = shaledb::Env::memory().fs;
/// # let dir = std::path::Path::new("/");
/// let mut file = fs.create(&dir.join("greeting"))?;
/// file.append(b"hello")?;
/// file.sync()?; // its content is durable
/// fs.sync_dir(dir)?; // and so is its name
/// # Ok::<(), shaledb::Error>(())
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
    /// # let fs = shaledb::Env::memory().fs;
    /// let mut file = fs.create("/greeting".as_ref())?;
    /// file.append(b"hello ")?;
    /// file.append(b"world")?;
    /// assert_eq!(file.len(), 11);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes everything appended so far durable. After a failure the file must not be trusted, and
    /// a second try proves nothing.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// let mut file = fs.create("/greeting".as_ref())?;
    /// file.append(b"hello")?;
    /// file.sync()?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn sync(&mut self) -> Result<()>;

    /// A second handle that can make what was appended so far durable, from another thread.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// let mut file = fs.create("/greeting".as_ref())?;
    /// file.append(b"hello")?;
    /// let syncer = file.syncer()?;
    /// std::thread::spawn(move || syncer.sync()).join().unwrap()?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn syncer(&self) -> Result<Box<dyn Syncer>>;

    /// Starts writing appended bytes to the device without waiting. Never fails; it may do nothing.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// let mut file = fs.create("/greeting".as_ref())?;
    /// file.append(b"hello")?;
    /// file.flush_hint(); // so that the sync finds less to do
    /// file.sync()?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn flush_hint(&mut self);

    /// Cuts the file back to its first `bytes` bytes, of which it has at least as many, undoing a
    /// failed append.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// let mut file = fs.create("/greeting".as_ref())?;
    /// file.append(b"hello world")?;
    /// file.truncate(5)?;
    /// assert_eq!(file.len(), 5);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn truncate(&mut self, bytes: u64) -> Result<()>;

    /// The file's length in bytes, as far as appends have succeeded.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// let mut file = fs.create("/greeting".as_ref())?;
    /// file.append(b"hello")?;
    /// assert_eq!(file.len(), 5);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn len(&self) -> u64;

    /// What another thread can do ahead of appends, so that they wait for less; `None` if there is
    /// nothing, as of all files but logs.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// assert!(fs.create("/greeting".as_ref())?.preparer().is_none());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn preparer(&self) -> Option<Arc<dyn Preparer>> {
        None
    }

    /// How many bytes were appended from one sync to the next of late; 0 if nobody has looked. For
    /// [`Fs::create_log`](crate::fs::Fs::create_log).
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// assert_eq!(fs.create("/greeting".as_ref())?.pace(), 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn pace(&self) -> u64 {
        0
    }

    /// Where the file is, for messages.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// let file = fs.create("/greeting".as_ref())?;
    /// assert_eq!(file.path().display().to_string(), "/greeting");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn path(&self) -> &Path;
}

/// Makes a file durable from a thread other than its writer's; see [`WriteFile::syncer`].
///
/// ```
/// # let fs = shaledb::Env::memory().fs;
/// let mut file = fs.create("/greeting".as_ref())?;
/// file.append(b"hello")?;
/// let syncer: Box<dyn shaledb::fs::Syncer> = file.syncer()?;
/// std::thread::spawn(move || syncer.sync()).join().unwrap()?;
/// # Ok::<(), shaledb::Error>(())
/// ```
pub trait Syncer: Send + Sync {
    /// Makes everything appended before this call durable. After a failure the file must not be
    /// trusted.
    ///
    /// ```
    /// # let fs = shaledb::Env::memory().fs;
    /// # let mut file = fs.create("/greeting".as_ref())?;
    /// let syncer = file.syncer()?;
    /// file.append(b"hello")?;
    /// syncer.sync()?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn sync(&self) -> Result<()>;
}

/// Works ahead of the appends to a log file, from threads other than its writer's; see
/// [`WriteFile::preparer`]. Appends are right without it, and slower.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let fs = shaledb::Env::os().fs;
/// let mut log = fs.create_log(&dir.path().join("log"), 0)?;
/// log.append(b"hello")?;
/// if let Some(preparer) = log.preparer() {
///     let wished = preparer.takes_wish();
///     assert!(!wished, "a few bytes ask for nothing");
///     drop(log);
///     assert!(!preparer.clear(), "its writer has gone");
/// }
/// # Ok::<(), shaledb::Error>(())
/// ```
pub trait Preparer: Send + Sync {
    /// Whether there is something to prepare that no earlier call has told of. Costs next to
    /// nothing: to be asked after each append.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let log = shaledb::Env::os().fs.create_log(&dir.path().join("log"), 0)?;
    /// assert!(log.preparer().is_none_or(|preparer| !preparer.takes_wish()));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn takes_wish(&self) -> bool;

    /// Does a piece of what the writer will soon need, and nothing else. Answers whether there is
    /// another piece to do.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let log = shaledb::Env::os().fs.create_log(&dir.path().join("log"), 0)?;
    /// assert!(log.preparer().is_none_or(|preparer| !preparer.prepare()));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn prepare(&self) -> bool;

    /// As [`Preparer::prepare`], but where that makes the file longer, `may_grow` is first asked
    /// whether the file may have so many bytes; if not it is as on a full disk.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let path = dir.path().join("log");
    /// let log = shaledb::Env::os().fs.create_log(&path, 64 << 20)?;
    /// if let Some(preparer) = log.preparer() {
    ///     assert!(!preparer.prepare_within(&|_| false));
    /// }
    /// assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn prepare_within(&self, may_grow: &dyn Fn(u64) -> bool) -> bool {
        let _ = may_grow;
        self.prepare()
    }

    /// Does what may be late and may take long, best in a thread that nobody waits for: lets go of
    /// what the writer has left, and has the device write. Answers whether more may come: not once
    /// the writer has gone.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let log = shaledb::Env::os().fs.create_log(&dir.path().join("log"), 0)?;
    /// assert!(log.preparer().is_none_or(|preparer| preparer.clear()));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    fn clear(&self) -> bool;
}
