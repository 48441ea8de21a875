//! Rows of results: as a table for people, as JSON lines for programs.

use crate::engine::Result;
use crate::measure::{LatencySummary, RateSummary};
use crate::options::BenchOptions;
use crate::units::{bytes, count, micros, setting, three_digits};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

/// The version of [`Row`]'s fields; it grows when a field changes its meaning.
pub const SCHEMA: u32 = 1;

/// CPU of a step: the whole process, engine and client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cpu {
    /// Microseconds per operation, user and system.
    pub us_per_op: f64,
    /// Outside the system.
    pub user_us_per_op: f64,
    /// Inside the system.
    pub system_us_per_op: f64,
    /// What of it is the client's own: the same loop on an engine that does nothing.
    pub client_us_per_op: f64,
    /// Seconds in all.
    pub seconds: f64,
    /// Seconds of flush and compaction, where the engine tells.
    pub background_seconds: Option<f64>,
}

/// What it took to open the store, its recovery included.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Opened {
    /// How long.
    pub seconds: f64,
    /// CPU seconds.
    pub cpu_seconds: f64,
    /// Bytes that the process wrote to storage.
    pub written_bytes: u64,
}

/// The rate-limited writer of readwhilewriting.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Writer {
    /// Writes done.
    pub ops: u64,
    /// Writes per second.
    pub rate: f64,
    /// Keys and values per second, in 2^20 bytes.
    pub mb_per_second: f64,
    /// From when each was due (corrected for coordinated omission).
    pub latency_us: LatencySummary,
}

/// The measures of one benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The engine's name.
    pub engine: String,
    /// The engine's version.
    pub version: String,
    /// The benchmark's name.
    pub benchmark: String,
    /// All flags of the run.
    pub options: serde_json::Value,
    /// How long it took.
    pub seconds: f64,
    /// The open before it, if there was one. What the engine itself counts (log, flush,
    /// compaction) is in the step's own figures; CPU and bytes are only here.
    pub open: Option<Opened>,
    /// Operations done: reads in readwhilewriting, rows in readseq.
    pub ops: u64,
    /// Reads and seeks that found something.
    pub found: u64,
    /// Operations per second.
    pub rate: f64,
    /// Rates that were held in a share of the seconds.
    pub rates: RateSummary,
    /// Operations in each whole second.
    pub rate_by_second: Vec<u64>,
    /// Response times; those of readseq are means of 100 rows.
    pub latency_us: LatencySummary,
    /// CPU.
    pub cpu: Cpu,
    /// KB (1000) that the process wrote to storage, per operation.
    pub written_kb_per_op: f64,
    /// KB (1000) that the process read from storage, per operation.
    pub read_kb_per_op: f64,
    /// Bytes that the process wrote to storage.
    pub written_bytes: u64,
    /// Bytes that the process read from storage.
    pub read_bytes: u64,
    /// Keys and values that the client wrote.
    pub user_written_bytes: u64,
    /// Keys and values that the client read.
    pub user_read_bytes: u64,
    /// Written to logs, as the engine counts.
    pub wal_bytes: u64,
    /// Written by flushes, as the engine counts.
    pub flush_bytes: u64,
    /// Written by compactions, as the engine counts.
    pub compaction_bytes: u64,
    /// (flush + compaction) / what the client wrote, in this step.
    pub write_amp: Option<f64>,
    /// The share of the time in which a writer was delayed or stopped by the engine.
    pub stall_percent: f64,
    /// What the database takes on disk (allocated blocks).
    pub size_bytes: u64,
    /// Resident memory at the end.
    pub rss_bytes: u64,
    /// Resident memory at its peak in this step.
    pub rss_peak_bytes: u64,
    /// The writer of readwhilewriting.
    pub writer: Option<Writer>,
    /// The engine's table of its levels.
    pub compaction_table: String,
}

/// Where a run shows itself: progress on the standard error if it is a terminal, results on the
/// standard output, JSON lines in a file.
pub struct Screen {
    json: Option<std::fs::File>,
    json_only: bool,
}

impl Screen {
    /// Opens the JSON file and prints what is about to run.
    pub fn new(options: &BenchOptions, engine: &str, version: &str, dir: &Path) -> Result<Screen> {
        let json_only = options.json_to.as_deref() == Some(Path::new("-"));
        let json = match &options.json_to {
            Some(path) if !json_only => Some(
                std::fs::OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(path)
                    .map_err(|error| format!("could not open {}: {error}", path.display()))?,
            ),
            _ => None,
        };
        let screen = Screen { json, json_only };
        screen.say(&format!(
            "{engine} {version}: {} keys of {} B, values {} B compressible to {}, {} thread(s), \
             codecs {}, memory {}, memtable {}, blocks {}, filter {} bits, {} background threads, \
             sync {}, seed {}\nin {}",
            count(options.num as f64),
            options.key_bytes,
            options.value_bytes,
            options.compressibility,
            options.threads,
            options.codecs,
            setting(options.memory),
            setting(options.memtable),
            setting(options.block_bytes),
            options.filter_bits,
            options.background_threads,
            if options.sync { "on" } else { "off" },
            options.seed,
            dir.display()
        ))?;
        Ok(screen)
    }

