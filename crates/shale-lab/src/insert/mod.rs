//! The insert benchmark: rows with three secondary indexes go into a table in the order of its
//! primary key, so that each secondary index is written at random; then queries run beside a writer
//! that is held at a rate.
//!
//! ```text
//! l.i0      loads --rows rows, without secondary indexes
//! l.i       the same with the three secondary indexes there from the start
//! l.x       creates the secondary indexes: read, sort, write in order
//! l.i1      inserts, --rows-per-commit rows to a commit; each commit is followed by a second one
//!           that deletes as many of the oldest rows, so that the table keeps its size
//! l.i2      the same with a tenth of the rows to a commit
//! qrN       range queries for --seconds, beside N inserts (and deletes) per second and client
//! qpN       point queries by primary key, the same way
//! settle    flushes and waits until no compaction is due
//! ```
//!
//! Each client has a table of its own, from which the oldest rows go and to whose end the new ones
//! come; in a query step a client is one connection that queries and one that writes.
//!
//! - [`rows`]: the rows, made of chance.
//! - [`store`]: what a store must do.
//! - [`over_kv`]: key-value engines do it; [`null`]: one that does nothing.
//! - [`clients`]: who does what in a step.
//! - [`size`]: the size that compressibility predicts.

pub mod clients;
pub mod null;
pub mod over_kv;
pub mod rows;
pub mod size;
pub mod store;

use crate::options::ValueBytes;
use crate::units::parse_some;
use crate::work::{PlannedStep, planned};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A step of the benchmark, written as in the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Step {
    /// `l.i0`, or `l.i` if `indexed`.
    Load {
        /// Whether the secondary indexes are there from the start.
        indexed: bool,
    },
    /// `l.x`.
    Index,
    /// `l.i1`, or `l.i2` if `few`.
    Insert {
        /// Whether a commit has a tenth of the rows.
        few: bool,
    },
    /// `qrN` and `qpN`.
    Query {
        /// Point queries, not range queries.
        point: bool,
        /// Rows that each client's writer inserts per second; 0 is no writer.
        rate: u32,
    },
    /// `settle`.
    Settle,
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        let rate = |digits: &str| digits.parse::<u32>().ok().filter(|rate| *rate <= 10_000_000);
        match text {
            "l.i0" => Ok(Step::Load { indexed: false }),
            "l.i" => Ok(Step::Load { indexed: true }),
            "l.x" => Ok(Step::Index),
            "l.i1" => Ok(Step::Insert { few: false }),
            "l.i2" => Ok(Step::Insert { few: true }),
            "settle" => Ok(Step::Settle),
            _ => {
                let point = text.starts_with("qp");
                let digits = text.strip_prefix("qp").or(text.strip_prefix("qr"));
                let rate = digits.and_then(rate).ok_or_else(|| {
                    format!(
                        "`{text}` is none of l.i0, l.i, l.x, l.i1, l.i2, settle, qrN, qpN (N is \
                         the inserts per second, such as qr100)"
                    )
                })?;
                Ok(Step::Query { point, rate })
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Load { indexed: false } => f.write_str("l.i0"),
            Step::Load { indexed: true } => f.write_str("l.i"),
            Step::Index => f.write_str("l.x"),
            Step::Insert { few: false } => f.write_str("l.i1"),
            Step::Insert { few: true } => f.write_str("l.i2"),
            Step::Query { point: false, rate } => write!(f, "qr{rate}"),
            Step::Query { point: true, rate } => write!(f, "qp{rate}"),
            Step::Settle => f.write_str("settle"),
        }
    }
}

impl From<Step> for String {
    fn from(step: Step) -> String {
        step.to_string()
    }
}

impl TryFrom<String> for Step {
    type Error = String;

    fn try_from(text: String) -> Result<Step, String> {
        text.parse()
    }
}

fn percent(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(percent) if percent <= 100 => Ok(percent),
        _ => Err(format!("`{text}` is not a percentage from 0 to 100")),
    }
}

/// The parameters of the insert benchmark.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InsertOptions {
    /// The steps, in this order: l.i0, l.i, l.x, l.i1, l.i2, qrN, qpN, settle
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "l.i0,l.x,l.i1,l.i2,qr100,qp100,qr500,qp500,qr1000,qp1000"
    )]
    pub steps: Vec<Step>,

    /// Clients; each has a table of its own
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub clients: u32,

    /// Rows that are loaded, all tables together (k, M, G: thousands)
    #[arg(long, default_value = "1M", value_parser = parse_some)]
    pub rows: u64,

    /// Rows that l.i1 inserts, all clients together; l.i2 inserts a quarter of it
    #[arg(long, default_value = "400k", value_parser = parse_some)]
    pub inserts: u64,

    /// How long a step of queries takes
    #[arg(long, default_value_t = 10.0, value_parser = crate::options::positive)]
    pub seconds: f64,

    /// Rows to a commit of the load
    #[arg(
        long,
        default_value_t = 1000,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    pub rows_per_load_commit: u64,

    /// Rows to a commit of l.i1 and of the writer beside the queries
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rows_per_commit: u64,

    /// Insert only: the table grows with each step
    #[arg(long)]
    pub no_deletes: bool,

    /// The most rows that a range query reads
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rows_per_query: u64,

    /// Bytes in the column `data`, or the least and the most, evenly spread
    #[arg(long, default_value = "10-20", value_name = "MIN-MAX")]
    pub data_bytes: ValueBytes,

    /// The share of `data` that is random; the rest is one character again and again
    #[arg(long, default_value = "50", value_parser = percent)]
    pub random_percent: u32,

    /// Cash registers
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub cash_registers: u32,

    /// Customers
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub customers: u32,

    /// Products
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub products: u32,

    /// The price that none reaches; prices have two digits after the point
    #[arg(
        long,
        default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(1..=10_000_000)
    )]
    pub max_price: u32,
}

