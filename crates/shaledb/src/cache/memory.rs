//! Divides one memory budget: memtables, table metadata and work under way take what they need, and
//! the cache has the rest.
//!
//! Work under way is what a flush, a merge or a long scan holds meanwhile: the windows in which it
//! reads, what it is about to write, the working memory of codecs. Each has a [`Lease`] of it.
//!
//! Invariant: the cache's capacity follows total - memtables - metadata - work to within a
//! hundredth of the total or 16 MiB, whichever is less, and half a step of the cache (`steps`:
//! 16 KB for each of its shards). Its due never falls below a sixteenth of the total.

use super::cache::{Cache, Weigh};
use crate::base::rank;
use crate::base::sync::Mutex;
use crate::fs::process::{Process, process};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The least share of the total that the cache keeps: one in this many.
const CACHE_SHARE_MIN: u64 = 16;
/// The cache is resized only if its due has moved by this share of the total: one in this many.
const RESIZE_SHARE: u64 = 100;
/// Or by so many bytes: who makes the cache smaller, a commit perhaps, frees its blocks, a thousand
/// of 16 KiB at most, in a cache of any size.
const RESIZE_BYTES: u64 = 16 << 20;

/// Lets [`Memory`] resize a cache of any kind of value.
trait Resize: Send + Sync {
    fn resize(&self, bytes: u64);
}

impl<V: Weigh + Send + Sync> Resize for Cache<V> {
    fn resize(&self, bytes: u64) {
        self.set_capacity(bytes);
    }
}

/// The arbiter of a database's memory. Thread-safe.
pub struct Memory {
    total: u64,
    memtables: AtomicU64,
    meta: AtomicU64,
    work: AtomicU64,
    /// The cache's capacity, to look at without the lock.
    applied: AtomicU64,
    cache: Mutex<Arc<dyn Resize>, { rank::CACHE }>,
    /// A fork changes nothing: a thread that is not there may have held the lock.
    process: Process,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory")
            .field("total", &self.total)
            .field("memtables", &self.memtables())
            .field("meta", &self.meta())
            .field("work", &self.work())
            .finish()
    }
}

impl Memory {
    /// Divides `total` bytes; gives all of them to `cache` to begin with.
    pub fn new<V: Weigh + Send + Sync + 'static>(total: u64, cache: Arc<Cache<V>>) -> Memory {
        cache.set_capacity(total);
        Memory {
            total,
            memtables: AtomicU64::new(0),
            meta: AtomicU64::new(0),
            work: AtomicU64::new(0),
            applied: AtomicU64::new(total),
            cache: Mutex::new(cache),
            process: process(),
        }
    }

    /// The whole budget, in bytes.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of all memtables.
    pub fn memtables(&self) -> u64 {
        self.memtables.load(Relaxed)
    }

    /// Bytes of all loaded indexes, filters and range deletes of tables.
    pub fn meta(&self) -> u64 {
        self.meta.load(Relaxed)
    }

    /// Bytes of all leases: what work under way holds.
    pub fn work(&self) -> u64 {
        self.work.load(Relaxed)
    }

    /// What the cache is due.
    pub fn cache_due(&self) -> u64 {
        let taken = self.memtables().saturating_add(self.meta()).saturating_add(self.work());
        self.total.saturating_sub(taken).max(self.total / CACHE_SHARE_MIN)
    }

    /// States how many bytes all memtables take now.
    pub fn set_memtables(&self, bytes: u64) {
        self.memtables.store(bytes, Relaxed);
        self.adjust();
    }

    /// Adds to (or takes from) the bytes of table metadata.
    pub fn add_meta(&self, delta: i64) {
        // Every taking follows its adding, so the sum stays at or above zero.
        let before = self.meta.fetch_add(delta as u64, Relaxed);
        debug_assert!(before.checked_add_signed(delta).is_some(), "less than nothing is taken");
        self.adjust();
    }

    fn add_work(&self, delta: i64) {
        // As of `meta`: what a lease gives back it has taken before.
        let before = self.work.fetch_add(delta as u64, Relaxed);
        debug_assert!(before.checked_add_signed(delta).is_some(), "less than nothing is taken");
        self.adjust();
    }

    /// Resizes the cache if its due has moved far enough to be worth the locks.
    fn adjust(&self) {
        let step = (self.total / RESIZE_SHARE).min(RESIZE_BYTES);
        let moved = |due: u64| due.abs_diff(self.applied.load(Relaxed)) >= step;
        if !moved(self.cache_due()) || !self.process.is_this() {
            return;
        }
        // Looked at again under the lock, so that the last resize is by the latest numbers.
        let cache = self.cache.lock();
        let due = self.cache_due();
        assert!((self.total / CACHE_SHARE_MIN..=self.total).contains(&due), "the cache's share");
        if moved(due) {
            cache.resize(due);
            self.applied.store(due, Relaxed);
        }
    }
}

/// What one piece of work holds of a budget, until it is dropped. Nothing is refused: the cache
/// makes room.
#[derive(Debug, Default)]
pub struct Lease {
    memory: Option<Arc<Memory>>,
    bytes: AtomicU64,
}

impl Lease {
    /// Of nothing, so far.
    pub fn of(memory: &Arc<Memory>) -> Lease {
        Lease { memory: Some(Arc::clone(memory)), bytes: AtomicU64::new(0) }
    }

    /// Whether it is of a budget.
    pub fn is_of_any(&self) -> bool {
        self.memory.is_some()
    }

    /// States how many bytes the work holds now.
    pub fn set(&self, bytes: usize) {
        let Some(memory) = &self.memory else { return };
        if self.bytes.load(Relaxed) != bytes as u64 {
            let before = self.bytes.swap(bytes as u64, Relaxed);
            memory.add_work(bytes as i64 - before as i64);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.set(0);
    }
}
