//! What a step is, how far it is, and what its clients did.

use crate::run::pace::{Client, Total};
use crate::run::row::Opened;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a step is.
#[derive(Clone, Debug, Default)]
pub struct StepSpec<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// The step's name.
    pub step: &'a str,
    /// What an operation is: insert, transaction, query, read, write, row.
    pub unit: &'a str,
    /// The kinds of operation, by the number that the clients give
    /// [`Pace::end`](crate::run::pace::Pace::end).
    pub kinds: &'a [&'a str],
    /// Operations of all foreground clients together; `None` if they know themselves or time ends
    /// the step.
    pub ops: Option<u64>,
    /// How long it takes, the time to warm up not included; `None` if operations end the step.
    pub duration: Option<Duration>,
    /// How long the clients run before anything is measured.
    pub warm_up: Duration,
    /// Operations per second of all foreground clients together, if they are held at a rate.
    pub rate: Option<f64>,
    /// Operations to expect, for the display of progress, where `ops` does not tell.
    pub expected_ops: Option<u64>,
    /// CPU microseconds per operation of a client itself, as
    /// [`client_cost`](super::step::client_cost) found.
    pub client_us_per_op: f64,
    /// What opening the store took, if that is part of the step.
    pub opened: Option<Opened>,
}

/// Clients beside those of the step, held at a rate.
pub struct Held<'a> {
    /// The clients.
    pub clients: Vec<Box<dyn Client + 'a>>,
    /// Operations per second of all of them together.
    pub rate: f64,
    /// CPU microseconds per operation of such a client itself.
    pub client_us_per_op: f64,
}

/// How far a step is: what [`run`](super::step::run) tells once a second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Seconds since the step's beginning, the time to warm up included.
    pub seconds: f64,
    /// Operations done.
    pub ops: u64,
    /// Operations per second in the last second.
    pub rate: f64,
    /// What is done, 0 to 1; `None` if it is not known.
    pub share: Option<f64>,
    /// CPU seconds of the engine's processes so far.
    pub cpu_seconds: f64,
    /// Bytes that they read and wrote so far.
    pub io_bytes: u64,
}

/// The part of `ops` that client number `client` of `clients` does.
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
