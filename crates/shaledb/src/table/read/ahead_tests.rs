use super::super::cursor::CursorOptions;
use crate::base::config::Codec;
use crate::base::cursor::Cursor;
use crate::table::testing::{Entry, World, entries, options};
use crate::table::{Table, TableCursor};
use std::sync::Arc;

/// As few bytes as let a table of some hundred blocks be read in batches.
const READAHEAD: usize = 16 * 1024;

fn world() -> (World, Vec<Entry>, Arc<Table>) {
    let world = World::new(64 << 20);
    let rows = entries(6000, 2, 5);
    let table = world.open(world.write(1, options(Codec::Lz4, 500), &rows));
    assert!(table.meta.blocks > 500);
    (world, rows, table)
}

fn cursor(table: &Arc<Table>, fill_cache: bool, range_bytes: u64) -> TableCursor {
    table.cursor(CursorOptions { fill_cache, readahead: READAHEAD, range_bytes })
}

/// The rows from the cursor's on, until its end or an error.
fn rest(cursor: &mut TableCursor) -> (Vec<Entry>, Option<crate::base::error::Error>) {
    let mut rows = Vec::new();
    while cursor.valid() {
        let (key, value) = (cursor.key().to_vec(), cursor.value().to_vec());
        rows.push((key, cursor.seq(), cursor.kind(), value));
        if let Err(error) = cursor.next() {
            return (rows, Some(error));
        }
    }
    (rows, None)
}

#[test]
fn a_scan_is_the_same_alone_and_with_helpers() {
    let (world, rows, table) = world();
    world.shared.wake_helpers_by(|| ());
    for threads in [0, 1, 3] {
        let mut helped = 0;
        // How often a helper comes in time is up to the machine.
        for scan in 0..1000 {
            let ((), batches) = world.with_helpers(threads, || {
                let mut cursor = cursor(&table, false, 0);
                cursor.seek_first().unwrap();
                let (seen, error) = rest(&mut cursor);
                assert!(error.is_none() && seen == rows);
            });
            assert!(batches <= table.meta.blocks);
            helped += batches;
            if scan >= 10 && (threads == 0 || helped > 0) {
                break;
            }
        }
        assert_eq!(threads == 0, helped == 0, "{threads} threads made {helped} batches");
    }
    assert_eq!(world.shared.cache.entries(), 0);
}

#[test]
fn jumps_and_turns_leave_what_was_read_ahead() {
    let (world, rows, table) = world();
    world.shared.wake_helpers_by(|| ());
    let ((), _) = world.with_helpers(1, || {
        let mut cursor = cursor(&table, false, 0);
        for from in [0, 1700, 300, rows.len() - 900, 4000] {
            cursor.seek(&rows[from].0, rows[from].1).unwrap();
            for row in &rows[from..from + 800] {
                assert_eq!((cursor.key(), cursor.seq()), (&*row.0, row.1));
                cursor.next().unwrap();
            }
            for row in rows[from + 500..from + 800].iter().rev() {
                cursor.prev().unwrap();
                assert_eq!((cursor.key(), cursor.seq()), (&*row.0, row.1));
            }
            for row in &rows[from + 500..from + 800] {
                assert_eq!((cursor.key(), cursor.seq()), (&*row.0, row.1));
                cursor.next().unwrap();
            }
        }
    });
}

#[test]
fn a_range_that_is_more_than_the_cache_does_not_fill_it() {
    let (world, rows, table) = world();
    let capacity = world.shared.cache.capacity();
    let filled = |range_bytes| {
        let mut cursor = cursor(&table, true, range_bytes);
        cursor.seek_first().unwrap();
        assert_eq!(rest(&mut cursor).0, rows);
        world.shared.cache.entries() as u64
    };
    let begun = filled(capacity + 1);
    assert!(begun > 0 && begun < table.meta.blocks / 5, "{begun}");
    assert_eq!(filled(capacity), table.meta.blocks);
    // All of it is in the cache: nothing is read.
    let before = world.fs.counts().total();
    filled(capacity + 1);
    assert_eq!(world.fs.counts().total(), before);
}

#[test]
fn every_row_before_a_damaged_block_is_seen() {
    let (world, rows, table) = world();
    world.shared.wake_helpers_by(|| ());
    let blocks = table.blocks().unwrap();
    for at in [blocks.len() / 2, blocks.len() / 2 + 1, blocks.len() - 1] {
        let offset = blocks[at].1.handle.offset;
        assert!(world.fs.corrupt(table.path(), offset, 1));
        let before: usize = blocks[..at].iter().map(|(_, info)| info.entries as usize).sum();
        for threads in [0, 1] {
            let ((seen, error), _) = world.with_helpers(threads, || {
                let mut cursor = cursor(&table, false, 0);
                cursor.seek_first().unwrap();
                let seen = rest(&mut cursor);
                assert!(!cursor.valid());
                cursor.seek_first().unwrap();
                assert_eq!(cursor.key(), rows[0].0);
                seen
            });
            assert!(error.is_some_and(|error| error.is_corruption()));
            assert_eq!(seen, rows[..before]);
        }
        assert!(world.fs.corrupt(table.path(), offset, 1));
    }
}

