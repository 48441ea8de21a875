use super::*;
use crate::base::config::Codec;
use crate::table::TableWriter;
use crate::table::testing::{Entry, World, entries, options, path};

fn rest(scan: &mut BulkScan) -> Vec<Entry> {
    let mut rows = Vec::new();
    while scan.valid() {
        rows.push((scan.key().to_vec(), scan.seq(), scan.kind(), scan.value().to_vec()));
        scan.next().unwrap();
    }
    rows
}

#[test]
fn gives_what_lies_between_its_bounds() {
    let rows = entries(200, 5, 4);
    let world = World::new(64 << 20);
    let table = world.open(world.write(1, options(Codec::Zstd(1), 300), &rows));
    let mut bounds: Vec<Option<Vec<u8>>> = vec![None, Some(b"".to_vec()), Some(b"zz".to_vec())];
    bounds.extend(rows.iter().step_by(29).map(|row| Some(row.0.clone())));
    bounds.extend(rows.iter().step_by(37).map(|row| Some([&row.0[..], b"!"].concat())));
    for start in &bounds {
        for end in &bounds {
            let (start, end) = (start.as_deref(), end.as_deref());
            let inside = |row: &&Entry| {
                start.is_none_or(|start| start <= &row.0) && end.is_none_or(|end| &row.0[..] < end)
            };
            let expected: Vec<Entry> = rows.iter().filter(inside).cloned().collect();
            let mut scan = table.scan(start, end);
            scan.seek_first().unwrap();
            assert_eq!(rest(&mut scan), expected);
            scan.seek(&rows[50].0, 40).unwrap();
            let from = expected.partition_point(|row| {
                crate::base::key::compare(&row.0, row.1, &rows[50].0, 40).is_lt()
            });
            assert_eq!(rest(&mut scan), expected[from..]);
        }
    }
    assert_eq!(world.shared.cache.entries(), 0);
}

#[test]
fn goes_forward_only() {
    let world = World::new(64 << 20);
    let table = world.open(world.write(1, options(Codec::None, 300), &entries(9, 1, 4)));
    let mut scan = table.scan(None, None);
    assert!(scan.seek_last().is_err() && scan.seek_back(b"", 0).is_err() && scan.prev().is_err());
}

#[test]
fn reads_a_large_table_in_few_reads() {
    let world = World::new(64 << 20);
    let rows = entries(9000, 1, 4);
    let meta = world.write(1, options(Codec::None, 1000), &rows);
    let table = world.open(meta);
    table.index().unwrap();
    let before = world.fs.counts().total();
    let mut scan = table.scan(None, None);
    scan.seek_first().unwrap();
    assert_eq!(rest(&mut scan), rows);
    let reads = world.fs.counts().total() - before;
    assert!(reads <= 2 + 2 * table.meta.data_bytes / READ_BYTES_MAX, "{reads}");
}

#[test]
fn what_a_scan_holds_is_counted_until_its_end() {
    let world = World::new(8 << 20);
    let rows = entries(9000, 1, 4);
    let table = world.open(world.write(1, options(Codec::None, 1000), &rows));
    let memory = &world.shared.memory;
    for read_bytes in [1, 20_000, u64::MAX] {
        let mut scan = table.scan(None, None).reading(read_bytes);
        scan.seek_first().unwrap();
        let held = memory.work();
        let wanted = read_bytes.min(table.meta.data_bytes);
        assert!(
            (wanted.saturating_sub(1200)..wanted + 2400).contains(&held),
            "{held} {read_bytes}"
        );
        assert!(memory.cache_due() <= (8 << 20) - held);
        assert_eq!(rest(&mut scan), rows);
        // At its end it holds nothing, though it is still there.
        assert_eq!((scan.valid(), memory.work()), (false, 0));
        scan.seek_first().unwrap();
        assert!(memory.work() > 0);
        drop(scan);
        assert_eq!(memory.work(), 0);
    }
}

