//! Appends framed records to one log file, and makes them durable.
//!
//! After a failure of which the outcome is not known (an append other than on a full disk, a sync,
//! a cut), the writer is poisoned: every later call answers [`Error::Poisoned`], since nothing
//! that is appended behind a hole could be recovered. A full disk leaves the file as it was before.

use super::record::{FILE_HEADER_BYTES, Format, Framer, Seal, WAL, file_header};
use crate::base::error::{Error, Result};
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{Arc, Mutex};
use crate::fs::{Fs, Syncer, WriteFile};
use std::path::Path;

/// The first failure that makes a file unsafe to write, shared by its writer and its syncers.
#[derive(Debug, Default)]
struct Poison {
    set: AtomicBool,
    cause: Mutex<Option<Arc<Error>>>,
}

impl Poison {
    #[inline]
    fn check(&self) -> Result<()> {
        if self.set.load(Ordering::Acquire) { Err(self.error()) } else { Ok(()) }
    }

    #[cold]
    fn error(&self) -> Error {
        match &*self.cause.lock() {
            Some(cause) => Error::Poisoned(Arc::clone(cause)),
            None => Error::Closed,
        }
    }

    #[cold]
    fn set(&self, error: &Error) {
        self.cause.lock().get_or_insert_with(|| Arc::new(error.clone()));
        self.set.store(true, Ordering::Release);
    }
}

/// The one appender of a log file.
pub struct WalWriter {
    file: Box<dyn WriteFile>,
    id: u64,
    seal: Seal,
    bytes: u64,
    poison: Arc<Poison>,
}

impl WalWriter {
    /// Creates the WAL with this number. Its name is durable on return, its header is not (a file
    /// without a header holds nothing); syncs a directory, so call it away from the write path.
    pub fn create(fs: &dyn Fs, path: &Path, id: u64) -> Result<WalWriter> {
        WalWriter::create_as(fs, path, id, WAL)
    }

    /// As [`WalWriter::create`], for any log file.
    pub fn create_as(fs: &dyn Fs, path: &Path, id: u64, format: Format) -> Result<WalWriter> {
        let seal = Seal::new(format, id);
        let mut file = fs.create(path)?;
        file.append(&file_header(format, seal))?;
        if let Some(dir) = path.parent() {
            fs.sync_dir(dir)?;
        }
        let bytes = FILE_HEADER_BYTES as u64;
        Ok(WalWriter { file, id, seal, bytes, poison: Arc::default() })
    }

    /// Frames records for the next [`WalWriter::append`]; no longer valid after it.
    #[inline]
    pub fn framer(&self) -> Framer {
        Framer::new(self.seal, self.bytes)
    }

    /// Appends records, framed into one buffer by [`WalWriter::framer`], with one call to the file.
    ///
    /// On [`Error::DiskFull`] the file is as it was, and the caller gives the sequence numbers of
    /// the records to the next ones; any other failure poisons the writer.
    pub fn append(&mut self, framed: &[u8]) -> Result<()> {
        self.poison.check()?;
        match self.file.append(framed) {
            Ok(()) => {
                self.bytes += framed.len() as u64;
                Ok(())
            }
            Err(error) => Err(self.undo_append(error)),
        }
    }

    #[cold]
    fn undo_append(&mut self, error: Error) -> Error {
        let undone = self.file.truncate(self.bytes);
        if undone.is_err() || !error.is_disk_full() {
            self.poison.set(&error);
        }
        error
    }

    /// Makes everything appended so far durable. A failure poisons the writer.
    pub fn sync(&mut self) -> Result<()> {
        self.poison.check()?;
        self.file.sync().inspect_err(|error| self.poison.set(error))
    }

    /// A handle for syncing from another thread; its failure poisons this writer.
    pub fn syncer(&self) -> Result<WalSyncer> {
        self.poison.check()?;
        Ok(WalSyncer { inner: self.file.syncer()?, poison: Arc::clone(&self.poison) })
    }

    /// Starts writing to the device without waiting.
    pub fn flush_hint(&mut self) {
        self.file.flush_hint();
    }

    /// Answers [`Error::Poisoned`] if the writer is.
    #[inline]
    pub fn check(&self) -> Result<()> {
        self.poison.check()
    }

    /// Poisons the writer: its owner has found that it must not go on.
    pub fn poison(&self, cause: &Error) {
        self.poison.set(cause);
    }

    /// The length of the file.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether nothing has been appended yet.
    pub fn is_empty(&self) -> bool {
        self.bytes == FILE_HEADER_BYTES as u64
    }

    /// The number of the file.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

impl std::fmt::Debug for WalWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WalWriter").field("path", &self.path()).field("bytes", &self.bytes).finish()
    }
}

/// Makes a log file durable from a thread other than its writer's.
pub struct WalSyncer {
    inner: Box<dyn Syncer>,
    poison: Arc<Poison>,
}

impl WalSyncer {
    /// Makes everything appended before this call durable. A failure poisons the writer.
    pub fn sync(&self) -> Result<()> {
        self.poison.check()?;
        self.inner.sync().inspect_err(|error| self.poison.set(error))
    }
}

impl std::fmt::Debug for WalSyncer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WalSyncer")
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
