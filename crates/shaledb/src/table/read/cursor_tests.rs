use super::*;
use crate::base::config::Codec;
use crate::base::key::compare;
use crate::table::testing::{Chance, Entry, World, entries, options};
use crate::table::{BlockSlice, TableMeta};

fn here(cursor: &impl Cursor) -> Option<Entry> {
    cursor
        .valid()
        .then(|| (cursor.key().to_vec(), cursor.seq(), cursor.kind(), cursor.value().to_vec()))
}

/// Moves a cursor at random and a position in `rows` along with it.
fn walk(cursor: &mut TableCursor, rows: &[Entry], chance: &mut Chance, moves: usize) {
    let mut at = rows.len();
    for _ in 0..moves {
        let row = &rows[chance.below(rows.len() as u64) as usize];
        let mut key = row.0.clone();
        match chance.below(4) {
            0 => key.push(0),
            1 => drop(key.pop()),
            _ => {}
        }
        let seq = [row.1, row.1 + 1, row.1.saturating_sub(1), 0, SEQ_MAX][chance.below(5) as usize];
        let bound = rows.partition_point(|e| compare(&e.0, e.1, &key, seq).is_lt());
        match chance.below(8) {
            0 => {
                cursor.seek_first().unwrap();
                at = 0;
            }
            1 => {
                cursor.seek_last().unwrap();
                at = rows.len() - 1;
            }
            2 => {
                cursor.seek(&key, seq).unwrap();
                at = bound;
            }
            3 => {
                cursor.seek_back(&key, seq).unwrap();
                at = bound.checked_sub(1).unwrap_or(rows.len());
            }
            direction => {
                for _ in 0..chance.below(40) {
                    if at == rows.len() {
                        break;
                    }
                    if direction < 6 {
                        cursor.next().unwrap();
                        at += 1;
                    } else {
                        cursor.prev().unwrap();
                        at = at.checked_sub(1).unwrap_or(rows.len());
                    }
                    assert_eq!(here(cursor).as_ref(), rows.get(at));
                }
            }
        }
        assert_eq!(here(cursor).as_ref(), rows.get(at));
    }
}

#[test]
fn moves_as_a_sorted_list_does() {
    let mut chance = Chance(3);
    for (versions, block_bytes) in [(1, 200), (4, 100), (30, 100), (3, 100_000)] {
        let world = World::new(64 << 20);
        let rows = entries(150, versions, block_bytes as u64);
        let table = world.open(world.write(1, options(Codec::Lz4, block_bytes), &rows));
        for (fill_cache, readahead) in [(false, 0), (false, 1000), (true, 300), (false, 1 << 20)] {
            let mut cursor =
                table.cursor(CursorOptions { fill_cache, readahead, ..CursorOptions::default() });
            walk(&mut cursor, &rows, &mut chance, 400);
        }
    }
}

/// A newer version of a block's first key may be the last entry of the block before.
#[test]
fn the_first_entry_of_a_block_is_not_taken_for_the_only_one_of_its_key() {
    let world = World::new(1 << 20);
    let row = |key: u32, seq| (key.to_be_bytes().to_vec(), seq, Kind::Put, vec![b'v'; 90]);
    // At uneven distances, so that some are where a block ends.
    let of_key = |key: u32| match u64::from(key).pow(3) % 1009 % 19 {
        0 => vec![row(key, 9), row(key, 5)],
        _ => vec![row(key, 5)],
    };
    let rows: Vec<Entry> = (0..2_000).flat_map(of_key).collect();
    let table = world.open(world.write(1, options(Codec::None, 1_000), &rows));
    let mut cursor = table.cursor(CursorOptions::default());
    cursor.seek_last().unwrap();
    let (mut plain, mut cut) = (0, 0);
    while cursor.valid() {
        let key = cursor.key().to_vec();
        let versions = rows.iter().filter(|row| row.0 == key).count();
        let begins = cursor.entry == 0 && cursor.block.is_uniform() && cursor.seq() == 5;
        cut += u32::from(begins && versions == 2);
        if let Some(more) = cursor.plain_behind(5, &[], None) {
            assert!(versions == 1 && cursor.entry > more, "{key:?}");
            plain += 1;
            assert_eq!(cursor.plain_behind(4, &[], None), None, "it is not seen");
            assert_eq!(cursor.plain_behind(5, &[], Some(&key)), None, "another has the key too");
            assert_eq!(cursor.plain_behind(5, &key, None), Some(0), "the bound is a row");
        }
        cursor.prev().unwrap();
    }
    assert!(plain > 500 && cut > 0, "{plain} rows, {cut} keys in two blocks");
}

#[test]
fn an_ingested_table_has_one_sequence_number() {
    let world = World::new(64 << 20);
    let plain: Vec<Entry> =
        entries(100, 1, 1).into_iter().map(|row| (row.0, 0, Kind::Put, row.3)).collect();
    let meta = world.write(1, options(Codec::None, 300), &plain);
    let meta = TableMeta { ingest_seq: 500, min_seq: 500, max_seq: 500, ..meta };
    let table = world.open(meta);
    table.verify().unwrap();
    let rows: Vec<Entry> = plain.into_iter().map(|row| (row.0, 500, row.2, row.3)).collect();
    let mut cursor = table.cursor(CursorOptions::default());
    walk(&mut cursor, &rows, &mut Chance(8), 600);
    let hash = crate::base::coding::hash(&rows[7].0);
    assert!(table.get(&rows[7].0, hash, 499).unwrap().is_none());
    assert_eq!(table.get(&rows[7].0, hash, 500).unwrap().unwrap().seq, 500);
    let mut scan = table.scan(None, None);
    for (key, seq) in [(&rows[7].0, 500), (&rows[7].0, 499), (&rows[99].0, 3)] {
        scan.seek(key, seq).unwrap();
        cursor.seek(key, seq).unwrap();
        assert_eq!(here(&scan), here(&cursor));
    }
}

