//! The parameters of the insert benchmark.

use super::over_kv::INDEX_BYTES;
use super::purchase::COLUMN_BYTES;
use super::step::Step;
use crate::options::{ValueBytes, texts};
use crate::units::parse_some;
use crate::workloads::planned::{PlannedStep, planned};
use clap::Args;
use serde::{Deserialize, Serialize};

fn percent(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(percent) if percent <= 100 => Ok(percent),
        _ => Err(format!("`{text}` is not a percentage from 0 to 100")),
    }
}

/// The parameters of the insert benchmark.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InsertOptions {
    /// The steps, in this order: l.i0, l.i, l.x, l.i1, l.i2, qrN, qpN, wait_idle
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "l.i0,l.x,l.i1,l.i2,qr100,qp100,qr500,qp500,qr1000,qp1000"
    )]
    #[serde(with = "texts")]
    pub steps: Vec<Step>,

    /// Clients; each has its own table
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub clients: u32,

    /// Rows that are loaded, all tables together (k, M, G: thousands)
    #[arg(long, default_value = "1M", value_parser = parse_some)]
    pub rows: u64,

    /// Rows that l.i1 inserts, all clients together; l.i2 inserts a quarter of it
    #[arg(long, default_value = "400k", value_parser = parse_some)]
    pub inserts: u64,

    /// Seconds of each step of queries
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

    /// The percentage of `data` that is random; the rest repeats one character
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

    /// The bound on prices, which none reaches; prices have two digits after the point
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
            // A writer with a fixed rate commits at least once a second.
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

    /// The steps as a plan has them; the second `wait_idle` is called `wait_idle (2)`.
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
        let index = if self.steps.iter().any(indexed) { INDEX_BYTES } else { 0 };
        let data = (self.data_bytes.least + self.data_bytes.most) as u64 / 2;
        let mut rows = self.rows;
        if self.no_deletes {
            for &step in &self.steps {
                rows += match step {
                    Step::Load { .. } | Step::Index | Step::WaitIdle => 0,
                    Step::Insert { .. } => self.rows_of(step).unwrap_or(0),
                    Step::Query { rate, .. } => {
                        (f64::from(rate) * f64::from(self.clients) * self.seconds) as u64
                    }
                };
            }
        }
        rows.saturating_mul(COLUMN_BYTES + data + index)
    }

    /// Checks that the parameters fit together.
    ///
    /// # Errors
    ///
    /// The first step is no load, or the tables are too small for the deletes.
    pub fn check(&self) -> Result<(), String> {
        let first = self.steps.first();
        if !matches!(first, None | Some(Step::Load { .. })) {
            return Err(
                "--steps: the first step must create the tables. Begin with l.i0 or l.i".to_owned()
            );
        }
        let least = u64::from(self.clients) * self.rows_per_commit;
        if !self.no_deletes && self.rows < least {
            return Err(format!(
                "--rows: {} rows are too few for {} clients that each delete {} rows at a time. \
                 Give at least {least}, or --no-deletes",
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
                        Step::WaitIdle,
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
