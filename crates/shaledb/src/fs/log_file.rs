//! A log file of the machine, appended to without a call of the system.
//!
//! A call for each append costs a microsecond, and the system may make the caller wait in it: for
//! its journal, for memory, for pages that are on their way to the device. So another thread maps
//! the file's next pages into memory ahead of the writer, with space on the disk behind each
//! ([`Preparer`]), and an append is a copy into such a window. What is in its pages outlives the
//! process, like what a call has written.
//!
//! Where no window is (the other thread is late, the disk is full, the file system has no such
//! thing), an append is a call, whose error is the answer. A window and calls show one another's
//! bytes.
//!
//! A window ahead makes the file longer than what was appended: zeros follow, until the file is cut
//! when its last user lets go. After the end of the process in a crash they stay.
//!
//! A sync also writes the zeros of a window ahead. So windows are short beside what is written from
//! one sync to the next, and where that is little there are none.
//!
//! What may be late is apart from what must not be ([`Preparer::clear`]): to give a mapping back,
//! to have the device write, to cut a file. Each may wait for the device, or for other programs.

use super::linux;
use super::process::{Process, process};
use super::{Preparer, Syncer, WriteFile};
use crate::base::error::{Error, Result};
use crate::base::rank;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};
use memmap2::{Advice, MmapMut, MmapOptions};
use std::collections::VecDeque;
use std::fs::File;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Windows begin at a multiple of this, which no page is larger than.
const ALIGN_BYTES: u64 = 64 << 10;

/// The smallest window.
const WINDOW_BYTES_MIN: u64 = 64 << 10;

/// The largest window: some milliseconds of writes as fast as they come.
const WINDOW_BYTES_MAX: u64 = 2 << 20;

/// What is written from one sync to the next is at least so many windows.
const WINDOWS_PER_SYNC: u64 = 32;

/// How many windows are ready ahead of the one that is written to. On a busy machine the thread
/// that maps them waits for its turn for longer than one lasts, and now and then the file system
/// takes 100 ms to find space for one (ext4 that reads a bitmap of blocks beside other writes).
/// Meanwhile it keeps every call that writes to the file waiting.
const WINDOWS_READY: RangeInclusive<usize> = 3..=6;

/// But more than the fewest only as far as together they are at most one part in so many of what is
/// written from one sync to the next.
const READY_PER_SYNC: u64 = 10;

/// How far behind the writer pages stay in memory after they were written to the device: a follower
/// reads there.
const KEPT_BYTES: u64 = 8 << 20;

/// Pages are let go in steps of this.
const DROPPED_BYTES: u64 = 4 << 20;

/// File systems of which it was seen that a page with space behind it can be written to when the
/// disk is full, by their numbers in `statfs`: ext4 (and its elders), XFS, tmpfs. Not those that
/// write nothing in its place, as Btrfs and F2FS, nor overlays, which may be of such: there a page
/// that was written to the device needs new space before it is written to again, and where there is
/// none the writer would be ended by SIGBUS.
const FILE_SYSTEMS: [u32; 3] = [0xef53, 0x5846_5342, 0x0102_1994];

/// Whether log files on the file system of `file` may have windows.
pub(super) fn is_supported(file: &File) -> bool {
    linux::file_system(file).is_some_and(|number| FILE_SYSTEMS.contains(&number))
}

/// Pages of the file in memory.
struct Window {
    /// The offset in the file of the first byte.
    at: u64,
    pages: MmapMut,
}

impl Window {
    fn end(&self) -> u64 {
        self.at + self.pages.len() as u64
    }

    /// The bytes from `offset` of the file on.
    fn from(&mut self, offset: u64) -> &mut [u8] {
        let skip = offset.checked_sub(self.at).map_or(usize::MAX, |skip| skip as usize);
        self.pages.get_mut(skip..).unwrap_or_default()
    }
}

/// The one writer of a log file.
pub(super) struct LogFile {
    shared: Arc<Shared>,
    bytes: u64,
    window: Option<Window>,
    /// The length at which the next look is taken for a window, without one.
    look_at: u64,
    pace: Pace,
}

/// How much is written from one sync to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// How many syncs there had been at the last look, and the length when so many were first seen.
    syncs: u64,
    since: u64,
    /// What was written between two syncs before that.
    last: u64,
}

impl Pace {
    /// What is written from one sync to the next, as of a file of `bytes`.
    fn bytes(&self, bytes: u64) -> u64 {
        self.last.max(bytes.saturating_sub(self.since))
    }

