//! Large values, each in a file of its own, written and read in bounded memory.

mod reference;
mod writer;
mod reader;

pub use reader::{Blob, BlobReader};
pub use reference::BlobRef;
pub use writer::BlobWriter;

#[cfg(test)]
#[path = "blob_tests.rs"]
mod tests;
