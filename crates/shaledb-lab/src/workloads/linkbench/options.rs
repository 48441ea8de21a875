//! The parameters of LinkBench.

use super::step::Step;
use crate::run::row::Row;
use crate::units::{parse_count, parse_some};
use crate::workloads::planned::{PlannedStep, planned};
use clap::Args;
use serde::{Deserialize, Serialize};

/// Partitions of LinkBench's own schema.
pub const PARTITIONS: u32 = 16;

/// The parameters of LinkBench.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkbenchOptions {
    /// Nodes that are loaded (k, M, G: thousands); a million is about 1 GB uncompressed
    #[arg(long, default_value = "200k", value_parser = parse_maxid1)]
    pub maxid1: u64,

    /// Clients that load
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub load_clients: u32,

    /// Rows to a batch of the load
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub load_batch: u32,

    /// Query steps, one after another; the last one is the one to report
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub loops: u32,

    /// Seconds of each query step (the published results: 24 loops of 3600)
    #[arg(long, default_value_t = 25,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub seconds: u64,

    /// Seconds that each query step runs before anything is measured
    #[arg(long, default_value_t = 0, value_parser = crate::options::seconds)]
    pub warm_up: u64,

    /// Clients that query
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub clients: u32,

    /// Operations per second of all query clients together [default: as many as they can]
    #[arg(long, value_parser = parse_rate)]
    pub rate: Option<f64>,

    /// The most operations of all clients in a query step [default: no bound]
    #[arg(long, value_parser = parse_some)]
    pub requests: Option<u64>,

    /// The most links that a range query returns
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub range_limit: u64,

    /// The percentage of range queries that ask for older links where a list was cut
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub history_percent: u8,

    /// The shape of the Zipf distribution of the writes of links that is not correlated with the
    /// number of links, from 0 (uniform) to less than 1
    #[arg(long, default_value_t = 0.741, value_parser = parse_shape)]
    pub write_uncorrelated_shape: f64,

    /// Leave the tables there at the end
    #[arg(long)]
    pub keep_tables: bool,

    /// Partitions of linktable, by id1, of a database server; 0 for a table without any. Other
    /// engines have none
    #[arg(
        long,
        default_value_t = PARTITIONS,
        value_parser = clap::value_parser!(u32).range(0..=1024)
    )]
    // Plans that do not say how many are of a time when there were none.
    #[serde(default)]
    pub partitions: u32,
}

fn parse_maxid1(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        nodes @ 1..=4_000_000_000 => Ok(nodes),
        _ => Err(format!("`{text}` is not a number of nodes from 1 to 4G")),
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && rate <= 1e9 => Ok(rate),
        _ => Err(format!("`{text}` is not a number of operations per second above 0")),
    }
}

fn parse_shape(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(shape) if (0.0..1.0).contains(&shape) => Ok(shape),
        _ => Err(format!("`{text}` is not a number from 0 to less than 1")),
    }
}

impl LinkbenchOptions {
    /// The steps as a plan has them; each query step goes on with what the one before left.
    pub fn planned(&self) -> Vec<PlannedStep> {
        let queries = (1..=self.loops).map(Step::Query);
        let end = (!self.keep_tables).then_some(Step::Drop);
        let all = std::iter::once(Step::Load).chain(queries).chain(end);
        planned(all.map(|step| (step.to_string(), step == Step::Load)))
    }

    /// About how many bytes all columns have after the last query step, index entries included.
    pub fn data_bytes(&self) -> u64 {
        // A node's row, 4.26 links of 50 bytes, twice, and 0.8 counts; the query steps add to it,
        // and nobody knows how fast before they ran.
        self.maxid1 * 750 * 3 / 2
    }

    /// Bytes of the columns of all rows and index entries after a step that found `before` of them.
    pub fn live_bytes(&self, row: &Row, before: u64) -> u64 {
        match row.step.parse() {
            Ok(Step::Drop) => 0,
            _ => before.saturating_add_signed(row.live_grown_bytes),
        }
    }
}
