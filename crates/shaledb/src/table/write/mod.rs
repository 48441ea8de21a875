//! Writing a table.

mod options;
mod dictionary;
mod probe;
mod writer;
mod reuse;

pub use dictionary::{OWN_BYTES, Used, Verdict, decide, is_measured};
pub use options::{TableDictionary, TableOptions};
pub use probe::{Probe, Probed};
pub use writer::TableWriter;
