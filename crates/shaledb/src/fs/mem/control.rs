//! What tests ask of the disk: crashes, faults, damage, and what was done to it.

use super::call::Call;
use super::crash::CrashMode;
use super::fault::{Counts, Fault, Pause};
use super::mem_fs::MemFs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A disk as it was at one moment, with what was not durable then.
#[derive(Debug)]
pub struct Image {
    /// How many changes had been made.
    pub changes: u64,
    /// The disk, for [`MemFs::crash_clone`].
    pub fs: MemFs,
}

impl MemFs {
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

    /// From now on each sync of a file calls `pause` between its work and its return, each cut of a
    /// file and each lock before it is made, so that a test can let others overtake it there.
    pub fn pause(&self, pause: Option<Pause>) {
        self.inner.lock().faults.set_pause(pause);
    }

    /// Forgets all faults, and the bound of [`MemFs::crash_after`].
    pub fn clear_faults(&self) {
        self.inner.lock().faults.clear();
    }

    /// How often faults of [`MemFs::fail`] have struck since they were set.
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
        self.inner.lock().faults.keep_images(every);
    }

    /// Takes the images kept since the last time.
    pub fn take_images(&self) -> Vec<Image> {
        let images = self.inner.lock().faults.take_images();
        let image = |(changes, disk)| Image { changes, fs: MemFs::with(disk) };
        images.into_iter().map(image).collect()
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
        self.inner.lock().faults.set_read_only(dir);
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

    /// Makes bytes of a file ones that the device cannot read: reads of them fail by `EIO`.
    pub fn set_unreadable(&self, path: &Path, bytes: Range<u64>) {
        self.inner.lock().faults.set_unreadable(path, bytes);
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
