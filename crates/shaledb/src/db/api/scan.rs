//! Scans of a tree: from what the caller asks for to a [`Scan`] of what is visible now or was then.

use super::snapshot::Snapshot;
use super::tree::Tree;
use crate::base::activity::Activity;
use crate::base::error::Result;
use crate::base::key::prefix_end;
use crate::base::stats::Counter;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::db::core::Core;
use crate::fs::meter::Meter;
use crate::read::{BlobSource, Scan, ScanRange, WriteSetSources};
use crate::state::TreeState;
use crate::table::CursorOptions;
use std::ops::{Bound, RangeBounds};

/// What a scan covers and how it reads; for [`Tree::scan_with`](crate::Tree::scan_with).
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// # for key in [b"a1", b"a2", b"b1"] { tree.put(key, b"")?; }
/// use shaledb::ScanOptions;
///
/// let options = ScanOptions {
///     prefix: Some(b"a".to_vec()),
///     lower: Some(b"a2".to_vec()),
///     fill_cache: false,
///     ..ScanOptions::default()
/// };
/// let keys: Vec<_> = tree.scan_with(options)?.map(|row| row.unwrap().0).collect();
/// assert_eq!(keys, [b"a2"]);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScanOptions<'a> {
    /// The smallest key that may be seen; `None` starts at the beginning. Default `None`.
    pub lower: Option<Vec<u8>>,
    /// The smallest key that may no longer be seen; `None` goes to the end. Default `None`. A scan
    /// whose bounds leave nothing in between has no rows.
    pub upper: Option<Vec<u8>>,
    /// Only keys with this prefix (inside the bounds, if there are any). Default `None`.
    pub prefix: Option<Vec<u8>>,
    /// The moment to read at; `None`, the default, is when the scan is made.
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
    state: Arc<TreeState>,
}

impl BlobSource for PinnedBlobs {
    fn read(&self, reference: &[u8]) -> Result<Vec<u8>> {
        BlobSource::read(&*self.core, reference)
    }

    fn is_closed(&self) -> bool {
        self.core.ended.load(Ordering::Relaxed)
    }

    fn is_of(&self, state: &TreeState) -> bool {
        std::ptr::eq(&raw const *self.state, state)
    }

    fn note_dead(&self, count: u64) {
        self.core.note_dead(&self.state.active, count);
    }

    fn meter(&self) -> Option<&Meter> {
        Some(&self.core.tables.meter)
    }
}

impl ScanOptions<'_> {
    /// The bounds and the prefix as bounds.
    pub(in crate::db) fn into_bounds(self) -> (Vec<u8>, Option<Vec<u8>>) {
        let (mut lower, mut upper) = (self.lower.unwrap_or_default(), self.upper);
        if let Some(prefix) = self.prefix {
            upper = match (upper, prefix_end(&prefix)) {
                (Some(upper), Some(end)) => Some(upper.min(end)),
                (upper, end) => upper.or(end),
            };
            lower = lower.max(prefix);
        }
        (lower, upper)
    }
}

impl Tree {
    /// A scan of a range of keys, as of now. It is at no row until it is sought; as an iterator it
    /// starts at the first. It reads tables as it comes to them, and keeps what it reads from being
    /// removed as long as it lives.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// let tree = db.tree_or_create("fruit")?;
    /// for key in ["apple", "banana", "cherry"] {
    ///     tree.put(key.as_bytes(), b"")?;
    /// }
    /// let keys: shaledb::Result<Vec<_>> =
    ///     tree.scan("b".."d")?.map(|row| row.map(|(key, _)| key)).collect();
    /// assert_eq!(keys?, [b"banana".to_vec(), b"cherry".to_vec()]);
    ///
    /// let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_last()?;
    /// assert_eq!(scan.key(), b"cherry");
    /// # Ok::<(), shaledb::Error>(())
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
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in ["user/1", "user/2", "video/1"] { tree.put(key.as_bytes(), b"")?; }
    /// assert_eq!(tree.scan_prefix(b"user/")?.count(), 2);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn scan_prefix(&self, prefix: &[u8]) -> Result<Scan> {
        self.scan_with(ScanOptions { prefix: Some(prefix.to_vec()), ..ScanOptions::default() })
    }

    /// A scan as the options say.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if the snapshot is of another
    /// database.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// use shaledb::ScanOptions;
    ///
    /// let snapshot = db.snapshot();
    /// tree.put(b"later", b"")?;
    /// let options = ScanOptions { snapshot: Some(&snapshot), ..ScanOptions::default() };
    /// assert_eq!(tree.scan_with(options)?.count(), 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn scan_with(&self, options: ScanOptions<'_>) -> Result<Scan> {
        self.scan_as(options, None)
    }

    /// As [`Tree::scan_with`], with the writes of the reader's own transaction on top.
    pub(in crate::db) fn scan_as(
        &self,
        options: ScanOptions<'_>,
        write_set: Option<WriteSetSources>,
    ) -> Result<Scan> {
        self.check()?;
        let _measured = self.core().tables.meter.scope(Activity::ScanOpen, Counter::Scans);
        let snapshot = options.snapshot;
        if let Some(snapshot) = snapshot {
            self.check_snapshot(snapshot)?;
        }
        // Only borrowed until the scan is open: the state is counted once, for what pins it.
        let (state, seq) = self.read_view(snapshot)?;
        let cursor = CursorOptions { fill_cache: options.fill_cache, ..CursorOptions::default() };
        let (lower, upper) = options.into_bounds();
        let range = ScanRange { lower, upper, cursor };
        Scan::with_write_set(&state, write_set, range, seq, self.pinned(&state))
    }

    fn pinned(&self, state: &Arc<TreeState>) -> Arc<PinnedBlobs> {
        Arc::new(PinnedBlobs { core: self.core().clone(), state: Arc::clone(state) })
    }

    /// Makes `scan` what [`Tree::scan_as`] would make for other bounds, and otherwise as the scan
    /// was made. If it reads the same as then, its cursors are kept: the third time that bounds
    /// are asked for they become those of the whole tree, and are bound to each from then on. (Many
    /// statements ask for two ranges, for which that would not be earned back.)
    pub(in crate::db) fn scan_again(
        &self,
        scan: &mut Scan,
        (lower, upper): (&[u8], Option<&[u8]>),
        snapshot: Option<&Snapshot>,
        write_set: Option<WriteSetSources>,
    ) -> Result<()> {
        scan.leave_row();
        self.check()?;
        let _measured = self.core().tables.meter.scope(Activity::ScanOpen, Counter::Scans);
        if let Some(snapshot) = snapshot {
            self.check_snapshot(snapshot)?;
        }
        let (state, seq) = self.read_view(snapshot)?;
        let same = scan.reads(&state, seq, write_set.as_ref());
        if same && scan.is_of_whole_tree() {
            scan.bind((lower, upper), write_set.map(|own| own.writes));
            return Ok(());
        }
        let (lower, upper) = (lower.to_vec(), upper.map(<[u8]>::to_vec));
        let range = ScanRange { lower, upper, cursor: scan.options() };
        let for_many = same && scan.is_made_again();
        let make = if for_many { Scan::of_whole_tree } else { Scan::with_write_set };
        *scan = make(&state, write_set, range, seq, self.pinned(&state))?.made_again(same);
        Ok(())
    }
}
