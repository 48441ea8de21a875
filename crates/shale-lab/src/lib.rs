//! Workloads, measures and reports for Shale and its peers.
//!
//! `shale bench kv` and each peer's binary are the same code: [`bench::run`] is generic over
//! [`engine::Engine`], so that nothing but the engine differs between two rows of a comparison.
//!
//! - [`options`]: the flags, the same for every engine.
//! - [`generate`]: keys, values and chance, nearly free, so that the client does not hide the
//!   engine.
//! - [`engine`]: what a store must do to be measured.
//! - [`measure`]: CPU, bytes, memory and size, as the system counts them; latencies and rates.
//! - [`bench`](mod@bench): the benchmarks.
//! - [`report`]: rows as tables and as JSON lines.

pub mod bench;
pub mod engine;
pub mod generate;
pub mod measure;
pub mod options;
pub mod pace;
pub mod report;
pub mod row;
pub mod setup;
pub mod store;
pub mod units;
#[cfg(feature = "shale")]
pub mod shale;
