//! Which columns a step's table has, and in which order: first those that published results of the
//! same workload have, in their order, then what else was measured.

use super::figure::{Figure, Percentile};
use super::fold::Step;
use crate::run::row::Row;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its head.
    pub title: String,
    /// What it shows.
    pub figure: Figure,
    /// Whether published results of the workload lack it.
    pub added: bool,
}

fn column(title: impl Into<String>, figure: Figure) -> Column {
    Column { title: title.into(), figure, added: false }
}

fn added(columns: Vec<Column>) -> impl Iterator<Item = Column> {
    columns.into_iter().map(|column| Column { added: true, ..column })
}

/// The letter of an operation in the heads: `q` of query in `wKB/q`.
pub(super) fn letter(unit: &str) -> char {
    unit.chars().next().unwrap_or('o')
}

/// What an operation is called in the text.
pub fn unit(row: &Row) -> &str {
    if row.unit.is_empty() { "operation" } else { &row.unit }
}

/// The columns of a step, without those that no row of it has a value for.
pub fn columns(step: &Step<'_>) -> Vec<Column> {
    let Some(fold) = step.folds.first() else { return Vec::new() };
    let first = fold.first();
    let mut columns = match step.workload {
        // One operation that takes as long as it takes.
        _ if is_whole(first) => whole(),
        _ if step.step == "load" => load(),
        "linkbench" => linkbench_query(first),
        "tpcc" => tpcc(first),
        "insert" if first.writer.is_some() => insert_query(first),
        "insert" if step.step.starts_with('q') => read(first),
        "insert" => insert(step.step == "l.x"),
        "kv" if first.writer.is_some() => kv_both(first),
        "kv" if first.unit == "operation" => kv_mixed(),
        "kv" if wrote(first) => kv_write(first),
        _ => read(first),
    };
    let known: Vec<Figure> = columns.iter().map(|column| column.figure.clone()).collect();
    for (title, figure) in rest() {
        if !known.contains(&figure) {
            columns.extend(added(vec![column(title, figure)]));
        }
    }
    let any = |figure: &Figure| step.folds.iter().any(|fold| fold.median(figure).is_some());
    // What is zero everywhere among the added columns says nothing.
    let says = |column: &Column| match &column.figure {
        Figure::Client | Figure::SpaceAmp | Figure::SpaceAmpPeak if is_whole(first) => false,
        Figure::Stall
        | Figure::BlockReads
        | Figure::Client
        | Figure::WriteAmp
        | Figure::SpaceAmp
        | Figure::SpaceAmpPeak => step
            .folds
            .iter()
            .any(|fold| fold.median(&column.figure).is_some_and(|median| median > 0.0)),
        // The peak says more than the end only where it is higher.
        Figure::Peak => step.folds.iter().any(|fold| {
            let of = |figure| fold.median(figure).unwrap_or_default();
            of(&Figure::Peak) > 1.2 * of(&Figure::Rss)
        }),
        Figure::SizePeak => step.folds.iter().any(|fold| {
            let of = |figure| fold.median(figure).unwrap_or_default();
            of(&Figure::SizePeak) > 1.02 * of(&Figure::Size)
        }),
        figure => any(figure),
    };
    columns.retain(says);
    columns
}

/// Whether a step is one operation as a whole, such as to drop everything.
pub fn is_whole(row: &Row) -> bool {
    matches!(row.unit.as_str(), "wait_idle" | "drop" | "check")
}

fn wrote(row: &Row) -> bool {
    row.counted.user_bytes > 0
}

