//! A device of a bounded rate beneath Shale: another file system, by what it wraps, which makes
//! readers and writers wait for their bytes.
//!
//! All bytes count that are read from files or appended to them, whether the page cache has them or
//! not. Those of the log count when they are appended, also where an append is a copy into mapped
//! pages. Bytes of appends are gathered to pieces, since a log has many that are small: they wait
//! with the one that makes a piece full, or with the sync. Long reads and appends wait piece by
//! piece, so that others come in between.

use super::bucket::Bucket;
use shaledb::fs::{Clock, DirEntry, Fs, Lock, Preparer, ReadFile, Syncer, WriteFile};
use shaledb::{Env, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A second has so many pieces.
const PIECES: u64 = 4000;

/// The smallest piece.
const PIECE_BYTES_MIN: u64 = 4096;

/// `env` with a device that does so many bytes a second.
pub(super) fn bounded(env: &Env, bytes_per_second: u64) -> Env {
    let device = Device {
        bucket: Mutex::new(Bucket::new(bytes_per_second)),
        clock: env.clock.clone(),
        piece: (bytes_per_second / PIECES).max(PIECE_BYTES_MIN),
    };
    let fs = BoundedFs { fs: env.fs.clone(), device: Arc::new(device) };
    Env { fs: Arc::new(fs), clock: env.clock.clone() }
}

thread_local! {
    /// Set once by each thread that waits for a device.
    static PUNCTUAL: () = be_woken_in_time();
}

/// Has the system wake the calling thread when its sleep ends. Linux gathers timers, and ends a
/// sleep 50 us late for that: a fifth of a piece, and writers wait for hundreds in a second. Where
/// it cannot be told so, sleeps stay late.
fn be_woken_in_time() {
    if let Ok(thread) = std::fs::read_link("/proc/thread-self")
        && let Some(id) = thread.file_name()
    {
        let _ = std::fs::write(Path::new("/proc").join(id).join("timerslack_ns"), "1");
    }
}

struct Device {
    bucket: Mutex<Bucket>,
    clock: Arc<dyn Clock>,
    piece: u64,
}

impl Device {
    /// Waits until so many bytes are through.
    fn pass(&self, mut bytes: u64) {
        PUNCTUAL.with(|_| {});
        while bytes > 0 {
            let piece = bytes.min(self.piece);
            let wait = {
                let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
                bucket.take(self.clock.now_nanos(), piece)
            };
            if wait > 0 {
                self.clock.sleep_nanos(wait);
            }
            bytes -= piece;
        }
    }
}

struct BoundedFs {
    fs: Arc<dyn Fs>,
    device: Arc<Device>,
}

impl BoundedFs {
    fn writer(&self, file: Box<dyn WriteFile>) -> Box<dyn WriteFile> {
        Box::new(BoundedWriteFile { file, device: self.device.clone(), owed: 0 })
    }
}

impl Fs for BoundedFs {
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        Ok(self.writer(self.fs.create(path)?))
    }

    fn create_log(&self, path: &Path, pace: u64) -> Result<Box<dyn WriteFile>> {
        Ok(self.writer(self.fs.create_log(path, pace)?))
    }

    fn append(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        Ok(self.writer(self.fs.append(path)?))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let file = self.fs.open(path)?;
        Ok(Arc::new(BoundedReadFile { file, device: self.device.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.fs.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.fs.remove_dir(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.link(from, to)
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        self.fs.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.fs.exists(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.fs.create_dir_all(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.fs.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.fs.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.fs.lock_shared(path)
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.fs.free_bytes(dir)
    }

    fn allocated_bytes(&self, path: &Path) -> Result<u64> {
        self.fs.allocated_bytes(path)
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        self.fs.absolute(path)
    }

    fn files_open_max(&self) -> Option<u64> {
        self.fs.files_open_max()
    }
}

struct BoundedReadFile {
    file: Arc<dyn ReadFile>,
    device: Arc<Device>,
}

impl ReadFile for BoundedReadFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.device.pass(buf.len() as u64);
        self.file.read_at(offset, buf)
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        // What it fetches counts when it is read.
        self.file.prefetch(offset, bytes);
    }

    fn path(&self) -> &Path {
        self.file.path()
    }
}

struct BoundedWriteFile {
    file: Box<dyn WriteFile>,
    device: Arc<Device>,
    /// Bytes that were appended and have not waited.
    owed: u64,
}

impl WriteFile for BoundedWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes)?;
        self.owed += bytes.len() as u64;
        if self.owed >= self.device.piece {
            self.device.pass(std::mem::take(&mut self.owed));
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.device.pass(std::mem::take(&mut self.owed));
        self.file.sync()
    }

    fn syncer(&self) -> Result<Box<dyn Syncer>> {
        // What is owed waits with the next append: it is less than a piece.
        self.file.syncer()
    }

    fn flush_hint(&mut self) {
        self.file.flush_hint();
    }

    fn truncate(&mut self, bytes: u64) -> Result<()> {
        self.file.truncate(bytes)
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn preparer(&self) -> Option<Arc<dyn Preparer>> {
        self.file.preparer()
    }

    fn pace(&self) -> u64 {
        self.file.pace()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Time passes when somebody sleeps.
    struct Simulated(AtomicU64);

    impl Clock for Simulated {
        fn now_nanos(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn thread_cpu_nanos(&self) -> u64 {
            0
        }

        fn sleep_nanos(&self, nanos: u64) {
            self.0.fetch_add(nanos, Ordering::Relaxed);
        }
    }

    const SECOND: u64 = 1_000_000_000;

    /// A disk in memory that does a megabyte a second, and its clock.
    fn disk() -> (Env, Arc<Simulated>) {
        let clock = Arc::new(Simulated(AtomicU64::new(SECOND)));
        let env = Env { fs: Env::memory().fs, clock: clock.clone() };
        (bounded(&env, 1_000_000), clock)
    }

    /// Nearly so many milliseconds have gone: all but the burst.
    fn took(clock: &Simulated, millis: u64) {
        let found = (clock.now_nanos() - SECOND) / 1_000_000;
        assert!((millis - 11..=millis).contains(&found), "{found} ms of {millis}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_waits_for_the_device_is_woken_in_time() {
        // Other systems have no such file, or let nobody write it.
        let Ok(thread) = std::fs::read_link("/proc/thread-self") else { return };
        let path = Path::new("/proc").join(thread.file_name().unwrap()).join("timerslack_ns");
        if std::fs::write(&path, "50000").is_err() {
            return;
        }
        let slack = || std::fs::read_to_string(&path).unwrap().trim().parse::<u64>().unwrap();
        let (env, _) = disk();
        env.fs.create(Path::new("/a")).unwrap().append(&[7; 10_000]).unwrap();
        assert_eq!(slack(), 1);
    }

    #[test]
    fn what_is_appended_and_read_waits_for_the_device() {
        let (env, clock) = disk();
        let path = Path::new("/a");
        let mut file = env.fs.create(path).unwrap();
        file.append(&[7; 500_000]).unwrap();
        took(&clock, 500);
        let mut back = vec![0; 250_000];
        env.fs.open(path).unwrap().read_at(250_000, &mut back).unwrap();
        took(&clock, 750);
        assert!(back.iter().all(|&byte| byte == 7) && file.len() == 500_000);
    }

    #[test]
    fn small_appends_to_a_log_wait_together() {
        let (env, clock) = disk();
        let mut log = env.fs.create_log(Path::new("/log"), 0).unwrap();
        let mut waits = 0;
        for _ in 0..1000 {
            let before = clock.now_nanos();
            log.append(&[1; 100]).unwrap();
            waits += u64::from(clock.now_nanos() > before);
        }
        log.sync().unwrap();
        took(&clock, 100);
        assert!((15..=25).contains(&waits), "{waits}");
        assert_eq!(log.len(), 100_000);
    }

    #[test]
    fn a_database_works_on_it() {
        let dir = tempfile::tempdir().unwrap();
        let options =
            shaledb::OpenOptions { env: bounded(&Env::os(), 1 << 30), ..Default::default() };
        let config = shaledb::Config::default();
        let db = shaledb::Db::open_in(dir.path(), config.clone(), options).unwrap();
        let tree = db.tree_or_create("a").unwrap();
        for number in 0..20_000u64 {
            tree.put(&number.to_be_bytes(), &[3; 100]).unwrap();
        }
        db.flush().unwrap();
        drop(tree);
        db.close().unwrap();
        let db = shaledb::Db::open(dir.path(), config).unwrap();
        let tree = db.tree_or_create("a").unwrap();
        assert_eq!(tree.get(&19_999u64.to_be_bytes()).unwrap().as_deref(), Some(&[3; 100][..]));
    }
}
