//! What a run showed: tables and sentences for a terminal, JSON lines for programs, one page of
//! HTML, and the comparison of runs. docs/results.md documents the fields and the tests.
//!
//! - [`read`](mod@read): rows from files. [`figure`], [`fold`](mod@fold): what a row says, and
//!   repeats.
//! - [`columns`](mod@columns), [`explain`](mod@explain), [`terminal`]: one run as text.
//! - [`stats`], [`compare`](mod@compare), [`changes`]: runs against each other.
//! - [`mod@page`]: the page of HTML.

pub mod read;
pub mod figure;
pub mod fold;
pub mod columns;
pub mod explain;
mod table;
pub mod terminal;
pub mod stats;
pub mod compare;
pub mod changes;
pub mod page;

use crate::run::row::SCHEMA;
use crate::stores::engine::Result;
use clap::{Args, ValueHint};
use compare::{Comparison, Limits, Verdict, compare};
use figure::Figure;
use fold::{Spread, Step, choose_base, fold};
use read::{Run, read};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
pub use table::plain_table;

/// What to report, and how.
#[derive(Args, Clone, Debug)]
pub struct ReportOptions {
    /// Files of rows, or folders of runs; with two or more, each later one is compared with the
    /// first
    #[arg(required = true, value_name = "FILE|FOLDER", value_hint = ValueHint::AnyPath)]
    pub runs: Vec<PathBuf>,

    /// The engine (or engine.setting) that others are set against [default: shale if it is there,
    /// else the first]
    #[arg(long, value_name = "ENGINE")]
    pub base: Option<String>,

    /// Write one page of HTML that needs nothing else, with charts
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Exit with code 10 if a later run regressed
    #[arg(long)]
    pub fail_on_regression: bool,

    /// Of the changes that are called, the share that may be chance
    #[arg(long, default_value_t = 0.05, value_parser = share, value_name = "SHARE")]
    pub alpha: f64,

    /// The least change that counts, as a share
    #[arg(long, default_value_t = 0.02, value_parser = share, value_name = "SHARE")]
    pub least_change: f64,

    /// Show all figures that were compared, not only those that changed
    #[arg(long)]
    pub all: bool,

    /// Of one run, also print the whole configuration of every engine
    #[arg(long)]
    pub configuration: bool,
}

fn share(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err(format!("`{text}` is not a share between 0 and 1, such as 0.05")),
    }
}

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
    change: &'a compare::Change,
}

/// Reads the runs and writes their report to `out`; gives the number of regressions.
///
/// # Errors
///
/// A run cannot be read, the base is not in it, or the output cannot be written.
pub fn run(options: &ReportOptions, json: bool, out: &mut dyn Write) -> Result<usize> {
    let runs = options.runs.iter().map(|path| read(path)).collect::<Result<Vec<Run>>>()?;
    let steps: Vec<Vec<Step<'_>>> = runs.iter().map(|run| fold(&run.rows)).collect();
    let limits = Limits { alpha: options.alpha, least: options.least_change };
    let comparisons: Vec<Comparison> =
        steps[1..].iter().map(|after| compare(&steps[0], after, limits)).collect();
    let text = text(options, &runs, &steps, &comparisons, limits)?;
    if json {
        lines(options, &runs, &steps, &comparisons, out)?;
    } else {
        out.write_all(text.as_bytes())?;
    }
    if let Some(path) = &options.html {
        let base = base(&runs[runs.len() - 1], options.base.as_deref())?;
        let html = page::page(&runs, &steps, &comparisons, &base, &text)?;
        write(path, &html)?;
        if !json {
            writeln!(out, "\nwrote {}", path.display())?;
        }
    }
    Ok(comparisons.iter().map(|comparison| comparison.count(Verdict::Regressed)).sum())
}

/// The file of a run's folder with its page.
pub const PAGE: &str = "report.html";

/// The report of a run that has just ended as text, against the base that it was planned with. Puts
/// the page beside the rows; `first` is what it shows before that text.
///
/// # Errors
///
/// The run cannot be read, or the page cannot be written.
pub fn finished(folder: &Path, first: &str) -> Result<(String, PathBuf)> {
    let run = read(folder)?;
    let base = base(&run, None)?;
    let steps = fold(&run.rows);
    let text = terminal::run(&run, &steps, &base);
    let shown = format!("{first}{text}");
    let page = page::page(std::slice::from_ref(&run), &[steps], &[], &base, &shown)?;
    let file = folder.join(PAGE);
    write(&file, &page)?;
    Ok((text, file))
}

/// The engine that others are set against: the one asked for, else that of the plan.
fn base(run: &Run, asked: Option<&str>) -> Result<String> {
    let planned = run.plan.as_ref().and_then(|plan| plan["base"].as_str());
    match (asked, planned) {
        (None, Some(planned)) => {
            // A plan's engine may have failed.
            let base = choose_base(&run.rows, Some(planned));
            Ok(base.or_else(|_| choose_base(&run.rows, None))?)
        }
        _ => Ok(choose_base(&run.rows, asked)?),
    }
}

/// Beside its place first, so that nobody finds half a page.
fn write(path: &Path, text: &str) -> Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    fs::write(&beside, text)
        .and_then(|()| fs::rename(&beside, path))
        .map_err(|error| format!("could not write {}: {error}", path.display()).into())
}

fn text(
    options: &ReportOptions,
    runs: &[Run],
    steps: &[Vec<Step<'_>>],
    comparisons: &[Comparison],
    limits: Limits,
) -> Result<String> {
    if let ([one], [steps]) = (runs, steps) {
        let base = base(one, options.base.as_deref())?;
        let mut text = terminal::run(one, steps, &base);
        if options.configuration {
            text.push_str(&terminal::configuration(one));
        }
        return Ok(text);
    }
    let mut text = String::new();
    for (run, comparison) in runs[1..].iter().zip(comparisons) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&changes::text(&runs[0], run, comparison, limits, options.all));
    }
    for run in runs {
        for warning in &run.warnings {
            text.push_str(&format!("warning: {warning}\n"));
        }
    }
    Ok(text)
}

fn lines(
    options: &ReportOptions,
    runs: &[Run],
    steps: &[Vec<Step<'_>>],
    comparisons: &[Comparison],
    out: &mut dyn Write,
) -> Result<()> {
    for (run, steps) in runs.iter().zip(steps) {
        let base = base(run, options.base.as_deref())?;
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
    let mut figures: Vec<Figure> =
        columns::columns(step).into_iter().map(|column| column.figure).collect();
    figures.extend(columns::latency_columns(step).into_iter().map(|column| column.figure));
    let one = |fold: &'a fold::Fold<'a>| {
        let first = fold.first();
        let against = step.base(base, fold).filter(|base| base.label() != fold.label());
        let spreads = figures.iter().filter_map(|f| Some((f.name(), fold.spread(f)?)));
        let ratios = against.map_or_else(BTreeMap::new, |against| {
            let one = |f: &Figure| Some((f.name(), terminal::ratio(fold, against, f)?));
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
