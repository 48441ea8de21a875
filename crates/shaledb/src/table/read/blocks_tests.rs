use super::*;
use crate::base::coding::hash;
use crate::base::config::Codec;
use crate::base::cursor::Cursor;
use crate::base::key::{Kind, SEQ_MAX};
use crate::cache::Weigh;
use crate::table::testing::{Entry, World, options, path};
use crate::table::{CursorOptions, TableDictionary, TableOptions};

/// Rows that codecs make a half of, or less.
fn rows(count: u64, word: &str) -> Vec<Entry> {
    let row = |number: u64| {
        let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let value = format!("{{\"{word}\":\"{noise:016x}\",\"status\":\"active\",\"of\":\"all\"}}");
        (format!("key/{number:06}").into_bytes(), 0, Kind::Put, value.into_bytes())
    };
    (0..count).map(row).collect()
}

fn world(share: f64) -> World {
    let world = World::new(64 << 20);
    world.shared.cache.fix_share(share);
    world
}

fn count(world: &World, counter: Counter) -> u64 {
    world.shared.recorder.totals().get(counter)
}

fn read_all(table: &Arc<Table>, rows: &[Entry]) {
    for (key, _, _, value) in rows {
        let found = table.get(key, hash(key), SEQ_MAX).unwrap().unwrap();
        assert_eq!(&*found.value, value.as_slice());
    }
}

fn scan_all(table: &Arc<Table>, rows: &[Entry], options: CursorOptions) {
    let mut cursor = table.cursor(options);
    cursor.seek_first().unwrap();
    for (key, _, _, value) in rows {
        assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
        cursor.next().unwrap();
    }
    assert!(!cursor.valid());
}

#[test]
fn what_was_read_once_is_decompressed_from_memory() {
    let rows = rows(3000, "name");
    let with_dictionary = TableDictionary::OfTable;
    let kinds = [
        options(Codec::Lz4, 4096),
        options(Codec::Zlib(6), 4096),
        options(Codec::Zstd(3), 4096),
        TableOptions { dictionary: with_dictionary, ..options(Codec::Zstd(3), 1024) },
    ];
    for (id, kind) in (1..).zip(kinds) {
        // No block is held uncompressed.
        let world = world(1.0);
        let table = world.open(world.write(id, kind, &rows));
        let dictionary = table.dictionary().unwrap().is_some();
        assert_eq!(dictionary, id == 4);
        read_all(&table, &rows);
        let read = count(&world, Counter::DataMisses);
        assert_eq!(read, table.meta.blocks);
        let calls = world.fs.counts().total();
        for _ in 0..2 {
            let unpacked = count(&world, Counter::DataUnpacked);
            read_all(&table, &rows);
            assert_eq!(count(&world, Counter::DataUnpacked) - unpacked, rows.len() as u64);
            for fill_cache in [false, true] {
                let options =
                    CursorOptions { fill_cache, readahead: 0, ..CursorOptions::default() };
                scan_all(&table, &rows, options);
            }
        }
        assert_eq!(count(&world, Counter::DataMisses), read);
        assert_eq!(world.fs.counts().total(), calls, "nothing is read again");
        let tiers = world.shared.cache.tiers();
        assert_eq!((tiers.raw, tiers.packed.1 as u64), ((0, 0), table.meta.blocks));
        assert!(tiers.packed.0 >= table.meta.data_bytes - 9 * table.meta.blocks);
    }
}

#[test]
fn scans_fill_both_tiers_or_none() {
    let rows = rows(3000, "name");
    for (fill_cache, readahead) in [(true, 0), (true, 20_000), (true, 1 << 20), (false, 1 << 20)] {
        let world = world(0.5);
        let table = world.open(world.write(1, options(Codec::Zstd(3), 1024), &rows));
        scan_all(&table, &rows, CursorOptions { fill_cache, readahead, range_bytes: 0 });
        let tiers = world.shared.cache.tiers();
        let expected = if fill_cache { table.meta.blocks as usize } else { 0 };
        assert_eq!((tiers.raw.1, tiers.packed.1), (expected, expected), "{readahead}");
    }
}

#[test]
fn blocks_that_are_stored_as_they_are_are_held_once() {
    let rows = rows(1000, "name");
    let world = world(0.5);
    let table = world.open(world.write(1, options(Codec::None, 4096), &rows));
    read_all(&table, &rows);
    let tiers = world.shared.cache.tiers();
    assert_eq!((tiers.raw.1 as u64, tiers.packed), (table.meta.blocks, (0, 0)));
}

