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

/// What a level of zstd may lose of what a higher one saves: one part in so many of the blocks.
const LEVEL_SHARE: u64 = 8;
/// And tables without the tree's dictionary, of what inputs with it save: measured were 8 to 29 %
/// (docs/decisions/0009-dictionaries.md).
const DICTIONARY_SHARE: u64 = 3;

/// The codec for tables of a level where bytes count more than the time to compress them. What is
/// set holds, and so does that the data does not become smaller. The dictionary of the tree, if it
/// has one, is there because it saves.
pub fn tight(choice: Choice, output: usize) -> Choice {
    if output == 0 || matches!(choice.why, Why::Set | Why::Plain) {
        return choice;
    }
    let is_light = matches!(choice.codec, Codec::None | Codec::Lz4 | Codec::Zstd(..0));
    let (codec, why) =
        if is_light { (TIGHT, Why::StorageShort) } else { (choice.codec, choice.why) };
    Choice { codec, dictionary: true, why }
}

/// What a table becomes at most when it is written so.
pub fn output_bytes(table: &TableMeta, to: Choice) -> u64 {
    let raw = table.raw_bytes.saturating_sub(table.data_bytes);
    let data = table.data_bytes;
    let grown = match (to.codec, table.codec) {
        (Codec::None, _) => raw,
        // What the stronger codecs save, the lighter ones do not.
        (Codec::Lz4, Some(Codec::Zlib(_) | Codec::Zstd(_)) | None) => data,
        (Codec::Zstd(..0), Some(Codec::Zlib(_) | Codec::Zstd(1..)) | None) => data / 2,
        (Codec::Zstd(level), has) => {
            let is_weaker = matches!(has, Some(Codec::Zstd(had)) if had > level);
            let may_have_had = !to.dictionary && matches!(has, Some(Codec::Zstd(1..)) | None);
            let part = |lost: bool, share: u64| if lost { data / share } else { 0 };
            part(is_weaker, LEVEL_SHARE) + part(may_have_had, DICTIONARY_SHARE)
        }
        _ => 0,
    };
    table.file_bytes + grown.min(raw)
}

/// What tables of so many bytes may take at most: what each has beside its rows is not the same.
pub fn at_most(bytes: u64) -> u64 {
    bytes + bytes / 64 + MARGIN
}

/// The room that the table needs which needs the most to go down by itself.
pub fn of_largest(shape: &Shape, settings: &Settings) -> u64 {
    let targets = Targets::of(shape, settings);
    let largest = |level: usize, to: Choice| {
        shape.levels[level].iter().map(|table| output_bytes(table, to)).max().unwrap_or(0)
    };
    let of_level = |level: usize| {
        let output = targets.below(level);
        // Where this counts, the dictionary is not left out: see `tight`.
        let to = Choice { dictionary: true, ..settings.codecs.of(output, targets.base) };
        let table = policy::table_bytes(settings.table_bytes, output, targets.bytes[output]);
        let stage = table.saturating_mul(PART_TABLES) + largest(output, to);
        match largest(level, to) {
            0 => 0,
            bytes if level == LAST => at_most(bytes),
            bytes => at_most(bytes + stage),
        }
    };
    (0..=LAST).map(of_level).max().unwrap_or(0)
}

/// The room that a merge needs beside its inputs: for all that comes from above the output level,
/// whose inputs stay to the end, and for a stage of what is there.
pub fn needed(inputs: &[(usize, &[Arc<TableMeta>])], output: usize, table: u64, to: Choice) -> u64 {
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
        // Whatever was chosen while there was room: the inputs may have the dictionary.
        for codec in [Codec::Lz4, Codec::Zstd(1), Codec::Zstd(6)] {
            let without = Choice { dictionary: false, ..choice(codec, Why::CpuShort) };
            assert!(tight(without, LAST).dictionary, "{codec}");
        }
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
        let to = |codec| Choice { codec, dictionary: true, why: Why::CpuFree };
        let bytes = |from, codec| output_bytes(&table(from), to(codec));
        assert_eq!(bytes(Some(Codec::Zstd(3)), Codec::None), 130);
        assert_eq!(bytes(Some(Codec::Zstd(3)), Codec::Lz4), 110);
        assert_eq!(bytes(Some(Codec::Lz4), Codec::Zstd(3)), 60);
        assert_eq!(bytes(Some(Codec::Zstd(3)), Codec::Zstd(3)), 60);
        assert_eq!(bytes(Some(Codec::Zstd(9)), Codec::Zstd(3)), 66);
    }

    #[test]
    fn what_leaves_the_dictionary_out_makes_more() {
        let table = |codec, raw_bytes| TableMeta {
            file_bytes: 110,
            raw_bytes,
            data_bytes: 99,
            codec,
            ..TableMeta::default()
        };
        let to = |codec| Choice { codec, dictionary: false, why: Why::CpuShort };
        let bytes = |from, codec| output_bytes(&table(from, 300), to(codec));
        assert_eq!(bytes(Some(Codec::Zstd(3)), Codec::Zstd(3)), 143);
        assert_eq!(bytes(None, Codec::Zstd(3)), 143);
        assert_eq!(bytes(Some(Codec::Zstd(6)), Codec::Zstd(1)), 155);
        assert_eq!(bytes(Some(Codec::Lz4), Codec::Zstd(1)), 110, "it has none");
        let little = table(Some(Codec::Zstd(3)), 100);
        assert_eq!(
            output_bytes(&little, to(Codec::Zstd(3))),
            111,
            "not more than there is to save"
        );
    }
}
