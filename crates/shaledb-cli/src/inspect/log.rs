//! Log files: WALs and manifests, record by record, past damage.

use crate::exit::{Exit, Outcome};
use serde_json::{Value, json};
use shaledb::inspect::{Edit, ManifestDump, ManifestLine, WalDump, WalLine};
use shaledb_lab::units::{bytes, grouped};
use std::io::{self, BufWriter, StdoutLock, Write};

/// What is printed of a log: a line for each part of it, and one at the end.
struct Lines {
    out: BufWriter<StdoutLock<'static>>,
    json: bool,
    damages: u64,
}

impl Lines {
    fn new(json: bool) -> Lines {
        Lines { out: BufWriter::new(io::stdout().lock()), json, damages: 0 }
    }

    /// A part of the log, for programs or for people.
    fn put(&mut self, object: Value, text: &str) -> io::Result<()> {
        match self.json {
            true => writeln!(self.out, "{object}"),
            false => writeln!(self.out, "{text}"),
        }
    }

    fn damage(&mut self, offset: u64, bytes: u64, what: &str) -> io::Result<()> {
        self.damages += 1;
        let object = json!({ "offset": offset, "bytes": bytes, "damage": what });
        self.put(object, &format!("{offset:>10}  DAMAGED, {bytes} bytes: {what}"))
    }

    /// The last line, for people.
    fn end(mut self, counted: &str) -> Outcome {
        if !self.json {
            writeln!(self.out, "{counted}; {}", damage_summary(self.damages))?;
        }
        self.out.flush()?;
        Ok(if self.damages == 0 { Exit::Done } else { Exit::Corruption })
    }
}

/// Shows a write-ahead log.
pub(super) fn wal(dump: WalDump, json: bool) -> Outcome {
    let mut lines = Lines::new(json);
    let (mut records, mut operations, mut data) = (0u64, 0u64, 0u64);
    for line in dump {
        match line? {
            WalLine::Record {
                offset,
                bytes,
                first_seq,
                durable_seq,
                count,
                puts,
                deletes,
                range_deletes,
                data_bytes,
            } => {
                (records, operations, data) = (records + 1, operations + count, data + data_bytes);
                let object = json!({
                    "offset": offset, "bytes": bytes, "first_seq": first_seq,
                    "durable_seq": durable_seq, "operations": count, "puts": puts,
                    "deletes": deletes, "range_deletes": range_deletes,
                    "data_bytes": data_bytes,
                });
                let last_seq = (first_seq + count).saturating_sub(1);
                let text = format!(
                    "{offset:>10}  operations {first_seq} to {last_seq}: {puts} puts, \
                     {deletes} deletes, {range_deletes} range deletes, {data_bytes} B (durable to \
                     {durable_seq})"
                );
                lines.put(object, &text)?;
            }
            WalLine::Damage { offset, bytes, what } => lines.damage(offset, bytes, what)?,
        }
    }
    lines.end(&format!(
        "{} records, {} operations, {} of keys and values",
        grouped(records),
        grouped(operations),
        bytes(data)
    ))
}

/// Shows a manifest.
pub(super) fn manifest(dump: ManifestDump, json: bool) -> Outcome {
    let mut lines = Lines::new(json);
    let mut edits = 0u64;
    for line in dump {
        match line? {
            ManifestLine::Edit { offset, bytes, number, edit } => {
                edits += 1;
                let texts = edit_texts(&edit);
                let object = json!({
                    "offset": offset, "bytes": bytes, "number": number, "changes": texts,
                });
                lines.put(object, &format!("{offset:>10}  edit {number}: {}", texts.join("; ")))?;
            }
            ManifestLine::Damage { offset, bytes, what } => lines.damage(offset, bytes, &what)?,
        }
    }
    lines.end(&format!("{} edits", grouped(edits)))
}

/// A log that was not closed ends in a torn record without anything having been lost, so damage is
/// shown and named as what it may be.
fn damage_summary(damages: u64) -> String {
    match damages {
        0 => "no damage".to_owned(),
        _ => format!(
            "{} damaged parts (one at the very end is what a crash leaves, and harmless)",
            grouped(damages)
        ),
    }
}

fn edit_texts(edit: &Edit) -> Vec<String> {
    let mut texts = Vec::new();
    for id in &edit.trees_dropped {
        texts.push(format!("tree {id} dropped"));
    }
    for (id, name, _) in &edit.trees_created {
        texts.push(format!("tree {id} `{name}` created"));
    }
    for tree in &edit.trees {
        let mut parts = Vec::new();
        for (level, table) in &tree.removed {
            parts.push(format!("-{table:06} of level {level}"));
        }
        for (level, meta) in &tree.added {
            parts.push(format!("+{:06} in level {level}", meta.id));
        }
        if let Some(seq) = tree.flushed_seq {
            parts.push(format!("flushed to {seq}"));
        }
        texts.push(format!("tree {}: {}", tree.tree, parts.join(", ")));
    }
    if let Some(file) = edit.next_file {
        texts.push(format!("next file {file}"));
    }
    if let Some(tree) = edit.next_tree {
        texts.push(format!("next tree {tree}"));
    }
    if let Some(seq) = edit.last_seq {
        texts.push(format!("operations to {seq}"));
    }
    if let Some(log) = edit.log {
        texts.push(format!("the log starts in file {} after operation {}", log.file, log.seq));
    }
    texts
}
