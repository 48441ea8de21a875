//! Who does what in a step with a user's rows.

use super::clients::{Loader, Reader};
use super::options::{RowsOptions, Step};
use super::over_kv::TREES;
use super::store::Pairs;
use crate::run::pace::Client;
use crate::run::row::Row;
use crate::run::step::{WaitIdle, run_step};
use crate::run::work::{Named, Progress, Work};
use crate::setup::Setup;
use crate::stores::engine::Result;
use crate::stores::kv::KvStore;
use crate::stores::null::Null;
use std::path::Path;
use std::time::Duration;

/// Reads begin to count when the cache has what it will have.
const WARM_UP: Duration = Duration::from_secs(1);

/// The client of a step; the load makes the table here.
///
/// # Errors
///
/// The store cannot create its table, or gives no session; the file of rows cannot be read.
pub fn work<'s, S: Pairs>(
    store: &'s S,
    rows: &RowsOptions,
    step: Step,
    seed: u64,
) -> Result<Work<'s>> {
    let client = |client: Box<dyn Client + 's>| vec![client];
    Ok(match step {
        Step::WaitIdle => Work::new("wait_idle", &["wait_idle"], client(Box::new(WaitIdle(store)))),
        Step::Load => {
            store.create(rows)?;
            let loader = Loader { session: store.session(rows)?, rows: rows.clone() };
            let expected_ops = Some(rows.rows);
            Work { expected_ops, ..Work::new("row", &["load"], client(Box::new(loader))) }
        }
        Step::Get => {
            let reader = Reader::new(store.session(rows)?, rows, seed)?;
            let work = Work::new("read", &["get"], client(Box::new(reader)));
            Work { ops: Some(rows.gets), warm_up: WARM_UP, ..work }
        }
    })
}

/// CPU microseconds per operation of a step's client itself, measured on a store that does nothing,
/// and 0 for a writer, since there is none.
///
/// # Errors
///
/// The file of rows cannot be read.
pub fn client_costs(rows: &RowsOptions, step: Step, seed: u64) -> Result<(f64, f64)> {
    if step == Step::WaitIdle {
        return Ok((0.0, 0.0));
    }
    let store = KvStore::<Null>::open(Path::new(""), &Setup::default(), &TREES)?;
    work(&store, rows, step, seed)?.client_costs()
}

/// Runs a step on a store that is in the state the steps before it left. `costs` is of
/// [`client_costs`]; `tell` is called once a second.
///
/// # Errors
///
/// The store fails.
pub fn run<S: Pairs>(
    store: &S,
    rows: &RowsOptions,
    step: Step,
    seed: u64,
    costs: (f64, f64),
    named: &Named<'_>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Row> {
    run_step(store, named, work(store, rows, step, seed)?, costs, tell)
}
