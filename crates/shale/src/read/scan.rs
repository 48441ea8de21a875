//! A range of a tree, row by row, in both directions.
//!
//! A [`Scan`] is a stack of cursors: one for each memtable, each table of level 0 and each level
//! below it that meets the range; a merge of those; and the view of one reader on that. Every
//! layer is known by type, so a row costs no virtual call, and nothing is read before the first
//! seek. A scan owns what it reads: memtables and tables stay until it is dropped.

use super::value::BlobSource;
use crate::base::activity::Activity;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{Kind, SEQ_MAX, SeqNo, common_prefix};
use crate::base::stats::Counter;
use crate::base::sync::Arc;
use crate::iter::concat::{Concat, Run};
use crate::iter::{Merge, OwnWrites, Source, Visible};
use crate::memtable::{MemCursor, Memtable};
use crate::state::TreeState;
use crate::table::meta::TableMeta;
use crate::table::{CursorOptions, Table, TableCursor};
use std::cell::OnceCell;

/// What part of a tree to scan, and how.
#[derive(Clone, Debug)]
pub struct ScanRange {
    /// The first key that may be seen.
    pub lower: Vec<u8>,
    /// The first key that may no longer be seen; `None`: there is no such bound.
    pub upper: Option<Vec<u8>>,
    /// How to read the tables.
    pub cursor: CursorOptions,
}

/// One source of a scan. Large, but a hop to the heap on every step would cost more.
enum ScanSource {
    Memtable { cursor: MemCursor, max_seq: SeqNo },
    Table { cursor: TableCursor, max_seq: SeqNo },
    Run(Concat<TableCursor>),
}

/// Calls a method of whichever cursor it is.
macro_rules! each {
    ($self:ident, $cursor:ident => $call:expr) => {
        match $self {
            ScanSource::Memtable { cursor: $cursor, .. } => $call,
            ScanSource::Table { cursor: $cursor, .. } => $call,
            ScanSource::Run($cursor) => $call,
        }
    };
}

impl Cursor for ScanSource {
    #[inline]
    fn valid(&self) -> bool {
        each!(self, cursor => cursor.valid())
    }
    fn seek_first(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_first())
    }
    fn seek_last(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_last())
    }
    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        each!(self, cursor => cursor.seek(key, seq))
    }
    fn seek_back(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        each!(self, cursor => cursor.seek_back(key, seq))
    }
    #[inline]
    fn next(&mut self) -> Result<()> {
        each!(self, cursor => cursor.next())
    }
    #[inline]
    fn prev(&mut self) -> Result<()> {
        each!(self, cursor => cursor.prev())
    }
    #[inline]
    fn key(&self) -> &[u8] {
        each!(self, cursor => cursor.key())
    }
    #[inline]
    fn seq(&self) -> SeqNo {
        each!(self, cursor => cursor.seq())
    }
    #[inline]
    fn kind(&self) -> Kind {
        each!(self, cursor => cursor.kind())
    }
    #[inline]
    fn value(&self) -> &[u8] {
        each!(self, cursor => cursor.value())
    }
}

impl Source for ScanSource {
    fn max_seq(&self) -> SeqNo {
        match self {
            ScanSource::Memtable { max_seq, .. } | ScanSource::Table { max_seq, .. } => *max_seq,
            ScanSource::Run(concat) => concat.max_seq(),
        }
    }
    fn skip_to(&mut self, key: &[u8], below: SeqNo) -> Result<bool> {
        if let ScanSource::Run(concat) = self {
            return concat.skip_to(key, below);
        }
        let old = self.max_seq() < below;
        if old {
            self.seek(key, SEQ_MAX)?;
        }
        Ok(old)
    }
    fn skip_back_to(&mut self, key: &[u8], below: SeqNo) -> Result<bool> {
        if let ScanSource::Run(concat) = self {
            return concat.skip_back_to(key, below);
        }
        let old = self.max_seq() < below;
        if old {
            self.seek_back(key, SEQ_MAX)?;
        }
        Ok(old)
    }
}

/// What the keys of a range are known to begin with: the longer of what the bounds have in common
/// and what the key ranges of the tables have in common.
struct Prefix<'a> {
    bounds: &'a [u8],
    tables: Option<&'a [u8]>,
}

