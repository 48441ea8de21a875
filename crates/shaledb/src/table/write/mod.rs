//! Writing a table.

mod options;
mod dictionary;
mod probe;
mod writer;
mod reuse;

pub use dictionary::{
    HeldOut, Least, OWN_BYTES, SMALL_TABLE_BYTES, Used, Verdict, cut, decide, dictionary_bytes,
    was_small,
};
pub use options::{TableDictionary, TableOptions};
pub use probe::{BLOCK_BYTES as PROBED_BLOCK_BYTES, Probe, Probed};
pub use writer::TableWriter;
