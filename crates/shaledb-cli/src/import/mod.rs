//! `import`: rows of a file into a tree, many a batch.
//!
//! Batches are not synced one by one; at the end all is flushed, and only then does the command say
//! that it is done. A row of a key that exists replaces it, so an import that was stopped can be
//! run again.

mod sink;
pub(crate) mod source;

use crate::args::ImportOptions;
use crate::exit::{Exit, Failure, Outcome};
use crate::{open, screen};
use indicatif::ProgressBar;
use serde::Serialize;
use shaledb_cli::rows::{self, Problem, Record, Rows};
use shaledb_lab::say;
use shaledb_lab::units::{bytes, count, grouped, three_digits};
use sink::{Added, Sink};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// How many bad lines are reported one by one.
const BAD_SHOWN: u64 = 10;

#[derive(Debug, Default, Serialize)]
struct Report {
    records: u64,
    /// Keys and values.
    bytes: u64,
    bad_lines: u64,
    /// Records that replaced one of the same import.
    repeated_keys: u64,
    /// Whether not all keys could be remembered, so that there may be more of these.
    repeated_keys_at_least: bool,
    seconds: f64,
    /// Rows of the file, also bad ones and those passed over.
    #[serde(skip)]
    rows: u64,
}

/// Loads a file.
pub(crate) fn import(options: &ImportOptions, json: bool) -> Outcome {
    let options_of_rows = options.rows.options(&options.file)?;
    let stop = crate::signals::stop_flag()?;
    // Everything that can be wrong with the input is found before a database is made for it.
    let source = source::open(&options.file, &stop)?;
    let begun = Rows::open(source.input, &options_of_rows);
    let file = options.file.display();
    let mut rows = match begun {
        Err(_) if stop.load(Ordering::Relaxed) => {
            return Err(Failure::new(Exit::Stopped, "stopped: nothing was imported"));
        }
        other => other.map_err(|problem| failure(problem, &file.to_string(), ""))?,
    };
    let db = open::writing(&options.write, &options.settings)?;
    let tree = open::tree_or_create(&db, &options.name.tree, &options.settings)?;
    let start = Instant::now();
    let bar = screen::bytes_bar(source.total_bytes, "import");
    let mut sink = Sink::new(&db, &tree, options.sorted)?;
    let mut feed = Feed {
        options,
        bar: &bar,
        done_bytes: &source.done_bytes,
        stop: &stop,
        report: Report::default(),
    };
    let outcome = feed.run(&mut rows, &mut sink);
    let mut report = feed.report;
    bar.finish_and_clear();
    // What came before a bad line is kept, or, for --sorted, nothing is.
    let is_kept = !options.sorted || matches!(outcome, Ok(Ended::All));
    let finished = if is_kept { flush(&mut sink) } else { Ok(()) };
    let ended = outcome?;
    finished?;
    (report.repeated_keys, report.repeated_keys_at_least) = sink.repeated();
    drop(sink);
    drop(tree);
    db.close()?;
    report.seconds = start.elapsed().as_secs_f64();
    let why = match ended {
        Ended::All => {
            show(&report, json)?;
            return Ok(Exit::Done);
        }
        Ended::Stopped => stopped(options, &report, rows.line()),
        Ended::Bad(problem) => {
            failure(problem, &file.to_string(), &format!(" {}", kept(options, &report)))
        }
    };
    Err(why.with("records", report.records).with("rows", report.rows))
}

fn flush(sink: &mut Sink<'_>) -> Outcome<()> {
    let spinner = screen::spinner("making it durable".to_owned());
    let outcome = sink.finish();
    spinner.finish_and_clear();
    outcome
}

/// How reading came to its end.
enum Ended {
    All,
    Stopped,
    Bad(Problem),
}

struct Feed<'a> {
    options: &'a ImportOptions,
    bar: &'a ProgressBar,
    done_bytes: &'a AtomicU64,
    stop: &'a AtomicBool,
    report: Report,
}

