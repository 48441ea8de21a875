//! `get` and `scan`.

use crate::args::{GetOptions, ScanOptions};
use crate::exit::{Exit, Failure, Outcome};
use crate::target::Target;
use crate::{open, screen};
use serde_json::{Map, Value};
use shaledb::{Scan, Tree};
use shaledb_cli::text::{Form, escaped, put_json};
use shaledb_lab::say;
use std::io::{Read, Write};
use std::path::Path;

/// Prints values of keys.
pub(crate) fn get(options: &GetOptions, json: bool) -> Outcome {
    let form = options.form;
    let keys: Vec<Vec<u8>> = options
        .keys
        .iter()
        .map(|key| form.read(key).map_err(Failure::usage))
        .collect::<Outcome<_>>()?;
    let db = open::reading(&options.read)?;
    let tree = db.tree(&options.name.tree)?;
    if let Some(path) = &options.output {
        let [key] = &keys[..] else {
            return Err(Failure::usage("--output writes the value of one key. Name one key only"));
        };
        return save(&tree, key, path, json);
    }
    let mut exit = Exit::Done;
    for key in &keys {
        let found = tree.get(key)?;
        if found.is_none() {
            exit = Exit::NotFound;
        }
        if json {
            let mut object = Map::new();
            put_json(&mut object, "key", key, form);
            object.insert("found".to_owned(), found.is_some().into());
            if let Some(value) = &found {
                put_json(&mut object, "value", value, form);
            }
            screen::json(&object).map_err(|failure| failure.if_unread(exit))?;
            continue;
        }
        let Some(value) = found else {
            say::note(&format!("shale: there is no key {}", escaped(key)));
            continue;
        };
        // With --raw the bytes of the value and nothing else.
        let mut text = Vec::with_capacity(value.len() + 1);
        form.print(&value, &mut text);
        if !form.raw {
            text.push(b'\n');
        }
        screen::out(&text).map_err(|failure| failure.if_unread(exit))?;
    }
    Ok(exit)
}

/// Writes one value into a file, a part at a time.
fn save(tree: &Tree, key: &[u8], path: &Path, json: bool) -> Outcome {
    let Some(mut reader) = tree.get_reader(key)? else {
        say::note(&format!("shale: there is no key {}", escaped(key)));
        return Ok(Exit::NotFound);
    };
    let mut target = Target::create(path, true, false)?;
    let (mut part, mut bytes) = (vec![0; 1 << 20], 0);
    loop {
        // What reading fails with says so itself: damage is no trouble with the output.
        let count = reader.read(&mut part).map_err(|error| {
            error.downcast::<shaledb::Error>().map_or_else(
                |error| Failure::file("read the value for", path, &error),
                Failure::from,
            )
        })?;
        if count == 0 {
            break;
        }
        target.write(&part[..count])?;
        bytes += count as u64;
    }
    target.finish()?;
    // Where the value went there is to be nothing else.
    if json && path != Path::new("-") {
        screen::json(&serde_json::json!({ "output": path, "bytes": bytes }))?;
    }
    Ok(Exit::Done)
}

/// Prints pairs in order.
pub(crate) fn scan(options: &ScanOptions, json: bool) -> Outcome {
    let bounds = options.range.bounds(options.form)?;
    let db = open::reading(&options.read)?;
    let tree = db.tree(&options.name.tree)?;
    let mut rows = tree.scan_with(bounds)?;
    if options.reverse {
        rows.seek_last()?;
    } else {
        rows.seek_first()?;
    }
    let limit = options.limit.unwrap_or(u64::MAX);
    let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let mut count = 0;
    let mut text = Vec::new();
    while rows.valid() && count < limit {
        count += 1;
        if !options.count {
            text.clear();
            print_row(&rows, options, json, &mut text)?;
            out.write_all(&text)?;
        }
        if options.reverse { rows.prev()? } else { rows.next()? }
    }
    if options.count {
        let answer = if json { format!("{{\"count\":{count}}}") } else { count.to_string() };
        writeln!(out, "{answer}")?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn print_row(rows: &Scan, options: &ScanOptions, json: bool, text: &mut Vec<u8>) -> Outcome<()> {
    let form: Form = options.form;
    let key = rows.key();
    if json {
        let mut object = Map::<String, Value>::new();
        put_json(&mut object, "key", key, form);
        if !options.keys_only {
            put_json(&mut object, "value", rows.value()?, form);
        }
        text.extend(serde_json::to_vec(&object)?);
    } else {
        form.print(key, text);
        if !options.keys_only {
            text.push(b'\t');
            form.print(rows.value()?, text);
        }
    }
    text.push(b'\n');
    Ok(())
}
