//! Each thread's memory for bytes of files that are decoded at once, or that a scan has read ahead.

use std::cell::RefCell;

/// A buffer that has grown beyond this is not kept.
const BYTES_MAX: usize = 1 << 20;
/// Nor one of a scan that has grown beyond its third read-ahead, of 256 KiB and a block: threads
/// that scan now and then may be many.
const SCAN_BYTES_MAX: usize = 320 << 10;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with `length` bytes of unknown content.
#[inline]
pub(super) fn with_scratch<T>(length: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    // Taken, not borrowed: it is not held across a read.
    let mut scratch = take();
    if scratch.len() < length {
        scratch.resize(length, 0);
    }
    let done = work(&mut scratch[..length]);
    if scratch.len() <= BYTES_MAX {
        SCRATCH.set(scratch);
    }
    done
}

/// The thread's buffer, empty if it is in use.
pub(super) fn take() -> Vec<u8> {
    SCRATCH.take()
}

/// Gives a scan's buffer to the thread, unless it has a longer one.
pub(super) fn give(buffer: Vec<u8>) {
    if buffer.is_empty() || buffer.len() > SCAN_BYTES_MAX {
        return;
    }
    // A scan may end after that, when its thread does.
    let _gone = SCRATCH.try_with(|scratch| {
        let mut scratch = scratch.borrow_mut();
        if scratch.len() < buffer.len() {
            *scratch = buffer;
        }
    });
}
