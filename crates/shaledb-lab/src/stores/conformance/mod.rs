//! What every engine of the lab must do, as checks that its own tests call: random work compared
//! with ordered maps, and batches, scans and updates that are whole while others write. An engine
//! that is measured doing something else would be measured wrongly.

mod common;
mod files;
mod random;
mod threads;

pub use common::setup;
pub use random::{check, check_updates};
pub use threads::{Scans, check_counters, check_threads};

#[cfg(test)]
#[path = "conformance_tests.rs"]
mod tests;
