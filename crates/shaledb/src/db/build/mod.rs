//! Online builds: a tree is filled from live data while writers go on.

mod sorter;
mod entry;
mod options;
mod writers;
mod changes;
mod unique;
mod online;

pub use changes::{ChangeRound, ChangeTracker, ChangedKeys};
#[cfg(feature = "fuzz")]
pub(crate) use entry::split_entry;
pub use entry::{UniqueRow, entry_of_row};
pub use online::{Entries, OnlineBuild};
pub use options::BuildOptions;