/// What else was measured, after the columns of published results.
fn rest() -> [(&'static str, Figure); 10] {
    [
        ("w-amp", Figure::WriteAmp),
        ("s-amp", Figure::SpaceAmp),
        ("s-peak", Figure::SpaceAmpPeak),
        ("size peak", Figure::SizePeak),
        ("stall%", Figure::Stall),
        ("blocks/op", Figure::BlockReads),
        ("client", Figure::Client),
        ("size/pred", Figure::Extra("size_per_predicted")),
        ("L0 files", Figure::Extra("level0_files_before")),
        ("peak", Figure::Peak),
    ]
}

/// `x/i rKB/i wKB/i Mcpu/i size rss`.
fn costs(letter: char) -> Vec<Column> {
    vec![
        column(format!("r/{letter}"), Figure::Reads),
        column(format!("rKB/{letter}"), Figure::ReadKb),
        column(format!("wKB/{letter}"), Figure::WrittenKb),
        column(format!("Mcpu/{letter}"), Figure::Cpu),
        column("size", Figure::Size),
        column("rss", Figure::Rss),
    ]
}

fn whole() -> Vec<Column> {
    vec![
        column("secs", Figure::Seconds),
        column("CPU secs", Figure::CpuSeconds),
        column("written", Figure::Written),
        column("size", Figure::Size),
        column("rss", Figure::Rss),
    ]
}

fn load() -> Vec<Column> {
    let mut columns = vec![column("ips", Figure::Rate)];
    // A row that is loaded is inserted.
    columns.extend(costs('i'));
    columns
}

fn p99(kind: &str) -> Figure {
    Figure::Percentile(Percentile::P99, kind.to_owned())
}

fn linkbench_query(row: &Row) -> Vec<Column> {
    let mut columns = vec![column("tps", Figure::Rate)];
    columns.extend(costs(letter(&row.unit)));
    let kinds =
        [("un", "updatenode"), ("gn", "getnode"), ("ul", "updatelink"), ("gl", "getlinklist")];
    columns.extend(kinds.map(|(title, kind)| column(title, p99(kind))));
    columns
}

fn tpcc(row: &Row) -> Vec<Column> {
    let mut columns =
        vec![column("tps", Figure::Rate), column("no/min", Figure::Extra("new_orders_per_minute"))];
    columns.extend(costs(letter(&row.unit)));
    columns.extend(added(vec![column("retries", Figure::Extra("retries"))]));
    columns
}

fn rates_reached(prefix: &str, percents: &[u8]) -> Vec<Column> {
    let one = |percent: &u8| column(format!("{prefix}.{percent}"), Figure::RateReached(*percent));
    percents.iter().map(one).collect()
}

fn insert(index: bool) -> Vec<Column> {
    let mut columns = Vec::new();
    if index {
        columns.push(column("secs", Figure::Seconds));
    }
    columns.push(column("ips.av", Figure::Rate));
    if !index {
        // The rows of an index are counted when it is done.
        columns.extend(rates_reached("ips", &[75, 95, 99]));
    }
    columns.extend(costs('i'));
    columns
}

fn insert_query(row: &Row) -> Vec<Column> {
    let mut columns = vec![
        column("ips.av", Figure::WriterRate),
        column("ips.99", Figure::WriterRateReached(99)),
        column("qps.av", Figure::Rate),
    ];
    columns.extend(rates_reached("qps", &[99]));
    columns.extend(costs(letter(&row.unit)));
    // Storage is not told apart between queries and inserts of one step: so both are shown.
    columns.extend(added(vec![
        column("r/i", Figure::WriterReads),
        column("wKB/i", Figure::WriterWrittenKb),
        column("ips.set", Figure::WriterWanted),
        column("CPU/s", Figure::CpuPerSecond),
    ]));
    columns
}

/// `wps ingest flush compact w-amp c.wsecs c.csecs cpu/w stall%`.
fn kv_costs() -> Vec<Column> {
    vec![
        column("ingest", Figure::Ingest),
        column("flush", Figure::Flush),
        column("compact", Figure::Compaction),
        column("w-amp", Figure::WriteAmp),
        column("c.wsecs", Figure::CompactionWall),
        column("c.csecs", Figure::CompactionCpu),
        column("cpu/w", Figure::CompactionCpuPerOp),
        column("stall%", Figure::Stall),
    ]
}

fn kv_write(row: &Row) -> Vec<Column> {
    let mut columns = vec![column("wps", Figure::Rate)];
    columns.extend(kv_costs());
    columns.extend(added(costs(letter(&row.unit))));
    columns
}

/// Reads and writes of one client: of both together.
fn kv_mixed() -> Vec<Column> {
    let mut columns = vec![column("ops", Figure::Rate)];
    columns.extend(kv_costs());
    columns.extend(added(costs('o')));
    columns
}

fn kv_both(row: &Row) -> Vec<Column> {
    let mut columns = vec![column("wps", Figure::WriterRate)];
    // CPU of compaction per operation would be per read.
    columns.extend(kv_costs().into_iter().filter(|c| c.figure != Figure::CompactionCpuPerOp));
    let mut more = vec![column(format!("{}ps", letter(&row.unit)), Figure::Rate)];
    more.extend(costs(letter(&row.unit)));
    more.push(column("CPU/s", Figure::CpuPerSecond));
    columns.extend(added(more));
    columns
}

fn read(row: &Row) -> Vec<Column> {
    let letter = letter(&row.unit);
    let mut columns = vec![column(format!("{letter}ps"), Figure::Rate)];
    columns.extend(rates_reached(&format!("{letter}ps"), &[99]));
    columns.extend(costs(letter));
    columns
}

/// The columns of a step's response times in milliseconds: of one kind of operation all
/// percentiles, of several the 99th of each. A step that is one operation has its time instead.
pub fn latency_columns(step: &Step<'_>) -> Vec<Column> {
    if step.folds.iter().any(|fold| is_whole(fold.first())) {
        return Vec::new();
    }
    let mut kinds: Vec<&str> = Vec::new();
    for fold in &step.folds {
        for kind in fold.kinds() {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    let of = |percentile, kind: &str| Figure::Percentile(percentile, kind.to_owned());
    match kinds[..] {
        [kind] => Percentile::ALL
            .iter()
            .map(|&percentile| column(percentile.name(), of(percentile, kind)))
            .collect(),
        _ => kinds.iter().map(|kind| column(*kind, of(Percentile::P99, kind))).collect(),
    }
}
