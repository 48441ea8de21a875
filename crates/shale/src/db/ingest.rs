//! Bulk load: sorted rows become tables of the tree directly.
//!
//! The rows are written once, as tables whose entries carry no sequence number. When the load is
//! finished they get one number, all the same, in the manifest: under the leader's lock, so that
//! nothing can be committed in between, and after memtables that hold keys of the same range have
//! been flushed, so that a newer place in the commit order always lies above an older one.

use super::blobs::NewBlob;
use super::core::{Core, Leader, TreeCore};
use super::install::Change;
use super::run_writer::RunWriter;
use super::tree::Tree;
use crate::base::error::{Error, Result};
use crate::base::key::{KEY_BYTES_MAX, Kind};
use crate::base::ranges::RangeDeletes;
use crate::base::stats::Counter;
use crate::base::sync::atomic::Ordering;
use crate::compaction::policy::LAST;
use crate::compaction::range::KeyRange;
use crate::table::BlobRef;
use crate::table::meta::TableMeta;
use crate::version::edit::TreeEdit;
use crate::version::{TreeId, Version};
use std::io::Read;
use std::sync::Arc;

/// A bulk load under way: rows in strictly ascending order of their keys. Nothing is visible
/// before [`Ingest::finish`], and then everything is; dropping it instead leaves no trace. It takes
/// little memory, however many rows there are. Rows replace those that the tree has of the same
/// keys.
///
/// ```
/// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
/// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
/// let tree = db.tree_or_create("squares")?;
/// let mut ingest = tree.ingest()?;
/// for n in 0..1000u32 {
///     ingest.add(&n.to_be_bytes(), &(n * n).to_le_bytes())?;
/// }
/// assert_eq!(ingest.finish()?, 1000);
/// assert_eq!(tree.get(&7u32.to_be_bytes())?.unwrap(), 49u32.to_le_bytes());
/// # Ok::<(), shale::Error>(())
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
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut ingest = tree.ingest()?;
    /// ingest.add(b"b", b"2")?;
    /// assert!(ingest.add(b"a", b"1").is_err());
    /// ingest.add(b"c", b"3")?;
    /// assert_eq!(ingest.finish()?, 2);
    /// # Ok::<(), shale::Error>(())
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
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut ingest = tree.ingest()?;
    /// let mut file = std::io::Cursor::new("any reader");
    /// assert_eq!(ingest.add_reader(b"text", &mut file)?, 10);
    /// ingest.finish()?;
    /// assert_eq!(tree.get(b"text")?.unwrap(), b"any reader");
    /// # Ok::<(), shale::Error>(())
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
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::InvalidArgument(format!(
                "a key of {} bytes is longer than {KEY_BYTES_MAX}",
                key.len()
            )));
        }
        match &self.last {
            Some(last) if key <= last.as_slice() => Err(Error::InvalidArgument(format!(
                "rows of a bulk load come in ascending order: `{}` is not after `{}`",
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
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut ingest = tree.ingest()?;
    /// ingest.add(b"a", b"1")?;
    /// assert!(!tree.contains(b"a")?);
    /// assert_eq!(ingest.finish()?, 1);
    /// assert!(tree.contains(b"a")?);
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn finish(mut self) -> Result<u64> {
        self.tree.check()?;
        self.core().check_writable()?;
        let Some(writer) = self.writer.take() else { return Ok(0) };
        let core = self.core().clone();
        let part = IngestPart { tree: self.tree.inner.clone(), tables: writer.finish()? };
        let bytes = part.tables.iter().map(|meta| meta.file_bytes).sum();
        core.ingest(&mut [part])?;
        self.blobs.clear();
        core.recorder.add_all([
            (Counter::IngestBytes, bytes),
            (Counter::UserBytes, self.user_bytes),
            (Counter::WriteOps, self.rows),
        ]);
        Ok(self.rows)
    }
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

/// What is to be ingested into one tree.
pub(crate) struct IngestPart {
    pub tree: Arc<TreeCore>,
    /// Tables in key order that do not overlap, whose entries have no numbers yet; durable, their
    /// names not yet, and called runs.
    pub tables: Vec<TableMeta>,
}

impl IngestPart {
    fn range(&self) -> Option<KeyRange> {
        let mut tables = self.tables.iter();
        let mut hull = KeyRange::of(tables.next()?);
        tables.for_each(|table| hull.extend(table));
        Some(hull)
    }
}

impl Core {
    /// Makes the tables visible and durable, of all trees at one place of the commit order. After
    /// an error nothing has changed, and the tables are gone.
    pub fn ingest(&self, parts: &mut [IngestPart]) -> Result<()> {
        let result = self.ingest_by(parts, |parts| {
            let mut leader = self.leader.lock();
            self.check_writable()?;
            self.lead_ingest(&mut leader, parts, None)
        });
        let left = parts.iter().flat_map(|part| &part.tables);
        self.discard_runs(&left.map(|meta| meta.id).collect::<Vec<_>>());
        result
    }

    /// As [`Core::ingest`], but the tables stay after an error; `lead` takes the leader's lock for
    /// [`Core::lead_ingest`].
    pub fn ingest_by(
        &self,
        parts: &mut [IngestPart],
        lead: impl FnOnce(&mut [IngestPart]) -> Result<()>,
    ) -> Result<()> {
        // Taken in order, so that two who ingest do not wait for each other.
        parts.sort_by_key(|part| part.tree.id);
        for part in &*parts {
            // Flushing without the lock first keeps the time under the lock short.
            self.flush(Some(&part.tree))?;
        }
        // Before the leader's lock, since a flush that runs may need that lock to come to its end.
        let mut held = HeldFlushes { core: self, trees: Vec::new() };
        for part in &*parts {
            held.add(part.tree.id)?;
        }
        lead(parts)
    }

    /// Puts tables in force under the leader's lock, and takes those out of `parts` that are.
    /// Nobody flushes their trees meanwhile. `decided` is a prepared transaction whose tables these
    /// are.
    pub fn lead_ingest(
        &self,
        leader: &mut Leader,
        parts: &mut [IngestPart],
        decided: Option<&[u8]>,
    ) -> Result<()> {
        let trees: Vec<&TreeCore> = parts.iter().map(|part| &*part.tree).collect();
        self.seal(leader, trees.iter().copied());
        if trees.iter().any(|tree| !tree.state.load().sealed.is_empty()) {
            // With the log durable the flush does not ask for the lock that is held here.
            let through = leader.next_seq - 1;
            self.sync_log(leader, through)?;
            self.run_flush(&trees)?;
        }
        self.name_tables(parts.iter().flat_map(|part| &part.tables))?;
        let seq = leader.next_seq;
        // A log whose numbers have a gap would count as damaged: the number gets a record.
        // And everything before it must be durable, since the ingest will be.
        self.append_nothing(leader)?;
        self.sync_log(leader, seq)?;
        let mut changes = Vec::new();
        let mut held: Vec<(TreeId, usize, KeyRange)> = Vec::new();
        for part in &mut *parts {
            let Some(range) = part.range() else { continue };
            for meta in &mut part.tables {
                (meta.ingest_seq, meta.min_seq, meta.max_seq) = (seq, seq, seq);
            }
            let level = self.hold_level(&part.tree, &range);
            held.push((part.tree.id, level, range));
            let edit = TreeEdit {
                tree: part.tree.id,
                added: part.tables.iter().map(|meta| (level, meta.clone())).collect(),
                removed: Vec::new(),
                flushed_seq: None,
            };
            changes.push(Change { tree: &part.tree, edit, flushed: &[] });
        }
        let publish = || self.visible.store(seq, Ordering::Release);
        let result = self.install_all(changes, decided, publish);
        if result.is_err() {
            // The number is used up in the log; what comes next goes on after it.
            self.visible.store(seq, Ordering::Release);
        }
        for (tree, level, range) in held {
            if let Some(busy) = self.sched.lock().busy.get_mut(&tree) {
                busy.release(level, &range);
            }
            self.sched.want_look(tree);
        }
        let installed = result?;
        for part in parts.iter_mut().filter(|part| installed.contains(&part.tree.id)) {
            part.tables.clear();
        }
        Ok(())
    }

    /// Chooses the level for rows of a range. A compaction that runs may be about to write keys of
    /// it to any level below 0, so the level is chosen, and held, under the scheduler's lock.
    fn hold_level(&self, tree: &TreeCore, range: &KeyRange) -> usize {
        let mut state = self.sched.lock();
        let busy = state.busy.entry(tree.id).or_default();
        let level = ingest_level(&tree.state.load().version, busy, range);
        busy.hold(level, range.clone());
        level
    }
}

/// Keeps others from flushing trees until it is dropped.
struct HeldFlushes<'a> {
    core: &'a Core,
    trees: Vec<TreeId>,
}

impl HeldFlushes<'_> {
    /// Waits until nobody flushes this tree and keeps others from it.
    fn add(&mut self, tree: TreeId) -> Result<()> {
        let core = self.core;
        loop {
            core.check_writable()?;
            let mut state = core.sched.lock();
            if state.flushing.insert(tree) {
                self.trees.push(tree);
                return Ok(());
            }
            drop(core.sched.wait_for_progress(state, std::time::Duration::from_millis(10)));
        }
    }
}

impl Drop for HeldFlushes<'_> {
    fn drop(&mut self) {
        let mut state = self.core.sched.lock();
        self.trees.iter().for_each(|tree| {
            state.flushing.remove(tree);
        });
        drop(state);
        self.core.sched.wake_all();
    }
}

/// The deepest level that ingested tables of this range can go to: nothing of the range may lie in
/// it, above it, or be on its way there.
fn ingest_level(
    version: &Version,
    busy: &crate::compaction::plan::Busy,
    range: &KeyRange,
) -> usize {
    let free = |level: usize| {
        let mut metas = version.levels[level].metas();
        !busy.writes(level, range) && !metas.any(|meta| range.overlaps_table(meta))
    };
    let mut best = 0;
    for level in 0..=LAST {
        if !free(level) {
            break;
        }
        best = level;
    }
    best
}