impl<'a> Prefix<'a> {
    fn new(range: &'a ScanRange) -> Prefix<'a> {
        let shared = range.upper.as_ref().map_or(0, |upper| common_prefix(&range.lower, upper));
        Prefix { bounds: &range.lower[..shared], tables: None }
    }

    /// Takes a table's key range into account.
    fn add(&mut self, meta: &'a TableMeta) {
        for key in [&meta.smallest, &meta.largest] {
            let shared = self.tables.unwrap_or(key);
            self.tables = Some(&shared[..common_prefix(shared, key)]);
        }
    }

    fn get(&self) -> &'a [u8] {
        let tables = self.tables.unwrap_or_default();
        if tables.len() > self.bounds.len() { tables } else { self.bounds }
    }
}

/// Adds cursors for those tables of a level that meet the range: one for each in level 0, where
/// tables overlap, and one for all together elsewhere.
fn add_level<'a>(
    sources: &mut Vec<ScanSource>,
    prefix: &mut Prefix<'a>,
    state: &'a TreeState,
    level: usize,
    range: &ScanRange,
) {
    let tables = state.version.levels[level].tables();
    let begins_after = |table: &Arc<Table>| {
        range.upper.as_ref().is_some_and(|upper| table.meta.smallest >= *upper)
    };
    let single = |table: &Arc<Table>| ScanSource::Table {
        cursor: table.cursor(range.cursor),
        max_seq: table.meta.max_seq,
    };
    if level == 0 {
        let before = |table: &Arc<Table>| table.meta.is_before(&range.lower);
        for table in tables.iter().filter(|table| !before(table) && !begins_after(table)) {
            prefix.add(&table.meta);
            sources.push(single(table));
        }
        return;
    }
    if tables.is_empty() {
        return;
    }
    let first = state.version.levels[level].position(&range.lower);
    let after = first + tables[first..].partition_point(|table| !begins_after(table));
    match &tables[first..after] {
        [] => {}
        [table] => {
            prefix.add(&table.meta);
            sources.push(single(table));
        }
        [left, .., right] => {
            prefix.add(&left.meta);
            prefix.add(&right.meta);
            let level = Arc::clone(&state.version.levels[level]);
            let run = Run::Level { level, range: first..after };
            sources.push(ScanSource::Run(Concat::new(run, range.cursor)));
        }
    }
}

