//! Online builds: a tree is filled from live data while writers go on.

mod sorter;
mod entry;
mod unique;
mod online;

#[cfg(feature = "fuzz")]
pub(crate) use entry::split_entry;
pub use entry::{UniqueRow, entry_of_row};
pub use online::{BuildOptions, Entries, OnlineBuild};
