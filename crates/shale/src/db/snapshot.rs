//! Snapshots: a place in the commit order at which reads can be repeated.

use super::core::Core;
use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;

/// A view of all trees of a database as of one moment. Versions of keys that it can see are kept
/// until its last clone is dropped; long-lived snapshots cost space. Reads at it end with
/// [`Db::close`](crate::Db::close).
///
/// ```
/// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
/// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// tree.put(b"a", b"1")?;
/// let snapshot = db.snapshot();
/// tree.put(b"a", b"2")?;
/// assert_eq!(tree.get_at(b"a", &snapshot)?.unwrap(), b"1");
///
/// let options = shale::ScanOptions { snapshot: Some(&snapshot), ..Default::default() };
/// let values: Vec<_> = tree.scan_with(options)?.map(|row| row.unwrap().1).collect();
/// assert_eq!(values, [b"1"]);
/// # Ok::<(), shale::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot(Arc<Held>);

struct Held {
    core: Arc<Core>,
    seq: SeqNo,
    /// [`Core::held_back`] when it was taken.
    held_back: u64,
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
        let held_back = core.held_back.load(Ordering::Relaxed);
        drop(held);
        Snapshot(Arc::new(Held { core: core.clone(), seq, held_back }))
    }

    /// Its place in the commit order: it sees every operation up to this one.
    ///
    /// ```
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let before = db.snapshot();
    /// tree.put(b"a", b"1")?;
    /// assert!(db.snapshot().seq() > before.seq());
    /// # Ok::<(), shale::Error>(())
    /// ```
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
        let held_back = self.core.held_back.load(Ordering::Relaxed);
        drop(held);
        if held_back == self.held_back {
            // It has held nothing back. Most live for one statement: a look at all trees after
            // each would cost more than the statement.
            return;
        }
        // What it held back may now be dropped.
        self.core.sched.want_looks(self.core.trees.load().by_id.keys().copied());
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "snapshot_tests.rs"]
mod tests;
