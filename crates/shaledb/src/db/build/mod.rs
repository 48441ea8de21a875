//! Online builds: a tree is filled from live data while writers go on.

mod sorter;
mod online;

pub use online::{BuildOptions, Entries, OnlineBuild};
