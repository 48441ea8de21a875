//! The bytes that a database's files take, counted at the door, and what of its limit is promised.
//!
//! A file counts with its length, or as far as it was made longer ahead of its writer, from its
//! making until its name is gone and nobody writes to it any more. So the sum is never less than
//! what the directory holds. With a limit no file grows beyond it, whatever else goes wrong: who
//! asks for more is refused as on a full disk, before a byte is written. Without one an append
//! locks nothing: what files have grown by is summed up when it is asked for.
//!
//! What has to go on near the limit has its part kept back: [`HeldBack`](super::balance::HeldBack).
//! Who pays for a file's growth says what of that it may use: [`Payer`].

use super::balance::{Balance, Limit};
use crate::base::error::{Error, Result};
use crate::base::rank;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Who has a file made and pays for its growth.
#[derive(Clone, Debug, Default)]
pub enum Payer {
    /// What cannot be put off: flushes, the log, the manifest.
    #[default]
    Engine,
    /// A user, directly: bulk loads, transactions' runs, large values.
    User,
    /// A merge, from what it was promised.
    Merge(Arc<Promise>),
}

/// Room that a merge was promised. What of it the merge's inputs take is given back once their
/// files are gone; the rest when it ends, or is dropped.
#[derive(Debug)]
pub struct Promise {
    ledger: Arc<Ledger>,
    number: u64,
}

impl Promise {
    /// The files `added` of it have taken the place of those `removed`, which are still there and
    /// will go; more will, to the end of the merge, unless this `is_last`.
    pub fn installed(&self, added: &[PathBuf], removed: &[PathBuf], is_last: bool) {
        self.ledger.sums.lock().installed(self.number, added, removed, is_last);
    }

    /// Gives back what is left of it. What was replaced and is still there goes on counting.
    pub fn end(&self) {
        self.ledger.sums.lock().end_promise(self.number);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a commit under way will add. It is counted until it is dropped; what is in memtables then
/// counts there.
#[derive(Debug)]
pub struct Admitted {
    ledger: Arc<Ledger>,
    bytes: u64,
    /// Of these, what goes to memtables.
    memtables: u64,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut sums = self.ledger.sums.lock();
        assert!(sums.balance.pending >= self.bytes, "what is admitted is counted");
        sums.balance.pending -= self.bytes;
        sums.balance.memtables += self.memtables;
    }
}

/// How far a file that is open for writing has come.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// How long it may become without a look at the limit.
    pub allowed: AtomicU64,
    /// What was appended.
    pub written: AtomicU64,
    /// How far it was made longer ahead of its writer.
    pub ahead: AtomicU64,
}

impl Growth {
    fn bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed).max(self.ahead.load(Ordering::Relaxed))
    }
}

/// What is known of a file.
#[derive(Debug, Default)]
struct Entry {
    /// What it counts with; without a limit it may have grown since.
    bytes: u64,
    is_named: bool,
    /// How many have it open for writing.
    writers: u32,
    growth: Option<Arc<Growth>>,
    /// The promise that has paid for it, and what of it.
    promise: u64,
    drawn: u64,
    /// Whether it has been replaced, and only waits for its end.
    is_replaced: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Promised {
    bytes: u64,
    /// What of it is in files, or there twice.
    drawn: u64,
    /// What is both above and below until the merge ends.
    twice: u64,
    has_ended: bool,
}

#[derive(Debug, Default)]
pub(super) struct Sums {
    pub balance: Balance,
    names: BTreeMap<PathBuf, u64>,
    files: BTreeMap<u64, Entry>,
    promises: BTreeMap<u64, Promised>,
    next: u64,
}

impl Sums {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A file of this name that is new, or another one than before.
    pub fn name_new(&mut self, path: &Path, bytes: u64) -> u64 {
        self.unname(path);
        let number = self.number();
        self.files.insert(number, Entry { bytes, is_named: true, ..Entry::default() });
        self.balance.used += bytes;
        self.names.insert(path.to_owned(), number);
        number
    }

    /// The number of the file of this name.
    pub fn named(&self, path: &Path) -> Option<u64> {
        self.names.get(path).copied()
    }

