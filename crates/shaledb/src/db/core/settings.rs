//! The settings in use.

use crate::base::config::{Config, SyncPolicy, TreeConfig};
use crate::memtable::Memtable;
use crate::write::space;

/// The share of the memory that what merges hold is meant to be: one in so many.
const MERGES_SHARE: u64 = 8;

/// The settings with everything left open filled in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The bound on memory, in bytes.
    pub memory_bytes: u64,
    /// The memory that a memtable may take, in bytes.
    pub memtable_bytes: u64,
    /// How much of it is in use when a memtable is sealed, in bytes.
    pub memtable_full_bytes: u64,
    /// Active and sealed memtables of all trees together may take this much; then writers wait.
    pub memtables_bytes_max: u64,
    /// The aim for the size of a table, in bytes.
    pub table_bytes: u64,
    /// Threads for flushes and compactions.
    pub background_threads: usize,
    /// Cores of the machine.
    pub cores: usize,
    /// When commits become durable that do not ask for it.
    pub sync: SyncPolicy,
    /// The settings of trees without their own.
    pub tree: TreeConfig,
}

impl Settings {
    /// Fills in what the user left open, from the machine's memory and cores.
    pub fn resolve(config: &Config, machine_memory: u64, cores: usize) -> Settings {
        let memory_bytes = match config.memory_bytes {
            0 => (machine_memory / 4).max(64 << 20),
            bytes => bytes,
        };
        let memtable_bytes = match config.memtable_bytes {
            0 => {
                let usual = (memory_bytes / 16).clamp(64 << 10, 64 << 20);
                space::memtable_bytes(config.space_limit, usual)
            }
            bytes => bytes,
        };
        let memtables_bytes_max = (4 * memtable_bytes).min(memory_bytes / 2).max(memtable_bytes);
        assert!(memtable_bytes > 0 && memtables_bytes_max >= memtable_bytes, "a memtable has room");
        Settings {
            memory_bytes,
            memtable_bytes,
            memtable_full_bytes: Memtable::full_bytes(memtable_bytes),
            memtables_bytes_max,
            table_bytes: space::table_bytes(config.space_limit, config.table_bytes),
            background_threads: match config.background_threads {
                // A lone thread would let writers wait for a flush behind a whole compaction.
                0 => cores.clamp(2, 8),
                threads => threads as usize,
            },
            cores: cores.max(1),
            sync: config.sync,
            tree: config.tree.clone(),
        }
    }

    /// About how much memory one of the merges may hold that run at a time.
    pub fn merge_bytes(&self) -> u64 {
        self.memory_bytes / MERGES_SHARE / self.background_threads as u64
    }
}
