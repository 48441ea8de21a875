//! Tables and sentences for a terminal.

use super::columns::{Column, columns, latency_columns, unit};
use super::explain::explain;
use super::figure::{Figure, Percentile};
use super::fold::{Fold, Step};
use super::plain_table;
use super::read::Run;
use crate::units::three_digits;
use comfy_table::{CellAlignment, Table};
use std::fmt::Write;

/// A value that was not measured.
const NONE: &str = "-";

/// Everything about one run: a table for each step, ratios against `base`, sentences, notes.
pub fn run(run: &Run, steps: &[Step<'_>], base: &str) -> String {
    let mut text = head(run, steps);
    for step in steps {
        let _ = write!(text, "\n{}\n", step_text(step, base));
    }
    let ratios = ratios(steps, base);
    if !ratios.is_empty() {
        let _ = write!(text, "\n{ratios}\n");
    }
    let notes = notes(run, steps);
    if !notes.is_empty() {
        let _ = write!(text, "\n{notes}");
    }
    text
}

fn head(run: &Run, steps: &[Step<'_>]) -> String {
    let folds = || steps.iter().flat_map(|step| &step.folds);
    let repeats = folds().map(|fold| fold.rows.len());
    let (least, most) = (repeats.clone().min().unwrap_or(0), repeats.max().unwrap_or(0));
    let repeats = match (least, most) {
        (_, 1) => "1 repeat each: nothing is known of how far repeats lie apart".to_owned(),
        _ if least == most => format!(
            "{most} repeats each: medians, and below them (\u{b1}) half of the way from the lowest \
             to the highest in percent"
        ),
        _ => format!(
            "{least} to {most} repeats: medians, and below them (\u{b1}) half of the way from the \
             lowest to the highest in percent"
        ),
    };
    format!("{}: {} steps, {} rows, {repeats}\n", run.name, steps.len(), run.rows.len())
}

/// One step: what it cost, its response times, what explains the differences.
pub fn step_text(step: &Step<'_>, base: &str) -> String {
    let mut text = format!("{}\n{}", step.title(), figures(step, &columns(step), Tail::All));
    let latencies = latency_columns(step);
    if !latencies.is_empty() {
        let what = match latencies.first().map(|column| &column.figure) {
            Some(Figure::Percentile(Percentile::P50, kind)) => {
                format!("response time in ms of {kind}")
            }
            _ => "p99 of the response time in ms, by kind of operation".to_owned(),
        };
        let _ = write!(text, "\n\n{what}\n{}", figures(step, &latencies, Tail::Label));
    }
    for sentence in explain(step, base) {
        let _ = write!(text, "\n- {sentence}");
    }
    text
}

/// What follows the figures in a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// Clients if they differ, repeats if there are some, the engine.
    All,
    /// The engine, with its clients if they differ.
    Label,
}

fn figures(step: &Step<'_>, columns: &[Column], tail: Tail) -> String {
    let clients = step.folds.iter().any(|f| f.first().clients != step.folds[0].first().clients);
    let repeated = step.folds.iter().any(|fold| fold.rows.len() > 1);
    let mut header: Vec<&str> = columns.iter().map(|column| column.title.as_str()).collect();
    if clients {
        header.push("clients");
    }
    if repeated && tail == Tail::All {
        header.push("n");
    }
    header.push("engine");
    let mut table = plain_table(&header);
    right_but_last(&mut table, header.len());
    for fold in &step.folds {
        let spreads: Vec<_> = columns.iter().map(|column| fold.spread(&column.figure)).collect();
        let mut cells: Vec<String> = columns
            .iter()
            .zip(&spreads)
            .map(|(column, spread)| {
                spread.map_or(NONE.to_owned(), |spread| column.figure.show(spread.median))
            })
            .collect();
        let mut below: Vec<String> = spreads
            .iter()
            .map(|spread| spread.map_or(String::new(), |s| within(s.percent())))
            .collect();
        if clients {
            cells.push(fold.first().clients.to_string());
            below.push(String::new());
        }
        if repeated && tail == Tail::All {
            cells.push(fold.rows.len().to_string());
            below.push(String::new());
        }
        cells.push(fold.label());
        table.add_row(cells);
        if fold.rows.len() > 1 {
            table.add_row(below);
        }
    }
    table.trim_fmt()
}

/// `±3%`.
fn within(percent: f64) -> String {
    format!("\u{b1}{percent:.0}%")
}

/// Names stand at the left, also when they are last.
fn right_but_last(table: &mut Table, columns: usize) {
    for (at, column) in table.column_iter_mut().enumerate() {
        let alignment = if at + 1 == columns { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(alignment);
    }
}

/// The figures of [`ratios`].
fn ratio_figures(base: &Fold<'_>) -> Vec<(String, Figure)> {
    let mut figures = vec![("rate".to_owned(), Figure::Rate)];
    if let Some(kind) = base.kinds().first() {
        let kind = (*kind).to_owned();
        figures.push(("p99".to_owned(), Figure::Percentile(Percentile::P99, kind)));
    }
    let rest = [
        ("Mcpu/op", Figure::Cpu),
        ("rKB/op", Figure::ReadKb),
        ("wKB/op", Figure::WrittenKb),
        ("size", Figure::Size),
        ("rss", Figure::Rss),
    ];
    figures.extend(rest.map(|(title, figure)| (title.to_owned(), figure)));
    figures
}

/// All engines against the base; empty if there is only one.
pub fn ratios(steps: &[Step<'_>], base: &str) -> String {
    let header = ["step", "rate", "p99", "Mcpu/op", "rKB/op", "wKB/op", "size", "rss", "engine"];
    let mut table = plain_table(&header);
    right_but_last(&mut table, header.len());
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    let mut any = false;
    for step in steps {
        for fold in &step.folds {
            let Some(against) = step.base(base, fold).filter(|b| b.label() != fold.label()) else {
                continue;
            };
            let figures = ratio_figures(against);
            let mut cells = vec![title(step, fold)];
            for name in &header[1..8] {
                let figure = figures.iter().find(|(title, _)| title == name);
                cells.push(
                    figure
                        .and_then(|(_, figure)| ratio(fold, against, figure))
                        .map_or(NONE.to_owned(), three_digits),
                );
            }
            cells.push(fold.label());
            table.add_row(cells);
            any = true;
        }
    }
    if !any {
        return String::new();
    }
    format!(
        "Ratios: {base} = 1. Of the rate more is better, of everything else less; p99 is that of \
         the most frequent operation\n{}",
        table.trim_fmt()
    )
}

fn title(step: &Step<'_>, fold: &Fold<'_>) -> String {
    let clients = step.folds.iter().any(|f| f.first().clients != fold.first().clients);
    if clients {
        format!("{} ({} clients)", step.title(), fold.first().clients)
    } else {
        step.title()
    }
}

/// The ratio of the medians of a figure; `None` where one is missing or nothing.
pub fn ratio(fold: &Fold<'_>, base: &Fold<'_>, figure: &Figure) -> Option<f64> {
    let (own, other) = (fold.median(figure)?, base.median(figure)?);
    (other > 0.0).then(|| own / other)
}

/// What a reader must know, each note once, with the steps and engines that have it.
pub fn notes(run: &Run, steps: &[Step<'_>]) -> String {
    let mut notes: Vec<(String, Vec<String>)> = Vec::new();
    for step in steps {
        for fold in &step.folds {
            for note in fold.rows.iter().flat_map(|row| &row.notes) {
                let place = format!("{} on {}", step.title(), fold.label());
                match notes.iter_mut().find(|(text, _)| text == note) {
                    Some((_, places)) if places.contains(&place) => {}
                    Some((_, places)) => places.push(place),
                    None => notes.push((note.clone(), vec![place])),
                }
            }
        }
    }
    let mut text = String::new();
    for warning in &run.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    let all: usize = steps.iter().map(|step| step.folds.len()).sum();
    for (note, places) in notes {
        let _ = match &places[..] {
            places if places.len() == all => writeln!(text, "note: {note} (everywhere)"),
            [one] => writeln!(text, "note: {note} ({one})"),
            [first, rest @ ..] => {
                writeln!(text, "note: {note} ({first} and {} more)", rest.len())
            }
            [] => Ok(()),
        };
    }
    text
}

/// What an operation of a step is called.
pub fn operation<'a>(fold: &'a Fold<'_>) -> &'a str {
    unit(fold.first())
}
