//! A flag by which another thread ends a wait for a lock.

use crate::base::sync::Arc;
use crate::base::sync::atomic::{AtomicBool, Ordering};

/// While it is set, no call of the transactions that have it waits for a lock: those that wait, and
/// those that would have to, answer with [`Error::Interrupted`](crate::Error::Interrupted). Clones
/// are the same flag, for other threads.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// use shaledb::{Error, Interrupt, TransactionOptions};
///
/// let mut holder = db.begin(TransactionOptions::default())?;
/// holder.put(&tree, b"a", b"1")?;
///
/// let interrupt = Interrupt::default();
/// let mut txn = db.begin(TransactionOptions::default())?;
/// txn.set_interrupt(&interrupt);
/// interrupt.set(true); // mostly by another thread, while the next line waits
/// assert!(matches!(txn.put(&tree, b"a", b"2"), Err(Error::Interrupted { .. })));
/// interrupt.set(false);
/// txn.put(&tree, b"b", b"2")?; // the transaction goes on
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Sets it or takes it back. Who waits sees it within 50 milliseconds.
    ///
    /// ```
    /// let interrupt = shaledb::Interrupt::default();
    /// interrupt.set(true);
    /// assert!(interrupt.is_set());
    /// ```
    pub fn set(&self, on: bool) {
        self.0.store(on, Ordering::Release);
    }

    /// Whether it is set.
    ///
    /// ```
    /// assert!(!shaledb::Interrupt::default().is_set());
    /// ```
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
