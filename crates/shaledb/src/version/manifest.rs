//! The manifest: the log of edits that says which files make up the database. `CURRENT` names the
//! current manifest.
//!
//! ```text
//! MANIFEST-000123 := a log file (see wal/record.rs), magic "SHALEMAN"
//! payload         := number u64 | edit              (number: 0, 1, ...; the first is a snapshot)
//! CURRENT         := "shale 1 MANIFEST-000123 " checksum "\n"
//!                                     (8 hex digits, of all that is before the last space)
//! ```
//!
//! Each edit is synced before the next is appended, so only the last record can be torn by a
//! crash, and a torn one was never installed. Damage before a sound record is corruption. Each open
//! writes a new manifest, and so does growth, so a torn one is never appended to.

use super::catalog::{Catalog, CatalogTree};
use super::edit::{self, Damage, Edit, LogStart};
use super::tree_id::TreeId;
use crate::base::coding::checksum;
use crate::base::config::TreeConfig;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::fs::{self, Fs};
use crate::table::format::{self, FileKind};
use crate::table::meta::{FileId, TableMeta};
use crate::wal::inspect::{Piece, Pieces};
use crate::wal::reader::{RecordReader, Resync, Search, Step};
use crate::wal::record::{FILE_HEADER_BYTES, Format};
use crate::wal::writer::LogWriter;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The format of a manifest.
pub const MANIFEST: Format = Format { magic: *b"SHALEMAN", version: 1 };

/// The name of the file that names the current manifest.
pub const CURRENT: &str = "CURRENT";

/// The size below which a manifest is never rewritten.
const REWRITE_BYTES_MIN: u64 = 4 << 20;

/// By what factor a manifest outgrows its snapshot before it is rewritten.
const REWRITE_FACTOR: u64 = 4;

/// The current manifest, open for appending.
pub struct Manifest {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    writer: LogWriter,
    catalog: Catalog,
    /// The number of the next edit.
    number: u64,
    /// The length of the file when it held just the snapshot.
    snapshot_bytes: u64,
    buffer: Vec<u8>,
}

impl Manifest {
    /// Writes the manifest of this number with `snapshot` (an edit of an empty catalog), and
    /// installs it. On an error the one before is still installed, or this one is.
    pub fn create(fs: &Arc<dyn Fs>, dir: &Path, id: FileId, snapshot: &Edit) -> Result<Manifest> {
        let mut catalog = Catalog::default();
        check(&catalog, snapshot)?;
        catalog.apply(snapshot);
        catalog.next_file = catalog.next_file.max(id + 1);
        Manifest::with_catalog(fs, dir, id, catalog)
    }

    fn with_catalog(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        id: FileId,
        catalog: Catalog,
    ) -> Result<Manifest> {
        assert!(catalog.next_file > id, "the manifest's own number is used");
        let path = dir.join(file_name(id));
        let writer = LogWriter::create_as(fs.as_ref(), &path, id, MANIFEST)?;
        let mut manifest = Manifest {
            fs: Arc::clone(fs),
            dir: dir.to_owned(),
            writer,
            catalog,
            number: 0,
            snapshot_bytes: 0,
            buffer: Vec::new(),
        };
        manifest.log(&manifest.catalog.snapshot())?;
        manifest.snapshot_bytes = manifest.writer.bytes();
        fs::replace(fs.as_ref(), &dir.join(CURRENT), current_content(id).as_bytes())?;
        Ok(manifest)
    }

    /// Appends an edit and makes it durable.
    ///
    /// An edit that contradicts the catalog is refused ([`Error::InvalidArgument`]), and a full
    /// disk leaves everything as it was; any other failure poisons the manifest.
    pub fn append(&mut self, edit: &Edit) -> Result<()> {
        check(&self.catalog, edit)?;
        self.log(edit)?;
        self.catalog.apply(edit);
        Ok(())
    }

    fn log(&mut self, edit: &Edit) -> Result<()> {
        self.buffer.clear();
        frame_edit(&self.writer, self.number, edit, &mut self.buffer);
        let appended = self.writer.append(&self.buffer);
        self.buffer.shrink_to(64 << 10);
        appended?;
        self.writer.sync()?;
        self.number += 1;
        Ok(())
    }

    /// Refuses if an earlier failure has left unknown what is in the file.
    pub fn check(&self) -> Result<()> {
        self.writer.check()
    }