    /// A progress bar of a thousand steps; hidden unless the standard error is a terminal.
    pub fn bar(&self, name: &'static str) -> ProgressBar {
        if !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template(
            "{prefix:>18} [{bar:32}] {percent:>3}% {msg:>10}  ETA {eta}",
        )
        .expect("the template is well-formed")
        .progress_chars("=> ");
        ProgressBar::new(1000).with_style(style).with_prefix(name)
    }

    /// A sign of life for a step whose length is not known.
    pub fn spinner(&self, name: &'static str) -> ProgressBar {
        if !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("{prefix:>18} {spinner} {elapsed}")
            .expect("the template is well-formed");
        let bar = ProgressBar::new_spinner().with_style(style).with_prefix(name);
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    /// Shows one row as soon as it is there.
    pub fn show(&mut self, row: &Row) -> Result<()> {
        if self.json_only {
            return line(&serde_json::to_string(row)?);
        }
        if let Some(file) = &mut self.json {
            let mut text = serde_json::to_string(row)?;
            text.push('\n');
            file.write_all(text.as_bytes())
                .map_err(|error| format!("could not write the JSON line: {error}"))?;
        }
        self.say(&brief(row))
    }

    /// Shows all rows as a table, and the engine's own table of its levels.
    pub fn finish(&mut self, rows: &[Row]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.say(&format!("\n{}", table(rows)))?;
        match rows.last() {
            Some(row) if !row.compaction_table.is_empty() => {
                self.say(&format!("\n{}", row.compaction_table.trim_end()))
            }
            _ => Ok(()),
        }
    }

    fn say(&self, text: &str) -> Result<()> {
        if self.json_only { Ok(()) } else { line(text) }
    }
}

fn line(text: &str) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{text}").map_err(Into::into)
}

/// One line about one row.
fn brief(row: &Row) -> String {
    let mut text = if row.benchmark == "settle" {
        format!(
            "{:>17}: {} s, {} CPU s, {} written, size {}",
            row.benchmark,
            three_digits(row.seconds),
            three_digits(row.cpu.seconds),
            bytes(row.written_bytes),
            bytes(row.size_bytes)
        )
    } else {
        format!(
            "{:>17}: {}/s, {} CPU us/op, p50 {}, p99 {}, p99.9 {}, max {}",
            row.benchmark,
            count(row.rate),
            three_digits(row.cpu.us_per_op),
            micros(row.latency_us.p50),
            micros(row.latency_us.p99),
            micros(row.latency_us.p999),
            micros(row.latency_us.max)
        )
    };
    if let Some(writer) = &row.writer {
        text.push_str(&format!(
            "\n{:>17}: {}/s ({} MB/s), p50 {}, p99 {}, p99.9 {}, max {}",
            "its writer",
            count(writer.rate),
            three_digits(writer.mb_per_second),
            micros(writer.latency_us.p50),
            micros(writer.latency_us.p99),
            micros(writer.latency_us.p999),
            micros(writer.latency_us.max)
        ));
    }
    text
}

/// An empty table with one line under its header and no other lines; columns after the first are
/// set to the right.
pub fn plain_table(header: &[&str]) -> Table {
    let style =
        TableStyle::new().header_separator(LineStyle::none().fill('\u{2500}').junction('\u{2500}'));
    let mut table = Table::new();
    table.load_style(style);
    table.set_header(header.iter().copied());
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// All rows as one table.
pub fn table(rows: &[Row]) -> String {
    let mut table = plain_table(&[
        "benchmark",
        "ops/s",
        "worst s",
        "p50 us",
        "p99 us",
        "p99.9",
        "max",
        "CPU us",
        "client",
        "wKB/op",
        "rKB/op",
        "w-amp",
        "stall%",
        "size",
        "rss",
        "peak",
    ]);
    for row in rows {
        let settle = row.benchmark == "settle";
        let unless = |hidden: bool, text: String| if hidden { "-".to_owned() } else { text };
        table.add_row([
            row.benchmark.clone(),
            unless(settle, count(row.rate)),
            unless(row.rates.intervals == 0, count(row.rates.worst)),
            unless(settle, three_digits(row.latency_us.p50)),
            unless(settle, three_digits(row.latency_us.p99)),
            unless(settle, three_digits(row.latency_us.p999)),
            unless(settle, micros(row.latency_us.max)),
            if settle {
                format!("{} s", three_digits(row.cpu.seconds))
            } else {
                three_digits(row.cpu.us_per_op)
            },
            unless(settle, three_digits(row.cpu.client_us_per_op)),
            if settle { bytes(row.written_bytes) } else { three_digits(row.written_kb_per_op) },
            unless(settle, three_digits(row.read_kb_per_op)),
            row.write_amp.map_or_else(|| "-".to_owned(), three_digits),
            three_digits(row.stall_percent),
            bytes(row.size_bytes),
            bytes(row.rss_bytes),
            bytes(row.rss_peak_bytes),
        ]);
    }
    table.trim_fmt()
}
