//! A handle to one tree: point reads, and what is done to it as a whole. (Its writes are in
//! `tree_write`, its scans in `scan`.)

use super::handle::Handle;
use super::snapshot::Snapshot;
use crate::base::activity::Activity;
use crate::base::config::TreeConfig;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::stats::Counter;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::db::core::{Core, FollowedView, Manual, TreeCore};
use crate::db::values::ValueReader;
use crate::read::{self, RowEstimate, Value};
use crate::state::TreeState;
use crate::version::TreeId;
use arc_swap::{ArcSwap, Guard};

/// One tree of a database: an ordered map from keys of 0 to 64 KiB to values of 0 to 4 GiB, in the
/// order of the keys' bytes. Cheap to clone; any number of threads may use it at once.
///
/// Every call answers with [`Error::NoSuchTree`] once the tree has been dropped, with
/// [`Error::Closed`] once the database has been closed, and with what its disk fails with: see
/// [`Db`](crate::Db). Calls that write may wait while background work is behind; those without
/// options are durable as the database's [`SyncPolicy`](crate::SyncPolicy) says.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// let tree = db.tree_or_create("fruit")?;
/// tree.put(b"apple", b"red")?;
/// tree.put(b"banana", b"yellow")?;
/// assert_eq!(tree.get(b"apple")?.unwrap(), b"red");
/// tree.delete(b"apple")?;
/// let left: Vec<_> = tree.scan::<&[u8]>(..)?.map(|row| row.unwrap().0).collect();
/// assert_eq!(left, [b"banana"]);
/// # Ok::<(), shaledb::Error>(())
/// ```
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

