//! What the fuzz targets in /fuzz run, kept here so that ordinary tests replay their corpora.
//!
//! Every function takes any bytes and must return: no panic, no endless loop, no memory that the
//! input does not account for. Damage must come back as
//! [`Error::Corruption`](crate::Error::Corruption); what is read must be what was written.
//! Checksums would keep a fuzzer out, so some inputs are sealed again after they are damaged.

mod input;
mod world;
mod compress;
mod entry;
mod logs;
mod ops;
mod roundtrip;
mod tables;

pub use compress::compress;
pub use entry::entry;
pub use logs::{manifest, wal};
pub use ops::ops;
pub use roundtrip::table_roundtrip;
pub use tables::{block, table};

/// A function that takes any bytes and must return.
pub type Target = fn(&[u8]);

/// The targets by name; the names of their corpora and of their programs in /fuzz.
pub const TARGETS: [(&str, Target); 8] = [
    ("compress", compress),
    ("entry", entry),
    ("block", block),
    ("table", table),
    ("table_roundtrip", table_roundtrip),
    ("wal", wal),
    ("manifest", manifest),
    ("ops", ops),
];
