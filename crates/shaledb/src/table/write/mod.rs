//! Writing a table.

mod dictionary;
mod writer;

pub use writer::{TableOptions, TableWriter};
