//! The simulated disk: files and names in memory, which of them are durable, and faults on demand.
//!
//! What a real disk promises is what this one promises, and no more: appended bytes are durable
//! after a sync of the file, names after a sync of their directory. [`MemFs::crash_clone`] is the
//! disk as it may look after a power loss; [`MemFs::fail`], [`MemFs::set_capacity`] and
//! [`MemFs::crash_after`] make calls fail; [`MemFs::trace_hash`] tells whether two runs made the
//! same calls. Everything is a function of the calls made and the seeds given.

mod crash;
mod content;
mod disk;
mod fault;

pub use crash::CrashMode;
pub use fault::{Call, Counts, Fault};

use super::{Clock, DirEntry, Fs, Lock, ReadFile, Syncer, WriteFile};
use crate::base::error::{Error, Result};
use crate::base::rank;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};
use content::{Node, Told};
use disk::{Disk, Held, io_error};
use fault::Faults;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A disk in memory. Clones are handles to the same disk.
#[derive(Clone)]
pub struct MemFs {
    inner: Arc<Mutex<Inner, { rank::MEM_DISK }>>,
}

struct Inner {
    disk: Disk,
    faults: Faults,
    /// With this bound an image is kept before every so many changes.
    image_every: Option<u64>,
    images: Vec<Image>,
    pause: Option<Pause>,
    /// Under this directory every call that would change something is refused.
    read_only: Option<PathBuf>,
}

/// Called with what is done to which file; see [`MemFs::pause`].
pub type Pause = Arc<dyn Fn(Call, &Path) + Send + Sync>;

/// A disk as it was at one moment, with what was not durable then.
#[derive(Debug)]
pub struct Image {
    /// How many changes had been made.
    pub changes: u64,
    /// The disk, for [`MemFs::crash_clone`].
    pub fs: MemFs,
}

impl Inner {
    fn is_read_only(&self, path: &Path) -> bool {
        self.read_only.as_ref().is_some_and(|dir| path.starts_with(dir))
    }

    /// Every call passes here first.
    fn enter(&mut self, call: Call, path: &Path, at: u64, bytes: &[u8]) -> Result<()> {
        if let Some(every) = self.image_every
            && call.changes()
        {
            let changes = self.faults.counts().changes();
            if changes.is_multiple_of(every)
                && self.images.last().is_none_or(|i| i.changes < changes)
            {
                self.images.push(Image { changes, fs: MemFs::with(self.disk.image()) });
            }
        }
        if call.changes() && self.is_read_only(path) {
            return Err(io_error(call.op(), path, ErrorKind::ReadOnlyFilesystem));
        }
        self.faults.enter(call, path, at, bytes)
    }
}

impl Default for MemFs {
    fn default() -> MemFs {
        MemFs::new()
    }
}

impl std::fmt::Debug for MemFs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MemFs")
    }
}

impl MemFs {
    /// An empty disk without bounds or faults.
    pub fn new() -> MemFs {
        MemFs::with(Disk::new())
    }

    fn with(disk: Disk) -> MemFs {
        let inner = Inner {
            disk,
            faults: Faults::default(),
            image_every: None,
            images: Vec::new(),
            pause: None,
            read_only: None,
        };
        MemFs { inner: Arc::new(Mutex::new(inner)) }
    }

    /// The disk as it may look after the power went now: what was synced is there, of the rest what
    /// `mode` and `seed` say. The new disk has no faults, no bound, no locks and no open files.
    pub fn crash_clone(&self, seed: u64, mode: CrashMode) -> MemFs {
        MemFs::with(self.inner.lock().disk.crash(seed, mode))
    }

    /// The disk as another process finds it after this one was killed: all is there, and what was
    /// not synced can still be lost. Independent of this disk from now on.
    pub fn fork(&self) -> MemFs {
        MemFs::with(self.inner.lock().disk.image())
    }

    /// Makes the `nth` call of this kind from now (1 = the next) fail; with `once` false all later
    /// ones too, until [`MemFs::clear_faults`].
    pub fn fail(&self, call: Call, nth: u64, fault: Fault, once: bool) {
        self.inner.lock().faults.add(call, nth, fault, once);
    }

