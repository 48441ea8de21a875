//! Writes a value into a blob file, in bounded memory.

use super::reference::{BlobRef, CHUNK_BYTES, CHUNK_HEADER_BYTES, END_BYTES, header};
use crate::base::coding::checksum;
use crate::base::error::Result;
use crate::fs::WriteFile;
use crate::table::meta::FileId;

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

    /// Appends a part of the value, of which `part` has afterwards what is still to come: nothing,
    /// or the rest, if there was no room for it; it may be tried again then.
    pub fn append(&mut self, part: &mut &[u8]) -> Result<()> {
        while !part.is_empty() {
            let room = CHUNK_HEADER_BYTES + CHUNK_BYTES - self.chunk.len();
            if room == 0 {
                self.flush_chunk()?;
                continue;
            }
            let (now, later) = part.split_at(room.min(part.len()));
            self.chunk.extend_from_slice(now);
            self.bytes += now.len() as u64;
            *part = later;
        }
        Ok(())
    }

    /// By how much the file grows at most when so many bytes are appended and it is finished.
    pub fn grows_by(&self, bytes: u64) -> u64 {
        let after = BlobRef { file: self.id, bytes: self.bytes.saturating_add(bytes) };
        after.file_bytes().saturating_sub(self.file.len())
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
    /// If there was no room for that, it may be tried again.
    pub fn finish(&mut self) -> Result<BlobRef> {
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
