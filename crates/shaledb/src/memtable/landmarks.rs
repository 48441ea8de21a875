//! Where searches of a large list begin: one node in eight with the first bytes of its key, packed.
//!
//! A search from the top waits for memory at each node that it comes to, two dozen times; where
//! keys begin alike (an index of SQL begins with columns that many rows share) the heads of links
//! decide nothing, and each of these nodes is compared with. Landmarks are in one sorted array, of
//! which a binary search finds all but the last steps in the processor's cache. What is left are a
//! few steps on the lowest levels. They keep [`WORDS`] words of each key, from where all keys begin
//! to differ.
//!
//! They are made while others read and insert: each search of a list that has none, or outgrown
//! ones, goes on with the work for a few nodes. Once whole they are never changed. A node may be
//! missing, such as one that came later: who begins at a landmark sees by the list itself whether
//! it is near.
//!
//! An insert may begin at one as well, by the rule of the hints (see [`super::skiplist`]): nodes
//! behind a link whose head was still too high are left out until keys have passed that head.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::sync::OnceLock;

use super::hints::HINT_HEIGHT;
use super::node::{Node, Target, link, node_key};
use crate::base::key;
use crate::base::prefetch;
use crate::base::rank;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A list of so many levels is worth landmarks (a smaller one is cached). Tests have them early.
pub(super) const MARKED_FROM: usize = if cfg!(test) { 4 } else { 10 };

/// How many steps on its level a landmark, or a hint, may be away. More tell that many nodes came
/// since, or that many keys share a head.
pub(super) const NEAR: usize = 4;

/// Of a key are kept so many words, behind what all keys have in common.
const WORDS: usize = 3;

/// With how many nodes a search goes on with the work: about half a microsecond.
const WITH_SEARCH: usize = if cfg!(test) { 2 } else { 8 };

/// New ones are made once there are so many times as many entries: as a fraction.
const GROWTH: (u64, u64) = (3, 2);

/// More generations than a list of 2^26 entries gets.
const GENERATIONS: usize = 32;

#[derive(Clone, Copy)]
struct Mark {
    words: [u64; WORDS],
    node: *const Node,
}

/// All that were made at one time, in the order of the list.
struct Marks {
    /// What all of their keys begin with.
    prefix: Box<[u8]>,
    marks: Box<[Mark]>,
}

/// A list, as far as its landmarks go by it.
pub(super) struct Extent {
    /// Its head, and its last node, or the head.
    pub(super) head: *const Node,
    pub(super) last: *const Node,
    /// How many entries it has.
    pub(super) entries: u64,
}

/// How far the work on the next ones is.
struct Builder {
    prefix: Box<[u8]>,
    marks: Vec<Mark>,
    at: *const Node,
    /// The greatest head on the way to `at`.
    passed: u64,
    /// How many entries there were when it began.
    entries: u64,
}

/// The landmarks of a list. Outgrown ones stay until the list is freed, for readers take no lock:
/// all together are three times the last ones.
pub(super) struct Landmarks {
    generations: [OnceLock<Marks>; GENERATIONS],
    /// How many of these are set.
    made: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether the next ones are being made.
    is_due: AtomicBool,
    /// When the last ones were begun: how many entries there were.
    entries: AtomicU64,
    builder: Mutex<Option<Builder>, { rank::MEMTABLE_FILTER }>,
}

// SAFETY: the nodes are of the list that owns the landmarks, which may be used by any thread; they
// are compared with under its rules.
unsafe impl Send for Landmarks {}
// SAFETY: as above.
unsafe impl Sync for Landmarks {}

impl Landmarks {
    /// None yet; they are to be made.
    pub(super) fn new() -> Box<Landmarks> {
        Box::new(Landmarks {
            generations: [const { OnceLock::new() }; GENERATIONS],
            made: AtomicUsize::new(0),
            bytes: AtomicUsize::new(size_of::<Landmarks>()),
            is_due: AtomicBool::new(true),
            entries: AtomicU64::new(0),
            builder: Mutex::new(None),
        })
    }

    /// The memory that they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The last one before the target, or the head of the list; `None` if there are none.
    ///
    /// # Safety
    /// They are of a list that lives, and so does each node of theirs.
    #[inline]
    pub(super) unsafe fn before(
        &self,
        target: &Target<'_>,
        head: *const Node,
    ) -> Option<*const Node> {
        let marks = self.newest()?;
        // SAFETY: by the caller.
        let before = unsafe { marks.up_to(target) }.checked_sub(1);
        Some(before.map_or(head, |last| marks.marks[last].node))
    }

    /// How many there are from one target up to another one, or the end.
    ///
    /// # Safety
    /// As for [`Landmarks::before`].
    pub(super) unsafe fn between(&self, lower: &Target<'_>, upper: Option<Target<'_>>) -> usize {
        let Some(marks) = self.newest() else { return 0 };
        // SAFETY: by the caller.
        let up_to = |target: &Target<'_>| unsafe { marks.up_to(target) };
        upper.as_ref().map_or(marks.marks.len(), up_to).saturating_sub(up_to(lower))
    }

