//! Who does what in a step of LinkBench.

use super::choice::{self, Choice};
use super::graph::Graph;
use super::load::{self, LoadClient, Rows};
use super::options::LinkbenchOptions;
use super::query::QueryClient;
use super::step::Step;
use crate::run::pace::{Client, Did, Pace};
use crate::run::row::Row;
use crate::run::step::run_step;
use crate::run::work::{Named, Progress, Work};
use crate::stores::engine::Result;
use crate::stores::null::Null;
use std::time::Duration;

/// The clients of a step; the load makes its tables here. `choice` is made of the same options and
/// seed; `rows` counts what the load has done.
///
/// # Errors
///
/// The store cannot create its tables, or gives no session.
pub fn work<'s, G: Graph>(
    graph: &'s G,
    choice: &'s Choice,
    rows: &'s Rows,
    options: &LinkbenchOptions,
    seed: u64,
    step: Step,
) -> Result<Work<'s>> {
    let mut clients: Vec<Box<dyn Client + 's>> = Vec::new();
    match step {
        Step::Load => {
            graph.create_tables(options.partitions)?;
            for client in 0..u64::from(options.load_clients) {
                let session = graph.session()?;
                let loaded = &choice.loaded;
                clients
                    .push(Box::new(LoadClient::new(session, rows, loaded, options, seed, client)));
            }
            // A node, 4.3 links, and a count for each type of which it has links.
            let expected_ops = Some(options.maxid1 * 6);
            Ok(Work { expected_ops, ..Work::new("row", &load::KINDS, clients) })
        }
        Step::Query(_) => {
            let name = step.to_string();
            for client in 0..u64::from(options.clients) {
                let session = graph.session()?;
                let client = QueryClient::new(session, choice, options, seed, &name, client);
                clients.push(Box::new(client));
            }
            Ok(Work {
                ops: options.requests,
                duration: Some(Duration::from_secs(options.seconds)),
                warm_up: Duration::from_secs(options.warm_up),
                rate: options.rate,
                ..Work::new("transaction", &choice::KINDS, clients)
            })
        }
        Step::Drop => {
            clients.push(Box::new(DropClient(graph)));
            Ok(Work { ops: Some(1), ..Work::new("drop", &["drop"], clients) })
        }
    }
}

/// Runs a step on a graph that is in the state the steps before it left. `costs` is of
/// [`client_costs`]; `tell` is called once a second.
///
/// # Errors
///
/// The store fails.
pub fn run<G: Graph>(
    graph: &G,
    options: &LinkbenchOptions,
    step: Step,
    seed: u64,
    costs: (f64, f64),
    named: &Named<'_>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Row> {
    let (choice, rows) = (Choice::new(seed, options), Rows::default());
    let work = work(graph, &choice, &rows, options, seed, step)?;
    let mut row = run_step(graph, named, work, costs, tell)?;
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

/// CPU microseconds per operation of a step's client itself, measured on a graph that does nothing,
/// and 0 for a writer, since there is none.
///
/// # Errors
///
/// None that is known.
pub fn client_costs(options: &LinkbenchOptions, step: Step, seed: u64) -> Result<(f64, f64)> {
    if step == Step::Drop {
        return Ok((0.0, 0.0));
    }
    let alone = LinkbenchOptions {
        // Enough nodes to load that the measurement does not come to their end.
        maxid1: options.maxid1.max(1_000_000),
        clients: 1,
        load_clients: 1,
        rate: options.rate.map(|rate| rate / f64::from(options.clients)),
        ..options.clone()
    };
    let (choice, rows) = (Choice::new(seed, &alone), Rows::default());
    work(&Null, &choice, &rows, &alone, seed, step)?.client_costs()
}

/// Drops all tables: one operation.
struct DropClient<'a, G>(&'a G);

impl<G: Graph> Client for DropClient<'_, G> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        if pace.begin() {
            self.0.drop_tables()?;
            pace.end(0, Did { found: true, ..Did::default() });
        }
        Ok(())
    }
}
