//! A table file: its sections, its blocks, its entries.

use super::short;
use crate::args::InspectOptions;
use crate::exit::{Exit, Outcome};
use crate::screen;
use serde_json::{Map, Value, json};
use shale::base::key::Kind;
use shale::fs::ReadFile;
use shale::table::compress::id as codec_id;
use shale::table::format::{BlockInfo, FOOTER_BYTES, Footer, Handle, decode_frame, open_frame};
use shale::table::index::Index;
use shale::table::{Block, Table, TableMeta};
use shale::{Env, Error};
use shale_lab::report::plain_table;
use shale_lab::units::{bytes, grouped, three_digits};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// How much larger the blocks were.
pub(super) fn ratio(raw: u64, stored: u64) -> f64 {
    raw as f64 / stored.max(1) as f64
}

fn codec_name(codec: u8) -> &'static str {
    match codec {
        codec_id::NONE => "none",
        codec_id::LZ4 => "lz4",
        codec_id::ZLIB => "zlib",
        codec_id::ZSTD => "zstd",
        _ => "unknown",
    }
}

/// An open table file.
struct File<'a> {
    path: &'a Path,
    file: Arc<dyn ReadFile>,
    footer: Footer,
    index: Index,
}

impl File<'_> {
    fn open(path: &Path) -> Outcome<File<'_>> {
        let file = Env::os().fs.open(path)?;
        let length = file.len()?;
        let start = length.saturating_sub(FOOTER_BYTES as u64);
        let mut tail = vec![0; (length - start) as usize];
        file.read_at(start, &mut tail)?;
        let footer =
            Footer::decode(&tail, length).map_err(|what| Error::corruption(path, start, what))?;
        let image = frame(path, &*file, footer.index)?;
        let index = Index::parse(image, footer.data_bytes())
            .map_err(|what| Error::corruption(path, footer.index.offset, what))?;
        Ok(File { path, file, footer, index })
    }

    /// One block as it lies in the file.
    fn stored(&self, info: &BlockInfo) -> Outcome<Vec<u8>> {
        let mut stored = vec![0; info.handle.bytes as usize];
        self.file.read_at(info.handle.offset, &mut stored)?;
        Ok(stored)
    }

    fn damaged(&self, info: &BlockInfo, what: &str) -> Error {
        Error::corruption(self.path, info.handle.offset, what)
    }
}

fn frame(path: &Path, file: &dyn ReadFile, handle: Handle) -> Outcome<Vec<u8>> {
    let mut stored = vec![0; handle.bytes as usize];
    file.read_at(handle.offset, &mut stored)?;
    let mut image = Vec::new();
    decode_frame(&stored, &mut image)
        .map_err(|what| Error::corruption(path, handle.offset, what))?;
    Ok(image)
}

/// What a table says of itself, for programs.
pub(super) fn meta_json(meta: &TableMeta, level: Option<usize>) -> Value {
    let mut object = Map::new();
    if let Some(level) = level {
        object.insert("level".into(), level.into());
    }
    let numbers = [
        ("table", meta.id),
        ("bytes", meta.file_bytes),
        ("entries", meta.entries),
        ("deletes", meta.deletes),
        ("range_deletes", meta.range_deletes),
        ("blocks", meta.blocks),
        ("key_bytes", meta.key_bytes),
        ("value_bytes", meta.value_bytes),
        ("raw_bytes", meta.raw_bytes),
        ("data_bytes", meta.data_bytes),
        ("min_seq", meta.min_seq),
        ("max_seq", meta.max_seq),
        ("ingest_seq", meta.ingest_seq),
    ];
    object.extend(numbers.map(|(name, value)| (name.to_owned(), value.into())));
    object.insert("blobs".into(), json!(meta.blobs));
    let form = crate::text::Form::default();
    crate::text::put_json(&mut object, "smallest", &meta.smallest, form);
    crate::text::put_json(&mut object, "largest", &meta.largest, form);
    object.into()
}

