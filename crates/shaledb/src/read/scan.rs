//! A range of a tree, row by row, in both directions.
//!
//! A [`Scan`] is a stack of cursors: one for each memtable, each table of level 0 and each level
//! below it that meets the range; a merge of those; and the view of one reader on that. Every
//! layer is known by type, so a row costs no virtual call, and nothing is read before the first
//! seek. A scan owns what it reads: memtables and tables stay until it is dropped.

use super::sources::{self, ScanRange, ScanSource};
use super::value::BlobSource;
use super::write_set::WriteSetSources;
use crate::base::activity::Activity;
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SEQ_MAX, SeqNo, common_prefix};
use crate::base::stats::Counter;
use crate::base::sync::Arc;
use crate::iter::{Visible, WriteSetView};
use crate::memtable::Memtable;
use crate::state::TreeState;
use crate::table::CursorOptions;
use crate::version::Level;
use std::cell::OnceCell;

/// A cursor over the rows of a range, of one moment: what is committed later is not seen. Not at a
/// row until one of the four seeks; as an iterator it begins with the first row by itself.
///
/// After an error it is at no row, and can be sought again.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
/// let mut scan = tree.scan::<&[u8]>(..)?;
/// scan.seek(b"b")?; // as a cursor, without copying rows
/// while scan.valid() {
///     println!("{} {}", scan.key().escape_ascii(), scan.value()?.escape_ascii());
///     scan.next()?;
/// }
///
/// for row in tree.scan::<&[u8]>(..)? {
///     let (key, value) = row?; // as an iterator, of copies
/// #   assert_eq!((key.len(), value.len()), (1, 1));
/// }
/// # Ok::<(), shaledb::Error>(())
/// ```
pub struct Scan {
    rows: Visible<ScanSource>,
    blobs: Arc<dyn BlobSource>,
    /// The row's large value, once it has been read.
    blob: OnceCell<Vec<u8>>,
    progress: Progress,
    steps: Steps,
    sources: Sources,
}

/// What a scan's sources are of.
struct Sources {
    options: CursorOptions,
    /// The reader's own writes: in memory, and what did not fit.
    own: Option<(Arc<Memtable>, Vec<Arc<Level>>)>,
    /// If they are of all keys: what those of tables begin with.
    whole: Option<Vec<u8>>,
    /// Whether the scan was made in the place of one that read the same.
    again: bool,
}

/// Of how many sources a scan keeps cursors that its range does not need.
const KEPT_MOST: usize = 32;

/// So many dead entries that were passed are not told of: where there are few, no scan writes to
/// what all threads share.
const FEW_DEAD: u64 = 8;

/// Counts steps down to the next one that is to be measured: a step is too short for a look at
/// what belongs to the thread.
#[derive(Clone, Copy)]
struct Steps {
    /// How many steps until the one to be measured, that one included.
    due: u32,
    /// What `due` was when steps were counted last.
    counted_at: u32,
}

impl Steps {
    fn until(due: u32) -> Steps {
        Steps { due, counted_at: due }
    }

    /// Whether the step to come is to be measured.
    #[inline]
    fn is_due(&mut self) -> bool {
        self.due = self.due.wrapping_sub(1);
        self.due == 0
    }

    /// The steps since they were counted last.
    fn uncounted(self) -> u64 {
        self.counted_at.wrapping_sub(self.due).into()
    }
}

/// What the iterator's next call has to do first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The scan was never positioned: go to the first row.
    New,
    /// The current row was not yielded.
    Fresh,
    /// The current row was yielded: go on to the next.
    Yielded,
}

impl Scan {
    /// A scan of `range` in `state` as a reader at `seq` sees it.
    #[doc(hidden)]
    pub fn new(
        state: &TreeState,
        range: ScanRange,
        seq: SeqNo,
        blobs: Arc<dyn BlobSource>,
    ) -> Result<Scan> {
        Scan::with_write_set(state, None, range, seq, blobs)
    }

    /// As [`Scan::new`], with the reader's own writes.
    #[doc(hidden)]
    pub fn with_write_set(
        state: &TreeState,
        write_set: Option<WriteSetSources>,
        range: ScanRange,
        seq: SeqNo,
        blobs: Arc<dyn BlobSource>,
    ) -> Result<Scan> {
        let (merge, deletes) = sources::open(state, write_set.as_ref(), &range)?;
        let due = blobs.meter().map_or(0, |meter| meter.recorder().take_due(Activity::ScanStep));
        let steps = Steps::until(due);
        // Of nothing that is in an empty one by now.
        let first = state.active.first_seq().unwrap_or(SEQ_MAX);
        let mut rows =
            Visible::new(merge, seq, deletes, range.lower, range.upper).count_dead(first);
        let mut sources = Sources { options: range.cursor, own: None, whole: None, again: false };
        if let Some(WriteSetSources { memtable, runs, writes }) = write_set {
            rows = rows.with_write_set(writes);
            sources.own = Some((memtable, runs));
        }
        Ok(Scan { rows, blobs, blob: OnceCell::new(), progress: Progress::New, steps, sources })
    }

