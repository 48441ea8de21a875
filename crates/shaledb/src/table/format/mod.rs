//! The bytes of a table file; and file names.
//!
//! ```text
//! table   := dictionary frame? | data frames | filter frame? | range delete frame? | index frame
//!            | properties frame | footer
//! ```
//!
//! A data frame holds a block. All numbers are little-endian. Frames follow each other without
//! gaps, so that every byte of a file is under a checksum (or is the magic number). An absent
//! section has length 0.

mod file_name;
pub mod compress;
mod frame;
mod footer;
pub(super) mod block;
pub(super) mod block_builder;
mod raw_block;
pub(super) mod index;
pub mod filter;
pub(super) mod properties;

pub use block::{Block, BlockSlice, allocated};
pub use file_name::{FileKind, Files, LOCK, file_name, list_files, parse_file_name};
pub use footer::{FOOTER_BYTES, Footer, TABLE_MAGIC, TABLE_VERSION};
pub use footer::{TABLE_VERSION_DICTIONARY, TABLE_VERSION_PACKED};
pub use frame::{
    FRAME_BYTES, Frame, Handle, decode_frame, frame_codec, open_dictionary_frame, open_frame,
    put_dictionary_frame, put_frame, put_plain_frame,
};
pub use index::BlockInfo;
pub use raw_block::RawBlock;

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
