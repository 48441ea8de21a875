//! A handle to one tree: point writes, point reads, scans.

use super::core::{Core, TreeCore};
use super::ingest::Ingest;
use super::snapshot::Snapshot;
use super::work::Manual;
use super::{Handle, WriteOptions};
use crate::base::config::TreeConfig;
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SeqNo, prefix_end};
use crate::base::stats::{Counter, Timed};
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::read::{self, BlobSource, Scan, ScanRange, Value};
use crate::state::TreeState;
use crate::table::CursorOptions;
use crate::version::TreeId;
use crate::write::ops::Ops;
use std::cell::RefCell;
use std::io::Read;
use std::ops::{Bound, RangeBounds};

/// One tree of a database: an ordered map from keys to values. Cheap to clone; any number of
/// threads may use it at once.
#[derive(Clone)]
pub struct Tree {
    pub(crate) handle: Arc<Handle>,
    pub(crate) inner: Arc<TreeCore>,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tree({:?})", self.inner.name)
    }
}

/// What a scan covers and how it reads.
#[derive(Clone, Debug)]
pub struct ScanOptions<'a> {
    /// The first key; `None` starts at the beginning.
    pub lower: Option<Vec<u8>>,
    /// The first key past the end; `None` goes to the end.
    pub upper: Option<Vec<u8>>,
    /// Only keys with this prefix (inside the bounds, if there are any).
    pub prefix: Option<Vec<u8>>,
    /// The moment to read at; `None` is now.
    pub snapshot: Option<&'a Snapshot>,
    /// Whether blocks that had to be read are kept in the cache. Default true; false suits a scan
    /// of much that will not be read again soon.
    pub fill_cache: bool,
}

impl Default for ScanOptions<'_> {
    fn default() -> Self {
        ScanOptions { lower: None, upper: None, prefix: None, snapshot: None, fill_cache: true }
    }
}

/// Where a scan reads large values; holding the state keeps their files there.
struct PinnedBlobs {
    core: Arc<Core>,
    _state: Arc<TreeState>,
}

impl BlobSource for PinnedBlobs {
    fn read(&self, reference: &[u8]) -> Result<Vec<u8>> {
        BlobSource::read(&*self.core, reference)
    }
}

thread_local! {
    /// Where a single operation is encoded, so that a put allocates nothing.
    static SCRATCH: RefCell<Ops> = const { RefCell::new(Ops::new()) };
}

