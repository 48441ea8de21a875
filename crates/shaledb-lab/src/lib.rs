//! Workloads, measures and reports for Shale and its peers.
//!
//! A step of a workload on an engine is one process, so that steps do not inherit each other's
//! memory. All engines share the code of the client, so that two rows of a comparison differ in the
//! engine only. The list of modules below is the architecture: each names only earlier ones. The
//! same holds in each folder (crates/shaledb/tests/tidy proves it).
//!
//! - [`say`]: lines that nobody has to read. [`problem`]: why something cannot be done.
//! - [`units`], [`options`], [`setup`]: what the user says, the same for every engine.
//! - [`generate`]: random keys and values, so cheap that the client does not hide the engine.
//! - [`measure`]: CPU, bytes, memory and size, as the system counts them; latencies and rates.
//! - [`stores`]: what is measured: the interfaces of engines and stores, and those that are always
//!   here.
//! - [`run`]: one step, from its clients' loop to the row that comes of it.
//! - [`workloads`]: the social graph, the insert benchmark, the patterns of db_bench,
//!   sysbench and TPC-C.
//! - [`driver`]: the process that runs one step.
//! - [`browse`]: rows of an engine's own database, for who samples it.
//! - [`report`]: tables, sentences, comparisons of runs, one page of HTML.
//! - [`campaign`]: all steps of all engines, in turns. [`compress`]: codec choices on several
//!   workloads, as one matrix.

pub mod say;
pub mod problem;
pub mod units;
pub mod options;
pub mod setup;
pub mod generate;
pub mod measure;
pub mod stores;
pub mod run;
pub mod workloads;
pub mod driver;
pub mod browse;
pub mod report;
pub mod campaign;
pub mod compress;
