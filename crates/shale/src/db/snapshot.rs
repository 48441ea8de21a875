//! Snapshots: a place in the commit order at which reads can be repeated.

use super::core::Core;
use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;

/// A view of all trees of a database as of one moment. Versions of keys that it can see are kept
/// until its last clone is dropped; long-lived snapshots cost space.
#[derive(Clone)]
pub struct Snapshot(Arc<Held>);

struct Held {
    core: Arc<Core>,
    seq: SeqNo,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot({})", self.0.seq)
    }
}

impl Snapshot {
    pub(crate) fn take(core: &Arc<Core>) -> Snapshot {
        // Under the lock, so that a compaction that starts now either sees this snapshot or works
        // with what was visible before it.
        let mut held = core.snapshots.lock();
        let seq = core.visible.load(Ordering::Acquire);
        *held.entry(seq).or_insert(0) += 1;
        drop(held);
        Snapshot(Arc::new(Held { core: core.clone(), seq }))
    }

    /// Its place in the commit order: it sees every operation up to this one.
    pub fn seq(&self) -> SeqNo {
        self.0.seq
    }

    /// Whether it was taken of this database.
    pub(crate) fn is_of(&self, core: &Arc<Core>) -> bool {
        Arc::ptr_eq(&self.0.core, core)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.core.snapshots.lock();
        if let Some(count) = held.get_mut(&self.seq) {
            *count -= 1;
            if *count > 0 {
                return;
            }
            held.remove(&self.seq);
        }
        drop(held);
        // What it held back may now be dropped.
        self.core.sched.want_looks(self.core.trees.load().by_id.keys().copied());
    }
}
