//! The sysbench pattern: eight tables `sbtest(id, k, c, pad)` with an index on `k`; steps that
//! write come before those that only read, so that these find the store as writes leave it.
//!
//! ```text
//! load             the rows of all tables in the order of id, then the index of each
//! update-index     update sbtest set k = k + 1 where id = ?
//! update-nonindex  update sbtest set c = ? where id = ?
//! read-write       begin; 10 x select c where id = ?; select c, select sum(k), select c order by
//!                  c,
//!                  select distinct c order by c, each where id between ? and ? + range - 1; then
//!                  the two updates, and delete where id = ? and insert of the same id; commit
//! read-only.N      begin; the selects of read-write with ranges of N rows; commit
//! point-query      select c where id = ?
//! select           select pad where id = ?
//! insert           insert of a new id; it comes last, since it grows the data
//! settle           flushes and waits until no compaction is due
//! ```
//!
//! Each statement of a kind takes a table of its own choice, each id is chosen by `--distribution`.
//! Each step but the load is repeated for each number of clients.
//!
//! - [`rows`]: texts and ids, made of chance.
//! - [`store`]: what a store must do.
//! - [`over_kv`]: key-value engines do it; [`null`]: one that does nothing.
//! - [`clients`]: who does what in a step.

pub mod clients;
pub mod null;
pub mod over_kv;
pub mod rows;
pub mod store;

use crate::units::parse_some;
use crate::work::{PlannedStep, planned};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A step, written as in the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Step {
    /// `load`.
    Load,
    /// `settle`.
    Settle,
    /// `update-index`.
    UpdateIndex,
    /// `update-nonindex`.
    UpdateNonindex,
    /// `read-write`; or `read-write.N`, with the rows of a range.
    ReadWrite(u32),
    /// `read-only.N`, with the rows of a range.
    ReadOnly(u32),
    /// `point-query`.
    PointQuery,
    /// `select`.
    Select,
    /// `insert`.
    Insert,
}

/// The rows of a range unless they are named.
const RANGE: u32 = 100;

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        let (name, range) = match text.split_once('.') {
            None => (text, None),
            Some((name, digits)) => {
                let range = digits.parse().ok().filter(|rows| (1..=1_000_000).contains(rows));
                let wrong = || format!("`{text}`: after the point come the rows of a range");
                (name, Some(range.ok_or_else(wrong)?))
            }
        };
        match (name, range) {
            ("read-write", range) => Ok(Step::ReadWrite(range.unwrap_or(RANGE))),
            ("read-only", range) => Ok(Step::ReadOnly(range.unwrap_or(RANGE))),
            ("load", None) => Ok(Step::Load),
            ("settle", None) => Ok(Step::Settle),
            ("update-index", None) => Ok(Step::UpdateIndex),
            ("update-nonindex", None) => Ok(Step::UpdateNonindex),
            ("point-query", None) => Ok(Step::PointQuery),
            ("select", None) => Ok(Step::Select),
            ("insert", None) => Ok(Step::Insert),
            _ => Err(format!(
                "`{text}` is none of load, settle, update-index, update-nonindex, read-write, \
                 read-only.N, point-query, select, insert"
            )),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Load => f.write_str("load"),
            Step::Settle => f.write_str("settle"),
            Step::UpdateIndex => f.write_str("update-index"),
            Step::UpdateNonindex => f.write_str("update-nonindex"),
            Step::ReadWrite(RANGE) => f.write_str("read-write"),
            Step::ReadWrite(range) => write!(f, "read-write.{range}"),
            Step::ReadOnly(range) => write!(f, "read-only.{range}"),
            Step::PointQuery => f.write_str("point-query"),
            Step::Select => f.write_str("select"),
            Step::Insert => f.write_str("insert"),
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

impl Step {
    /// Whether it is done once, not for each number of clients.
    pub fn is_once(self) -> bool {
        matches!(self, Step::Load | Step::Settle)
    }

    /// Statements of a transaction, `begin` and `commit` among them: rates of queries are rates of
    /// transactions times this.
    pub fn statements(self) -> u64 {
        const SELECTS: u64 = POINT_SELECTS + 4;
        match self {
            Step::ReadWrite(_) => SELECTS + 4 + 2,
            Step::ReadOnly(_) => SELECTS + 2,
            _ => 1,
        }
    }
}

/// How many rows a transaction asks for by id.
pub const POINT_SELECTS: u64 = 10;

/// How ids are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub enum Distribution {
    /// All alike
    Uniform,
    /// Three quarters go to the middle hundredth, the rest lies around it as a bell
    Special,
}

