use super::*;
use crate::base::config::Codec;
use crate::table::testing::{World, entries, options};

/// Threads that help, one by one batches, until the reader has gone or keeps them waiting.
fn scan_with_helpers(threads: usize, leaves_at: usize) {
    let world = World::new(1 << 20);
    let table = world.open(world.write(1, options(Codec::None, 60), &entries(8, 1, 1)));
    let index = table.index().unwrap();
    let blocks = index.index.blocks();
    assert!(blocks > 4);
    // Each block is a batch.
    let ahead = Ahead::new(Arc::clone(&table), index, 0, BATCHES_AHEAD, false);
    let helpers: Vec<_> = (0..threads)
        .map(|_| {
            let ahead = Arc::clone(&ahead);
            shuttle::thread::spawn(move || {
                while ahead.help() {}
                ahead.leave();
            })
        })
        .collect();
    let mut spare = Vec::new();
    for at in 0..blocks.min(leaves_at) {
        let batch = ahead.take(&mut spare).unwrap();
        assert_eq!(batch.len(), 1);
        let (_, info) = &table.blocks().unwrap()[at];
        assert_eq!(batch[0].entries(), info.entries as usize);
        for block in batch {
            spare.extend(Arc::try_unwrap(block).map(Block::into_bytes));
        }
    }
    ahead.close();
    for helper in helpers {
        helper.join().unwrap();
    }
}

#[test]
fn interleavings() {
    shuttle::check_random(|| scan_with_helpers(2, usize::MAX), 500);
    shuttle::check_random(|| scan_with_helpers(2, 3), 500);
}