#[cfg(feature = "fault")]
#[test]
fn a_disk_that_fails_costs_no_row_before() {
    use crate::fs::mem::{Call, Fault};
    let (world, rows, table) = world();
    world.shared.wake_helpers_by(|| ());
    for threads in [0, 1] {
        let mut shown = std::collections::BTreeSet::new();
        for nth in 1..40 {
            world.fs.fail(Call::Read, nth, Fault::Io, false);
            let ((seen, error), _) = world.with_helpers(threads, || {
                let mut cursor = cursor(&table, false, 0);
                match cursor.seek_first() {
                    Ok(()) => rest(&mut cursor),
                    Err(error) => (Vec::new(), Some(error)),
                }
            });
            world.fs.clear_faults();
            assert!(matches!(error, Some(crate::base::error::Error::Io { .. })), "{error:?}");
            assert_eq!(seen, rows[..seen.len()]);
            shown.insert(seen.len());
            // Once is not for ever: what is left is read block by block.
            world.fs.fail(Call::Read, nth, Fault::Io, true);
            let mut cursor = cursor(&table, false, 0);
            if cursor.seek_first().is_ok() {
                let (seen, error) = rest(&mut cursor);
                assert!(seen.len() == rows.len() || error.is_some());
                assert_eq!(seen, rows[..seen.len()]);
            }
            world.fs.clear_faults();
        }
        assert!(shown.len() > 20, "{shown:?}");
    }
}

#[test]
fn large_and_compressible_blocks_are_not_held_by_the_dozen() {
    use super::{Ahead, DECODED_FACTOR};
    let world = World::new(64 << 20);
    // Most rows are small; some are many batches long; all of them compress well.
    let rows: Vec<Entry> = (0..4000u32)
        .map(|row| {
            let length = if row % 500 == 250 { 200_000 } else { 300 };
            (row.to_be_bytes().to_vec(), 1, crate::base::key::Kind::Put, vec![b'x'; length])
        })
        .collect();
    let table = world.open(world.write(1, options(Codec::Zstd(3), 4000), &rows));
    let index = table.index().unwrap();
    let ahead = Ahead::new(Arc::clone(&table), index, 0, READAHEAD, false);
    let bound = DECODED_FACTOR * READAHEAD as u64;
    let (mut spare, mut blocks) = (Vec::new(), 0);
    while blocks < table.meta.blocks {
        let batch = ahead.take(&mut spare).unwrap();
        while let Some(task) = {
            let mut state = ahead.state.lock();
            ahead.begin(&mut state)
        } {
            ahead.make(task);
        }
        let held: usize = {
            let state = ahead.state.lock();
            let made = state.batches.iter().filter_map(|batch| match &batch.progress {
                super::Progress::Made((blocks, _)) => Some(blocks),
                _ => None,
            });
            made.flatten().map(|block| block.image().len()).sum()
        };
        // One may be large, and how well a block compresses is guessed by the others.
        assert!(held as u64 <= 3 * bound + 200_000, "{held} bytes are held of {bound}");
        blocks += batch.len() as u64;
        for block in batch {
            if ahead.wants(block.image()) {
                spare.extend(Arc::try_unwrap(block).map(crate::table::Block::into_bytes));
            }
        }
        assert!(spare.iter().all(|memory| memory.capacity() < 100_000));
    }
}

#[test]
fn a_scan_goes_on_ahead_in_the_next_table() {
    use crate::iter::concat::{Concat, Run};
    let (world, rows, table) = world();
    let more: Vec<Entry> =
        rows.iter().map(|row| ([b"v", &*row.0].concat(), row.1, row.2, row.3.clone())).collect();
    let next = world.open(world.write(2, options(Codec::Lz4, 500), &more));
    let run = Run::Tables(vec![Arc::clone(&table), Arc::clone(&next)]);
    let options = CursorOptions { fill_cache: true, readahead: READAHEAD, range_bytes: u64::MAX };
    let mut scan = Concat::<TableCursor>::new(run, options);
    scan.seek_first().unwrap();
    for row in rows.iter().chain(&more) {
        assert_eq!((scan.key(), scan.value()), (&*row.0, &*row.3));
        scan.next().unwrap();
    }
    assert!(!scan.valid());
    // The first table's first blocks are in the cache, and none of the next one's.
    let key = |table: &Table| {
        let handle = table.blocks().unwrap()[0].1.handle;
        crate::cache::CacheKey { file: table.id(), offset: handle.offset }
    };
    assert!(world.shared.cache.get(&key(&table)).is_some());
    assert!(world.shared.cache.get(&key(&next)).is_none());
}

#[test]
fn what_a_panic_left_is_made_although_a_later_batch_has_failed() {
    use super::{Ahead, Begun, Progress};
    let (_world, _rows, table) = world();
    let ahead = Ahead::new(Arc::clone(&table), table.index().unwrap(), 0, READAHEAD, false);
    let begin = || ahead.begin(&mut ahead.state.lock()).unwrap();
    // Three batches taken, so that some may be ahead.
    let mut spare = Vec::new();
    let taken: usize = (0..3).map(|_| ahead.take(&mut spare).unwrap().len()).sum();
    let (first, second) = (begin(), begin());
    assert_eq!(first.blocks.start, taken);
    let error = crate::base::error::Error::Closed;
    ahead.set(second.number, Progress::Made((Vec::new(), Some(error))));
    drop(Begun { ahead: &ahead, number: Some(first.number) });
    assert_eq!(ahead.take(&mut spare).unwrap().len(), first.blocks.len());
    assert!(ahead.take(&mut spare).is_err());
}
