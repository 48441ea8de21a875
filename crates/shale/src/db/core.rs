//! What a database is made of: the parts that commits, reads and background work share.
//!
//! Locks, in the order in which they may be taken together: `leader`, `manifest`, a tree's `swap`,
//! `sched`, a shard of `snapshots`. None is held across a read of a table; `leader` is held across
//! the append (and sync) of the log, `manifest` across the append and sync of an edit.

use super::held::Snapshots;
use super::prepared::PreparedCore;
use super::sched::Scheduler;
use super::throttle_state::ThrottleState;
use crate::base::config::{Config, SyncPolicy, TreeConfig};
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::stats::Recorder;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};
use crate::fs::guard::Guard;
use crate::fs::{Env, Lock};
use crate::memtable::Memtable;
use crate::state::TreeState;
use crate::table::TableEnv;
use crate::table::format::{FileKind, file_name};
use crate::table::meta::FileId;
use crate::txn::LockTable;
use crate::version::TreeId;
use crate::version::manifest::Manifest;
use crate::wal::{WalSyncer, WalWriter};
use crate::write::queue::CommitQueue;
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The settings with everything left open filled in.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub memory_bytes: u64,
    pub memtable_bytes: u64,
    /// Active and sealed memtables of all trees together may take this much; then writers wait.
    pub memtables_bytes_max: u64,
    pub table_bytes: u64,
    pub background_threads: usize,
    pub sync: SyncPolicy,
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
            0 => (memory_bytes / 16).clamp(64 << 10, 64 << 20),
            bytes => bytes,
        };
        Settings {
            memory_bytes,
            memtable_bytes,
            memtables_bytes_max: (4 * memtable_bytes).min(memory_bytes / 2).max(memtable_bytes),
            table_bytes: config.table_bytes,
            background_threads: match config.background_threads {
                // A lone thread would let writers wait for a flush behind a whole compaction.
                0 => cores.clamp(2, 8),
                threads => threads as usize,
            },
            sync: config.sync,
            tree: config.tree.clone(),
        }
    }
}

/// One tree.
pub(crate) struct TreeCore {
    pub id: TreeId,
    pub name: String,
    pub config: TreeConfig,
    /// What a reader sees. Replaced only by `install`.
    pub state: ArcSwap<TreeState>,
    /// Held while `state` is replaced.
    pub swap: Mutex<()>,
    pub dropped: AtomicBool,
    /// Where compaction of this tree stands; see `stats`.
    pub levels: Mutex<super::stats::LevelCounters>,
    /// A request to compact a range down to the last level.
    pub manual: Mutex<Option<super::work::Manual>>,
}

impl TreeCore {
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// The first sequence number that is in a memtable only, if any.
    pub fn first_unflushed(&self) -> Option<SeqNo> {
        self.first_unflushed_but(&FlushedOf::new())
    }

    /// As [`TreeCore::first_unflushed`], leaving out what is being flushed.
    pub fn first_unflushed_but(&self, flushed: &FlushedOf<'_>) -> Option<SeqNo> {
        let but = flushed.get(&self.id).copied().unwrap_or_default();
        let state = self.state.load();
        // Not just of the oldest: one may need the log from before its first entry on.
        let counts =
            |memtable: &&Arc<Memtable>| !but.iter().any(|other| Arc::ptr_eq(other, memtable));
        state.memtables().filter(counts).filter_map(|memtable| memtable.first_seq()).min()
    }
}

/// The memtables that a flush writes, by tree, newest first.
pub(crate) type FlushedOf<'a> = BTreeMap<TreeId, &'a [Arc<Memtable>]>;

/// All trees. Replaced as a whole when one is created or dropped.
#[derive(Clone, Default)]
pub(crate) struct Trees {
    pub by_id: BTreeMap<TreeId, Arc<TreeCore>>,
    pub by_name: BTreeMap<String, Arc<TreeCore>>,
}

impl Trees {
    pub fn insert(&mut self, tree: Arc<TreeCore>) {
        self.by_name.insert(tree.name.clone(), tree.clone());
        self.by_id.insert(tree.id, tree);
    }

    pub fn remove(&mut self, tree: &TreeCore) {
        self.by_name.remove(&tree.name);
        self.by_id.remove(&tree.id);
    }
}

