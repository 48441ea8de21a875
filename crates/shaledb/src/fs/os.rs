//! The real machine: files by `pread` and `pwrite`, durable by `fdatasync`, directories by `fsync`,
//! locked by `flock`; the monotonic clock.
//!
//! Invariants: a writer knows its own length, so an append after a failed one overwrites the
//! failed one's tail and never leaves a hole; a read that meets the end of the file is damage, not
//! a short answer. Hints (prefetch, early write-back) exist on Linux and are nothing elsewhere.

use super::{Clock, DirEntry, Fs, Lock, ReadFile, Syncer, WriteFile, cgroup};
#[cfg(target_os = "linux")]
use super::{linux, log_file};
use crate::base::error::{Error, Result};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsFs;

struct OsReadFile {
    file: File,
    path: PathBuf,
}

struct OsWriteFile {
    file: Arc<File>,
    path: Arc<Path>,
    bytes: u64,
    /// Up to here write-back has been asked for.
    hinted: u64,
}

struct OsSyncer {
    file: Arc<File>,
    path: Arc<Path>,
}

/// The lock belongs to the open file, of which a child process that is being started (between fork
/// and exec) has a handle too: it is given up in words, as closing this handle alone would not do.
struct OsLock {
    file: File,
    /// Who took it: a forked child that goes on by itself must not give up its parent's lock.
    process: u32,
}

impl OsLock {
    fn new(path: &Path) -> Result<OsLock> {
        let wrong = |e| Error::io("lock", path, e);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let (file, _) = open_file(&options, "lock", path)?;
        // A second opener is refused in this process as well.
        match file.try_lock() {
            Ok(()) => Ok(OsLock { file, process: std::process::id() }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => Err(wrong(error)),
        }
    }

    /// A share of it. Opened for reading: so it can be had where nothing can be written.
    fn share(path: &Path) -> Result<OsLock> {
        let wrong = |e| Error::io("lock", path, e);
        let (file, _) = open_file(OpenOptions::new().read(true), "lock", path)?;
        match file.try_lock_shared() {
            Ok(()) => Ok(OsLock { file, process: std::process::id() }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => Err(wrong(error)),
        }
    }
}

impl Drop for OsLock {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // If that fails the lock still goes with the last handle.
            self.file.unlock().ok();
        }
    }
}

/// Opens a file of a database; answers with its length. What is no file, such as a pipe, is not
/// waited for.
fn open_file(options: &OpenOptions, op: &'static str, path: &Path) -> Result<(File, u64)> {
    let mut options = options.clone();
    let opened = options.custom_flags(libc::O_NONBLOCK).open(path);
    let found = match &opened {
        Ok(file) => file.metadata(),
        Err(_) => fs::metadata(path),
    };
    match (found, opened) {
        (Ok(found), _) if !found.is_file() => {
            let kind = found.file_type();
            let what = match kind {
                _ if kind.is_dir() => "a directory",
                _ if kind.is_fifo() => "a named pipe",
                _ if kind.is_socket() => "a socket",
                _ => "a device",
            };
            Err(Error::corruption(path, 0, format!("it is {what} and no file")))
        }
        (_, Err(error)) => Err(Error::io(op, path, error)),
        (Err(error), Ok(_)) => Err(Error::io("stat", path, error)),
        (Ok(found), Ok(file)) => Ok((file, found.len())),
    }
}

/// Write-back is asked for in whole pages, so that no page is written twice.
const PAGE_BYTES: u64 = 4096;

impl ReadFile for OsReadFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => {
                    let what = format!(
                        "file ends early: {} bytes wanted from {offset}, {done} there",
                        buf.len()
                    );
                    return Err(Error::corruption(&self.path, offset + done as u64, what));
                }
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read", &self.path, error)),
            }
        }
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|e| Error::io("stat", &self.path, e))?.len())
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        linux::will_need(&self.file, offset, bytes);
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl WriteFile for OsWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all_at(bytes, self.bytes)
            .map_err(|e| Error::io("append to", &self.path, e))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io("sync", &self.path, e))
    }

    fn syncer(&self) -> Result<Box<dyn Syncer>> {
        Ok(Box::new(OsSyncer { file: self.file.clone(), path: self.path.clone() }))
    }

    fn flush_hint(&mut self) {
        debug_assert!(self.hinted <= self.bytes, "only what was written is on its way");
        let end = self.bytes / PAGE_BYTES * PAGE_BYTES;
        if end > self.hinted {
            linux::write_back(&self.file, self.hinted, end - self.hinted);
            self.hinted = end;
        }
    }

    fn truncate(&mut self, bytes: u64) -> Result<()> {
        assert!(bytes <= self.bytes, "a cut does not lengthen");
        self.file.set_len(bytes).map_err(|e| Error::io("truncate", &self.path, e))?;
        self.bytes = bytes;
        self.hinted = self.hinted.min(bytes / PAGE_BYTES * PAGE_BYTES);
        debug_assert!(self.hinted.is_multiple_of(PAGE_BYTES), "whole pages are on their way");
        Ok(())
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Syncer for OsSyncer {
    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io("sync", &self.path, e))
    }
}

