//! Tables and sentences for a terminal.

use super::around::around;
use super::cell_table;
use super::columns::{Column, columns, latency_columns, letter};
use super::explain::explain;
use super::figure::{Figure, Percentile, short};
use super::fold::{Fold, Remarks, Step, label};
use super::read::Run;
use super::table::{plain_table, right_but_last};
use crate::run::row::Row;
use crate::setup::Setup;
use crate::stores::engine::Level;
use crate::units::{bytes, count, setting, three_digits};
use comfy_table::CellAlignment;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

/// A value that was not measured.
const NONE: &str = "-";

/// The width of tables and texts.
const WIDTH: usize = 120;

/// The space between columns.
const GAP: usize = 3;

/// Everything about one run: a table for each step, ratios against `base`, sentences, notes.
pub fn run(run: &Run, steps: &[Step<'_>], base: &str) -> String {
    let mut text = head(run, steps);
    if let Some(cells) = cell_table::text(&run.rows) {
        let _ = write!(text, "\n{cells}");
    }
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
    let first = format!("{}: {} steps, {} rows; {repeats}", run.name, steps.len(), run.rows.len());
    let mut text = format!("{}\n", wrapped(&first));
    if let Some(machine) = run.plan.as_ref().and_then(|plan| plan["machine"].as_str()) {
        let _ = writeln!(text, "machine: {machine}");
    }
    let mut engines: Vec<String> = Vec::new();
    for row in &run.rows {
        let name = format!("{} {}", row.engine, row.version);
        if !engines.contains(&name) {
            engines.push(name);
        }
    }
    let _ = writeln!(text, "engines: {}", engines.join(", "));
    if let Some(codecs) = codecs(run) {
        let _ = writeln!(text, "{}", wrapped(&format!("codecs: {codecs}")));
    }
    if let Some(memory) = memory(run) {
        let _ = writeln!(text, "{}", wrapped(&format!("memory: {memory}")));
    }
    text
}

/// Which codecs the engines had; by default they are not the same.
fn codecs(run: &Run) -> Option<String> {
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    for row in &run.rows {
        let Ok(setup) = Setup::deserialize(&row.parameters["setup"]) else { continue };
        let codecs = match setup.codecs_are_ignored(&row.engine) {
            true => "no choice".to_owned(),
            false => setup.codecs.to_string(),
        };
        match all.iter_mut().find(|(known, _)| *known == codecs) {
            Some((_, engines)) if engines.contains(&row.engine.as_str()) => {}
            Some((_, engines)) => engines.push(&row.engine),
            None => all.push((codecs, vec![&row.engine])),
        }
    }
    let one =
        |(codecs, engines): &(String, Vec<&str>)| format!("{} had {codecs}", engines.join(" and "));
    let text = all.iter().map(one).collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then_some(text)
}

/// What an engine could use, and how much more or less the data are.
fn memory(run: &Run) -> Option<String> {
    let given = |row: &Row| row.parameters["setup"]["memory"].as_u64();
    let most = run.rows.iter().filter_map(given).max()?;
    let mut text = setting(most);
    if run.rows.iter().filter_map(given).any(|memory| memory != most) {
        text.push_str(" at most");
    }
    text.push_str(" for each engine's cache and memtables");
    match run.rows.iter().filter_map(|row| row.memory_bound).max() {
        Some(bound) => {
            let _ = write!(text, ", {} with the client and the page cache", setting(bound));
        }
        None => text.push_str(", and as much page cache as there is"),
    }
    let size = run.rows.iter().map(|row| row.size_bytes).max().filter(|&size| size > 0)?;
    let times = three_digits(size as f64 / most.max(1) as f64);
    let _ = write!(text, "; the largest store had {}, {times} times that memory", bytes(size));
    Some(text)
}

/// One step: what it cost, its response times, what explains the differences.
pub fn step_text(step: &Step<'_>, base: &str) -> String {
    let mut text =
        format!("{}{}\n{}", step.title(), extent(step), figures(step, &columns(step), Tail::All));
    let unit = letter(&step.folds[0].first().unit);
    if step.folds.iter().any(|fold| fold.first().writer.is_some()) {
        let _ = write!(
            text,
            "\nMcpu/{unit}, rKB/{unit} and wKB/{unit} have what the writer and its compactions \
             took in them; CPU/s is of all together"
        );
    }
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
    for table in [jobs(step), around(step)].into_iter().flatten() {
        let _ = write!(text, "\n\n{table}");
    }
    let sentences = explain(step, base);
    if !sentences.is_empty() {
        text.push('\n');
    }
    for sentence in sentences {
        let _ = write!(text, "\n{}", wrapped(&format!("- {sentence}")));
    }
    text
}

/// How long flushes and compactions took, where an engine counts them by level.
fn jobs(step: &Step<'_>) -> Option<String> {
    let numbers: BTreeSet<u32> =
        step.folds.iter().flat_map(busy_levels).map(|level| level.level).collect();
    if numbers.is_empty() {
        return None;
    }
    let titles: Vec<String> = numbers.iter().map(|number| format!("L{number}")).collect();
    let header: Vec<&str> = titles.iter().map(String::as_str).chain(["engine"]).collect();
    let mut table = plain_table(&header);
    right_but_last(&mut table, header.len());
    for fold in &step.folds {
        let levels = busy_levels(fold);
        if levels.is_empty() {
            continue;
        }
        let cell = |number: &u32| match levels.iter().find(|level| level.level == *number) {
            Some(level) => {
                let each = level.seconds / level.jobs as f64;
                format!("{} x{}", short(each), count(level.jobs as f64))
            }
            None => NONE.to_owned(),
        };
        let mut cells: Vec<String> = numbers.iter().map(cell).collect();
        cells.push(step.name_of(fold));
        table.add_row(cells);
    }
    Some(format!(
        "wall seconds of a flush (L0) or compaction, by output level, and how many there were\n{}",
        table.trim_fmt()
    ))
}

/// The levels that jobs wrote to, in the repeat in the middle.
fn busy_levels<'a>(fold: &'a Fold<'_>) -> Vec<&'a Level> {
    fold.typical().counted.levels.iter().filter(|level| level.jobs > 0).collect()
}

/// How many clients, and how long it took.
fn extent(step: &Step<'_>) -> String {
    let rows = || step.folds.iter().flat_map(|fold| &fold.rows);
    let seconds = rows().map(|row| row.seconds);
    let (least, most) = (seconds.clone().fold(f64::MAX, f64::min), seconds.fold(0.0, f64::max));
    let time = match (three_digits(least), three_digits(most)) {
        (least, most) if least == most => format!("{most} s"),
        (least, most) => format!("{least} to {most} s"),
    };
    let clients = step.folds[0].first().clients;
    if rows().any(|row| row.clients != clients) {
        return format!(" ({time})");
    }
    let s = if clients == 1 { "" } else { "s" };
    format!(" ({clients} client{s}, {time})")
}

/// What follows the figures in a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// Clients if they differ, repeats if there are some, the engine.
    All,
    /// The engine, with its clients if they differ.
    Label,
}