#[test]
fn reads_ahead_only_when_blocks_follow_each_other() {
    let world = World::new(64 << 20);
    let rows = entries(3000, 1, 1);
    let table = world.open(world.write(1, options(Codec::None, 1000), &rows));
    let reads = |options: CursorOptions, forward: bool| {
        let mut cursor = table.cursor(options);
        cursor.seek(&rows[1].0, SEQ_MAX).unwrap();
        let before = world.fs.counts().total();
        if forward {
            cursor.seek_first().unwrap();
        } else {
            cursor.seek_last().unwrap();
        }
        let mut count = 0;
        while cursor.valid() {
            count += 1;
            if forward { cursor.next().unwrap() } else { cursor.prev().unwrap() }
        }
        assert_eq!(count, rows.len());
        world.fs.counts().total() - before
    };
    let none = CursorOptions { fill_cache: false, readahead: 0, ..CursorOptions::default() };
    let some = CursorOptions { fill_cache: false, readahead: 1 << 20, ..CursorOptions::default() };
    assert!(table.meta.blocks > 100);
    for forward in [true, false] {
        assert!(reads(none, forward) >= table.meta.blocks - 1);
        assert!(reads(some, forward) < 12, "{}", reads(some, forward));
    }
    assert_eq!(world.shared.cache.entries(), 0);
    let filling = CursorOptions { fill_cache: true, ..some };
    reads(filling, true);
    assert_eq!(world.shared.cache.entries() as u64, table.meta.blocks);
    assert_eq!(reads(none, false), 0);
}

#[test]
fn a_value_outlives_the_move_of_its_cursor() {
    let world = World::new(64 << 20);
    let rows = entries(300, 1, 6);
    let table = world.open(world.write(1, options(Codec::Lz4, 400), &rows));
    let mut cursor = table.cursor(CursorOptions {
        fill_cache: false,
        readahead: 1 << 16,
        ..CursorOptions::default()
    });
    cursor.seek_first().unwrap();
    let mut values = Vec::new();
    while cursor.valid() {
        values.push(BlockSlice::value_of(Arc::clone(&cursor.block), cursor.entry));
        cursor.next().unwrap();
    }
    assert!(values.iter().zip(&rows).all(|(value, row)| **value == *row.3));
}

/// They begin with one block, which none of them may change.
#[test]
fn cursors_that_begin_together_do_not_share_what_they_read() {
    let world = World::new(64 << 20);
    let rows = entries(300, 1, 6);
    let table = world.open(world.write(1, options(Codec::Lz4, 400), &rows));
    for (fill_cache, readahead) in [(false, 0), (false, 1000), (true, 0)] {
        let options = CursorOptions { fill_cache, readahead, ..CursorOptions::default() };
        let mut cursors: Vec<TableCursor> = (0..3).map(|_| table.cursor(options)).collect();
        // And one of a thread that has ended.
        let of_another = std::thread::scope(|scope| {
            scope.spawn(|| table.cursor(options)).join().expect("it does not panic")
        });
        cursors.push(of_another);
        assert!(cursors.iter().all(|cursor| !cursor.valid()));
        for (at, cursor) in cursors.iter_mut().enumerate() {
            cursor.seek(&rows[70 * at].0, SEQ_MAX).unwrap();
        }
        assert!(!table.cursor(options).valid());
        for (at, cursor) in cursors.iter_mut().enumerate() {
            assert_eq!(here(cursor).as_ref(), rows.get(70 * at));
            cursor.seek(b"z", SEQ_MAX).unwrap();
            walk(cursor, &rows, &mut Chance(at as u64), 50);
        }
    }
}

#[test]
fn an_error_leaves_the_cursor_usable() {
    let world = World::new(64 << 20);
    let rows = entries(300, 1, 6);
    let meta = world.write(1, options(Codec::None, 400), &rows);
    let table = world.open(meta);
    let damaged = 2000;
    assert!(world.fs.corrupt(table.path(), damaged, 1));
    let mut cursor =
        table.cursor(CursorOptions { fill_cache: true, readahead: 0, ..CursorOptions::default() });
    cursor.seek_first().unwrap();
    let mut seen = 0;
    let error = loop {
        match cursor.next() {
            Ok(()) => seen += 1,
            Err(error) => break error,
        }
    };
    assert!(error.is_corruption() && seen > 3 && !cursor.valid());
    cursor.seek_last().unwrap();
    assert_eq!(here(&cursor).as_ref(), rows.last());
    assert!(world.fs.corrupt(table.path(), damaged, 1));
    walk(&mut cursor, &rows, &mut Chance(2), 200);
}

#[test]
fn what_a_scan_has_read_ahead_is_counted_and_is_little_where_memory_is() {
    let rows = entries(20_000, 1, 4);
    for (memory_bytes, readahead) in [(8 << 20, READAHEAD_BYTES_MIN), (256 << 20, 512 << 10)] {
        let world = World::new(memory_bytes);
        let table = world.open(world.write(1, options(Codec::None, 1000), &rows));
        let memory = &world.shared.memory;
        let cursor = CursorOptions { fill_cache: false, ..CursorOptions::default() };
        let mut cursor = table.cursor(cursor);
        cursor.seek_last().unwrap();
        assert_eq!(memory.work(), 0, "one block");
        let mut most = 0;
        while cursor.valid() {
            most = most.max(memory.work());
            cursor.prev().unwrap();
        }
        let wanted = readahead as u64..2 * readahead as u64;
        assert!(wanted.contains(&most), "{most} of {memory_bytes}");
        drop(cursor);
        assert_eq!(memory.work(), 0);
    }
}
