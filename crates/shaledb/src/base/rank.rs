//! The order in which the engine's mutexes are taken: whoever holds one takes only later ones.
//!
//! Each mutex names its rank in its type, so this list is all of them. Builds with debug assertions
//! stop at a mutex that is taken out of order, whether or not another thread is in the way at that
//! moment: every test and every run of the simulator asks it (but for shuttle's, which look for
//! deadlocks themselves). So no threads can wait for each other in a circle of mutexes. (Who waits
//! for whom by the locks of transactions is another matter: see `txn/locks`.)
//!
//! Each says across which I/O it may be held; where nothing is said, across none.

/// A caller's own, as tests have it: taken before any of the engine's.
pub const CALLER: u8 = 0;
/// `Handle::threads`: the threads of a database. Across all that closing does.
pub const THREADS: u8 = 1;
/// `Follower`: how far another process's log was read. Across reads of its manifest and log, and
/// the opening of its tables.
pub const FOLLOWER: u8 = 2;
/// `Core::leader`: what only the leader of a commit group touches. Across the append and the sync
/// of the log, and the making of its next file if none was made in advance. Writers wait for what
/// comes rarely, too: a bulk load and prepared tables (a flush, renames, an edit), the creating and
/// dropping of trees (an edit), a checkpoint (hard links).
pub const LEADER: u8 = 3;
/// `Core::manifest`. Across the append and the sync of an edit, the writing of a new manifest in
/// the place of a long one, the reading of its file where that is checked, and the hard links of a
/// checkpoint.
pub const MANIFEST: u8 = 4;
/// `Core::lock`: the lock of the directory. Across its release.
pub const DIRECTORY: u8 = 5;
/// `MergeJob::progress`: how far a merge has come.
pub const MERGE: u8 = 6;
/// `Core::prepared`: transactions that are prepared and not decided. Across the hard links of a
/// checkpoint.
pub const PREPARED: u8 = 7;
/// `Core::spare_log`: the next log file. Across its removal, when the database is closed.
pub const SPARE_LOG: u8 = 8;
/// `Core::wals`: the log files that a recovery may need. Across the hard links of a checkpoint.
pub const LOG_FILES: u8 = 9;
/// `TreeCore::swap`: held while what readers of a tree see is replaced.
pub const SWAP: u8 = 10;
/// `Scheduler::state`: what background work is wanted and what runs. The picker looks at range
/// deletes under it, which have been read before; only after a failed read it reads them again.
pub const SCHEDULER: u8 = 11;
/// `TreeCore::manual`: a compaction on request.
pub const MANUAL: u8 = 12;
/// A shard of `Core::snapshots`.
pub const SNAPSHOTS: u8 = 13;
/// `TreeCore::levels`: counters.
pub const LEVELS: u8 = 14;
/// `Core::blobs`: the handles of blob files.
pub const BLOBS: u8 = 15;
/// `CommitQueue::state`: the group that commits join. Not held while its leader writes it.
pub const QUEUE: u8 = 16;
/// `LockTable::waits`: who waits for a lock of a transaction.
pub const LOCK_WAITS: u8 = 17;
/// A shard of the lock table. Who begins to wait takes all of them, in their order.
pub const LOCK_SHARD: u8 = 18;
/// `Slot::outcome`: what has become of a request for a lock.
pub const LOCK_OUTCOME: u8 = 19;
/// `LockTable::last_deadlock`.
pub const LAST_DEADLOCK: u8 = 20;
/// A list of the transactions that are under way.
pub const LIVE: u8 = 21;
/// `Memtable::attached`: blob files that a memtable refers to.
pub const ATTACHED: u8 = 22;
/// The writer of a memtable's range deletes.
pub const RANGE_DELETES: u8 = 23;
/// `Filter::filled`: how far the filter of a memtable has come.
pub const MEMTABLE_FILTER: u8 = 24;
/// `Arena::chunks`.
pub const ARENA: u8 = 25;
/// `TableEnv::files`: which table files are open. Across the closing of files.
pub const OPEN_FILES: u8 = 26;
/// `TableEnv::indexes`: which indexes are in memory.
pub const INDEXES: u8 = 27;
/// `Memory::cache`: the block cache, when its size changes.
pub const CACHE: u8 = 28;
/// `Frames::free`: which frames of the block cache have no value.
pub const FRAMES: u8 = 29;
/// The gate of the syncs of one file. Not held while a sync runs.
pub const SYNCS: u8 = 30;
/// `Guard::cause`: why no write is accepted any more.
pub const CAUSE: u8 = 31;
/// The simulated disk.
pub const MEM_DISK: u8 = 32;
/// A file of the simulated disk.
pub const MEM_FILE: u8 = 33;

/// `Ahead::state`: what is read ahead of a scan. Not held while blocks are read.
pub const READ_AHEAD: u8 = 34;
/// `Missed::state`: which blocks of a look-up of several keys are read. Not held while one is.
pub const MISSED: u8 = 41;
/// `Helpers::offers`: readers' work that idle threads may share.
pub const OFFERS: u8 = 35;
/// `LogKeeper::state`: which log files are prepared ahead of their writer.
pub const LOG_KEEPER: u8 = 36;
/// What the writer of a log file and the thread ahead of it share. Not held while pages are mapped.
pub const LOG_WINDOWS: u8 = 37;
/// `CodecPrice::state`: by what codecs were chosen last.
pub const CODECS: u8 = 38;
/// `Dictionaries::state`: which dictionaries are in memory.
pub const DICTIONARIES: u8 = 39;
/// `Ledger::sums`: the bytes that the database's files take.
pub const LEDGER: u8 = 40;
/// `GoneFiles::left`: files that a thread of the engine is to remove.
pub const GONE_FILES: u8 = 42;
/// `Core::stalled`: how many writers wait.
pub const STALLED: u8 = 43;
/// `Changes::under_way`: how many calls make, name or remove files. Not held while they do.
pub const CHANGES: u8 = 44;

/// Of which several are held at once, in an order of their own that nothing checks: one function
/// takes them (`LockTable::freeze`).
pub const MANY: [u8; 1] = [LOCK_SHARD];
