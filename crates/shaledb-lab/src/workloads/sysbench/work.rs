//! Who does what in a step of the sysbench pattern.

use super::clients::{LOADS, Loader, Requests, TRANSACTIONS};
use super::ids::Ids;
use super::options::SysbenchOptions;
use super::rows::{C_BYTES, PAD_BYTES};
use super::step::Step;
use super::store::Oltp;
use crate::generate::Random;
use crate::run::pace::Client;
use crate::run::row::Row;
use crate::run::step::{WaitIdle, run_step};
use crate::run::work::{Named, Progress, Work};
use crate::stores::engine::{Metrics, Result};
use crate::stores::null::Null;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The clients of a step; the load makes its tables here.
///
/// # Errors
///
/// The store cannot create its tables, or gives no session.
pub fn work<'s, S: Oltp>(
    store: &'s S,
    options: &SysbenchOptions,
    step: Step,
    clients: u32,
    seed: u64,
) -> Result<Work<'s>> {
    let mut work: Vec<Box<dyn Client + 's>> = Vec::new();
    match step {
        Step::WaitIdle => {
            work.push(Box::new(WaitIdle(store)));
            return Ok(Work::new("wait_idle", &["wait_idle"], work));
        }
        Step::Load => {
            store.create(options.tables)?;
            for client in 0..clients {
                let tables = (client..options.tables).step_by(clients as usize).collect();
                let session = store.session()?;
                work.push(Box::new(Loader { store, session, tables, rows: options.rows, seed }));
            }
            let rows = options.rows * u64::from(options.tables);
            return Ok(Work { expected_ops: Some(rows), ..Work::new("row", LOADS, work) });
        }
        _ => {}
    }
    let last = match step {
        Step::Insert => {
            let last = |table| store.last_id(table).map(AtomicU64::new);
            (0..options.tables).map(last).collect::<Result<Vec<_>>>()?
        }
        _ => Vec::new(),
    };
    let last = Arc::new(last);
    for client in 0..clients {
        work.push(Box::new(Requests {
            session: store.session()?,
            step,
            random: Random::named(seed, &format!("sysbench {step} {clients}"), client.into()),
            ids: Ids::new(options.distribution, options.rows),
            rows: options.rows,
            tables: options.tables.into(),
            last: last.clone(),
            c: [0; C_BYTES],
            pad: [0; PAD_BYTES],
        }));
    }
    let unit = if step.statements() > 1 { "transaction" } else { "query" };
    let duration = Some(Duration::from_secs_f64(options.seconds));
    Ok(Work { duration, ..Work::new(unit, TRANSACTIONS, work) })
}

/// CPU microseconds per operation of a step's client itself, measured on a store that does nothing,
/// and 0 for a writer, since there is none.
///
/// # Errors
///
/// None that is known.
pub fn client_costs(options: &SysbenchOptions, step: Step, seed: u64) -> Result<(f64, f64)> {
    if step == Step::WaitIdle {
        return Ok((0.0, 0.0));
    }
    work(&Null, options, step, 1, seed)?.client_costs()
}

/// Runs a step, with so many clients, on a store that is in the state the steps before it left.
/// `costs` is of [`client_costs`]; `tell` is called once a second.
///
/// # Errors
///
/// The store fails.
pub fn run<S: Oltp>(
    store: &S,
    options: &SysbenchOptions,
    (step, clients): (Step, u32),
    seed: u64,
    costs: (f64, f64),
    named: &Named<'_>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Row> {
    let work = work(store, options, step, clients, seed)?;
    let before = store.metrics()?;
    let mut row = run_step(store, named, work, costs, tell)?;
    row.extra.extend(extra(step, &before));
    Ok(row)
}

/// Figures of this pattern alone: how many statements an operation has, and what the engine counts
/// in level 0 when the step begins, for that decides what a step that only reads measures.
pub fn extra(step: Step, before: &Metrics) -> BTreeMap<String, f64> {
    let mut extra = BTreeMap::from([("statements_per_op".to_owned(), step.statements() as f64)]);
    if let Some(level) = before.levels.iter().find(|level| level.level == 0) {
        extra.insert("level0_files_before".to_owned(), level.files as f64);
        extra.insert("level0_bytes_before".to_owned(), level.bytes as f64);
    }
    extra
}
