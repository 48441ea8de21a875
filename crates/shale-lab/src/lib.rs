//! Workloads, measures and reports for Shale and its peers.
//!
//! A step of a workload on an engine is one process, so that steps do not inherit each other's
//! memory; all engines share the client's code, so that nothing but the engine differs between two
//! rows of a comparison. The list of modules below is the architecture: each uses only those above
//! it (crates/shale/tests/tidy proves it).
//!
//! - [`units`], [`options`], [`setup`]: what the user says, the same for every engine.
//! - [`generate`]: keys, values and chance, nearly free, so that the client does not hide the
//!   engine.
//! - [`measure`]: CPU, bytes, memory and size, as the system counts them; latencies and rates.
//! - [`engine`], [`store`]: what a key-value engine, and what any store must do to be measured.
//! - [`pace`], [`row`], [`step`], [`work`]: a client's loop, the measures of a step, the step
//!   itself, what a workload gives it.
//! - [`model`]: an engine in memory. [`conformance`]: what every engine must do, as checks that its
//!   tests call.
//! - [`tables`]: rows and secondary indexes over a key-value engine.
//! - [`linkbench`]: the social graph. [`insert`]: the insert benchmark. [`sysbench`]: its pattern.
//! - [`agreement`]: whether two stores answer alike, through the interfaces of these three.
//! - [`kv`]: the db_bench pattern. [`workload`]: all workloads, as a plan names them.
//! - [`driver`]: the process that runs one step.
//! - [`report`]: tables, sentences, comparisons of runs, one page of HTML.
//! - [`campaign`]: all steps of all engines, in turns. [`compress`]: codec choices on several
//!   workloads, as one matrix.
//! - `shale`: Shale itself behind the engine's interface.

pub mod units;
pub mod options;
pub mod setup;
pub mod generate;
pub mod measure;
pub mod engine;
pub mod store;
pub mod pace;
pub mod row;
pub mod step;
pub mod work;
pub mod model;
pub mod conformance;
pub mod tables;
pub mod linkbench;
pub mod insert;
pub mod sysbench;
pub mod agreement;
pub mod kv;
pub mod workload;
pub mod driver;
pub mod report;
pub mod campaign;
pub mod compress;
#[cfg(feature = "shale")]
pub mod shale;
