//! LinkBench: a social graph of nodes, links and counts of links, loaded and then queried.
//!
//! ```text
//! load    loads --maxid1 nodes with their links (4.3 for a node, two types) and counts
//! q1..qN  ten operations in LinkBench's proportions, --loops times --seconds each
//! drop    drops all tables
//! ```
//!
//! The published workload file gives all numbers. Where its program does something else than the
//! file says, this follows the file: the data of links repeats motifs of 128 bytes (the program
//! always takes 512), 30 % of the range queries ask for older links if a list was cut (the program:
//! 0.3 %), writes in the uncorrelated order have a shape of 0.741 (the program takes that of the
//! reads, 0.8), the geometric distribution begins at 1, and a node's links, shared by its types,
//! are as many as the distribution says.
//!
//! - [`distributions`]: Zipf, log-normal, geometric numbers, links per node, shuffled ids.
//! - [`motif`]: data that compresses as LinkBench's does.
//! - [`graph`]: the rows and what a store must do with them. [`null`]: one that does nothing.
//! - [`over_kv`]: key-value engines do it.
//! - [`choice`]: which operation, which nodes and links.
//! - [`load`], [`query`]: the clients.

pub mod distributions;
pub mod motif;
pub mod graph;
pub mod null;
pub mod over_kv;
pub mod choice;
pub mod load;
pub mod query;
#[cfg(test)]
mod fit;

use crate::engine;
use crate::pace::{Client, Did, Pace};
use crate::row::{Opened, Row};
use crate::step::{self, Progress, StepSpec};
use crate::units::{parse_count, parse_some};
use crate::work::{PlannedStep, Start};
use choice::Choice;
use clap::Args;
use graph::Graph;
use load::{LoadClient, Rows};
use null::NullGraph;
use query::QueryClient;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

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
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,

    /// Seconds that each query step runs before anything is measured
    #[arg(long, default_value_t = 0)]
    pub warm_up: u64,

    /// Clients that query
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub clients: u32,

    /// Operations per second of all query clients together [default: as many as they can]
    #[arg(long, value_parser = parse_rate)]
    pub rate: Option<f64>,

    /// At most so many operations of all clients in a query step [default: no bound]
    #[arg(long, value_parser = parse_some)]
    pub requests: Option<u64>,

    /// Links that a range query returns at most
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub range_limit: u64,

    /// Of the range queries, how many in a hundred ask for older links where a list was cut
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub history_percent: u8,

    /// The shape of the Zipf distribution of the writes of links that is not correlated with the
    /// number of links, from 0 (uniform) to less than 1
    #[arg(long, default_value_t = 0.741, value_parser = parse_shape)]
    pub write_uncorrelated_shape: f64,

    /// Leave the tables there at the end
    #[arg(long)]
    pub keep_tables: bool,
}

fn parse_maxid1(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        nodes @ 1..=4_000_000_000 => Ok(nodes),
        _ => Err(format!("`{text}` is not from 1 to 4G nodes")),
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

/// A step, written as in the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Step {
    /// `load`.
    Load,
    /// `q1` and so on.
    Query(u32),
    /// `drop`.
    Drop,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Load => f.write_str("load"),
            Step::Query(number) => write!(f, "q{number}"),
            Step::Drop => f.write_str("drop"),
        }
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        match text {
            "load" => Ok(Step::Load),
            "drop" => Ok(Step::Drop),
            _ => {
                let number = text.strip_prefix('q').and_then(|digits| digits.parse().ok());
                number.map(Step::Query).ok_or_else(|| format!("`{text}` is none of load, qN, drop"))
            }
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
    /// The names of the kinds of its operations.
    pub fn kinds(self) -> &'static [&'static str] {
        match self {
            Step::Load => &load::KINDS,
            Step::Query(_) => &choice::KINDS,
            Step::Drop => &["drop"],
        }
    }

    /// What an operation is.
    pub fn unit(self) -> &'static str {
        match self {
            Step::Load => "row",
            Step::Query(_) => "transaction",
            Step::Drop => "drop",
        }
    }
}

impl LinkbenchOptions {
    /// The steps, in order; each query step goes on with what the one before left.
    pub fn steps(&self) -> Vec<PlannedStep> {
        let queries = (1..=self.loops).map(Step::Query);
        let end = (!self.keep_tables).then_some(Step::Drop);
        let all = std::iter::once(Step::Load).chain(queries).chain(end);
        all.map(|step| PlannedStep {
            name: step.to_string(),
            start: if step == Step::Load { Start::Fresh } else { Start::Continue },
        })
        .collect()
    }

