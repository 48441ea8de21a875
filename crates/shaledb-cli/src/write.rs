//! `put` and `delete`.

use crate::args::{DeleteOptions, PutOptions};
use crate::exit::{Exit, Failure, Outcome};
use crate::{open, screen};
use shaledb::{Batch, WriteOptions};
use std::io::Read;

/// Sets one key.
pub(crate) fn put(options: &PutOptions, json: bool) -> Outcome {
    let form = options.form;
    let key = form.read(&options.key).map_err(Failure::usage)?;
    // Everything that can be wrong with the input is found before a database is made for it.
    let mut reader: Box<dyn Read> = match (&options.file, options.value.as_deref()) {
        (Some(path), _) => Box::new(
            std::fs::File::open(path).map_err(|error| Failure::file("open", path, &error))?,
        ),
        (None, Some("-")) => Box::new(std::io::stdin().lock()),
        (None, value) => {
            let value = form.read(value.unwrap_or_default()).map_err(Failure::usage)?;
            Box::new(std::io::Cursor::new(value))
        }
    };
    let db = open::writing(&options.write, &options.settings)?;
    let tree = open::tree_or_create(&db, &options.name.tree, &options.settings)?;
    tree.put_reader(&key, &mut reader, WriteOptions::SYNC)?;
    drop(tree);
    db.close()?;
    if json {
        screen::json(&serde_json::json!({ "put": 1 }))?;
    }
    Ok(Exit::Done)
}

/// Deletes keys, a range or a prefix.
pub(crate) fn delete(options: &DeleteOptions, json: bool) -> Outcome {
    let form = options.form;
    let read = |text: &String| form.read(text).map_err(Failure::usage);
    let keys: Vec<Vec<u8>> = options.keys.iter().map(read).collect::<Outcome<_>>()?;
    let range = match (&options.prefix, &options.from, &options.to) {
        (Some(prefix), ..) => {
            let start = read(prefix)?;
            let end = prefix_end(&start).ok_or_else(|| {
                Failure::usage(
                    "--prefix must have a byte other than \\xff, because the range needs an end. \
                     To delete every key, drop the tree with `shale trees --drop`",
                )
            })?;
            Some((start, end))
        }
        (None, Some(from), Some(to)) => Some((read(from)?, read(to)?)),
        _ => None,
    };
    let db = open::existing(&options.write)?;
    let tree = db.tree(&options.name.tree)?;
    let mut batch = Batch::new();
    for key in &keys {
        batch.delete(&tree, key);
    }
    if let Some((start, end)) = &range {
        batch.delete_range(&tree, start, end);
    }
    db.write(&batch, WriteOptions::SYNC)?;
    drop((batch, tree));
    db.close()?;
    if json {
        screen::json(
            &serde_json::json!({ "deletes": keys.len(), "ranges": range.is_some() as u8 }),
        )?;
    }
    Ok(Exit::Done)
}

/// The first key past all keys with a prefix.
fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}
