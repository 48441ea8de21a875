//! What a database is made of: the parts that commits, reads and background work share.
//!
//! In which order its mutexes are taken, and across which I/O each is held: `base/rank`.

use super::blobs::Blobs;
use super::codec_price::CodecPrice;
use super::followed_view::FollowedView;
use super::leader::{Leader, LiveWal};
use super::log_keeper::LogKeeper;
use super::open_snapshots::Snapshots;
use super::prepared::PreparedCore;
use super::readers::Readers;
use super::scheduler::Scheduler;
use super::settings::Settings;
use super::trees::Trees;
use super::write_price::WritePrice;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::rank;
use crate::base::stats::Recorder;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};
use crate::fs::guard::{Guard, GuardedFs};
use crate::fs::ledger::{Ledger, Payer};
use crate::fs::{Env, Fs, Lock};
use crate::memtable::Memtable;
use crate::table::TableEnv;
use crate::table::blob::{Blob, BlobRef};
use crate::table::format::{FileKind, file_name};
use crate::table::meta::FileId;
use crate::txn::LockTable;
use crate::version::manifest::{Manifest, Recovered};
use crate::wal::LogWriter;
use crate::write::queue::CommitQueue;
use crate::write::stalled::Stalled;
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A database.
pub(crate) struct Core {
    pub env: Env,
    /// The file system of `env`, for files that others pay for.
    door: GuardedFs,
    /// Its directory, whatever that of the process becomes.
    pub dir: PathBuf,
    /// The same as the user gave it.
    pub given: PathBuf,
    pub settings: Settings,
    pub read_only: bool,
    /// Whether background work is stepped by the caller instead of threads.
    pub stepped: bool,
    pub tables: Arc<TableEnv>,
    pub recorder: Arc<Recorder>,
    pub trees: ArcSwap<Trees>,
    pub queue: CommitQueue,
    pub leader: Mutex<Leader, { rank::LEADER }>,
    /// Every operation up to this one is visible to reads.
    pub visible: AtomicU64,
    /// Every operation up to this one is known to be synced.
    pub durable: AtomicU64,
    pub snapshots: Snapshots,
    pub manifest: Mutex<Option<Manifest>, { rank::MANIFEST }>,
    pub next_file: AtomicU64,
    pub next_tree: AtomicU64,
    pub wals: Mutex<Vec<LiveWal>, { rank::LOG_FILES }>,
    /// The next log file, made in advance.
    pub spare_log: Mutex<Option<LogWriter>, { rank::SPARE_LOG }>,
    /// Who works ahead of the writers of logs.
    pub log_keeper: LogKeeper,
    /// Every operation up to this one is in tables, says the manifest.
    pub flushed_to: AtomicU64,
    /// The first log file that a recovery needs, says the manifest.
    pub log_file: AtomicU64,
    pub sched: Scheduler,
    pub throttle: WritePrice,
    /// How long writers waited.
    pub stalled: Stalled,
    /// By what codecs are chosen.
    pub codec_price: CodecPrice,
    /// Whether users read.
    pub readers: Readers,
    /// The locks of transactions.
    pub locks: LockTable,
    /// Transactions that are prepared and not decided, by name.
    pub prepared: Mutex<BTreeMap<Vec<u8>, PreparedCore>, { rank::PREPARED }>,
    /// The last commit of a prepared transaction.
    pub decided: AtomicU64,
    /// Whether scans may have passed so many dead entries of a memtable that a flush is worth it.
    pub dead_passed: AtomicBool,
    /// Blob files in use.
    pub blobs: Mutex<Blobs, { rank::BLOBS }>,
    /// Set by the failure after which no write is accepted any more.
    pub guard: Arc<Guard>,
    pub closed: AtomicBool,
    /// Whether the user called `close`: then scans end too.
    pub ended: Arc<AtomicBool>,
    /// When the database was opened, in clock nanoseconds.
    pub opened_at: u64,
    /// What it shows, if another process writes it.
    pub followed: Option<Arc<ArcSwap<FollowedView>>>,
    /// Released when closed.
    pub lock: Mutex<Option<Box<dyn Lock>>, { rank::DIRECTORY }>,
}

