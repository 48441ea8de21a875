use super::*;
use crate::base::coding::{checksum, hash};
use crate::base::cursor::Cursor;
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SEQ_MAX};
use crate::base::ranges::{RangeDelete, RangeDeletes};
use crate::table::Why;
use crate::table::compress::{decompress, decompress_with, id};
use crate::table::format::{FOOTER_BYTES, frame_codec, put_frame};
use crate::table::inspect::TableInspection;
use crate::table::salvage::SalvagedTable;
use crate::table::testing::{Chance, Entry, World, options, path};
use crate::table::{CursorOptions, Table, TableDictionary, TableMeta, TableOptions, TableWriter};

const ZSTD: Codec = Codec::Zstd(3);

fn with_dictionary(codec: Codec) -> TableOptions {
    TableOptions { dictionary: TableDictionary::OfTable, ..options(codec, 1024) }
}

/// Rows that have much in common.
fn alike(count: u64, word: &str) -> Vec<Entry> {
    let mut chance = Chance(7);
    let mut row = |number: u64| {
        let (a, b) = (chance.below(100_000), chance.below(1000));
        let value = format!(
            "{{\"id\":{number},\"{word}\":{{\"name\":\"user{a}\",\"status\":\"active\"}},\
             \"amount\":{b},\"currency\":\"EUR\",\"comment\":\"nothing of note\"}}"
        );
        (format!("{word}/{number:06}").into_bytes(), 0, Kind::Put, value.into_bytes())
    };
    (0..count).map(&mut row).collect()
}

fn noise(count: u64) -> Vec<Entry> {
    let mut chance = Chance(9);
    let mut row = |number: u64| {
        let value = (0..100).map(|_| chance.below(256) as u8).collect();
        (format!("{number:06}").into_bytes(), 0, Kind::Put, value)
    };
    (0..count).map(&mut row).collect()
}

fn ranges() -> RangeDeletes {
    RangeDeletes::new([RangeDelete { start: b"a".to_vec(), end: b"b".to_vec(), seq: 3 }])
}

fn content(world: &World, id: u64) -> Vec<u8> {
    world.fs.content(&path(id)).unwrap()
}

fn scanned(table: &Arc<Table>) -> Result<Vec<Entry>> {
    let mut scan = table.scan(None, None);
    scan.seek_first()?;
    let mut found = Vec::new();
    while scan.valid() {
        found.push((scan.key().to_vec(), scan.seq(), scan.kind(), scan.value().to_vec()));
        scan.next()?;
    }
    Ok(found)
}

/// Reads all of a table in every way.
fn check(table: &Arc<Table>, rows: &[Entry]) {
    table.verify().unwrap();
    assert!(scanned(table).unwrap() == rows);
    for fill_cache in [false, true] {
        let mut cursor = table.cursor(CursorOptions { fill_cache, ..CursorOptions::default() });
        cursor.seek_last().unwrap();
        for row in rows.iter().rev() {
            assert_eq!((cursor.key(), cursor.value()), (&row.0[..], &row.3[..]));
            cursor.prev().unwrap();
        }
    }
    for (key, _, _, value) in rows.iter().step_by(11) {
        let found = table.get(key, hash(key), SEQ_MAX).unwrap().unwrap();
        assert_eq!(&*found.value, value.as_slice());
    }
    let (first, last) = (&rows[rows.len() / 3].0, &rows[rows.len() / 2].0);
    let between = (rows.len() / 2 - rows.len() / 3) as u64;
    let found = table.entries_between(first, Some(last)).unwrap();
    assert!(found.abs_diff(between) < 20, "{found} of {between}");
}

