//! Shale is an embedded storage engine: a log-structured merge tree whose promise is efficiency.
//!
//! A database ([`Db`]) holds named trees ([`Tree`]): ordered maps from byte keys to byte values.
//! All trees share one write-ahead log, one commit order, one memory budget and one scheduler.
//!
//! The `mod` list below is the architecture: a module uses only modules above it. The test
//! `tests/tidy.rs` proves it.

pub mod base;
pub mod fs;
pub mod cache;
pub mod wal;
pub mod memtable;
pub mod table;
pub mod version;
pub mod state;
pub mod iter;
pub mod read;
pub mod write;
pub mod compaction;
pub mod db;
#[doc(hidden)]
pub mod fuzz;
