//! The db_bench pattern: fills, writes, reads, scans and updates of one tree of keys and values.
//!
//! The benchmarks are steps that follow each other on one store; a fill begins with a new one.
//!
//! - [`data`]: what values look like (`rows`, `text` make them).
//! - [`benchmark`], [`options`]: what a plan says.
//! - `draw`: which keys are met.
//! - `clients`: the loop of each benchmark. [`mod@work`]: who does what in a step.

mod rows;
mod text;
pub mod data;
pub mod benchmark;
pub mod options;
mod draw;
mod clients;
pub mod work;

pub use benchmark::Benchmark;
pub use data::Data;
pub use options::KvOptions;

#[cfg(test)]
#[path = "kv_tests.rs"]
mod tests;
