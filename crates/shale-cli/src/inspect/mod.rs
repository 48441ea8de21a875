//! `inspect`: what is in a database's files, read without opening the database. Damaged files are
//! shown as far as they can be read.

mod log;
mod table;

use crate::args::InspectOptions;
use crate::exit::{Exit, Failure, Outcome};
use crate::screen;
use serde_json::json;
use shale::Env;
use shale::table::blob::{BlobReader, BlobRef};
use shale::table::format::{FileKind, parse_file_name};
use shale::version::{Recovered, recover};
use shale_lab::report::plain_table;
use shale_lab::units::{bytes, grouped, three_digits};
use std::path::Path;

/// Looks at a file or at the folder of a database.
pub(crate) fn inspect(options: &InspectOptions, json: bool) -> Outcome {
    let path = &options.path;
    let meta = std::fs::metadata(path).map_err(|error| Failure::file("look at", path, &error))?;
    if meta.is_dir() {
        return folder(path, json);
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match parse_file_name(name) {
        Some((FileKind::Table, id)) => table::table(options, id, json),
        Some((FileKind::Wal, id)) => log::wal(options, id, json),
        Some((FileKind::Manifest, id)) => log::manifest(options, id, json),
        Some((FileKind::Blob, id)) => blob(path, id, json),
        Some((FileKind::Current, _)) => current(path, json),
        Some((FileKind::Lock, _)) => Err(Failure::usage("a LOCK file is empty")),
        None => Err(Failure::usage(format!(
            "{} has not the name of a database's file: 000123.table, 000123.wal, 000123.blob, \
             MANIFEST-000123 or CURRENT (the number is part of what the file's checksums cover)",
            path.display()
        ))),
    }
}

/// The files of a database and the tables of its trees, level by level.
fn folder(dir: &Path, json: bool) -> Outcome {
    let env = Env::os();
    let recovered = recover(&*env.fs, dir)?;
    let mut files = Vec::new();
    for entry in env.fs.list(dir)? {
        if let Some((kind, id)) = parse_file_name(&entry.name) {
            let length = std::fs::metadata(dir.join(&entry.name)).map_or(0, |meta| meta.len());
            files.push((kind, id, entry.name, length));
        }
    }
    if json {
        let list: Vec<_> = files
            .iter()
            .map(|(kind, _, name, length)| {
                json!({ "name": name, "kind": format!("{kind:?}").to_lowercase(), "bytes": length })
            })
            .collect();
        let trees: Vec<_> = recovered.trees.values().map(tree_json).collect();
        screen::json(&json!({
            "manifest": recovered.manifest_id,
            "edits": recovered.edits,
            "last_seq": recovered.last_seq,
            "log_start": { "file": recovered.log.file, "seq": recovered.log.seq },
            "trees": trees,
            "files": list,
        }))?;
        return Ok(Exit::Done);
    }
    let mut table = plain_table(&["file", "bytes"]);
    for (_, _, name, length) in &files {
        table.add_row([name.clone(), grouped(*length)]);
    }
    screen::line(&table.trim_fmt())?;
    screen::line(&format!(
        "\nmanifest {}: {} edits, operations to {}, the log starts in file {} after operation {}",
        recovered.manifest_id,
        grouped(recovered.edits),
        grouped(recovered.last_seq),
        recovered.log.file,
        grouped(recovered.log.seq)
    ))?;
    screen::line(&levels(&recovered))?;
    Ok(Exit::Done)
}

fn tree_json(tree: &shale::version::RecoveredTree) -> serde_json::Value {
    let tables: Vec<_> = tree
        .levels
        .iter()
        .enumerate()
        .flat_map(|(level, tables)| {
            tables.iter().map(move |meta| table::meta_json(meta, Some(level)))
        })
        .collect();
    json!({
        "name": tree.name,
        "settings": tree.config,
        "flushed_seq": tree.flushed_seq,
        "tables": tables,
    })
}

fn levels(recovered: &Recovered) -> String {
    let mut text = String::new();
    for tree in recovered.trees.values() {
        text.push_str(&format!("\ntree {}\n", tree.name));
        let mut table = plain_table(&[
            "level",
            "table",
            "bytes",
            "entries",
            "deletes",
            "ratio",
            "smallest key",
            "largest key",
        ]);
        for (level, tables) in tree.levels.iter().enumerate() {
            for meta in tables {
                table.add_row([
                    level.to_string(),
                    format!("{:06}", meta.id),
                    bytes(meta.file_bytes),
                    grouped(meta.entries),
                    grouped(meta.deletes + meta.range_deletes),
                    three_digits(table::ratio(meta.raw_bytes, meta.data_bytes)),
                    short(&meta.smallest),
                    short(&meta.largest),
                ]);
            }
        }
        text.push_str(&table.trim_fmt());
        text.push('\n');
    }
    text
}

/// A key, not too long.
pub(crate) fn short(key: &[u8]) -> String {
    const MOST: usize = 40;
    let mut text = crate::text::escaped(&key[..key.len().min(MOST)]);
    if key.len() > MOST {
        text.push_str("...");
    }
    text
}

/// A large value's file, all of it read and checked.
fn blob(path: &Path, id: u64, json: bool) -> Outcome {
    let file = Env::os().fs.open(path)?;
    let length = file.len()?;
    // The last eight bytes are the length of the value.
    let Some(at) = length.checked_sub(8) else {
        return Err(shale::Error::corruption(path, 0, "the file is too short for a blob").into());
    };
    let mut tail = [0; 8];
    file.read_at(at, &mut tail)?;
    let reference = BlobRef { file: id, bytes: u64::from_le_bytes(tail) };
    BlobReader::open(file, reference)?.verify()?;
    if json {
        screen::json(&json!({ "kind": "blob", "bytes": length, "value_bytes": reference.bytes }))?;
    } else {
        screen::line(&format!(
            "blob {id}: a value of {} bytes in a file of {}; every byte checked",
            grouped(reference.bytes),
            grouped(length)
        ))?;
    }
    Ok(Exit::Done)
}

fn current(path: &Path, json: bool) -> Outcome {
    let dir = path.parent().unwrap_or(Path::new("."));
    let id = shale::version::manifest::current(&*Env::os().fs, dir)?;
    if json {
        screen::json(&json!({ "kind": "current", "manifest": id }))?;
    } else {
        screen::line(&format!("the manifest in force is MANIFEST-{id:06}"))?;
    }
    Ok(Exit::Done)
}