impl Tree {
    fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }

    pub(crate) fn same(&self, other: &Tree) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its number, which no other tree of the database will ever have.
    pub fn id(&self) -> TreeId {
        self.inner.id
    }

    /// The settings it was created with.
    pub fn config(&self) -> &TreeConfig {
        &self.inner.config
    }

    /// Refuses use of a dropped tree or a closed database.
    pub(crate) fn check(&self) -> Result<()> {
        self.core().check_open()?;
        if self.inner.is_dropped() {
            return Err(Error::NoSuchTree(self.inner.name.clone()));
        }
        Ok(())
    }

    /// Sets `key` to `value`; durable as the database's [`SyncPolicy`](crate::SyncPolicy) says.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_with(key, value, WriteOptions::default())
    }

    /// Sets `key` to `value`.
    pub fn put_with(&self, key: &[u8], value: &[u8], options: WriteOptions) -> Result<()> {
        if value.len() as u64 >= u64::from(self.inner.config.blob_bytes) {
            let mut reader = value;
            return self.put_reader(key, &mut reader, options);
        }
        self.write_one(Kind::Put, key, value, options)
    }

    /// Removes `key`, if it is there.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.delete_with(key, WriteOptions::default())
    }

    /// Removes `key`, if it is there.
    pub fn delete_with(&self, key: &[u8], options: WriteOptions) -> Result<()> {
        self.write_one(Kind::Delete, key, b"", options)
    }

    /// Removes every key from `start` up to, not including, `end`, at a cost that does not depend
    /// on how many they are.
    pub fn delete_range(&self, start: &[u8], end: &[u8]) -> Result<()> {
        self.delete_range_with(start, end, WriteOptions::default())
    }

    /// See [`Tree::delete_range`].
    pub fn delete_range_with(&self, start: &[u8], end: &[u8], options: WriteOptions) -> Result<()> {
        let mut batch = super::Batch::new();
        batch.delete_range(self, start, end);
        self.handle.write(&batch, options)
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
    /// memory at a time. A short value is stored like any other; a longer one goes to a blob file,
    /// which is synced before the commit.
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
        let blob = self.core().write_blob(&start, Some(reader))?;
        let result = self.write_one(Kind::Blob, key, blob.reference(), options);
        // A commit of unknown outcome may have left the reference in the log.
        if result.is_err() && !self.core().is_poisoned() {
            blob.mark_obsolete();
        }
        result
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        // The state first: a later sequence number sees nothing that it lacks, but for what was
        // committed since to a newer memtable, and then the answer is as of the seal.
        let state = self.inner.state.load();
        let seq = self.core().visible.load(Ordering::Acquire);
        self.get_in(&state, key, seq)
    }

    /// The value that `key` had when the snapshot was taken.
    pub fn get_at(&self, key: &[u8], snapshot: &Snapshot) -> Result<Option<Value>> {
        self.check_snapshot(snapshot)?;
        self.get_in(&self.inner.state.load(), key, snapshot.seq())
    }

    fn get_in(&self, state: &TreeState, key: &[u8], seq: SeqNo) -> Result<Option<Value>> {
        self.check()?;
        let core = self.core();
        let started = core.recorder.sample().then(|| core.env.clock.now_nanos());
        let found = read::get(state, key, seq, &**core)?;
        core.recorder.add_all([(Counter::Gets, 1), (Counter::GetHits, u64::from(found.is_some()))]);
        if let Some(started) = started {
            core.recorder.time(Timed::Get, core.env.clock.now_nanos() - started);
        }
        Ok(found)
    }

    /// The values of several keys, as of one moment, in the order of the keys. Cheaper than as
    /// many calls of [`Tree::get`]: blocks are asked for together.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.check()?;
        let core = self.core();
        let state = self.inner.state.load();
        let seq = core.visible.load(Ordering::Acquire);
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let found = read::multi_get(&state, &keys, seq, &**core)?;
        let hits = found.iter().filter(|value| value.is_some()).count() as u64;
        core.recorder.add_all([(Counter::Gets, keys.len() as u64), (Counter::GetHits, hits)]);
        Ok(found)
    }

    /// A reader of the value of `key`, for values too large to hold.
    pub fn get_reader(&self, key: &[u8]) -> Result<Option<super::blobs::ValueReader>> {
        self.check()?;
        let state = self.inner.state.load();
        let seq = self.core().visible.load(Ordering::Acquire);
        let found = read::find(&state, key, seq)?;
        found.map(|found| self.core().value_reader(found.kind, found.value)).transpose()
    }

    /// Whether `key` has a value.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        self.check()?;
        let state = self.inner.state.load();
        let seq = self.core().visible.load(Ordering::Acquire);
        Ok(read::find(&state, key, seq)?.is_some())
    }

    /// A scan of a range of keys, as of now. It is at no row until it is sought; as an iterator it
    /// starts at the first.
    ///
    /// ```
    /// # fn main() -> shale::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shale::Db::open(dir.path(), shale::Config::default())?;
    /// let tree = db.tree_or_create("fruit")?;
    /// for key in ["apple", "banana", "cherry"] {
    ///     tree.put(key.as_bytes(), b"")?;
    /// }
    /// let keys: shale::Result<Vec<_>> =
    ///     tree.scan("b".."d")?.map(|row| row.map(|(key, _)| key)).collect();
    /// assert_eq!(keys?, [b"banana".to_vec(), b"cherry".to_vec()]);
    ///
    /// let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_last()?;
    /// assert_eq!(scan.key(), b"cherry");
    /// # Ok(()) }
    /// ```
    pub fn scan<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Scan> {
        let after = |key: &K| [key.as_ref(), &[0]].concat();
        let lower = match range.start_bound() {
            Bound::Included(key) => Some(key.as_ref().to_vec()),
            Bound::Excluded(key) => Some(after(key)),
            Bound::Unbounded => None,
        };
        let upper = match range.end_bound() {
            Bound::Included(key) => Some(after(key)),
            Bound::Excluded(key) => Some(key.as_ref().to_vec()),
            Bound::Unbounded => None,
        };
        self.scan_with(ScanOptions { lower, upper, ..ScanOptions::default() })
    }

    /// A scan of all keys that start with `prefix`, as of now.
    pub fn scan_prefix(&self, prefix: &[u8]) -> Result<Scan> {
        self.scan_with(ScanOptions { prefix: Some(prefix.to_vec()), ..ScanOptions::default() })
    }

    /// A scan as the options say.
    pub fn scan_with(&self, options: ScanOptions<'_>) -> Result<Scan> {
        self.check()?;
        let (mut lower, mut upper) = (options.lower, options.upper);
        if let Some(prefix) = options.prefix {
            let end = prefix_end(&prefix);
            lower = Some(lower.map_or(prefix.clone(), |lower| lower.max(prefix)));
            upper = match (upper, end) {
                (Some(upper), Some(end)) => Some(upper.min(end)),
                (upper, end) => upper.or(end),
            };
        }
        if let Some(snapshot) = options.snapshot {
            self.check_snapshot(snapshot)?;
        }
        let core = self.core();
        let state = self.inner.state.load_full();
        let seq = match options.snapshot {
            Some(snapshot) => snapshot.seq(),
            None => core.visible.load(Ordering::Acquire),
        };
        let cursor = CursorOptions { fill_cache: options.fill_cache, ..CursorOptions::default() };
        let range = ScanRange { lower: lower.unwrap_or_default(), upper, cursor };
        let blobs = Arc::new(PinnedBlobs { core: core.clone(), _state: state.clone() });
        core.recorder.add(Counter::Seeks, 1);
        Scan::new(&state, range, seq, blobs)
    }

    fn check_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        if snapshot.is_of(self.core()) {
            Ok(())
        } else {
            Err(Error::InvalidArgument("the snapshot is of another database".to_owned()))
        }
    }

    /// Starts a bulk load: rows given in ascending order become tables of the tree directly,
    /// without the log and the memtable, so that each byte is written once.
    pub fn ingest(&self) -> Result<Ingest> {
        self.check()?;
        Ingest::new(self.clone())
    }

    /// Writes this tree's memtables to tables and waits for it.
    pub fn flush(&self) -> Result<()> {
        self.check()?;
        self.core().flush(Some(&self.inner))
    }

    /// Brings all data to the last level and waits for it.
    pub fn compact(&self) -> Result<()> {
        self.core().compact(&self.inner, Manual::default())
    }

    /// Brings the keys from `lower` up to, not including, `upper` to the last level and waits for
    /// it. Tables that reach over the bounds are compacted whole.
    pub fn compact_range(&self, lower: &[u8], upper: Option<&[u8]>) -> Result<()> {
        self.check()?;
        let (lower, upper) = (Some(lower.to_vec()), upper.map(<[u8]>::to_vec));
        self.core().compact(&self.inner, Manual { lower, upper })
    }

    /// About how many bytes of table files hold the keys of a range.
    pub fn approximate_bytes(&self, lower: &[u8], upper: Option<&[u8]>) -> Result<u64> {
        self.check()?;
        let version = self.inner.state.load().version.clone();
        version.approximate_bytes(lower, upper)
    }
}
