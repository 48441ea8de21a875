//! The room that a merge needs beside its inputs, where space has a limit.

use super::plan::{Settings, Shape};
use super::policy::chosen::Choice;
use super::policy::{self, LAST};
use super::score::Targets;
use crate::base::config::Codec;
use crate::table::meta::{TableMeta, Why};
use std::sync::Arc;

/// How many output tables' worth of the output level a part has that is merged in little room,
/// beside the table that makes it so many: see `split::by_tables`.
pub const PART_TABLES: u64 = 2;

/// How much a merge of little data may make beyond what its inputs take, in bytes.
const MARGIN: u64 = 4 << 10;

/// What merges below level 0 compress with where space is short: so none makes more than there was.
const TIGHT: Codec = Codec::Zstd(3);

/// The codec for tables of a level where bytes count more than the time to compress them. What is
/// set holds, and so does that the data does not become smaller.
pub fn tight(choice: Choice, output: usize) -> Choice {
    let is_light = matches!(choice.codec, Codec::None | Codec::Lz4 | Codec::Zstd(..0));
    if output == 0 || !is_light || matches!(choice.why, Why::Set | Why::Plain) {
        return choice;
    }
    Choice { codec: TIGHT, why: Why::StorageShort, ..choice }
}

/// What a table becomes at most when it is written with this codec.
pub fn output_bytes(table: &TableMeta, codec: Codec) -> u64 {
    let raw = table.raw_bytes.saturating_sub(table.data_bytes);
    let grown = match (codec, table.codec) {
        (Codec::None, _) => raw,
        // What the stronger codecs save, the lighter ones do not.
        (Codec::Lz4, Some(Codec::Zlib(_) | Codec::Zstd(_)) | None) => raw.min(table.data_bytes),
        (Codec::Zstd(..0), Some(Codec::Zlib(_) | Codec::Zstd(1..)) | None) => {
            raw.min(table.data_bytes / 2)
        }
        _ => 0,
    };
    table.file_bytes + grown
}

/// What tables of so many bytes may take at most: what each has beside its rows is not the same.
pub fn at_most(bytes: u64) -> u64 {
    bytes + bytes / 64 + MARGIN
}

/// The room that the table needs which needs the most to go down by itself.
pub fn of_largest(shape: &Shape, settings: &Settings) -> u64 {
    let targets = Targets::of(shape, settings);
    let largest = |level: usize, codec: Codec| {
        shape.levels[level].iter().map(|table| output_bytes(table, codec)).max().unwrap_or(0)
    };
    let of_level = |level: usize| {
        let output = (level + 1).max(targets.base).min(LAST);
        let codec = settings.codecs.of(output, targets.base).codec;
        let table = policy::table_bytes(settings.table_bytes, output, targets.bytes[output]);
        let stage = table.saturating_mul(PART_TABLES) + largest(output, codec);
        match largest(level, codec) {
            0 => 0,
            bytes if level == LAST => at_most(bytes),
            bytes => at_most(bytes + stage),
        }
    };
    (0..=LAST).map(of_level).max().unwrap_or(0)
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
    at_most(above + there.min(table.saturating_mul(PART_TABLES).saturating_add(largest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_bytes_count_the_last_level_is_compressed() {
        let choice = |codec, why| Choice { codec, dictionary: true, why };
        let light = choice(Codec::None, Why::CpuShort);
        assert_eq!(tight(light, LAST), choice(Codec::Zstd(3), Why::StorageShort));
        assert_eq!(tight(choice(Codec::Zstd(-3), Why::CpuShort), LAST).codec, Codec::Zstd(3));
        assert_eq!(tight(light, LAST - 1).codec, Codec::Zstd(3), "no merge makes more of it");
        assert_eq!(tight(light, 0), light);
        let kept =
            [(Codec::None, Why::Plain), (Codec::Lz4, Why::Set), (Codec::Zstd(9), Why::CpuFree)];
        for (codec, why) in kept {
            assert_eq!(tight(choice(codec, why), LAST), choice(codec, why));
        }
    }

    #[test]
    fn a_lighter_codec_makes_more() {
        let table = |codec| TableMeta {
            file_bytes: 60,
            raw_bytes: 120,
            data_bytes: 50,
            codec,
            ..TableMeta::default()
        };
        let bytes = |from, to| output_bytes(&table(from), to);
        assert_eq!(bytes(Some(Codec::Zstd(3)), Codec::None), 130);
        assert_eq!(bytes(Some(Codec::Zstd(3)), Codec::Lz4), 110);
        assert_eq!(bytes(Some(Codec::Lz4), Codec::Zstd(3)), 60);
    }
}
