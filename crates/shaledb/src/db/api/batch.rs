//! Batches: operations that become visible and durable together.

use super::handle::Handle;
use super::tree::Tree;
use crate::base::error::{Error, Result};
use crate::base::key::Kind;
use crate::base::sync::Arc;
use crate::db::core::Core;
use crate::db::options::WriteOptions;
use crate::db::values::NewBlob;
use crate::wal::OpIter;
use crate::write::ops::Ops;

/// A set of writes, in order, over any number of trees of one database, that is applied as a
/// whole or not at all.
///
/// A later operation on a key wins over an earlier one. The batch is kept in memory until it is
/// written; [`Batch::bytes`] says how much that is. It may take 512 MiB, not counting values that
/// go to blob files. Operations that a batch cannot take are reported when it is written: see
/// [`Db::write`](crate::Db::write).
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// let (users, emails) = (db.tree_or_create("users")?, db.tree_or_create("emails")?);
/// let mut batch = shaledb::Batch::new();
/// batch.put(&users, b"7", b"ada@example.org");
/// batch.put(&emails, b"ada@example.org", b"7");
/// db.write(&batch, shaledb::WriteOptions::SYNC)?;
/// assert_eq!(emails.get(b"ada@example.org")?.unwrap(), b"7");
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Batch {
    pub(crate) ops: Ops,
    /// The trees named, without repeats; a batch seldom names more than a few.
    pub(crate) trees: Vec<Tree>,
    /// Whether a value may be large enough for a blob file.
    pub(crate) has_large: bool,
    /// The first operation that could not be taken; reported when the batch is written.
    pub(crate) refused: Option<Error>,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("len", &self.len()).field("bytes", &self.bytes()).finish()
    }
}

