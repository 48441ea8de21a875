//! Who does what in a step of the TPC-C pattern.

use super::chance::Uneven;
use super::clients::{self, Checker, Terminal};
use super::input::Inputs;
use super::load::{self, Loader};
use super::options::{Switch, TpccOptions};
use super::scale::DISTRICTS;
use super::step::Step;
use super::store::Tpcc;
use crate::generate::Random;
use crate::run::pace::Client;
use crate::run::row::Row;
use crate::run::step::{WaitIdle, run_step};
use crate::run::work::{Named, Progress, Work};
use crate::stores::engine::Result;
use crate::stores::null::Null;
use std::time::Duration;

/// The clients of a step; the load makes its tables here.
///
/// # Errors
///
/// The store cannot create its tables, or gives no session.
pub fn work<'s, S: Tpcc>(
    store: &'s S,
    options: &TpccOptions,
    (step, clients): (Step, u32),
    seed: u64,
) -> Result<Work<'s>> {
    let mut work: Vec<Box<dyn Client + 's>> = Vec::new();
    let (scale, uneven) = (options.scale(), Uneven::new(seed));
    match step {
        Step::WaitIdle => {
            work.push(Box::new(WaitIdle(store)));
            Ok(Work::new("wait_idle", &["wait_idle"], work))
        }
        Step::Check => {
            work.push(Box::new(Checker(store)));
            Ok(Work { ops: Some(1), ..Work::new("check", &["check"], work) })
        }
        Step::Load => {
            store.create_warehouses(options.foreign_keys == Switch::On)?;
            for client in 1..=clients {
                let warehouses = (client..=scale.warehouses).step_by(clients as usize).collect();
                let (session, items) = (store.warehouse_session()?, client == 1);
                work.push(Box::new(Loader { session, items, warehouses, scale, uneven, seed }));
            }
            // A customer with a payment, and an order with ten lines, which may be new.
            let warehouse = scale.items + DISTRICTS * scale.customers * 133 / 10;
            let rows = u64::from(scale.warehouses) * u64::from(warehouse);
            Ok(Work { expected_ops: Some(rows), ..Work::new("row", &load::KINDS, work) })
        }
        Step::Run => {
            for client in 0..clients {
                let random = Random::named(seed, &format!("tpcc run {clients}"), client.into());
                let inputs = Inputs::new(random, scale, uneven);
                work.push(Box::new(Terminal::new(store.warehouse_session()?, inputs)));
            }
            Ok(Work {
                duration: Some(Duration::from_secs_f64(options.seconds)),
                warm_up: Duration::from_secs(options.warm_up),
                ..Work::new("transaction", &clients::KINDS, work)
            })
        }
    }
}

/// CPU microseconds per operation of a step's client itself, measured on warehouses that nobody
/// keeps, and 0 for a writer, since there is none.
///
/// # Errors
///
/// None that is known.
pub fn client_costs(options: &TpccOptions, step: Step, seed: u64) -> Result<(f64, f64)> {
    if matches!(step, Step::Check | Step::WaitIdle) {
        return Ok((0.0, 0.0));
    }
    work(&Null, options, (step, 1), seed)?.client_costs()
}

/// Runs a step, with so many clients, on a store that is in the state the steps before it left.
/// `costs` is of [`client_costs`]; `tell` is called once a second.
///
/// # Errors
///
/// The store fails, or a condition of consistency does not hold in it.
pub fn run<S: Tpcc>(
    store: &S,
    options: &TpccOptions,
    step: (Step, u32),
    seed: u64,
    costs: (f64, f64),
    named: &Named<'_>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Row> {
    let work = work(store, options, step, seed)?;
    let mut row = run_step(store, named, work, costs, tell)?;
    if step.0 == Step::Run {
        let orders = row.latency_us.get("new_order").map_or(0, |latency| latency.count);
        let per_minute = orders as f64 * 60.0 / row.seconds.max(1e-9);
        row.extra.insert("new_orders_per_minute".to_owned(), per_minute);
    }
    Ok(row)
}
