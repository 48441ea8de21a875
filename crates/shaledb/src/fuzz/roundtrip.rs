//! Tables written and read back, compared entry for entry with what was written.

use super::input::Input;
use super::world::{Content, World, options};
use crate::base::coding::hash;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{Kind, SEQ_MAX, SeqNo, compare};
use crate::base::ranges::RangeDeletes;
use crate::table::{CursorOptions, Table, TableMeta, TableOptions, TableWriter};
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

type Entry<'a> = (&'a [u8], SeqNo, Kind, &'a [u8]);
type Owned = (Vec<u8>, SeqNo, Kind, Vec<u8>);

/// Writes a table of the operations in the input, reads back all of it in every way, and copies
/// it, some blocks as they are.
///
/// Input: sequence number of an ingested table or 0 u8, options (3 bytes), which blocks to copy as
/// they are u8, operations.
pub fn table_roundtrip(data: &[u8]) {
    let mut input = Input(data);
    let ingest_seq = SeqNo::from(input.byte());
    let options = options(&mut input);
    let whole = input.byte();
    let mut content = Content::read(&mut input);
    if ingest_seq > 0 {
        // Such a table has one entry for each key, without a sequence number, and no range deletes.
        content.ranges.clear();
        let entries = std::mem::take(&mut content.entries);
        content.entries =
            entries.into_iter().map(|((k, _), said)| ((k, Reverse(0)), said)).collect();
    }
    let world = World::new();
    let Some(meta) = content.write(&world, options.clone()) else { return };
    let entries: Vec<Entry<'_>> = content
        .entries
        .iter()
        .map(|((key, seq), (kind, value))| (&key[..], seq.0.max(ingest_seq), *kind, &value[..]))
        .collect();
    assert_eq!(meta.entries, entries.len() as u64);
    assert_eq!(meta.deletes, entries.iter().filter(|e| e.2 == Kind::Delete).count() as u64);
    let said = Table::read_meta(&world.shared.env, &World::path(1), 1);
    assert_eq!(said.ok(), Some((1, meta.clone())), "the file says the same of itself");
    let meta = TableMeta { ingest_seq, ..meta };
    let table = Table::new(meta, World::path(1), &world.shared);
    sound(table.verify());
    assert_eq!(*sound(table.range_deletes()), RangeDeletes::new(content.ranges));
    check_walks(&table, &entries);
    check_seeks(&table, &entries);
    check_gets(&table, &entries);
    if ingest_seq == 0 && !entries.is_empty() {
        check_copy(&world, &table, options, whole, &entries);
    }
}

fn sound<T>(result: Result<T>) -> T {
    result.expect("the table is sound")
}

