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
use crate::base::prefetch;
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

/// Of how many entries the words are asked for together: setting bits waits for its cache miss.
const TOGETHER: usize = 16;

/// More entries may come than the first ones let expect, which are as large as this at most.
const ENTRY_BYTES_MAX: u64 = 256;

/// With four bits of one word for each key, about one in 100 keys that are not there seems to be.
const BITS_A_KEY: u64 = 12;
const PROBES: u32 = 4;

/// The most words: 32 MiB, for 22 million entries.
const WORDS_MAX: u64 = 4 << 20;

/// Spreads a hash over the bits of a word: 2^64 divided by the golden ratio, which is odd.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Some of the bits of a filter: all of those that a key has are in one word.
struct Word(AtomicU64);

/// How often a list was searched in vain.
#[derive(Default)]
pub(super) struct Misses(AtomicU64);

/// The filter of a memtable.
pub(super) struct Filter {
    words: Box<[Word]>,
    /// Whether all entries are in it.
    is_whole: AtomicBool,
    /// At the next of the entries that are still to be added; `None` once there is none.
    filled: Mutex<Option<ListCursor>, { rank::MEMTABLE_FILTER }>,
}

impl Filter {
    /// A filter of the list, which has none of its entries yet, for as many as there may be when
    /// `full_bytes` are in use. No insert is under way, and each one from now on is told of first
    /// ([`Filter::note_insert`]).
    pub(super) fn begin(list: &Arc<SkipList>, full_bytes: u64) -> Filter {
        let entries = list.count().max(1);
        let each = (list.used_bytes() as u64 / entries).clamp(1, ENTRY_BYTES_MAX);
        let most = entries.max(full_bytes / each);
        let words = (most.saturating_mul(BITS_A_KEY) / 64).clamp(1, WORDS_MAX);
        let mut first = ListCursor::new(Arc::clone(list));
        first.seek_first();
        Filter {
            words: (0..words).map(|_| Word(AtomicU64::new(0))).collect(),
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
        let (word, bits) = self.place(coding::hash(key));
        word.add(bits);
        if !self.is_whole.load(Ordering::Relaxed) {
            self.fill(WITH_INSERT);
        }
    }

    /// Goes on with what is still to be done, with some of the searches in vain.
    #[inline]
    pub(super) fn note_miss(&self, hash: u64) {
        if !self.is_whole.load(Ordering::Relaxed) && hash.is_multiple_of(COUNTED) {
            self.fill(WITH_SEARCH);
        }
    }

    /// Whether surely no entry of the key with this hash was inserted before.
    #[inline]
    pub(super) fn excludes(&self, hash: u64) -> bool {
        if !self.is_whole.load(Ordering::Acquire) {
            return false;
        }
        let (word, bits) = self.place(hash);
        word.0.load(Ordering::Relaxed) & bits != bits
    }

    #[inline]
    fn place(&self, hash: u64) -> (&Word, u64) {
        let spread = hash.wrapping_mul(SPREAD);
        let bits =
            (0..PROBES).fold(0, |bits, probe| bits | 1 << ((spread >> (58 - 6 * probe)) & 63));
        (&self.words[coding::place_of(hash, self.words.len())], bits)
    }

    /// Adds so many of the entries that are still to be added, unless another thread does.
    #[cold]
    fn fill(&self, count: usize) {
        let Some(mut filled) = self.filled.try_lock() else { return };
        let Some(at) = filled.as_mut() else { return };
        for _ in 0..count.div_ceil(TOGETHER) {
            let mut places = [(&self.words[0], 0); TOGETHER];
            for place in &mut places[..count.min(TOGETHER)] {
                if !at.valid() {
                    break;
                }
                *place = self.place(coding::hash(at.key()));
                prefetch::line(place.0);
                at.next();
            }
            places.iter().for_each(|(word, bits)| word.add(*bits));
            if !at.valid() {
                *filled = None;
                self.is_whole.store(true, Ordering::Release);
                return;
            }
        }
    }
}

impl Word {
    #[inline]
    fn add(&self, bits: u64) {
        // A load first: a key that is written again and again has its bits.
        if self.0.load(Ordering::Relaxed) & bits != bits {
            self.0.fetch_or(bits, Ordering::Relaxed);
        }
    }
}

impl Misses {
    /// Counts a search for the key with this hash, or others in its place. Answers whether there
    /// are so many by now that a filter is worth it.
    #[inline]
    pub(super) fn count(&self, list: &SkipList, hash: u64) -> bool {
        if !hash.is_multiple_of(COUNTED) {
            return false;
        }
        let misses = self.0.fetch_add(COUNTED, Ordering::Relaxed) + COUNTED;
        misses >= MISSES_MIN && misses >= list.count() / ENTRIES_A_MISS
    }

    /// Whether searches of the list take long enough to be counted.
    #[inline]
    pub(super) fn matter(list: &SkipList) -> bool {
        list.height() >= HEIGHT_MIN
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "filter_tests.rs"]
mod tests;
