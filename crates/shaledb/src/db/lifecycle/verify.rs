//! Reading and checking every byte of every file that the database needs: `CURRENT` and the
//! manifest, the log, tables and blobs (of trees, of memtables, of prepared transactions), and
//! marks.
//!
//! Files that nothing names are left alone: the next open for writing removes them.

use super::files::log_files;
use crate::base::cursor::Cursor;
use crate::base::error::{Error, Result};
use crate::base::key::Kind;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::db::core::{Core, PreparedWrites};
use crate::state::TreeState;
use crate::table::Table;
use crate::table::blob::{Blob, BlobRef};
use crate::table::format::{FileKind, list_files, parse_file_name};
use crate::table::meta::{FileId, TableMeta};
use crate::version::edit::LogStart;
use crate::version::manifest::{self, Recovered};
use crate::version::mark;
use crate::wal::{OpIter, ReplayStart, replay};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// How far a verification has come; see [`Db::verify`](crate::Db::verify).
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// # tree.put(b"a", b"1")?;
/// # db.flush()?;
/// let mut last = None;
/// db.verify(&mut |progress: shaledb::VerifyProgress| last = Some(progress))?;
/// let last = last.unwrap();
/// assert_eq!(last.bytes_done, last.bytes_total);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Serialize)]
pub struct VerifyProgress {
    /// Bytes read so far.
    pub bytes_done: u64,
    /// Bytes to read in all. It grows when entries turn out to refer to blob files.
    pub bytes_total: u64,
}

/// What a verification has found; see [`Db::verify`](crate::Db::verify).
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// tree.put(b"a", b"1")?;
/// tree.flush()?;
/// tree.put(b"b", b"2")?;
/// let report: shaledb::VerifyReport = db.verify(&mut |_| ())?;
/// assert_eq!((report.tables, report.entries), (1, 1));
/// assert_eq!(report.log_records, 2);
/// for damage in &report.damage {
///     eprintln!("{damage}"); // names file and offset
/// }
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Tables read, those of prepared transactions included.
    pub tables: u64,
    /// Blob files read.
    pub blobs: u64,
    /// Files of the log read.
    pub log_files: u64,
    /// Bytes of those.
    pub log_bytes: u64,
    /// Records in them.
    pub log_records: u64,
    /// Bytes at the ends of the manifest and of the log that are a record which was never
    /// completed, or zeros ahead of one: what a crash leaves, or a writer that is under way.
    /// Nothing that was promised is in them.
    pub unfinished_bytes: u64,
    /// Bytes read of all files.
    pub bytes: u64,
    /// Entries of tables checked, deletes included.
    pub entries: u64,
    /// What is wrong, if anything: one error a file, naming the file and the offset.
    #[serde(serialize_with = "as_texts")]
    pub damage: Vec<Error>,
}

impl VerifyReport {
    /// Damage is reported, and what the device cannot read; anything else ends the work.
    fn note(&mut self, error: Error) -> Result<()> {
        if !error.is_corruption() && !error.is_of_the_device() {
            return Err(error);
        }
        self.damage.push(error);
        Ok(())
    }
}

fn as_texts<S: serde::Serializer>(errors: &[Error], to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_seq(errors.iter().map(Error::to_string))
}

/// What references to blobs a run of entries has.
fn blob_refs(rows: &mut dyn Cursor, found: &mut Vec<BlobRef>) -> Result<()> {
    rows.seek_first()?;
    while rows.valid() {
        if rows.kind() == Kind::Blob {
            found.extend(BlobRef::decode(rows.value()));
        }
        rows.next()?;
    }
    Ok(())
}

/// How often the log is looked for again when files of it go meanwhile.
const LOG_TRIES: usize = 100;

/// What is to be read, and how far that has come.
struct Work<'a> {
    core: &'a Core,
    report: VerifyReport,
    progress: &'a mut dyn FnMut(VerifyProgress),
    bytes_total: u64,
    /// Files of blobs that are known, with the length of the value.
    seen: BTreeSet<(FileId, u64)>,
    blobs: Vec<(Arc<Blob>, BlobRef)>,
}

