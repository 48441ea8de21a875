//! The disk in memory, as an [`Fs`].

use super::call::Call;
use super::content::{Node, Reported};
use super::disk::{Disk, LockShares, io_error};
#[cfg(feature = "fault")]
use super::fault::Faults;
#[cfg(not(feature = "fault"))]
use super::no_fault::Faults;
use crate::base::error::{Error, Result};
use crate::base::rank;
use crate::base::sync::{Arc, Mutex};
use crate::fs::{DirEntry, Fs, Lock, ReadFile, Syncer, WriteFile};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A disk in memory. Clones are handles to the same disk.
#[derive(Clone)]
pub struct MemFs {
    pub(super) inner: Arc<Mutex<Inner, { rank::MEM_DISK }>>,
}

pub(super) struct Inner {
    pub(super) disk: Disk,
    pub(super) faults: Faults,
}

impl Inner {
    /// Every call passes here first.
    fn enter(&mut self, call: Call, path: &Path, at: u64, bytes: &[u8]) -> Result<()> {
        self.faults.enter(&self.disk, call, path, at, bytes)
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

    pub(super) fn with(disk: Disk) -> MemFs {
        MemFs { inner: Arc::new(Mutex::new(Inner { disk, faults: Faults::default() })) }
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
    reported: Arc<Reported>,
}

struct MemSyncer {
    fs: MemFs,
    node: Arc<Node>,
    path: PathBuf,
    reported: Arc<Reported>,
}

struct MemLock {
    fs: MemFs,
    path: PathBuf,
}

impl ReadFile for MemReadFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut inner = self.fs.inner.lock();
        inner.enter(Call::Read, &self.path, offset, &[])?;
        inner.faults.check_read(&self.path, offset..offset + buf.len() as u64)?;
        drop(inner);
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
                debug_assert!(self.bytes <= self.node.data.lock().bytes().len() as u64);
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
        self.fs.sync(&self.node, &self.path, &self.reported)
    }

    fn syncer(&self) -> Result<Box<dyn Syncer>> {
        let (fs, node, path) = (self.fs.clone(), self.node.clone(), self.path.clone());
        Ok(Box::new(MemSyncer { fs, node, path, reported: self.reported.clone() }))
    }

    fn flush_hint(&mut self) {}

    fn truncate(&mut self, bytes: u64) -> Result<()> {
        let pause = self.fs.inner.lock().faults.pause();
        if let Some(pause) = pause {
            pause(Call::Truncate, &self.path);
        }
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
        self.fs.sync(&self.node, &self.path, &self.reported)
    }
}

impl Lock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        let locks = &mut self.fs.inner.lock().disk.locks;
        match locks.get_mut(&self.path) {
            Some(LockShares::Shares(shares)) if *shares > 1 => *shares -= 1,
            _ => drop(locks.remove(&self.path)),
        }
    }
}

impl MemFs {
    fn sync(&self, node: &Node, path: &Path, reported: &Reported) -> Result<()> {
        let (result, pause) = {
            let mut inner = self.inner.lock();
            let entered = inner.enter(Call::Sync, path, 0, &[]);
            let unreported = inner.faults.take_unreported();
            let mut data = node.data.lock();
            let result = match entered {
                Ok(()) => {
                    data.sync();
                    Ok(())
                }
                Err(_) if unreported => {
                    data.lose_unreported();
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
            (result, inner.faults.pause())
        };
        if let Some(pause) = pause {
            pause(Call::Sync, path);
        }
        // Others may have returned since, and have taken the report of a failure of this call.
        match node.data.lock().report(reported) {
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
        let (fs, path, reported) = (self.clone(), path.to_owned(), node.data.lock().all_reported());
        Ok(Box::new(MemWriteFile { fs, node, path, bytes: 0, reported }))
    }

    fn create_log(&self, path: &Path, _: u64) -> Result<Box<dyn WriteFile>> {
        let file = self.create(path)?;
        if let Ok(node) = self.inner.lock().disk.file("create", path) {
            node.data.lock().is_log = true;
        }
        Ok(file)
    }

    fn append(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let mut inner = self.inner.lock();
        inner.enter(Call::Open, path, 1, &[])?;
        if inner.faults.refuses(path) {
            return Err(io_error("open", path, ErrorKind::ReadOnlyFilesystem));
        }
        let node = inner.disk.file("open", path)?;
        let (bytes, reported) = {
            let data = node.data.lock();
            (data.bytes().len() as u64, data.all_reported())
        };
        Ok(Box::new(MemWriteFile {
            fs: self.clone(),
            node,
            path: path.to_owned(),
            bytes,
            reported,
        }))
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
            // One that was not opened was not synced.
            if !inner.faults.crashed() && !error.is_of_too_many_files() {
                inner.disk.lose_names(dir);
            }
            return Err(error);
        }
        inner.disk.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        let pause = self.inner.lock().faults.pause();
        if let Some(pause) = pause {
            pause(Call::Lock, path);
        }
        let mut inner = self.inner.lock();
        inner.enter(Call::Lock, path, 0, &[])?;
        if inner.faults.refuses(path) {
            return Err(io_error("lock", path, ErrorKind::ReadOnlyFilesystem));
        }
        if inner.disk.locks.contains_key(path) {
            return Err(Error::Locked { path: path.to_owned() });
        }
        if !inner.disk.exists(path) {
            inner.disk.create(path)?;
        }
        inner.disk.locks.insert(path.to_owned(), LockShares::Whole);
        Ok(Box::new(MemLock { fs: self.clone(), path: path.to_owned() }))
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Lock>> {
        let mut inner = self.inner.lock();
        inner.enter(Call::Lock, path, 1, &[])?;
        inner.disk.file("lock", path)?;
        match inner.disk.locks.entry(path.to_owned()).or_insert(LockShares::Shares(0)) {
            LockShares::Whole => return Err(Error::Locked { path: path.to_owned() }),
            LockShares::Shares(shares) => *shares += 1,
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
