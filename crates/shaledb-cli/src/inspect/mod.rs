//! `inspect`: what is in a database's files, read without opening the database. Damaged files are
//! shown as far as they can be read.

mod log;
mod table;

use crate::args::InspectOptions;
use crate::exit::{Exit, Failure, Outcome};
use crate::screen;
use serde_json::json;
use shaledb::inspect::{self, BlobInspection, DirectoryInspection, Inspection, Standing};
use shaledb_lab::report::plain_table;
use shaledb_lab::units::{bytes, grouped};

/// Looks at a file or at the folder of a database.
pub(crate) fn inspect(options: &InspectOptions, json: bool) -> Outcome {
    let path = &options.path;
    let meta = std::fs::metadata(path).map_err(|error| Failure::file("read", path, &error))?;
    if meta.is_dir() {
        return folder(&inspect::directory(path)?, json);
    }
    match inspect::open(path)? {
        Inspection::Table(found) if options.keys => table::keys(options, &found, json),
        Inspection::Table(found) => table::table(options, &found, json),
        Inspection::Wal(dump) => log::wal(dump, json),
        Inspection::Manifest(dump) => log::manifest(dump, json),
        Inspection::Blob(found) => blob(&found, json),
        Inspection::Current { manifest } => {
            if json {
                screen::json(&json!({ "kind": "current", "manifest": manifest }))?;
            } else {
                screen::line(&format!("the current manifest is {manifest}"))?;
            }
            Ok(Exit::Done)
        }
    }
}

/// The trees and the files of a database.
fn folder(found: &DirectoryInspection, json: bool) -> Outcome {
    let missing = found.files.iter().any(|file| file.standing == Standing::Missing);
    let damaged =
        missing || found.damage.is_some() || found.files.iter().any(|file| file.damage.is_some());
    let exit = if damaged { Exit::Corruption } else { Exit::Done };
    let tell = || {
        if json {
            return screen::json(found);
        }
        if let Some(damage) = &found.damage {
            screen::line(&format!("DAMAGED: {damage}\n"))?;
        }
        screen::line(&trees(found))?;
        screen::line(&files(found))
    };
    tell().map_err(|failure| failure.if_unread(exit))?;
    Ok(exit)
}

fn trees(found: &DirectoryInspection) -> String {
    let mut table =
        plain_table(&["tree", "number", "tables", "size", "entries", "codecs", "block", "filter"]);
    for tree in &found.trees {
        let codecs = tree.config.codecs;
        table.add_row([
            tree.name.clone(),
            tree.id.to_string(),
            grouped(tree.tables),
            bytes(tree.bytes),
            grouped(tree.entries),
            format!("{},{},{}", codecs.upper, codecs.middle, codecs.bottommost),
            match tree.config.block_bytes {
                0 => "auto".to_owned(),
                bytes => format!("{bytes} B"),
            },
            format!("{} bits", tree.config.filter_bits),
        ]);
    }
    format!("{}\n", table.trim_fmt())
}

fn files(found: &DirectoryInspection) -> String {
    let mut table = plain_table(&["file", "bytes", "standing", "tree", "level", "damage"]);
    for file in &found.files {
        let standing = match file.standing {
            Standing::Needed => "needed",
            Standing::Orphan => "left over",
            Standing::Missing => "MISSING",
            Standing::Unknown => "unknown",
            Standing::Foreign => "not a database's",
        };
        table.add_row([
            file.name.clone(),
            grouped(file.bytes),
            standing.to_owned(),
            file.tree.clone().unwrap_or_default(),
            file.level.map_or_else(String::new, |level| level.to_string()),
            file.damage.clone().unwrap_or_default(),
        ]);
    }
    table.trim_fmt()
}

/// A large value's file, all of it read and checked.
fn blob(found: &BlobInspection, json: bool) -> Outcome {
    let exit = if found.damage.is_none() { Exit::Done } else { Exit::Corruption };
    let tell = || {
        if json {
            return screen::json(found);
        }
        screen::line(&format!(
            "blob {}: a value of {} bytes in a file of {}",
            found.id,
            grouped(found.value_bytes),
            grouped(found.file_bytes)
        ))?;
        screen::line(&match &found.damage {
            Some(damage) => format!("DAMAGED: {damage}"),
            None => "every byte checked".to_owned(),
        })
    };
    tell().map_err(|failure| failure.if_unread(exit))?;
    Ok(exit)
}