impl Core {
    pub fn verify(&self, progress: &mut dyn FnMut(VerifyProgress)) -> Result<VerifyReport> {
        self.check_open()?;
        let trees = self.trees.load_full();
        // Held to the end: they keep the files there.
        let states: Vec<_> = trees.by_id.values().map(|tree| tree.state.load_full()).collect();
        let tables = states.iter().flat_map(|state| state.version.tables());
        let report = VerifyReport::default();
        let mut work = Work {
            core: self,
            report,
            progress,
            bytes_total: tables.map(|(_, table)| table.meta.file_bytes).sum(),
            seen: BTreeSet::new(),
            blobs: Vec::new(),
        };
        let manifest = work.manifest()?;
        work.log(manifest.as_ref())?;
        for state in &states {
            work.tree(state)?;
        }
        work.prepared()?;
        for (blob, reference) in std::mem::take(&mut work.blobs) {
            work.blob(&blob, reference)?;
        }
        Ok(work.report)
    }
}

impl Work<'_> {
    fn read(&mut self, bytes: u64) {
        self.report.bytes += bytes;
        let (bytes_done, bytes_total) = (self.report.bytes, self.bytes_total);
        (self.progress)(VerifyProgress { bytes_done, bytes_total });
    }

    /// Reads `CURRENT` and the manifest, and compares this with the one in use if there is one.
    fn manifest(&mut self) -> Result<Option<Recovered>> {
        let core = self.core;
        let manifest_now = core.manifest.lock();
        let read = manifest::recover(&*core.env.fs, &core.dir);
        let in_use = manifest_now.as_ref().filter(|log| log.check().is_ok());
        let in_use = in_use.map(|log| log.catalog().snapshot());
        drop(manifest_now);
        match read {
            Ok(read) => {
                if in_use.is_some_and(|known| known != read.written) {
                    let path = core.path(FileKind::Manifest, read.manifest_id);
                    let what = "it does not say what was written to it";
                    self.report.note(Error::corruption(&path, 0, what))?;
                }
                self.report.unfinished_bytes += read.torn_bytes;
                self.bytes_total += read.bytes;
                self.read(read.bytes);
                Ok(Some(read))
            }
            Err(error) => self.report.note(error).map(|()| None),
        }
    }

    /// Reads the log as a recovery does. All that is visible now must be there.
    fn log(&mut self, manifest: Option<&Recovered>) -> Result<()> {
        let core = self.core;
        let durable = match &core.followed {
            Some(view) => view.load().seq,
            None => core.visible.load(Ordering::Acquire),
        };
        let mut read = None;
        for _ in 0..LOG_TRIES {
            let start = self.log_start(manifest)?;
            let wals = self.wals(start.file)?;
            let end = manifest.and_then(|manifest| manifest.log_end);
            let known = ReplayStart { flushed_to: start.seq, durable, end };
            let outcome = replay(&*core.env.fs, &core.dir, &wals, known, &mut |_| Ok(()));
            // Files of it may have been removed since, all of which is in tables by now.
            if outcome.is_err() && self.log_start(manifest)? != start {
                continue;
            }
            read = Some((outcome, wals));
            break;
        }
        let Some((outcome, wals)) = read else { return Ok(()) };
        self.report.log_files += wals.len() as u64;
        let mut bytes = 0;
        for (_, path) in &wals {
            bytes += core.env.fs.open(path).and_then(|file| file.len()).unwrap_or(0);
        }
        self.report.log_bytes += bytes;
        match outcome {
            Ok(end) => {
                self.report.log_records += end.records;
                self.report.unfinished_bytes += end.dropped_bytes;
                if let Some((id, offset)) = end.skipped {
                    let what = "records of the log cannot be read; tables have what they say";
                    let path = core.path(FileKind::Wal, id);
                    self.report.note(Error::corruption(&path, offset, what))?;
                }
            }
            Err(error) => self.report.note(error)?,
        }
        self.bytes_total += bytes;
        self.read(bytes);
        Ok(())
    }

    /// Where the log starts now, says the manifest: the one in use, the one on disk if it may
    /// change, or else the one that has been read.
    fn log_start(&self, read: Option<&Recovered>) -> Result<LogStart> {
        let core = self.core;
        if let Some(manifest) = core.manifest.lock().as_ref() {
            return Ok(manifest.catalog().log);
        }
        if core.followed.is_some() && read.is_some() {
            return Ok(manifest::recover(&*core.env.fs, &core.dir)?.log);
        }
        Ok(read.map_or_else(LogStart::default, |read| read.log))
    }

    /// The files of the log from `first` on.
    fn wals(&self, first: FileId) -> Result<Vec<(FileId, PathBuf)>> {
        let core = self.core;
        Ok(log_files(core, first, &list_files(&*core.env.fs, &core.dir)?))
    }

    fn tree(&mut self, state: &TreeState) -> Result<()> {
        for (_, table) in state.version.tables() {
            self.table(table)?;
        }
        for memtable in state.memtables() {
            if memtable.attached::<Blob>().is_empty() {
                continue;
            }
            let mut found = Vec::new();
            blob_refs(&mut memtable.cursor(), &mut found)?;
            self.refer(found);
        }
        Ok(())
    }

    fn table(&mut self, table: &Arc<Table>) -> Result<()> {
        let mut found = Vec::new();
        let checked = table.verify().and_then(|counts| {
            if !table.meta.blobs.is_empty() {
                blob_refs(&mut table.scan(None, None), &mut found)?;
            }
            Ok(counts)
        });
        self.report.tables += 1;
        match checked {
            Ok(counts) => self.report.entries += counts.entries,
            Err(error) => self.report.note(error)?,
        }
        self.refer(found);
        self.read(table.meta.file_bytes);
        Ok(())
    }

    fn refer(&mut self, found: Vec<BlobRef>) {
        for reference in found {
            if self.seen.insert((reference.file, reference.bytes)) {
                self.bytes_total += reference.file_bytes();
                self.blobs.push((self.core.blob(reference.file), reference));
            }
        }
    }

    fn blob(&mut self, blob: &Arc<Blob>, reference: BlobRef) -> Result<()> {
        let read = blob.reader(reference).and_then(|mut reader| reader.verify());
        if let Err(error) = read {
            self.report.note(error)?;
        }
        self.report.blobs += 1;
        self.read(reference.file_bytes());
        Ok(())
    }

    /// What prepared transactions need.
    fn prepared(&mut self) -> Result<()> {
        let core = self.core;
        let mut found = Vec::new();
        let mut tables: Vec<(Vec<u8>, TableMeta)> = Vec::new();
        for (xid, one) in core.prepared.lock().iter() {
            if let PreparedWrites::Logged { ops, .. } = &one.writes {
                let blobs = OpIter::new(ops, 1).filter(|op| op.kind == Kind::Blob);
                found.extend(blobs.filter_map(|op| BlobRef::decode(op.value)));
            }
            tables.extend(one.tables().map(|meta| (xid.clone(), meta.clone())));
        }
        self.refer(found);
        let undecided = |xid: &[u8]| core.prepared.lock().contains_key(xid);
        for (xid, meta) in &tables {
            let path = core.path(core.kind_of_run(meta.id), meta.id);
            let before = self.report.damage.len();
            self.bytes_total += meta.file_bytes;
            self.table(&Table::new(meta.clone(), path, &core.tables))?;
            // Decided meanwhile, it is a table or gone.
            if !undecided(xid) {
                self.report.damage.truncate(before);
            }
        }
        let names: BTreeSet<&[u8]> = tables.iter().map(|(xid, _)| &xid[..]).collect();
        self.marks(names.into_iter().filter(|xid| undecided(xid)).collect())
    }

    /// Each transaction that is prepared in tables must have a mark.
    fn marks(&mut self, mut prepared: BTreeSet<&[u8]>) -> Result<()> {
        if prepared.is_empty() {
            return Ok(());
        }
        let core = self.core;
        let names = core.env.fs.list(&core.dir)?;
        let mut unsound = Vec::new();
        for (kind, id) in names.iter().filter_map(|entry| parse_file_name(&entry.name)) {
            if kind != FileKind::Prepared {
                continue;
            }
            let path = core.path(kind, id);
            match mark::read(&*core.env.fs, &path, id) {
                Ok(Ok(found)) => drop(prepared.remove(&found.xid[..])),
                Ok(Err(what)) => unsound.push(Error::corruption(&path, 0, what)),
                // Decided meanwhile.
                Err(error) if error.is_not_found() => {}
                Err(error) => self.report.note(error)?,
            }
        }
        // One that is not needed is left over from a crash, and may be anything.
        if !prepared.is_empty() && unsound.is_empty() {
            let xid =
                prepared.iter().next().map_or(String::new(), |x| x.escape_ascii().to_string());
            let what = format!(
                "no file called .prepared tells of the prepared transaction `{xid}`; opening the \
                 database for writing makes one"
            );
            unsound.push(Error::corruption(&core.dir, 0, what));
        } else if prepared.is_empty() {
            unsound.clear();
        }
        unsound.into_iter().try_for_each(|error| self.report.note(error))
    }
}
