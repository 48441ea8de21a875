//! Snapshots: a position in the commit order at which reads can be repeated.

use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::db::core::{Core, FollowedView, Shard, Taken};
use crate::fs::process::Process;
use crate::state::TreeState;
use crate::version::TreeId;

/// A view of all trees of a database as of one sequence number. Versions of keys that it can see
/// are kept until its last clone is dropped, so a long-lived snapshot costs space. Reads at it end
/// with [`Db::close`](crate::Db::close).
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// tree.put(b"a", b"1")?;
/// let snapshot = db.snapshot();
/// tree.put(b"a", b"2")?;
/// assert_eq!(tree.get_at(b"a", &snapshot)?.unwrap(), b"1");
///
/// let options = shaledb::ScanOptions { snapshot: Some(&snapshot), ..Default::default() };
/// let values: Vec<_> = tree.scan_with(options)?.map(|row| row.unwrap().1).collect();
/// assert_eq!(values, [b"1"]);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot(Arc<Shared>);

struct Shared {
    shard: Arc<Shard>,
    /// Of the shard.
    shard_at: usize,
    taken: Taken,
    process: Process,
    /// What it sees of a database that is followed.
    view: Option<Arc<FollowedView>>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot({})", self.seq())
    }
}

impl Snapshot {
    pub(crate) fn take(core: &Arc<Core>) -> Snapshot {
        let (shard_at, shard) = core.snapshots.own();
        let taken = match core.guard.is_foreign() {
            true => Shard::look(&core.visible),
            false => shard.take(&core.visible),
        };
        debug_assert!(taken.seq <= core.visible.load(Ordering::Acquire), "it sees what is visible");
        let view = core.followed.as_ref().map(|view| view.load_full());
        let (shard, process) = (shard.clone(), core.guard.process());
        Snapshot(Arc::new(Shared { shard, shard_at, taken, process, view }))
    }

    /// What it sees of a tree, if the database is followed; nothing if it was not there then.
    pub(crate) fn state(&self, tree: TreeId) -> Option<Arc<TreeState>> {
        let view = self.0.view.as_ref()?;
        Some(view.state(tree).unwrap_or_else(|| Arc::new(TreeState::empty())))
    }

    /// Its sequence number: it sees every operation up to this one.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let before = db.snapshot();
    /// tree.put(b"a", b"1")?;
    /// assert!(db.snapshot().seq() > before.seq());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn seq(&self) -> SeqNo {
        self.0.view.as_ref().map_or(self.0.taken.seq, |view| view.seq)
    }

    /// Whether it was taken of this database.
    pub(crate) fn is_of(&self, core: &Arc<Core>) -> bool {
        core.snapshots.is_at(self.0.shard_at, &self.0.shard)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // In a fork whoever held the mutex is not here.
        if self.process.is_this() {
            self.shard.release(self.taken);
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "snapshot_tests.rs"]
mod tests;