    /// From now on each sync of a file calls `pause` between its work and its return, and each lock
    /// before it is taken, so that a test can let others overtake it there.
    pub fn pause(&self, pause: Option<Pause>) {
        self.inner.lock().pause = pause;
    }

    /// Forgets all faults, and the bound of [`MemFs::crash_after`].
    pub fn clear_faults(&self) {
        self.inner.lock().faults.clear();
    }

    /// Whether a fault of [`MemFs::fail`] has struck since it was set.
    pub fn faults_struck(&self) -> u64 {
        self.inner.lock().faults.struck()
    }

    /// Cuts the power after `changes` more calls that change the disk: every later call fails, and
    /// the disk stays as it is then.
    pub fn crash_after(&self, changes: u64) {
        self.inner.lock().faults.crash_after(changes);
    }

    /// Whether the power has been cut by [`MemFs::crash_after`].
    pub fn crashed(&self) -> bool {
        self.inner.lock().faults.crashed()
    }

    /// From now on keeps an image of the disk before every change whose number is a multiple of
    /// `every`, so that one run gives the crashes at all its moments. `None` stops it.
    pub fn keep_images(&self, every: Option<u64>) {
        self.inner.lock().image_every = every;
    }

    /// Takes the images kept since the last time.
    pub fn take_images(&self) -> Vec<Image> {
        std::mem::take(&mut self.inner.lock().images)
    }

    /// The calls made so far, by kind.
    pub fn counts(&self) -> Counts {
        self.inner.lock().faults.counts()
    }

    /// The calls made so far that change the disk; what [`MemFs::crash_after`] counts.
    pub fn changes(&self) -> u64 {
        self.inner.lock().faults.counts().changes()
    }

    /// A hash of all calls made so far with their arguments, in order.
    pub fn trace_hash(&self) -> u64 {
        self.inner.lock().faults.trace_hash()
    }

    /// From now on keeps a line of text for every call that changes the disk.
    pub fn keep_trace(&self) {
        self.inner.lock().faults.keep_trace();
    }

    /// The lines kept since [`MemFs::keep_trace`].
    pub fn trace(&self) -> Vec<String> {
        self.inner.lock().faults.trace()
    }

    /// Makes a directory, with all in it, one that nobody can change: a medium mounted for reading.
    pub fn set_read_only(&self, dir: &Path) {
        self.inner.lock().read_only = Some(dir.to_owned());
    }

    /// Frees all lock files, as when the processes that hold them are killed.
    pub fn free_locks(&self) {
        self.inner.lock().disk.locks.clear();
    }

    /// Bounds the bytes of all files together; appends beyond it fail with
    /// [`DiskFull`](crate::Error::DiskFull). `None` lifts the bound.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.inner.lock().disk.capacity = bytes;
    }

    /// The bytes of all files together.
    pub fn used_bytes(&self) -> u64 {
        self.inner.lock().disk.used
    }

    /// Flips the bits `xor` of one byte of a file, durably. False if there is no such byte.
    pub fn corrupt(&self, path: &Path, offset: u64, xor: u8) -> bool {
        let inner = self.inner.lock();
        match inner.disk.file("corrupt", path) {
            Ok(node) => node.data.lock().flip(offset, xor),
            Err(_) => false,
        }
    }

    /// The paths of all files, sorted, with their lengths.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        self.inner.lock().disk.files()
    }

    /// The content of a file, without counting as a call.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let node = self.inner.lock().disk.file("read", path).ok()?;
        let content = node.data.lock().bytes().to_vec();
        Some(content)
    }
}

struct MemReadFile {
    fs: MemFs,
    node: Arc<Node>,
    path: PathBuf,
}

struct MemWriteFile {
    fs: MemFs,
    node: Arc<Node>,
    path: PathBuf,
    bytes: u64,
    told: Arc<Told>,
}

struct MemSyncer {
    fs: MemFs,
    node: Arc<Node>,
    path: PathBuf,
    told: Arc<Told>,
}

struct MemLock {
    fs: MemFs,
    path: PathBuf,
}

