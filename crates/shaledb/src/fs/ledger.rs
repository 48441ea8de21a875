//! The bytes that a database's files take, counted at the door, and what of its limit is promised.
//!
//! A file counts with its length, or as far as it was made longer ahead of its writer, from its
//! making until its name is gone and nobody writes to it any more. So the sum is never less than
//! what the directory holds. With a limit no file grows beyond it, whatever else goes wrong: who
//! asks for more is refused as on a full disk, before a byte is written.
//!
//! What has to go on near the limit has its part kept back: [`HeldBack`]. Who pays for a file's
//! growth says what of that it may use: [`Payer`].

use crate::base::error::{Error, Result};
use crate::base::rank;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What of a limit is kept back, and for whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// For merges: one can always begin that makes room.
    pub merges: u64,
    /// For deletes: their log and their tables, until merges have made room of them. And for what
    /// a merge under way makes beyond what was thought.
    pub deletes: u64,
    /// For the manifest and other small files.
    pub files: u64,
}

/// A limit and what of it is kept back; a limit of 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// What all files together may take, in bytes.
    pub bytes: u64,
    /// What of that is kept back.
    pub held: HeldBack,
}

/// What a ledger has counted, as of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// The limit.
    pub limit: Limit,
    /// The bytes of all files.
    pub used: u64,
    /// Of these, what merges have written that is not installed.
    pub drawn: u64,
    /// What merges under way may write beside their inputs, that included.
    pub promised: u64,
    /// What is in memtables: it will be in tables.
    pub memtables: u64,
    /// What commits under way will add to log and tables.
    pub pending: u64,
}

impl Balance {
    /// What files and promises may yet take, whoever asks; without a limit there is no end to it.
    fn left(&self, taken: u64) -> u64 {
        if self.limit.bytes == 0 { u64::MAX } else { self.limit.bytes.saturating_sub(taken) }
    }

    fn owed(&self) -> u64 {
        self.memtables + self.pending + self.limit.held.files
    }

    /// What the engine's own small files, logs and flushes may grow by.
    pub fn for_engine(&self) -> u64 {
        self.left(self.used + self.promised - self.drawn)
    }

    /// What a further merge may be promised.
    pub fn for_merges(&self) -> u64 {
        let held = self.limit.held.deletes;
        self.left(self.used + self.promised - self.drawn + self.owed() + held)
    }

    /// What merges may add beyond what they were promised: it gives more room than it takes from
    /// deletes.
    pub fn for_overrun(&self) -> u64 {
        self.left(self.used + self.promised - self.drawn + self.owed())
    }

    /// What deletes may add.
    pub fn for_deletes(&self) -> u64 {
        let merges = self.limit.held.merges.max(self.promised);
        self.left(self.used - self.drawn + merges + self.owed())
    }

    /// What of the limit users may not have: it is kept back, or promised.
    pub fn held_back(&self) -> u64 {
        let free = self.limit.bytes.saturating_sub(self.used);
        free.saturating_sub(self.for_users())
    }

    /// What users may add.
    pub fn for_users(&self) -> u64 {
        let merges = self.limit.held.merges.max(self.promised);
        self.left(self.used - self.drawn + merges + self.owed() + self.limit.held.deletes)
    }
}

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

/// Room that a merge was promised. It is given back when it is dropped.
#[derive(Debug)]
pub struct Promise {
    ledger: Arc<Ledger>,
    number: u64,
}

