use super::*;
use crate::base::coding::hash;
use crate::base::config::Codec;
use crate::base::key::SEQ_MAX;
use crate::base::stats::Counter;
use crate::table::Look;
use crate::table::testing::{Entry, World, entries, options};

/// A table of many blocks, and a cache that has none of them and may hold so many bytes.
fn world(memory_bytes: u64) -> (World, Vec<Entry>, Arc<Table>) {
    let world = World::new(memory_bytes);
    let rows = entries(6000, 1, 5);
    let table = world.open(world.write(1, options(Codec::Lz4, 500), &rows));
    assert!(table.meta.blocks as usize > 2 * ASKED_MAX);
    world.shared.wake_helpers_by(|| ());
    (world, rows, table)
}

/// The blocks that look-ups of these keys miss, and of each row the number of its block, if it is
/// not in memory.
fn look(table: &Arc<Table>, rows: &[Entry]) -> (Arc<Missed>, Vec<Option<usize>>) {
    let mut blocks = Misses::default();
    let of = rows.iter().map(|row| match table.get_in_memory(&row.0, hash(&row.0), SEQ_MAX) {
        Ok(Look::Miss(miss)) => Some(blocks.add(table, miss)),
        found => {
            assert!(matches!(found, Ok(Look::Known(Some(_)))), "all rows are there");
            None
        }
    });
    let of = of.collect();
    (Missed::new(blocks), of)
}

#[test]
fn look_ups_of_several_keys_are_the_same_alone_and_with_helpers() {
    let (world, rows, table) = world(1 << 20);
    for threads in [0, 1, 3] {
        let mut helped = 0;
        // How often a helper comes in time is up to the machine.
        for round in 0..1000 {
            world.shared.cache.set_capacity(0);
            world.shared.cache.set_capacity(1 << 20);
            let before = world.shared.recorder.totals().get(Counter::DataMisses);
            let (missed, of) = look(&table, &rows);
            let (blocks, parts) = world.with_helpers(threads, || missed.read().unwrap());
            assert_eq!(blocks.len() as u64, table.meta.blocks, "nothing was in memory");
            let read = world.shared.recorder.totals().get(Counter::DataMisses) - before;
            assert_eq!(read, table.meta.blocks, "each is read once");
            for (row, of) in rows.iter().zip(of) {
                let of = of.expect("nothing was in memory");
                let entry = missed.find(of, &blocks[of], &row.0, SEQ_MAX).unwrap().unwrap();
                assert_eq!((entry.seq, entry.kind, &*entry.value), (row.1, row.2, &*row.3));
            }
            helped += parts;
            if round >= 5 && (threads == 0 || helped > 0) {
                break;
            }
        }
        assert_eq!(threads == 0, helped == 0, "{threads} threads read {helped} blocks");
    }
}

#[test]
fn a_damaged_block_is_reported_and_nobody_waits() {
    let (world, rows, table) = world(64 << 20);
    let damaged = table.blocks().unwrap()[200].1.handle.offset;
    assert!(world.fs.corrupt(table.path(), damaged, 1));
    for threads in [0, 2] {
        let (missed, _) = look(&table, &rows);
        let (read, _) = world.with_helpers(threads, || missed.read());
        assert!(read.unwrap_err().is_corruption());
        assert!(!missed.help(), "what has failed is over");
    }
}

#[cfg(feature = "fault")]
#[test]
fn a_disk_that_fails_fails_the_look_up_only() {
    use crate::fs::mem::{Call, Fault};
    for threads in [0, 1] {
        let (world, rows, table) = world(64 << 20);
        table.index().unwrap();
        for nth in [1, 2, 100, 300] {
            let (missed, _) = look(&table, &rows);
            world.fs.fail(Call::Read, nth, Fault::Io, false);
            let (read, _) = world.with_helpers(threads, || missed.read());
            world.fs.clear_faults();
            assert!(matches!(read, Err(Error::Io { .. })), "{read:?}");
        }
        let (missed, of) = look(&table, &rows);
        assert!(of.contains(&None), "what was read before it failed is in memory");
        missed.read().unwrap();
    }
}

#[test]
fn what_a_panic_left_is_read_by_another() {
    let (_world, rows, table) = world(64 << 20);
    let (missed, _) = look(&table, &rows);
    let begin = || missed.state.lock().begin().unwrap();
    let (first, second) = (begin(), begin());
    missed.make(second);
    drop(Begun { missed: &missed, at: Some(first) });
    let third = begin();
    assert_eq!((first, second, third), (0, 1, 0));
    drop(Begun { missed: &missed, at: Some(third) });
    assert_eq!(missed.read().unwrap().len() as u64, table.meta.blocks);
}
