//! Reading and checking every byte.

use super::core::Core;
use crate::base::cursor::Cursor;
use crate::base::error::{Error, Result};
use crate::base::key::Kind;
use crate::base::sync::Arc;
use crate::table::Table;
use crate::table::blob::BlobRef;
use crate::table::meta::FileId;
use serde::Serialize;
use std::collections::BTreeSet;

/// How far a verification has come; see [`Db::verify`](crate::Db::verify).
///
/// ```
/// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
/// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// # tree.put(b"a", b"1")?;
/// # db.flush()?;
/// let mut last = None;
/// db.verify(&mut |progress: shale::VerifyProgress| last = Some(progress))?;
/// let last = last.unwrap();
/// assert_eq!(last.bytes_done, last.bytes_total);
/// # Ok::<(), shale::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Serialize)]
pub struct VerifyProgress {
    /// Bytes read so far.
    pub bytes_done: u64,
    /// Bytes to read in all. It grows when a table turns out to refer to blob files.
    pub bytes_total: u64,
}

/// What a verification has found; see [`Db::verify`](crate::Db::verify).
///
/// ```
/// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
/// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// tree.put(b"a", b"1")?;
/// tree.flush()?;
/// let report: shale::VerifyReport = db.verify(&mut |_| ())?;
/// assert_eq!((report.tables, report.entries), (1, 1));
/// for damage in &report.damage {
///     eprintln!("{damage}"); // names file and offset
/// }
/// # Ok::<(), shale::Error>(())
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Tables read.
    pub tables: u64,
    /// Blob files read.
    pub blobs: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Entries checked, deletes included.
    pub entries: u64,
    /// What is wrong, if anything: one error a file, naming the file and the offset.
    #[serde(serialize_with = "as_texts")]
    pub damage: Vec<Error>,
}

impl VerifyReport {
    /// Damage is reported; anything else, such as a file that cannot be read now, ends the work.
    fn note(&mut self, error: Error) -> Result<()> {
        if !error.is_corruption() {
            return Err(error);
        }
        self.damage.push(error);
        Ok(())
    }
}

fn as_texts<S: serde::Serializer>(errors: &[Error], to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_seq(errors.iter().map(Error::to_string))
}

/// The blobs that a table refers to.
fn blob_refs(table: &Arc<Table>) -> Result<Vec<BlobRef>> {
    let mut found = Vec::new();
    if table.meta.blobs.is_empty() {
        return Ok(found);
    }
    let mut rows = table.scan(None, None);
    rows.seek_first()?;
    while rows.valid() {
        if rows.kind() == Kind::Blob {
            found.extend(BlobRef::decode(rows.value()));
        }
        rows.next()?;
    }
    Ok(found)
}

impl Core {
    pub fn verify(&self, progress: &mut dyn FnMut(VerifyProgress)) -> Result<VerifyReport> {
        self.check_open()?;
        let trees = self.trees.load_full();
        let states: Vec<_> = trees.by_id.values().map(|tree| tree.state.load_full()).collect();
        let tables: Vec<_> =
            states.iter().flat_map(|state| state.version.tables().map(|(_, t)| t)).collect();
        let mut total: u64 = tables.iter().map(|table| table.meta.file_bytes).sum();
        let mut report = VerifyReport::default();
        let mut blobs: BTreeSet<(FileId, u64)> = BTreeSet::new();
        for table in tables {
            let checked = table.verify().and_then(|counts| {
                for reference in blob_refs(table)? {
                    if blobs.insert((reference.file, reference.bytes)) {
                        total += reference.file_bytes();
                    }
                }
                Ok(counts)
            });
            report.tables += 1;
            report.bytes += table.meta.file_bytes;
            match checked {
                Ok(counts) => report.entries += counts.entries,
                Err(error) => report.note(error)?,
            }
            progress(VerifyProgress { bytes_done: report.bytes, bytes_total: total });
        }
        for (file, bytes) in blobs {
            let reference = BlobRef { file, bytes };
            match self.blob(file).reader(reference).and_then(|mut reader| reader.verify()) {
                Ok(read) => report.bytes += read,
                Err(error) => report.note(error)?,
            }
            report.blobs += 1;
            progress(VerifyProgress { bytes_done: report.bytes, bytes_total: total });
        }
        Ok(report)
    }
}
