//! One immutable sorted file: written once by [`TableWriter`], read by [`Table`]; and the blob
//! files of values too large for a table.

pub mod meta;
pub mod format;
pub mod dictionaries;
pub mod helpers;
pub mod gone;
pub mod env;
pub mod blob;
pub mod write;
pub mod read;
pub mod tools;
#[cfg(test)]
mod testing;

pub use blob::{Blob, BlobReader, BlobRef, BlobWriter};
pub use env::TableEnv;
pub use format::{Block, BlockSlice, RawBlock, compress, filter};
pub use meta::{FileId, TableMeta, Why};
pub use read::{
    BulkScan, CursorOptions, Look, Miss, Missed, Misses, Table, TableCursor, TableEntry,
    TableSample, VerifyCounts,
};
pub use tools::{inspect, salvage};
pub use write::{Probe, Probed, TableDictionary, TableOptions, TableWriter};
