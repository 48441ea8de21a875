//! The workloads: what they are asked for, what they ask of a store, their clients.
//!
//! - [`planned`](mod@planned): a workload's steps, as a plan has them.
//! - [`linkbench`]: the social graph. [`kv`]: the db_bench pattern. [`insert`]: the insert
//!   benchmark. [`sysbench`]: its pattern. [`rows`]: a user's own rows, for `shale advise`.
//! - [`agreement`]: whether two stores answer alike, through the interfaces of LinkBench, the
//!   insert benchmark, sysbench and a user's rows.
//! - [`tpcc`]: the pattern of TPC-C, for database servers.
//! - [`workload`]: all workloads, as a plan names them.

pub mod planned;
pub mod linkbench;
pub mod kv;
pub mod insert;
pub mod sysbench;
pub mod rows;
pub mod agreement;
pub mod tpcc;
pub mod workload;