    /// What a step is.
    pub fn spec<'a>(&self, step: Step, name: &'a str) -> StepSpec<'a> {
        let spec = StepSpec {
            workload: "linkbench",
            step: name,
            unit: step.unit(),
            kinds: step.kinds(),
            ..StepSpec::default()
        };
        match step {
            // A node, 4.3 links, and a count for each type of which it has links.
            Step::Load => StepSpec { expected_ops: Some(self.maxid1 * 6), ..spec },
            Step::Query(_) => StepSpec {
                ops: self.requests,
                duration: Some(Duration::from_secs(self.seconds)),
                warm_up: Duration::from_secs(self.warm_up),
                rate: self.rate,
                ..spec
            },
            Step::Drop => StepSpec { ops: Some(1), ..spec },
        }
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

/// The clients of a step. `choice` is made of the same options and seed; `rows` counts what the
/// load has done.
///
/// # Errors
///
/// The store gives no session.
pub fn clients<'a, G: Graph>(
    graph: &'a G,
    choice: &'a Choice,
    rows: &'a Rows,
    options: &LinkbenchOptions,
    seed: u64,
    step: Step,
) -> engine::Result<Vec<Box<dyn Client + 'a>>> {
    let mut clients: Vec<Box<dyn Client + 'a>> = Vec::new();
    match step {
        Step::Load => {
            for client in 0..u64::from(options.load_clients) {
                let session = graph.session()?;
                let loaded = &choice.loaded;
                clients
                    .push(Box::new(LoadClient::new(session, rows, loaded, options, seed, client)));
            }
        }
        Step::Query(_) => {
            let name = step.to_string();
            for client in 0..u64::from(options.clients) {
                let session = graph.session()?;
                let client = QueryClient::new(session, choice, options, seed, &name, client);
                clients.push(Box::new(client));
            }
        }
        Step::Drop => clients.push(Box::new(DropClient(graph))),
    }
    Ok(clients)
}

/// Runs a step on a graph that is in the state the steps before it left. `client_us_per_op` is of
/// [`client_us_per_op`]; `tell` is called once a second.
///
/// # Errors
///
/// The store fails.
pub fn run<G: Graph>(
    graph: &G,
    options: &LinkbenchOptions,
    step: Step,
    seed: u64,
    client_us_per_op: f64,
    opened: Option<Opened>,
    tell: &mut dyn FnMut(&Progress),
) -> engine::Result<Row> {
    let name = step.to_string();
    let (choice, rows) = (Choice::new(seed, options), Rows::default());
    let spec = StepSpec { client_us_per_op, opened, ..options.spec(step, &name) };
    let clients = clients(graph, &choice, &rows, options, seed, step)?;
    let mut row = step::run(graph, &spec, clients, None, tell)?;
    row.parameters = serde_json::to_value(options)?;
    match step {
        Step::Load => {
            row.extra.extend(rows.named().map(|(name, rows)| (name.to_owned(), rows as f64)));
        }
        Step::Query(_) => {}
        Step::Drop => {
            let longest = row.latency_us.get("drop").map_or(0.0, |latency| latency.us.max);
            row.extra.insert("drop_seconds".to_owned(), longest / 1e6);
        }
    }
    Ok(row)
}

/// CPU microseconds per operation of a client itself, measured on a graph that does nothing.
///
/// # Errors
///
/// None that is known.
pub fn client_us_per_op(options: &LinkbenchOptions, step: Step, seed: u64) -> engine::Result<f64> {
    // Enough nodes to load that the measurement does not come to their end.
    let nodes = options.maxid1.max(1_000_000);
    let alone = LinkbenchOptions { maxid1: nodes, clients: 1, load_clients: 1, ..options.clone() };
    let (choice, rows) = (Choice::new(seed, &alone), Rows::default());
    let rate = match step {
        Step::Query(_) => options.rate.map(|rate| rate / f64::from(options.clients)),
        Step::Load => None,
        Step::Drop => return Ok(0.0),
    };
    match clients(&NullGraph, &choice, &rows, &alone, seed, step)?.first_mut() {
        Some(client) => step::client_cost(client.as_mut(), rate),
        None => Ok(0.0),
    }
}

/// Drops all tables: one operation.
struct DropClient<'a, G>(&'a G);

impl<G: Graph> Client for DropClient<'_, G> {
    fn run(&mut self, pace: &mut Pace<'_>) -> engine::Result<()> {
        if pace.begin() {
            self.0.drop_tables()?;
            pace.end(0, Did { found: true, ..Did::default() });
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