#[test]
fn a_table_of_rows_that_are_alike_has_one() {
    let world = World::new(64 << 20);
    // The second goes on after the samples.
    for (number, count) in [(10, 1500), (20, 6000)] {
        let rows = alike(count, "order");
        let plain = world.write_with(number, options(ZSTD, 1024), &rows, &ranges());
        let meta = world.write_with(number + 1, with_dictionary(ZSTD), &rows, &ranges());
        assert!(meta.file_bytes * 10 < plain.file_bytes * 9, "{meta:?} {plain:?}");
        let same = TableMeta {
            id: plain.id,
            file_bytes: plain.file_bytes,
            data_bytes: plain.data_bytes,
            ..meta.clone()
        };
        assert_eq!(same, plain);
        let table = world.open(meta.clone());
        let before = world.shared.memory.meta();
        assert_eq!(*table.range_deletes().unwrap(), ranges());
        check(&table, &rows);
        let found = TableInspection::open(&world.shared.env, &path(number + 1), 1).unwrap();
        assert!(world.shared.memory.meta() - before > found.dictionary_bytes);
        assert!(found.version == 3 && found.damage.is_empty());
        assert_eq!(found.blocks[0].offset, found.dictionary_bytes);
        assert!(found.codecs.iter().any(|c| c.codec == "zstd+dictionary" && c.ratio > 2.0));
        drop(table);
        assert!(world.shared.memory.meta() <= before);
    }
}

#[test]
fn where_it_does_not_pay_the_file_is_as_without() {
    let few = alike(30, "order");
    let cases = [(ZSTD, noise(6000)), (ZSTD, few), (Codec::Lz4, alike(3000, "order"))];
    for (codec, rows) in cases {
        let world = World::new(64 << 20);
        world.write(1, options(codec, 1024), &rows);
        let meta = world.write(2, with_dictionary(codec), &rows);
        assert!(content(&world, 1) == content(&world, 2), "{codec}");
        check(&world.open(meta), &rows);
    }
}

#[test]
fn a_value_larger_than_all_samples_ends_the_wait() {
    let world = World::new(64 << 20);
    let mut rows = alike(100, "order");
    rows.push((b"z".to_vec(), 0, Kind::Put, vec![b'z'; 2 * SAMPLE_BYTES]));
    let meta = world.write(1, with_dictionary(ZSTD), &rows);
    check(&world.open(meta), &rows);
}

#[test]
fn a_damaged_dictionary_is_an_error_that_names_file_and_offset() {
    let world = World::new(64 << 20);
    let rows = alike(1500, "order");
    let meta = world.write(1, with_dictionary(ZSTD), &rows);
    let sound = content(&world, 1);
    let end = TableInspection::open(&world.shared.env, &path(1), 1).unwrap().dictionary_bytes;
    let read = |content: &[u8]| {
        world.fs_create(1).append(content).unwrap();
        world.shared.cache.set_capacity(0);
        let table = world.open(meta.clone());
        let key = &rows[700].0;
        let got = table.get(key, hash(key), SEQ_MAX).map(|found| found.map(|f| f.value.to_vec()));
        (got, table.verify().map(drop), scanned(&table))
    };
    let refused = |error: Error, at: Option<u64>| match error {
        Error::Corruption { path, offset, .. } => {
            assert!(path.ends_with("000001.table"));
            assert!(at.is_none_or(|at| at == offset), "{offset}");
        }
        other => panic!("{other}"),
    };
    let mut malformed = 0;
    for at in (0..end as usize).step_by(5) {
        let mut content = sound.clone();
        content[at] ^= 0x24;
        let (got, verified, scanned) = read(&content);
        refused(got.unwrap_err(), Some(0));
        refused(verified.unwrap_err(), Some(0));
        refused(scanned.unwrap_err(), Some(0));
        if at as u64 + 4 >= end || at % 3 != 0 && at > 200 {
            continue;
        }
        // With a checksum that fits.
        let covered = end as usize - 4;
        let sum = checksum(&content[..covered]).to_le_bytes();
        content[covered..end as usize].copy_from_slice(&sum);
        let (got, verified, scanned) = read(&content);
        malformed += u64::from(got.is_err());
        got.map(drop).unwrap_or_else(|error| refused(error, None));
        verified.unwrap_or_else(|error| refused(error, None));
        scanned.map(drop).unwrap_or_else(|error| refused(error, None));
    }
    assert!(malformed > 10, "{malformed}");
    let (got, verified, _) = read(&sound);
    assert!(got.unwrap().as_deref() == Some(&rows[700].3) && verified.is_ok());
}

