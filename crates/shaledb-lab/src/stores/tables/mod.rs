//! Tables over a key-value engine: what all such engines share, so that they do the same work.
//!
//! - [`damaged`](mod@damaged): the error of an entry that is not a row.
//! - [`key`]: columns to bytes and back, in an order that `memcmp` keeps.
//! - [`latches`]: locks that stand for rows.
//! - [`sequence`]: primary keys that count up.
//! - [`ids`]: the least and the greatest primary key of one of several tables in a tree.
//! - [`sort`]: many keys in order, for creating an index.

pub mod damaged;
pub mod key;
pub mod latches;
pub mod sequence;
pub mod ids;
pub mod sort;
