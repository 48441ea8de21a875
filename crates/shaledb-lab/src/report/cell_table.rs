//! The matrix of conditions as tables, for the terminal and for the page.

use super::cells::{Line, Measured, Ratios, lines, summary};
use super::table::plain_table;
use crate::run::row::Row;
use crate::units::{bytes, count, micros, three_digits};
use serde_json::{Value, json};
use std::fmt::Write;

/// A value that was not measured.
const NONE: &str = "-";

fn shown(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), text)
}

fn ratio(value: Option<f64>) -> String {
    shown(value, |ratio| format!("{ratio:.3}"))
}

/// Engines beside Shale that are in any cell.
fn others(lines: &[Line]) -> Vec<&str> {
    let mut others: Vec<&str> = Vec::new();
    for other in lines.iter().flat_map(Line::others) {
        if !others.contains(&other) {
            others.push(other);
        }
    }
    others
}

/// The head of the table of cells.
fn head(others: &[&str]) -> Vec<String> {
    let own = [
        "cell",
        "best fixed",
        "rate/s",
        "auto",
        "/best",
        "least w-amp of",
        "w-amp",
        "auto",
        "/least",
        "size /zstd:3",
        "verdict",
    ];
    let mut head: Vec<String> = own.map(str::to_owned).to_vec();
    for other in others {
        head.extend([format!("{other}, best"), "rate/s".to_owned(), "w-amp".to_owned()]);
    }
    head
}

/// A line of it.
fn cells(line: &Line, others: &[&str]) -> Vec<String> {
    let name = |one: Option<&Measured>| one.map_or(NONE, |one| one.choice.as_str()).to_owned();
    let rate = |one: Option<&Measured>| shown(one.map(|one| one.rate), count);
    let amp = |one: Option<&Measured>| shown(one.and_then(|one| one.write_amp), three_digits);
    let (best, least) = (line.best("shale"), line.least_writing("shale"));
    let (auto, ratios) = (line.auto(), line.ratios());
    let mut cells = vec![
        line.cell.to_string(),
        name(best),
        rate(best),
        rate(auto),
        ratio(ratios.rate),
        name(least),
        amp(least),
        amp(auto),
        ratio(ratios.write_amp),
        ratio(ratios.size),
        ratios.verdict(),
    ];
    for other in others {
        let best = line.best(other);
        cells.extend([name(best), rate(best), amp(best)]);
    }
    cells
}

/// The head of the table of all choices.
const DETAILS: [&str; 8] =
    ["cell", "choice", "rate/s", "CPU us/op", "w-amp", "p99 read", "p99 write", "size"];

/// Its lines.
fn details(lines: &[Line]) -> Vec<Vec<String>> {
    let one = |line: &Line, one: &Measured| {
        vec![
            line.cell.to_string(),
            format!("{} {}", one.engine, one.choice),
            count(one.rate),
            three_digits(one.cpu_us),
            shown(one.write_amp, three_digits),
            shown(one.read_p99_us, micros),
            shown(one.write_p99_us, micros),
            bytes(one.size as u64),
        ]
    };
    lines.iter().flat_map(|line| line.all.iter().map(move |all| one(line, all))).collect()
}

/// The table of cells and what it comes to; `None` if the run has no matrix of conditions.
pub fn text(rows: &[Row]) -> Option<String> {
    let lines = lines(rows);
    if lines.is_empty() {
        return None;
    }
    let others = others(&lines);
    let head = head(&others);
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = plain_table(&head);
    for line in &lines {
        table.add_row(cells(line, &others));
    }
    let mut text = table.trim_fmt();
    let _ = write!(text, "\n\n{}\n", summary(&lines));
    Some(text)
}

/// The same for the page, with every choice and what a chart needs.
pub(super) fn value(rows: &[Row]) -> Value {
    let lines = lines(rows);
    if lines.is_empty() {
        return Value::Null;
    }
    let others = others(&lines);
    let bars = |line: &Line| {
        let Ratios { rate, write_amp, size } = line.ratios();
        let held = |name: &str| {
            line.ratios().criteria().iter().any(|(known, _, held)| *known == name && *held)
        };
        json!({ "cell": line.cell.to_string(), "bars": [
            { "name": "rate", "ratio": rate, "held": held("rate") },
            { "name": "w-amp", "ratio": write_amp, "held": held("w-amp") },
            { "name": "size", "ratio": size, "held": held("size") },
        ] })
    };
    json!({
        "summary": summary(&lines),
        "head": head(&others),
        "rows": lines.iter().map(|line| cells(line, &others)).collect::<Vec<_>>(),
        "bars": lines.iter().map(bars).collect::<Vec<_>>(),
        "detailsHead": DETAILS,
        "details": details(&lines),
    })
}
