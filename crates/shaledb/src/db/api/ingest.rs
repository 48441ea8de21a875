//! Bulk load: sorted rows become tables of the tree directly.
//!
//! The rows are written once, as tables whose entries carry no sequence number. When the load is
//! finished they get one number, all the same: see `ingest/install`.

use super::tree::Tree;
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SeqNo};
use crate::base::ranges::RangeDeletes;
use crate::base::stats::Counter;
use crate::compaction::policy::LAST;
use crate::db::core::Core;
use crate::db::ingest::{IngestPart, RunWriter};
use crate::db::values::NewBlob;
use crate::table::BlobRef;
use crate::table::meta::TableMeta;
use crate::write::ops::check_bounds;
use std::io::Read;
use std::sync::Arc;

/// A bulk load under way: rows in strictly ascending order of their keys. Nothing is visible
/// before [`Ingest::finish`], and then everything is; dropping it instead leaves no trace. It takes
/// little memory, however many rows there are. Rows replace those that the tree has of the same
/// keys.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// let tree = db.tree_or_create("squares")?;
/// let mut ingest = tree.ingest()?;
/// for n in 0..1000u32 {
///     ingest.add(&n.to_be_bytes(), &(n * n).to_le_bytes())?;
/// }
/// assert_eq!(ingest.finish()?, 1000);
/// assert_eq!(tree.get(&7u32.to_be_bytes())?.unwrap(), 49u32.to_le_bytes());
/// # Ok::<(), shaledb::Error>(())
/// ```
pub struct Ingest {
    tree: Tree,
    /// `None` before the first row.
    writer: Option<RunWriter>,
    blobs: Vec<NewBlob>,
    last: Option<Vec<u8>>,
    rows: u64,
    user_bytes: u64,
}

/// The value of a row on its way to a table.
enum Row<'a> {
    Value(&'a [u8]),
    Blob(NewBlob),
}

impl std::fmt::Debug for Ingest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ingest").field("tree", &self.tree).field("rows", &self.rows).finish()
    }
}

impl Ingest {
    pub(crate) fn new(tree: Tree) -> Result<Ingest> {
        tree.handle.core.check_writable()?;
        Ok(Ingest { tree, writer: None, blobs: Vec::new(), last: None, rows: 0, user_bytes: 0 })
    }

    fn core(&self) -> &Arc<Core> {
        &self.tree.handle.core
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the key is not greater than the one before or longer than
    /// 64 KiB; the load can go on with another row. After any other error drop it.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut ingest = tree.ingest()?;
    /// ingest.add(b"b", b"2")?;
    /// assert!(ingest.add(b"a", b"1").is_err());
    /// ingest.add(b"c", b"3")?;
    /// assert_eq!(ingest.finish()?, 2);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check(key)?;
        let large = value.len() as u64 >= u64::from(self.tree.config().blob_bytes);
        if large {
            let blob = self.core().write_blob(value, None)?;
            return self.push(key, Row::Blob(blob), value.len() as u64);
        }
        self.push(key, Row::Value(value), value.len() as u64)
    }

