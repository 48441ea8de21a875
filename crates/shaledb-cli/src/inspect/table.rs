//! A table file: its sections, its blocks, its entries.

use crate::args::InspectOptions;
use crate::exit::{Exit, Outcome};
use crate::screen;
use serde_json::Map;
use shaledb::Env;
use shaledb::base::cursor::Cursor;
use shaledb::base::key::Kind;
use shaledb::base::stats::Recorder;
use shaledb::inspect::{TableInspection, key_text};
use shaledb::table::{Table, TableEnv};
use shaledb_lab::report::plain_table;
use shaledb_lab::units::{bytes, grouped, three_digits};
use std::io::Write;
use std::sync::Arc;

/// Memory for reading one table: one block at a time is enough.
const MEMORY_BYTES: u64 = 8 << 20;

/// Shows a table.
pub(super) fn table(options: &InspectOptions, found: &TableInspection, json: bool) -> Outcome {
    let exit = if found.damage.is_empty() { Exit::Done } else { Exit::Corruption };
    tell(options, found, json).map_err(|failure| failure.if_unread(exit))?;
    Ok(exit)
}

fn tell(options: &InspectOptions, found: &TableInspection, json: bool) -> Outcome<()> {
    if json {
        let mut object = serde_json::to_value(found)?;
        if !options.blocks
            && let Some(object) = object.as_object_mut()
        {
            object.remove("blocks");
        }
        return screen::json(&object);
    }
    screen::line(&summary(found))?;
    if options.blocks {
        screen::line(&format!("\n{}", blocks(found)))?;
    }
    for damage in &found.damage {
        screen::line(&format!("DAMAGED: {}: {damage}", options.path.display()))?;
    }
    Ok(())
}

fn summary(found: &TableInspection) -> String {
    let meta = &found.meta;
    let each = |total: u64| three_digits(total as f64 / meta.entries.max(1) as f64);
    let mut lines = vec![
        format!(
            "table {} of tree {}: {} entries ({} deletes), {} range deletes, in {} blocks, {}",
            meta.id,
            found.tree,
            grouped(meta.entries),
            grouped(meta.deletes),
            grouped(meta.range_deletes),
            grouped(meta.blocks),
            bytes(meta.file_bytes)
        ),
        format!(
            "keys {} ({} B each), values {} ({} B each)",
            bytes(meta.key_bytes),
            each(meta.key_bytes),
            bytes(meta.value_bytes),
            each(meta.value_bytes)
        ),
        format!("keys from {} to {}", key_text(&meta.smallest), key_text(&meta.largest)),
        format!("operations {} to {}", grouped(meta.min_seq), grouped(meta.max_seq)),
        format!(
            "sections: dictionary {}, data {}, filter {} ({} bits a key), range deletes {}, \
             index {}, properties {}",
            bytes(found.dictionary_bytes),
            bytes(meta.data_bytes),
            bytes(found.filter_bytes),
            three_digits(found.filter_bits_per_entry),
            bytes(found.range_delete_bytes),
            bytes(found.index_bytes),
            bytes(found.properties_bytes)
        ),
    ];
    if !meta.blobs.is_empty() {
        lines.push(format!("refers to {} blob files", grouped(meta.blobs.len() as u64)));
    }
    if let Some(codec) = meta.codec {
        lines.push(format!("chosen codec: {codec}, since {}", meta.why.words()));
    }
    for total in &found.codecs {
        lines.push(format!(
            "{}: {} blocks, {} -> {} (ratio {})",
            total.codec,
            grouped(total.blocks),
            bytes(total.raw_bytes),
            bytes(total.bytes),
            three_digits(total.ratio)
        ));
    }
    for range in &found.range_deletes {
        lines.push(format!("deleted: {} to {} as of {:?}", range.start, range.end, range.seqs));
    }
    lines.join("\n")
}

fn blocks(found: &TableInspection) -> String {
    let header = ["block", "offset", "stored", "raw", "entries", "deletes", "codec", "up to key"];
    let mut table = plain_table(&header);
    for (at, block) in found.blocks.iter().enumerate() {
        table.add_row([
            at.to_string(),
            block.offset.to_string(),
            block.bytes.to_string(),
            block.raw_bytes.to_string(),
            block.entries.to_string(),
            block.deletes.to_string(),
            block.codec.to_owned(),
            block.separator.clone(),
        ]);
    }
    table.trim_fmt()
}

/// Every entry in order, versions and deletes included, up to the first damage.
pub(super) fn keys(options: &InspectOptions, found: &TableInspection, json: bool) -> Outcome {
    let env = TableEnv::new(Env::os(), MEMORY_BYTES, Arc::new(Recorder::new()));
    let table = Table::new(found.meta.clone(), options.path.clone(), &env);
    let mut scan = table.scan(None, None);
    scan.seek_first()?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut text = Vec::new();
    while scan.valid() {
        let (kind, seq, value_bytes) = (kind_name(scan.kind()), scan.seq(), scan.value().len());
        if json {
            let mut object = Map::new();
            shaledb_cli::text::put_json(&mut object, "key", scan.key(), options.form);
            object.insert("seq".into(), seq.into());
            object.insert("kind".into(), kind.into());
            object.insert("value_bytes".into(), value_bytes.into());
            writeln!(out, "{}", serde_json::to_string(&object)?)?;
        } else {
            text.clear();
            options.form.print(scan.key(), &mut text);
            out.write_all(&text)?;
            writeln!(out, "\t{kind}\t{seq}\t{value_bytes}")?;
        }
        scan.next()?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Delete => "delete",
        Kind::Put => "put",
        Kind::RangeDelete => "range-delete",
        Kind::Merge => "merge",
        Kind::Blob => "blob",
    }
}
