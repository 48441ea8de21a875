//! Tables and entries for the tests of this module.

use super::env::TableEnv;
use super::format::{FileKind, file_name};
use super::meta::TableMeta;
use super::read::Table;
use super::write::{TableOptions, TableWriter};
use crate::base::config::Codec;
use crate::base::key::{Kind, SeqNo};
use crate::base::ranges::RangeDeletes;
use crate::base::stats::Recorder;
use crate::fs::mem::{MemClock, MemFs};
use crate::fs::{Env, Fs, WriteFile};
use crate::table::{TableDictionary, Why};
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(not(feature = "shuttle"))]
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Key, sequence number, kind, value.
pub type Entry = (Vec<u8>, SeqNo, Kind, Vec<u8>);

/// A simulated disk with tables on it.
pub struct World {
    pub fs: MemFs,
    pub shared: Arc<TableEnv>,
}

pub const DIR: &str = "/t";

pub fn path(id: u64) -> PathBuf {
    Path::new(DIR).join(file_name(FileKind::Table, id))
}

impl World {
    pub fn new(memory_bytes: u64) -> World {
        World::with_files_open_max(memory_bytes, 512)
    }

    pub fn with_files_open_max(memory_bytes: u64, files_open_max: usize) -> World {
        let fs = MemFs::new();
        let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
        fs.create_dir_all(Path::new(DIR)).unwrap();
        let recorder = Arc::new(Recorder::new());
        let shared = TableEnv::with_files_open_max(env, memory_bytes, recorder, files_open_max);
        World { fs, shared }
    }

    pub fn write(&self, id: u64, options: TableOptions, entries: &[Entry]) -> TableMeta {
        self.write_with(id, options, entries, &RangeDeletes::default())
    }

    pub fn write_with(
        &self,
        id: u64,
        options: TableOptions,
        entries: &[Entry],
        ranges: &RangeDeletes,
    ) -> TableMeta {
        let file = self.fs.create(&path(id)).unwrap();
        let mut writer = TableWriter::new(file, id, options);
        writer.add_range_deletes(ranges);
        for (key, seq, kind, value) in entries {
            writer.add(key, *seq, *kind, value).unwrap();
        }
        writer.finish().unwrap()
    }

    pub fn fs_create(&self, id: u64) -> Box<dyn WriteFile> {
        self.fs.create(&path(id)).unwrap()
    }

    pub fn open(&self, meta: TableMeta) -> Arc<Table> {
        let id = meta.id;
        Table::new(meta, path(id), &self.shared)
    }

    /// Runs `read` while threads take up whatever work is offered; with how many parts they did.
    #[cfg(not(feature = "shuttle"))]
    pub fn with_helpers<T>(&self, threads: usize, read: impl FnOnce() -> T) -> (T, u64) {
        let over = AtomicBool::new(false);
        let (helped, begun) = (AtomicU64::new(0), AtomicU64::new(0));
        let shared = &self.shared;
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    begun.fetch_add(1, Ordering::Relaxed);
                    while !over.load(Ordering::Relaxed) {
                        shared.helpers.idle_while(std::thread::yield_now);
                        if let Some(work) = shared.helpers.take() {
                            while work.help() {
                                helped.fetch_add(1, Ordering::Relaxed);
                            }
                            work.leave();
                        }
                    }
                });
            }
            // Also if `read` panics: else the scope waits for them.
            let ends = Ends(&over);
            while begun.load(Ordering::Relaxed) < threads as u64 {
                std::thread::yield_now();
            }
            let done = read();
            drop(ends);
            (done, helped.load(Ordering::Relaxed))
        })
    }
}

/// Ends the helpers.
#[cfg(not(feature = "shuttle"))]
struct Ends<'a>(&'a AtomicBool);

#[cfg(not(feature = "shuttle"))]
impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub fn options(codec: Codec, block_bytes: usize) -> TableOptions {
    TableOptions {
        codec,
        why: Why::Set,
        dictionary: TableDictionary::None,
        block_bytes,
        filter_bits: 10,
        tree: 1,
    }
}

/// Numbers that look like chance and are not.
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

/// `count` distinct keys of different lengths, with up to `versions` versions each.
pub fn entries(count: u64, versions: u64, seed: u64) -> Vec<Entry> {
    let mut chance = Chance(seed);
    let mut entries = Vec::new();
    for number in 0..count {
        let mut key = format!("user/{:05}", number * 3).into_bytes();
        key.extend(std::iter::repeat_n(b'x', chance.below(12) as usize));
        let mut seqs: Vec<SeqNo> =
            (0..1 + chance.below(versions)).map(|_| 1 + chance.below(1000)).collect();
        seqs.sort_unstable_by(|a, b| b.cmp(a));
        seqs.dedup();
        for seq in seqs {
            let kind = if chance.below(5) == 0 { Kind::Delete } else { Kind::Put };
            let length = if kind == Kind::Delete { 0 } else { chance.below(120) as usize };
            let value = (0..length).map(|_| b'a' + chance.below(4) as u8).collect();
            entries.push((key.clone(), seq, kind, value));
        }
    }
    entries
}
