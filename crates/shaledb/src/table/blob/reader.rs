//! A blob file that tables refer to, and reading the value in it, in bounded memory.

use super::reference::{BlobRef, CHUNK_BYTES, CHUNK_HEADER_BYTES, END_BYTES, HEADER_BYTES, header};
use crate::base::coding::{Decoder, checksum};
use crate::base::error::{Error, Result};
use crate::fs::ReadFile;
use crate::table::env::TableEnv;
use crate::table::meta::FileId;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// What a handle takes beside itself and its path: counts of references, and its entry in the map
/// of all handles.
const BESIDE_BYTES: usize = 64;

/// A blob file that the tree refers to. Shared; thread-safe.
pub struct Blob {
    id: FileId,
    path: PathBuf,
    shared: Arc<TableEnv>,
    obsolete: AtomicBool,
    file: OnceLock<Arc<dyn ReadFile>>,
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blob").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Blob {
    /// The blob file of number `id` at `path`. Nothing is opened or read yet.
    pub fn new(id: FileId, path: PathBuf, env: &Arc<TableEnv>) -> Arc<Blob> {
        let (obsolete, file) = (AtomicBool::new(false), OnceLock::new());
        Arc::new(Blob { id, path, shared: Arc::clone(env), obsolete, file })
    }

    /// The file's number.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// About how many bytes of memory the handle takes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Blob>() + self.path.as_os_str().len() + BESIDE_BYTES
    }

    /// A reader at the start of the value. `reference` must name this file.
    pub fn reader(self: &Arc<Self>, reference: BlobRef) -> Result<BlobReader> {
        let mut reader = BlobReader::open(self.open()?, reference)?;
        reader.blob = Some(Arc::clone(self));
        Ok(reader)
    }

    fn open(&self) -> Result<Arc<dyn ReadFile>> {
        if let Some(file) = self.file.get() {
            return Ok(Arc::clone(file));
        }
        let missing = |error: Error| {
            error.missing_is_damage(&self.path, "a row's value is in it, but it is missing")
        };
        self.shared.env.fs.open(&self.path).map_err(missing)
    }

    /// Keeps the file open for as long as the blob: whoever removes it does not take it from us.
    pub fn keep_open(&self) -> Result<()> {
        if self.file.get().is_none() {
            let _ = self.file.set(self.shared.env.fs.open(&self.path)?);
        }
        Ok(())
    }

    /// Undoes [`Blob::mark_obsolete`]: something durable is about to refer to it.
    pub fn keep(&self) {
        self.obsolete.store(false, Relaxed);
    }

    /// Has the file removed once no one holds the blob any more.
    pub fn mark_obsolete(&self) {
        self.obsolete.store(true, Relaxed);
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        if self.obsolete.load(Relaxed) {
            // Closed first: a file that has its name yet is closed at once.
            drop(self.file.take());
            self.shared.remove_file(std::mem::take(&mut self.path));
        }
    }
}

/// Reads a value in order, a chunk at a time; every byte is checked before it is given out.
pub struct BlobReader {
    file: Arc<dyn ReadFile>,
    /// Keeps the file from being removed.
    blob: Option<Arc<Blob>>,
    bytes: u64,
    /// Bytes of the value that have been read from the file.
    fetched: u64,
    offset: u64,
    chunk: Vec<u8>,
    at: usize,
    ended: bool,
}

impl std::fmt::Debug for BlobReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlobReader").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl BlobReader {
    /// A reader of the value that `file` holds; checks that its length is the reference's.
    pub fn open(file: Arc<dyn ReadFile>, reference: BlobRef) -> Result<BlobReader> {
        let length = file.len()?;
        if length != reference.file_bytes() {
            let what = format!("{length} bytes long instead of {}", reference.file_bytes());
            return Err(Error::corruption(file.path(), length, what));
        }
        let mut found = [0; HEADER_BYTES];
        file.read_at(0, &mut found)?;
        if found != header() {
            return Err(Error::corruption(
                file.path(),
                0,
                "the file does not begin as a blob does",
            ));
        }
        Ok(BlobReader {
            file,
            blob: None,
            bytes: reference.bytes,
            fetched: 0,
            offset: HEADER_BYTES as u64,
            chunk: Vec::new(),
            at: CHUNK_HEADER_BYTES,
            ended: false,
        })
    }

    /// The length of the value.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The bytes of the current chunk that have not been given out; none at the end of the value.
    fn available(&mut self) -> Result<&[u8]> {
        if self.at >= self.chunk.len() && !self.ended {
            self.fetch()?;
        }
        Ok(self.chunk.get(self.at..).unwrap_or(&[]))
    }

    fn fetch(&mut self) -> Result<()> {
        let left = self.bytes - self.fetched;
        let length = left.min(CHUNK_BYTES as u64) as usize;
        self.chunk.resize(if left == 0 { END_BYTES } else { CHUNK_HEADER_BYTES + length }, 0);
        self.at = self.chunk.len();
        self.file.read_at(self.offset, &mut self.chunk)?;
        let wrong = |what: &str| Err(Error::corruption(self.file.path(), self.offset, what));
        let mut decoder = Decoder::new(&self.chunk);
        if decoder.u32() != Some(checksum(&self.chunk[4..])) {
            return wrong("the checksum of a part of a blob does not match");
        }
        if decoder.u32() != Some(length as u32) || (left == 0 && decoder.u64() != Some(self.bytes))
        {
            return wrong("a part of a blob has another length than stated");
        }
        self.offset += self.chunk.len() as u64;
        self.fetched += length as u64;
        if left == 0 {
            self.ended = true;
            self.chunk.clear();
        }
        self.at = CHUNK_HEADER_BYTES;
        if left > length as u64 {
            self.file.prefetch(self.offset, (CHUNK_HEADER_BYTES + CHUNK_BYTES) as u64);
        }
        Ok(())
    }

    /// Reads the rest of the value into memory.
    pub fn read_all(&mut self) -> Result<Vec<u8>> {
        let mut value = Vec::with_capacity(self.bytes as usize);
        loop {
            let part = self.available()?;
            if part.is_empty() {
                return Ok(value);
            }
            value.extend_from_slice(part);
            self.at = self.chunk.len();
        }
    }

    /// Reads and checks the rest of the value, and keeps none of it; answers its length.
    pub fn verify(&mut self) -> Result<u64> {
        let mut bytes = 0;
        loop {
            let part = self.available()?.len();
            if part == 0 {
                return Ok(bytes);
            }
            bytes += part as u64;
            self.at = self.chunk.len();
        }
    }
}

impl io::Read for BlobReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let part = self.available().map_err(io::Error::other)?;
        let count = part.len().min(buf.len());
        buf[..count].copy_from_slice(&part[..count]);
        self.at += count;
        Ok(count)
    }
}
