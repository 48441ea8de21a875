//! The open snapshots of a database: in shards, since most live for one statement, and many threads
//! begin and end statements at once.

use crate::base::key::SeqNo;
use crate::base::rank;
use crate::base::shards::Shards;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};
use std::sync::OnceLock;

/// Snapshots of the threads of one shard.
#[derive(Debug, Default)]
struct Open {
    /// How many there are at each sequence number, ascending.
    seqs: Vec<(SeqNo, usize)>,
    /// How often something has been kept for open snapshots.
    kept: u64,
}

/// The snapshots of a group of threads, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Shard {
    open: Mutex<Open, { rank::SNAPSHOTS }>,
    /// Called when one has ended that something was kept for.
    freed: OnceLock<Freed>,
}

struct Freed(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Freed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Freed")
    }
}

/// A snapshot's sequence number, and how often something had been kept for snapshots when it was
/// taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub seq: SeqNo,
    kept: u64,
}

impl Shard {
    /// A snapshot of what is visible now.
    pub fn take(&self, visible: &AtomicU64) -> Taken {
        // Under the lock, so that a compaction that starts now either sees this snapshot or works
        // with what was visible before it.
        let mut open = self.open.lock();
        let seq = visible.load(Ordering::Acquire);
        match open.seqs.last_mut() {
            // Later ones have later numbers: so the load orders them.
            Some(last) if last.0 == seq => last.1 += 1,
            last => {
                debug_assert!(
                    last.is_none_or(|last| last.0 < seq),
                    "what is visible never goes back"
                );
                open.seqs.push((seq, 1));
            }
        }
        Taken { seq, kept: open.kept }
    }

    /// As [`Shard::take`], without a trace: for a fork, where whoever held the lock is not here,
    /// and nothing is kept for it.
    pub fn look(visible: &AtomicU64) -> Taken {
        Taken { seq: visible.load(Ordering::Acquire), kept: 0 }
    }

    /// The end of a snapshot.
    pub fn release(&self, taken: Taken) {
        let mut open = self.open.lock();
        let Ok(at) = open.seqs.binary_search_by_key(&taken.seq, |(seq, _)| *seq) else { return };
        debug_assert!(open.seqs[at].1 > 0, "a snapshot ends once");
        open.seqs[at].1 -= 1;
        if open.seqs[at].1 > 0 {
            return;
        }
        open.seqs.remove(at);
        let kept = open.kept;
        drop(open);
        if kept == taken.kept {
            // Nothing was kept for it. Most live for one statement: a look at all trees after
            // each would cost more than the statement.
            return;
        }
        // What was kept for it may go now.
        if let Some(Freed(call)) = self.freed.get() {
            call();
        }
    }
}

/// All open snapshots.
#[derive(Debug)]
pub(crate) struct Snapshots(Shards<Arc<Shard>>);

impl Snapshots {
    pub fn new() -> Snapshots {
        Snapshots(Shards::new(Arc::default))
    }

    /// To be called once: `freed` is called, without a mutex held, when a snapshot has ended for
    /// which something was kept that may go now.
    pub fn on_freed(&self, freed: impl Fn() + Clone + Send + Sync + 'static) {
        for shard in self.0.iter() {
            let _ = shard.freed.set(Freed(Box::new(freed.clone())));
        }
    }

    /// The calling thread's shard, and its index.
    pub fn own(&self) -> (usize, &Arc<Shard>) {
        self.0.local()
    }

    /// Whether this is the shard with that index.
    pub fn is_at(&self, index: usize, shard: &Arc<Shard>) -> bool {
        Arc::ptr_eq(self.0.at(index), shard)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        let count = |shard: &Arc<Shard>| -> usize {
            shard.open.lock().seqs.iter().map(|(_, count)| *count).sum()
        };
        self.0.iter().map(count).sum()
    }

    /// The sequence numbers of all, ascending, and the newest visible one: who takes a snapshot
    /// from now on is at that one or later. With `keep`, something is kept for those that are open
    /// now.
    pub fn seqs(&self, visible: &AtomicU64, keep: bool) -> Vec<SeqNo> {
        // First: who takes one after its shard was looked at sees this or more.
        self.seqs_up_to(visible.load(Ordering::Acquire), keep)
    }

    fn seqs_up_to(&self, newest: SeqNo, keep: bool) -> Vec<SeqNo> {
        let mut seqs = Vec::new();
        for shard in self.0.iter() {
            let mut open = shard.open.lock();
            open.kept += u64::from(keep);
            seqs.extend(open.seqs.iter().map(|(seq, _)| *seq).filter(|&seq| seq < newest));
        }
        seqs.sort_unstable();
        seqs.dedup();
        seqs.push(newest);
        debug_assert!(seqs.is_sorted_by(|a, b| a < b));
        seqs
    }

    /// Something is kept for those that were seen by [`Snapshots::seqs`]. False if one of them has
    /// ended meanwhile: then look again, nobody was called.
    pub fn keep_for(&self, seen: &[SeqNo]) -> bool {
        self.seqs_up_to(seen.last().copied().unwrap_or(0), true) == seen
    }
}