#[test]
fn without_a_share_nothing_is_held_compressed() {
    let rows = rows(1000, "name");
    let world = World::new(64 << 20);
    let table = world.open(world.write(1, options(Codec::Zstd(3), 4096), &rows));
    read_all(&table, &rows);
    let tiers = world.shared.cache.tiers();
    assert_eq!((tiers.raw.1 as u64, tiers.packed), (table.meta.blocks, (0, 0)));
    assert_eq!((tiers.share, count(&world, Counter::DataUnpacked)), (0.0, 0));
}

#[test]
fn a_damaged_block_is_not_held() {
    let rows = rows(3000, "name");
    let world = world(1.0);
    let table = world.open(world.write(1, options(Codec::Zstd(3), 4096), &rows));
    let damaged = table.blocks().unwrap()[2].1.handle;
    assert!(world.fs.corrupt(&path(1), damaged.offset + 7, 0x10));
    let mut failed = 0;
    for (key, ..) in &rows {
        failed += u32::from(table.get(key, hash(key), SEQ_MAX).is_err());
    }
    assert!(failed > 1, "each time anew");
    assert_eq!(world.shared.cache.tiers().packed.1 as u64, table.meta.blocks - 1);
    // Damage that comes later is not seen by who finds the block in memory.
    assert!(world.fs.corrupt(&path(1), damaged.offset + 7, 0x10));
    read_all(&table, &rows);
    assert!(world.fs.corrupt(&path(1), damaged.offset + 7, 0x10));
    read_all(&table, &rows);
    assert!(table.verify().is_err());
}

#[test]
fn frames_of_a_removed_table_are_no_others() {
    let world = world(1.0);
    let old = rows(1000, "name");
    let table = world.open(world.write(1, options(Codec::Zstd(3), 4096), &old));
    read_all(&table, &old);
    table.mark_obsolete();
    drop(table);
    assert!(world.fs.content(&path(1)).is_none());
    let new = rows(1000, "other");
    let table = world.open(world.write(2, options(Codec::Zstd(3), 4096), &new));
    read_all(&table, &new);
    read_all(&table, &new);
}

#[test]
fn both_tiers_stay_within_the_bound() {
    let rows = rows(40_000, "name");
    for share in [0.0, 0.3, 0.8, 1.0] {
        let world = World::new(1 << 20);
        world.shared.cache.fix_share(share);
        let table = world.open(world.write(1, options(Codec::Lz4, 4096), &rows));
        for (key, ..) in rows.iter().step_by(7) {
            assert!(table.get(key, hash(key), SEQ_MAX).unwrap().is_some());
            let (cache, memory) = (&world.shared.cache, &world.shared.memory);
            assert!(cache.bytes() <= cache.capacity());
            assert!(cache.bytes() + memory.meta() <= memory.total() + memory.total() / 50);
        }
        let tiers = world.shared.cache.tiers();
        assert!(tiers.raw.0 + tiers.packed.0 > world.shared.cache.capacity() * 3 / 4, "{tiers:?}");
    }
    assert!(Block::default().bytes() > 0);
}

#[cfg(feature = "fault")]
#[test]
fn a_read_that_fails_leaves_nothing_behind() {
    use crate::fs::mem::{Call, Fault};
    let rows = rows(3000, "name");
    let world = world(1.0);
    let table = world.open(world.write(1, options(Codec::Zstd(3), 4096), &rows));
    // Index and filter are read before.
    let blocks = table.blocks().unwrap();
    for (nth, (key, ..)) in rows.iter().step_by(100).enumerate() {
        let held = world.shared.cache.tiers().packed.1;
        let struck = world.fs.faults_struck();
        world.fs.fail(Call::Read, 1, Fault::Io, true);
        let first = table.get(key, hash(key), SEQ_MAX);
        assert_eq!(first.is_err(), world.fs.faults_struck() > struck, "{nth}");
        if first.is_err() {
            assert_eq!(world.shared.cache.tiers().packed.1, held);
        }
        world.fs.clear_faults();
        assert!(table.get(key, hash(key), SEQ_MAX).unwrap().is_some());
    }
    read_all(&table, &rows);
    assert_eq!(world.shared.cache.tiers().packed.1, blocks.len());
    // What is in memory needs no disk.
    let struck = world.fs.faults_struck();
    world.fs.fail(Call::Read, 1, Fault::Io, false);
    read_all(&table, &rows);
    assert_eq!(world.fs.faults_struck(), struck);
}
