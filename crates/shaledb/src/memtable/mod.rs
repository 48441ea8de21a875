//! The newest entries of a tree, in memory: what a write goes to and a flush writes out.
//!
//! A memtable is a sorted list of entries in an arena (`skiplist`, `arena`), a set of range deletes
//! beside it, landmarks if it is large and searched (`landmarks`), and a Bloom filter if that is
//! often in vain (`filter`). It is only ever added
//! to; it is freed as a whole when its last user lets go, who may use it once more if it is small
//! ([`Memtable::reset`]). Many threads may insert at once. Readers take no lock, whether they look
//! up a key, hold a cursor or ask for the range deletes, and see every entry whose insert returned
//! before they began.
//!
//! An empty memtable takes about a kilobyte: a database may have thousands of trees.

pub(crate) mod chunk;
mod arena;
mod node;
mod hints;
mod finger;
mod ranges;
mod landmarks;
mod skiplist;
mod search;
mod sample;
mod list_cursor;
mod filter;

use crate::base::coding;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{Kind, SeqNo};
use crate::base::ranges::RangeDeletes;
use crate::base::rank;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::base::sync::{Arc, Mutex};

use filter::{Filter, Misses};
use list_cursor::ListCursor;
use ranges::RangeLog;
use skiplist::SkipList;
use std::any::Any;
use std::sync::OnceLock;

pub use node::{MemEntry, Sample};

/// A sorted, growing set of entries in memory. In this order what inserts write (as the count of
/// references, before the first field) is not on a cache line with what reads go by.
#[repr(C)]
pub struct Memtable {
    last_seq: AtomicU64,
    first_seq: AtomicU64,
    misses: Misses,
    /// How many dead entries scans have passed, and how many are waited for at least.
    dead_passed: AtomicU64,
    dead_waited_for: AtomicU64,
    attached: Mutex<Vec<Arc<dyn Any + Send + Sync>>, { rank::ATTACHED }>,
    /// The memory of what is attached, and the bytes that it keeps outside.
    attached_bytes: AtomicUsize,
    outside_bytes: AtomicU64,
    list: Arc<SkipList>,
    /// Behind a pointer: most memtables have none.
    filter: OnceLock<Box<Filter>>,
    /// Whether searches would be glad of one.
    wanted: AtomicBool,
    ranges: RangeLog,
}

impl Default for Memtable {
    fn default() -> Memtable {
        Memtable::new()
    }
}

impl Memtable {
    /// An empty memtable.
    pub fn new() -> Memtable {
        Memtable {
            last_seq: AtomicU64::new(0),
            first_seq: AtomicU64::new(u64::MAX),
            misses: Misses::default(),
            dead_passed: AtomicU64::new(0),
            dead_waited_for: AtomicU64::new(0),
            attached: Mutex::new(Vec::new()),
            attached_bytes: AtomicUsize::new(0),
            outside_bytes: AtomicU64::new(0),
            list: Arc::new(SkipList::new()),
            filter: OnceLock::new(),
            wanted: AtomicBool::new(false),
            ranges: RangeLog::new(),
        }
    }

    /// Makes it as new but for the memory that it has taken, if that is little, and nobody else has
    /// any of it: no cursor, and nothing attached. Otherwise answers false: it is to be dropped.
    pub fn reset(&mut self) -> bool {
        if self.has_range_deletes() || self.attached_bytes.load(Ordering::Relaxed) > 0 {
            return false;
        }
        if !Arc::get_mut(&mut self.list).is_some_and(SkipList::reset) {
            return false;
        }
        self.first_seq = AtomicU64::new(u64::MAX);
        self.last_seq = AtomicU64::new(0);
        (self.misses, self.filter) = (Misses::default(), OnceLock::new());
        self.wanted = AtomicBool::new(false);
        (self.dead_passed, self.dead_waited_for) = (AtomicU64::new(0), AtomicU64::new(0));
        debug_assert!(self.is_empty() && self.outside_bytes() == 0, "as new");
        true
    }

    /// Adds an entry. `kind` is not [`Kind::RangeDelete`]; (key, seq) must not be there yet; key
    /// and value are within the limits of [`crate::base::key`].
    #[inline]
    pub fn insert(&self, key: &[u8], seq: SeqNo, kind: Kind, value: &[u8]) {
        assert!(kind != Kind::RangeDelete, "a range delete is not an entry of the list");
        if let Some(filter) = self.filter.get() {
            filter.note_insert(key);
        }
        self.list.insert(key, seq, kind, value);
        self.note(seq);
    }