/// The figures of a step, a line for each engine; as several tables if one were too wide.
fn figures(step: &Step<'_>, columns: &[Column], tail: Tail) -> String {
    let clients = step.folds.iter().any(|f| f.first().clients != step.folds[0].first().clients);
    let repeated = step.folds.iter().any(|fold| fold.rows.len() > 1) && tail == Tail::All;
    let cells: Vec<Vec<(String, String)>> = columns
        .iter()
        .map(|column| step.folds.iter().map(|fold| cell(fold, &column.figure)).collect())
        .collect();
    let widths = columns.iter().zip(&cells).map(|(column, cells)| {
        let texts = cells.iter().flat_map(|(text, below)| [text, below]).chain([&column.title]);
        GAP + texts.map(|text| text.chars().count()).max().unwrap_or(0)
    });
    let label = step.folds.iter().map(|fold| fold.label().len() + 2 * GAP).max().unwrap_or(0);
    let widths: Vec<usize> = widths.collect();
    let published = columns.iter().take_while(|column| !column.added).count();
    let mut tables = Vec::new();
    for part in parts(&widths, published, WIDTH.saturating_sub(label).max(40)) {
        let mut header: Vec<&str> =
            columns[part.clone()].iter().map(|column| column.title.as_str()).collect();
        header.extend(clients.then_some("clients"));
        let count = repeated && part.start == 0;
        header.extend(count.then_some("n"));
        header.push("engine");
        let mut table = plain_table(&header);
        right_but_last(&mut table, header.len());
        for (at, fold) in step.folds.iter().enumerate() {
            let own = || cells[part.clone()].iter().map(|column| &column[at]);
            let mut line: Vec<String> = own().map(|(text, _)| text.clone()).collect();
            line.extend(clients.then(|| fold.first().clients.to_string()));
            line.extend(count.then(|| fold.rows.len().to_string()));
            line.push(fold.label());
            table.add_row(line);
            if own().any(|(_, below)| !below.is_empty()) {
                table.add_row(own().map(|(_, below)| below.clone()));
            }
        }
        tables.push(table.trim_fmt());
    }
    tables.join("\n\n")
}

/// The text of a figure, and below it how far the repeats lie apart if they do.
fn cell(fold: &Fold<'_>, figure: &Figure) -> (String, String) {
    match fold.spread(figure) {
        None => (NONE.to_owned(), String::new()),
        Some(spread) => {
            let apart = spread.high > spread.low;
            let below =
                if apart { format!("\u{b1}{:.0}%", spread.percent()) } else { String::new() };
            (figure.show(spread.median), below)
        }
    }
}

