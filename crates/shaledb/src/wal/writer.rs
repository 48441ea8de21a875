//! Appends framed records to one log file (a WAL, a manifest, a mark of a transaction), and makes
//! them durable.
//!
//! After a failure of which the outcome is not known (an append other than on a full disk, a sync,
//! a cut), the writer's guard is poisoned: every later call answers [`Error::Poisoned`], since
//! nothing that is appended behind a hole could be recovered. The logs of a database share one
//! guard. A full disk leaves the file as it was before, also after a power loss.

use super::record::{FILE_HEADER_BYTES, Format, Framer, Seal, WAL, file_header};
use crate::base::error::{Error, Result};
use crate::base::sync::Arc;
use crate::fs::guard::{Gate, Guard};
use crate::fs::{Fs, Preparer, Syncer, WriteFile};
use std::path::Path;

/// The one appender of a log file.
pub struct LogWriter {
    file: Box<dyn WriteFile>,
    id: u64,
    seal: Seal,
    bytes: u64,
    preparer: Option<Arc<dyn Preparer>>,
    gate: Arc<Gate>,
    guard: Arc<Guard>,
}

impl LogWriter {
    /// Creates the WAL with this number. Its name is durable on return, its header is not (a file
    /// without a header holds nothing); syncs a directory, so call it away from the write path.
    /// `pace` is as of [`Fs::create_log`].
    pub fn create(
        fs: &dyn Fs,
        path: &Path,
        id: u64,
        guard: &Arc<Guard>,
        pace: u64,
    ) -> Result<LogWriter> {
        LogWriter::make(fs, fs.create_log(path, pace)?, id, WAL, Arc::clone(guard))
    }

    /// As [`LogWriter::create`], for any log file, with a guard of its own.
    pub fn create_as(fs: &dyn Fs, path: &Path, id: u64, format: Format) -> Result<LogWriter> {
        LogWriter::make(fs, fs.create(path)?, id, format, Arc::new(Guard::new(path)))
    }

    fn make(
        fs: &dyn Fs,
        mut file: Box<dyn WriteFile>,
        id: u64,
        format: Format,
        guard: Arc<Guard>,
    ) -> Result<LogWriter> {
        let seal = Seal::new(format, id);
        if let Err(error) = file.append(&file_header(format, seal)) {
            // On a full disk each try would leave a file.
            let path = file.path().to_owned();
            drop(file);
            if let Err(error) = fs.remove(&path) {
                tracing::debug!(%error, "a log without a header is left for the next open");
            }
            return Err(error);
        }
        if let Some(dir) = file.path().parent() {
            fs.sync_dir(dir)?;
        }
        let bytes = FILE_HEADER_BYTES as u64;
        assert_eq!(file.len(), bytes, "a new file has its header only");
        let preparer = file.preparer();
        let gate = Arc::default();
        Ok(LogWriter { file, id, seal, bytes, preparer, gate, guard })
    }

    /// Frames records for the next [`LogWriter::append`]; no longer valid after it.
    #[inline]
    pub fn framer(&self) -> Framer {
        Framer::new(self.seal, self.bytes)
    }

    /// Appends records, framed into one buffer by [`LogWriter::framer`], with one call to the file.
    ///
    /// On [`Error::DiskFull`] the file is as it was, and the caller gives the sequence numbers of
    /// the records to the next ones; any other failure poisons the writer.
    pub fn append(&mut self, framed: &[u8]) -> Result<()> {
        self.guard.check()?;
        debug_assert!(self.seal.is_of(self.bytes, framed), "framed for this place of this file");
        match self.file.append(framed) {
            Ok(()) => {
                self.bytes += framed.len() as u64;
                debug_assert_eq!(self.file.len(), self.bytes);
                Ok(())
            }
            Err(error) => Err(self.undo_append(error)),
        }
    }

    /// Cuts off what a failed append has left; answers with its error, or that of the cut, which
    /// poisons.
    #[cold]
    fn undo_append(&mut self, error: Error) -> Error {
        let mut undone = self.file.truncate(self.bytes);
        debug_assert!(undone.is_err() || self.file.len() == self.bytes);
        // The device may have whole records of it: who syncs beside commits may have come between.
        // After a power loss a commit that was refused would be there, or in the place of the next
        // one, which has its number. What the limit on space refuses was never begun.
        if error.is_disk_full() {
            undone = undone.and_then(|()| self.sync());
        }
        // Without it nobody knows what the file has, whatever the reason was.
        if let Err(failed) = undone {
            let poisoned = self.guard.poison(&failed);
            return if failed.is_without_room() { poisoned } else { failed };
        }
        if !error.is_without_room() {
            drop(self.guard.poison(&error));
        }
        error
    }

    /// Makes everything appended so far durable. A failure poisons the guard.
    pub fn sync(&mut self) -> Result<()> {
        let file = &mut self.file;
        self.gate.pass(&self.guard, || file.sync()).map(drop)
    }

    /// A handle for syncing from another thread; its failure poisons the guard.
    pub fn syncer(&self) -> Result<LogSyncer> {
        self.guard.check()?;
        let (gate, guard) = (Arc::clone(&self.gate), Arc::clone(&self.guard));
        Ok(LogSyncer { inner: self.file.syncer()?, id: self.id, gate, guard })
    }

    /// Who works ahead of appends, if anyone can.
    pub fn preparer(&self) -> Option<Arc<dyn Preparer>> {
        self.preparer.clone()
    }

    /// How many bytes were appended from one sync to the next of late.
    pub fn pace(&self) -> u64 {
        self.file.pace()
    }

    /// Whether there is something for the preparer that no earlier call has told of.
    #[inline]
    pub fn takes_wish(&self) -> bool {
        self.preparer.as_ref().is_some_and(|preparer| preparer.takes_wish())
    }

    /// Answers [`Error::Poisoned`] if the writer is.
    #[inline]
    pub fn check(&self) -> Result<()> {
        self.guard.check()
    }

    /// Poisons the writer: its owner has found that it must not go on.
    pub fn poison(&self, cause: &Error) {
        drop(self.guard.poison(cause));
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

impl std::fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogWriter").field("path", &self.path()).field("bytes", &self.bytes).finish()
    }
}

/// Makes a log file durable from a thread other than its writer's.
pub struct LogSyncer {
    inner: Box<dyn Syncer>,
    id: u64,
    gate: Arc<Gate>,
    guard: Arc<Guard>,
}

impl LogSyncer {
    /// The number of the file.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Makes everything appended before this call durable; answers whether it did so itself or
    /// shared the sync of another. A failure poisons the guard.
    pub fn sync(&self) -> Result<bool> {
        self.gate.pass(&self.guard, || self.inner.sync())
    }
}

impl std::fmt::Debug for LogSyncer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogSyncer")
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