    fn unname(&mut self, path: &Path) {
        let Some(number) = self.names.remove(path) else { return };
        if let Some(file) = self.files.get_mut(&number) {
            file.is_named = false;
        }
        self.forget_if_gone(number);
    }

    fn forget_if_gone(&mut self, number: u64) {
        let gone = |file: &Entry| !file.is_named && file.writers == 0;
        if self.files.get(&number).is_some_and(gone) {
            self.set(number, 0);
            self.files.remove(&number);
        }
    }

    /// A writer has it open, one more.
    pub fn open(&mut self, number: u64) -> Arc<Growth> {
        let Some(file) = self.files.get_mut(&number) else { return Arc::default() };
        file.writers += 1;
        let bytes = file.bytes;
        let begin = || {
            let (allowed, written) = (AtomicU64::new(bytes), AtomicU64::new(bytes));
            Arc::new(Growth { allowed, written, ahead: AtomicU64::new(0) })
        };
        file.growth.get_or_insert_with(begin).clone()
    }

    /// A writer has ended.
    pub fn close(&mut self, number: u64) {
        if let Some(file) = self.files.get_mut(&number) {
            assert!(file.writers > 0, "a writer ends once");
            file.writers -= 1;
            // The last user of a log has cut what was ahead.
            let last = if file.writers == 0 { file.growth.take() } else { None };
            if let Some(growth) = last {
                self.set(number, growth.written.load(Ordering::Relaxed));
            }
        }
        self.forget_if_gone(number);
    }

    /// A file has so many bytes now: fewer, or ones that are allowed.
    pub fn set(&mut self, number: u64, bytes: u64) {
        let Some(file) = self.files.get_mut(&number) else { return };
        let back = file.drawn.min(file.bytes.saturating_sub(bytes));
        file.drawn -= back;
        assert!(self.balance.used >= file.bytes, "each file is in the sum");
        let (promise, before) = (file.promise, file.bytes);
        file.bytes = bytes;
        self.undraw(promise, back);
        self.balance.used = self.balance.used - before + bytes;
    }

    fn undraw(&mut self, number: u64, bytes: u64) {
        let Some(promise) = self.promises.get_mut(&number) else { return };
        assert!(promise.drawn >= bytes, "what is drawn is in the sum");
        promise.drawn -= bytes;
        self.balance.drawn -= bytes;
        if promise.has_ended {
            // What its inputs took is given back as they go.
            promise.bytes -= bytes;
            self.balance.promised -= bytes;
            if promise.drawn == 0 {
                self.promises.remove(&number);
            }
        }
    }

    /// What a file counts with; one that is not known may be of any length.
    pub fn bytes_of(&self, number: u64) -> u64 {
        self.files.get(&number).map_or(u64::MAX, |file| file.bytes)
    }

    /// Allows a file to grow, by a piece beyond what is asked for if there is room.
    pub fn grow(&mut self, number: u64, to: u64, payer: &Payer) -> Result<()> {
        let piece = (to / 8).min(self.balance.limit.bytes / PIECE_SHARE).min(PIECE_BYTES);
        if self.grow_to(number, to + piece, payer) || self.grow_to(number, to, payer) {
            return Ok(());
        }
        Err(self.refusal(to.saturating_sub(self.bytes_of(number))))
    }

    /// Allows a file to grow, if there is as much room.
    pub fn grow_to(&mut self, number: u64, to: u64, payer: &Payer) -> bool {
        let Some(file) = self.files.get(&number) else { return true };
        let to = to.max(file.bytes);
        let wanted = to - file.bytes;
        let allowed = match payer {
            Payer::Engine => self.balance.for_engine(),
            Payer::User => self.balance.for_users(),
            Payer::Merge(promise) => self.draw(promise.number, number, wanted),
        };
        if wanted > allowed {
            return false;
        }
        self.set(number, to);
        debug_assert!(self.balance.drawn <= self.balance.promised, "what is drawn was promised");
        true
    }

