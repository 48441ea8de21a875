//! The benchmarks, in the manner of db_bench: [`run`] takes the flags and an engine and gives rows.
//!
//! The working folder (`--db`) holds one folder per engine and a marker file. A fill removes the
//! engine's folder first, and so it does only where the marker is: a folder that is not ours is
//! refused, never emptied.

mod folder;
mod step;
mod work;

use crate::engine::{Engine, Result};
use crate::measure::Usage;
use crate::options::BenchOptions;
use crate::report::{Opened, Row, Screen};
use folder::Folder;
use std::time::Instant;

/// The one tree of these benchmarks.
const TREE: &str = "bench";

/// Runs the benchmarks of `options` on one engine, prints them and gives their rows.
pub fn run<E: Engine>(options: &BenchOptions) -> Result<Vec<Row>> {
    let mut folder = Folder::prepare(options, E::NAME)?;
    let mut screen = Screen::new(options, E::NAME, &E::version(), folder.path())?;
    let client_costs: Vec<f64> = options
        .benchmarks
        .iter()
        .map(|&benchmark| step::client_cost(options, benchmark))
        .collect::<Result<_>>()?;

    let mut rows = Vec::new();
    let mut engine: Option<E> = None;
    for (&benchmark, client_cost) in options.benchmarks.iter().zip(client_costs) {
        if benchmark.is_fill() {
            if let Some(open) = engine.take() {
                open.close()?;
            }
            folder.clear()?;
        }
        let mut opened = None;
        let open = match engine.take() {
            Some(open) => open,
            None => {
                folder.need_data(benchmark)?;
                let (start, before) = (Instant::now(), Usage::now());
                let open = E::open(folder.path(), &options.setup(), &[TREE])?;
                let usage = Usage::now().since(&before);
                opened = Some(Opened {
                    seconds: start.elapsed().as_secs_f64(),
                    cpu_seconds: usage.cpu_seconds(),
                    written_bytes: usage.written_bytes,
                });
                open
            }
        };
        let mut row = step::run(&open, options, benchmark, folder.path(), &screen, opened)?;
        row.cpu.client_us_per_op = client_cost;
        screen.show(&row)?;
        rows.push(row);
        engine = Some(open);
    }
    if let Some(open) = engine {
        open.close()?;
    }
    screen.finish(&rows)?;
    folder.finish(options.keep)?;
    Ok(rows)
}

#[cfg(test)]
#[path = "bench_tests.rs"]
mod tests;