    /// Looks at a file of `bytes` that was synced `syncs` times; answers with how long a window may
    /// be, if there may be one.
    fn window(&mut self, bytes: u64, syncs: u64) -> Option<u64> {
        let written = bytes.saturating_sub(self.since);
        if let Some(new) = syncs.checked_sub(self.syncs).filter(|new| *new > 0) {
            *self = Pace { syncs, since: bytes, last: written / new };
        }
        let length = self.bytes(bytes) / WINDOWS_PER_SYNC;
        let length = length.min(WINDOW_BYTES_MAX) / ALIGN_BYTES * ALIGN_BYTES;
        (length >= WINDOW_BYTES_MIN).then_some(length)
    }

    /// How many windows of this length should be ready.
    fn windows_ready(&self, bytes: u64, length: u64) -> usize {
        let most = self.bytes(bytes) / READY_PER_SYNC / length.max(1);
        (most as usize).clamp(*WINDOWS_READY.start(), *WINDOWS_READY.end())
    }
}

/// What the writer and the [`Preparer`] share. The last of them cuts the file.
struct Shared {
    file: Arc<File>,
    path: Arc<Path>,
    process: Process,
    /// How many syncs there were.
    syncs: Arc<AtomicU64>,
    /// Whether there is anything to prepare.
    wants: AtomicBool,
    state: Mutex<State, { rank::LOG_WINDOWS }>,
}

#[derive(Default)]
struct State {
    /// The next window: its offset and length.
    wanted: Option<(u64, u64)>,
    /// Windows that the writer will come to, in order.
    ready: VecDeque<Window>,
    /// How long a window may be, if there may be one.
    length: Option<u64>,
    /// How many should be ready.
    enough: usize,
    /// Windows that the writer has left.
    left: Vec<Window>,
    /// The length as of the writer's last look.
    bytes: u64,
    /// How often the file was cut: no window from before is of use.
    cuts: u64,
    /// How far the file was made longer.
    extended: u64,
    /// Up to here write-back was asked for, and pages were let go.
    hinted: u64,
    dropped: u64,
    /// No window can be had: for a while, or ever.
    failed: bool,
    refused: bool,
    /// The writer has gone.
    closed: bool,
}

/// A window that the writer wishes for, as of one moment.
struct Wish {
    window: (u64, u64),
    cuts: u64,
}

impl State {
    /// Asks for the window behind those that are ready, or at `next`, unless there are enough.
    fn wish_for(&mut self, next: u64) {
        let next = self.ready.back().map_or(next, Window::end).max(self.bytes);
        let at = next / ALIGN_BYTES * ALIGN_BYTES;
        let wants = self.ready.len() < self.enough;
        self.wanted = self.length.filter(|_| wants).map(|length| (at, length));
    }

    /// The writer has done with all windows.
    fn leave(&mut self, window: Option<Window>) {
        (self.wanted, self.length) = (None, None);
        self.left.extend(window);
        self.left.extend(self.ready.drain(..));
    }
}

impl LogFile {
    /// The writer of the empty `file`, which is open for reading and writing. `pace` is as of
    /// [`Fs::create_log`](super::Fs::create_log).
    pub(super) fn new(path: &Path, file: File, pace: u64) -> LogFile {
        let mut pace = Pace { last: pace, ..Pace::default() };
        // So that the first window can be there before the first append.
        let length = pace.window(0, 0);
        let enough = pace.windows_ready(0, length.unwrap_or(0));
        let mut state = State { length, enough, ..State::default() };
        state.wish_for(0);
        let wishes = state.wanted.is_some();
        let shared = Shared {
            file: Arc::new(file),
            path: path.into(),
            process: process(),
            syncs: Arc::default(),
            wants: AtomicBool::new(wishes),
            state: Mutex::new(state),
        };
        LogFile {
            shared: Arc::new(shared),
            bytes: 0,
            window: None,
            look_at: if wishes { 0 } else { WINDOW_BYTES_MIN },
            pace,
        }
    }