/// Columns in parts that are not wider than `room`, each with at least one; if there have to be
/// several, the first of them end with column number `published`, or if all are alike they are
/// about as wide.
fn parts(widths: &[usize], published: usize, room: usize) -> Vec<Range<usize>> {
    let found = packed(widths, published, room);
    let narrower = (1..room).map(|room| packed(widths, published, room));
    let same = |other: &Vec<Range<usize>>| other.len() == found.len();
    match published == widths.len() && found.len() > 1 {
        true => narrower.into_iter().find(same).unwrap_or(found),
        false => found,
    }
}

fn packed(widths: &[usize], published: usize, room: usize) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let one = widths.iter().sum::<usize>() <= room;
    let mut used = 0;
    for (at, width) in widths.iter().enumerate() {
        used += width;
        match parts.last_mut() {
            Some(part) if one || used <= room && at != published => part.end = at + 1,
            _ => {
                used = *width;
                parts.push(at..at + 1);
            }
        }
    }
    parts
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
    let mut bases = BTreeSet::new();
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
            bases.insert(against.label());
        }
    }
    let base = match bases.len() {
        0 => return String::new(),
        1 => bases.into_iter().next().unwrap_or_default(),
        _ => format!("{base} (with the same setting, or its first)"),
    };
    format!(
        "Ratios: {base} = 1. Of the rate more is better, of everything else less; p99 is that of \
         the most\nfrequent operation\n{}",
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
    let mut notes = Remarks::default();
    for step in steps {
        for fold in &step.folds {
            let source = || format!("{} on {}", step.title(), fold.label());
            // Sentences tell of the writer.
            let writer = |note: &&String| note.starts_with("the writer did not hold its rate");
            for note in fold.rows.iter().flat_map(|row| &row.notes).filter(|note| !writer(note)) {
                notes.add(note.clone(), source());
            }
        }
    }
    let mut text = String::new();
    for warning in &run.warnings {
        let _ = writeln!(text, "{}", wrapped(&format!("warning: {warning}")));
    }
    for note in notes.texts(steps.iter().map(|step| step.folds.len()).sum()) {
        let _ = writeln!(text, "{}", wrapped(&format!("note: {note}")));
    }
    text
}

/// Text in lines that are not wider than the tables; later lines are set in.
pub fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let width = word.chars().count();
        if used > 0 && used + 1 + width > WIDTH {
            out.push_str("\n  ");
            used = 2;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += width;
    }
    out
}

/// The settings of every engine in full, each only once.
pub fn configuration(run: &Run) -> String {
    let mut seen: Vec<(String, &[(String, String)])> = Vec::new();
    for row in &run.rows {
        let one = (format!("{} {}", label(row), row.version), row.configuration.as_slice());
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    let mut text = String::new();
    for (name, settings) in seen {
        let _ = writeln!(text, "\nconfiguration of {name}");
        for (setting, value) in settings {
            let _ = writeln!(text, "  {setting} = {value}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_in_parts() {
        assert_eq!(parts(&[5, 5], 1, 10).len(), 1);
        assert_eq!(parts(&[5, 5, 5, 5], 4, 10), [0..2, 2..4]);
        assert_eq!(parts(&[5, 5, 5, 5], 4, 15), [0..2, 2..4]);
        assert_eq!(parts(&[5, 5, 5, 5], 3, 10), [0..2, 2..3, 3..4]);
        assert_eq!(parts(&[50, 5, 5], 3, 10), [0..1, 1..3]);
        assert!(parts(&[], 0, 10).is_empty());
    }

    #[test]
    fn codecs_that_differ_are_said() {
        let row = |engine: &str| Row {
            engine: engine.to_owned(),
            parameters: serde_json::json!({ "setup": Setup::default().of_engine(engine) }),
            ..Row::default()
        };
        let rows = ["shale", "rocksdb", "fjall", "lmdb", "rocksdb"].map(row).to_vec();
        assert_eq!(
            codecs(&Run { rows, ..Run::default() }).unwrap(),
            "shale had auto; rocksdb and fjall had none,lz4,zstd:3; lmdb had no choice"
        );
        assert_eq!(codecs(&Run { rows: vec![Row::default()], ..Run::default() }), None);
    }

    #[test]
    fn long_texts_are_wrapped() {
        let words = "word ".repeat(60);
        let text = wrapped(words.trim());
        assert!(text.lines().all(|line| line.len() <= WIDTH) && text.lines().count() == 3);
        assert_eq!(text.split_whitespace().count(), 60);
        let long = "x".repeat(300);
        assert_eq!(wrapped(&format!("a {long}")), format!("a\n  {long}"));
    }
}
