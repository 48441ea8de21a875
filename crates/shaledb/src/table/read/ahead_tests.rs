use super::super::cursor::CursorOptions;
use crate::base::config::Codec;
use crate::base::cursor::Cursor;
use crate::table::testing::{Entry, World, entries, options};
use crate::table::{Table, TableCursor};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Runs `read` while threads take up whatever work is offered.
fn with_helpers<T>(world: &World, threads: usize, read: impl FnOnce() -> T) -> (T, u64) {
    let over = AtomicBool::new(false);
    let helped = std::sync::atomic::AtomicU64::new(0);
    let shared = &world.shared;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    shared.helpers.idle_while(std::thread::yield_now);
                    if let Some(work) = shared.helpers.take() {
                        while work.help() {
                            helped.fetch_add(1, Ordering::Relaxed);
                        }
                        work.leave();
                    }
                }
            });
        }
        let done = read();
        over.store(true, Ordering::Relaxed);
        (done, helped.load(Ordering::Relaxed))
    })
}

#[test]
fn a_scan_is_the_same_alone_and_with_helpers() {
    let (world, rows, table) = world();
    world.shared.wake_helpers_by(|| ());
    for threads in [0, 1, 3] {
        let mut helped = 0;
        // How often a helper comes in time is up to the machine.
        for scan in 0..1000 {
            let ((), batches) = with_helpers(&world, threads, || {
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
    let ((), _) = with_helpers(&world, 1, || {
        let mut cursor = cursor(&table, false, 0);
        for from in [0, 1700, 300, rows.len() - 900, 4000] {
            cursor.seek(&rows[from].0, rows[from].1).unwrap();
            for at in from..from + 800 {
                assert_eq!((cursor.key(), cursor.seq()), (&*rows[at].0, rows[at].1));
                cursor.next().unwrap();
            }
            for at in (from + 500..from + 800).rev() {
                cursor.prev().unwrap();
                assert_eq!((cursor.key(), cursor.seq()), (&*rows[at].0, rows[at].1));
            }
            for at in from + 500..from + 800 {
                assert_eq!((cursor.key(), cursor.seq()), (&*rows[at].0, rows[at].1));
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
            let ((seen, error), _) = with_helpers(&world, threads, || {
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