/// A cursor over the rows of a range, of one moment: what is committed later is not seen. Not at a
/// row until one of the four seeks; as an iterator it begins with the first row by itself.
///
/// After an error it is at no row, and can be sought again.
///
/// ```
/// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
/// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
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
/// # Ok::<(), shale::Error>(())
/// ```
pub struct Scan {
    rows: Visible<ScanSource>,
    blobs: Arc<dyn BlobSource>,
    /// The row's large value, once it has been read.
    blob: OnceCell<Vec<u8>>,
    progress: Progress,
    steps: Steps,
}

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
        Scan::with_own(state, None, range, seq, blobs)
    }

    /// As [`Scan::new`], with the reader's own writes: their memtable, and which are seen.
    #[doc(hidden)]
    pub fn with_own(
        state: &TreeState,
        own: Option<(&Memtable, OwnWrites)>,
        range: ScanRange,
        seq: SeqNo,
        blobs: Arc<dyn BlobSource>,
    ) -> Result<Scan> {
        let mut deletes = Vec::new();
        let mut sources = Vec::new();
        if let Some((memtable, writes)) = &own {
            sources.push(ScanSource::Memtable { cursor: memtable.cursor(), max_seq: writes.last });
        }
        for memtable in state.memtables() {
            if memtable.has_range_deletes() {
                deletes.push(memtable.range_deletes());
            }
            // What is inserted from now on is newer than `seq`, and not seen.
            if memtable.is_empty() {
                continue;
            }
            let max_seq = memtable.last_seq();
            sources.push(ScanSource::Memtable { cursor: memtable.cursor(), max_seq });
        }
        if state.version.has_range_deletes() {
            deletes.push(Arc::clone(state.version.range_deletes()?));
        }
        let mut prefix = Prefix::new(&range);
        for level in 0..state.version.levels.len() {
            add_level(&mut sources, &mut prefix, state, level, &range);
        }
        let due = blobs.meter().map_or(0, |meter| meter.recorder().take_due(Activity::ScanStep));
        let steps = Steps::until(due);
        let merge = Merge::new(sources).with_prefix(prefix.get());
        let mut rows = Visible::new(merge, seq, deletes, range.lower, range.upper);
        if let Some((_, writes)) = own {
            rows = rows.with_own(writes);
        }
        Ok(Scan { rows, blobs, blob: OnceCell::new(), progress: Progress::New, steps })
    }

    /// Makes a seek, measured and counted.
    fn measured_seek(
        &mut self,
        seek: impl FnOnce(&mut Visible<ScanSource>) -> Result<()>,
    ) -> Result<()> {
        self.leave();
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
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_first()?;
    /// assert_eq!(scan.key(), b"a");
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn seek_first(&mut self) -> Result<()> {
        self.measured_seek(Visible::seek_first)
    }

    /// Goes to the last row.
    ///
    /// ```
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_last()?;
    /// assert_eq!(scan.key(), b"c");
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn seek_last(&mut self) -> Result<()> {
        self.measured_seek(Visible::seek_last)
    }

    /// Goes to the first row at or after `key` (and inside the bounds of the scan).
    ///
    /// ```
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek(b"aa")?;
    /// assert_eq!(scan.key(), b"b");
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.measured_seek(|rows| rows.seek(key))
    }

    /// Goes to the last row at or before `key` (and inside the bounds of the scan).
    ///
    /// ```
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_back(b"bb")?;
    /// assert_eq!(scan.key(), b"b");
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn seek_back(&mut self, key: &[u8]) -> Result<()> {
        self.measured_seek(|rows| rows.seek_back(key))
    }

    /// Goes to the next row, or to none after the last; nothing happens if there is no current one.
    ///
    /// ```
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek(b"b")?;
    /// scan.next()?;
    /// assert_eq!(scan.key(), b"c");
    /// scan.next()?;
    /// assert!(!scan.valid());
    /// # Ok::<(), shale::Error>(())
    /// ```
    #[expect(clippy::should_implement_trait, reason = "a cursor first; the iterator is on top")]
    #[inline]
    pub fn next(&mut self) -> Result<()> {
        self.leave();
        if self.steps.is_due() {
            return self.measured_step(Visible::next);
        }
        self.rows.next()
    }

    /// Goes to the previous row, or to none before the first; nothing happens if there is no
    /// current one.
    ///
    /// ```
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_last()?;
    /// scan.prev()?;
    /// assert_eq!(scan.key(), b"b");
    /// # Ok::<(), shale::Error>(())
    /// ```
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        self.leave();
        if self.steps.is_due() {
            return self.measured_step(Visible::prev);
        }
        self.rows.prev()
    }

    /// Whether there is a current row.
    ///
    /// ```
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// assert!(!scan.valid()); // not sought yet
    /// scan.seek(b"b")?;
    /// assert!(scan.valid());
    /// scan.seek(b"x")?; // after the last row
    /// assert!(!scan.valid());
    /// # Ok::<(), shale::Error>(())
    /// ```
    #[inline]
    pub fn valid(&self) -> bool {
        self.rows.valid()
    }

    /// The row's key. To be asked for only while [`Scan::valid`]; otherwise it panics or gives
    /// some key that is not of the scan.
    ///
    /// ```
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_first()?;
    /// assert_eq!(scan.key(), b"a");
    /// # Ok::<(), shale::Error>(())
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
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b", b"c"] { tree.put(key, b"1")?; }
    /// # let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_first()?;
    /// assert_eq!(scan.value()?, b"1");
    /// # Ok::<(), shale::Error>(())
    /// ```
    #[inline]
    pub fn value(&self) -> Result<&[u8]> {
        if self.rows.kind() == Kind::Blob { self.large_value() } else { Ok(self.rows.value()) }
    }

    #[cold]
    fn large_value(&self) -> Result<&[u8]> {
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
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"small", b"1")?;
    /// tree.put(b"video", &vec![7; 2 << 20])?;
    /// let mut scan = tree.scan::<&[u8]>(..)?;
    /// scan.seek_first()?;
    /// assert!(scan.blob_ref().is_none());
    /// scan.next()?;
    /// assert!(scan.blob_ref().is_some()); // `Tree::get_reader` reads it in parts
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn blob_ref(&self) -> Option<&[u8]> {
        (self.rows.kind() == Kind::Blob).then(|| self.rows.value())
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
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
