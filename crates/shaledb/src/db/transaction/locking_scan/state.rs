//! A scan that locks what it returns, as a value: where it is and what it knows.

use crate::base::sync::Arc;
use crate::db::api::{Snapshot, Tree};
#[cfg(doc)]
use crate::db::transaction::options::Isolation;
use crate::db::transaction::options::LockMode;
use crate::read::{Scan, WriteSetSources};
use crate::state::TreeState;
use crate::txn::Writers;

/// Where a scan is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// Nowhere yet: it can begin at either end.
    Start,
    Row(Vec<u8>),
    BeforeFirst,
    AfterLast,
}

/// A range of a tree, row by row in both directions; what it has passed is locked until the
/// transaction ends, so that nobody changes it or (but for [`Isolation::ReadCommitted`]) adds to
/// it. It shows the newest that is committed when it comes to a place, for which it waits if
/// another is writing there, and the transaction's own writes of before the scan.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
/// use shaledb::{LockMode, ScanOptions, TransactionOptions, WriteOptions};
///
/// let mut txn = db.begin(TransactionOptions::default())?;
/// let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Exclusive)?;
/// while scan.next(&mut txn)? {
///     let longer = [scan.value(), b"0"].concat();
///     txn.put(&tree, scan.key(), &longer)?; // the scan does not see it
/// }
/// txn.commit(WriteOptions::default())?;
/// assert_eq!(tree.get(b"b")?.unwrap(), b"10");
/// # Ok::<(), shaledb::Error>(())
/// ```
pub struct LockingScan {
    pub(super) transaction: u64,
    pub(super) lower: Vec<u8>,
    pub(super) upper: Option<Vec<u8>>,
    pub(super) fill_cache: bool,
    pub(super) mode: LockMode,
    /// Whether it shows its transaction's snapshot: then others change nothing of it.
    pub(super) has_one_view: bool,
    pub(super) skips: bool,
    pub(super) peeks: bool,
    pub(super) write_set: Option<WriteSetSources>,
    pub(super) position: Position,
    pub(super) value: Vec<u8>,
    /// Whether it only shows the row that it is at, which another has locked.
    pub(super) unlocked: bool,
    /// How many rows it has come to, forwards; anew where somebody was in the way.
    pub(super) passed: u64,
    /// Up to where, from where it is, gaps are locked ahead; empty: they are not.
    pub(super) gaps_to: Vec<u8>,
    /// The number of the claim by which they are.
    pub(super) claim: u64,
    pub(super) rows: Option<Rows>,
    /// Whether the rows are to be looked at as of now with the next step.
    pub(super) renews: bool,
    pub(super) ahead: Ahead,
    /// After what it reads, whose files are removed while the database is open.
    pub(super) tree: Tree,
}

/// What the rows are looked for in.
pub(super) struct Rows {
    pub(super) scan: Scan,
    /// The moment that it shows.
    pub(super) snapshot: Snapshot,
    /// What the tree was like before that moment, or at it.
    pub(super) state: Arc<TreeState>,
}

impl std::fmt::Debug for LockingScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LockingScan({:?}, {:?})", self.tree, self.position)
    }
}

/// What is known of those who write where the scan goes.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Forwards: of what is beyond the scan. Backward: of all that it may come to.
    pub(super) writers: Option<Writers>,
    pub(super) backward: bool,
    /// How often the transaction had waited by then.
    pub(super) waits: u64,
    /// A key the lock of which was asked for in vain: it is asked for again.
    pub(super) asked: Option<Vec<u8>>,
    /// A key the lock of which was waited for, or of which the row has changed before it was
    /// locked; held since.
    pub(super) awaited: Option<Vec<u8>>,
}
