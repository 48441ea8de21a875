//! The room that a merge needs beside its inputs, where space has a limit.

use crate::base::config::Codec;
use crate::table::meta::TableMeta;
use std::sync::Arc;

/// How many output tables' worth of the output level a part has that is merged in little room,
/// beside the table that makes it so many: see `split::by_tables`.
pub const PART_TABLES: u64 = 2;

/// What a table becomes at most when it is written with this codec.
pub fn output_bytes(table: &TableMeta, codec: Codec) -> u64 {
    let raw = table.raw_bytes.saturating_sub(table.data_bytes);
    let grown = match (codec, table.codec) {
        (Codec::None, _) => raw,
        // What the stronger codecs save, the lighter ones do not.
        (Codec::Lz4, Some(Codec::Zlib(_) | Codec::Zstd(_)) | None) => raw.min(table.data_bytes),
        _ => 0,
    };
    table.file_bytes + grown
}

/// The room that a merge needs beside its inputs: for all that comes from above the output level,
/// whose inputs stay to the end, and for a stage of what is there.
pub fn needed(inputs: &[(usize, &[Arc<TableMeta>])], output: usize, table: u64, to: Codec) -> u64 {
    let mut above = 0;
    let mut there = 0;
    let mut largest = 0;
    for (level, tables) in inputs {
        for table in *tables {
            let bytes = output_bytes(table, to);
            if *level == output && output > 0 {
                there += bytes;
                largest = bytes.max(largest);
            } else {
                above += bytes;
            }
        }
    }
    above + there.min(table.saturating_mul(PART_TABLES).saturating_add(largest))
}
