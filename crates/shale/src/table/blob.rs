//! Large values, each in a file of its own, written and read in bounded memory.
//!
//! ```text
//! file   := magic 8 bytes | version u32 | checksum u32 of those 12 bytes | chunk* | end
//! chunk  := checksum u32 of all that follows in it | length u32 (1 to 65536) | that many bytes
//! end    := checksum u32 of the next 12 bytes | 0 u32 | length of the value u64
//! ```
//!
//! All chunks but the last are full. An entry of kind blob has a [`BlobRef`] as its value: file
//! number varint, length varint. A file may be referred to by several entries; it is removed when
//! no table refers to it any more.

use super::env::TableEnv;
use super::format::{BLOB_MAGIC, BLOB_VERSION};
use super::meta::FileId;
use super::reader::remove_file;
use crate::base::coding::{Decoder, checksum, put_varint};
use crate::base::error::{Error, Result};
use crate::fs::{ReadFile, WriteFile};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Bytes of the value in a full chunk.
pub const CHUNK_BYTES: usize = 64 * 1024;
const HEADER_BYTES: usize = 16;
const CHUNK_HEADER_BYTES: usize = 8;
const END_BYTES: usize = 16;

/// Names a value in a blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// The file's number.
    pub file: FileId,
    /// The length of the value.
    pub bytes: u64,
}

impl BlobRef {
    /// The reference's bytes, as they are kept in an entry.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.file);
        put_varint(&mut out, self.bytes);
        out
    }

    /// Reads a reference; `None` if the bytes are anything else.
    pub fn decode(bytes: &[u8]) -> Option<BlobRef> {
        let mut decoder = Decoder::new(bytes);
        let reference = BlobRef { file: decoder.varint()?, bytes: decoder.varint()? };
        decoder.is_empty().then_some(reference)
    }

    /// The length of the value in a blob file of this length; `None` if no value makes such a file.
    pub fn value_bytes(file_bytes: u64) -> Option<u64> {
        let chunks_bytes = file_bytes.checked_sub((HEADER_BYTES + END_BYTES) as u64)?;
        let chunks = chunks_bytes.div_ceil((CHUNK_HEADER_BYTES + CHUNK_BYTES) as u64);
        let bytes = chunks_bytes.checked_sub(chunks * CHUNK_HEADER_BYTES as u64)?;
        (BlobRef { file: 0, bytes }.file_bytes() == file_bytes).then_some(bytes)
    }

    /// The length of the file that holds such a value.
    pub fn file_bytes(&self) -> u64 {
        let chunks = self.bytes.div_ceil(CHUNK_BYTES as u64);
        let frames = chunks.saturating_mul(CHUNK_HEADER_BYTES as u64);
        self.bytes.saturating_add(frames).saturating_add((HEADER_BYTES + END_BYTES) as u64)
    }
}

fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&BLOB_MAGIC);
    header[8..12].copy_from_slice(&BLOB_VERSION.to_le_bytes());
    let sum = checksum(&header[..12]);
    header[12..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Writes one value. To abandon it, drop the writer and remove the file.
pub struct BlobWriter {
    file: Box<dyn WriteFile>,
    id: FileId,
    bytes: u64,
    /// The chunk being filled, its header included.
    chunk: Vec<u8>,
}

impl std::fmt::Debug for BlobWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlobWriter").field("id", &self.id).finish_non_exhaustive()
    }
}

impl BlobWriter {
    /// Begins a value in `file`, which must be empty.
    pub fn new(mut file: Box<dyn WriteFile>, id: FileId) -> Result<BlobWriter> {
        file.append(&header())?;
        let mut chunk = Vec::with_capacity(CHUNK_HEADER_BYTES + CHUNK_BYTES);
        chunk.resize(CHUNK_HEADER_BYTES, 0);
        Ok(BlobWriter { file, id, bytes: 0, chunk })
    }

    /// Appends a part of the value.
    pub fn append(&mut self, mut part: &[u8]) -> Result<()> {
        while !part.is_empty() {
            let room = CHUNK_HEADER_BYTES + CHUNK_BYTES - self.chunk.len();
            let (now, later) = part.split_at(room.min(part.len()));
            self.chunk.extend_from_slice(now);
            self.bytes += now.len() as u64;
            part = later;
            if now.len() == room {
                self.flush_chunk()?;
            }
        }
        Ok(())
    }

    fn flush_chunk(&mut self) -> Result<()> {
        let length = (self.chunk.len() - CHUNK_HEADER_BYTES) as u32;
        if length > 0 {
            self.chunk[4..8].copy_from_slice(&length.to_le_bytes());
            let sum = checksum(&self.chunk[4..]);
            self.chunk[..4].copy_from_slice(&sum.to_le_bytes());
            self.file.append(&self.chunk)?;
            self.chunk.truncate(CHUNK_HEADER_BYTES);
        }
        Ok(())
    }

    /// Completes the file and makes it durable. (Its name is durable once its directory is synced.)
    pub fn finish(mut self) -> Result<BlobRef> {
        self.flush_chunk()?;
        let mut end = [0; END_BYTES];
        end[8..].copy_from_slice(&self.bytes.to_le_bytes());
        let sum = checksum(&end[4..]);
        end[..4].copy_from_slice(&sum.to_le_bytes());
        self.file.append(&end)?;
        self.file.sync()?;
        Ok(BlobRef { file: self.id, bytes: self.bytes })
    }
}

/// A blob file that the tree refers to. Shared; thread-safe.
pub struct Blob {
    id: FileId,
    path: PathBuf,
    shared: Arc<TableEnv>,
    obsolete: AtomicBool,
    held: OnceLock<Arc<dyn ReadFile>>,
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blob").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Blob {
    /// The blob file of number `id` at `path`. Nothing is opened or read yet.
    pub fn new(id: FileId, path: PathBuf, env: &Arc<TableEnv>) -> Arc<Blob> {
        let (obsolete, held) = (AtomicBool::new(false), OnceLock::new());
        Arc::new(Blob { id, path, shared: Arc::clone(env), obsolete, held })
    }

    /// The file's number.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A reader at the start of the value. `reference` must name this file.
    pub fn reader(self: &Arc<Self>, reference: BlobRef) -> Result<BlobReader> {
        let mut reader = BlobReader::open(self.open()?, reference)?;
        reader.blob = Some(Arc::clone(self));
        Ok(reader)
    }

    fn open(&self) -> Result<Arc<dyn ReadFile>> {
        if let Some(held) = self.held.get() {
            return Ok(Arc::clone(held));
        }
        let missing = |error: Error| {
            error.missing_is_damage(&self.path, "a row's value is in it, but it is missing")
        };
        self.shared.env.fs.open(&self.path).map_err(missing)
    }

    /// Keeps the file open for as long as the blob: whoever removes it does not take it from us.
    pub fn hold_open(&self) -> Result<()> {
        if self.held.get().is_none() {
            let _ = self.held.set(self.shared.env.fs.open(&self.path)?);
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
            remove_file(&self.shared, &self.path);
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

#[cfg(test)]
#[path = "blob_tests.rs"]
mod tests;
