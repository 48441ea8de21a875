//! What the demonstration shows.

use super::source::{Part, Source};
use serde::Serialize;
use shaledb_lab::measure::LatencySummary;
use shaledb_lab::report::plain_table;
use shaledb_lab::units::{bytes, count, grouped, micros, three_digits};
use std::path::Path;

/// One codec's figures.
#[derive(Debug, Default, Serialize)]
pub(super) struct Figures {
    pub(super) name: String,
    /// On disk when the engine is idle: tables, log, manifest.
    pub(super) stored_bytes: u64,
    pub(super) write_seconds: f64,
    /// From the last write until no compaction is due.
    pub(super) wait_idle_seconds: f64,
    pub(super) get_seconds: f64,
    pub(super) get_us: LatencySummary,
    /// Of a range of 100 rows.
    pub(super) range_us: LatencySummary,
    pub(super) scan_seconds: f64,
    /// Records compared with the source.
    pub(super) checked: u64,
}

/// All of it.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    pub(super) source: &'a [Part],
    pub(super) records: u64,
    pub(super) raw_bytes: u64,
    pub(super) codecs: Vec<Figures>,
    /// The engine's statistics after the last load.
    pub(super) levels: String,
}

/// What was found to load.
pub(super) fn parts(source: &Source) -> String {
    let mut table = plain_table(&["real data of this machine", "records", "size"]);
    for part in &source.parts {
        table.add_row([part.what.clone(), grouped(part.records), bytes(part.bytes)]);
    }
    let records = source.records.len() as u64;
    table.add_row(["in all".to_owned(), grouped(records), bytes(source.bytes)]);
    table.trim_fmt()
}

impl<'a> Report<'a> {
    pub(super) fn new(source: &'a Source) -> Report<'a> {
        Report {
            source: &source.parts,
            records: source.records.len() as u64,
            raw_bytes: source.bytes,
            codecs: Vec::new(),
            levels: String::new(),
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut table = plain_table(&[
            "codec",
            "stored",
            "of raw",
            "write",
            "wait_idle",
            "get",
            "p50",
            "p99",
            "100 rows p99",
            "scan",
        ]);
        let records = self.records as f64;
        let raw = self.raw_bytes as f64;
        for figures in &self.codecs {
            let rate = |amount: f64, seconds: f64| amount / seconds.max(1e-9);
            table.add_row([
                figures.name.clone(),
                bytes(figures.stored_bytes),
                format!("{:.1} %", 100.0 * figures.stored_bytes as f64 / raw),
                format!("{}/s", bytes(rate(raw, figures.write_seconds) as u64)),
                format!("{} s", three_digits(figures.wait_idle_seconds)),
                format!("{}/s", count(rate(records, figures.get_seconds))),
                micros(figures.get_us.p50),
                micros(figures.get_us.p99),
                micros(figures.range_us.p99),
                format!("{}/s", bytes(rate(raw, figures.scan_seconds) as u64)),
            ]);
        }
        let checked = self.codecs.iter().map(|figures| figures.checked).sum();
        format!(
            "\n{}\n\nEvery record was read back by key and by range and equals its source ({} \
             comparisons).\n\nWith the default, auto, the engine chooses the codec of each \
             level; after the load:\n{}",
            table.trim_fmt(),
            grouped(checked),
            self.levels.trim_end()
        )
    }
}

/// What to try next.
pub(super) fn closing(kept: Option<&Path>, source: &Source) -> String {
    let Some(path) = kept else {
        return "\nNext: `shale demo --keep` keeps the database to look at; `shale demo FILE` loads \
                a file of yours;\n      `shale import --help` brings your data in; `shale bench \
                kv` measures."
            .to_owned();
    };
    let key = source.records.get(source.records.len() / 2).map_or(&b""[..], |(key, _)| key);
    format!(
        "\nNext: shale get {0} '{1}'\n      shale scan {0} --limit 5\n      shale stats {0}",
        path.display(),
        shaledb_cli::text::escaped(key).replace('\'', "'\\''")
    )
}