    /// Draws what a merge writes to a file from its promise. What it writes beyond that has to be
    /// promised, as for another merge. Answers what there is if that is too little.
    fn draw(&mut self, promise: u64, file: u64, wanted: u64) -> u64 {
        let more = self.balance.for_merges();
        let Some(promised) = self.promises.get_mut(&promise) else { return more };
        let missing = wanted.saturating_sub(promised.bytes - promised.drawn);
        if missing > more {
            return wanted - missing + more;
        }
        promised.bytes += missing;
        promised.drawn += wanted;
        self.balance.promised += missing;
        self.balance.drawn += wanted;
        // Before the file counts with it, for no longer than that.
        self.balance.used += wanted;
        if let Some(file) = self.files.get_mut(&file) {
            assert!(file.promise == 0 || file.promise == promise, "one merge writes a file");
            file.promise = promise;
            file.drawn += wanted;
            file.bytes += wanted;
        }
        u64::MAX
    }

    pub fn refusal(&self, needed: u64) -> Error {
        Error::SpaceLimit { limit: self.balance.limit.bytes, used: self.balance.used, needed }
    }

    fn installed(&mut self, number: u64, added: &[PathBuf], removed: &[PathBuf], is_last: bool) {
        let Some(promised) = self.promises.get(&number) else { return };
        // What was drawn for outputs, and earlier ones, is now for what they replace.
        let mut free = promised.twice;
        for path in added {
            if let Some(file) = self.names.get(path).and_then(|at| self.files.get_mut(at)) {
                free += std::mem::take(&mut file.drawn);
                file.promise = 0;
            }
        }
        let mut drawn = promised.drawn - free;
        for path in removed {
            if let Some(file) = self.names.get(path).and_then(|at| self.files.get_mut(at)) {
                file.drawn = file.bytes.min(promised.bytes - drawn);
                (file.promise, file.is_replaced) = (number, true);
                drawn += file.drawn;
                free = free.saturating_sub(file.drawn);
            }
        }
        let before = *promised;
        let twice = if is_last { 0 } else { free.min(before.bytes - drawn) };
        let bytes = if is_last { drawn } else { before.bytes };
        let drawn = drawn + twice;
        self.promises.insert(number, Promised { bytes, drawn, twice, ..before });
        self.balance.drawn = self.balance.drawn - before.drawn + drawn;
        self.balance.promised = self.balance.promised - before.bytes + bytes;
    }

    fn end_promise(&mut self, number: u64) {
        let Some(promised) = self.promises.get(&number).copied() else { return };
        let mut stays = 0;
        for file in self.files.values_mut().filter(|file| file.promise == number) {
            if file.is_replaced {
                stays += file.drawn;
            } else {
                (file.promise, file.drawn) = (0, 0);
            }
        }
        self.balance.promised = self.balance.promised - promised.bytes + stays;
        self.balance.drawn = self.balance.drawn - promised.drawn + stays;
        if stays == 0 {
            self.promises.remove(&number);
        } else {
            let ended = Promised { bytes: stays, drawn: stays, twice: 0, has_ended: true };
            self.promises.insert(number, ended);
        }
    }

    /// What files have grown by since it was counted, while there was no limit.
    fn uncounted(&self) -> u64 {
        let of_file = |file: &Entry| {
            let growth = file.growth.as_ref().map_or(0, |growth| growth.bytes());
            growth.saturating_sub(file.bytes)
        };
        self.files.values().map(of_file).sum()
    }

    /// Counts what files may have grown by while there was no limit.
    fn count_growth(&mut self) {
        for file in self.files.values_mut() {
            let growth = file.growth.as_ref();
            let allowed = growth.map_or(0, |growth| growth.allowed.load(Ordering::SeqCst));
            let more = allowed.saturating_sub(file.bytes);
            file.bytes += more;
            self.balance.used += more;
        }
    }
}

/// The bytes of a database's files.
#[derive(Debug, Default)]
pub struct Ledger {
    pub(super) sums: Mutex<Sums, { rank::LEDGER }>,
    limited: AtomicBool,
}

impl Ledger {
    /// Whether there is a limit.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.limited.load(Ordering::Relaxed)
    }

    /// Whether there is a limit, for who has just noted growth that is counted when one is set.
    pub(super) fn is_limited_now(&self) -> bool {
        self.limited.load(Ordering::SeqCst)
    }

    /// The limit in bytes; 0 for none.
    pub fn limit(&self) -> u64 {
        if self.is_limited() { self.sums.lock().balance.limit.bytes } else { 0 }
    }

