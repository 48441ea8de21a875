use super::*;
use crate::base::coding::hash;
use crate::base::config::Codec;
use crate::base::key::SEQ_MAX;
use crate::table::Look;
use crate::table::testing::{World, entries, options};

/// Threads that help while the reader reads; one block is damaged, or none.
fn read_with_helpers(threads: usize, damaged: Option<usize>) {
    let world = World::new(1 << 20);
    let rows = entries(8, 1, 1);
    let table = world.open(world.write(1, options(Codec::None, 60), &rows));
    let blocks = table.blocks().unwrap();
    assert!(blocks.len() > 4);
    if let Some(at) = damaged {
        assert!(world.fs.corrupt(table.path(), blocks[at].1.handle.offset, 1));
    }
    let mut misses = Misses::default();
    for row in &rows {
        let look = table.get_in_memory(&row.0, hash(&row.0), SEQ_MAX).unwrap();
        let Look::Miss(miss) = look else { panic!("nothing is in memory") };
        misses.add(&table, miss);
    }
    let missed = Missed::new(misses);
    let helpers: Vec<_> = (0..threads)
        .map(|_| {
            let missed = Arc::clone(&missed);
            shuttle::thread::spawn(move || {
                while missed.help() {}
                missed.leave();
            })
        })
        .collect();
    let read = missed.read();
    assert_eq!(read.is_err(), damaged.is_some());
    if let Ok(read) = read {
        let entries: Vec<_> = read.iter().map(|block| block.entries()).collect();
        let expected: Vec<_> = blocks.iter().map(|(_, info)| info.entries as usize).collect();
        assert_eq!(entries, expected);
    }
    for helper in helpers {
        helper.join().unwrap();
    }
}

#[test]
fn interleavings() {
    shuttle::check_random(|| read_with_helpers(2, None), 500);
    shuttle::check_random(|| read_with_helpers(2, Some(3)), 500);
}
