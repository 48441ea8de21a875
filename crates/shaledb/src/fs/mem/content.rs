//! The content of a file of the simulated disk: what is durable of it, who was told of a failed
//! sync, and what a crash makes of the rest.

use super::crash::{CrashMode, Random};
use crate::base::rank;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};

/// The unit in which a torn write is kept or lost.
const SECTOR_BYTES: usize = 512;

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
    /// How many failed syncs the next one to return may be told of; see [`Told`].
    pub(super) failures: u64,
    /// How many live names there are.
    pub(super) names: u32,
}

impl Content {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.live
    }

    pub(super) fn sync(&mut self) {
        if !self.lost {
            self.synced = self.live.len();
            self.cut = Vec::new();
        }
    }

    pub(super) fn lose(&mut self) {
        self.lost |= self.synced < self.live.len() || !self.cut.is_empty();
    }

    /// A sync has failed of which it is not said yet who is told.
    pub(super) fn lose_untold(&mut self) {
        self.lose();
        self.failures += 1;
    }

    /// Whether there was a failure that nobody was told of who has the file open as this one.
    pub(super) fn tell(&self, told: &Told) -> bool {
        told.0.swap(self.failures, Ordering::AcqRel) < self.failures
    }

    /// As of a file that is opened now.
    pub(super) fn all_told(&self) -> Arc<Told> {
        Arc::new(Told(AtomicU64::new(self.failures)))
    }

    pub(super) fn flip(&mut self, offset: u64, xor: u8) -> bool {
        match usize::try_from(offset).ok().filter(|&at| at < self.live.len()) {
            Some(at) => {
                Arc::make_mut(&mut self.live)[at] ^= xor;
                true
            }
            None => false,
        }
    }

    pub(super) fn truncate(&mut self, bytes: usize) {
        if bytes < self.synced {
            let mut cut = self.live[bytes..self.synced].to_vec();
            cut.append(&mut self.cut);
            self.cut = cut;
            self.synced = bytes;
        }
        Arc::make_mut(&mut self.live).resize(bytes, 0);
    }

    /// The content after a crash.
    pub(super) fn crash(&self, random: &mut Random, mode: CrashMode) -> Arc<Vec<u8>> {
        if mode == CrashMode::Kept || (self.synced == self.live.len() && self.cut.is_empty()) {
            return self.live.clone();
        }
        let mut durable = self.live[..self.synced].to_vec();
        durable.extend_from_slice(&self.cut);
        if mode == CrashMode::Lost {
            return Arc::new(durable);
        }
        let (low, high) = if durable.len() < self.live.len() {
            (durable.len(), self.live.len())
        } else {
            (self.live.len(), durable.len())
        };
        // The ends are likelier than the middle.
        let bytes = match random.below(4) {
            0 => low,
            1 => high,
            _ => low + random.below((high - low + 1) as u64) as usize,
        };
        let mut after = durable.clone();
        after.resize(bytes, 0);
        // A third of the files fares alike in all sectors.
        let fate = random.below(9);
        let mut at = self.synced;
        while at < bytes {
            let end = ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(bytes);
            match if fate < 3 { fate } else { random.below(4) } {
                0 => {
                    let new = self.live.get(at..end.min(self.live.len())).unwrap_or_default();
                    after[at..at + new.len()].copy_from_slice(new);
                }
                1 => {}
                2 => after[at..end].fill(0),
                _ => after[at..end].iter_mut().for_each(|byte| *byte = random.next() as u8),
            }
            at = end;
        }
        Arc::new(after)
    }
}

/// Of how many failures those were told who sync a file through one opening of it. As on Linux, one
/// of them is told of each: who returns first.
pub(super) struct Told(AtomicU64);
