//! Workloads, measures and reports for Shale and its peers.
//!
//! A step of a workload on an engine is one process, so that steps do not inherit each other's
//! memory; all engines share the client's code, so that nothing but the engine differs between two
//! rows of a comparison. The list of modules below is the architecture: each names only earlier
//! ones, and so it is in the list of each folder's mod.rs (crates/shaledb/tests/tidy proves it).
//!
//! - [`units`], [`options`], [`setup`]: what the user says, the same for every engine.
//! - [`generate`]: keys, values and chance, nearly free, so that the client does not hide the
//!   engine.
//! - [`measure`]: CPU, bytes, memory and size, as the system counts them; latencies and rates.
//! - [`stores`]: what is measured: the interfaces of engines and stores, and those that are always
//!   here.
//! - [`run`]: one step, from its clients' loop to the row that comes of it.
//! - [`workloads`]: the social graph, the insert benchmark, the patterns of db_bench and sysbench.
//! - [`driver`]: the process that runs one step.
//! - [`report`]: tables, sentences, comparisons of runs, one page of HTML.
//! - [`campaign`]: all steps of all engines, in turns. [`compress`]: codec choices on several
//!   workloads, as one matrix.

pub mod units;
pub mod options;
pub mod setup;
pub mod generate;
pub mod measure;
pub mod stores;
pub mod run;
pub mod workloads;
pub mod driver;
pub mod report;
pub mod campaign;
pub mod compress;
