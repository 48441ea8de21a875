//! What a workload gives of a step, to be run: its clients, what they are called and how far they
//! go; and how far the step is.

use crate::measure::thread_cpu_seconds;
use crate::run::pace::{Bounds, Client, Pace, Seen, Total};
use crate::run::row::Opened;
use crate::stores::engine::Result;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The clients of one step, and how far they go.
pub struct Work<'s> {
    /// What an operation is: insert, transaction, query.
    pub unit: &'static str,
    /// The names of the clients' kinds of operation, by number.
    pub kinds: &'static [&'static str],
    /// The clients, one thread each.
    pub clients: Vec<Box<dyn Client + 's>>,
    /// Operations of all clients together. `None` if they stop by themselves or time ends the step.
    pub ops: Option<u64>,
    /// Operations to expect, for the display of progress, where `ops` is `None`.
    pub expected_ops: Option<u64>,
    /// How long the step takes, without the warm-up, if time ends it.
    pub duration: Option<Duration>,
    /// How long the clients run before anything is measured.
    pub warm_up: Duration,
    /// Operations per second of all clients together. `None` is as fast as they can.
    pub rate: Option<f64>,
    /// Writers beside them, one thread each. They end when the clients do.
    pub writers: Vec<Box<dyn Client + 's>>,
    /// Operations per second of all writers together.
    pub writer_rate: f64,
}

impl<'s> Work<'s> {
    /// Clients that run until they are done, as fast as they can, with no writer beside them.
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

    /// CPU microseconds per operation of the first client itself and of the first writer itself (0
    /// without one), measured on a store that does nothing.
    ///
    /// # Errors
    ///
    /// A client fails.
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

/// CPU microseconds per operation of a client itself. `client` works on a store that does nothing,
/// as fast as it can, or at `rate` operations per second (waiting costs too).
pub(super) fn client_cost(client: &mut dyn Client, rate: Option<f64>) -> Result<f64> {
    const OPS: u64 = 100_000;
    const ROUNDS: usize = 3;
    let (stop, seen) = (AtomicBool::new(false), Seen::default());
    let mut best = f64::MAX;
    // The first round warms up caches and page tables. The cheapest of the others was disturbed
    // least.
    for round in 0..ROUNDS {
        let deadline = Some(Instant::now() + Duration::from_millis(200));
        let mut pace =
            Pace::new(Bounds { ops: Some(OPS), deadline, rate, warm: None }, &stop, &seen);
        let before = thread_cpu_seconds();
        client.run(&mut pace)?;
        let used = thread_cpu_seconds() - before;
        if round > 0 && pace.done() > 0 {
            best = best.min(used * 1e6 / pace.done() as f64);
        }
    }
    // A client that does its work only once has nothing left for the later rounds.
    Ok(if best == f64::MAX { 0.0 } else { best })
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

/// How far a step is: what [`run_step`](super::step::run_step) tells once a second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Seconds since the beginning of the step, with the warm-up.
    pub seconds: f64,
    /// Operations done.
    pub ops: u64,
    /// Operations per second in the last second.
    pub rate: f64,
    /// The share that is done, from 0 to 1. `None` if it is not known.
    pub share: Option<f64>,
    /// CPU seconds of the engine's processes so far.
    pub cpu_seconds: f64,
    /// Bytes that these processes read and wrote so far.
    pub io_bytes: u64,
}

/// The part of `ops` that client number `client`, from 0, of `clients` does. The parts differ by at
/// most 1 and sum up to `ops`.
pub fn share(ops: u64, clients: usize, client: usize) -> u64 {
    let (clients, client) = (clients.max(1) as u64, client as u64);
    ops / clients + u64::from(client < ops % clients)
}

/// What the clients of a step did.
#[derive(Default)]
pub(super) struct Done {
    pub(super) foreground: Total,
    pub(super) background: Option<Total>,
}
