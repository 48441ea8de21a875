//! The only door to disk, clock and chance. [`os`] is the real machine; [`mem`] is a simulated disk
//! that knows what has been synced, can crash, and can fail at any call.
//!
//! What a caller may rely on, and no more: appended bytes are durable after [`WriteFile::sync`];
//! a created, renamed, linked or removed name is durable after [`Fs::sync_dir`] of its directory.
//! All paths are absolute or relative to the process; every error names the path.

pub mod mem;
pub mod os;

use crate::base::error::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file open for reading at any position. Thread-safe.
#[allow(clippy::len_without_is_empty)] // An empty file is nothing special.
pub trait ReadFile: Send + Sync {
    /// Fills `buf` from `offset`. Reading past the end is [`Corruption`](crate::Error::Corruption).
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;
    /// The file's length in bytes.
    fn len(&self) -> Result<u64>;
    /// Tells the system that this range will be read soon. Never fails.
    fn prefetch(&self, offset: u64, bytes: u64);
    /// Where the file is, for messages.
    fn path(&self) -> &Path;
}

/// A file open for appending, by one owner.
#[allow(clippy::len_without_is_empty)] // An empty file is nothing special.
pub trait WriteFile: Send {
    /// Appends all of `bytes`, or fails. After a failure the tail of the file is unknown until
    /// [`WriteFile::truncate`] succeeds.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Makes everything appended so far durable. After a failure the file must not be trusted.
    fn sync(&mut self) -> Result<()>;
    /// A second handle that can make what was appended so far durable, from another thread.
    fn syncer(&self) -> Result<Box<dyn Syncer>>;
    /// Starts writing appended bytes to the device without waiting. Never fails; a hint.
    fn flush_hint(&mut self);
    /// Cuts the file back to `bytes`, undoing a failed append.
    fn truncate(&mut self, bytes: u64) -> Result<()>;
    /// How many bytes have been appended successfully.
    fn len(&self) -> u64;
    /// Where the file is, for messages.
    fn path(&self) -> &Path;
}

/// Makes a file durable from a thread other than its writer's.
pub trait Syncer: Send + Sync {
    /// Makes everything appended before this call durable.
    fn sync(&self) -> Result<()>;
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name, without its directory. Names that are not UTF-8 are left out of a listing.
    pub name: String,
    /// The length in bytes; 0 for a directory.
    pub bytes: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// Held while a directory is in use; released when dropped.
pub trait Lock: Send + Sync {}

/// A file system.
pub trait Fs: Send + Sync {
    /// Creates an empty file for appending; an existing one of that name is emptied.
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>>;
    /// Opens an existing file for appending at its end.
    fn append(&self, path: &Path) -> Result<Box<dyn WriteFile>>;
    /// Opens an existing file for reading.
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>>;
    /// Renames a file, replacing any of the new name atomically; or a directory, whose new name
    /// must not exist or be an empty directory.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;
    /// Gives an existing file a second name.
    fn link(&self, from: &Path, to: &Path) -> Result<()>;
    /// Lists a directory, sorted by name.
    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>>;
    /// Whether there is a file or directory of this name.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Creates a directory and those above it.
    fn create_dir_all(&self, path: &Path) -> Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> Result<()>;
    /// Takes the lock file `path`, creating it if needed;
    /// [`Locked`](crate::Error::Locked) if another holder has it.
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>>;
    /// Bytes free for use on the device that holds `dir`.
    fn free_bytes(&self, dir: &Path) -> Result<u64>;
    /// Bytes that the file occupies on the device (allocated blocks).
    fn allocated_bytes(&self, path: &Path) -> Result<u64>;
}

/// Time, as the engine sees it.
pub trait Clock: Send + Sync {
    /// Nanoseconds since some fixed moment; never goes back.
    fn now_nanos(&self) -> u64;
    /// CPU nanoseconds used by the calling thread.
    fn thread_cpu_nanos(&self) -> u64;
    /// Waits.
    fn sleep_nanos(&self, nanos: u64);
}

/// The world that a database lives in.
#[derive(Clone)]
pub struct Env {
    /// Its disk.
    pub fs: Arc<dyn Fs>,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
}

impl Env {
    /// The real machine.
    pub fn os() -> Env {
        Env { fs: Arc::new(os::OsFs), clock: Arc::new(os::OsClock::new()) }
    }
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Env")
    }
}

/// Writes a small file so that after a crash either the old or the new content is there: written
/// beside, synced, renamed over, directory synced.
pub fn replace(fs: &dyn Fs, path: &Path, content: &[u8]) -> Result<()> {
    let beside: PathBuf = path.with_extension("tmp");
    let mut file = fs.create(&beside)?;
    file.append(content)?;
    file.sync()?;
    drop(file);
    fs.rename(&beside, path)?;
    match path.parent() {
        Some(dir) => fs.sync_dir(dir),
        None => Ok(()),
    }
}

/// Creates a directory and those above it, and makes the names of all of them durable: also of
/// those that are there already, since whoever made them may have been killed before this. Answers
/// with those that it made, the outermost first; after an error none of them is left, if that can
/// be helped.
pub fn create_dirs(fs: &dyn Fs, dir: &Path) -> Result<Vec<PathBuf>> {
    let mut missing = Vec::new();
    for dir in dir.ancestors() {
        if dir.as_os_str().is_empty() || fs.exists(dir)? {
            break;
        }
        missing.push(dir.to_owned());
    }
    let make = || -> Result<()> {
        fs.create_dir_all(dir)?;
        for (index, parent) in dir.ancestors().skip(1).enumerate() {
            match fs.sync_dir(parent) {
                // We have made nothing in it, nor has anybody else without more rights.
                Err(error) if index >= missing.len() && error.is_permission_denied() => {}
                other => other?,
            }
        }
        Ok(())
    };
    let result = make();
    missing.reverse();
    result.inspect_err(|_| remove_dirs(fs, &missing))?;
    Ok(missing)
}

/// Removes directories that [`create_dirs`] made, as far as they are empty.
pub fn remove_dirs(fs: &dyn Fs, made: &[PathBuf]) {
    for dir in made.iter().rev() {
        let _ = fs.remove_dir(dir);
    }
}

/// Reads a whole file.
pub fn read_all(fs: &dyn Fs, path: &Path) -> Result<Vec<u8>> {
    let file = fs.open(path)?;
    let mut content = vec![0; file.len()? as usize];
    file.read_at(0, &mut content)?;
    Ok(content)
}
