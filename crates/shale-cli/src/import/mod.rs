//! `import`: records of a file into a tree, many a batch.
//!
//! Batches are not synced one by one; the log is synced once at the end, and only then does the
//! command say that it is done. A record of a key that exists replaces it, so an import that was
//! stopped can be run again.

mod lines;
mod parse;

use crate::args::{Format, ImportOptions};
use crate::exit::{Exit, Failure, Outcome};
use crate::{open, screen};
use lines::Lines;
use parse::{Parser, Record};
use serde::Serialize;
use shale::{Batch, Db, Ingest, Tree, WriteOptions};
use shale_lab::units::{bytes, count, grouped, three_digits};
use std::path::Path;
use std::time::Instant;

const BATCH_BYTES: usize = 256 << 10;

/// How many bad lines are reported one by one.
const BAD_SHOWN: u64 = 10;

#[derive(Debug, Default, Serialize)]
struct Report {
    records: u64,
    /// Keys and values.
    bytes: u64,
    bad_lines: u64,
    seconds: f64,
}

/// Loads a file.
pub(crate) fn import(options: &ImportOptions, json: bool) -> Outcome {
    let format = options.format.map_or_else(|| format_of(&options.file), Ok)?;
    // Everything that can be wrong with the input is found before a database is made for it.
    let mut lines = Lines::open(&options.file)?;
    let parser = Parser::new(options, format, &mut lines)?;
    let db = open::writing(&options.read, &options.settings)?;
    let tree = open::tree_or_create(&db, &options.name.tree, &options.settings)?;
    let start = Instant::now();
    let bar = screen::bytes_bar(lines.total_bytes(), "import");
    let mut sink = Sink::new(&db, &tree, options.sorted)?;
    let mut report = Report::default();
    let outcome = feed(options, &mut lines, &parser, &mut sink, &mut report, &bar);
    // What came before a bad line is kept, or, for --sorted, nothing is.
    let finished = match &outcome {
        Err(_) if options.sorted => Ok(()),
        _ => sink.finish(),
    };
    bar.finish_and_clear();
    outcome?;
    finished?;
    drop(tree);
    db.close()?;
    report.seconds = start.elapsed().as_secs_f64();
    show(&report, json)?;
    Ok(Exit::Done)
}

fn format_of(path: &Path) -> Outcome<Format> {
    if path == Path::new("-") {
        return Err(Failure::usage("name the --format of the standard input"));
    }
    Ok(match path.extension().and_then(|extension| extension.to_str()) {
        Some("json" | "jsonl" | "ndjson") => Format::Json,
        Some("csv") => Format::Csv,
        Some("tsv") => Format::Tsv,
        _ => Format::Kv,
    })
}

fn feed(
    options: &ImportOptions,
    lines: &mut Lines,
    parser: &Parser,
    sink: &mut Sink<'_>,
    report: &mut Report,
    bar: &indicatif::ProgressBar,
) -> Outcome<()> {
    let mut record = Record::default();
    while let Some(line) = lines.next(parser.quoted())? {
        let number = line.number;
        let added = match parser.parse(line.text, &mut record) {
            Ok(false) => continue,
            Ok(true) => sink.add(&record),
            Err(what) => Err(Added::Bad(what)),
        };
        match added {
            Ok(()) => {
                report.records += 1;
                report.bytes += (record.key.len() + record.value.len()) as u64;
            }
            Err(Added::Failed(failure)) => return Err(failure),
            Err(Added::Bad(what)) if options.skip_bad => {
                report.bad_lines += 1;
                if report.bad_lines <= BAD_SHOWN {
                    bar.suspend(|| eprintln!("shale: line {number} skipped: {what}"));
                } else if report.bad_lines == BAD_SHOWN + 1 {
                    bar.suspend(|| eprintln!("shale: further bad lines are counted only"));
                }
            }
            Err(Added::Bad(what)) => {
                let kept = if options.sorted {
                    "nothing was imported".to_owned()
                } else {
                    format!("the {} records before it were imported", grouped(report.records))
                };
                return Err(Failure::new(
                    Exit::BadInput,
                    format!(
                        "{}: line {number}: {what}; {kept}. Correct the line and run the import \
                         again, or pass over bad lines with --skip-bad",
                        options.file.display()
                    ),
                ));
            }
        }
        if report.records.is_multiple_of(1024) {
            bar.set_position(lines.done_bytes());
            bar.set_message(format!("{} records", count(report.records as f64)));
        }
    }
    Ok(())
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
    screen::line(&format!(
        "{} records, {} in {} s ({} records/s, {}/s){bad}",
        grouped(report.records),
        bytes(report.bytes),
        three_digits(report.seconds),
        count(report.records as f64 / seconds),
        bytes((report.bytes as f64 / seconds) as u64),
    ))
}

/// Why a record was not added.
enum Added {
    Bad(String),
    Failed(Failure),
}

/// Where records go: batches, or tables built directly.
enum Sink<'a> {
    Batches { db: &'a Db, tree: &'a Tree, batch: Batch },
    Tables(Option<Box<Ingest>>),
}

impl<'a> Sink<'a> {
    fn new(db: &'a Db, tree: &'a Tree, sorted: bool) -> Outcome<Sink<'a>> {
        if sorted {
            return Ok(Sink::Tables(Some(Box::new(tree.ingest()?))));
        }
        Ok(Sink::Batches { db, tree, batch: Batch::new() })
    }

    fn add(&mut self, record: &Record) -> Result<(), Added> {
        // The engine's bound, checked here so that the line is to blame and not the batch.
        if record.key.len() > shale::base::key::KEY_BYTES_MAX {
            return Err(Added::Bad(format!(
                "the key has {} bytes, more than {}",
                record.key.len(),
                shale::base::key::KEY_BYTES_MAX
            )));
        }
        let result = match self {
            Sink::Batches { db, tree, batch } => {
                batch.put(tree, &record.key, &record.value);
                if batch.bytes() < BATCH_BYTES {
                    return Ok(());
                }
                let written = db.write(batch, WriteOptions::default());
                batch.clear();
                written
            }
            Sink::Tables(Some(ingest)) => ingest.add(&record.key, &record.value),
            Sink::Tables(None) => Ok(()),
        };
        match result {
            Ok(()) => Ok(()),
            // Of an ingest: the key is not greater than the one before.
            Err(shale::Error::InvalidArgument(what)) => Err(Added::Bad(what)),
            Err(error) => Err(Added::Failed(error.into())),
        }
    }

    fn finish(&mut self) -> Outcome<()> {
        match self {
            Sink::Batches { db, batch, .. } => {
                db.write(batch, WriteOptions::default())?;
                db.sync()?;
            }
            Sink::Tables(ingest) => {
                if let Some(ingest) = ingest.take() {
                    ingest.finish()?;
                }
            }
        }
        Ok(())
    }
}