    /// As [`Scan::with_write_set`], but with sources of all keys if they are not too many: it can
    /// be bound to other ranges.
    pub(crate) fn of_whole_tree(
        state: &TreeState,
        write_set: Option<WriteSetSources>,
        range: ScanRange,
        seq: SeqNo,
        blobs: Arc<dyn BlobSource>,
    ) -> Result<Scan> {
        if sources::most_sources(state, write_set.as_ref()) > KEPT_MOST {
            return Scan::with_write_set(state, write_set, range, seq, blobs);
        }
        let own = write_set.as_ref().map(|own| own.writes.clone());
        let all = ScanRange { lower: Vec::new(), upper: None, cursor: range.cursor };
        let mut scan = Scan::with_write_set(state, write_set, all, seq, blobs)?;
        scan.sources.whole = Some(scan.rows.prefix().to_vec());
        scan.bind((&range.lower, range.upper.as_deref()), own);
        Ok(scan)
    }

    /// Whether a scan made now by [`Scan::with_write_set`] of these would read from the very same
    /// as this one. Range deletes of the reader himself are not the same.
    pub(crate) fn reads(
        &self,
        state: &TreeState,
        seq: SeqNo,
        write_set: Option<&WriteSetSources>,
    ) -> bool {
        let (reader, own) = self.rows.reader();
        let same_own = match (&self.sources.own, write_set) {
            (None, None) => true,
            (Some((memtable, runs)), Some(now)) => {
                Arc::ptr_eq(memtable, &now.memtable)
                    && runs.len() == now.runs.len()
                    && runs.iter().zip(&now.runs).all(|(run, now)| Arc::ptr_eq(run, now))
                    && own.is_some_and(|own| own.deletes.is_empty())
                    && now.writes.deletes.is_empty()
            }
            _ => false,
        };
        same_own && seq == reader && self.blobs.is_of(state)
    }

    /// Notes whether it was made in the place of one that read the same.
    pub(crate) fn made_again(mut self, again: bool) -> Scan {
        self.sources.again = again;
        self
    }

    /// Whether it was.
    pub(crate) fn is_made_again(&self) -> bool {
        self.sources.again
    }

    /// Whether it can be bound to another range.
    pub(crate) fn is_of_whole_tree(&self) -> bool {
        self.sources.whole.is_some()
    }

    /// How its tables are read.
    pub(crate) fn options(&self) -> CursorOptions {
        self.sources.options
    }

    /// Makes it a scan of another range, of what it reads already. `writes`: what is seen by now of
    /// the reader's own writes.
    pub(crate) fn bind(
        &mut self,
        (lower, upper): (&[u8], Option<&[u8]>),
        writes: Option<WriteSetView>,
    ) {
        self.leave_row();
        self.tell_dead();
        let shared = upper.map_or(0, |upper| common_prefix(lower, upper));
        let prefix = self.sources.whole.as_deref().expect("it is of all keys");
        let prefix = if shared > prefix.len() { &lower[..shared] } else { prefix };
        let own = self.sources.own.as_ref().map_or(0, |(_, runs)| 1 + runs.len());
        let last = writes.as_ref().map(|writes| writes.last);
        let children = self.rows.rebind((lower, upper), writes, prefix);
        if let (Some(last), Some(ScanSource::Memtable { max_seq, .. })) =
            (last, children.first_mut())
        {
            *max_seq = last;
        }
        sources::bind(children, own, lower, upper);
        self.progress = Progress::New;
    }

    /// Leaves the row that it is at.
    pub(crate) fn leave_row(&mut self) {
        self.leave();
        self.rows.leave();
    }

    /// Makes a seek, measured and counted.
    fn measured_seek(
        &mut self,
        seek: impl FnOnce(&mut Visible<ScanSource>) -> Result<()>,
    ) -> Result<()> {
        self.leave();
        self.tell_dead();
        if self.blobs.is_closed() {
            return Err(self.end());
        }
        let Some(meter) = self.blobs.meter() else { return seek(&mut self.rows) };
        let started = meter.begin_and_count(Activity::Seek, Counter::Seeks);
        seek(&mut self.rows)?;
        meter.end(Activity::Seek, started);
        Ok(())
    }

    #[cold]
    fn measured_step(
        &mut self,
        step: impl FnOnce(&mut Visible<ScanSource>) -> Result<()>,
    ) -> Result<()> {
        let Some(meter) = self.blobs.meter() else { return step(&mut self.rows) };
        meter.recorder().add(Counter::ScanSteps, self.steps.uncounted());
        let (started, due) = meter.begin_taken(Activity::ScanStep);
        self.steps = Steps::until(due);
        step(&mut self.rows)?;
        meter.end(Activity::ScanStep, started);
        Ok(())
    }

    /// Tells of the dead entries that were passed since it did.
    #[inline]
    fn tell_dead(&mut self) {
        let dead = self.rows.dead();
        if *dead > FEW_DEAD {
            self.blobs.note_dead(std::mem::take(dead));
        }
    }

    /// Ends a scan of a database that has been closed.
    #[cold]
    fn end(&mut self) -> Error {
        self.rows.leave();
        Error::Closed
    }

