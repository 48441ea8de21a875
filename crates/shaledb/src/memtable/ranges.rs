//! The range deletes of a memtable: added one by one, searched without a lock.
//!
//! They are kept as a few sets, each at least twice as large as the next, so that adding n of them
//! costs O(n log n) in all and a search looks into O(log n) sets. Asking for all of them as one set
//! merges the sets for good.

use arc_swap::ArcSwap;
use std::sync::OnceLock;

use crate::base::key::SeqNo;
use crate::base::ranges::{RangeDelete, RangeDeletes};
use crate::base::rank;
use crate::base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::base::sync::{Arc, Mutex};

/// What a range delete takes in a table, about, besides its keys.
const OVERHEAD_BYTES: usize = size_of::<RangeDelete>() + size_of::<SeqNo>();

/// Some of the range deletes.
#[derive(Clone)]
struct Tier {
    /// How many deletes went in.
    count: u64,
    /// What the set takes. Deletes of several commits that lie in each other take the square of
    /// their number, since each fragment has all that cover it.
    bytes: usize,
    set: Arc<RangeDeletes>,
}

impl Tier {
    fn new(count: u64, set: RangeDeletes) -> Tier {
        Tier { count, bytes: set.memory_bytes(), set: Arc::new(set) }
    }
}

/// A growing set of range deletes.
pub(super) struct RangeLog {
    count: AtomicU64,
    bytes: AtomicUsize,
    used_bytes: AtomicUsize,
    /// The last `unseen` of [`RangeLog::add`]: what came from there on becomes visible at once.
    unseen: AtomicU64,
    /// Held while `tiers` is replaced.
    writer: Mutex<(), { rank::RANGE_DELETES }>,
    /// The largest first. Under `arc_swap` rather than a lock, since reads of keys come here. Made
    /// when the first comes: each transaction has memtables, and dropping one of these is not free.
    tiers: OnceLock<ArcSwap<Vec<Tier>>>,
}

impl RangeLog {
    /// No range deletes.
    pub(super) fn new() -> RangeLog {
        RangeLog {
            count: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            used_bytes: AtomicUsize::new(0),
            unseen: AtomicU64::new(SeqNo::MAX),
            writer: Mutex::new(()),
            tiers: OnceLock::new(),
        }
    }

    /// How many went in.
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// About how many bytes of memory they take.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// About how many bytes a flush writes of them at most, where no reader needs the older ones.
    #[inline]
    pub(super) fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Adds one. Reads are at numbers before `unseen` until all of the commit is in, so of the
    /// deletes from there on only the newest of each range is kept: many in one commit that lie in
    /// each other take what they need.
    pub(super) fn add(&self, start: &[u8], end: &[u8], seq: SeqNo, unseen: SeqNo) {
        let delete = RangeDelete { start: start.to_vec(), end: end.to_vec(), seq };
        let set = RangeDeletes::new([delete]);
        let _writer = self.writer.lock();
        self.unseen.store(unseen, Ordering::Relaxed);
        let cell = self.tiers.get_or_init(ArcSwap::default);
        let mut tiers = Vec::clone(&cell.load());
        tiers.push(Tier::new(1, set));
        while let [.., large, small] = tiers.as_slice()
            && large.count < 2 * small.count
        {
            let set = RangeDeletes::union([&*large.set, &*small.set]).newest_from(unseen);
            let merged = Tier::new(large.count + small.count, set);
            tiers.truncate(tiers.len() - 2);
            tiers.push(merged);
        }
        self.bytes.store(tiers.iter().map(|tier| tier.bytes).sum(), Ordering::Relaxed);
        cell.store(Arc::new(tiers));
        self.used_bytes.fetch_add(start.len() + end.len() + OVERHEAD_BYTES, Ordering::Relaxed);
        // Last, so that who sees the count finds the delete.
        self.count.fetch_add(1, Ordering::Release);
    }

    /// The newest at or before `seq` that covers `key`, or 0.
    pub(super) fn newest_covering(&self, key: &[u8], seq: SeqNo) -> SeqNo {
        let Some(tiers) = self.tiers.get() else { return 0 };
        let tiers = tiers.load();
        tiers.iter().map(|tier| tier.set.newest_covering(key, seq)).max().unwrap_or(0)
    }

    /// All of them as one set.
    pub(super) fn all(&self) -> Arc<RangeDeletes> {
        let Some(cell) = self.tiers.get() else { return Arc::default() };
        if let [only] = cell.load().as_slice() {
            return Arc::clone(&only.set);
        }
        // A read waits for nobody: in a fork whoever adds one may not be there.
        let writer = self.writer.try_lock();
        let tiers = cell.load();
        match tiers.as_slice() {
            [] => Arc::default(),
            [only] => Arc::clone(&only.set),
            many if writer.is_none() => {
                Arc::new(RangeDeletes::union(many.iter().map(|tier| &*tier.set)))
            }
            many => {
                // Also after they are visible: no read is between two of one commit.
                let unseen = self.unseen.load(Ordering::Relaxed);
                let set = RangeDeletes::union(many.iter().map(|tier| &*tier.set));
                let set = set.newest_from(unseen);
                let only = Tier::new(many.iter().map(|tier| tier.count).sum(), set);
                let set = Arc::clone(&only.set);
                self.bytes.store(only.bytes, Ordering::Relaxed);
                cell.store(Arc::new(vec![only]));
                set
            }
        }
    }
}
