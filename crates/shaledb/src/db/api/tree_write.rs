//! Writes to one tree, outside of batches and transactions.

use super::batch::Batch;
use super::tree::Tree;
#[cfg(doc)]
use crate::base::config::TreeConfig;
use crate::base::error::{Error, Result};
use crate::base::key::Kind;
use crate::db::options::WriteOptions;
use crate::write::ops::Ops;
use std::cell::RefCell;
use std::io::Read;

thread_local! {
    /// Where a single operation is encoded, so that a put allocates nothing.
    static SCRATCH: RefCell<Ops> = const { RefCell::new(Ops::new()) };
}

impl Tree {
    /// Sets `key` to `value`, replacing what it had.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the key or the value is too long.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"ada", b"1815")?;
    /// assert_eq!(tree.get(b"ada")?.unwrap(), b"1815");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_with(key, value, WriteOptions::default())
    }

    /// Sets `key` to `value`, durable on return if the options say so. As [`Tree::put`] otherwise.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put_with(b"paid", b"100", shaledb::WriteOptions::SYNC)?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn put_with(&self, key: &[u8], value: &[u8], options: WriteOptions) -> Result<()> {
        if value.len() as u64 >= u64::from(self.inner.config.blob_bytes) {
            self.check()?;
            self.core().check_writable()?;
            return self.put_blob(key, value, None, options);
        }
        self.write_one(Kind::Put, key, value, options)
    }

    /// Removes `key`, if it is there.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the key is too long.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"ada", b"1815")?;
    /// tree.delete(b"ada")?;
    /// tree.delete(b"nobody")?; // no error
    /// assert_eq!(tree.get(b"ada")?, None);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.delete_with(key, WriteOptions::default())
    }

    /// Removes `key`, durable on return if the options say so. As [`Tree::delete`] otherwise.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.delete_with(b"secret", shaledb::WriteOptions::SYNC)?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn delete_with(&self, key: &[u8], options: WriteOptions) -> Result<()> {
        self.write_one(Kind::Delete, key, b"", options)
    }

    /// Removes every key from `start` up to, not including, `end`, at a cost that does not depend
    /// on how many they are. An empty range does nothing.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if a bound is longer than a key may be.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"2025-12", b"2026-01", b"2026-02"] { tree.put(key, b"")?; }
    /// tree.delete_range(b"2025", b"2026")?; // all of 2025
    /// assert_eq!(tree.scan::<&[u8]>(..)?.count(), 2);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn delete_range(&self, start: &[u8], end: &[u8]) -> Result<()> {
        self.delete_range_with(start, end, WriteOptions::default())
    }

    /// As [`Tree::delete_range`], durable on return if the options say so.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # tree.put(b"a1", b"")?;
    /// tree.delete_range_with(b"a", b"b", shaledb::WriteOptions::SYNC)?;
    /// assert!(!tree.contains(b"a1")?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn delete_range_with(&self, start: &[u8], end: &[u8], options: WriteOptions) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete_range(self, start, end);
        batch.write(&self.handle, options)
    }

    fn write_one(&self, kind: Kind, key: &[u8], value: &[u8], options: WriteOptions) -> Result<()> {
        self.check()?;
        SCRATCH.with_borrow_mut(|ops| {
            ops.clear();
            ops.push(kind, self.inner.id, key, value)?;
            self.core().commit(ops, options.sync)
        })
    }

    /// Sets `key` to everything that `reader` gives, up to 4 GiB, holding a small part of it in
    /// memory at a time. A value shorter than [`TreeConfig::blob_bytes`] is stored like any other;
    /// a longer one goes to a blob file, which is synced before the commit.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the key or the value is too long; [`Error::Io`] with what the
    /// reader fails with. Then `key` keeps what it had.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// use std::io::Read;
    ///
    /// let mut video = std::io::repeat(7).take(5 << 20); // or a file
    /// tree.put_reader(b"video", &mut video, shaledb::WriteOptions::default())?;
    /// assert_eq!(tree.get_reader(b"video")?.unwrap().len(), 5 << 20);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn put_reader(
        &self,
        key: &[u8],
        reader: &mut dyn Read,
        options: WriteOptions,
    ) -> Result<()> {
        self.check()?;
        self.core().check_writable()?;
        let threshold = self.inner.config.blob_bytes as usize;
        let mut start = Vec::new();
        let read = reader.take(threshold as u64).read_to_end(&mut start);
        read.map_err(|error| Error::io("read a value for", self.handle.path(), error))?;
        if start.len() < threshold {
            return self.write_one(Kind::Put, key, &start, options);
        }
        self.put_blob(key, &start, Some(reader), options)
    }

    fn put_blob(
        &self,
        key: &[u8],
        start: &[u8],
        rest: Option<&mut dyn Read>,
        options: WriteOptions,
    ) -> Result<()> {
        let blob = self.core().write_blob(start, rest)?;
        let result = self.write_one(Kind::Blob, key, blob.reference(), options);
        // A commit of unknown outcome may have left the reference in the log.
        if result.is_err() && !self.core().is_poisoned() {
            blob.mark_obsolete();
        }
        result
    }
}