/// Shows a table.
pub(super) fn table(options: &InspectOptions, id: u64, json: bool) -> Outcome {
    let path = &options.path;
    let file = File::open(path)?;
    let (tree, meta) = Table::read_meta(&Env::os(), path, id)?;
    if options.keys {
        return keys(&file, options, json);
    }
    let mut codecs: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    let mut damage = Vec::new();
    let mut blocks =
        plain_table(&["block", "offset", "stored", "raw", "entries", "codec", "up to key"]);
    let mut rows = Vec::new();
    for at in 0..file.index.blocks() {
        let info = file.index.info(at);
        let stored = file.stored(&info)?;
        let (raw, codec) = match open_frame(&stored) {
            Ok(frame) => (frame.raw_len as u64, codec_name(frame.codec)),
            Err(what) => {
                damage.push(file.damaged(&info, what).to_string());
                (0, "damaged")
            }
        };
        let sums = codecs.entry(codec).or_default();
        *sums = (sums.0 + 1, sums.1 + raw, sums.2 + u64::from(info.handle.bytes));
        if options.blocks && json {
            rows.push(json!({
                "offset": info.handle.offset, "bytes": info.handle.bytes, "raw_bytes": raw,
                "entries": info.entries, "codec": codec,
            }));
        } else if options.blocks {
            blocks.add_row([
                at.to_string(),
                info.handle.offset.to_string(),
                info.handle.bytes.to_string(),
                raw.to_string(),
                info.entries.to_string(),
                codec.to_owned(),
                short(&file.index.separator(at)),
            ]);
        }
    }
    if json {
        let mut object = meta_json(&meta, None);
        let by_codec: Map<String, Value> = codecs
            .iter()
            .map(|(name, (count, raw, stored))| {
                let sums = json!({ "blocks": count, "raw_bytes": raw, "bytes": stored });
                ((*name).to_owned(), sums)
            })
            .collect();
        object["codecs"] = by_codec.into();
        object["tree"] = tree.into();
        object["sections"] = sections_json(&file.footer);
        object["damage"] = json!(damage);
        if options.blocks {
            object["block_list"] = rows.into();
        }
        screen::json(&object)?;
    } else {
        screen::line(&summary(tree, &meta, &file.footer, &codecs))?;
        if options.blocks {
            screen::line(&format!("\n{}", blocks.trim_fmt()))?;
        }
        for damage in &damage {
            screen::line(&format!("DAMAGED: {damage}"))?;
        }
    }
    Ok(if damage.is_empty() { Exit::Done } else { Exit::Corruption })
}

fn sections_json(footer: &Footer) -> Value {
    json!({
        "data": footer.data_bytes(),
        "filter": footer.filter.bytes,
        "range_deletes": footer.range_deletes.bytes,
        "index": footer.index.bytes,
        "properties": footer.properties.bytes,
        "footer": FOOTER_BYTES,
    })
}

fn summary(
    tree: u32,
    meta: &TableMeta,
    footer: &Footer,
    codecs: &BTreeMap<&str, (u64, u64, u64)>,
) -> String {
    let entries = meta.entries.max(1) as f64;
    let mut lines = vec![
        format!(
            "table {} of tree {tree}: {} entries ({} deletes), {} range deletes, in {} blocks, {} in all",
            meta.id,
            grouped(meta.entries),
            grouped(meta.deletes),
            grouped(meta.range_deletes),
            grouped(meta.blocks),
            bytes(meta.file_bytes)
        ),
        format!(
            "keys {} ({} B each), values {} ({} B each)",
            bytes(meta.key_bytes),
            three_digits(meta.key_bytes as f64 / entries),
            bytes(meta.value_bytes),
            three_digits(meta.value_bytes as f64 / entries)
        ),
        format!("keys from {} to {}", short(&meta.smallest), short(&meta.largest)),
        format!("operations {} to {}", grouped(meta.min_seq), grouped(meta.max_seq)),
        format!(
            "sections: data {}, filter {} ({} bits a key), range deletes {}, index {}, properties {}",
            bytes(footer.data_bytes()),
            bytes(footer.filter.bytes.into()),
            three_digits(f64::from(footer.filter.bytes) * 8.0 / entries),
            bytes(footer.range_deletes.bytes.into()),
            bytes(footer.index.bytes.into()),
            bytes(footer.properties.bytes.into())
        ),
    ];
    if meta.ingest_seq != 0 {
        lines.push(format!("ingested as operation {}", grouped(meta.ingest_seq)));
    }
    if !meta.blobs.is_empty() {
        lines.push(format!("refers to {} blob files", grouped(meta.blobs.len() as u64)));
    }
    for (name, (count, raw, stored)) in codecs {
        lines.push(format!(
            "{name}: {} blocks, {} -> {} (ratio {})",
            grouped(*count),
            bytes(*raw),
            bytes(*stored),
            three_digits(ratio(*raw, *stored))
        ));
    }
    lines.join("\n")
}

/// Every entry in order, versions and deletes included.
fn keys(file: &File<'_>, options: &InspectOptions, json: bool) -> Outcome {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut image = Vec::new();
    let mut exit = Exit::Done;
    for at in 0..file.index.blocks() {
        let info = file.index.info(at);
        let stored = file.stored(&info)?;
        let decoded = decode_frame(&stored, &mut image)
            .and_then(|()| Block::parse(std::mem::take(&mut image)));
        let block = match decoded {
            Ok(block) => block,
            Err(what) => {
                exit = Exit::Corruption;
                writeln!(out, "DAMAGED: {}", file.damaged(&info, what))?;
                continue;
            }
        };
        for entry in 0..block.entries() {
            let (seq, kind) = block.tag(entry);
            let value_bytes = block.value(entry).len();
            let kind = kind_name(kind);
            if json {
                let mut object = Map::new();
                crate::text::put_json(&mut object, "key", &block.key(entry), options.form);
                object.insert("seq".into(), seq.into());
                object.insert("kind".into(), kind.into());
                object.insert("value_bytes".into(), value_bytes.into());
                writeln!(out, "{}", serde_json::to_string(&object)?)?;
            } else {
                let mut text = Vec::new();
                options.form.print(&block.key(entry), &mut text);
                out.write_all(&text)?;
                writeln!(out, "\t{kind}\t{seq}\t{value_bytes}")?;
            }
        }
    }
    out.flush()?;
    Ok(exit)
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
