//! Which keys a memtable surely does not have: a Bloom filter whose every look-up touches one word.
//!
//! A search of a large list is a chain of a dozen cache misses, and most look-ups find nothing: the
//! row is in a table, or an insert asks whether its key is new. So a memtable that is searched in
//! vain gets a filter, and one that is only written to does not.
//!
//! It begins while others read, between two groups of commits. From then on every insert adds its
//! key. What was there before is added in small pieces by who writes and by who searches in vain,
//! so that nobody waits for all of it; it excludes nothing until it has all.

use super::list_cursor::ListCursor;
use super::skiplist::SkipList;
use crate::base::coding;
use crate::base::rank;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};

/// A list of fewer levels is cached. Tests have filters early.
const HEIGHT_MIN: usize = if cfg!(test) { 5 } else { 10 };

/// So many searches in vain are worth a filter, or one for so many entries, if that is more: an
/// insert of 1 us costs a fiftieth more with it, a search in vain a tenth.
const MISSES_MIN: u64 = 1 << HEIGHT_MIN;
const ENTRIES_A_MISS: u64 = 16;

/// One search in vain of so many is counted, for all: readers seldom write to what they share.
const COUNTED: u64 = 8;

/// How many older entries are added with an insert, and with a search that is counted. It takes a
/// microsecond, or a few.
const WITH_INSERT: usize = if cfg!(test) { 2 } else { 16 };
const WITH_SEARCH: usize = if cfg!(test) { 8 } else { 64 };

/// With four bits of one word for each key, about one in 100 keys that are not there seems to be.
const BITS_A_KEY: u64 = 12;
const PROBES: u32 = 4;

/// The most words: 32 MiB, for 22 million entries.
const WORDS_MAX: u64 = 4 << 20;

/// Spreads a hash over the bits of a word: 2^64 divided by the golden ratio, which is odd.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The filter of a memtable.
pub(super) struct Filter {
    words: Box<[AtomicU64]>,
    /// Whether all entries are in it.
    is_whole: AtomicBool,
    /// At the next of the entries that are still to be added; `None` once there is none.
    filled: Mutex<Option<ListCursor>, { rank::MEMTABLE_FILTER }>,
}

impl Filter {
    /// A filter for about so many entries, which has none yet. No insert into the list is under
    /// way, and each one from now on is told of first ([`Filter::note_insert`]).
    pub(super) fn begin(list: &Arc<SkipList>, entries: u64) -> Filter {
        let words = (entries.saturating_mul(BITS_A_KEY) / 64).clamp(1, WORDS_MAX);
        let mut first = ListCursor::new(Arc::clone(list));
        first.seek_first();
        Filter {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            is_whole: AtomicBool::new(!first.valid()),
            filled: Mutex::new(first.valid().then_some(first)),
        }
    }

    /// The memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Filter>() + size_of_val(&*self.words)
    }

    /// Adds the key of an insert that begins.
    #[inline]
    pub(super) fn note_insert(&self, key: &[u8]) {
        self.add(key);
        if !self.is_whole.load(Ordering::Relaxed) {
            self.fill(WITH_INSERT);
        }
    }

    /// Goes on with what is still to be done, if a search in vain was counted.
    #[cold]
    pub(super) fn note_miss(&self, misses: &Misses, list: &SkipList, key: &[u8]) {
        if !self.is_whole.load(Ordering::Relaxed) && misses.count(list, key) {
            self.fill(WITH_SEARCH);
        }
    }

    #[inline]
    fn add(&self, key: &[u8]) {
        let (word, bits) = self.place(key);
        word.fetch_or(bits, Ordering::Relaxed);
    }

    /// Whether surely no entry of the key was inserted before.
    #[inline]
    pub(super) fn excludes(&self, key: &[u8]) -> bool {
        if !self.is_whole.load(Ordering::Acquire) {
            return false;
        }
        let (word, bits) = self.place(key);
        word.load(Ordering::Relaxed) & bits != bits
    }

    #[inline]
    fn place(&self, key: &[u8]) -> (&AtomicU64, u64) {
        let hash = coding::hash(key);
        let index = (u128::from(hash) * self.words.len() as u128 >> 64) as usize;
        let spread = hash.wrapping_mul(SPREAD);
        let bits = (0..PROBES).fold(0, |bits, probe| bits | 1 << (spread >> (58 - 6 * probe) & 63));
        // It is below the number of words, as that is multiplied by less than one.
        (&self.words[index], bits)
    }

    /// Adds so many of the entries that are still to be added, unless another thread does.
    #[cold]
    fn fill(&self, count: usize) {
        let Some(mut filled) = self.filled.try_lock() else { return };
        let Some(at) = filled.as_mut() else { return };
        for _ in 0..count {
            self.add(at.key());
            at.next();
            if !at.valid() {
                *filled = None;
                self.is_whole.store(true, Ordering::Release);
                return;
            }
        }
    }
}

/// How often a list was searched in vain.
#[derive(Default)]
pub(super) struct Misses(AtomicU64);

impl Misses {
    /// Counts a search for the key, or others in its place. Answers whether it was counted.
    #[inline]
    pub(super) fn count(&self, list: &SkipList, key: &[u8]) -> bool {
        let counts = list.height() >= HEIGHT_MIN && coding::hash(key) % COUNTED == 0;
        if counts {
            self.0.fetch_add(COUNTED, Ordering::Relaxed);
        }
        counts
    }

    /// Whether they are worth a filter.
    #[inline]
    pub(super) fn want_filter(&self, list: &SkipList) -> bool {
        let misses = self.0.load(Ordering::Relaxed);
        misses >= MISSES_MIN && misses >= list.count() / ENTRIES_A_MISS
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "filter_tests.rs"]
mod tests;
