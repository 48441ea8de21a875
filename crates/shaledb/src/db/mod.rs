//! A database that is open. The list of rooms is their order: each names only earlier ones (though
//! methods of `Core` call each other across rooms).
//!
//! A write goes through `commit`; a flush or a compaction is chosen, run and installed in
//! `background`, whose `threads` is the only file that spawns. What readers see changes in
//! `core/trees` (a tree's state) and `core/database` (the sequence number), and nowhere else.

#[cfg(all(test, not(feature = "shuttle")))]
mod testing;
mod core;
mod options;
mod values;
mod commit;
mod background;
mod ingest;
mod two_phase;
mod lifecycle;
mod api;
mod transaction;
mod build;

pub use api::{
    Batch, CodecStats, CpuStats, Db, DictionaryStats, Ingest, LastDeadlock, LevelStats, LockInfo,
    OperationStats, Prepared, ScanOptions, Snapshot, Stats, TransactionInfo, Tree, TreeStats,
};
#[cfg(feature = "fuzz")]
pub(crate) use build::split_entry;
pub use build::{
    BuildOptions, ChangeRound, ChangeTracker, ChangedKeys, Entries, OnlineBuild, UniqueRow,
    entry_of_row,
};
pub use core::Settings as SettingsInUse;
pub(crate) use lifecycle::make_whole;
pub use lifecycle::{VerifyProgress, VerifyReport};
pub use options::{Background, OpenOptions, WriteOptions};
pub use transaction::{
    Action, Concurrency, Isolation, LockMode, LockingScan, OnConflict, Operation, Savepoint,
    Transaction, TransactionOptions, Watch,
};
pub use values::ValueReader;

#[cfg(all(test, feature = "shuttle"))]
#[path = "shuttle_tests.rs"]
mod shuttle_tests;