    /// Sets the limit, unless the files take more than that, or will with what is in memory if that
    /// counts: then the answer is what they take.
    pub fn set_limit(&self, limit: Limit, counts: bool) -> std::result::Result<(), u64> {
        let held = limit.held;
        assert!(
            limit.bytes == 0 || held.merges + held.deletes + held.files < limit.bytes,
            "most of a limit is for data"
        );
        let mut sums = self.sums.lock();
        // Before growth is counted: who notes some later sees this, and comes here.
        self.limited.store(limit.bytes != 0, Ordering::SeqCst);
        sums.count_growth();
        let memtables = if counts { sums.balance.memtables + held.files } else { 0 };
        let taken = sums.balance.used + memtables;
        if limit.bytes != 0 && taken > limit.bytes {
            self.limited.store(sums.balance.limit.bytes != 0, Ordering::SeqCst);
            return Err(taken);
        }
        sums.balance.limit = limit;
        Ok(())
    }

    /// How long a manifest may be that could be shorter.
    pub fn manifest_room(&self) -> u64 {
        if self.is_limited() { self.balance().limit.held.files / 4 } else { u64::MAX }
    }

    /// What has been counted.
    pub fn balance(&self) -> Balance {
        let sums = self.sums.lock();
        let more = if sums.balance.limit.bytes == 0 { sums.uncounted() } else { 0 };
        Balance { used: sums.balance.used + more, ..sums.balance }
    }

    /// What memtables hold now, and what a merge needs at most.
    pub fn set_needs(&self, memtables: u64, merge: u64) {
        let mut sums = self.sums.lock();
        sums.balance.memtables = memtables;
        sums.balance.merge_needs = merge;
    }

    /// Counts a commit that is to add `bytes`, of which `memtables` go to memtables; `None` if
    /// there is no room. What only deletes may use what is kept back for that.
    pub fn admit(
        self: &Arc<Ledger>,
        bytes: u64,
        memtables: u64,
        only_deletes: bool,
    ) -> Option<Admitted> {
        assert!(memtables <= bytes, "what goes to memtables is a part");
        let mut sums = self.sums.lock();
        let balance = &mut sums.balance;
        let room = if only_deletes { balance.for_deletes() } else { balance.for_users() };
        // What is flushed as a whole has to go down as a whole.
        let merge = memtables.saturating_sub(balance.limit.held.commit);
        let needed = if only_deletes { bytes } else { bytes + merge };
        if needed > room {
            return None;
        }
        balance.pending += bytes;
        Some(Admitted { ledger: self.clone(), bytes, memtables })
    }

    /// The error of who needs so much more than there is.
    pub fn refusal(&self, needed: u64) -> Error {
        self.sums.lock().refusal(needed)
    }

    /// Promises a merge so much room; `None` if there is not as much.
    pub fn promise(self: &Arc<Ledger>, bytes: u64) -> Option<Arc<Promise>> {
        let mut sums = self.sums.lock();
        let before = sums.balance.for_deletes().min(sums.balance.limit.held.deletes);
        if bytes > sums.balance.for_merges() {
            return None;
        }
        let number = sums.number();
        sums.promises.insert(number, Promised { bytes, ..Promised::default() });
        sums.balance.promised += bytes;
        assert!(sums.balance.for_deletes() >= before, "the part of deletes is not for merges");
        Some(Arc::new(Promise { ledger: self.clone(), number }))
    }

    /// A file that is there from before.
    pub fn found(&self, path: &Path, bytes: u64) {
        self.sums.lock().name_new(path, bytes);
    }

    /// A file has another name; one of that name is gone.
    pub fn renamed(&self, from: &Path, to: &Path) {
        let mut sums = self.sums.lock();
        let Some(number) = sums.names.remove(from) else { return };
        sums.unname(to);
        sums.names.insert(to.to_owned(), number);
    }

    /// A file's name is gone.
    pub fn removed(&self, path: &Path) {
        self.sums.lock().unname(path);
    }
}

/// A file is allowed to grow by a piece ahead of what is appended, so that not each append looks
/// at the sums: one part in so many of the limit, and at most so many bytes.
const PIECE_SHARE: u64 = 1024;
const PIECE_BYTES: u64 = 256 << 10;

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "ledger_tests.rs"]
mod tests;
