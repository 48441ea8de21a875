//! Prepared transactions, as users hold and list them.

use super::handle::{Db, Handle};
#[cfg(doc)]
use crate::base::error::Error;
use crate::base::error::Result;
use crate::base::sync::Arc;
use crate::db::options::WriteOptions;
use std::ops::Bound;

/// A transaction that was prepared and is to be committed or rolled back, by
/// [`Transaction::prepare`](crate::Transaction::prepare) or, after the database was opened anew, by
/// [`Db::prepared`]. Its writes are durable, nobody sees them, and their keys are locked until it
/// is decided. Dropping this decides nothing. Of its clones one can decide.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// use shaledb::{Prepared, TransactionOptions, WriteOptions};
///
/// let mut txn = db.begin(TransactionOptions::default())?;
/// txn.put(&tree, b"a", b"1")?;
/// let prepared: Prepared = txn.prepare(b"order 17")?;
/// assert!(tree.get(b"a")?.is_none());
/// // When all who take part have prepared:
/// prepared.commit(WriteOptions::SYNC)?;
/// assert!(tree.get(b"a")?.is_some());
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone)]
pub struct Prepared {
    handle: Arc<Handle>,
    xid: Vec<u8>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prepared(\"{}\")", self.xid.escape_ascii())
    }
}

impl Prepared {
    pub(crate) fn new(handle: Arc<Handle>, xid: &[u8]) -> Prepared {
        Prepared { handle, xid: xid.to_vec() }
    }

    /// The name it was prepared under.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// let txn = db.begin(shaledb::TransactionOptions::default())?;
    /// assert_eq!(txn.prepare(b"order 17")?.xid(), b"order 17");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn xid(&self) -> &[u8] {
        &self.xid
    }

    /// Makes its writes visible, at one position in the commit order, and lets go of its locks.
    /// Without a sync a crash of the machine may leave it prepared, to be decided again.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it has been decided already; what a write may fail with: then
    /// it stays prepared. But if it is the sync that fails, it is decided, a crash of the machine
    /// may leave it prepared, and all later writes are [`Error::Poisoned`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// txn.prepare(b"order 17")?.commit(shaledb::WriteOptions::SYNC)?;
    /// assert_eq!(tree.get(b"a")?.unwrap(), b"1");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn commit(self, options: WriteOptions) -> Result<()> {
        self.handle.core.decide(&self.xid, true, options.sync)
    }

    /// Undoes it: nothing of it will ever be seen.
    ///
    /// # Errors
    /// As [`Prepared::commit`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// txn.prepare(b"order 17")?.rollback(shaledb::WriteOptions::default())?;
    /// assert!(tree.get(b"a")?.is_none());
    /// assert!(db.prepared()?.is_empty());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn rollback(self, options: WriteOptions) -> Result<()> {
        self.handle.core.decide(&self.xid, false, options.sync)
    }

    /// Lets go of the locks of what it has read, and of gaps. What it has written stays locked, and
    /// no more than that is locked again after a crash. Whoever waits for the others goes on, which
    /// counts where the decision may be long in coming, or may wait for those who wait.
    ///
    /// It weakens one thing: what it has read may then change before it is committed, so that it
    /// may be in no serial order with an optimistic transaction
    /// ([`Concurrency`](crate::Concurrency)) or one that reads snapshots.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it has been decided already.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// use shaledb::{LockMode, TransactionOptions};
    ///
    /// let mut txn = db.begin(TransactionOptions::default())?;
    /// txn.get_for_update(&tree, b"parent")?;
    /// txn.put(&tree, b"child", b"1")?;
    /// let prepared = txn.prepare(b"order 17")?;
    /// prepared.release_reads()?;
    /// let mut other = db.begin(TransactionOptions::default())?;
    /// other.put(&tree, b"parent", b"1")?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn release_reads(&self) -> Result<()> {
        self.handle.core.release_reads(&self.xid)
    }
}

impl Db {
    /// The transactions that are prepared and not decided, by name: after a crash, those that
    /// whoever coordinates has to decide.
    ///
    /// ```
    /// # let env = shaledb::Env::memory();
    /// # let open = || {
    /// #     let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
    /// #     shaledb::Db::open_in("/db", shaledb::Config::default(), options)
    /// # };
    /// use shaledb::{TransactionOptions, WriteOptions};
    ///
    /// let db = open()?;
    /// let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// drop(txn.prepare(b"order 17")?);
    /// drop((tree, db)); // or a crash
    ///
    /// let db = open()?;
    /// for prepared in db.prepared()? {
    ///     prepared.commit(WriteOptions::SYNC)?;
    /// }
    /// assert_eq!(db.tree("t")?.get(b"a")?.unwrap(), b"1");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn prepared(&self) -> Result<Vec<Prepared>> {
        let core = self.core();
        core.check_open()?;
        core.guard.check_process()?;
        let names: Vec<Vec<u8>> = core.prepared.lock().keys().cloned().collect();
        Ok(names.iter().map(|xid| Prepared::new(self.handle.clone(), xid)).collect())
    }

    /// What is prepared under this name and not decided, if anything is. It costs the same however
    /// many there are.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// drop(txn.prepare(b"order 17")?);
    /// assert!(db.prepared_named(b"order 18")?.is_none());
    /// let prepared = db.prepared_named(b"order 17")?.unwrap();
    /// prepared.commit(shaledb::WriteOptions::SYNC)?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn prepared_named(&self, xid: &[u8]) -> Result<Option<Prepared>> {
        self.first_prepared((Bound::Included(xid), Bound::Included(xid)))
    }

    /// The first of those that are prepared and not decided whose name comes after `xid` in the
    /// order of bytes; with `None` the first of all. So all are found one by one, also if they are
    /// decided meanwhile, each at the same cost however many there are.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// for name in ["order 17", "order 18"] {
    ///     let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    ///     txn.put(&tree, name.as_bytes(), b"1")?;
    ///     drop(txn.prepare(name.as_bytes())?);
    /// }
    /// let mut last = None;
    /// while let Some(prepared) = db.prepared_after(last.as_deref())? {
    ///     last = Some(prepared.xid().to_vec());
    ///     prepared.commit(shaledb::WriteOptions::SYNC)?;
    /// }
    /// assert_eq!(last.unwrap(), b"order 18");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn prepared_after(&self, xid: Option<&[u8]>) -> Result<Option<Prepared>> {
        self.first_prepared((xid.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded))
    }

    fn first_prepared(&self, names: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<Option<Prepared>> {
        let core = self.core();
        core.check_open()?;
        core.guard.check_process()?;
        let found = core.prepared.lock().range::<[u8], _>(names).next().map(|(xid, _)| xid.clone());
        Ok(found.map(|xid| Prepared { handle: self.handle.clone(), xid }))
    }
}
