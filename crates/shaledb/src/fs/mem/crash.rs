//! What a crash makes of the disk, and the chance that decides where it may go either way.
//!
//! A crash keeps any subset of the pending changes of names in which a kept one brings along the
//! earlier ones on the same names, and of unsynced content any mixture of sectors.

use super::content::{Content, Node};
use super::disk::{Change, Disk, Entry, HERE, Name, Names, Pending, ROOT, set};
use crate::base::sync::{Arc, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The unit in which a torn write is kept or lost.
const SECTOR_BYTES: usize = 512;

/// How many zeros may follow a log at most.
const AHEAD_BYTES: u64 = 3 * SECTOR_BYTES as u64;

/// What a crash makes of bytes and names that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashMode {
    /// All are lost: the least that a disk may keep.
    Lost,
    /// All are kept, and durable from now on.
    Kept,
    /// Names are kept or lost one by one; files end anywhere between what was synced and what was
    /// written; each unsynced sector is kept, lost (the bytes before, or zeros) or garbage.
    Torn,
}

/// Chance from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

impl Content {
    pub(super) fn flip(&mut self, offset: u64, xor: u8) -> bool {
        match usize::try_from(offset).ok().filter(|&at| at < self.live.len()) {
            Some(at) => {
                Arc::make_mut(&mut self.live)[at] ^= xor;
                true
            }
            None => false,
        }
    }

    /// The content after a crash; of a log often with zeros that its writer had ahead.
    fn crash(&self, random: &mut Random, mode: CrashMode) -> Arc<Vec<u8>> {
        let mut content = self.crash_appended(random, mode);
        if self.is_log && random.below(2) == 0 {
            let length = content.len() + random.below(AHEAD_BYTES) as usize;
            Arc::make_mut(&mut content).resize(length, 0);
        }
        content
    }

    fn crash_appended(&self, random: &mut Random, mode: CrashMode) -> Arc<Vec<u8>> {
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
        assert!(bytes >= self.synced, "what is durable is there");
        debug_assert!(after[..self.synced] == self.live[..self.synced], "and as it was written");
        Arc::new(after)
    }
}

impl Disk {
    pub(super) fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut files = Vec::new();
        let mut dirs = vec![(PathBuf::from("/"), ROOT), (PathBuf::new(), HERE)];
        while let Some((path, dir)) = dirs.pop() {
            for (name, entry) in &self.live[&dir] {
                match entry {
                    Entry::File(node) => {
                        files.push((path.join(name), node.data.lock().live.len() as u64));
                    }
                    Entry::Dir(inner) => dirs.push((path.join(name), *inner)),
                }
            }
        }
        files.sort_unstable();
        files
    }

    /// The disk as it is, durable or not, independent of this one from now on.
    pub(super) fn image(&self) -> Disk {
        let mut nodes: BTreeMap<*const Node, Arc<Node>> = BTreeMap::new();
        let mut copy = |entry: &Entry| match entry {
            Entry::Dir(id) => Entry::Dir(*id),
            Entry::File(old) => {
                let node = nodes.entry(Arc::as_ptr(old)).or_insert_with(|| {
                    Arc::new(Node { data: Mutex::new(old.data.lock().clone()) })
                });
                Entry::File(node.clone())
            }
        };
        let mut copy_names = |names: &Names| -> Names {
            let copied = names.iter().map(|(dir, entries)| {
                (*dir, entries.iter().map(|(n, e)| (n.clone(), copy(e))).collect())
            });
            copied.collect()
        };
        let (live, durable) = (copy_names(&self.live), copy_names(&self.durable));
        let mut copy_change = |change: &Change| match change {
            Change::Set(name, entry) => Change::Set(name.clone(), copy(entry)),
            Change::Unset(name) => Change::Unset(name.clone()),
            Change::Move(from, to, entry) => Change::Move(from.clone(), to.clone(), copy(entry)),
        };
        let pending = self.pending.iter();
        let pending = pending
            .map(|one| Pending { change: copy_change(&one.change), lost: one.lost })
            .collect();
        let (capacity, used, next_dir) = (self.capacity, self.used, self.next_dir);
        Disk { live, durable, pending, next_dir, locks: BTreeMap::new(), capacity, used }
    }

    /// The names after a crash.
    fn crash_names(&self, random: &mut Random, mode: CrashMode) -> Names {
        match mode {
            CrashMode::Lost => return self.durable.clone(),
            CrashMode::Kept => return self.live.clone(),
            CrashMode::Torn => {}
        }
        // Crashes that lose all or no names are as likely as all the others together.
        let chance = [0, 2, 4, 4][random.below(4) as usize];
        let mut kept = vec![false; self.pending.len()];
        let mut needed: BTreeSet<&Name> = BTreeSet::new();
        for (index, Pending { change, .. }) in self.pending.iter().enumerate().rev() {
            if change.names().any(|name| needed.contains(name)) || random.below(4) < chance {
                kept[index] = true;
                needed.extend(change.names());
            }
        }
        let mut names = self.durable.clone();
        for (pending, _) in self.pending.iter().zip(kept).filter(|&(_, kept)| kept) {
            pending.change.clone().apply(&mut names);
        }
        names
    }

    pub(super) fn crash(&self, seed: u64, mode: CrashMode) -> Disk {
        let mut random = Random(seed);
        let names = self.crash_names(&mut random, mode);
        let mut disk = Disk::new();
        // Old node (by address) -> new node, so that links stay links.
        let mut nodes: BTreeMap<*const Node, Arc<Node>> = BTreeMap::new();
        // Only what can be reached from a root is there.
        let mut dirs = vec![ROOT, HERE];
        while let Some(dir) = dirs.pop() {
            for (name, entry) in names.get(&dir).into_iter().flatten() {
                let full = (dir, name.clone());
                match entry {
                    Entry::Dir(inner) => {
                        dirs.push(*inner);
                        set(&mut disk.live, full, Entry::Dir(*inner));
                    }
                    Entry::File(old) => {
                        let node = nodes.entry(Arc::as_ptr(old)).or_insert_with(|| {
                            let live = old.data.lock().crash(&mut random, mode);
                            disk.used += live.len() as u64;
                            let synced = live.len();
                            let content = Content { live, synced, ..Content::default() };
                            Arc::new(Node { data: Mutex::new(content) })
                        });
                        node.data.lock().names += 1;
                        set(&mut disk.live, full, Entry::File(node.clone()));
                    }
                }
            }
        }
        disk.next_dir = self.next_dir;
        disk.durable = disk.live.clone();
        disk
    }
}
