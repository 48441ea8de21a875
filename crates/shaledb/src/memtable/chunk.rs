//! The large chunks of memory that memtables are made of: of 2 MiB, aligned to it, so that the
//! system can back each with one huge page.
//!
//! They come from the system and go back to it one by one. (An allocator that is given many of them
//! at once keeps them, in pieces: it took twice the memory of the memtables.) The system clears a
//! chunk when it is first touched, and may have to find memory for it. No writer should wait for
//! that: some chunks are kept ready, touched, and a background thread sees that they are
//! ([`refill`]).

use std::ptr::{self, NonNull};

// Not the interchangeable ones: no test of interleavings is about these.
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The size and the alignment of a chunk: that of a huge page.
pub(super) const CHUNK_BYTES: usize = 2 * 1024 * 1024;

/// How many chunks are kept ready in a process: a chunk lasts for milliseconds at the least, of
/// which one is made in a fraction.
const READY: usize = 2;

static CHUNKS: [AtomicPtr<u8>; READY] = [const { AtomicPtr::new(ptr::null_mut()) }; READY];

/// Whether a chunk was taken that nobody has replaced.
static WISHES: AtomicBool = AtomicBool::new(false);

/// A chunk, uninitialized; `None` if the system has no memory. It goes back by [`give`].
pub(super) fn take() -> Option<NonNull<u8>> {
    WISHES.store(true, Ordering::Relaxed);
    let ready = CHUNKS.iter().find_map(|chunk| {
        let has = !chunk.load(Ordering::Relaxed).is_null();
        has.then(|| NonNull::new(chunk.swap(ptr::null_mut(), Ordering::Acquire))).flatten()
    });
    ready.or_else(map)
}

/// Keeps the chunk ready for another, or gives it back to the system.
///
/// # Safety
/// The chunk is from [`take`], was not given back before, and nobody uses it any more.
pub(super) unsafe fn give(chunk: NonNull<u8>) {
    if !keep(chunk) {
        // SAFETY: by the caller.
        unsafe { unmap(chunk) }
    }
}

/// Whether a chunk should be made ready that no earlier call has told of. Costs next to nothing.
#[inline]
pub(crate) fn takes_wish() -> bool {
    WISHES.load(Ordering::Relaxed) && WISHES.swap(false, Ordering::Relaxed)
}

/// The bytes of the chunks that are ready: of the process, whoever will have them.
pub(crate) fn kept_bytes() -> usize {
    let is_ready = |chunk: &&AtomicPtr<u8>| !chunk.load(Ordering::Relaxed).is_null();
    CHUNKS.iter().filter(is_ready).count() * CHUNK_BYTES
}

/// Gives the chunks that are ready back to the system: nobody writes.
pub(crate) fn release() {
    for chunk in &CHUNKS {
        if let Some(chunk) = NonNull::new(chunk.swap(ptr::null_mut(), Ordering::Acquire)) {
            // SAFETY: it was ready, and whoever takes it out has it alone.
            unsafe { unmap(chunk) }
        }
    }
}

/// Makes chunks ready.
pub(crate) fn refill() {
    while CHUNKS.iter().any(|chunk| chunk.load(Ordering::Relaxed).is_null()) {
        let Some(chunk) = map() else { return };
        touch(chunk);
        if !keep(chunk) {
            // SAFETY: it was made above, and nobody else knows of it.
            unsafe { unmap(chunk) }
        }
    }
}

/// Whether there was room for the chunk among those that are ready.
fn keep(chunk: NonNull<u8>) -> bool {
    CHUNKS.iter().any(|place| {
        let none = ptr::null_mut();
        let free = place.load(Ordering::Relaxed).is_null();
        let put =
            || place.compare_exchange(none, chunk.as_ptr(), Ordering::Release, Ordering::Relaxed);
        free && put().is_ok()
    })
}

/// Has the system find memory for the chunk.
fn touch(chunk: NonNull<u8>) {
    const PAGE_BYTES: usize = 4096;
    for offset in (0..CHUNK_BYTES).step_by(PAGE_BYTES) {
        // SAFETY: the offset is inside the chunk, which nobody else knows of.
        unsafe { chunk.add(offset).write_volatile(0) }
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn map() -> Option<NonNull<u8>> {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, of no file, where the system likes.
    let place = unsafe { libc::mmap(ptr::null_mut(), 2 * CHUNK_BYTES, protection, flags, -1, 0) };
    if place == libc::MAP_FAILED {
        return None;
    }
    let place = place.cast::<u8>();
    let before = place.align_offset(CHUNK_BYTES);
    assert!(before < CHUNK_BYTES, "a chunk is found in twice its length");
    // SAFETY: what lies before and behind the aligned chunk is part of the mapping made above.
    unsafe {
        let chunk = place.add(before);
        if before > 0 {
            libc::munmap(place.cast(), before);
        }
        libc::munmap(chunk.add(CHUNK_BYTES).cast(), CHUNK_BYTES - before);
        // A hint: nothing depends on whether the system follows it.
        libc::madvise(chunk.cast(), CHUNK_BYTES, libc::MADV_HUGEPAGE);
        NonNull::new(chunk)
    }
}

/// # Safety
/// As of [`give`].
#[cfg(all(target_os = "linux", not(miri)))]
unsafe fn unmap(chunk: NonNull<u8>) {
    // SAFETY: by the caller; the chunk is a mapping of this length.
    unsafe { libc::munmap(chunk.as_ptr().cast(), CHUNK_BYTES) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
const LAYOUT: std::alloc::Layout =
    match std::alloc::Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES) {
        Ok(layout) => layout,
        Err(_) => panic!("a power of two"),
    };

#[cfg(not(all(target_os = "linux", not(miri))))]
fn map() -> Option<NonNull<u8>> {
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { std::alloc::alloc(LAYOUT) })
}

/// # Safety
/// As of [`give`].
#[cfg(not(all(target_os = "linux", not(miri))))]
unsafe fn unmap(chunk: NonNull<u8>) {
    // SAFETY: by the caller; every chunk was allocated by `map`.
    unsafe { std::alloc::dealloc(chunk.as_ptr(), LAYOUT) };
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// Other tests of the process take and give chunks meanwhile, so nothing is said of how many
    /// are ready.
    #[test]
    fn chunks_that_were_released_can_be_made_ready_again() {
        for _ in 0..3 {
            refill();
            let chunk = take().unwrap();
            assert!(chunk.addr().get().is_multiple_of(CHUNK_BYTES));
            // SAFETY: the chunk was just taken.
            unsafe { give(chunk) };
            assert!(kept_bytes() <= READY * CHUNK_BYTES);
            release();
        }
    }
}