impl Tree {
    pub(in crate::db) fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }

    pub(crate) fn same(&self, other: &Tree) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Its name.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// assert_eq!(db.tree_or_create("users")?.name(), "users");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its number, which no other tree of the database will ever have.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// let old = db.tree_or_create("t")?.id();
    /// db.drop_tree("t")?;
    /// assert_ne!(db.tree_or_create("t")?.id(), old);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn id(&self) -> TreeId {
        self.inner.id
    }

    /// The settings it was created with.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// assert_eq!(tree.config(), &shaledb::TreeConfig::default());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn config(&self) -> &TreeConfig {
        &self.inner.config
    }

    /// Refuses use of a dropped tree or a closed database.
    pub(crate) fn check(&self) -> Result<()> {
        self.core().check_open()?;
        if self.inner.is_dropped() { Err(self.gone()) } else { Ok(()) }
    }

    #[cold]
    fn gone(&self) -> Error {
        Error::NoSuchTree(self.inner.name.clone())
    }

    /// What is in the tree now. One that is dropped is marked so before it is empty: nobody is to
    /// take it for a tree without rows.
    #[inline]
    pub(in crate::db) fn state(&self) -> Result<Guard<Arc<TreeState>>> {
        let state = self.inner.state.load();
        if self.inner.is_dropped() { Err(self.gone()) } else { Ok(state) }
    }

    /// The value of `key`, as of now. A large one is read into memory whole; see
    /// [`Tree::get_reader`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"ada", b"1815")?;
    /// assert_eq!(tree.get(b"ada")?.unwrap(), b"1815");
    /// assert_eq!(tree.get(b"nobody")?, None);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.point_read(|core, state, seq| read::get(state, key, seq, &**core))
    }

    /// The value that `key` had when the snapshot was taken.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the snapshot is of another database.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"balance", b"10")?;
    /// let before = db.snapshot();
    /// tree.put(b"balance", b"20")?;
    /// assert_eq!(tree.get_at(b"balance", &before)?.unwrap(), b"10");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn get_at(&self, key: &[u8], snapshot: &Snapshot) -> Result<Option<Value>> {
        self.check_snapshot(snapshot)?;
        self.point_read_at(Some(snapshot), |core, state, seq| read::get(state, key, seq, &**core))
    }

    /// What is read at a snapshot of this database, or now: the tree, and the sequence number.
    #[inline]
    pub(super) fn read_view(
        &self,
        snapshot: Option<&Snapshot>,
    ) -> Result<(Guard<Arc<TreeState>>, SeqNo)> {
        let core = self.core();
        if let Some(view) = &core.followed {
            return self.followed_view(view, snapshot);
        }
        // The state first: a later sequence number sees nothing that it lacks, but for what was
        // committed since to a newer memtable, or as tables, with which a newer memtable comes.
        // Then the answer is as of the seal.
        let state = self.state()?;
        let newest = core.visible.load(Ordering::Acquire);
        Ok((state, snapshot.map_or(newest, Snapshot::seq)))
    }

    /// Of a follower, tree and sequence number belong together: older versions go from the tree as
    /// soon as the writer needs them no more.
    #[cold]
    fn followed_view(
        &self,
        view: &ArcSwap<FollowedView>,
        snapshot: Option<&Snapshot>,
    ) -> Result<(Guard<Arc<TreeState>>, SeqNo)> {
        if let Some((snapshot, state)) = snapshot.and_then(|s| Some((s, s.state(self.inner.id)?))) {
            return Ok((Guard::from_inner(state), snapshot.seq()));
        }
        let view = view.load();
        match view.state(self.inner.id) {
            Some(state) => Ok((Guard::from_inner(state), view.seq)),
            None => Err(self.gone()),
        }
    }

    /// Makes a point read as of now, measured and counted.
    #[inline]
    fn point_read<T>(
        &self,
        read: impl FnOnce(&Arc<Core>, &TreeState, SeqNo) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        self.point_read_at(None, read)
    }

    /// Makes a point read as of a snapshot or as of now.
    #[inline]
    fn point_read_at<T>(
        &self,
        snapshot: Option<&Snapshot>,
        read: impl FnOnce(&Arc<Core>, &TreeState, SeqNo) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        self.check()?;
        let core = self.core();
        let started = core.tables.meter.begin(Activity::Get);
        let (state, seq) = self.read_view(snapshot)?;
        let found = read(core, &state, seq)?;
        core.begin_filters(&state);
        core.recorder.add_all([(Counter::Gets, 1), (Counter::GetHits, u64::from(found.is_some()))]);
        core.tables.meter.end(Activity::Get, started);
        Ok(found)
    }

    /// The values of several keys, as of one moment, in the order of the keys. Cheaper than as
    /// many calls of [`Tree::get`]: blocks are asked for together. All values are then in memory.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"a", b"1")?;
    /// tree.put(b"c", b"3")?;
    /// let found = tree.multi_get(&["a", "b", "c"])?;
    /// assert!(found[1].is_none());
    /// assert_eq!(found[2].as_ref().unwrap(), b"3");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.multi_get_as(keys, None)
    }

    /// As [`Tree::multi_get`], as of a snapshot of this database or as of now.
    pub(in crate::db) fn multi_get_as<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        snapshot: Option<&Snapshot>,
    ) -> Result<Vec<Option<Value>>> {
        self.check()?;
        let core = self.core();
        let started = core.tables.meter.begin(Activity::MultiGet);
        let (state, seq) = self.read_view(snapshot)?;
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let found = read::multi_get(&state, &keys, seq, &**core)?;
        core.begin_filters(&state);
        let hits = found.iter().filter(|value| value.is_some()).count() as u64;
        core.recorder.add_all([
            (Counter::MultiGets, 1),
            (Counter::Gets, keys.len() as u64),
            (Counter::GetHits, hits),
        ]);
        core.tables.meter.end(Activity::MultiGet, started);
        Ok(found)
    }

    /// Asks the file system for the blocks that look-ups of these keys need, and does not wait for
    /// them; answers of how many. Of blocks in memory, and of keys that are nowhere, it asks for
    /// nothing. It is for who looks keys up one by one and knows the next ones. It costs about as
    /// much as looking them up in memory.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"a", b"1")?;
    /// assert_eq!(tree.prefetch(&["a", "b"])?, 0, "it is in a memtable");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn prefetch<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<u64> {
        self.check()?;
        let (state, _) = self.read_view(None)?;
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let asked = read::prefetch(&state, &keys);
        self.core().recorder.add(Counter::BlocksPrefetched, asked);
        Ok(asked)
    }

    /// A reader of the value of `key`, as of now, for values too large to hold. It goes on reading
    /// that value if the key is written or deleted meanwhile.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"big", &vec![7; 3 << 20])?;
    /// let mut reader = tree.get_reader(b"big")?.unwrap();
    /// let copied = std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    /// assert_eq!(copied, 3 << 20);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn get_reader(&self, key: &[u8]) -> Result<Option<ValueReader>> {
        // While the state is held, which keeps the file of a large value there.
        self.point_read(|core, state, seq| {
            let found = read::find(state, key, seq)?;
            found.map(|found| core.value_reader(found.kind, found.value)).transpose()
        })
    }

    /// Whether `key` has a value, as of now. A large value is not read.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"ada", b"")?;
    /// assert!(tree.contains(b"ada")? && !tree.contains(b"nobody")?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.point_read(|_, state, seq| read::find(state, key, seq))?.is_some())
    }

    pub(super) fn check_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        if snapshot.is_of(self.core()) {
            Ok(())
        } else {
            Err(Error::InvalidArgument("the snapshot belongs to another database".to_owned()))
        }
    }

    /// Writes this tree's memtables to tables and waits for it. See
    /// [`Db::flush`](crate::Db::flush).
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"a", b"1")?;
    /// tree.flush()?;
    /// let tables: u64 = db.stats().trees[0].levels.iter().map(|level| level.tables).sum();
    /// assert_eq!(tables, 1);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn flush(&self) -> Result<()> {
        self.check()?;
        self.core().flush(Some(&self.inner))
    }

    /// Brings all data to the last level and waits for it. See
    /// [`Db::compact`](crate::Db::compact).
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"a", b"1")?;
    /// tree.delete_range(b"a", b"z")?;
    /// tree.compact()?; // nothing is left of either
    /// assert_eq!(tree.approximate_bytes(b"", None)?, 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn compact(&self) -> Result<()> {
        self.check()?;
        self.core().compact(&self.inner, Manual::default())
    }

    /// Brings the keys from `lower` up to, not including, `upper` to the last level and waits for
    /// it; `None` goes to the end. Tables that reach over the bounds are compacted whole.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"2025-12-31", b"")?;
    /// tree.delete_range(b"2025", b"2026")?;
    /// tree.compact_range(b"2025", Some(b"2026"))?; // its space is free now
    /// assert_eq!(tree.approximate_bytes(b"2025", Some(b"2026"))?, 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn compact_range(&self, lower: &[u8], upper: Option<&[u8]>) -> Result<()> {
        self.check()?;
        let (lower, upper) = (Some(lower.to_vec()), upper.map(<[u8]>::to_vec));
        self.core().compact(&self.inner, Manual { lower, upper, for_room: false })
    }

    /// How many rows have keys from `lower` up to, not including, `upper` (`None` goes to the end),
    /// as of now. It is for the choice between plans of a query, not for answers.
    ///
    /// Up to `exact_max` rows are counted (some hundreds are cheap), unless many old versions and
    /// deletes are in the way. More are estimated, mostly to a tenth or two, from indexes, filters
    /// and some entries. With 0 that is done however few there are, unless counting them costs
    /// less. The cost is bounded: a few dozen blocks at most are read, whatever the range.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// for key in 0..10_000u32 {
    ///     tree.put(&key.to_be_bytes(), b"value")?;
    /// }
    /// let key = |key: u32| key.to_be_bytes();
    /// let few = tree.estimate_rows(&key(10), Some(&key(30)), 100)?;
    /// assert!(few.exact && few.rows == 20);
    /// let half = tree.estimate_rows(&key(5_000), None, 100)?;
    /// assert!(!half.exact && (2_500..10_000).contains(&half.rows));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn estimate_rows(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        exact_max: u64,
    ) -> Result<RowEstimate> {
        self.check()?;
        let (state, seq) = self.read_view(None)?;
        read::estimate_rows(&state, lower, upper, seq, exact_max)
    }

    /// Whether a transaction that has not ended, a prepared one too, has an exclusive lock here or
    /// one to write: a scan that locks all rows shared would wait for it. Batches and optimistic
    /// transactions have no locks before they commit. Costs a walk through the locks of this tree.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.get_for_share(&tree, b"a")?;
    /// assert!(!tree.is_locked()?);
    /// txn.put(&tree, b"a", b"1")?;
    /// assert!(tree.is_locked()?);
    /// txn.commit(shaledb::WriteOptions::default())?;
    /// assert!(!tree.is_locked()?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn is_locked(&self) -> Result<bool> {
        self.check()?;
        self.core().guard.check_process()?;
        Ok(self.core().locks.is_locked(self.id()))
    }

    /// About how many bytes of table files, compressed, hold the keys from `lower` up to, not
    /// including, `upper`; `None` goes to the end. Right to about a block at either end for each
    /// table. Memtables and blob files do not count.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"a", &[7; 1000])?;
    /// tree.flush()?;
    /// assert!(tree.approximate_bytes(b"a", Some(b"b"))? > 0);
    /// assert_eq!(tree.approximate_bytes(b"b", None)?, 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn approximate_bytes(&self, lower: &[u8], upper: Option<&[u8]>) -> Result<u64> {
        self.check()?;
        let version = self.read_view(None)?.0.version.clone();
        version.approximate_bytes(lower, upper)
    }
}