    /// Adds a row whose value is read from `value`, in bounded memory; answers its length in bytes.
    ///
    /// # Errors
    /// As [`Ingest::add`]; and what reading fails with.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut ingest = tree.ingest()?;
    /// let mut file = std::io::Cursor::new("any reader");
    /// assert_eq!(ingest.add_reader(b"text", &mut file)?, 10);
    /// ingest.finish()?;
    /// assert_eq!(tree.get(b"text")?.unwrap(), b"any reader");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn add_reader(&mut self, key: &[u8], value: &mut dyn Read) -> Result<u64> {
        self.check(key)?;
        let large = u64::from(self.tree.config().blob_bytes);
        let mut start = Vec::new();
        value
            .take(large)
            .read_to_end(&mut start)
            .map_err(|error| Error::io("read the value for", self.tree.handle.path(), error))?;
        if (start.len() as u64) < large {
            self.push(key, Row::Value(&start), start.len() as u64)?;
            return Ok(start.len() as u64);
        }
        let blob = self.core().write_blob(&start, Some(value))?;
        let bytes = BlobRef::decode(blob.reference()).map_or(0, |reference| reference.bytes);
        self.push(key, Row::Blob(blob), bytes)?;
        Ok(bytes)
    }

    /// Refuses a key that is too long or not after the one before.
    fn check(&self, key: &[u8]) -> Result<()> {
        self.core().check_writable()?;
        check_bounds(key, &[])?;
        match &self.last {
            Some(last) if key <= last.as_slice() => Err(Error::InvalidArgument(format!(
                "rows of a bulk load must ascend by key, but `{}` does not come after `{}`",
                key.escape_ascii(),
                last.escape_ascii()
            ))),
            _ => Ok(()),
        }
    }

    fn push(&mut self, key: &[u8], row: Row<'_>, value_bytes: u64) -> Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let core = &self.tree.handle.core;
                // Most of it will stay in the last level, so it is written for it.
                let options = core.table_options(&self.tree.inner, LAST);
                let writer = RunWriter::new(core, true, options, RangeDeletes::default());
                self.writer.insert(writer)
            }
        };
        match row {
            Row::Value(value) => writer.add(key, 0, Kind::Put, value)?,
            Row::Blob(blob) => {
                let reference = blob.reference().to_vec();
                self.blobs.push(blob);
                writer.add(key, 0, Kind::Blob, &reference)?;
            }
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        self.rows += 1;
        self.user_bytes += key.len() as u64 + value_bytes;
        Ok(())
    }

    /// Makes all rows visible and durable, together, and answers how many they are. Memtables of
    /// the tree are flushed first, and writers wait meanwhile.
    ///
    /// # Errors
    /// [`Error::NoSuchTree`] if the tree has been dropped, and what the disk fails with; then no
    /// row is visible.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut ingest = tree.ingest()?;
    /// ingest.add(b"a", b"1")?;
    /// assert!(!tree.contains(b"a")?);
    /// assert_eq!(ingest.finish()?, 1);
    /// assert!(tree.contains(b"a")?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn finish(mut self) -> Result<u64> {
        self.tree.check()?;
        self.core().check_writable()?;
        let Some(writer) = self.writer.take() else { return Ok(0) };
        let part = IngestPart { tree: self.tree.inner.clone(), tables: writer.finish()? };
        let bytes = bytes_of(&part.tables);
        self.core().ingest(&mut [part])?;
        Ok(self.installed(bytes))
    }

    /// Puts all rows beneath what the tree has, which is newer than `seq`, and ends its build if it
    /// `ends` with that; answers how many they are. The tree may be read and written meanwhile.
    pub(crate) fn finish_beneath(mut self, seq: SeqNo, ends: bool) -> Result<u64> {
        let tables = match self.writer.take() {
            Some(writer) => writer.finish()?,
            None => Vec::new(),
        };
        let bytes = bytes_of(&tables);
        self.core().put_beneath(&self.tree.inner, tables, seq, ends)?;
        Ok(self.installed(bytes))
    }

    /// The tables, of so many bytes, are the tree's: counts them. Answers how many rows they have.
    fn installed(&mut self, bytes: u64) -> u64 {
        self.blobs.clear();
        self.core().recorder.add_all([
            (Counter::IngestBytes, bytes),
            (Counter::UserBytes, self.user_bytes),
            (Counter::WriteOps, self.rows),
        ]);
        self.rows
    }
}

fn bytes_of(tables: &[TableMeta]) -> u64 {
    tables.iter().map(|meta| meta.file_bytes).sum()
}

impl Drop for Ingest {
    fn drop(&mut self) {
        self.writer = None;
        let core = self.core().clone();
        for blob in self.blobs.drain(..) {
            if !core.is_poisoned() {
                blob.mark_obsolete();
            }
        }
    }
}

impl Tree {
    /// Starts a bulk load: rows given in ascending order become tables of the tree directly,
    /// without the log and the memtable, so that each byte is written once.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut rows = tree.ingest()?;
    /// rows.add(b"a", b"1")?;
    /// rows.add(b"b", b"2")?;
    /// assert_eq!(rows.finish()?, 2);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn ingest(&self) -> Result<Ingest> {
        self.check()?;
        Ingest::new(self.clone())
    }
}
