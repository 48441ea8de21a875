//! Who does what in a step of the insert benchmark.

use super::clients::{Indexer, PointQueries, QUERIES, RangeQueries, WRITES, Window, Writer};
use super::options::InsertOptions;
use super::over_kv::INDEX_BYTES;
use super::rows::{Noise, Rows, prices};
use super::size::predicted_bytes;
use super::step::Step;
use super::store::{Index, Sales};
use crate::generate::Random;
use crate::run::pace::Client;
use crate::run::row::Row;
use crate::run::step::{WaitIdle, run_step};
use crate::run::work::{Named, Progress, Work, share};
use crate::stores::engine::Result;
use crate::stores::null::Null;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The clients of a step; a load makes its tables here.
///
/// # Errors
///
/// The store cannot create its tables, or gives no session.
pub fn work<'s, S: Sales>(
    store: &'s S,
    options: &InsertOptions,
    step: Step,
    seed: u64,
) -> Result<Work<'s>> {
    if let Step::Load { indexed } = step {
        store.create(options.clients, indexed, options.data_bytes.most)?;
    }
    let tables = 0..options.clients;
    let each = |client: &dyn Fn(u32) -> Result<Box<dyn Client + 's>>| {
        tables.clone().map(client).collect::<Result<Vec<_>>>()
    };
    match step {
        Step::Index => {
            let clients = each(&|table| Ok(Box::new(Indexer { store, table })))?;
            Ok(Work::new("row", &["create"], clients))
        }
        Step::WaitIdle => {
            Ok(Work::new("wait_idle", &["wait_idle"], vec![Box::new(WaitIdle(store))]))
        }
        Step::Load { .. } | Step::Insert { .. } => {
            let noise = Noise::new(seed, options);
            let rows = options.rows_of(step).unwrap_or(0);
            let clients = each(&|table| {
                let left = share(rows, options.clients as usize, table as usize);
                let window = Window::of(store, table)?;
                Ok(Box::new(writer(store, options, step, &noise, seed, table, left, window)?))
            })?;
            Ok(Work { expected_ops: Some(rows), ..Work::new("insert", WRITES, clients) })
        }
        Step::Query { rate, .. } => queries(store, options, step, rate, seed),
    }
}

#[allow(clippy::too_many_arguments)]
fn writer<'s, S: Sales>(
    store: &'s S,
    options: &InsertOptions,
    step: Step,
    noise: &Noise,
    seed: u64,
    table: u32,
    left: u64,
    window: Arc<Window>,
) -> Result<Writer<S::Session<'s>>> {
    Ok(Writer {
        session: store.session(table)?,
        rows: Rows::new(options, noise, seed, &step.to_string(), table.into()),
        window,
        rows_per_commit: options.rows_per_commit_of(step),
        left,
        deletes: !options.no_deletes && !matches!(step, Step::Load { .. }),
        index_bytes: if store.is_indexed(table)? { INDEX_BYTES } else { 0 },
    })
}

fn queries<'s, S: Sales>(
    store: &'s S,
    options: &InsertOptions,
    step: Step,
    rate: u32,
    seed: u64,
) -> Result<Work<'s>> {
    let noise = Noise::new(seed, options);
    let mut clients: Vec<Box<dyn Client + 's>> = Vec::new();
    let mut writers: Vec<Box<dyn Client + 's>> = Vec::new();
    for table in 0..options.clients {
        let window = Window::of(store, table)?;
        let session = store.session(table)?;
        let random = Random::named(seed, &format!("{step} queries"), table.into());
        if matches!(step, Step::Query { point: true, .. }) {
            let window = window.clone();
            clients.push(Box::new(PointQueries { session, random, window }));
        } else {
            clients.push(Box::new(RangeQueries {
                session,
                random,
                window: window.clone(),
                limit: options.rows_per_query,
                indexes: if store.is_indexed(table)? { Index::ALL.len() as u64 } else { 1 },
                registers: options.cash_registers.into(),
                customers: options.customers.into(),
                prices: prices(options),
            }));
        }
        if rate > 0 {
            let left = u64::MAX;
            let writer = writer(store, options, step, &noise, seed, table, left, window)?;
            writers.push(Box::new(writer));
        }
    }
    Ok(Work {
        duration: Some(Duration::from_secs_f64(options.seconds)),
        writers,
        writer_rate: f64::from(rate) * f64::from(options.clients),
        ..Work::new("query", QUERIES, clients)
    })
}

/// CPU microseconds per operation of a step's client and of its writer themselves, measured on a
/// store that does nothing.
///
/// # Errors
///
/// None that is known.
pub fn client_costs(options: &InsertOptions, step: Step, seed: u64) -> Result<(f64, f64)> {
    if matches!(step, Step::Index | Step::WaitIdle) {
        // What they do is the table layer's work and the engine's.
        return Ok((0.0, 0.0));
    }
    let endless = InsertOptions { rows: u64::MAX, inserts: u64::MAX, ..options.clone() };
    work(&Null, &InsertOptions { clients: 1, ..endless }, step, seed)?.client_costs()
}

/// Runs a step on a store that is in the state the steps before it left. `costs` is of
/// [`client_costs`]; `tell` is called once a second.
///
/// # Errors
///
/// The store fails, or lost rows.
pub fn run<S: Sales>(
    store: &S,
    options: &InsertOptions,
    step: Step,
    seed: u64,
    costs: (f64, f64),
    named: &Named<'_>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Row> {
    let work = work(store, options, step, seed)?;
    run_step(store, named, work, costs, tell)
}

/// Figures of this benchmark alone, at the end of a step: `table_rows`; and, without secondary
/// indexes, `predicted_size_bytes` and how the measured size relates to it.
///
/// # Errors
///
/// The store fails.
pub fn extra<S: Sales>(
    store: &S,
    options: &InsertOptions,
    compressed: bool,
    size_bytes: u64,
) -> Result<BTreeMap<String, f64>> {
    let (mut rows, mut indexed) = (0, false);
    for table in 0..options.clients {
        rows += store.ids(table)?.map_or(0, |ids| ids.end() - ids.start() + 1);
        indexed |= store.is_indexed(table)?;
    }
    let mut extra = BTreeMap::from([("table_rows".to_owned(), rows as f64)]);
    if !indexed && rows > 0 {
        let predicted = predicted_bytes(options, rows, compressed);
        extra.insert("predicted_size_bytes".to_owned(), predicted);
        extra.insert("size_per_predicted".to_owned(), size_bytes as f64 / predicted);
    }
    Ok(extra)
}
