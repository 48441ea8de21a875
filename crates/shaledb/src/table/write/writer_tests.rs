use super::*;
use crate::base::cursor::Cursor;
use crate::base::key::SEQ_MAX;
use crate::base::ranges::RangeDelete;
use crate::table::testing::{Chance, World, entries, options};

fn ranges(list: &[(&str, &str, SeqNo)]) -> RangeDeletes {
    RangeDeletes::new(list.iter().map(|&(start, end, seq)| RangeDelete {
        start: start.into(),
        end: end.into(),
        seq,
    }))
}

fn put(key: &str, seq: SeqNo) -> (Vec<u8>, SeqNo, Kind, Vec<u8>) {
    (key.into(), seq, Kind::Put, b"value".to_vec())
}

#[test]
fn refuses_what_does_not_ascend() {
    let world = World::new(8 << 20);
    let mut writer = TableWriter::new(world.fs_create(1), 1, options(Codec::None, 64));
    writer.add(b"b", 5, Kind::Put, b"").unwrap();
    for (key, seq) in [(b"b", 5), (b"b", 6), (b"a", 1)] {
        assert!(matches!(writer.add(key, seq, Kind::Put, b""), Err(Error::InvalidArgument(_))));
    }
    writer.add(b"b", 4, Kind::Put, &[7; 100]).unwrap();
    writer.add(b"b", 3, Kind::Put, &[7; 100]).unwrap();
    assert!(writer.add(b"b", 3, Kind::Put, b"").is_err());
    assert_eq!(writer.entries(), 3);
    assert!(writer.add(b"c", 3, Kind::Blob, b"").is_err());
    let empty = TableWriter::new(world.fs_create(2), 2, options(Codec::None, 64));
    assert!(empty.is_empty() && empty.finish().is_err());
}

#[test]
fn describes_the_table() {
    let world = World::new(8 << 20);
    let rows = [put("b", 9), put("b", 7), (b"d".to_vec(), 8, Kind::Delete, vec![])];
    let meta = world.write(4, options(Codec::Lz4, 1000), &rows);
    assert_eq!((meta.id, meta.entries, meta.deletes, meta.blocks), (4, 3, 1, 1));
    assert_eq!((&meta.smallest[..], &meta.largest[..]), (&b"b"[..], &b"d"[..]));
    assert!(!meta.largest_exclusive);
    assert_eq!((meta.min_seq, meta.max_seq, meta.ingest_seq), (7, 9, 0));
    assert_eq!((meta.key_bytes, meta.value_bytes), (3, 10));
    let read =
        crate::table::Table::read_meta(&world.shared.env, &crate::table::testing::path(4), 4);
    assert_eq!(read.unwrap(), (1, meta));
}

#[test]
fn range_deletes_widen_the_table() {
    let world = World::new(8 << 20);
    let cases = [
        (ranges(&[("a", "c", 20)]), "a", "d", false),
        (ranges(&[("c", "d", 20)]), "b", "d", false),
        (ranges(&[("c", "dd", 20)]), "b", "dd", true),
        (ranges(&[("a", "b", 20), ("x", "z", 2)]), "a", "z", true),
    ];
    for (ranges, smallest, largest, exclusive) in cases {
        let rows = [put("b", 9), put("d", 7)];
        let meta = world.write_with(1, options(Codec::None, 100), &rows, &ranges);
        assert_eq!(meta.smallest, smallest.as_bytes());
        assert_eq!((&meta.largest[..], meta.largest_exclusive), (largest.as_bytes(), exclusive));
        assert_eq!(meta.max_seq, 20);
        assert_eq!(meta.range_deletes, ranges.fragments().len() as u64);
        assert_eq!(*world.open(meta).range_deletes().unwrap(), ranges);
    }
}

#[test]
fn blocks_keep_to_their_size() {
    let world = World::new(8 << 20);
    let mut rows = entries(200, 1, 1);
    rows[50].3 = vec![b'x'; 5000];
    let table = world.open(world.write(1, options(Codec::None, 1000), &rows));
    let mut single = 0;
    for (_, info) in table.blocks().unwrap() {
        if info.handle.bytes > 1000 + 150 {
            assert_eq!(info.entries, 1);
            single += 1;
        }
    }
    assert_eq!(single, 1);
    let mean = table.meta.raw_bytes / table.meta.blocks;
    assert!(mean > 800, "{mean}");
}