impl Batch {
    /// An empty batch.
    ///
    /// ```
    /// assert!(shaledb::Batch::new().is_empty());
    /// ```
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Sets `key` to `value`. A key or value longer than its bound (64 KiB, 4 GiB) makes
    /// [`Db::write`](crate::Db::write) refuse the whole batch.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut batch = shaledb::Batch::new();
    /// batch.put(&tree, b"a", b"1");
    /// batch.put(&tree, b"a", b"2"); // later, so it wins
    /// db.write(&batch, shaledb::WriteOptions::default())?;
    /// assert_eq!(tree.get(b"a")?.unwrap(), b"2");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) {
        self.has_large |= value.len() as u64 >= u64::from(tree.config().blob_bytes);
        self.push(tree, Kind::Put, key, value);
    }

    /// Removes `key`, if it is there. A key longer than 64 KiB makes
    /// [`Db::write`](crate::Db::write) refuse the whole batch.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut batch = shaledb::Batch::new();
    /// batch.put(&tree, b"a", b"1");
    /// batch.delete(&tree, b"a"); // later, so it wins
    /// db.write(&batch, shaledb::WriteOptions::SYNC)?;
    /// assert!(tree.get(b"a")?.is_none());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn delete(&mut self, tree: &Tree, key: &[u8]) {
        self.push(tree, Kind::Delete, key, b"");
    }

    /// Removes every key from `start` up to, not including, `end`. Its cost does not depend on how
    /// many keys that are. An empty range does nothing; a bound longer than 64 KiB makes
    /// [`Db::write`](crate::Db::write) refuse the whole batch.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut batch = shaledb::Batch::new();
    /// batch.put(&tree, b"a", b"1");
    /// batch.put(&tree, b"c", b"3");
    /// batch.delete_range(&tree, b"a", b"c");
    /// db.write(&batch, shaledb::WriteOptions::SYNC)?;
    /// assert!(tree.get(b"a")?.is_none());
    /// assert!(tree.get(b"c")?.is_some());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn delete_range(&mut self, tree: &Tree, start: &[u8], end: &[u8]) {
        if start < end {
            if end.len() > crate::base::key::KEY_BYTES_MAX {
                self.refuse(Error::InvalidArgument(format!(
                    "the end of a range delete has {} bytes; a key has at most {}",
                    end.len(),
                    crate::base::key::KEY_BYTES_MAX
                )));
            } else {
                self.push(tree, Kind::RangeDelete, start, end);
            }
        }
    }

    fn push(&mut self, tree: &Tree, kind: Kind, key: &[u8], value: &[u8]) {
        if self.trees.last().is_none_or(|last| !last.same(tree))
            && !self.trees.iter().any(|named| named.same(tree))
        {
            self.trees.push(tree.clone());
        }
        if let Err(error) = self.ops.push(kind, tree.id(), key, value) {
            self.refuse(error);
        }
    }

    fn refuse(&mut self, error: Error) {
        self.refused.get_or_insert(error);
    }

    /// How many operations it holds.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut batch = shaledb::Batch::new();
    /// batch.put(&tree, b"a", b"1");
    /// batch.delete(&tree, b"a");
    /// assert_eq!(batch.len(), 2);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.ops.count() as usize
    }

    /// Whether it holds no operation.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut batch = shaledb::Batch::new();
    /// batch.delete_range(&tree, b"b", b"a"); // an empty range
    /// assert!(batch.is_empty());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The memory its operations take, in bytes; also what they will take in the log (values that
    /// go to blob files apart).
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut batch = shaledb::Batch::new();
    /// for n in 0..10_000u32 {
    ///     batch.put(&tree, &n.to_be_bytes(), b"value");
    ///     if batch.bytes() >= 64 << 10 {
    ///         db.write(&batch, shaledb::WriteOptions::default())?;
    ///         batch.clear();
    ///     }
    /// }
    /// db.write(&batch, shaledb::WriteOptions::default())?;
    /// assert_eq!(tree.scan::<&[u8]>(..)?.count(), 10_000);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn bytes(&self) -> usize {
        self.ops.bytes().len()
    }

    /// Forgets all operations, so that the memory (up to 1 MiB) can be used for the next batch.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut batch = shaledb::Batch::new();
    /// batch.put(&tree, b"a", b"1");
    /// assert!(batch.len() == 1 && batch.bytes() > 0);
    /// batch.clear();
    /// assert!(batch.is_empty());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn clear(&mut self) {
        self.ops.clear();
        self.trees.clear();
        self.has_large = false;
        self.refused = None;
    }

    /// Whether the first operation could not be taken, and why.
    pub(crate) fn check(&self) -> Result<()> {
        self.refused.clone().map_or(Ok(()), Err)
    }

    /// Writes it to the database that a handle is to.
    pub(crate) fn write(&self, to: &Handle, options: WriteOptions) -> Result<()> {
        self.check()?;
        for tree in &self.trees {
            if !Arc::ptr_eq(&tree.handle.core, &to.core) {
                return Err(Error::InvalidArgument(format!(
                    "the batch writes to tree `{}` of another database",
                    tree.name()
                )));
            }
            tree.check()?;
        }
        if self.is_empty() {
            return if options.sync { to.core.sync_commits() } else { to.core.check_writable() };
        }
        to.core.store_large(self, |ops| to.core.commit(ops, options.sync))
    }
}

impl Core {
    /// Writes the large values of a batch to blob files and hands the operations to `commit`. If
    /// that fails, the files go: so it does nothing that may fail once the operations are in the
    /// log, but for what leaves the outcome unknown.
    pub fn store_large<T>(
        &self,
        batch: &Batch,
        commit: impl FnOnce(&Ops) -> Result<T>,
    ) -> Result<T> {
        if !batch.has_large {
            return commit(&batch.ops);
        }
        self.check_writable()?;
        let mut ops = Ops::new();
        let mut blobs = Vec::new();
        let threshold = |tree: u32| {
            let named = batch.trees.iter().find(|named| named.id() == tree);
            named.map_or(u32::MAX, |tree| tree.config().blob_bytes) as usize
        };
        let write = || -> Result<T> {
            for op in OpIter::new(batch.ops.bytes(), 0) {
                if op.kind == Kind::Put && op.value.len() >= threshold(op.tree) {
                    let blob = self.write_blob(op.value, None)?;
                    ops.push(Kind::Blob, op.tree, op.key, blob.reference())?;
                    blobs.push(blob);
                } else {
                    ops.push(op.kind, op.tree, op.key, op.value)?;
                }
            }
            assert_eq!(ops.count(), batch.ops.count(), "each operation is written once");
            commit(&ops)
        };
        let result = write();
        // A commit of unknown outcome may have left the references in the log.
        if result.is_err() && !self.is_poisoned() {
            blobs.iter().for_each(NewBlob::mark_obsolete);
        }
        result
    }
}