    /// Whether so much has been appended that [`Manifest::rewrite`] is due.
    /// With little room that is sooner than after [`REWRITE_BYTES_MIN`].
    pub fn rewrite_due(&self, room: u64) -> bool {
        let bytes = self.writer.bytes();
        bytes > REWRITE_BYTES_MIN.min(room) && bytes > REWRITE_FACTOR * self.snapshot_bytes
    }

    /// Writes the catalog to a new manifest of this number, installs it and removes the old
    /// one. On an error the old one stays in use if it is still installed; if that is not known,
    /// this manifest is poisoned.
    pub fn rewrite(&mut self, id: FileId) -> Result<()> {
        self.writer.check()?;
        assert!(id > self.id(), "who follows tells a newer manifest by its number");
        let mut catalog = self.catalog.clone();
        catalog.next_file = catalog.next_file.max(id + 1);
        match Manifest::with_catalog(&self.fs, &self.dir, id, catalog) {
            Ok(new) => {
                let old = std::mem::replace(self, new);
                // If it stays, the next open removes it.
                let _ = self.fs.remove(old.writer.path());
                Ok(())
            }
            Err(error) => {
                let installed = current(self.fs.as_ref(), &self.dir);
                if installed.is_ok_and(|current| current == self.id()) {
                    let _ = self.fs.remove(&self.dir.join(file_name(id)));
                } else {
                    self.writer.poison(&error);
                }
                Err(error)
            }
        }
    }

    /// What the edits add up to.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The number of the file.
    pub fn id(&self) -> FileId {
        self.writer.id()
    }

    /// The length of the file.
    pub fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        self.writer.path()
    }
}

impl std::fmt::Debug for Manifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manifest")
            .field("path", &self.path())
            .field("number", &self.number)
            .finish()
    }
}

fn check(catalog: &Catalog, edit: &Edit) -> Result<()> {
    catalog.check(edit).map_err(Error::InvalidArgument)
}

/// Frames the record of an edit, which the writer is to append next.
pub(super) fn frame_edit(writer: &LogWriter, number: u64, edit: &Edit, out: &mut Vec<u8>) {
    writer.framer().frame(out, |out| {
        out.extend_from_slice(&number.to_le_bytes());
        let start = out.len();
        edit::encode(edit, out);
        debug_assert_eq!(edit::decode(&out[start..]).as_ref(), Ok(edit), "read as it was meant");
    });
}

/// The name of the manifest with this number.
fn file_name(id: FileId) -> String {
    format::file_name(FileKind::Manifest, id)
}

/// The content of `CURRENT` that makes this manifest the current one.
fn current_content(id: FileId) -> String {
    let text = format!("shale 1 {}", file_name(id));
    format!("{text} {:08x}\n", checksum(text.as_bytes()))
}

/// The number of the current manifest; [`Error::NoDatabase`] if the directory has none.
pub fn current(fs: &dyn Fs, dir: &Path) -> Result<FileId> {
    let path = dir.join(CURRENT);
    if !fs.exists(&path)? {
        return Err(Error::NoDatabase(dir.to_owned()));
    }
    let content = fs::read_all(fs, &path)?;
    let number = std::str::from_utf8(&content)
        .ok()
        .and_then(|text| text.strip_prefix("shale 1 MANIFEST-"))
        .and_then(|text| text.split_once(' '))
        .and_then(|(number, _)| number.parse::<FileId>().ok())
        .filter(|id| current_content(*id).as_bytes() == content);
    number.ok_or_else(|| Error::corruption(&path, 0, "it does not name a manifest"))
}

/// A tree as the manifest describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoveredTree {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub config: TreeConfig,
    /// Its tables level by level: level 0 newest first, the others by key.
    pub levels: Vec<Vec<TableMeta>>,
    /// Every operation of the tree up to this number is in its tables.
    pub flushed_seq: SeqNo,
}

/// What a manifest says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovered {
    /// The trees by number.
    pub trees: BTreeMap<TreeId, RecoveredTree>,
    /// Trees whose build has not ended: they count as not there, and the next open drops them.
    pub unfinished: BTreeMap<TreeId, RecoveredTree>,
    /// Transactions that are prepared with their writes in tables, by name: these, by tree.
    pub prepared: BTreeMap<Vec<u8>, Vec<(TreeId, Vec<TableMeta>)>>,
    /// Every file number from here on is unused by manifest and tables. (WALs and blobs that were
    /// begun since may have larger ones.)
    pub next_file: FileId,
    /// Every tree number from here on is unused.
    pub next_tree: TreeId,
    /// Every operation up to this number must be found, in tables or in the log.
    pub last_seq: SeqNo,
    /// Where the log starts.
    pub log: LogStart,
    /// A log file, and its length up to which the log is complete and durable.
    pub log_end: Option<(FileId, u64)>,
    /// The number of the manifest.
    pub manifest_id: FileId,
    /// How many edits it has.
    pub edits: u64,
    /// How many bytes at its end are a record that was never installed.
    pub torn_bytes: u64,
    /// The length of `CURRENT` and of the manifest.
    pub bytes: u64,
    /// The edit that makes what the manifest says from an empty catalog, unfinished trees too.
    pub written: Edit,
    /// The same without these, for the next manifest.
    pub snapshot: Edit,
}