impl Core {
    /// A database without trees and without a log, as its manifest describes it.
    pub fn new(
        (env, door): (Env, GuardedFs),
        dir: PathBuf,
        given: &Path,
        settings: Settings,
        recovered: &Recovered,
        guard: Arc<Guard>,
    ) -> Core {
        let recorder = Arc::new(Recorder::new());
        let tables = TableEnv::new(env.clone(), settings.memory_bytes, recorder.clone());
        let of_tables = Arc::downgrade(&tables);
        door.handles().close_by(move || {
            of_tables.upgrade().is_some_and(|tables| tables.close_unused_files())
        });
        let opened_at = env.clock.now_nanos();
        // A lock for every few hundred bytes of data that is in memory.
        let locks = LockTable::new(settings.memory_bytes / 16);
        Core {
            env,
            door,
            dir,
            given: given.to_owned(),
            settings,
            read_only: false,
            stepped: false,
            tables,
            recorder,
            trees: ArcSwap::from_pointee(Trees::default()),
            queue: CommitQueue::new(),
            leader: Mutex::new(Leader {
                wal: None,
                next_seq: recovered.last_seq + 1,
                buffer: Vec::new(),
                unsynced: Vec::new(),
                dirty: false,
                bytes_since_check: 0,
            }),
            visible: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            snapshots: Snapshots::new(),
            manifest: Mutex::new(None),
            next_file: AtomicU64::new(recovered.next_file),
            next_tree: AtomicU64::new(recovered.next_tree.max(1).into()),
            wals: Mutex::new(Vec::new()),
            spare_log: Mutex::new(None),
            log_keeper: LogKeeper::default(),
            flushed_to: AtomicU64::new(recovered.log.seq),
            log_file: AtomicU64::new(recovered.log.file),
            sched: Scheduler::new(),
            throttle: WritePrice::default(),
            stalled: Stalled::default(),
            codec_price: CodecPrice::default(),
            readers: Readers::default(),
            locks,
            prepared: Mutex::new(BTreeMap::new()),
            decided: AtomicU64::new(0),
            dead_passed: AtomicBool::new(false),
            blobs: Mutex::default(),
            guard,
            closed: AtomicBool::new(false),
            ended: Arc::default(),
            opened_at,
            followed: None,
            lock: Mutex::new(None),
        }
    }

    /// What the database's files take.
    pub fn space(&self) -> &Arc<Ledger> {
        self.door.ledger()
    }

    /// Disk and clock, for files that another pays for than the engine.
    pub fn env_paid_by(&self, payer: Payer) -> Env {
        let fs: Arc<dyn Fs> = Arc::new(self.door.paid_by(payer));
        Env { fs, clock: self.env.clock.clone() }
    }

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
        let cause = std::io::Error::other("a thread panicked in the middle of the change");
        self.poison(Error::io("complete a change of", &self.dir, cause))
    }

    /// The handle of a blob file of this database.
    pub fn blob(&self, id: FileId) -> Arc<Blob> {
        let make = || Blob::new(id, self.path(FileKind::Blob, id), &self.tables);
        // In a fork whoever held the lock is not here.
        if self.guard.is_foreign() {
            return make();
        }
        self.blobs.lock().share(id, make)
    }

    /// The handle of the blob file that a reference names.
    pub fn blob_of_ref(&self, reference: &[u8]) -> Option<Arc<Blob>> {
        Some(self.blob(BlobRef::decode(reference)?.file))
    }

    /// Has a memtable keep the blob file that an entry of it refers to; answers with its handle.
    pub fn attach_blob(&self, memtable: &Memtable, reference: &[u8]) -> Option<Arc<Blob>> {
        let reference = BlobRef::decode(reference)?;
        let blob = self.blob(reference.file);
        memtable.attach(blob.clone(), blob.memory_bytes(), reference.file_bytes());
        Some(blob)
    }

    /// To be called once: when a snapshot ends for which something was kept, background work looks
    /// at all trees again.
    pub fn watch_snapshots(self: &Arc<Core>) {
        let core = Arc::downgrade(self);
        self.snapshots.on_freed(move || {
            if let Some(core) = core.upgrade() {
                core.sched.want_looks(core.trees.load().by_id.keys().copied());
            }
        });
    }

    /// The first number that no read sees. Who applies operations makes it visible with all of
    /// them.
    pub fn first_unseen(&self) -> SeqNo {
        self.visible.load(Ordering::Acquire) + 1
    }

    /// Makes every operation up to `seq` visible to reads. Only who holds the leader's lock calls
    /// it, or nobody else can write yet; of a database that is followed, who holds its `Follower`.
    pub fn publish(&self, seq: SeqNo) {
        debug_assert!(self.visible.load(Ordering::Relaxed) <= seq, "what is visible stays visible");
        self.visible.store(seq, Ordering::Release);
    }
}
