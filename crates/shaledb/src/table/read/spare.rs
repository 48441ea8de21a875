//! Each thread's memory of the block that has last left the cache, for the next that it decodes.
//!
//! A full cache lets one go for each that comes. An allocator that gives memory of this size back
//! to the system at once takes new pages for each block, which then costs more than reading it.

use crate::table::format::{Block, allocated};
use std::cell::Cell;
use std::sync::Arc;

/// Longer ones are not kept.
const BYTES_MAX: usize = 64 << 10;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Keeps the memory of a block if nobody else has it.
pub(super) fn keep(block: Arc<Block>) {
    if let Ok(block) = Arc::try_unwrap(block) {
        let bytes = block.into_bytes();
        if bytes.capacity() <= BYTES_MAX {
            // A thread that ends may have lost its place for it.
            let _gone = SPARE.try_with(|spare| spare.set(bytes));
        }
    }
}

/// Memory for `length` bytes, of unknown content: as much as the allocator gives for so many. None
/// for more than blocks have: a damaged one may ask for anything.
pub(super) fn take(length: usize) -> Vec<u8> {
    if length > BYTES_MAX {
        return Vec::new();
    }
    let wanted = allocated(length);
    let fits =
        |spare: &Vec<u8>| spare.capacity() >= length && allocated(spare.capacity()) == wanted;
    match SPARE.try_with(Cell::take) {
        Ok(spare) if fits(&spare) => return spare,
        Ok(spare) => SPARE.set(spare),
        Err(_) => {}
    }
    Vec::with_capacity(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::key::Kind;
    use crate::table::format::block_builder::BlockBuilder;

    fn block(value_bytes: usize) -> Arc<Block> {
        let mut builder = BlockBuilder::default();
        builder.add(b"key", 1, Kind::Put, &vec![b'v'; value_bytes]);
        let mut image = take(value_bytes);
        image.clear();
        image.extend_from_slice(builder.finish());
        Arc::new(Block::parse(image).unwrap())
    }

    #[test]
    fn the_memory_of_a_block_is_used_again_for_one_of_its_size() {
        keep(block(16_000));
        let (first, kept) = (block(16_000), take(8_000));
        assert!(kept.capacity() < 16_000, "half as long: not that memory");
        let at = first.image().as_ptr();
        let held = Arc::clone(&first);
        keep(first);
        let other = take(16_000);
        assert_ne!(other.as_ptr(), at, "somebody has it");
        keep(held);
        let again = take(16_100);
        assert_eq!((again.as_ptr(), again.capacity()), (at, allocated(16_100)));
        let other = take(16_100);
        assert_ne!(other.as_ptr(), at, "once only");
    }

    #[test]
    fn long_blocks_are_not_kept() {
        keep(block(100_000));
        assert_eq!(SPARE.take().capacity(), 0);
        assert_eq!(take(u32::MAX as usize).capacity(), 0, "nor made");
    }
}