impl Lock for OsLock {}

impl OsFs {
    fn writer(path: &Path, file: File, bytes: u64) -> Box<dyn WriteFile> {
        Box::new(OsWriteFile { file: Arc::new(file), path: path.into(), bytes, hinted: 0 })
    }
}

impl Fs for OsFs {
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let (file, _) = open_file(&options, "create", path)?;
        Ok(OsFs::writer(path, file, 0))
    }

    #[cfg(target_os = "linux")]
    fn create_log(&self, path: &Path, pace: u64) -> Result<Box<dyn WriteFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let (file, _) = open_file(&options, "create", path)?;
        if log_file::is_supported(&file) {
            return Ok(Box::new(log_file::LogFile::new(path, file, pace)));
        }
        Ok(OsFs::writer(path, file, 0))
    }

    fn append(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let (file, bytes) = open_file(OpenOptions::new().write(true), "open", path)?;
        Ok(OsFs::writer(path, file, bytes))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let (file, _) = open_file(OpenOptions::new().read(true), "open", path)?;
        Ok(Arc::new(OsReadFile { file, path: path.to_owned() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|e| Error::io("rename", from, e))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|e| Error::io("remove", path, e))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).map_err(|e| Error::io("remove", path, e))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        fs::hard_link(from, to).map_err(|e| Error::io("link", to, e))
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        let wrong = |e| Error::io("list", dir, e);
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            // A file may go between the listing and this look at it.
            let meta = match fs::metadata(entry.path()) {
                Ok(meta) => meta,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io("stat", &entry.path(), error)),
            };
            let is_dir = meta.is_dir();
            entries.push(DirEntry { name, bytes: if is_dir { 0 } else { meta.len() }, is_dir });
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        fs::exists(path).map_err(|e| Error::io("stat", path, e))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        fs::create_dir_all(path).map_err(|e| Error::io("create directory", path, e))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        // The parent of a plain relative name is the empty path, which means this directory.
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        let wrong = |e| Error::io("sync directory", dir, e);
        File::open(dir).map_err(wrong)?.sync_all().map_err(wrong)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        Ok(Box::new(OsLock::new(path)?))
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Lock>> {
        Ok(Box::new(OsLock::share(path)?))
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        let wrong = |e| Error::io("ask the free space of", dir, e);
        let name = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        let name = CString::new(name.as_os_str().as_bytes())
            .map_err(|_| wrong(io::ErrorKind::InvalidInput.into()))?;
        // SAFETY: all zeros is a valid statvfs, a plain structure of integers.
        let mut answer: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: `name` ends in a NUL and both pointers are valid for the call.
        if unsafe { libc::statvfs(name.as_ptr(), &mut answer) } != 0 {
            return Err(wrong(io::Error::last_os_error()));
        }
        #[allow(clippy::unnecessary_cast)] // The fields' widths differ between systems.
        Ok((answer.f_bavail as u64).saturating_mul(answer.f_frsize as u64))
    }

    fn allocated_bytes(&self, path: &Path) -> Result<u64> {
        Ok(fs::metadata(path).map_err(|e| Error::io("stat", path, e))?.blocks() * 512)
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        // The empty path means this directory, as in `sync_dir`.
        let name = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        std::path::absolute(name).map_err(|e| Error::io("find the directory of", path, e))
    }

    fn files_open_max(&self) -> Option<u64> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the pointer is valid for the call.
        let asked = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
        #[allow(clippy::unnecessary_cast)] // The field's width differs between systems.
        (asked && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as u64)
    }
}

/// Elsewhere than on Linux there is nothing to tell the system in advance.
#[cfg(not(target_os = "linux"))]
mod linux {
    use std::fs::File;

    pub(super) fn will_need(_: &File, _: u64, _: u64) {}

    pub(super) fn write_back(_: &File, _: u64, _: u64) {}
}

/// The machine's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct OsClock {
    start: Instant,
}

impl OsClock {
    /// A clock that starts at 0 now.
    pub fn new() -> OsClock {
        OsClock { start: Instant::now() }
    }
}

impl Default for OsClock {
    fn default() -> OsClock {
        OsClock::new()
    }
}

impl Clock for OsClock {
    fn now_nanos(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn thread_cpu_nanos(&self) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is valid for the call.
        if unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) } != 0 {
            return 0;
        }
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    fn sleep_nanos(&self, nanos: u64) {
        std::thread::sleep(Duration::from_nanos(nanos));
    }
}

/// The memory this process may use, in bytes: the machine's, or less where its control groups bound
/// it; 1 GiB where neither can be found out.
pub fn memory_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let bound = cgroup::memory_limit(&groups, |file| fs::read_to_string(file).ok());
    machine.unwrap_or(1 << 30).min(bound.unwrap_or(u64::MAX))
}

/// `MemTotal:       24689764 kB`, as bytes.
fn total_memory(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
#[path = "os_tests.rs"]
mod tests;