impl Promise {
    /// These files of it have been installed: they are the database's now. The promise becomes
    /// smaller by them, but for what was `freed` in return: that is for what comes next.
    pub fn installed<'a>(&self, paths: impl Iterator<Item = &'a Path>, freed: u64) {
        self.ledger.sums.lock().installed(self.number, paths, freed);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.ledger.sums.lock().end_promise(self.number);
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

/// What is known of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// What it counts with.
    bytes: u64,
    is_named: bool,
    /// How many have it open for writing.
    writers: u32,
    /// The promise that has paid for it, and what of it.
    promise: u64,
    drawn: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Promised {
    bytes: u64,
    drawn: u64,
}

#[derive(Debug, Default)]
struct Sums {
    balance: Balance,
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
    fn name_new(&mut self, path: &Path, bytes: u64) -> u64 {
        self.unname(path);
        let number = self.number();
        self.files.insert(number, Entry { bytes, is_named: true, ..Entry::default() });
        self.balance.used += bytes;
        self.names.insert(path.to_owned(), number);
        number
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

    /// A file has so many bytes now: fewer, or ones that are allowed.
    fn set(&mut self, number: u64, bytes: u64) {
        let Some(file) = self.files.get_mut(&number) else { return };
        let back = file.drawn.min(file.bytes.saturating_sub(bytes));
        file.drawn -= back;
        assert!(self.balance.used >= file.bytes, "each file is in the sum");
        self.balance.used = self.balance.used - file.bytes + bytes;
        file.bytes = bytes;
        let promise = file.promise;
        self.undraw(promise, back);
    }

    fn undraw(&mut self, promise: u64, bytes: u64) {
        if let Some(promise) = self.promises.get_mut(&promise) {
            assert!(promise.drawn >= bytes, "what is drawn is in the sum");
            promise.drawn -= bytes;
            self.balance.drawn -= bytes;
        }
    }

    fn grow(&mut self, number: u64, to: u64, payer: &Payer) -> Result<()> {
        let Some(file) = self.files.get(&number) else { return Ok(()) };
        let wanted = to.saturating_sub(file.bytes);
        let mut drawn = 0;
        let allowed = match payer {
            Payer::Engine => self.balance.for_engine(),
            Payer::User => self.balance.for_users(),
            Payer::Merge(promise) => {
                let promised = self.promises.get(&promise.number).copied().unwrap_or_default();
                drawn = wanted.min(promised.bytes.saturating_sub(promised.drawn));
                // What is more than was thought must not take what others wait for.
                match wanted - drawn {
                    0 => self.balance.left(self.balance.used),
                    _ => drawn + self.balance.for_overrun(),
                }
            }
        };
        if wanted > allowed {
            return Err(self.refusal(wanted));
        }
        self.set(number, to.max(self.files.get(&number).map_or(0, |file| file.bytes)));
        if let Payer::Merge(promise) = payer
            && let Some(file) = self.files.get_mut(&number)
            && let Some(promised) = self.promises.get_mut(&promise.number)
        {
            assert!(file.promise == 0 || file.promise == promise.number, "one merge writes a file");
            file.promise = promise.number;
            file.drawn += drawn;
            promised.drawn += drawn;
            self.balance.drawn += drawn;
        }
        debug_assert!(self.balance.drawn <= self.balance.promised, "what is drawn was promised");
        Ok(())
    }

    fn refusal(&self, needed: u64) -> Error {
        Error::SpaceLimit { limit: self.balance.limit.bytes, used: self.balance.used, needed }
    }

    fn installed<'a>(&mut self, number: u64, paths: impl Iterator<Item = &'a Path>, freed: u64) {
        let mut installed = 0;
        for path in paths {
            let Some(file) = self.names.get(path).and_then(|at| self.files.get_mut(at)) else {
                continue;
            };
            let drawn = std::mem::take(&mut file.drawn);
            file.promise = 0;
            self.undraw(number, drawn);
            installed += drawn;
        }
        if let Some(promised) = self.promises.get_mut(&number) {
            let less = installed.saturating_sub(freed);
            assert!(promised.bytes - promised.drawn >= less, "what was drawn was promised");
            promised.bytes -= less;
            self.balance.promised -= less;
        }
    }

    fn end_promise(&mut self, number: u64) {
        if let Some(promised) = self.promises.remove(&number) {
            self.balance.promised -= promised.bytes;
            self.balance.drawn -= promised.drawn;
        }
        for file in self.files.values_mut().filter(|file| file.promise == number) {
            (file.promise, file.drawn) = (0, 0);
        }
    }
}

/// The bytes of a database's files.
#[derive(Debug, Default)]
pub struct Ledger {
    sums: Mutex<Sums, { rank::LEDGER }>,
    limited: AtomicBool,
}

impl Ledger {
    /// Whether there is a limit.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.limited.load(Ordering::Relaxed)
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
        let memtables = if counts { sums.balance.memtables + held.files } else { 0 };
        let taken = sums.balance.used + memtables;
        if limit.bytes != 0 && taken > limit.bytes {
            return Err(taken);
        }
        sums.balance.limit = limit;
        self.limited.store(limit.bytes != 0, Ordering::Relaxed);
        Ok(())
    }

    /// How long a manifest may be that could be shorter.
    pub fn manifest_room(&self) -> u64 {
        if self.is_limited() { self.balance().limit.held.files / 2 } else { u64::MAX }
    }

    /// What has been counted.
    pub fn balance(&self) -> Balance {
        self.sums.lock().balance
    }

    /// What memtables hold now.
    pub fn set_memtables(&self, bytes: u64) {
        self.sums.lock().balance.memtables = bytes;
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
        if bytes > room {
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
        if bytes > sums.balance.for_merges() {
            return None;
        }
        let number = sums.number();
        sums.promises.insert(number, Promised { bytes, drawn: 0 });
        sums.balance.promised += bytes;
        Some(Arc::new(Promise { ledger: self.clone(), number }))
    }

    /// A file that is there from before.
    pub fn found(&self, path: &Path, bytes: u64) {
        self.sums.lock().name_new(path, bytes);
    }

    /// A file was made for a writer.
    pub fn created(self: &Arc<Ledger>, path: &Path) -> Account {
        let mut sums = self.sums.lock();
        let number = sums.name_new(path, 0);
        self.open(&mut sums, number)
    }

    /// A file of so many bytes was opened for a writer.
    pub fn reopened(self: &Arc<Ledger>, path: &Path, bytes: u64) -> Account {
        let mut sums = self.sums.lock();
        let number = match sums.names.get(path) {
            Some(number) => *number,
            None => sums.name_new(path, bytes),
        };
        self.open(&mut sums, number)
    }

    fn open(self: &Arc<Ledger>, sums: &mut Sums, number: u64) -> Account {
        let mut bytes = 0;
        if let Some(file) = sums.files.get_mut(&number) {
            file.writers += 1;
            bytes = file.bytes;
        }
        let counted = AtomicU64::new(bytes);
        let (written, ahead) = (AtomicU64::new(bytes), AtomicU64::new(0));
        Account { ledger: self.clone(), number, counted, written, ahead }
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

/// A file that is open for writing: shared by its writer and who works ahead of it.
#[derive(Debug)]
pub struct Account {
    ledger: Arc<Ledger>,
    number: u64,
    /// What the file counts with.
    counted: AtomicU64,
    /// What was appended.
    written: AtomicU64,
    /// How far the file was made longer ahead of its writer.
    ahead: AtomicU64,
}

impl Account {
    /// Allows the file to be so long.
    #[inline]
    pub fn allow(&self, to: u64, payer: &Payer) -> Result<()> {
        if to <= self.counted.load(Ordering::Relaxed) { Ok(()) } else { self.grow(to, payer) }
    }

    fn grow(&self, to: u64, payer: &Payer) -> Result<()> {
        let mut sums = self.ledger.sums.lock();
        sums.grow(self.number, to, payer)?;
        self.counted.fetch_max(to, Ordering::Relaxed);
        Ok(())
    }

    /// Allows the file to be made so long ahead of its writer: only where users have much room.
    pub fn allow_ahead(&self, to: u64) -> bool {
        let mut sums = self.ledger.sums.lock();
        let (limit, counted) = (sums.balance.limit.bytes, self.counted.load(Ordering::Relaxed));
        let room = sums.balance.for_users().saturating_sub(limit / AHEAD_ROOM);
        if to.saturating_sub(counted) > room || sums.grow(self.number, to, &Payer::User).is_err() {
            return false;
        }
        self.counted.fetch_max(to, Ordering::Relaxed);
        self.ahead.fetch_max(to, Ordering::Relaxed);
        true
    }

    /// Notes what was appended; the rest of what counts is ahead of that.
    #[inline]
    pub fn wrote(&self, bytes: u64) {
        self.written.store(bytes, Ordering::Relaxed);
    }

    /// The file was cut.
    pub fn cut(&self, bytes: u64) {
        let mut sums = self.ledger.sums.lock();
        self.written.store(bytes, Ordering::Relaxed);
        // Who works ahead may have made it longer again.
        let counts = bytes.max(self.ahead.load(Ordering::Relaxed));
        self.counted.store(counts, Ordering::Relaxed);
        sums.set(self.number, counts);
    }
}

/// One part in so many of a limit is to be free where a log grows ahead of its writer.
const AHEAD_ROOM: u64 = 16;

impl Drop for Account {
    fn drop(&mut self) {
        let mut sums = self.ledger.sums.lock();
        // The last user of a log has cut what was ahead.
        if self.ahead.load(Ordering::Relaxed) > 0 {
            sums.set(self.number, self.written.load(Ordering::Relaxed));
        }
        if let Some(file) = sums.files.get_mut(&self.number) {
            assert!(file.writers > 0, "a writer ends once");
            file.writers -= 1;
        }
        sums.forget_if_gone(self.number);
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "ledger_tests.rs"]
mod tests;
