//! The workloads, as a plan names them: parameters, steps, and what they need.

use crate::insert::InsertOptions;
use crate::kv::KvOptions;
use crate::linkbench::LinkbenchOptions;
use crate::row::Row;
use crate::sysbench::SysbenchOptions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a step finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// An empty store.
    Fresh,
    /// The store as the step before left it; of the first step, the store that is there.
    Continue,
    /// The store as this earlier step left it, whatever was done to it since.
    After(String),
}

/// One step of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// Its name, of which there is only one in a workload.
    pub name: String,
    /// What it finds.
    pub start: Start,
}

/// Steps by name and whether they begin with an empty store; the second of a name is called
/// `name (2)`.
pub fn planned(steps: impl Iterator<Item = (String, bool)>) -> Vec<PlannedStep> {
    let mut planned = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (name, fresh) in steps {
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        let name = if *count == 1 { name } else { format!("{name} ({count})") };
        planned
            .push(PlannedStep { name, start: if fresh { Start::Fresh } else { Start::Continue } });
    }
    planned
}

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
}

impl Workload {
    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Workload::Kv(_) => "kv",
            Workload::Linkbench(_) => "linkbench",
            Workload::Insert(_) => "insert",
            Workload::Sysbench(_) => "sysbench",
        }
    }

    /// Its steps, in order.
    pub fn steps(&self) -> Vec<PlannedStep> {
        match self {
            Workload::Kv(options) => options.steps(),
            Workload::Linkbench(options) => options.steps(),
            Workload::Insert(options) => options.planned(),
            Workload::Sysbench(options) => options.planned(),
        }
    }

    /// The bytes of what the largest step leaves, before compression.
    pub fn data_bytes(&self) -> u64 {
        match self {
            Workload::Kv(options) => options.data_bytes(),
            Workload::Linkbench(options) => options.data_bytes(),
            Workload::Insert(options) => options.data_bytes(),
            Workload::Sysbench(options) => options.data_bytes(),
        }
    }

    /// Bytes of the live data after a step that found `before` of them, before compression.
    pub fn live_bytes(&self, row: &Row, before: u64) -> u64 {
        match self {
            Workload::Kv(options) => options.live_bytes(row, before),
            Workload::Linkbench(options) => options.live_bytes(row, before),
            Workload::Insert(_) | Workload::Sysbench(_) => {
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
        };
        value.unwrap_or_default()
    }
}
