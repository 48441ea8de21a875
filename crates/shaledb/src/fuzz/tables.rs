//! Blocks and tables of any bytes, or damaged and sealed again.

use super::input::{Input, assert_corruption};
use super::world::{Content, World, options};
use crate::base::coding::{checksum, hash};
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{SEQ_MAX, SeqNo, compare};
use crate::table::format::{FOOTER_BYTES, Footer, Handle};
use crate::table::{Block, CursorOptions, Table};
use std::cmp::Ordering;
use std::sync::Arc;

/// Steps that a walk over damaged data makes at most.
const STEPS_MAX: usize = 5000;

/// Parses the input as a block, and walks and searches it.
pub fn block(data: &[u8]) {
    let Ok(block) = Block::parse(data.to_vec()) else { return };
    let count = block.entries();
    let walk: Vec<usize> = if count <= 2000 {
        (0..count).collect()
    } else {
        (0..500).chain(count - 500..count).collect()
    };
    let mut sorted = count <= 2000;
    let mut last: Option<(Vec<u8>, SeqNo)> = None;
    for &index in &walk {
        let key = block.key(index);
        assert!(block.key_is(index, &key));
        assert_eq!(key, [block.prefix(), block.suffix(index)].concat());
        let (start, end) = block.value_range(index);
        assert_eq!(block.value(index), &block.image()[start..end]);
        let (seq, _) = block.tag(index);
        if let Some((last_key, last_seq)) = &last {
            sorted &= compare(last_key, *last_seq, &key, seq) == Ordering::Less;
        }
        assert!(block.lower_bound(&key, seq) <= count);
        last = Some((key, seq));
    }
    if sorted {
        for &index in &walk {
            assert_eq!(block.lower_bound(&block.key(index), block.seq(index)), index);
        }
    }
    assert!(block.count_deletes() <= count as u64 || count > 2000);
    assert!(block.lower_bound(b"", SEQ_MAX) <= count);
    assert!(block.lower_bound(&[0xff; 40], 0) <= count);
}

/// Reads a table of any bytes, or one that was damaged and sealed again.
///
/// Input: mode u8. Even: the file. Odd: options (3 bytes), number of patches u8, patches (place u16
/// in 65536th parts of the file, xor u8), operations.
pub fn table(data: &[u8]) {
    let world = World::new();
    let mut input = Input(data);
    if input.byte().is_multiple_of(2) {
        return exercise(&world.table_of(input.0), b"k");
    }
    let options = options(&mut input);
    let patches: Vec<(u16, u8)> =
        (0..input.byte()).map(|_| (input.number(), input.byte())).collect();
    let Some(meta) = Content::read(&mut input).write(&world, options) else { return };
    let key = meta.smallest.clone();
    let table = Table::new(meta, World::path(1), &world.shared);
    let mut content = world.fs.content(&World::path(1)).expect("the file was written");
    let frames = frames(&table, &content);
    drop(table);
    for (place, xor) in patches {
        let at = content.len() * usize::from(place) / 65536;
        content[at] ^= xor;
    }
    for frame in frames {
        reseal(&mut content[frame.offset as usize..frame.end() as usize]);
    }
    let footer = content.len() - FOOTER_BYTES;
    reseal(&mut content[footer..footer + FOOTER_BYTES - 8]);
    // A new world: nothing of the sound table is in its cache.
    exercise(&World::new().table_of(&content), &key);
}

/// Makes the last four bytes the checksum of those before them.
fn reseal(bytes: &mut [u8]) {
    if let Some((covered, sum)) = bytes.split_last_chunk_mut::<4>() {
        *sum = checksum(covered).to_le_bytes();
    }
}

/// Where the frames of a sound table are.
fn frames(table: &Arc<Table>, content: &[u8]) -> Vec<Handle> {
    let bytes = &content[content.len() - FOOTER_BYTES..];
    let footer = Footer::decode(bytes, content.len() as u64).expect("the table is sound");
    let mut frames = vec![footer.filter, footer.range_deletes, footer.index, footer.properties];
    if footer.dictionary.bytes > 0 {
        frames.push(footer.dictionary);
    }
    let mut scan = table.scan(None, None);
    scan.seek_first().expect("the table is sound");
    let mut offset = footer.data().start;
    while let Some(raw) = scan.raw_block() {
        let bytes = raw.bytes.len() as u32;
        frames.push(Handle { offset, bytes });
        offset += u64::from(bytes);
        scan.skip_block().expect("the table is sound");
    }
    frames
}

/// Reads a table in every way; any error must be one of damage.
fn exercise(table: &Arc<Table>, key: &[u8]) {
    let check = |result: Result<()>| {
        if let Err(error) = result {
            assert_corruption(&error);
        }
    };
    check(table.range_deletes().map(drop));
    check(table.verify().map(drop));
    for seq in [0, 1, SEQ_MAX] {
        for key in [b"", key, &table.meta.smallest, &table.meta.largest, &[0xff; 9]] {
            check(table.get(key, hash(key), seq).map(drop));
            check(table.bytes_before(key).map(drop));
        }
    }
    check(table.split_points(4).map(drop));
    let options = CursorOptions { fill_cache: false, readahead: 4096, ..CursorOptions::default() };
    let mut cursor = table.cursor(options);
    check(cursor.seek_first());
    check(walk(&mut cursor, Cursor::next));
    check(cursor.seek_last());
    check(walk(&mut cursor, Cursor::prev));
    check(cursor.seek(key, SEQ_MAX));
    check(walk(&mut cursor, Cursor::prev));
    check(cursor.seek_back(key, SEQ_MAX));
    check(walk(&mut cursor, Cursor::next));
    let mut scan = table.scan(Some(key), None);
    check(scan.seek_first());
    check(walk(&mut scan, Cursor::next));
}

fn walk<C: Cursor>(cursor: &mut C, step: impl Fn(&mut C) -> Result<()>) -> Result<()> {
    let mut bytes = 0;
    for _ in 0..STEPS_MAX {
        if !cursor.valid() {
            break;
        }
        bytes += cursor.key().len() + cursor.value().len();
        assert!(cursor.seq() < 1 << 62);
        std::hint::black_box((bytes, cursor.kind()));
        let stepped = step(cursor);
        assert!(stepped.is_ok() || !cursor.valid(), "valid after an error");
        stepped?;
    }
    Ok(())
}