impl InsertOptions {
    /// Rows to a commit of a step's writers.
    pub fn rows_per_commit_of(&self, step: Step) -> u64 {
        match step {
            Step::Load { .. } => self.rows_per_load_commit,
            Step::Insert { few: true } => (self.rows_per_commit / 10).max(1),
            // A writer that is held at a rate commits at least once a second.
            Step::Query { rate, .. } => self.rows_per_commit.min(u64::from(rate.max(1))),
            _ => self.rows_per_commit,
        }
    }

    /// Rows that a step inserts, all clients together, if it is bound by rows.
    pub fn rows_of(&self, step: Step) -> Option<u64> {
        match step {
            Step::Load { .. } => Some(self.rows),
            Step::Insert { few: false } => Some(self.inserts),
            Step::Insert { few: true } => Some(self.inserts / 4),
            _ => None,
        }
    }

    /// The steps as a plan has them; the second `settle` is called `settle (2)`.
    pub fn planned(&self) -> Vec<PlannedStep> {
        planned(self.steps.iter().map(|step| (step.to_string(), matches!(step, Step::Load { .. }))))
    }

    /// The step of a plan's name.
    ///
    /// # Errors
    ///
    /// There is no such step.
    pub fn step(&self, name: &str) -> Result<Step, String> {
        name.split(' ').next().unwrap_or(name).parse()
    }

    /// The bytes of what the largest step leaves, before compression.
    pub fn data_bytes(&self) -> u64 {
        let indexed = |step: &Step| matches!(step, Step::Index | Step::Load { indexed: true });
        let index = if self.steps.iter().any(indexed) { over_kv::INDEX_BYTES } else { 0 };
        let data = (self.data_bytes.least + self.data_bytes.most) as u64 / 2;
        let mut rows = self.rows;
        if self.no_deletes {
            for &step in &self.steps {
                rows += match step {
                    Step::Load { .. } | Step::Index | Step::Settle => 0,
                    Step::Insert { .. } => self.rows_of(step).unwrap_or(0),
                    Step::Query { rate, .. } => {
                        (f64::from(rate) * f64::from(self.clients) * self.seconds) as u64
                    }
                };
            }
        }
        rows.saturating_mul(rows::COLUMN_BYTES + data + index)
    }

    /// What does not fit together, with what to do.
    pub fn check(&self) -> Result<(), String> {
        let first = self.steps.first();
        if !matches!(first, None | Some(Step::Load { .. })) {
            return Err("--steps: the first step makes the table: l.i0 or l.i".to_owned());
        }
        let least = u64::from(self.clients) * self.rows_per_commit;
        if !self.no_deletes && self.rows < least {
            return Err(format!(
                "--rows: {} rows are too few for {} clients that each delete {} rows at a time; \
                 give at least {least}, or --no-deletes",
                self.rows, self.clients, self.rows_per_commit
            ));
        }
        Ok(())
    }

    /// The large-object variant: each size of `data` with each share of it random, as the name of
    /// a setting and the parameters: loaded by one client without secondary indexes, then asked
    /// for single rows beside a writer. The bytes of all rows stay about what `self` says, by
    /// fewer rows.
    pub fn large_objects(&self) -> Vec<(String, InsertOptions)> {
        const SIZES: [(usize, usize); 2] = [(100, 1000), (10_000, 20_000)];
        const RANDOM: [u32; 4] = [20, 45, 75, 95];
        let mut variants = Vec::new();
        for (least, most) in SIZES {
            for random_percent in RANDOM {
                let bytes = (least + most) as u64 / 2;
                let variant = InsertOptions {
                    steps: vec![
                        Step::Load { indexed: false },
                        Step::Settle,
                        Step::Query { point: true, rate: 100 },
                    ],
                    clients: 1,
                    rows: (self.rows * LARGE_SHARE / bytes).max(1000),
                    no_deletes: true,
                    data_bytes: ValueBytes { least, most },
                    random_percent,
                    ..self.clone()
                };
                variants.push((format!("{least}-{most} B, {random_percent} % random"), variant));
            }
        }
        variants
    }
}

/// Bytes of large objects for each row that is asked for: a million rows are 200 MB of them.
const LARGE_SHARE: u64 = 200;

#[cfg(test)]
#[path = "insert_tests.rs"]
mod tests;