/// The parameters of the sysbench pattern.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SysbenchOptions {
    /// The steps, in this order
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "load,update-index,update-nonindex,read-write,read-only.10,read-only.100,\
                         read-only.1000,read-only.10000,point-query,select,insert"
    )]
    pub steps: Vec<Step>,

    /// Numbers of clients; each step but the load is repeated for each of them
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,4",
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub clients: Vec<u32>,

    /// Tables
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub tables: u32,

    /// Rows of each table (k, M, G: thousands)
    #[arg(long, default_value = "50k", value_parser = parse_some)]
    pub rows: u64,

    /// How long a step takes, for one number of clients
    #[arg(long, default_value_t = 5.0, value_parser = crate::options::positive)]
    pub seconds: f64,

    /// How ids are chosen
    #[arg(long, value_enum, default_value = "uniform")]
    pub distribution: Distribution,
}

impl SysbenchOptions {
    /// The steps as they are run, each with its number of clients.
    pub fn plan(&self) -> Vec<(Step, u32)> {
        let most = self.clients.iter().copied().max().unwrap_or(1);
        let mut plan = Vec::new();
        for &step in &self.steps {
            match step {
                Step::Load => plan.push((step, most.min(self.tables))),
                Step::Settle => plan.push((step, 1)),
                _ => plan.extend(self.clients.iter().map(|&clients| (step, clients))),
            }
        }
        plan
    }

    /// The steps as a plan has them: `update-index.c4` is that of four clients.
    pub fn planned(&self) -> Vec<PlannedStep> {
        let name = |(step, clients): (Step, u32)| match step.is_once() {
            true => (step.to_string(), step == Step::Load),
            false => (format!("{step}.c{clients}"), false),
        };
        planned(self.plan().into_iter().map(name))
    }

    /// The step of a plan's name, and its number of clients.
    ///
    /// # Errors
    ///
    /// There is no such step.
    pub fn step(&self, name: &str) -> Result<(Step, u32), String> {
        let name = name.split(' ').next().unwrap_or(name);
        let (step, clients) = name.rsplit_once(".c").unwrap_or((name, ""));
        let step: Step = step.parse()?;
        let of = |&(planned, clients): &(Step, u32)| (planned == step).then_some(clients);
        let clients = clients.parse().ok().or_else(|| self.plan().iter().find_map(of));
        Ok((step, clients.ok_or_else(|| format!("the sysbench pattern has no step `{name}`"))?))
    }

    /// The bytes of what the load leaves and the inserts may add, before compression.
    pub fn data_bytes(&self) -> u64 {
        let loaded = self.rows * u64::from(self.tables) * (rows::ROW_BYTES + rows::ENTRY_BYTES);
        // How many rows the inserts add is not known; as many as are there is a lot.
        if self.steps.contains(&Step::Insert) { 2 * loaded } else { loaded }
    }

    /// What does not fit together, with what to do.
    pub fn check(&self) -> Result<(), String> {
        if !matches!(self.steps.first(), None | Some(Step::Load)) {
            return Err("--steps: the first step makes the tables: load".to_owned());
        }
        if self.rows == 0 || self.rows > u64::from(u32::MAX) {
            return Err(format!("--rows: {} is not from 1 to 4294967295", self.rows));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "sysbench_tests.rs"]
mod tests;
