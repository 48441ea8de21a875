//! One step of a workload on one store: its clients on threads, a look at everything once a second,
//! and the [`Row`] that comes of it.
//!
//! The step's own clients run until their operations or their time are used up. Clients that are
//! held at a rate may run beside them; they end when the others do, and the row says whether they
//! held their rate.

use super::meter::Meter;
use super::spec::{Done, Held, Progress, StepSpec, share};
use crate::measure::{Latencies, RateSummary, thread_cpu_seconds};
use crate::run::pace::{Bounds, Client, Did, Pace, Seen, Total};
use crate::run::row::{Latency, Row, Writer};
use crate::stores::engine::Result;
use crate::stores::store::Store;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often everything is looked at.
const TICK: Duration = Duration::from_secs(1);

/// A rate of writes counts as held from this share of it on.
const HELD_SHARE: f64 = 0.95;

/// A client that waits until the store has nothing more to do.
pub struct WaitIdle<'a, S>(pub &'a S);

impl<S: Store> Client for WaitIdle<'_, S> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        if pace.begin() {
            self.0.wait_idle()?;
            pace.end(0, Did { found: true, ..Did::default() });
        }
        Ok(())
    }
}

/// Runs a step. `tell` is called once a second.
pub fn run<'a, S: Store>(
    store: &S,
    spec: &StepSpec<'_>,
    foreground: Vec<Box<dyn Client + 'a>>,
    background: Option<Held<'a>>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Row> {
    let wanted = background.as_ref().map(|held| held.rate);
    let held_us = background.as_ref().map_or(0.0, |held| held.client_us_per_op);
    let clients = foreground.len();
    let mut meter = Meter::new(store, spec);
    let done = threads(spec, foreground, background, &mut meter, tell)?;
    let client_us = done.foreground.ops as f64 * spec.client_us_per_op
        + done.background.as_ref().map_or(0.0, |total| total.ops as f64 * held_us);
    let mut row = meter.finish(&done, client_us / 1e6)?;
    row.clients = clients as u64;
    if let (Some(total), Some(wanted)) = (&done.background, wanted) {
        let writer = writer(total, wanted, &row);
        if !writer.held {
            row.notes.push(format!(
                "the writer did not hold its rate: {:.0}/s of {wanted:.0}/s",
                writer.rate
            ));
        }
        row.writer = Some(writer);
    }
    Ok(row)
}

/// CPU microseconds per operation of a client itself: `client` works on a store that does nothing,
/// as fast as it goes, or at `rate` if it is to be held at one (waiting costs too).
pub fn client_cost(client: &mut dyn Client, rate: Option<f64>) -> Result<f64> {
    const OPS: u64 = 100_000;
    const ROUNDS: usize = 3;
    let (stop, seen) = (AtomicBool::new(false), Seen::default());
    let mut best = f64::MAX;
    // The first round warms caches and page tables up; of the others the cheaper one was disturbed
    // less.
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
    // A client that has nothing to do but once was not seen again.
    Ok(if best == f64::MAX { 0.0 } else { best })
}

fn writer(total: &Total, wanted: f64, row: &Row) -> Writer {
    let mut all = Latencies::new();
    total.latencies.iter().for_each(|latencies| all.merge(latencies));
    let rate = total.ops as f64 / row.seconds.max(1e-9);
    let rates: Vec<f64> = row.intervals.iter().map(|interval| interval.writer_rate).collect();
    Writer {
        ops: total.ops,
        rate,
        wanted,
        held: rate >= HELD_SHARE * wanted,
        rates: RateSummary::of(&rates),
        written_bytes: total.written,
        latency: Latency { count: all.count(), us: all.summary() },
    }
}

/// A client's last word.
struct End {
    foreground: bool,
    total: Result<Total>,
}

fn threads<'a, S: Store>(
    spec: &StepSpec<'_>,
    foreground: Vec<Box<dyn Client + 'a>>,
    background: Option<Held<'a>>,
    meter: &mut Meter<'_, S>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Done> {
    let stop = AtomicBool::new(false);
    let (count, held_rate) = (foreground.len(), background.as_ref().map(|held| held.rate));
    let beside = background.map_or_else(Vec::new, |held| held.clients);
    let seen: Vec<Seen> = (0..count + beside.len()).map(|_| Seen::default()).collect();
    if spec.warm_up.is_zero() {
        // Before any client does anything.
        meter.begin()?;
    }
    let begin = Instant::now();
    let warm = Some(begin + spec.warm_up).filter(|_| !spec.warm_up.is_zero());
    let bounds = |client: usize| Bounds {
        ops: spec.ops.map(|ops| share(ops, count, client)),
        deadline: spec.duration.map(|duration| begin + spec.warm_up + duration),
        rate: spec.rate.map(|rate| rate / count as f64),
        warm,
    };
    let held_bounds = Bounds {
        rate: held_rate.map(|rate| rate / beside.len() as f64),
        warm,
        ..Bounds::default()
    };
    std::thread::scope(|scope| {
        let (sender, ends) = channel::<End>();
        for (at, mut client) in foreground.into_iter().chain(beside).enumerate() {
            let is_foreground = at < count;
            let bounds = if is_foreground { bounds(at) } else { held_bounds };
            let (sender, stop, seen) = (sender.clone(), &stop, &seen[at]);
            scope.spawn(move || {
                let mut pace = Pace::new(bounds, stop, seen);
                let outcome = catch_unwind(AssertUnwindSafe(|| client.run(&mut pace)));
                let total = match outcome {
                    Ok(Ok(())) => Ok(pace.total),
                    Ok(Err(error)) => Err(error),
                    Err(_) => Err("a client thread panicked".into()),
                };
                let _ = sender.send(End { foreground: is_foreground, total });
            });
        }
        drop(sender);
        let outcome = warm
            .map_or(Ok(()), |warm| {
                // A client that fails meanwhile is heard of when that time is over.
                std::thread::sleep(warm.saturating_duration_since(Instant::now()));
                meter.begin()
            })
            .and_then(|()| watch(&ends, count, &seen, meter, tell));
        // The others stop too, whatever happened; the scope waits for them.
        stop.store(true, Ordering::Relaxed);
        let mut done = outcome?;
        meter.end();
        for end in ends {
            let total = end.total?;
            done.background.get_or_insert_with(Total::default).add(&total);
        }
        Ok(done)
    })
}

/// Looks at everything once a second until the foreground's clients are done or one client failed.
fn watch<S: Store>(
    ends: &Receiver<End>,
    clients: usize,
    seen: &[Seen],
    meter: &mut Meter<'_, S>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Done> {
    let mut done = Done::default();
    let mut running = clients;
    let (seen, beside) = seen.split_at(clients);
    let mut next = Instant::now() + TICK;
    while running > 0 {
        match ends.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(end) if end.foreground => {
                running -= 1;
                done.foreground.add(&end.total?);
            }
            Ok(end) => {
                end.total?;
                return Err("the clients held at a rate ended before the others".into());
            }
            Err(RecvTimeoutError::Timeout) => {
                next += TICK;
                tell(&meter.tick(seen, beside)?);
            }
            Err(RecvTimeoutError::Disconnected) => return Err("a client thread is missing".into()),
        }
    }
    Ok(done)
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