/// Every entry from both ends, and the part between two keys.
fn check_walks(table: &Arc<Table>, entries: &[Entry<'_>]) {
    let fill_cache = entries.len().is_multiple_of(2);
    let mut cursor =
        table.cursor(CursorOptions { fill_cache, readahead: 256, ..CursorOptions::default() });
    sound(cursor.seek_first());
    assert!(collect(&mut cursor, Cursor::next).iter().map(refer).eq(entries.iter().copied()));
    sound(cursor.seek_last());
    assert!(collect(&mut cursor, Cursor::prev).iter().map(refer).eq(entries.iter().rev().copied()));
    let mut scan = table.scan(None, None);
    sound(scan.seek_first());
    assert!(collect(&mut scan, Cursor::next).iter().map(refer).eq(entries.iter().copied()));
    if let (Some(start), Some(end)) =
        (entries.get(entries.len() / 3), entries.get(entries.len() / 2))
    {
        let mut scan = table.scan(Some(start.0), Some(end.0));
        sound(scan.seek_first());
        let part = entries.iter().filter(|e| e.0 >= start.0 && e.0 < end.0);
        assert!(collect(&mut scan, Cursor::next).iter().map(refer).eq(part.copied()));
    }
}

/// Every position at which something begins, and its neighbours.
fn check_seeks(table: &Arc<Table>, entries: &[Entry<'_>]) {
    let mut cursor =
        table.cursor(CursorOptions { fill_cache: true, readahead: 0, ..CursorOptions::default() });
    let mut scan = table.scan(None, None);
    for (key, seq, _, _) in entries {
        let longer = [key, &[0][..]].concat();
        let shorter = &key[..key.len().saturating_sub(1)];
        let positions = [
            (*key, *seq),
            (*key, seq + 1),
            (*key, seq.saturating_sub(1)),
            (*key, SEQ_MAX),
            (*key, 0),
            (&longer, SEQ_MAX),
            (shorter, *seq),
        ];
        for (key, seq) in positions {
            let at = entries.partition_point(|e| compare(e.0, e.1, key, seq) == Ordering::Less);
            sound(cursor.seek(key, seq));
            check_position(&cursor, entries.get(at));
            sound(cursor.seek_back(key, seq));
            check_position(&cursor, at.checked_sub(1).and_then(|at| entries.get(at)));
            sound(scan.seek(key, seq));
            check_position(&scan, entries.get(at));
        }
    }
}

fn check_position(cursor: &impl Cursor, expected: Option<&Entry<'_>>) {
    assert_eq!(cursor.valid(), expected.is_some());
    if let Some(expected) = expected {
        let found = (cursor.key(), cursor.seq(), cursor.kind(), cursor.value());
        assert_eq!(found, *expected);
    }
}

/// Every key at every read position that matters, and keys that are not there.
fn check_gets(table: &Arc<Table>, entries: &[Entry<'_>]) {
    for &(key, seq, _, _) in entries {
        for at in [0, seq.saturating_sub(1), seq, seq + 1, SEQ_MAX] {
            let first = entries.partition_point(|e| compare(e.0, e.1, key, at) == Ordering::Less);
            let expected = entries.get(first).filter(|e| e.0 == key);
            let got = sound(table.get(key, hash(key), at));
            let got = got.as_ref().map(|e| (key, e.seq, e.kind, &*e.value));
            assert_eq!(got.as_ref(), expected, "get at {at}");
        }
        let absent = [key, &[0]].concat();
        let expected = entries.binary_search_by(|e| e.0.cmp(&absent)).is_ok();
        let got = sound(table.get(&absent, hash(&absent), SEQ_MAX));
        assert_eq!(got.is_some(), expected);
    }
}

/// Copies the table block by block: the blocks whose bit is set in `whole` as they are.
fn check_copy(
    world: &World,
    table: &Arc<Table>,
    options: TableOptions,
    whole: u8,
    entries: &[Entry<'_>],
) {
    use crate::fs::Fs;
    let file = world.fs.create(&World::path(2)).expect("the disk has no faults");
    let mut writer = TableWriter::new(file, 2, options);
    let ranges = sound(table.range_deletes());
    writer.add_range_deletes(&ranges);
    let mut scan = table.scan(None, None);
    sound(scan.seek_first());
    for block in 0.. {
        let Some(raw) = scan.raw_block() else { break };
        if whole >> (block % 8) & 1 != 0 {
            sound(writer.add_block(&raw));
            sound(scan.skip_block());
        } else {
            for _ in 0..raw.block.entries() {
                sound(writer.add(scan.key(), scan.seq(), scan.kind(), scan.value()));
                sound(scan.next());
            }
        }
    }
    assert!(!scan.valid());
    let meta = sound(writer.finish());
    let old = &table.meta;
    assert_eq!((&meta.smallest, &meta.largest), (&old.smallest, &old.largest));
    assert_eq!((meta.entries, meta.deletes), (old.entries, old.deletes));
    assert_eq!((meta.min_seq, meta.max_seq), (old.min_seq, old.max_seq));
    assert_eq!((meta.key_bytes, meta.value_bytes), (old.key_bytes, old.value_bytes));
    assert_eq!(meta.blobs, old.blobs);
    let copy = Table::new(meta, World::path(2), &world.shared);
    sound(copy.verify());
    check_walks(&copy, entries);
    check_gets(&copy, entries);
}

fn refer(entry: &Owned) -> Entry<'_> {
    (&entry.0, entry.1, entry.2, &entry.3)
}

fn collect<C: Cursor>(cursor: &mut C, step: impl Fn(&mut C) -> Result<()>) -> Vec<Owned> {
    let mut all = Vec::new();
    while cursor.valid() {
        let value = cursor.value().to_vec();
        all.push((cursor.key().to_vec(), cursor.seq(), cursor.kind(), value));
        sound(step(cursor));
    }
    all
}
