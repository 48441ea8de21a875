//! The content of a file of the disk in memory: what is durable of it, and to whom a failed sync
//! was reported.

use crate::base::rank;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};

/// A file, whatever its names.
pub(super) struct Node {
    pub(super) data: Mutex<Content, { rank::MEM_FILE }>,
}

/// The bytes of a file. Bytes are shared with crash clones until they change.
#[derive(Clone, Default)]
pub(super) struct Content {
    pub(super) live: Arc<Vec<u8>>,
    /// How many bytes at the front of `live` are durable.
    pub(super) synced: usize,
    /// Durable bytes after those, which the live content does not have any more.
    pub(super) cut: Vec<u8>,
    /// A sync failed with bytes unsynced; later syncs do not make them durable.
    pub(super) lost: bool,
    /// How many failed syncs the next one to return may report; see [`Reported`].
    pub(super) failures: u64,
    /// How many live names there are.
    pub(super) names: u32,
    /// Whether it is a log, which may be longer than what was appended.
    pub(super) is_log: bool,
}

impl Content {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.live
    }

    pub(super) fn sync(&mut self) {
        assert!(self.synced <= self.live.len(), "what is durable was written");
        if !self.lost {
            self.synced = self.live.len();
            self.cut = Vec::new();
        }
    }

    pub(super) fn lose(&mut self) {
        self.lost |= self.synced < self.live.len() || !self.cut.is_empty();
    }

    /// A sync has failed, and nobody has reported it yet.
    pub(super) fn lose_unreported(&mut self) {
        self.lose();
        self.failures += 1;
    }

    /// Whether there was a failure that no sync by this opening of the file has reported.
    pub(super) fn report(&self, reported: &Reported) -> bool {
        let before = reported.0.swap(self.failures, Ordering::AcqRel);
        assert!(before <= self.failures, "a failure is reported after it has happened");
        before < self.failures
    }

    /// As of a file that is opened now.
    pub(super) fn all_reported(&self) -> Arc<Reported> {
        Arc::new(Reported(AtomicU64::new(self.failures)))
    }

    pub(super) fn truncate(&mut self, bytes: usize) {
        assert!(bytes <= self.live.len(), "a cut does not lengthen");
        let durable = self.synced + self.cut.len();
        if bytes < self.synced {
            let mut cut = self.live[bytes..self.synced].to_vec();
            cut.append(&mut self.cut);
            self.cut = cut;
            self.synced = bytes;
        }
        assert_eq!(self.synced + self.cut.len(), durable, "a cut is durable by the next sync only");
        assert!(self.synced <= bytes);
        Arc::make_mut(&mut self.live).truncate(bytes);
    }
}

/// How many failures were reported to those who sync a file through one opening of it. As on Linux,
/// each is reported to one of them: who returns first.
pub(super) struct Reported(AtomicU64);
