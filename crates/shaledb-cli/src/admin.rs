//! Commands about whole databases.

use crate::args::{CheckpointOptions, CompactOptions, DbOptions, TreesOptions, WriteFlags};
use crate::exit::{Exit, Failure, Outcome};
use crate::{open, screen};
use shaledb::{Env, VerifyReport};
use shaledb_lab::units::{bytes, grouped, three_digits};
use std::time::Instant;

/// Lists the trees or drops one.
pub(crate) fn trees(options: &TreesOptions, json: bool) -> Outcome {
    if let Some(name) = &options.drop {
        // What is dropped takes no space.
        let write = WriteFlags { open: options.read.clone(), space_limit: None };
        let db = open::existing(&write)?;
        db.drop_tree(name)?;
        db.close()?;
        if json {
            screen::json(&serde_json::json!({ "dropped": name }))?;
        }
        return Ok(Exit::Done);
    }
    let db = open::reading(&options.read)?;
    for name in db.tree_names() {
        if json {
            let tree = db.tree(&name)?;
            screen::json(&serde_json::json!({ "tree": name, "settings": tree.config() }))?;
        } else {
            screen::line(&name)?;
        }
    }
    Ok(Exit::Done)
}

/// Prints the statistics.
pub(crate) fn stats(options: &DbOptions, json: bool) -> Outcome {
    let db = open::reading(&options.read)?;
    let stats = db.stats();
    if json {
        screen::json(&stats)?
    } else {
        screen::line(stats.to_string().trim_end())?
    }
    Ok(Exit::Done)
}

/// Reads and checks everything.
pub(crate) fn verify(options: &DbOptions, json: bool) -> Outcome {
    let db = match open::reading(&options.read) {
        // Damage, what the device cannot read, and tables without what names them.
        Err(failure) if [Exit::Corruption, Exit::Io, Exit::NoSuch].contains(&failure.exit()) => {
            return examine(options, failure, json);
        }
        db => db?,
    };
    let start = Instant::now();
    let bar = screen::bytes_bar(Some(0), "verify");
    let report = db.verify(&mut |progress| {
        bar.set_length(progress.bytes_total);
        bar.set_position(progress.bytes_done);
    })?;
    bar.finish_and_clear();
    let exit = if report.damage.is_empty() { Exit::Done } else { Exit::Corruption };
    let seconds = start.elapsed().as_secs_f64();
    tell(&report, seconds, json).map_err(|failure| failure.if_unread(exit))?;
    Ok(exit)
}

/// Lists the damage of a database that does not open for it, which is the first of the list.
fn examine(options: &DbOptions, failure: Failure, json: bool) -> Outcome {
    let bar = screen::bytes_bar(Some(0), "verify");
    let report = shaledb::repair::examine(&Env::os(), &options.read.db, &mut |progress| {
        bar.set_length(progress.bytes_total);
        bar.set_position(progress.bytes_done);
    });
    bar.finish_and_clear();
    // What keeps all from being read is told as the open told it.
    let Ok(report) = report else { return Err(failure) };
    if report.is_clean() {
        return Err(failure);
    }
    let tell = || -> Outcome<()> {
        if json {
            let mut object = failure.object();
            object["opens"] = false.into();
            object["manifest"] = serde_json::to_value(report.catalog)?;
            object["damage"] = serde_json::to_value(&report.files)?;
            return screen::json(&object);
        }
        screen::line(&format!("DAMAGED, so that it does not open: {}", failure.text()))?;
        screen::line("What `shale repair` would find (it reads large values too):")?;
        screen::line(report.to_string().trim_end())
    };
    tell().map_err(|failure| failure.if_unread(Exit::Corruption))?;
    Ok(Exit::Corruption)
}

fn tell(report: &VerifyReport, seconds: f64, json: bool) -> Outcome<()> {
    if json {
        let mut object = serde_json::to_value(report)?;
        object["opens"] = true.into();
        object["damage"] = report.damage.iter().map(crate::exit::as_json).collect();
        screen::json(&object)?;
    } else {
        for error in &report.damage {
            screen::line(&format!("DAMAGED: {error}"))?;
        }
        screen::line(&format!(
            "{}: {} tables with {} entries, {} blob files, {} log files with {} records ({}); \
             {} read in {} s",
            if report.damage.is_empty() { "ok" } else { "damaged" },
            grouped(report.tables),
            grouped(report.entries),
            grouped(report.blobs),
            grouped(report.log_files),
            grouped(report.log_records),
            bytes(report.log_bytes),
            bytes(report.bytes),
            three_digits(seconds)
        ))?;
        if report.unfinished_bytes > 0 {
            screen::line(&format!(
                "{} at the end of the log or the manifest are of an unfinished write, or zeros \
                 ahead of one. They hold nothing that was reported as durable",
                bytes(report.unfinished_bytes)
            ))?;
        }
    }
    Ok(())
}

/// Brings data to the last level.
pub(crate) fn compact(options: &CompactOptions, json: bool) -> Outcome {
    let db = open::existing(&options.write)?;
    let before = shaledb_lab::measure::disk_bytes(&options.write.open.db);
    let start = Instant::now();
    let spinner = screen::spinner("compacting".to_owned());
    match &options.tree {
        Some(name) => db.tree(name)?.compact()?,
        None => db.compact()?,
    }
    spinner.finish_and_clear();
    db.close()?;
    let after = shaledb_lab::measure::disk_bytes(&options.write.open.db);
    let seconds = start.elapsed().as_secs_f64();
    if json {
        let object = serde_json::json!({
            "seconds": seconds, "bytes_before": before, "bytes_after": after,
        });
        screen::json(&object)?;
    } else {
        let seconds = three_digits(seconds);
        screen::line(&format!("{} -> {} in {seconds} s", bytes(before), bytes(after)))?;
    }
    Ok(Exit::Done)
}

/// Makes a copy by hard links.
pub(crate) fn checkpoint(options: &CheckpointOptions, json: bool) -> Outcome {
    let db = open::existing(&options.write)?;
    db.checkpoint(&options.to)?;
    db.close()?;
    if json {
        screen::json(&serde_json::json!({ "checkpoint": options.to }))?;
    } else {
        screen::line(&format!(
            "{} is an independent database. The files that neither changes are shared with {}",
            options.to.display(),
            options.write.open.db.display()
        ))?;
    }
    Ok(Exit::Done)
}