/// Reads the current manifest.
pub fn recover(fs: &dyn Fs, dir: &Path) -> Result<Recovered> {
    let (id, reader) = open_current(fs, dir)?;
    let bytes = reader.bytes() + current_content(id).len() as u64;
    let (mut catalog, edits, torn_bytes) = read_catalog(reader)?;
    let written = catalog.snapshot();
    let unfinished = catalog.take_unfinished();
    let recovered = |tree: &CatalogTree| RecoveredTree {
        name: tree.name.clone(),
        config: tree.config.clone(),
        levels: tree.levels().into_iter().map(|l| l.into_iter().cloned().collect()).collect(),
        flushed_seq: tree.flushed_seq,
    };
    let all = |trees: &BTreeMap<TreeId, CatalogTree>| {
        trees.iter().map(|(id, tree)| (*id, recovered(tree))).collect()
    };
    Ok(Recovered {
        trees: all(&catalog.trees),
        unfinished: all(&unfinished),
        next_file: catalog.next_file.max(id + 1),
        next_tree: catalog.next_tree,
        last_seq: catalog.last_seq.max(catalog.last_in_tables()),
        log: catalog.log,
        log_end: catalog.log_end,
        manifest_id: id,
        edits,
        torn_bytes,
        bytes,
        written,
        snapshot: catalog.snapshot(),
        prepared: catalog.prepared,
    })
}

/// How often `CURRENT` is read again because another process has replaced the manifest that it
/// named.
const CURRENT_TRIES: usize = 100;

/// Opens the current manifest.
pub(super) fn open_current(fs: &dyn Fs, dir: &Path) -> Result<(FileId, RecordReader)> {
    let mut id = current(fs, dir)?;
    for _ in 0..CURRENT_TRIES {
        let missing = match RecordReader::open(fs, &dir.join(file_name(id)), id, MANIFEST) {
            Err(error) if error.is_not_found() => id,
            other => return Ok((id, other?)),
        };
        id = current(fs, dir)?;
        if id == missing {
            break;
        }
    }
    let what = format!("it names {}, which does not exist", file_name(id));
    Err(Error::corruption(&dir.join(CURRENT), 0, what))
}

/// The sum of a manifest's edits, how many they are, and how many torn bytes follow them.
fn read_catalog(mut reader: RecordReader) -> Result<(Catalog, u64, u64)> {
    let path = &reader.path().to_owned();
    let mut catalog = Catalog::default();
    let mut number = 0;
    // Which record brought which table, to name it if the tables contradict each other.
    let mut origins: BTreeMap<FileId, u64> = BTreeMap::new();
    let torn_bytes = loop {
        match reader.next()? {
            Step::Record { offset, payload } => {
                apply_record(&mut catalog, payload, number)
                    .map(|edit| note_origins(&mut origins, &edit, offset))
                    .map_err(|what| Error::corruption(path, offset, what))?;
                number += 1;
            }
            Step::End { torn: None, .. } if number > 0 => break 0,
            Step::End { offset, torn } => {
                let what = torn.unwrap_or("the manifest has no edit");
                let torn_bytes = reader.bytes().saturating_sub(offset);
                // What was installed has at least the snapshot, and only a last record is torn.
                if number == 0 || resync(&mut reader, number)? {
                    return Err(Error::corruption(path, offset, what));
                }
                break torn_bytes;
            }
        }
    };
    catalog.check_levels().map_err(|(a, b, what)| {
        let offset = origins.get(&a).max(origins.get(&b)).copied();
        Error::corruption(path, offset.unwrap_or(FILE_HEADER_BYTES as u64), what)
    })?;
    Ok((catalog, number, torn_bytes))
}

fn note_origins(origins: &mut BTreeMap<FileId, u64>, edit: &Edit, offset: u64) {
    for (_, meta) in edit.trees.iter().flat_map(|tree| &tree.added) {
        origins.insert(meta.id, offset);
    }
}