    /// Deletes all keys from `start` up to (not including) `end` that are older than `seq`. Reads
    /// are at numbers before `unseen` until all of the commit is in: so of the deletes from there
    /// on only the newest is kept where they overlap.
    pub fn delete_range(&self, start: &[u8], end: &[u8], seq: SeqNo, unseen: SeqNo) {
        self.ranges.add(start, end, seq, unseen);
        self.note(seq);
    }

    /// Widens the span of sequence numbers to include `seq`.
    #[inline]
    fn note(&self, seq: SeqNo) {
        // Mostly there is nothing to change at the low end, and a load is cheaper than a minimum.
        if seq < self.first_seq.load(Ordering::Relaxed) {
            self.first_seq.fetch_min(seq, Ordering::Relaxed);
        }
        if seq > self.last_seq.load(Ordering::Relaxed) {
            self.last_seq.fetch_max(seq, Ordering::Relaxed);
        }
    }

    /// Notes that recovering what is in it takes the log from `seq` on, although its entries are
    /// newer: they were logged by the prepare of a transaction.
    pub fn needs_log_from(&self, seq: SeqNo) {
        self.first_seq.fetch_min(seq, Ordering::Relaxed);
    }

    /// The newest entry of `key` at or before `seq`. Range deletes are not considered.
    #[inline]
    pub fn get(&self, key: &[u8], seq: SeqNo) -> Option<MemEntry<'_>> {
        self.get_hashed(key, &mut None, seq)
    }

    /// As [`Memtable::get`], of a key whose hash may be known ([`coding::hash`]), and is afterwards
    /// if it was needed.
    #[inline]
    pub fn get_hashed(
        &self,
        key: &[u8],
        hash: &mut Option<u64>,
        seq: SeqNo,
    ) -> Option<MemEntry<'_>> {
        let mut hash = || *hash.get_or_insert_with(|| coding::hash(key));
        let filter = self.filter.get();
        if filter.is_some_and(|filter| filter.excludes(hash())) {
            return None;
        }
        let found = self.list.get(key, seq);
        if found.is_none() {
            match filter {
                Some(filter) => filter.note_miss(hash()),
                None if self.wanted.load(Ordering::Relaxed) || !Misses::matter(&self.list) => {}
                None if !self.misses.count(&self.list, hash()) => {}
                None => self.wanted.store(true, Ordering::Relaxed),
            }
        }
        found
    }

    /// Whether it is searched in vain so often that it should know which keys it does not have
    /// ([`Memtable::begin_filter`]).
    #[inline]
    pub fn wants_filter(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) && self.filter.get().is_none()
    }

    /// [`Memtable::begin_filter`], if one is wanted.
    #[inline]
    pub fn begin_wanted_filter(&self, full_bytes: u64) {
        if self.wants_filter() {
            self.begin_filter(full_bytes);
        }
    }

    /// Begins to note which keys it has, for searches that would find none. No insert is under way:
    /// whoever keeps them from beginning calls it. It is made for as many entries as there may be
    /// when `full_bytes` are in use.
    #[cold]
    pub fn begin_filter(&self, full_bytes: u64) {
        self.filter.get_or_init(|| Box::new(Filter::begin(&self.list, full_bytes)));
    }

    /// All keys and their entries (not the range deletes), in the order of a cursor.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], MemEntry<'_>)> {
        self.list.entries()
    }

    /// About how many entries have keys from `lower` up to (not including) `upper`, and a part of
    /// them, spread evenly: `count` or a little more. All of them, and how many they are, if they
    /// are fewer. Its cost grows with `count` only.
    pub fn sample(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        count: usize,
    ) -> (u64, Vec<Sample<'_>>) {
        self.list.sample(lower, upper, count)
    }

    /// Whether there is any range delete.
    #[inline]
    pub fn has_range_deletes(&self) -> bool {
        self.ranges.count() > 0
    }

    /// The newest range delete at or before `seq` that covers `key`, or 0 if none does. Cheaper
    /// than [`Memtable::range_deletes`] while range deletes are still coming in.
    #[inline]
    pub fn newest_covering(&self, key: &[u8], seq: SeqNo) -> SeqNo {
        if self.has_range_deletes() { self.ranges.newest_covering(key, seq) } else { 0 }
    }

    /// All range deletes as one set. It is kept, so that only the first call after a
    /// [`Memtable::delete_range`] builds it.
    pub fn range_deletes(&self) -> Arc<RangeDeletes> {
        self.ranges.all()
    }

    /// The bytes of memory taken: all chunks of the arena, used or not, the range deletes, what
    /// searches go by (the filter, the landmarks), and what is attached.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.list.bytes() + self.beside_list()
    }

    #[inline]
    fn beside_list(&self) -> usize {
        self.ranges.bytes()
            + self.attached_bytes.load(Ordering::Relaxed)
            + self.filter.get().map_or(0, |filter| filter.bytes())
            + self.list.landmark_bytes()
    }

    /// The bytes of memory taken and in use: about what a flush has to write.
    #[inline]
    pub fn used_bytes(&self) -> usize {
        self.list.used_bytes() + self.ranges.used_bytes()
    }

    /// The bytes from which on a memtable is full that may take `most` bytes ([`Self::is_full`]):
    /// then what is left of its last chunk is little, and another would be more than it may take.
    pub fn full_bytes(most: u64) -> u64 {
        arena::full_bytes(most)
    }

    /// The bytes of the last chunk of a memtable that takes `most` bytes, about.
    pub fn chunk_bytes(most: u64) -> u64 {
        arena::last_chunk_bytes(most)
    }

    /// Whether so many bytes are in use, or a chunk more than `most` is taken, since values left
    /// much of some chunks over. Of range deletes all count that are in memory.
    #[inline]
    pub fn is_full(&self, full_bytes: u64, most: u64) -> bool {
        (self.list.used_bytes() + self.beside_list()) as u64 >= full_bytes
            || self.bytes() as u64 >= most + Self::chunk_bytes(most)
    }

    /// How many operations went in, range deletes included.
    #[inline]
    pub fn count(&self) -> u64 {
        self.list.count() + self.ranges.count()
    }

    /// Whether no operation went in.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The smallest sequence number that went in, or that the log is needed from, if any.
    pub fn first_seq(&self) -> Option<SeqNo> {
        let seq = self.first_seq.load(Ordering::Relaxed);
        (seq != u64::MAX).then_some(seq)
    }

    /// The largest sequence number that went in; 0 if none did.
    #[inline]
    pub fn last_seq(&self) -> SeqNo {
        self.last_seq.load(Ordering::Relaxed)
    }

    /// How many dead entries scans have passed, again and again the same. A scan adds to it when it
    /// has passed some.
    #[inline]
    pub fn dead_passed(&self) -> &AtomicU64 {
        &self.dead_passed
    }

    /// How many of them its tree waits for at least, before it is sealed for that.
    #[inline]
    pub fn dead_waited_for(&self) -> &AtomicU64 {
        &self.dead_waited_for
    }

    /// Keeps `kept` for as long as the memtable: what an entry refers to outside of it. It takes
    /// `memory` bytes, and keeps `outside` bytes of files from being removed.
    pub fn attach<T: Any + Send + Sync>(&self, kept: Arc<T>, memory: usize, outside: u64) {
        self.attached.lock().push(kept);
        let memory = memory + size_of::<Arc<dyn Any + Send + Sync>>();
        self.attached_bytes.fetch_add(memory, Ordering::Relaxed);
        self.outside_bytes.fetch_add(outside, Ordering::Relaxed);
    }

    /// The bytes of files that are kept from being removed by what is attached.
    #[inline]
    pub fn outside_bytes(&self) -> u64 {
        self.outside_bytes.load(Ordering::Relaxed)
    }

    /// What has been attached, of one type.
    pub fn attached<T: Any + Send + Sync>(&self) -> Vec<Arc<T>> {
        let attached = self.attached.lock();
        attached.iter().filter_map(|any| Arc::downcast(Arc::clone(any)).ok()).collect()
    }

    /// A cursor over the entries (not the range deletes). It keeps them in memory, and stays where
    /// it is while inserts go on.
    pub fn cursor(&self) -> MemCursor {
        MemCursor { inner: ListCursor::new(Arc::clone(&self.list)) }
    }
}

impl std::fmt::Debug for Memtable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memtable")
            .field("count", &self.count())
            .field("bytes", &self.bytes())
            .field("first_seq", &self.first_seq())
            .field("last_seq", &self.last_seq())
            .finish_non_exhaustive()
    }
}

/// A cursor over a memtable's entries; see [`Memtable::cursor`]. It never fails.
pub struct MemCursor {
    inner: ListCursor,
}

impl Cursor for MemCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.inner.valid()
    }

    fn seek_first(&mut self) -> Result<()> {
        self.inner.seek_first();
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        self.inner.seek_last();
        Ok(())
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.inner.seek(key, seq);
        Ok(())
    }

    fn seek_back(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.inner.seek_back(key, seq);
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        self.inner.next();
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.inner.prev();
        Ok(())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.inner.key()
    }

    #[inline]
    fn seq(&self) -> SeqNo {
        self.inner.tag().0
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.inner.tag().1
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.inner.value()
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "memtable_tests.rs"]
mod tests;

#[cfg(all(test, feature = "shuttle"))]
#[path = "shuttle_tests.rs"]
mod shuttle_tests;