    #[inline]
    fn newest(&self) -> Option<&Marks> {
        let newest = self.made.load(Ordering::Acquire).checked_sub(1)?;
        self.generations[newest].get()
    }

    /// Whether there is work on the next ones.
    #[inline]
    pub(super) fn are_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    /// Notes that one was far from a target, in a list of so many entries.
    #[cold]
    pub(super) fn was_far(&self, entries: u64) {
        let outgrown = self.entries.load(Ordering::Relaxed) / GROWTH.1 * GROWTH.0;
        if entries >= outgrown && self.made.load(Ordering::Relaxed) < GENERATIONS {
            self.is_due.store(true, Ordering::Relaxed);
        }
    }

    /// Goes on with the next ones, unless another thread does.
    ///
    /// # Safety
    /// The extent is that of the list that has these landmarks.
    #[cold]
    pub(super) unsafe fn build_more(&self, list: impl FnOnce() -> Extent) {
        let Some(mut builder) = self.builder.try_lock() else { return };
        if !self.are_due() {
            return;
        }
        // SAFETY: by the caller.
        let begun = builder.get_or_insert_with(|| unsafe { Builder::new(&list()) });
        if !begun.build_more(WITH_SEARCH) {
            return;
        }
        let Some(Builder { prefix, marks, entries, .. }) = builder.take() else { return };
        self.entries.store(entries, Ordering::Relaxed);
        self.is_due.store(false, Ordering::Relaxed);
        let marks = Marks { prefix, marks: marks.into_boxed_slice() };
        let bytes = marks.prefix.len() + size_of_val(&*marks.marks);
        let made = self.made.load(Ordering::Relaxed);
        if self.generations.get(made).is_some_and(|next| next.set(marks).is_ok()) {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.made.store(made + 1, Ordering::Release);
        }
    }
}

impl Marks {
    /// How many are before the target.
    ///
    /// # Safety
    /// As for [`Landmarks::before`].
    #[inline]
    unsafe fn up_to(&self, target: &Target<'_>) -> usize {
        let words = match target.key.strip_prefix(&*self.prefix) {
            Some(rest) => words_of(rest),
            None if *target.key < *self.prefix => return 0,
            None => return self.marks.len(),
        };
        self.marks.partition_point(|mark| match mark.words.cmp(&words) {
            Less => true,
            Greater => false,
            // SAFETY: by the caller.
            Equal => unsafe { target.is_after(mark.node) },
        })
    }
}

impl Builder {
    /// # Safety
    /// The extent is that of a list that lives.
    unsafe fn new(list: &Extent) -> Builder {
        let Extent { head: at, last, entries } = *list;
        // SAFETY: the head has links on all levels; what is not null, nor the head, is a node.
        let prefix = unsafe {
            let first = link(at, HINT_HEIGHT - 1).next.load(Ordering::Acquire).cast_const();
            match first.is_null() || last == at {
                true => &[],
                false => {
                    let (first, last) = (node_key(first), node_key(last));
                    &first[..key::common_prefix(first, last)]
                }
            }
        };
        // One in eight has so many links, about; it takes no second place if there are more.
        let marks = Vec::with_capacity(entries as usize / 8 + entries as usize / 64);
        Builder { prefix: prefix.into(), marks, at, passed: 0, entries }
    }

    /// Adds so many more nodes; answers whether these were all.
    fn build_more(&mut self, count: usize) -> bool {
        for _ in 0..count {
            // SAFETY: `at` is the head or a node that was found on this level.
            let way = unsafe { link(self.at, HINT_HEIGHT - 1) };
            // The head first: it is never less than that of the next node found after it.
            let head = way.head.load(Ordering::Acquire);
            let next = way.next.load(Ordering::Acquire).cast_const();
            if next.is_null() {
                return true;
            }
            // SAFETY: a next node on this level has a link on it.
            let key = unsafe {
                prefetch::line(link(next, HINT_HEIGHT - 1).next.load(Ordering::Acquire));
                node_key(next)
            };
            self.passed = self.passed.max(head);
            // Keys that came later may begin otherwise: those before the others, or behind them.
            match key.strip_prefix(&*self.prefix) {
                Some(rest) if self.passed == key::head(key) => {
                    self.marks.push(Mark { words: words_of(rest), node: next });
                }
                None if *key > *self.prefix => return true,
                _ => {}
            }
            self.at = next;
        }
        false
    }
}

/// The first words of a key, as big-endian numbers, zero-padded: for distinct ones, their order is
/// that of the keys.
#[inline]
fn words_of(key: &[u8]) -> [u64; WORDS] {
    if let Some(first) = key.first_chunk::<{ 8 * WORDS }>() {
        std::array::from_fn(|word| key::head(&first[8 * word..]))
    } else {
        std::array::from_fn(|word| key::head(key.get(8 * word..).unwrap_or_default()))
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "landmarks_tests.rs"]
mod tests;
