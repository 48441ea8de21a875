//! What a workload gives of a step, to be run: its clients, what they are called and how far they
//! go.

use crate::run::pace::Client;
use crate::run::row::{Opened, Row};
use crate::run::spec::{Held, Progress, StepSpec};
use crate::run::step::{client_cost, run};
use crate::stores::engine::Result;
use crate::stores::store::Store;
use std::time::Duration;

/// The clients of one step, and how far they go.
pub struct Work<'s> {
    /// What an operation is: insert, transaction, query.
    pub unit: &'static str,
    /// The names of the clients' kinds of operation, by number.
    pub kinds: &'static [&'static str],
    /// The clients, one thread each.
    pub clients: Vec<Box<dyn Client + 's>>,
    /// Operations of all clients together; `None` if they stop by themselves or time ends the step.
    pub ops: Option<u64>,
    /// Operations to expect, for the display of progress, where `ops` does not tell.
    pub expected_ops: Option<u64>,
    /// How long the step takes, the time to warm up not included, if it is bound by time.
    pub duration: Option<Duration>,
    /// How long the clients run before anything is measured.
    pub warm_up: Duration,
    /// Operations per second of all clients together; `None` is as fast as they go.
    pub rate: Option<f64>,
    /// Who writes beside them, one thread each.
    pub writers: Vec<Box<dyn Client + 's>>,
    /// Operations per second of all writers together.
    pub writer_rate: f64,
}

impl<'s> Work<'s> {
    /// Clients that go on until they are done, as fast as they go, with no writer beside them.
    pub fn new(
        unit: &'static str,
        kinds: &'static [&'static str],
        clients: Vec<Box<dyn Client + 's>>,
    ) -> Work<'s> {
        Work {
            unit,
            kinds,
            clients,
            ops: None,
            expected_ops: None,
            duration: None,
            warm_up: Duration::ZERO,
            rate: None,
            writers: Vec::new(),
            writer_rate: 0.0,
        }
    }

    /// CPU microseconds per operation of the first client and of the first writer themselves, on a
    /// store that does nothing.
    pub fn client_costs(mut self) -> Result<(f64, f64)> {
        let cost = |client: Option<&mut Box<dyn Client + 's>>, rate| match client {
            Some(client) => client_cost(client.as_mut(), rate),
            None => Ok(0.0),
        };
        let rate = self.rate.map(|rate| rate / self.clients.len().max(1) as f64);
        let writer_rate = self.writer_rate / self.writers.len().max(1) as f64;
        let clients = cost(self.clients.first_mut(), rate)?;
        Ok((clients, cost(self.writers.first_mut(), Some(writer_rate))?))
    }
}

/// A step as a report names it, and what is known before it begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Named<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// The step's name.
    pub step: &'a str,
    /// What opening the store took, if that is part of the step.
    pub opened: Option<Opened>,
}

/// Runs a step; `costs` is of [`Work::client_costs`], `tell` is called once a second.
pub fn run_work<S: Store>(
    store: &S,
    named: &Named<'_>,
    work: Work<'_>,
    costs: (f64, f64),
    tell: &mut dyn FnMut(&Progress),
) -> Result<Row> {
    let spec = StepSpec {
        workload: named.workload,
        step: named.step,
        unit: work.unit,
        kinds: work.kinds,
        ops: work.ops,
        duration: work.duration,
        warm_up: work.warm_up,
        rate: work.rate,
        expected_ops: work.expected_ops,
        client_us_per_op: costs.0,
        opened: named.opened,
    };
    let held = (!work.writers.is_empty()).then_some(Held {
        clients: work.writers,
        rate: work.writer_rate,
        client_us_per_op: costs.1,
    });
    run(store, &spec, work.clients, held, tell)
}