#[test]
fn reused_blocks_make_the_same_table() {
    for versions in [1, 6] {
        let rows = entries(400, versions, 12);
        let world = World::new(64 << 20);
        let meta = world.write(1, options(Codec::Zstd(3), 500), &rows);
        let table = world.open(meta.clone());
        // Every other block is moved, the rest is added row by row.
        let file = world.fs_create(2);
        let mut writer = TableWriter::new(file, 2, options(Codec::Lz4, 500));
        let mut scan = table.scan(None, None);
        scan.seek_first().unwrap();
        let (mut at, mut moved) = (0, 0);
        while scan.valid() {
            assert!(scan.begins_block());
            if at % 2 == 0
                && let Some(raw) = scan.raw_block()
            {
                writer.add_block(&raw).unwrap();
                scan.skip_block().unwrap();
                (at, moved) = (at + 1, moved + 1);
            } else {
                let seen = scan.block_at;
                while scan.valid() && scan.block_at == seen {
                    writer.add(scan.key(), scan.seq(), scan.kind(), scan.value()).unwrap();
                    scan.next().unwrap();
                }
                at += 1;
            }
        }
        assert!(moved > 10);
        let copy = world.open(writer.finish().unwrap());
        copy.verify().unwrap();
        let mut scan = copy.scan(None, None);
        scan.seek_first().unwrap();
        assert_eq!(rest(&mut scan), rows);
        let same = |meta: &crate::table::TableMeta| {
            (meta.smallest.clone(), meta.largest.clone(), meta.entries, meta.deletes)
        };
        assert_eq!(same(&copy.meta), same(&meta));
        assert_eq!((copy.meta.min_seq, copy.meta.max_seq), (meta.min_seq, meta.max_seq));
        assert_eq!(copy.meta.key_bytes, meta.key_bytes);
        assert_eq!(copy.meta.value_bytes, meta.value_bytes);
        assert!(world.fs.content(&path(2)).is_some());
    }
}

#[test]
fn a_block_that_crosses_the_end_is_not_given_whole() {
    let rows = entries(20, 1, 12);
    let world = World::new(64 << 20);
    let table = world.open(world.write(1, options(Codec::None, 100_000), &rows));
    let mut scan = table.scan(None, Some(&rows[10].0));
    scan.seek_first().unwrap();
    assert!(scan.begins_block() && scan.raw_block().is_none());
    let mut scan = table.scan(Some(&rows[1].0), None);
    scan.seek_first().unwrap();
    assert!(!scan.begins_block() && scan.raw_block().is_none());
}

#[test]
fn a_damaged_block_can_be_passed() {
    let rows = entries(300, 1, 12);
    let world = World::new(64 << 20);
    let table = world.open(world.write(1, options(Codec::None, 400), &rows));
    let blocks = table.blocks().unwrap();
    for damaged in [0, 7, blocks.len() - 1] {
        let offset = blocks[damaged].1.handle.offset;
        assert!(world.fs.corrupt(&path(1), offset, 1));
        let mut scan = table.scan(None, None);
        let (mut seen, mut errors) = (Vec::new(), 0);
        let mut step = scan.seek_first();
        loop {
            if step.is_err() {
                errors += 1;
                step = scan.skip_block();
            } else if scan.valid() {
                seen.push(scan.key().to_vec());
                step = scan.next();
            } else {
                break;
            }
        }
        assert!(world.fs.corrupt(&path(1), offset, 1));
        assert_eq!(errors, 1);
        assert_eq!(seen.len(), rows.len() - blocks[damaged].1.entries as usize);
        assert!(seen.is_sorted());
    }
}

#[test]
fn a_block_takes_no_more_memory_than_its_size_says() {
    // Tags of one byte to many, keys and values of one length and of many.
    for (seqs, lengths) in [(1, 1), (1 << 20, 1), (1 << 40, 1), (1 << 40, 9)] {
        let world = World::new(64 << 20);
        let rows: Vec<Entry> = (0..20_000u64)
            .map(|at| {
                let key = format!("{:012}{}", at * 7, "k".repeat((at % lengths) as usize));
                let value = vec![b'v'; 100 + (at * at % lengths) as usize];
                (key.into_bytes(), 1 + at * 7919 % seqs, Kind::Put, value)
            })
            .collect();
        let table = world.open(world.write(1, options(Codec::None, 16 << 10), &rows));
        let mut scan = table.scan(None, None);
        scan.seek_first().unwrap();
        let mut largest = 0;
        while scan.valid() {
            largest = largest.max(scan.block().image().len());
            scan.skip_block().unwrap();
        }
        // What an allocator rounds up to the next quarter of a power of two is not rounded up.
        assert!((16_000..=16 << 10).contains(&largest), "{largest} {seqs} {lengths}");
    }
}