pub(super) fn apply_record(
    catalog: &mut Catalog,
    payload: &[u8],
    number: u64,
) -> std::result::Result<Edit, Damage> {
    let (found, edit) = decode_payload(payload)?;
    if found != number {
        return Err(format!("this is edit {found}, edit {number} was expected"));
    }
    catalog.check(&edit)?;
    catalog.apply(&edit);
    Ok(edit)
}

fn decode_payload(payload: &[u8]) -> std::result::Result<(u64, Edit), Damage> {
    let (number, content) = payload.split_first_chunk::<8>().ok_or("the record is too short")?;
    Ok((u64::from_le_bytes(*number), edit::decode(content)?))
}

/// Whether a sound record follows damage.
pub(super) fn resync(reader: &mut RecordReader, number: u64) -> Result<bool> {
    let search = Search { serial_min: number, serial_base: number, plausible: |_| true };
    Ok(reader.resync(search)? != Resync::Nothing)
}

/// One line of a dump of a manifest.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
/// # let names = files.iter().map(|file| &file.name);
/// # let name = names.filter(|name| name.starts_with("MANIFEST")).next().unwrap();
/// # let path = std::path::Path::new("/db").join(name);
/// use shaledb::inspect::{Inspection, ManifestLine, open_in};
///
/// let Inspection::Manifest(edits) = open_in(&env, &path)? else { panic!() };
/// for line in edits {
///     match line? {
///         ManifestLine::Edit { number, edit, .. } => println!("{number}: {edit:?}"),
///         ManifestLine::Damage { offset, what, .. } => panic!("at byte {offset}: {what}"),
///     }
/// }
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "lines are looked at one by one")]
pub enum ManifestLine {
    /// An edit.
    Edit {
        /// Where its record starts.
        offset: u64,
        /// Its length with the record's header.
        bytes: u64,
        /// Its number among the edits.
        number: u64,
        /// What it says.
        edit: Edit,
    },
    /// Bytes that are no edit.
    Damage {
        /// Where they start.
        offset: u64,
        /// How many they are.
        bytes: u64,
        /// What is wrong with them.
        what: String,
    },
}

/// The lines of a dump of a manifest, damaged or not, read one by one.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
/// # let names = files.iter().map(|file| &file.name);
/// # let name = names.filter(|name| name.starts_with("MANIFEST")).next().unwrap();
/// # let path = std::path::Path::new("/db").join(name);
/// use shaledb::inspect::{Inspection, ManifestDump, open_in};
///
/// let Inspection::Manifest(dump) = open_in(&env, &path)? else { panic!() };
/// let dump: ManifestDump = dump;
/// assert!(dump.count() > 0);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Debug)]
pub struct ManifestDump(Option<Pieces>);

impl ManifestDump {
    /// Opens the manifest with this number; [`open`](crate::inspect::open) takes it from the name.
    ///
    /// ```
    /// # let env = shaledb::Env::memory();
    /// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # db.tree_or_create("t")?.put(b"a", b"1")?;
    /// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
    /// # let names = files.iter().map(|file| &file.name);
    /// # let name = names.filter(|name| name.starts_with("MANIFEST")).next().unwrap();
    /// # let path = std::path::Path::new("/db").join(name);
    /// use shaledb::inspect::ManifestDump;
    ///
    /// let id = name.trim_start_matches("MANIFEST-").parse().unwrap();
    /// assert!(ManifestDump::open(&*env.fs, &path, id)?.count() > 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn open(fs: &dyn Fs, path: &Path, id: FileId) -> Result<ManifestDump> {
        Ok(ManifestDump(Some(Pieces::open(fs, path, id, MANIFEST, |_| true)?)))
    }
}

impl Iterator for ManifestDump {
    type Item = Result<ManifestLine>;

    fn next(&mut self) -> Option<Result<ManifestLine>> {
        let piece = match self.0.as_mut()?.next() {
            Ok(piece) => piece?,
            Err(error) => {
                self.0 = None;
                return Some(Err(error));
            }
        };
        Some(Ok(match piece {
            Piece::Damage { offset, bytes, what } => {
                ManifestLine::Damage { offset, bytes, what: what.to_owned() }
            }
            Piece::Record { offset, payload } => {
                let bytes = (crate::wal::record::RECORD_HEADER_BYTES + payload.len()) as u64;
                match decode_payload(payload) {
                    Ok((number, edit)) => ManifestLine::Edit { offset, bytes, number, edit },
                    Err(what) => ManifestLine::Damage { offset, bytes, what },
                }
            }
        }))
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
