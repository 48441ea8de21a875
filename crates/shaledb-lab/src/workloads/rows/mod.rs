//! Rows of a user's own, from a file: they are loaded, and some are read.
//!
//! - [`file`](mod@file): the file. [`options`]: what a plan says. [`store`]: what is asked of a
//!   store.
//! - [`over_kv`]: that of a key-value engine. `clients`: who loads and who reads. [`work`]: who
//!   does what in a step.

pub mod file;
pub mod options;
pub mod store;
pub mod over_kv;
mod clients;
pub mod work;

pub use options::{RowsOptions, Step};

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