    /// The row is about to change.
    #[inline]
    fn leave(&mut self) {
        self.progress = Progress::Fresh;
        if self.blob.get().is_some() {
            self.blob = OnceCell::new();
        }
    }

    /// Goes to the first row.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_first()?;
    /// assert_eq!(scan.key(), b"a");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn seek_first(&mut self) -> Result<()> {
        self.measured_seek(Visible::seek_first)
    }

    /// Goes to the last row.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_last()?;
    /// assert_eq!(scan.key(), b"c");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn seek_last(&mut self) -> Result<()> {
        self.measured_seek(Visible::seek_last)
    }

    /// Goes to the first row at or after `key` (and inside the bounds of the scan).
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek(b"aa")?;
    /// assert_eq!(scan.key(), b"b");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.measured_seek(|rows| rows.seek(key))
    }

    /// Goes to the last row at or before `key` (and inside the bounds of the scan).
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_back(b"bb")?;
    /// assert_eq!(scan.key(), b"b");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn seek_back(&mut self, key: &[u8]) -> Result<()> {
        self.measured_seek(|rows| rows.seek_back(key))
    }

    /// Goes to the next row, or to none after the last; nothing happens if there is no current one.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek(b"b")?;
    /// scan.next()?;
    /// assert_eq!(scan.key(), b"c");
    /// scan.next()?;
    /// assert!(!scan.valid());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    #[expect(clippy::should_implement_trait, reason = "a cursor first; the iterator is on top")]
    #[inline]
    pub fn next(&mut self) -> Result<()> {
        self.leave();
        if self.blobs.is_closed() {
            return Err(self.end());
        }
        if self.steps.is_due() {
            return self.measured_step(Visible::next);
        }
        self.rows.next()
    }

    /// Goes to the previous row, or to none before the first; nothing happens if there is no
    /// current one.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_last()?;
    /// scan.prev()?;
    /// assert_eq!(scan.key(), b"b");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        self.leave();
        if self.blobs.is_closed() {
            return Err(self.end());
        }
        if self.steps.is_due() {
            return self.measured_step(Visible::prev);
        }
        self.rows.prev()
    }

    /// Whether there is a current row.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// assert!(!scan.valid()); // not sought yet
    /// scan.seek(b"b")?;
    /// assert!(scan.valid());
    /// scan.seek(b"x")?; // after the last row
    /// assert!(!scan.valid());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    #[inline]
    pub fn valid(&self) -> bool {
        self.rows.valid()
    }

    /// The row's key. To be asked for only while [`Scan::valid`]; otherwise it panics or gives
    /// some key that is not of the scan.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_first()?;
    /// assert_eq!(scan.key(), b"a");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.rows.key()
    }

    /// The row's value; a large one is read from its file, whole, the first time it is asked for.
    /// Only while [`Scan::valid`], as [`Scan::key`].
    ///
    /// # Errors
    /// What reading a large value fails with; others do not fail.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_first()?;
    /// assert_eq!(scan.value()?, b"1");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    #[inline]
    pub fn value(&self) -> Result<&[u8]> {
        if self.rows.kind() == Kind::Blob { self.large_value() } else { Ok(self.rows.value()) }
    }

    #[cold]
    fn large_value(&self) -> Result<&[u8]> {
        debug_assert!(self.valid(), "the value is of a row");
        if let Some(value) = self.blob.get() {
            return Ok(value);
        }
        let value = self.blobs.read(self.rows.value())?;
        Ok(self.blob.get_or_init(|| value))
    }

    /// The reference to the row's value if it is a large one in a file of its own: so values can
    /// be told that [`Scan::value`] would have to read. Only while [`Scan::valid`], as
    /// [`Scan::key`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"small", b"1")?;
    /// tree.put(b"video", &vec![7; 2 << 20])?;
    /// let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_first()?;
    /// assert!(scan.blob_ref().is_none());
    /// scan.next()?;
    /// assert!(scan.blob_ref().is_some()); // `Tree::get_reader` reads it in parts
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn blob_ref(&self) -> Option<&[u8]> {
        (self.rows.kind() == Kind::Blob).then(|| self.rows.value())
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        self.tell_dead();
        if let Some(meter) = self.blobs.meter() {
            let Steps { due, .. } = self.steps;
            let (activity, counter) = (Activity::ScanStep, Counter::ScanSteps);
            let steps = self.steps.uncounted();
            meter.recorder().put_back_and_count(activity, due, counter, steps);
        }
    }
}

/// Key and value of every row from the current one on, or from the first if the scan was not
/// positioned yet. There is no current row after a failed step, so that the iterator ends.
impl Iterator for Scan {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let moved = match self.progress {
            Progress::New => self.seek_first(),
            Progress::Fresh => Ok(()),
            Progress::Yielded => Scan::next(self),
        };
        if let Err(error) = moved {
            return Some(Err(error));
        }
        if !self.valid() {
            return None;
        }
        self.progress = Progress::Yielded;
        Some(self.value().map(|value| (self.key().to_vec(), value.to_vec())))
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