impl Feed<'_> {
    /// Takes row after row.
    fn run(&mut self, rows: &mut Rows, sink: &mut Sink<'_>) -> Outcome<Ended> {
        let mut record = Record::default();
        loop {
            if self.report.rows.is_multiple_of(1024) {
                let records = count(self.report.records as f64);
                self.bar.set_position(self.done_bytes.load(Ordering::Relaxed));
                self.bar.set_message(format!("{records} records"));
            }
            if self.stop.load(Ordering::Relaxed) {
                return Ok(Ended::Stopped);
            }
            let bad = match rows.next(&mut record) {
                Err(Problem::Read(_)) if self.stop.load(Ordering::Relaxed) => {
                    return Ok(Ended::Stopped);
                }
                Ok(false) => return Ok(Ended::All),
                Ok(true) if self.report.rows < self.options.skip_rows => None,
                Ok(true) => match sink.add(&record) {
                    Ok(()) => {
                        self.report.records += 1;
                        self.report.bytes += (record.key.len() + record.value.len()) as u64;
                        None
                    }
                    Err(Added::Bad(what)) => Some((rows.line(), what)),
                    Err(Added::Failed(failure)) => return Err(failure),
                },
                Err(Problem::Row(..)) if self.report.rows < self.options.skip_rows => None,
                Err(Problem::Row(line, what)) => Some((line, what)),
                Err(problem) => return Ok(Ended::Bad(problem)),
            };
            if let Some((line, what)) = bad {
                if !self.options.skip_bad {
                    return Ok(Ended::Bad(Problem::Row(line, what)));
                }
                self.pass_over(line, &what);
            }
            self.report.rows += 1;
        }
    }

    fn pass_over(&mut self, line: u64, what: &str) {
        self.report.bad_lines += 1;
        if self.report.bad_lines <= BAD_SHOWN {
            self.bar.suspend(|| say::note(&format!("shale: line {line} skipped: {what}")));
        } else if self.report.bad_lines == BAD_SHOWN + 1 {
            self.bar.suspend(|| say::note("shale: further bad lines are counted but not shown"));
        }
    }
}

/// What is in the database after an import that did not come to its end.
fn kept(options: &ImportOptions, report: &Report) -> String {
    if options.sorted {
        return "Nothing was imported.".to_owned();
    }
    format!("The {} records before it were imported and are durable.", grouped(report.records))
}

/// What a problem means for the user.
fn failure(problem: Problem, file: &str, kept: &str) -> Failure {
    match problem {
        Problem::Row(line, what) => Failure::new(
            Exit::BadInput,
            format!(
                "{file}: line {line}: {what}.{kept} Correct the line and run the import again, or \
                 skip bad lines with --skip-bad"
            ),
        )
        .with("file", file)
        .with("line", line),
        Problem::Rest(line, what) => {
            Failure::new(Exit::BadInput, format!("{file}: line {line}: {what}.{kept}"))
                .with("file", file)
                .with("line", line)
        }
        Problem::Options(what) => Failure::usage(format!("{file}: {what}")),
        Problem::Read(error) if rows::is_bad_input(&error) => {
            Failure::new(Exit::BadInput, format!("{file}: {error}.{kept}")).with("file", file)
        }
        Problem::Read(error) => {
            Failure::new(Exit::Io, format!("could not read {file}: {error}.{kept}"))
                .with("file", file)
        }
    }
}

/// What is in after Ctrl-C or SIGTERM, and how to go on.
fn stopped(options: &ImportOptions, report: &Report, line: u64) -> Failure {
    if options.sorted {
        return Failure::new(
            Exit::Stopped,
            "stopped: nothing was imported. An import with --sorted takes effect as a whole: run \
             it again",
        );
    }
    let rows = report.rows;
    let text = format!(
        "stopped: {} records ({}) are in {} and durable, up to line {line} of {}. To continue, run \
         the same command with --skip-rows {rows}. Without it every row is written again, which \
         does no harm",
        grouped(report.records),
        bytes(report.bytes),
        options.write.open.db.display(),
        options.file.display(),
    );
    Failure::new(Exit::Stopped, text).with("bytes", report.bytes).with("skip_rows", rows)
}

fn show(report: &Report, json: bool) -> Outcome<()> {
    if json {
        return screen::json(report);
    }
    let seconds = report.seconds.max(1e-9);
    let bad = match report.bad_lines {
        0 => String::new(),
        1 => ", 1 bad line skipped".to_owned(),
        many => format!(", {} bad lines skipped", grouped(many)),
    };
    let at_least = if report.repeated_keys_at_least { "at least " } else { "" };
    let repeated = match report.repeated_keys {
        0 => String::new(),
        many => format!(
            ", {at_least}{} of them replaced an earlier record of the same key",
            grouped(many)
        ),
    };
    screen::line(&format!(
        "{} records, {} in {} s ({} records/s, {}/s){bad}{repeated}",
        grouped(report.records),
        bytes(report.bytes),
        three_digits(report.seconds),
        count(report.records as f64 / seconds),
        bytes((report.bytes as f64 / seconds) as u64),
    ))
}