#[test]
fn a_block_of_another_dictionary_is_refused() {
    let samples: Vec<Vec<u8>> = alike(60, "x").into_iter().map(|row| row.3).collect();
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let one = Dictionary::make(&samples[..30].concat(), &samples, 3).unwrap();
    let two = Dictionary::make(&samples[30..].concat(), &samples, 3).unwrap();
    let mut compressor = Compressor::new(ZSTD);
    assert!(compressor.use_dictionary(&one));
    let (mut image, mut out) = (Vec::new(), Vec::new());
    let raw = samples[..3].concat();
    let used = compressor.compress(&raw, &mut image);
    assert_eq!(used, id::ZSTD_DICTIONARY);
    decompress_with(Some(&one), used, &image, raw.len(), &mut out).unwrap();
    assert_eq!(out, raw);
    assert!(decompress_with(Some(&two), used, &image, raw.len(), &mut out).is_err());
    assert!(decompress_with(None, used, &image, raw.len(), &mut out).is_err());
    assert!(decompress(id::ZSTD, &image, raw.len(), &mut out).is_err());
    // Nor is a frame that names none.
    let mut image = Vec::new();
    assert_eq!(Compressor::new(ZSTD).compress(&raw.repeat(2), &mut image), id::ZSTD);
    assert!(decompress_with(Some(&one), used, &image, 2 * raw.len(), &mut out).is_err());
    assert!(Dictionary::parse(raw).is_err() && Dictionary::parse(Vec::new()).is_err());
    assert!(!Compressor::new(Codec::Lz4).use_dictionary(&one));
}

/// Copies tables into one, block by block as they are, whatever the writer says.
fn copied(world: &World, id: u64, tables: &[Arc<Table>], asked: bool) -> (TableMeta, u64) {
    let mut writer = TableWriter::new(world.fs_create(id), id, with_dictionary(ZSTD));
    let mut taken = 0;
    for table in tables {
        let mut scan = table.scan(None, None);
        scan.seek_first().unwrap();
        while let Some(raw) = scan.raw_block() {
            if !asked || writer.takes_block(&raw) {
                taken += u64::from(frame_codec(raw.bytes) == Some(id::ZSTD_DICTIONARY));
                writer.add_block(&raw).unwrap();
                scan.skip_block().unwrap();
                continue;
            }
            for _ in 0..raw.block.entries() {
                writer.add(scan.key(), scan.seq(), scan.kind(), scan.value()).unwrap();
                scan.next().unwrap();
            }
        }
    }
    (writer.finish().unwrap(), taken)
}

#[test]
fn blocks_are_reused_with_their_dictionary_only() {
    let world = World::new(64 << 20);
    let (a, b) = (alike(2000, "a"), alike(2000, "b"));
    let one = world.open(world.write(1, with_dictionary(ZSTD), &a));
    let two = world.open(world.write(2, with_dictionary(ZSTD), &b));
    let plain = world.open(world.write(3, options(ZSTD, 1024), &b));
    let both = [a.clone(), b.clone()].concat();
    // All of the first, which brings its dictionary, and none of the second.
    let (meta, taken) = copied(&world, 4, &[Arc::clone(&one), Arc::clone(&two)], true);
    assert_eq!(taken, one.meta.blocks);
    let four = world.open(meta);
    check(&four, &both);
    assert!(content(&world, 4).starts_with(&content(&world, 1)[..20_000]));
    // What has been reused can be reused again.
    let (meta, taken) = copied(&world, 5, &[four], true);
    assert_eq!(taken, meta.blocks);
    check(&world.open(meta), &both);
    // Without asking: what has another dictionary, or none, is right as well.
    for tables in [[&one, &two], [&one, &plain]] {
        let tables = tables.map(Arc::clone);
        let (meta, _) = copied(&world, 6, &tables, false);
        check(&world.open(TableMeta { id: 6, ..meta }), &both);
        world.shared.cache.set_capacity(0);
        world.shared.cache.set_capacity(64 << 20);
    }
    // While the first blocks wait, one that was made without ends the wait; a dictionary comes too
    // late then.
    let rows = alike(2000, "c");
    let late = world.open(world.write(7, with_dictionary(ZSTD), &rows));
    let (meta, taken) = copied(&world, 8, &[plain, Arc::clone(&late)], true);
    assert_eq!(taken, 0);
    check(&world.open(meta), &[b, rows.clone()].concat());
    let b = alike(4000, "b");
    let plain = world.open(world.write(9, options(ZSTD, 1024), &b));
    let (meta, taken) = copied(&world, 10, &[plain, late], true);
    assert_eq!(taken, 0);
    check(&world.open(meta), &[b, rows].concat());
}