impl ReadFile for MemReadFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.fs.inner.lock().enter(Call::Read, &self.path, offset, &[])?;
        let data = self.node.data.lock();
        let content = data.bytes();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let there = &content[start..];
        match there.get(..buf.len()) {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(())
            }
            None => {
                let what = format!(
                    "file ends early: {} bytes wanted from {offset}, {} there",
                    buf.len(),
                    there.len()
                );
                Err(Error::corruption(&self.path, offset.max(content.len() as u64), what))
            }
        }
    }

    fn len(&self) -> Result<u64> {
        self.fs.inner.lock().enter(Call::Stat, &self.path, 0, &[])?;
        Ok(self.node.data.lock().bytes().len() as u64)
    }

    fn prefetch(&self, _: u64, _: u64) {}

    fn path(&self) -> &Path {
        &self.path
    }
}

impl WriteFile for MemWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut inner = self.fs.inner.lock();
        let inner = &mut *inner;
        match inner.enter(Call::Append, &self.path, self.bytes, bytes) {
            Ok(()) => {
                inner.disk.write(&self.node, &self.path, self.bytes, bytes)?;
                self.bytes += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A short write: some of it lands.
                if let Some(some) = inner.faults.take_short(bytes.len()) {
                    inner.disk.write(&self.node, &self.path, self.bytes, &bytes[..some])?;
                }
                Err(error)
            }
        }
    }

    fn sync(&mut self) -> Result<()> {
        self.fs.sync(&self.node, &self.path, &self.told)
    }

    fn syncer(&self) -> Result<Box<dyn Syncer>> {
        let (fs, node, path) = (self.fs.clone(), self.node.clone(), self.path.clone());
        Ok(Box::new(MemSyncer { fs, node, path, told: self.told.clone() }))
    }

    fn flush_hint(&mut self) {}

    fn truncate(&mut self, bytes: u64) -> Result<()> {
        let mut inner = self.fs.inner.lock();
        inner.enter(Call::Truncate, &self.path, bytes, &[])?;
        inner.disk.truncate(&self.node, bytes);
        self.bytes = bytes;
        Ok(())
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Syncer for MemSyncer {
    fn sync(&self) -> Result<()> {
        self.fs.sync(&self.node, &self.path, &self.told)
    }
}

impl Lock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        let locks = &mut self.fs.inner.lock().disk.locks;
        match locks.get_mut(&self.path) {
            Some(Held::Shares(shares)) if *shares > 1 => *shares -= 1,
            _ => drop(locks.remove(&self.path)),
        }
    }
}

impl MemFs {
    fn sync(&self, node: &Node, path: &Path, told: &Told) -> Result<()> {
        let (result, pause) = {
            let mut inner = self.inner.lock();
            let entered = inner.enter(Call::Sync, path, 0, &[]);
            let untold = inner.faults.take_untold();
            let mut data = node.data.lock();
            let result = match entered {
                Ok(()) => {
                    data.sync();
                    Ok(())
                }
                Err(_) if untold => {
                    data.lose_untold();
                    Ok(())
                }
                // As on Linux: what a failed sync could not write is not tried again by later ones.
                Err(error) => {
                    if !inner.faults.crashed() {
                        data.lose();
                    }
                    Err(error)
                }
            };
            (result, inner.pause.clone())
        };
        if let Some(pause) = pause {
            pause(Call::Sync, path);
        }
        // Others may have returned since, and have been told of a failure of this call.
        match node.data.lock().tell(told) {
            true => Err(Error::io("sync", path, std::io::Error::other("injected fault"))),
            false => result,
        }
    }
}

