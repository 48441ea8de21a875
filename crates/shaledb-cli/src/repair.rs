//! `repair`: what a damaged database still has, written to a new one.

use crate::args::RepairOptions;
use crate::exit::{Exit, Outcome};
use crate::screen;
use shaledb::Config;
use shaledb::repair::{RepairReport, RepairStep, repair as salvage};

/// Repairs, and reports what was lost.
pub(crate) fn repair(options: &RepairOptions, json: bool) -> Outcome {
    let config = Config { memory_bytes: options.read.memory.unwrap_or(0), ..Config::default() };
    let how = shaledb::repair::RepairOptions { config, ..Default::default() };
    let bar = screen::bytes_bar(Some(0), "repair");
    let report = salvage(&options.read.db, &options.to, &how, &mut |progress| {
        bar.set_length(progress.bytes_total);
        bar.set_position(progress.bytes_done);
        bar.set_message(match progress.step {
            RepairStep::Reading => format!("reading {}", progress.name),
            RepairStep::Writing => format!("writing {}: {} rows", progress.name, progress.rows),
        });
    })?;
    bar.finish_and_clear();
    let exit = if report.is_clean() { Exit::Done } else { Exit::Corruption };
    tell(options, &report, json).map_err(|failure| failure.if_unread(exit))?;
    Ok(exit)
}

fn tell(options: &RepairOptions, report: &RepairReport, json: bool) -> Outcome<()> {
    if json {
        let mut object = serde_json::to_value(report)?;
        object["clean"] = report.is_clean().into();
        return screen::json(&object);
    }
    screen::line(report.to_string().trim_end())?;
    screen::line(&format!(
        "{} is unchanged; {} is the repaired database",
        options.read.db.display(),
        options.to.display()
    ))
}
