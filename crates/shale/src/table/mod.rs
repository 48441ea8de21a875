//! One immutable sorted file: written once by [`TableWriter`], read by [`Table`]; and the blob
//! files of values too large for a table.

pub mod meta;
pub mod filter;
pub mod compress;
pub mod format;
mod block_builder;
mod dictionary;
mod prefetch;
pub mod block;
mod index;
mod properties;
pub mod blob;
pub mod writer;
pub mod env;
pub mod cursor;
pub mod scan;
pub mod reader;
mod sample;
pub mod verify;
pub mod inspect;
mod locate;
pub mod salvage;
#[cfg(test)]
mod testing;

pub use blob::{Blob, BlobReader, BlobRef, BlobWriter};
pub use block::{Block, BlockSlice};
pub use cursor::{CursorOptions, TableCursor};
pub use env::TableEnv;
pub use meta::{FileId, TableMeta};
pub use reader::{Table, TableEntry};
pub use sample::TableSample;
pub use scan::TableScan;
pub use verify::VerifyCounts;
pub use writer::{RawBlock, TableOptions, TableWriter};
