//! Who has written to a tree and has not ended yet.

use crate::base::error::{Error, Result};
use crate::base::sync::Arc;
use crate::db::api::Tree;
use crate::db::core::Core;
use crate::txn::Mode;
use std::time::Duration;

/// How long to sleep between two looks whether writers have ended, in nanoseconds.
const LOOK_NANOS: u64 = 1_000_000;

impl Tree {
    /// Waits until no transaction, prepared ones too, holds a lock to write in the tree: until all
    /// have ended that have written to it. Who may begin meanwhile is the caller's to hold off.
    /// Batches and optimistic transactions cannot be seen.
    ///
    /// # Errors
    /// [`Error::LockTimeout`] if one has not ended after `limit`, which names it.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// let limit = std::time::Duration::ZERO;
    /// assert!(tree.wait_for_writers(limit).is_err());
    /// txn.commit(shaledb::WriteOptions::default())?;
    /// tree.wait_for_writers(limit)?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn wait_for_writers(&self, limit: Duration) -> Result<()> {
        self.check()?;
        wait_for_writers(&self.handle.core, &[self], limit, "")
    }
}

/// As [`Tree::wait_for_writers`], of several trees, to make the tree `made`.
pub(super) fn wait_for_writers(
    core: &Arc<Core>,
    trees: &[&Tree],
    limit: Duration,
    made: &str,
) -> Result<()> {
    core.guard.check_process()?;
    let clock = &core.env.clock;
    let started = clock.now_nanos();
    loop {
        let mut holder = None;
        core.locks.each(&mut |txn, lock, waits| {
            let tree = trees.iter().find(|tree| tree.id() == lock.tree);
            if lock.mode == Mode::Write && !waits {
                holder = tree.map(|tree| (txn, tree.name()));
            }
            holder.is_none()
        });
        let Some((holder, tree)) = holder else { return Ok(()) };
        if Duration::from_nanos(clock.now_nanos() - started) >= limit {
            let made = if made.is_empty() { String::new() } else { format!(", to make `{made}`") };
            let lock = format!("the end of all who have written to tree `{tree}`{made}");
            let limit_millis = limit.as_millis() as u64;
            return Err(Error::LockTimeout { lock, holder, limit_millis });
        }
        core.check_writable()?;
        clock.sleep_nanos(LOOK_NANOS);
    }
}