#[test]
fn a_table_without_takes_no_block_with_one() {
    let world = World::new(64 << 20);
    let rows = alike(2000, "a");
    let table = world.open(world.write(1, with_dictionary(ZSTD), &rows));
    let mut writer = TableWriter::new(world.fs_create(2), 2, options(ZSTD, 1024));
    let mut scan = table.scan(None, None);
    scan.seek_first().unwrap();
    while let Some(raw) = scan.raw_block() {
        assert!(!writer.takes_block(&raw));
        writer.add_block(&raw).unwrap();
        scan.skip_block().unwrap();
    }
    let meta = writer.finish().unwrap();
    check(&world.open(meta), &rows);
    let found = TableInspection::open(&world.shared.env, &path(2), 2).unwrap();
    assert_eq!((found.version, found.dictionary_bytes), (1, 0));
}

#[test]
fn a_damaged_table_with_one_is_salvaged() {
    let world = World::new(64 << 20);
    let rows = alike(2000, "order");
    let meta = world.write_with(1, with_dictionary(ZSTD), &rows, &ranges());
    let sound = content(&world, 1);
    let end = TableInspection::open(&world.shared.env, &path(1), 1).unwrap().dictionary_bytes;
    let footer = sound.len() - 20;
    let salvage = |flips: &[usize], length: usize| {
        let mut content = sound[..length].to_vec();
        flips.iter().for_each(|&at| content[at] ^= 4);
        world.fs_create(1).append(&content).unwrap();
        SalvagedTable::open(&world.shared.env, &path(1), 1, 0).unwrap()
    };
    let all = rows.len() as u64;
    let table = salvage(&[], sound.len());
    assert!(table.entries == all && table.lost.is_empty() && table.meta == Some(meta));
    // Footer, footer and a block, the end of the file.
    let table = salvage(&[footer], sound.len());
    assert!(table.entries == all && table.ranges == ranges(), "{:?}", table.lost);
    let [lost] = &table.lost[..] else { panic!("{:?}", table.lost) };
    assert_eq!(lost.entries, Some(0));
    let table = salvage(&[footer, sound.len() / 2], sound.len());
    assert!(table.entries < all && table.entries > all * 9 / 10);
    let table = salvage(&[], sound.len() / 2);
    assert!(table.entries < all && table.entries > all / 5, "{}", table.entries);
    // Without the dictionary nothing can be read that was compressed with it, and it is said so.
    for flips in [&[end as usize / 2][..], &[end as usize / 2, footer]] {
        let table = salvage(flips, sound.len());
        assert_eq!(table.entries, 0);
        let told =
            table.lost.iter().any(|lost| lost.offset == 0 && lost.what.contains("dictionary"));
        assert!(told, "{:?}", table.lost);
        assert!(table.ranges == ranges());
    }
    let table = salvage(&[end as usize / 2], sound.len() / 2);
    assert!(table.is_lost() && !table.lost.is_empty());
}

#[test]
fn a_dictionary_where_a_block_should_be_is_refused() {
    let mut frame = Vec::new();
    put_frame(&mut Compressor::new(Codec::None), b"block", &mut frame);
    assert!(crate::table::format::open_dictionary_frame(&frame).is_err());
    assert!(decompress(id::DICTIONARY, b"block", 5, &mut Vec::new()).is_err());
    let world = World::new(64 << 20);
    world.write(1, with_dictionary(ZSTD), &alike(1500, "order"));
    let mut content = content(&world, 1);
    // A version that does not exist yet.
    let footer = content.len() - FOOTER_BYTES;
    content[footer + 48] = 4;
    let sum = checksum(&content[footer..footer + 52]).to_le_bytes();
    content[footer + 52..footer + 56].copy_from_slice(&sum);
    world.fs_create(1).append(&content).unwrap();
    let error = Table::read_meta(&world.shared.env, &path(1), 1).unwrap_err().to_string();
    assert!(error.contains("version"), "{error}");
}

/// The dictionary of a table.
fn dictionary_of(table: &Arc<Table>) -> Option<Arc<Dictionary>> {
    table.dictionary().unwrap()
}

