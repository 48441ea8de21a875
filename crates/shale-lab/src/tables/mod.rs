//! Tables over a key-value engine: what all such engines share, so that they do the same work.
//!
//! - [`key`]: columns to bytes and back, in an order that `memcmp` keeps.
//! - [`sequence`]: primary keys that count up.
//! - [`kv`]: an engine as a store.

pub mod key;
pub mod kv;
pub mod sequence;
