//! Writes a report: of runs that are named, or of one that has just ended.

use super::changes;
use super::compare::{Comparison, Limits, Verdict, compare};
use super::fold::{Step, choose_base, fold};
use super::lines::lines;
use super::options::ReportOptions;
use super::page::page;
use super::read::{Run, read};
use super::terminal;
use crate::stores::engine::Result;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

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
        lines(|run| base(run, options.base.as_deref()), &runs, &steps, &comparisons, out)?;
    } else {
        out.write_all(text.as_bytes())?;
    }
    if let Some(path) = &options.html {
        let base = base(&runs[runs.len() - 1], options.base.as_deref())?;
        let html = page(&runs, &steps, &comparisons, &base, &text)?;
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
    let html = page(std::slice::from_ref(&run), &[steps], &[], &base, &shown)?;
    let file = folder.join(PAGE);
    write(&file, &html)?;
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