impl Fs for MemFs {
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let mut inner = self.inner.lock();
        inner.enter(Call::Create, path, 0, &[])?;
        let node = inner.disk.create(path)?;
        let (fs, path, told) = (self.clone(), path.to_owned(), node.data.lock().all_told());
        Ok(Box::new(MemWriteFile { fs, node, path, bytes: 0, told }))
    }

    fn append(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let mut inner = self.inner.lock();
        inner.enter(Call::Open, path, 1, &[])?;
        if inner.is_read_only(path) {
            return Err(io_error("open", path, ErrorKind::ReadOnlyFilesystem));
        }
        let node = inner.disk.file("open", path)?;
        let (bytes, told) = {
            let data = node.data.lock();
            (data.bytes().len() as u64, data.all_told())
        };
        Ok(Box::new(MemWriteFile { fs: self.clone(), node, path: path.to_owned(), bytes, told }))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let mut inner = self.inner.lock();
        inner.enter(Call::Open, path, 0, &[])?;
        let node = inner.disk.file("open", path)?;
        Ok(Arc::new(MemReadFile { fs: self.clone(), node, path: path.to_owned() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut inner = self.inner.lock();
        inner.enter(Call::Rename, from, 0, to.as_os_str().as_encoded_bytes())?;
        inner.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut inner = self.inner.lock();
        inner.enter(Call::Remove, path, 0, &[])?;
        inner.disk.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let mut inner = self.inner.lock();
        inner.enter(Call::RemoveDir, path, 0, &[])?;
        inner.disk.remove_dir(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let mut inner = self.inner.lock();
        inner.enter(Call::Link, from, 0, to.as_os_str().as_encoded_bytes())?;
        inner.disk.link(from, to)
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        let mut inner = self.inner.lock();
        inner.enter(Call::List, dir, 0, &[])?;
        inner.disk.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let mut inner = self.inner.lock();
        inner.enter(Call::Stat, path, 0, &[])?;
        Ok(inner.disk.exists(path))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut inner = self.inner.lock();
        inner.enter(Call::CreateDir, path, 0, &[])?;
        inner.disk.create_dir_all(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let mut inner = self.inner.lock();
        if let Err(error) = inner.enter(Call::SyncDir, dir, 0, &[]) {
            if !inner.faults.crashed() {
                inner.disk.lose_names(dir);
            }
            return Err(error);
        }
        inner.disk.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        let pause = self.inner.lock().pause.clone();
        if let Some(pause) = pause {
            pause(Call::Lock, path);
        }
        let mut inner = self.inner.lock();
        inner.enter(Call::Lock, path, 0, &[])?;
        if inner.is_read_only(path) {
            return Err(io_error("lock", path, ErrorKind::ReadOnlyFilesystem));
        }
        if inner.disk.locks.contains_key(path) {
            return Err(Error::Locked { path: path.to_owned() });
        }
        if !inner.disk.exists(path) {
            inner.disk.create(path)?;
        }
        inner.disk.locks.insert(path.to_owned(), Held::Whole);
        Ok(Box::new(MemLock { fs: self.clone(), path: path.to_owned() }))
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Lock>> {
        let mut inner = self.inner.lock();
        inner.enter(Call::Lock, path, 1, &[])?;
        inner.disk.file("lock", path)?;
        match inner.disk.locks.entry(path.to_owned()).or_insert(Held::Shares(0)) {
            Held::Whole => return Err(Error::Locked { path: path.to_owned() }),
            Held::Shares(shares) => *shares += 1,
        }
        Ok(Box::new(MemLock { fs: self.clone(), path: path.to_owned() }))
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        let mut inner = self.inner.lock();
        inner.enter(Call::Stat, dir, 0, &[])?;
        if !inner.disk.exists(dir) {
            return Err(io_error("ask the free space of", dir, ErrorKind::NotFound));
        }
        Ok(inner.disk.capacity.map_or(1 << 50, |bytes| bytes.saturating_sub(inner.disk.used)))
    }

    fn allocated_bytes(&self, path: &Path) -> Result<u64> {
        let mut inner = self.inner.lock();
        inner.enter(Call::Stat, path, 0, &[])?;
        let bytes = inner.disk.file("stat", path)?.data.lock().bytes().len() as u64;
        Ok(bytes.next_multiple_of(4096))
    }
}

/// A clock that moves when it is looked at or slept on, and never otherwise.
#[derive(Debug, Default)]
pub struct MemClock {
    nanos: AtomicU64,
}

/// How far one look moves the clock.
const LOOK_NANOS: u64 = 100;

impl MemClock {
    /// A clock at 0.
    pub fn new() -> MemClock {
        MemClock::default()
    }

    /// Moves the clock forward.
    pub fn advance(&self, nanos: u64) {
        self.nanos.fetch_add(nanos, Ordering::SeqCst);
    }
}

impl Clock for MemClock {
    fn now_nanos(&self) -> u64 {
        self.nanos.fetch_add(LOOK_NANOS, Ordering::SeqCst)
    }

    fn thread_cpu_nanos(&self) -> u64 {
        self.now_nanos()
    }

    fn sleep_nanos(&self, nanos: u64) {
        self.advance(nanos);
    }
}

#[cfg(test)]
#[path = "mem_tests.rs"]
mod tests;
