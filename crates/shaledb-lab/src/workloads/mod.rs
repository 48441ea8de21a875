//! The workloads: what they are asked for, what they ask of a store, their clients.
//!
//! - [`planned`](mod@planned): a workload's steps, as a plan has them.
//! - [`kv`]: the db_bench pattern. [`linkbench`]: the social graph. [`insert`]: the insert
//!   benchmark. [`sysbench`]: its pattern.
//! - [`agreement`]: whether two stores answer alike, through the interfaces of the last three.
//! - [`tpcc`]: the pattern of TPC-C, for database servers.
//! - [`workload`]: all workloads, as a plan names them.

pub mod planned;
pub mod kv;
pub mod linkbench;
pub mod insert;
pub mod sysbench;
pub mod agreement;
pub mod tpcc;
pub mod workload;