/// A secondary index of long texts with many rows for each: what keys have in common ends.
#[test]
fn blocks_keep_to_their_size_where_a_prefix_ends() {
    let world = World::new(8 << 20);
    let text = |letter: u8, row: u32| [&vec![letter; 1000][..], &row.to_be_bytes()].concat();
    let keys = (0..900).map(|row| text(b'a', row)).chain((0..900).map(|row| text(b'b', row)));
    let rows: Vec<_> = keys.map(|key| (key, 1, Kind::Put, Vec::new())).collect();
    let table = world.open(world.write(1, options(Codec::None, 16 << 10), &rows));
    for (_, info) in table.blocks().unwrap() {
        assert!(info.handle.bytes <= 16 << 10, "{}", info.handle.bytes);
    }
    assert!(
        table.meta.blocks <= 6,
        "what keys have in common is there once: {}",
        table.meta.blocks
    );
    // But one that has hardly begun goes on: many short runs of keys fill blocks together.
    let keys = (0..40u8).flat_map(|text| (0..30).map(move |row| (text, row)));
    let short = |(text, row): (u8, u32)| [&vec![text; 50][..], &row.to_be_bytes()].concat();
    let rows: Vec<_> = keys.map(|key| (short(key), 1, Kind::Put, Vec::new())).collect();
    let table = world.open(world.write(3, options(Codec::None, 16 << 10), &rows));
    let mean = table.meta.raw_bytes / table.meta.blocks;
    assert!(mean > 8 << 10 && mean <= 32 << 10, "{mean}");
    // Keys of which nearly nothing is left take memory all the same.
    let keys = (0..300u32).map(|row| [&vec![7; 60_000][..], &row.to_be_bytes()].concat());
    let rows: Vec<_> = keys.map(|key| (key, 1, Kind::Put, Vec::new())).collect();
    let table = world.open(world.write(2, options(Codec::None, 1 << 20), &rows));
    assert!(table.meta.blocks >= 4, "{}", table.meta.blocks);
}

/// Who cuts tables asks where blocks begin, and must be told of each.
#[test]
fn where_blocks_begin_is_known_before() {
    let world = World::new(8 << 20);
    for (texts, rows, prefix) in [(3, 900, 1000), (200, 60, 300), (2000, 3, 20), (1, 5000, 0)] {
        let mut writer = TableWriter::new(world.fs_create(1), 1, options(Codec::None, 4096));
        let mut begun = 0;
        for text in 0..texts as u32 {
            for row in 0..rows as u32 {
                let letters = text.to_be_bytes();
                let key = [&letters[..], &vec![b'x'; prefix], &row.to_be_bytes()].concat();
                let begins = writer.begins_block(&key, 10);
                writer.add(&key, 1, Kind::Put, &[7; 10]).unwrap();
                assert_eq!(begins, writer.builder.entries() == 1, "{text} {row}");
                begun += u32::from(begins);
            }
        }
        assert!(begun > 3, "{begun}");
    }
}

#[test]
fn the_estimate_is_near_the_file() {
    let world = World::new(8 << 20);
    let rows = entries(5000, 1, 1);
    for codec in [Codec::None, Codec::Zstd(1)] {
        let mut writer = TableWriter::new(world.fs_create(1), 1, options(codec, 4096));
        for (key, seq, kind, value) in &rows {
            writer.add(key, *seq, *kind, value).unwrap();
        }
        let estimate = writer.estimated_bytes() as f64;
        let bytes = writer.finish().unwrap().file_bytes as f64;
        assert!((estimate / bytes - 1.0).abs() < 0.03, "{estimate} {bytes}");
    }
}

#[test]
fn a_table_without_filter_is_read_too() {
    let world = World::new(8 << 20);
    let rows = entries(100, 1, 1);
    let options = TableOptions { filter_bits: 0, ..options(Codec::Lz4, 500) };
    let table = world.open(world.write(1, options, &rows));
    table.verify().unwrap();
    for (key, ..) in &rows {
        assert!(table.get(key, hash(key), SEQ_MAX).unwrap().is_some());
    }
}

#[test]
fn plain_blocks_of_a_table_without_a_codec_are_tried() {
    let world = World::new(8 << 20);
    let mut chance = Chance(1);
    let mut noise = || (0..600).map(|_| chance.below(256) as u8).collect::<Vec<u8>>();
    let write = |id, key: &[u8], value: &[u8], why| {
        let options = TableOptions { why, ..options(Codec::None, 500) };
        let mut writer = TableWriter::new(world.fs_create(id), id, options);
        writer.add(key, 0, Kind::Put, value).unwrap();
        world.open(writer.finish().unwrap())
    };
    for (id, why, taken) in [(1, Why::Set, true), (2, Why::CpuShort, false)] {
        let mut writer =
            TableWriter::new(world.fs_create(id + 8), id + 8, options(Codec::Zstd(3), 500));
        // Two blocks that do not become smaller, so that plain ones are believed.
        writer.add(b"a", 0, Kind::Put, &noise()).unwrap();
        writer.add(b"b", 0, Kind::Put, &noise()).unwrap();
        let other = write(id, b"c", &[7; 600], why);
        let mut scan = other.scan(None, None);
        scan.seek_first().unwrap();
        assert_eq!(writer.takes_block(&scan.raw_block().unwrap()), taken, "{why:?}");
    }
}
