//! Large values: written to blob files of their own before the commit that refers to them, read
//! back in parts.
//!
//! A blob file is synced before the reference to it goes to the log, whatever the commit asks for:
//! a log that refers to a value that a crash took would have a hole. It goes away with the last
//! table or memtable that refers to it; one whose commit was never made is removed by the next
//! open.

use crate::base::error::{Error, Result};
use crate::base::key::{Kind, VALUE_BYTES_MAX};
use crate::base::stats::{Counter, Recorder};
use crate::base::sync::Arc;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::db::core::Core;
use crate::fs::ledger::Payer;
use crate::read::{BlobSource, Value};
use crate::table::blob::{Blob, BlobReader, BlobRef, BlobWriter};
use crate::table::format::FileKind;
use crate::table::meta::FileId;
use std::io::{self, Read};

/// How much of a value is held while it is written.
const PART_BYTES: usize = 256 * 1024;

/// A blob file just written.
pub(crate) struct NewBlob {
    blob: Arc<Blob>,
    reference: Vec<u8>,
}

impl NewBlob {
    pub fn reference(&self) -> &[u8] {
        &self.reference
    }

    pub fn mark_obsolete(&self) {
        self.blob.mark_obsolete();
    }
}

/// Reads a value in parts, checking each; see [`Tree::get_reader`](crate::Tree::get_reader). What a
/// read fails with is an [`io::Error`] around an [`Error`].
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// use std::io::Read;
///
/// # tree.put(b"video", &vec![7; 2 << 20])?;
/// let mut reader = tree.get_reader(b"video")?.unwrap();
/// let mut start = [0; 16];
/// reader.read_exact(&mut start).unwrap();
/// assert_eq!(start, [7; 16]);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Debug)]
pub struct ValueReader {
    source: Source,
    /// Set when the database is closed.
    ended: Arc<AtomicBool>,
    recorder: Arc<Recorder>,
}

#[derive(Debug)]
enum Source {
    Value { value: Value, at: usize },
    Blob(BlobReader),
}

impl ValueReader {
    /// The length of the whole value in bytes, however much of it has been read.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # tree.put(b"video", &vec![7; 2 << 20])?;
    /// assert_eq!(tree.get_reader(b"video")?.unwrap().len(), 2 << 20);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn len(&self) -> u64 {
        match &self.source {
            Source::Value { value, .. } => value.len() as u64,
            Source::Blob(reader) => reader.len(),
        }
    }

    /// Whether the value is empty.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"a", b"")?;
    /// assert!(tree.get_reader(b"a")?.unwrap().is_empty());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Read for ValueReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.ended.load(Ordering::Relaxed) {
            return Err(io::Error::other(Error::Closed));
        }
        match &mut self.source {
            Source::Value { value, at } => {
                debug_assert!(*at <= value.len(), "what is read is of the value");
                let rest = &value[*at..];
                let count = rest.len().min(buf.len());
                buf[..count].copy_from_slice(&rest[..count]);
                *at += count;
                Ok(count)
            }
            Source::Blob(reader) => {
                let count = reader.read(buf)?;
                self.recorder.add(Counter::ReadBytes, count as u64);
                Ok(count)
            }
        }
    }
}

impl BlobSource for Core {
    fn read(&self, reference: &[u8]) -> Result<Vec<u8>> {
        let value = self.blob_reader(reference)?.read_all()?;
        self.recorder.add(Counter::ReadBytes, value.len() as u64);
        Ok(value)
    }
}

impl Core {
    fn blob_reader(&self, reference: &[u8]) -> Result<BlobReader> {
        let Some(decoded) = BlobRef::decode(reference) else {
            return Err(Error::corruption(&self.dir, 0, "an entry's blob reference is malformed"));
        };
        self.blob(decoded.file).reader(decoded)
    }

    pub fn value_reader(&self, kind: Kind, value: Value) -> Result<ValueReader> {
        let source = match kind {
            Kind::Blob => Source::Blob(self.blob_reader(&value)?),
            _ => Source::Value { value, at: 0 },
        };
        Ok(ValueReader { source, ended: self.ended.clone(), recorder: self.recorder.clone() })
    }

    /// Writes a value that starts with `start` and goes on with `rest` to a new blob file, durably.
    /// Room for the rest is asked for as it comes.
    pub fn write_blob(&self, start: &[u8], rest: Option<&mut dyn Read>) -> Result<NewBlob> {
        check_length(start.len() as u64)?;
        self.foresee_file(BlobRef { file: 0, bytes: start.len() as u64 }.file_bytes())?;
        let id = self.new_file();
        let path = self.path(FileKind::Blob, id);
        let written = self.fill_blob(id, start, rest).and_then(|reference| {
            self.env.fs.sync_dir(&self.dir)?;
            Ok(reference)
        });
        match written {
            Ok(reference) => {
                self.recorder.add(Counter::BlobBytes, reference.file_bytes());
                Ok(NewBlob { blob: self.blob(id), reference: reference.encode() })
            }
            Err(error) => {
                if let Err(error) = self.env.fs.remove(&path) {
                    tracing::debug!(%error, "an unfinished blob is left for the next open");
                }
                Err(error)
            }
        }
    }

    fn fill_blob(&self, id: FileId, start: &[u8], rest: Option<&mut dyn Read>) -> Result<BlobRef> {
        let path = self.path(FileKind::Blob, id);
        let mut writer = BlobWriter::new(self.env_paid_by(Payer::User).fs.create(&path)?, id)?;
        self.write_part(&mut writer, start, BlobWriter::append)?;
        let mut bytes = start.len() as u64;
        if let Some(rest) = rest {
            let mut part = vec![0; PART_BYTES];
            loop {
                let count = match rest.read(&mut part) {
                    Ok(0) => break,
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(Error::io("read the value for", &path, error)),
                };
                bytes += count as u64;
                check_length(bytes)?;
                self.write_part(&mut writer, &part[..count], BlobWriter::append)?;
            }
        }
        self.write_part(&mut writer, &[], |writer, _| writer.finish())
    }

    /// Writes the next part of a value, or its end if the part is empty. Room is asked for if there
    /// is none: who else writes may take it meanwhile, and then it is waited for again.
    fn write_part<T>(
        &self,
        writer: &mut BlobWriter,
        mut part: &[u8],
        write: fn(&mut BlobWriter, &mut &[u8]) -> Result<T>,
    ) -> Result<T> {
        loop {
            match write(writer, &mut part) {
                Err(error) if error.is_space_limit() => {
                    self.foresee_file(writer.grows_by(part.len() as u64))?;
                }
                other => return other,
            }
        }
    }
}

fn check_length(bytes: u64) -> Result<()> {
    if bytes > VALUE_BYTES_MAX {
        return Err(Error::InvalidArgument(format!(
            "a value is longer than {VALUE_BYTES_MAX} bytes, the most that is possible"
        )));
    }
    Ok(())
}
