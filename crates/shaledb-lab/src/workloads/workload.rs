//! The workloads, as a plan names them: parameters, steps, and what they need.

use crate::run::row::Row;
use crate::workloads::insert::InsertOptions;
use crate::workloads::kv::KvOptions;
use crate::workloads::linkbench::LinkbenchOptions;
use crate::workloads::planned::PlannedStep;
use crate::workloads::rows::RowsOptions;
use crate::workloads::sysbench::SysbenchOptions;
use crate::workloads::tpcc::TpccOptions;
use serde::{Deserialize, Serialize};

/// A workload with its parameters.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// The db_bench pattern.
    Kv(KvOptions),
    /// The social graph.
    Linkbench(LinkbenchOptions),
    /// The insert benchmark.
    Insert(InsertOptions),
    /// The sysbench pattern.
    Sysbench(SysbenchOptions),
    /// The pattern of TPC-C.
    Tpcc(TpccOptions),
    /// A user's own rows, for `shale advise --engines`.
    Rows(RowsOptions),
}

impl Workload {
    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Workload::Kv(_) => "kv",
            Workload::Linkbench(_) => "linkbench",
            Workload::Insert(_) => "insert",
            Workload::Sysbench(_) => "sysbench",
            Workload::Tpcc(_) => "tpcc",
            Workload::Rows(_) => "rows",
        }
    }

    /// Its steps, in order.
    pub fn steps(&self) -> Vec<PlannedStep> {
        match self {
            Workload::Kv(options) => options.planned(),
            Workload::Linkbench(options) => options.planned(),
            Workload::Insert(options) => options.planned(),
            Workload::Sysbench(options) => options.planned(),
            Workload::Tpcc(options) => options.planned(),
            Workload::Rows(options) => options.planned(),
        }
    }

    /// The bytes of what the largest step leaves, before compression.
    pub fn data_bytes(&self) -> u64 {
        match self {
            Workload::Kv(options) => options.data_bytes(),
            Workload::Linkbench(options) => options.data_bytes(),
            Workload::Insert(options) => options.data_bytes(),
            Workload::Sysbench(options) => options.data_bytes(),
            Workload::Tpcc(options) => options.data_bytes(),
            Workload::Rows(options) => options.data_bytes(),
        }
    }

    /// Bytes of the live data after a step that found `before` of them, before compression.
    pub fn live_bytes(&self, row: &Row, before: u64) -> u64 {
        match self {
            Workload::Kv(options) => options.live_bytes(row, before),
            Workload::Linkbench(options) => options.live_bytes(row, before),
            Workload::Rows(options) => options.live_bytes(row, before),
            Workload::Insert(_) | Workload::Sysbench(_) | Workload::Tpcc(_) => {
                before.saturating_add_signed(row.live_grown_bytes)
            }
        }
    }

    /// Its parameters, as a row keeps them.
    pub fn parameters(&self) -> serde_json::Value {
        let value = match self {
            Workload::Kv(options) => serde_json::to_value(options),
            Workload::Linkbench(options) => serde_json::to_value(options),
            Workload::Insert(options) => serde_json::to_value(options),
            Workload::Sysbench(options) => serde_json::to_value(options),
            Workload::Tpcc(options) => serde_json::to_value(options),
            Workload::Rows(options) => serde_json::to_value(options),
        };
        value.unwrap_or_default()
    }
}
