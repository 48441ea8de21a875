//! Writing a table.

mod dictionary;
mod probe;
mod writer;

pub use probe::Probe;
pub use writer::{TableOptions, TableWriter};
