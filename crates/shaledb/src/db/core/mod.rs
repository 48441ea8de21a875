//! What a database is while it is open: its state, behind locks and atomics. Nothing here reads or
//! writes a file; the rooms that follow do.

mod settings;
mod learned;
mod counters;
mod trees;
mod leader;
mod open_snapshots;
mod merge_job;
mod scheduler;
mod write_price;
mod codec_price;
mod log_keeper;
mod readers;
mod prepared;
mod followed_view;
mod blobs;
mod database;

pub(crate) use counters::MergeWork;
pub(crate) use database::Core;
pub(crate) use followed_view::FollowedView;
pub(crate) use leader::{Leader, LiveWal};
pub(crate) use learned::{Learned, LevelReads, Seen, TreeDictionary, Trial};
pub(crate) use merge_job::{Inputs, MergeJob, Progress, RoomOfMerge};
pub(crate) use open_snapshots::{Shard, Taken};
pub(crate) use prepared::{PreparedCore, PreparedWrites, TablesOf, Written};
pub(crate) use scheduler::{State, TreeDebt};
pub use settings::Settings;
pub(crate) use trees::{FlushedOf, Manual, TreeCore, Trees};
pub(crate) use write_price::{OWED_NANOS, STOP};
