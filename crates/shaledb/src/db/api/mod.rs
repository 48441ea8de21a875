//! What users work with: databases, trees, batches, snapshots, scans, bulk loads, statistics.

mod handle;
mod snapshot;
mod tree;
mod scan;
mod batch;
mod tree_write;
mod ingest;
mod codec_stats;
mod level_stats;
mod stats;
mod transactions;
mod prepared;
mod follower;
mod db;

pub use batch::Batch;
pub use codec_stats::{CodecStats, DictionaryStats};
pub use handle::Db;
pub(crate) use handle::Handle;
pub use ingest::Ingest;
pub use level_stats::LevelStats;
pub use prepared::Prepared;
pub use scan::ScanOptions;
pub use snapshot::Snapshot;
pub use stats::{CpuStats, OperationStats, Stats, TreeStats};
pub use transactions::{LastDeadlock, LockInfo, TransactionInfo};
pub use tree::Tree;