    /// Copies as much as the window has room for; answers with the rest.
    #[inline]
    fn copy<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Some(window) = &mut self.window else { return bytes };
        let room = window.from(self.bytes);
        let (some, rest) = bytes.split_at(bytes.len().min(room.len()));
        room[..some.len()].copy_from_slice(some);
        self.bytes += some.len() as u64;
        rest
    }

    /// Leaves the window, goes on in the next one if it is there, and asks for another.
    #[cold]
    fn look(&mut self) {
        let length = self.pace.window(self.bytes, self.shared.syncs.load(Ordering::Relaxed));
        let enough = self.pace.windows_ready(self.bytes, length.unwrap_or(0));
        let mut state = self.shared.state.lock();
        let state = &mut *state;
        (state.bytes, state.enough) = (self.bytes, enough);
        let mut wishes = self.window.is_some() || !state.ready.is_empty();
        state.left.extend(self.window.take());
        while let Some(window) = state.ready.pop_front() {
            if window.at <= self.bytes && self.bytes < window.end() {
                self.window = Some(window);
                break;
            }
            // The writer has passed it.
            state.left.push(window);
        }
        // After a failure some is written by calls first, which are cheaper than one try each.
        let waits = std::mem::take(&mut state.failed) || state.refused;
        state.length = length.filter(|_| !waits);
        // One that the writer has passed meanwhile is of no use.
        if state.wanted.is_none_or(|(at, length)| at + length <= self.bytes) {
            let next = self.window.as_ref().map_or(self.bytes, Window::end);
            state.wish_for(next);
            wishes |= state.wanted.is_some();
        }
        // One that is on its way may be there at the next append.
        self.look_at = self.bytes + if state.wanted.is_some() { 1 } else { WINDOW_BYTES_MIN };
        if wishes {
            self.shared.wants.store(true, Ordering::Release);
        }
    }
}

impl WriteFile for LogFile {
    #[inline]
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = self.copy(bytes);
        while !rest.is_empty() {
            if self.window.is_some() || self.bytes >= self.look_at {
                self.look();
                let before = rest.len();
                rest = self.copy(rest);
                if rest.len() < before {
                    continue;
                }
            }
            let wrong = |e| Error::io("append to", &self.shared.path, e);
            self.shared.file.write_all_at(rest, self.bytes).map_err(wrong)?;
            self.bytes += rest.len() as u64;
            break;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        sync(&self.shared.file, &self.shared.path, &self.shared.syncs)
    }

    fn syncer(&self) -> Result<Box<dyn Syncer>> {
        let shared = &self.shared;
        let (file, path) = (shared.file.clone(), shared.path.clone());
        Ok(Box::new(LogFileSyncer { file, path, syncs: shared.syncs.clone() }))
    }

    fn flush_hint(&mut self) {
        self.shared.write_back(self.bytes);
    }

    fn truncate(&mut self, bytes: u64) -> Result<()> {
        assert!(bytes <= self.bytes, "a cut does not lengthen");
        {
            let mut state = self.shared.state.lock();
            let state = &mut *state;
            state.cuts += 1;
            state.leave(self.window.take());
            (state.hinted, state.dropped) = (state.hinted.min(bytes), state.dropped.min(bytes));
        }
        self.shared.wants.store(true, Ordering::Release);
        let wrong = |e| Error::io("truncate", &self.shared.path, e);
        self.shared.file.set_len(bytes).map_err(wrong)?;
        self.bytes = bytes;
        self.look_at = bytes + WINDOW_BYTES_MIN;
        Ok(())
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn path(&self) -> &Path {
        &self.shared.path
    }

    fn pace(&self) -> u64 {
        self.pace.bytes(self.bytes)
    }

    fn preparer(&self) -> Option<Arc<dyn Preparer>> {
        Some(self.shared.clone())
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        let state = &mut *state;
        (state.bytes, state.closed) = (self.bytes, true);
        state.leave(self.window.take());
        self.shared.wants.store(true, Ordering::Release);
    }
}

/// Whether a window may be had later, though not now: space may come. What the file system cannot
/// do it will not be able to do.
fn may_pass(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    let passing = [
        ErrorKind::StorageFull,
        ErrorKind::QuotaExceeded,
        ErrorKind::Interrupted,
        ErrorKind::OutOfMemory,
    ];
    passing.contains(&error.kind())
}

fn sync(file: &File, path: &Path, syncs: &AtomicU64) -> Result<()> {
    syncs.fetch_add(1, Ordering::Relaxed);
    file.sync_data().map_err(|e| Error::io("sync", path, e))
}

struct LogFileSyncer {
    file: Arc<File>,
    path: Arc<Path>,
    syncs: Arc<AtomicU64>,
}

impl Syncer for LogFileSyncer {
    fn sync(&self) -> Result<()> {
        sync(&self.file, &self.path, &self.syncs)
    }
}

impl Shared {
    /// Pages of the file from `at` on, with space on the disk behind each.
    fn map(&self, at: u64, length: u64) -> std::io::Result<Window> {
        linux::allocate(&self.file, at, length)?;
        // SAFETY: the file is this process's own, by the lock of the database's directory. Others
        // only read it, and it is cut only after its windows have been left. Bytes that a call
        // writes meanwhile are never read through the window.
        let pages =
            unsafe { MmapOptions::new().offset(at).len(length as usize).map_mut(&*self.file)? };
        // Every page is there and may be written to: a fault for want of space is an error here
        // and not a signal later.
        pages.advise(Advice::PopulateWrite)?;
        Ok(Window { at, pages })
    }

