//! Shale is an embedded storage engine: a log-structured merge tree whose promise is efficiency.
//!
//! A database ([`Db`]) holds named trees ([`Tree`]): ordered maps from byte keys (to 64 KiB) to
//! byte values (to 4 GiB). All trees share one write-ahead log, one commit order, one memory bound
//! and one scheduler. Handles are `Send`, `Sync` and cheap to clone; no async runtime is needed.
//!
//! ```
//! use shaledb::{Batch, Config, Db, WriteOptions};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! let db = Db::open(dir.path(), Config::default())?;
//! let users = db.tree_or_create("users")?;
//! users.put(b"ada", b"1815")?;
//!
//! let mut batch = Batch::new();
//! batch.put(&users, b"grace", b"1906");
//! batch.delete(&users, b"ada");
//! db.write(&batch, WriteOptions::SYNC)?; // all or nothing, durable on return
//!
//! let snapshot = db.snapshot();
//! users.put(b"grace", b"?")?;
//! assert_eq!(users.get_at(b"grace", &snapshot)?.unwrap(), b"1906");
//! for row in users.scan_prefix(b"g")? {
//!     let (key, value) = row?;
//!     println!("{} {}", key.escape_ascii(), value.escape_ascii());
//! }
//! # Ok::<(), shaledb::Error>(())
//! ```
//!
//! # Durability
//! A commit that asks for it ([`WriteOptions::SYNC`]) is durable when the call returns, and so is
//! every commit before it. Without, a commit survives a crash of the process, and what survives a
//! crash of the machine is a prefix of the commit order: never a hole, never half a batch.
//!
//! # How it is built
//! The `mod` list of this file is the architecture: a module names only earlier ones of it, which
//! the test `tests/tidy` proves. What users need is shown here and has examples, which the test
//! `tests/examples.rs` proves. The other modules are public for the tools that come with the
//! engine (fuzzing, the simulator, benchmarks) and may change with any version.

// Compiled without `cfg(doc)`, and so asked for documentation like all that is public.
#[cfg_attr(doc, doc(hidden))]
pub mod base;
pub mod fs;
#[cfg_attr(doc, doc(hidden))]
pub mod cache;
#[cfg_attr(doc, doc(hidden))]
pub mod wal;
#[cfg_attr(doc, doc(hidden))]
pub mod memtable;
#[cfg_attr(doc, doc(hidden))]
pub mod table;
#[cfg_attr(doc, doc(hidden))]
pub mod version;
#[cfg_attr(doc, doc(hidden))]
pub mod state;
#[cfg_attr(doc, doc(hidden))]
pub mod iter;
#[cfg_attr(doc, doc(hidden))]
pub mod read;
#[cfg_attr(doc, doc(hidden))]
pub mod compaction;
#[cfg_attr(doc, doc(hidden))]
pub mod write;
#[cfg_attr(doc, doc(hidden))]
pub mod txn;
pub mod inspect;
#[cfg_attr(doc, doc(hidden))]
pub mod db;
pub mod repair;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;

pub use base::config::{Codec, Codecs, Config, SyncPolicy, TreeConfig};
pub use base::error::{Error, Result};
pub use base::key::SeqNo;
pub use base::lock_error::{Deadlock, DeadlockEdge};
pub use db::{
    Action, Background, Batch, BuildOptions, ChangeRound, ChangeTracker, ChangedKeys, CodecStats,
    Concurrency, CpuStats, Db, DictionaryStats, Entries, Ingest, Isolation, LastDeadlock,
    LevelStats, LockInfo, LockMode, LockingScan, OnConflict, OnlineBuild, OpenOptions, Operation,
    OperationStats, Prepared, Savepoint, ScanOptions, Snapshot, Stats, Transaction,
    TransactionInfo, TransactionOptions, Tree, TreeStats, UniqueRow, ValueReader, VerifyProgress,
    VerifyReport, Watch, WriteOptions, entry_of_row,
};
#[doc(inline)]
pub use fs::Env;
pub use read::{RowEstimate, Scan, Value};
pub use txn::Interrupt;
pub use version::TreeId;
pub use write::space::SpaceState;

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