/// What only the leader of a commit group touches.
pub(crate) struct Leader {
    /// `None` in a database opened for reading only, and once closed.
    pub wal: Option<WalWriter>,
    pub next_seq: SeqNo,
    /// The framed records of a group; kept for its memory.
    pub buffer: Vec<u8>,
    /// Older logs with bytes that no sync has covered yet.
    pub unsynced: Vec<Arc<WalSyncer>>,
    /// Whether there are records that no sync has covered yet.
    pub dirty: bool,
    /// Bytes of operations since the memtables of all trees were last looked at.
    pub bytes_since_check: u64,
}

/// A log file that may still be needed for recovery.
#[derive(Clone, Debug)]
pub(crate) struct LiveWal {
    pub id: FileId,
    /// The last sequence number inside; `None` while it is the one being written.
    pub last_seq: Option<SeqNo>,
    pub bytes: u64,
}

/// A database.
pub(crate) struct Core {
    pub env: Env,
    pub dir: PathBuf,
    pub settings: Settings,
    pub read_only: bool,
    /// Whether background work is stepped by the caller instead of threads.
    pub stepped: bool,
    pub tables: Arc<TableEnv>,
    pub recorder: Arc<Recorder>,
    pub trees: ArcSwap<Trees>,
    pub queue: CommitQueue,
    pub leader: Mutex<Leader>,
    /// Every operation up to this one is visible to reads.
    pub visible: AtomicU64,
    /// Every operation up to this one is known to be synced.
    pub durable: AtomicU64,
    pub snapshots: Snapshots,
    pub manifest: Mutex<Option<Manifest>>,
    pub next_file: AtomicU64,
    pub next_tree: AtomicU64,
    pub wals: Mutex<Vec<LiveWal>>,
    /// The next log file, made in advance.
    pub spare_log: Mutex<Option<WalWriter>>,
    /// Every operation up to this one is in tables, says the manifest.
    pub covered: AtomicU64,
    /// The first log file that a recovery needs, says the manifest.
    pub log_file: AtomicU64,
    pub sched: Scheduler,
    pub throttle: ThrottleState,
    /// The locks of transactions.
    pub locks: LockTable,
    /// Transactions that are prepared and not decided, by name.
    pub prepared: Mutex<BTreeMap<Vec<u8>, PreparedCore>>,
    /// The last commit of a prepared transaction.
    pub decided: AtomicU64,
    /// Blob files in use.
    pub blobs: Mutex<super::blobs::Blobs>,
    /// Set by the failure after which no write is accepted any more.
    pub guard: Arc<Guard>,
    pub closed: AtomicBool,
    /// Whether that was in so many words: then scans end too.
    pub ended: Arc<AtomicBool>,
    /// When the database was opened, in clock nanoseconds.
    pub opened_at: u64,
    /// What it shows, if another process writes it.
    pub follower: Option<super::follow::Follower>,
    /// Released when closed.
    pub lock: Mutex<Option<Box<dyn Lock>>>,
}

impl Core {
    /// A file number never used before.
    pub fn new_file(&self) -> FileId {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// The path of a file of this database.
    pub fn path(&self, kind: FileKind, id: FileId) -> PathBuf {
        self.dir.join(file_name(kind, id))
    }

    /// Refuses writes that cannot be made.
    pub fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        self.check_open()?;
        self.guard.check()
    }

    /// Whether an earlier failure leaves unknown what is durable, or the files are another
    /// process's.
    pub fn is_poisoned(&self) -> bool {
        self.guard.is_set()
    }

    /// Refuses everything once the database is closed.
    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Refuses all further writes because of `error`, and answers with it.
    pub fn poison(&self, error: Error) -> Error {
        match error {
            Error::Forked { .. } => error,
            other => self.guard.poison(&other),
        }
    }

    /// The sequence numbers that readers may look at tables with, ascending: those of snapshots,
    /// and the newest visible one, since a snapshot taken from now on is at that or a later one.
    /// To be asked for after the tables: what is in them and visible then is at or before it.
    pub fn reader_seqs(&self) -> Vec<SeqNo> {
        self.snapshots.seqs(&self.visible, false)
    }

    /// As [`Core::reader_seqs`], for whoever keeps something for them: when those that are open now
    /// end, background work looks at the trees again.
    pub fn reader_seqs_to_keep(&self) -> Vec<SeqNo> {
        self.snapshots.seqs(&self.visible, true)
    }

    /// Refuses all further writes after a panic that may have left a change half made.
    pub fn poison_after_panic(&self) -> Error {
        let cause = std::io::Error::other("a thread panicked in the middle of it");
        self.poison(Error::io("complete a change of", &self.dir, cause))
    }
}
