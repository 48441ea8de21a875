//! Merges where space has a limit: which fit into the room that there is, and what makes room.

use super::choose::PickInput;
use super::level0::level0;
use super::plan::{Load, Plan, Reason};
use super::policy::LAST;
use super::{deletes, deletes::rewrite_last};
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

/// The next compaction where room has to be made: first of tables full of deletes, then of levels
/// over their targets, then of all that lies above the last level, which may hide what is below;
/// at last of tables that were written for a snapshot that has ended.
pub(super) fn pick(input: &PickInput<'_>, load: &Load<'_>) -> Option<Plan> {
    let above = |level: usize| {
        let tables = 0..input.level(level).len();
        let cheapest = input.cheapest(level, |_| true);
        let mut order = cheapest.into_iter().chain(tables);
        order.find_map(|index| input.down(Reason::Space, level, index..index + 1, false))
    };
    deletes::pick(input, load)
        .or_else(|| level0(input, Reason::Space))
        .or_else(|| (1..LAST).find_map(above))
        .or_else(|| {
            let oldest = load.oldest_snapshot();
            let is_stale = |table: &TableMeta| table.max_seq > 0 && table.max_seq <= oldest;
            rewrite_last(input, Reason::Space, is_stale)
        })
}

#[cfg(test)]
#[path = "space_tests.rs"]
mod tests;
