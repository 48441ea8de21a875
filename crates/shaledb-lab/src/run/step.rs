//! One step of a workload on one store: its clients on threads, a look at everything once a second,
//! and the [`Row`] that comes of it.
//!
//! The clients of the step run until their operations or their time are used up. Writers with a
//! fixed rate may run beside them. They end when the clients do, and the row says whether they
//! reached their rate.

use super::meter::Meter;
use super::work::{Done, Named, Progress, Work, share};
use crate::measure::{Latencies, RateSummary};
use crate::run::pace::{Bounds, Client, Did, Pace, Seen, Total};
use crate::run::row::{Latency, Row, Writer};
use crate::stores::engine::Result;
use crate::stores::store::Store;
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often everything is looked at.
const TICK: Duration = Duration::from_secs(1);

/// A writer that reaches this share of its rate counts as holding it.
const RATE_SHARE: f64 = 0.95;

/// A client that waits until no flush and no compaction is due. This is one operation.
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

/// Runs a step. `costs` is of [`Work::client_costs`], `tell` is called once a second.
///
/// # Errors
///
/// A client fails or panics, no operation is counted, or the store does not say what it counts.
pub fn run_step<S: Store>(
    store: &S,
    named: &Named<'_>,
    mut work: Work<'_>,
    costs: (f64, f64),
    tell: &mut dyn FnMut(&Progress),
) -> Result<Row> {
    let (clients, writers) = (take(&mut work.clients), take(&mut work.writers));
    let count = clients.len();
    let mut meter = Meter::new(store, named, &work);
    let done = threads(&work, clients, writers, &mut meter, tell)?;
    if done.foreground.ops == 0 {
        return Err(nothing_counted(&work).into());
    }
    let client_us = done.foreground.ops as f64 * costs.0
        + done.background.as_ref().map_or(0.0, |total| total.ops as f64 * costs.1);
    let mut row = meter.finish(&done, client_us / 1e6)?;
    row.clients = count as u64;
    if let Some(total) = &done.background {
        let writer = writer(total, work.writer_rate, &row);
        if !writer.held {
            row.notes.push(format!(
                "the writer did not hold its rate: {:.0}/s of {:.0}/s",
                writer.rate, writer.wanted
            ));
        }
        row.writer = Some(writer);
    }
    Ok(row)
}

/// Why a step has no figures of an operation.
fn nothing_counted(work: &Work<'_>) -> String {
    match work.warm_up.as_secs_f64() {
        0.0 => format!("no {} was done: the store has nothing for the step to do", work.unit),
        warm_up => format!(
            "all was done within the {warm_up} s of --warm-up, so nothing is counted. Say a \
             shorter --warm-up, or make the step longer"
        ),
    }
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
        held: rate >= RATE_SHARE * wanted,
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
    work: &Work<'_>,
    clients: Vec<Box<dyn Client + 'a>>,
    writers: Vec<Box<dyn Client + 'a>>,
    meter: &mut Meter<'_, S>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Done> {
    let stop = AtomicBool::new(false);
    let count = clients.len();
    let seen: Vec<Seen> = (0..count + writers.len()).map(|_| Seen::default()).collect();
    if work.warm_up.is_zero() {
        // Before any client does anything.
        meter.begin()?;
    }
    let begin = Instant::now();
    let warm = Some(begin + work.warm_up).filter(|_| !work.warm_up.is_zero());
    let bounds = |client: usize| Bounds {
        ops: work.ops.map(|ops| share(ops, count, client)),
        deadline: work.duration.map(|duration| begin + work.warm_up + duration),
        rate: work.rate.map(|rate| rate / count as f64),
        warm,
    };
    let writer_bounds =
        Bounds { rate: Some(work.writer_rate / writers.len() as f64), warm, ..Bounds::default() };
    std::thread::scope(|scope| {
        let (sender, ends) = channel::<End>();
        for (at, mut client) in clients.into_iter().chain(writers).enumerate() {
            let is_foreground = at < count;
            let bounds = if is_foreground { bounds(at) } else { writer_bounds };
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

/// When to look again after the look that was due at `due`. One that came late is not made up for:
/// a look just after it would see an interval that is too short to say anything.
fn after(due: Instant, now: Instant) -> Instant {
    (due + TICK).max(now + TICK / 2)
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
                return Err("the writers ended before the clients beside them".into());
            }
            Err(RecvTimeoutError::Timeout) => {
                tell(&meter.tick(seen, beside)?);
                next = after(next, Instant::now());
            }
            Err(RecvTimeoutError::Disconnected) => return Err("a client thread is missing".into()),
        }
    }
    Ok(done)
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