    /// The window that is wished for now.
    fn wish(&self) -> Option<Wish> {
        let state = self.state.lock();
        state.wanted.map(|window| Wish { window, cuts: state.cuts })
    }

    /// Hands a window over to the writer, if it is still the one that is wished for. Answers
    /// whether there is another wish.
    fn hand_over(&self, wish: &Wish, mapped: std::io::Result<Window>) -> bool {
        let (at, length) = wish.window;
        let mut state = self.state.lock();
        let state = &mut *state;
        state.extended = state.extended.max(at + length);
        let is_wanted = (state.wanted, state.cuts) == (Some(wish.window), wish.cuts);
        match mapped {
            Ok(window) if is_wanted => {
                state.ready.push_back(window);
                state.wish_for(at + length);
            }
            // Taken back meanwhile.
            Ok(window) => state.left.push(window),
            Err(error) if is_wanted => {
                (state.wanted, state.length) = (None, None);
                state.failed = true;
                state.refused = !may_pass(&error);
            }
            // The cut was in the way.
            Err(_) => {}
        }
        state.wanted.is_some()
    }

    /// Has the device begin to write what lies before `bytes`, and lets go of pages that were
    /// written long ago: so neither are they written all at once, nor is memory taken from others
    /// for what nobody reads.
    fn write_back(&self, bytes: u64) {
        let mut state = self.state.lock();
        let end = bytes / ALIGN_BYTES * ALIGN_BYTES;
        let hint = state.hinted.min(end)..end;
        state.hinted = end.max(state.hinted);
        let old = end.saturating_sub(KEPT_BYTES);
        let drop = if old >= state.dropped + DROPPED_BYTES { state.dropped..old } else { 0..0 };
        state.dropped = state.dropped.max(drop.end);
        std::mem::drop(state);
        if hint.end > hint.start {
            linux::write_back(&self.file, hint.start, hint.end - hint.start);
        }
        if drop.end > drop.start {
            linux::wont_need(&self.file, drop.start, drop.end - drop.start);
        }
    }
}

impl Preparer for Shared {
    #[inline]
    fn takes_wish(&self) -> bool {
        self.wants.load(Ordering::Relaxed) && self.wants.swap(false, Ordering::AcqRel)
    }

    fn prepare(&self) -> bool {
        self.prepare_within(&|_| true)
    }

    fn prepare_within(&self, may_grow: &dyn Fn(u64) -> bool) -> bool {
        let Some(wish) = self.wish() else { return false };
        let (at, length) = wish.window;
        let mapped = match may_grow(at + length) {
            true => self.map(at, length),
            false => Err(std::io::ErrorKind::StorageFull.into()),
        };
        self.hand_over(&wish, mapped)
    }

    fn clear(&self) -> bool {
        let (left, bytes, closed) = {
            let mut state = self.state.lock();
            (std::mem::take(&mut state.left), state.bytes, state.closed)
        };
        drop(left);
        self.write_back(bytes);
        if closed {
            self.cut();
        }
        !closed
    }
}

impl Shared {
    /// Cuts off what was made longer and not appended to. The writer has gone.
    fn cut(&self) {
        let mut state = self.state.lock();
        let (bytes, extended) = (state.bytes, std::mem::take(&mut state.extended));
        let left = std::mem::take(&mut state.left);
        drop(state);
        drop(left);
        // What is left behind by a failure is zeros after the end, which a recovery cuts off.
        if extended > bytes && self.process.is_this() {
            self.file.set_len(bytes).ok();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.cut();
    }
}

impl std::fmt::Debug for LogFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogFile").field("path", &self.path()).field("bytes", &self.bytes).finish()
    }
}

#[cfg(all(test, not(feature = "shuttle"), not(miri)))]
#[path = "log_file_tests.rs"]
mod tests;
