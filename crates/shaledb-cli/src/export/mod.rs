//! `export`: a tree as text that `import` reads back.
//!
//! - `rows`: a row as text. The file that is written is in `target`.
//!
//! A row that the format cannot hold ends the export, because nobody would notice that it is
//! missing from the text.

mod rows;

use crate::args::{ExportOptions, Format};
use crate::exit::{Exit, Failure, Outcome};
use crate::target::Target;
use crate::{open, screen};
use rows::Rows;
use shaledb_cli::text::Form;
use shaledb_lab::units::{bytes, grouped};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Writes a tree.
pub(crate) fn export(options: &ExportOptions, json: bool) -> Outcome {
    let format = match (options.format, options.file == Path::new("-")) {
        (Some(format), _) => format,
        (None, true) => {
            return Err(Failure::usage(
                "the standard output has no name that says its format. Name it with --format",
            ));
        }
        (None, false) => Format::of(&options.file),
    };
    let mut rows = Rows::new(options, format)?;
    let bounds = options.range.bounds(Form::default())?;
    let stop = crate::signals::stop_flag()?;
    let db = open::reading(&options.read)?;
    let tree = db.tree(&options.name.tree)?;
    let mut scan = tree.scan_with(bounds)?;
    let mut target = Target::create(&options.file, options.force, true)?;
    let bar = screen::bytes_bar(None, "export");
    scan.seek_first()?;
    let (mut count, mut size) = (0u64, 0u64);
    let mut text = Vec::new();
    while scan.valid() {
        if stop.load(Ordering::Relaxed) {
            let what = match options.file == Path::new("-") {
                true => "stopped: the output is not complete".to_owned(),
                false => format!("stopped: {} was not written", options.file.display()),
            };
            return Err(Failure::new(Exit::Stopped, format!("{what}. Run the export again")));
        }
        text.clear();
        rows.put(&scan, &mut text)?;
        target.write(&text)?;
        (count, size) = (count + 1, size + text.len() as u64);
        if count.is_multiple_of(1024) {
            bar.set_position(size);
        }
        scan.next()?;
    }
    if count == 0 {
        rows.header_alone(&mut text);
        target.write(&text)?;
    }
    target.finish()?;
    bar.finish_and_clear();
    if options.file == Path::new("-") {
        return Ok(Exit::Done);
    }
    if json {
        screen::json(&serde_json::json!({ "records": count, "bytes": size }))?;
    } else {
        screen::line(&format!("{} records, {} of text", grouped(count), bytes(size)))?;
    }
    Ok(Exit::Done)
}
