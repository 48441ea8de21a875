//! Workloads, measures and reports for Shale and its peers.
//!
//! A step of a workload on an engine is one process, so that steps do not inherit each other's
//! memory; all engines share the client's code, so that nothing but the engine differs between two
//! rows of a comparison. Each module uses only those above it:
//!
//! - [`units`], [`options`], [`setup`]: what the user says, the same for every engine.
//! - [`generate`]: keys, values and chance, nearly free, so that the client does not hide the
//!   engine.
//! - [`measure`]: CPU, bytes, memory and size, as the system counts them; latencies and rates.
//! - [`engine`], [`store`]: what a key-value engine, and what any store must do to be measured.
//! - [`pace`], [`row`], [`step`], [`work`]: a client's loop, the measures of a step, the step
//!   itself, what a workload gives it.
//! - [`tables`]: rows and secondary indexes over a key-value engine. [`model`]: one in memory.
//! - [`conformance`]: what every engine must do, as checks that its tests call.
//! - [`linkbench`]: the social graph. [`insert`]: the insert benchmark. [`sysbench`]: its pattern.
//! - [`kv`]: the db_bench pattern. [`workload`]: all workloads, as a plan names them.
//! - [`driver`]: the process that runs one step. [`campaign`]: all steps of all engines, in turns.
//! - [`report`]: rows as tables. [`compress`]: codec choices on several workloads, as one matrix.

pub mod campaign;
pub mod compress;
pub mod conformance;
pub mod driver;
pub mod engine;
pub mod generate;
pub mod insert;
pub mod kv;
pub mod linkbench;
pub mod measure;
pub mod model;
pub mod options;
pub mod pace;
pub mod report;
pub mod row;
pub mod setup;
#[cfg(feature = "shale")]
pub mod shale;
pub mod step;
pub mod store;
pub mod sysbench;
pub mod tables;
pub mod units;
pub mod work;
pub mod workload;
