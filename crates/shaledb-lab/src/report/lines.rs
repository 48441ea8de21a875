//! A report as JSON lines, for programs.

use super::columns::{columns, latency_columns};
use super::compare::{Change, Comparison};
use super::figure::Figure;
use super::fold::{Fold, Spread, Step};
use super::read::Run;
use super::terminal::ratio;
use crate::run::row::SCHEMA;
use crate::stores::engine::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// A step on an engine with its repeats folded, as one JSON line.
#[derive(Clone, Debug, Serialize)]
pub struct Folded<'a> {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `folded`.
    pub kind: &'static str,
    /// The run's name.
    pub run: &'a str,
    /// The workload.
    pub workload: &'a str,
    /// The step.
    pub step: &'a str,
    /// Client threads.
    pub clients: u64,
    /// The engine.
    pub engine: &'a str,
    /// Its setting.
    pub setting: &'a str,
    /// The figures of the step's table.
    pub figures: BTreeMap<String, Spread>,
    /// The same, the median over that of the base; none for the base itself.
    pub ratios: BTreeMap<String, f64>,
}

/// A change, as one JSON line.
#[derive(Clone, Debug, Serialize)]
struct Changed<'a> {
    schema: u32,
    kind: &'static str,
    first_run: &'a str,
    later_run: &'a str,
    #[serde(flatten)]
    change: &'a Change,
}

/// Writes the lines of all steps, then those of all changes; `base_of` says which engine others are
/// set against.
pub(super) fn lines(
    base_of: impl Fn(&Run) -> Result<String>,
    runs: &[Run],
    steps: &[Vec<Step<'_>>],
    comparisons: &[Comparison],
    out: &mut dyn Write,
) -> Result<()> {
    for (run, steps) in runs.iter().zip(steps) {
        let base = base_of(run)?;
        for step in steps {
            for line in folded(run, step, &base) {
                writeln!(out, "{}", serde_json::to_string(&line)?)?;
            }
        }
    }
    for (run, comparison) in runs[1..].iter().zip(comparisons) {
        for change in &comparison.changes {
            let (first_run, later_run) = (runs[0].name.as_str(), run.name.as_str());
            let line = Changed { schema: SCHEMA, kind: "change", first_run, later_run, change };
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
        }
    }
    Ok(())
}

/// The steps of a run as JSON lines have them.
fn folded<'a>(run: &'a Run, step: &'a Step<'a>, base: &str) -> Vec<Folded<'a>> {
    let mut figures: Vec<Figure> = columns(step).into_iter().map(|column| column.figure).collect();
    figures.extend(latency_columns(step).into_iter().map(|column| column.figure));
    let one = |fold: &'a Fold<'a>| {
        let first = fold.first();
        let against = step.base(base, fold).filter(|base| base.label() != fold.label());
        let spreads = figures.iter().filter_map(|f| Some((f.name(), fold.spread(f)?)));
        let ratios = against.map_or_else(BTreeMap::new, |against| {
            let one = |f: &Figure| Some((f.name(), ratio(fold, against, f)?));
            figures.iter().filter_map(one).collect()
        });
        Folded {
            schema: SCHEMA,
            kind: "folded",
            run: &run.name,
            workload: step.workload,
            step: step.step,
            clients: first.clients,
            engine: &first.engine,
            setting: &first.setting,
            figures: spreads.collect(),
            ratios,
        }
    };
    step.folds.iter().map(one).collect()
}