#[test]
fn a_dictionary_that_is_given_is_used_where_it_pays() {
    let world = World::new(64 << 20);
    let one = world.open(world.write(1, with_dictionary(ZSTD), &alike(2000, "order")));
    let own = dictionary_of(&one).unwrap();
    let given = |codec| TableOptions {
        dictionary: TableDictionary::Given(Arc::clone(&own)),
        ..options(codec, 1024)
    };
    // Of a size that goes on after the samples, of a smaller one, and of a few rows.
    for (number, count, has) in [(2, 6000, true), (3, 400, true), (4, 10, false)] {
        let rows = alike(count, "order");
        let table = world.open(world.write(number, given(ZSTD), &rows));
        let found = dictionary_of(&table);
        assert_eq!(found.is_some_and(|found| Arc::ptr_eq(&found, &own)), has, "{count}");
        check(&table, &rows);
        // Its blocks go into another table that has it, as they are.
        let mut writer = TableWriter::new(world.fs_create(10 + number), 10 + number, given(ZSTD));
        let mut scan = table.scan(None, None);
        scan.seek_first().unwrap();
        while let Some(raw) = scan.raw_block() {
            assert_eq!(writer.takes_block(&raw), has);
            writer.add_block(&raw).unwrap();
            scan.skip_block().unwrap();
        }
        let copy = world.open(writer.finish().unwrap());
        check(&copy, &rows);
        assert!(!has || copy.meta.data_bytes == table.meta.data_bytes);
    }
    let rows = alike(3000, "order");
    let table = world.open(world.write(5, given(Codec::Lz4), &rows));
    assert!(dictionary_of(&table).is_none());
    check(&table, &rows);
}

#[test]
fn where_a_cheaper_codec_is_chosen_blocks_bring_their_dictionary_for_themselves() {
    let world = World::new(64 << 20);
    let (first, rest) = (alike(2000, "a"), alike(2000, "b"));
    let one = world.open(world.write(1, with_dictionary(ZSTD), &first));
    for (number, codec) in [(2, Codec::None), (3, Codec::Lz4), (4, Codec::Zstd(1))] {
        let chosen = TableOptions { why: Why::CpuShort, ..options(codec, 1024) };
        let mut writer = TableWriter::new(world.fs_create(number), number, chosen);
        let mut scan = one.scan(None, None);
        scan.seek_first().unwrap();
        while let Some(raw) = scan.raw_block() {
            assert!(writer.takes_block(&raw), "{codec}");
            writer.add_block(&raw).unwrap();
            scan.skip_block().unwrap();
        }
        for (key, seq, kind, value) in &rest {
            writer.add(key, *seq, *kind, value).unwrap();
        }
        let table = world.open(writer.finish().unwrap());
        check(&table, &[first.clone(), rest.clone()].concat());
        let found = TableInspection::open(&world.shared.env, &path(number), number).unwrap();
        assert!(found.damage.is_empty() && found.dictionary_bytes > 0);
        let of = |name: &str| found.codecs.iter().find(|c| c.codec == name).map(|c| c.blocks);
        assert_eq!(of("zstd+dictionary"), Some(one.meta.blocks), "{codec}");
        assert_eq!(found.codecs.len(), 2);
    }
    // Once there are other blocks it is too late.
    let chosen = TableOptions { why: Why::CpuShort, ..options(Codec::Lz4, 1024) };
    let mut writer = TableWriter::new(world.fs_create(5), 5, chosen);
    writer.add(b"A", 0, Kind::Put, b"first").unwrap();
    let mut scan = one.scan(None, None);
    scan.seek_first().unwrap();
    assert!(!writer.takes_block(&scan.raw_block().unwrap()));
}

#[test]
fn a_search_that_was_in_vain_is_not_repeated() {
    let known = |saved| Used { dictionary: None, saved, least: Least::USUAL };
    assert!(Used::default().may_find_more(2.5, 1 << 20) && !Used::default().may_find_more(2.4, 1));
    assert!(!known((4.0, 1 << 20)).may_find_more(3.5, 1 << 20));
    // Of other data, and where its own bytes are a smaller share.
    assert!(known((4.0, 1 << 20)).may_find_more(4.1, 1 << 20));
    assert!(known((4.0, 1 << 20)).may_find_more(3.5, (4 << 20) + 1));
}
