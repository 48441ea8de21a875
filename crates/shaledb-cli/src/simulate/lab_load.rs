//! What the step of a run wrote and read.

use shaledb_forecast::{Order, Skew};
use shaledb_lab::options;
use shaledb_lab::run::row::Row;
use shaledb_lab::workloads::kv::{Benchmark, KvOptions};

/// A load; `None` where the row does not tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Load {
    /// Bytes of keys and values written each second.
    pub(super) write: f64,
    /// Whether nothing held its writers back.
    pub(super) as_fast: bool,
    /// Threads that write.
    pub(super) clients: f64,
    /// The share of the writes that are new rows.
    pub(super) inserts: Option<f64>,
    /// The share of the writes that are deletes.
    pub(super) deletes: Option<f64>,
    /// Where new rows go.
    pub(super) order: Option<Order>,
    /// How updates spread.
    pub(super) skew: Option<Skew>,
    /// All rows that updates may go to, in bytes; 0 for those that are there.
    pub(super) universe: f64,
    /// Point reads a second.
    pub(super) reads: Option<f64>,
    /// Operations that the model does not have.
    pub(super) others: Vec<String>,
}

/// The lab's skew, as the model has it.
pub(super) fn skew(of_lab: options::Skew) -> Skew {
    match of_lab {
        options::Skew::Uniform => Skew::Uniform,
        options::Skew::Zipf(exponent) => Skew::Zipf(exponent),
    }
}

/// The load of a row.
pub(super) fn load(row: &Row) -> Load {
    let seconds = row.seconds.max(1e-9);
    let of_kind = |kind: &str| row.latency_us.get(kind).map_or(0, |told| told.count) as f64;
    let known = ["get", "put", "delete"];
    let mut load = Load {
        write: row.counted.user_bytes as f64 / seconds,
        as_fast: row.writer.is_none(),
        clients: row.clients.max(1) as f64,
        others: row.latency_us.keys().filter(|k| !known.contains(&k.as_str())).cloned().collect(),
        ..Load::default()
    };
    if of_kind("get") > 0.0 {
        load.reads = Some(of_kind("get") / seconds);
    }
    let kv = (row.workload == "kv").then(|| row.parameters.get("kv")).flatten();
    let kv: Option<KvOptions> = kv.and_then(|kv| serde_json::from_value(kv.clone()).ok());
    let Some((kv, step)) = kv.and_then(|kv| kv.step(&row.step).ok().map(|step| (kv, step))) else {
        let grown = row.live_grown_bytes as f64 / row.counted.user_bytes.max(1) as f64;
        load.inserts = (grown > 0.0).then(|| grown.min(1.0));
        return load;
    };
    let (inserts, deletes, order) = match step {
        Benchmark::Fillseq => (1.0, 0.0, Order::Ascending),
        Benchmark::Filluniquerandom => (1.0, 0.0, Order::Random),
        Benchmark::Deleterandom => (0.0, 1.0, Order::Random),
        _ => (0.0, 0.0, Order::Random),
    };
    (load.inserts, load.deletes, load.order) = (Some(inserts), Some(deletes), Some(order));
    load.skew = Some(skew(kv.skew_of(step)));
    load.reads = load.reads.or(Some(0.0));
    // Those that draw from all keys find some that are not there.
    let draws = inserts == 0.0 && deletes == 0.0;
    load.universe = if draws { kv.data_bytes() as f64 } else { 0.0 };
    let held = match (&row.writer, kv.write_rate, step) {
        (Some(writer), _, _) => Some(writer.wanted * kv.pair_bytes()),
        (_, Some(rate), Benchmark::Readrandomwriterandom) => Some(rate * f64::from(1 << 20)),
        _ => None,
    };
    if let Some(held) = held {
        (load.write, load.as_fast) = (held, false);
    }
    if row.writer.is_some() {
        load.clients = 1.0;
    }
    load
}
