//! The memory under a skiplist: chunks that are handed out from the front and freed all at once.
//!
//! Chunks grow with the arena, from 4 KiB to 2 MiB, so that an empty or tiny memtable costs next to
//! nothing and a full one has few chunks. Chunks of 2 MiB ([`chunk`]) are on huge pages: with small
//! ones a search of a full memtable spends a quarter of its time, and a sequential insert half of
//! it, on address translation and page faults.
//! A request that is large beside the next chunk gets a
//! chunk of its own, of exactly its size. Each chunk begins with its header; the headers form a
//! list, which is all there is to free. Invariant: memory handed out is never moved, handed out
//! twice, or freed before the arena is dropped, or reset by who has it alone.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

use super::chunk;
use crate::base::rank;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The alignment of everything handed out; every size is rounded up to it.
const ALIGN: usize = align_of::<ChunkHeader>();

/// The first chunk's size.
const CHUNK_BYTES_MIN: usize = 4 * 1024;

/// The size that chunks grow to: that of a huge page.
const CHUNK_BYTES_MAX: usize = chunk::CHUNK_BYTES;

/// What a chunk begins with. `used` counts from the chunk's start, this header included.
struct ChunkHeader {
    used: AtomicUsize,
    bytes: usize,
    previous: *mut ChunkHeader,
}

const _: () = assert!(ALIGN.is_power_of_two() && CHUNK_BYTES_MIN.is_multiple_of(ALIGN));

/// A bump allocator that many threads may use at once.
pub(super) struct Arena {
    /// The chunk that small requests are served from; null before the first one.
    current: AtomicPtr<ChunkHeader>,
    /// The head of the list of all chunks. Held only to add one.
    chunks: Mutex<Chunks, { rank::ARENA }>,
    /// The bytes of all chunks.
    allocated: AtomicUsize,
    /// The bytes used in all chunks but the current one.
    retired: AtomicUsize,
}

/// How many bytes are in use when an arena that is to take `most` bytes is full: those of the
/// chunks that fit, but for a 64th and at most 256 KiB, so that the requests on their way need no
/// other chunk. Of chunks that are not yet on huge pages only what is in use takes memory.
pub(super) fn full_bytes(most: u64) -> u64 {
    let last = CHUNK_BYTES_MAX as u64;
    let growing = 2 * last - CHUNK_BYTES_MIN as u64;
    let bytes = if most < growing { most } else { growing + (most - growing) / last * last };
    bytes - (bytes / 64).min(last / 8)
}

/// The bytes of the last chunk where all take about `most` bytes, at most.
#[inline]
pub(super) fn last_chunk_bytes(most: u64) -> u64 {
    most.min(CHUNK_BYTES_MAX as u64)
}

struct Chunks {
    last: *mut ChunkHeader,
    /// The size of the next chunk for small requests.
    next_bytes: usize,
}

// SAFETY: the pointers are to memory that the arena owns, and a chunk's header is changed only
// through its atomic field once it is in the list.
unsafe impl Send for Arena {}
// SAFETY: as above; `current` is atomic and the list is under a lock.
unsafe impl Sync for Arena {}

impl Arena {
    /// An arena without a chunk.
    pub(super) fn new() -> Arena {
        Arena {
            current: AtomicPtr::new(ptr::null_mut()),
            chunks: Mutex::new(Chunks { last: ptr::null_mut(), next_bytes: CHUNK_BYTES_MIN }),
            allocated: AtomicUsize::new(0),
            retired: AtomicUsize::new(0),
        }
    }

    /// The bytes of all chunks, whether used or not.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.allocated.load(Ordering::Relaxed)
    }

    /// The bytes handed out (and the chunks' headers). Exact while no thread allocates.
    #[inline]
    pub(super) fn used_bytes(&self) -> usize {
        let retired = self.retired.load(Ordering::Relaxed);
        let current = self.current.load(Ordering::Acquire);
        if current.is_null() {
            return retired;
        }
        // SAFETY: a chunk in `current` lives as long as the arena.
        retired + unsafe { (*current).used.load(Ordering::Relaxed) }
    }

    /// Takes all memory back that was handed out, if that is of the first chunk, which stays, and
    /// of no other, or if none was. Otherwise answers false and changes nothing.
    pub(super) fn reset(&mut self) -> bool {
        let current = self.current.load(Ordering::Relaxed);
        if current.is_null() || self.bytes() != CHUNK_BYTES_MIN {
            return self.bytes() == 0;
        }
        debug_assert_eq!(self.retired.load(Ordering::Relaxed), 0, "no other chunk was current");
        // SAFETY: a chunk in `current` lives as long as the arena. What was handed out of it was so
        // for as long as the arena was borrowed: that has ended.
        unsafe { (*current).used.store(size_of::<ChunkHeader>(), Ordering::Relaxed) };
        true
    }

    /// `bytes` bytes of uninitialized memory that nobody else has, aligned to 8, valid for as
    /// long as the arena lives and is not reset.
    #[inline]
    pub(super) fn allocate(&self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(ALIGN);
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: a chunk in `current` is one of the arena's.
        match unsafe { Self::allocate_in(current, bytes) } {
            Some(memory) => memory,
            None => self.allocate_slow(bytes),
        }
    }

    /// Takes `bytes` from the front of what is left of `chunk`, if there is as much.
    ///
    /// # Safety
    /// `chunk` is null or one that [`Arena::add_chunk`] has made and the arena still has.
    #[inline]
    unsafe fn allocate_in(chunk: *mut ChunkHeader, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: by the caller; a chunk lives as long as the arena.
        let header = unsafe { chunk.as_ref() }?;
        debug_assert!(bytes.is_multiple_of(ALIGN));
        let mut used = header.used.load(Ordering::Relaxed);
        debug_assert!(used >= size_of::<ChunkHeader>() && used <= header.bytes);
        while bytes <= header.bytes - used {
            match header.used.compare_exchange_weak(
                used,
                used + bytes,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                // SAFETY: used + bytes <= header.bytes, the length of the chunk's memory.
                Ok(_) => return NonNull::new(unsafe { chunk.cast::<u8>().add(used) }),
                Err(now) => used = now,
            }
        }
        None
    }

    #[cold]
    fn allocate_slow(&self, bytes: usize) -> NonNull<u8> {
        let mut chunks = self.chunks.lock();
        let current = self.current.load(Ordering::Acquire);
        // Another thread may have added a chunk in the meantime.
        // SAFETY: a chunk in `current` is one of the arena's.
        if let Some(memory) = unsafe { Self::allocate_in(current, bytes) } {
            return memory;
        }
        let header = size_of::<ChunkHeader>();
        let next = chunks.next_bytes;
        if bytes <= CHUNK_BYTES_MAX / 4 {
            chunks.next_bytes = (2 * next).min(CHUNK_BYTES_MAX);
        }
        assert!(next >= CHUNK_BYTES_MIN && chunks.next_bytes <= CHUNK_BYTES_MAX);
        if bytes > next / 4 {
            let chunk = self.add_chunk(&mut chunks, header + bytes);
            // The chunk is full from the start and never becomes the current one.
            self.retired.fetch_add(header + bytes, Ordering::Relaxed);
            // SAFETY: the chunk has just been added.
            let memory = unsafe { Self::allocate_in(chunk, bytes) };
            return memory.expect("the chunk was made for this");
        }
        let chunk = self.add_chunk(&mut chunks, next);
        // SAFETY: the chunk has just been added.
        let memory = unsafe { Self::allocate_in(chunk, bytes) };
        let memory = memory.expect("a new chunk has four times as much");
        // SAFETY: a chunk in `current` lives as long as the arena. Closing it keeps the count of
        // used bytes exact.
        if let Some(old) = unsafe { current.as_ref() } {
            let used = old.used.swap(old.bytes, Ordering::Relaxed);
            self.retired.fetch_add(used, Ordering::Relaxed);
        }
        self.current.store(chunk, Ordering::Release);
        memory
    }

    /// Allocates a chunk of `bytes`, header included, and puts it in the list.
    fn add_chunk(&self, chunks: &mut Chunks, bytes: usize) -> *mut ChunkHeader {
        assert!(bytes > size_of::<ChunkHeader>(), "a chunk begins with its header");
        let layout = chunk_layout(bytes);
        let chunk = if bytes == CHUNK_BYTES_MAX {
            chunk::take()
        } else {
            // SAFETY: the layout is not empty: `bytes` includes a header.
            NonNull::new(unsafe { alloc(layout) })
        };
        let Some(chunk) = chunk else { handle_alloc_error(layout) };
        let chunk = chunk.cast::<ChunkHeader>().as_ptr();
        assert!(chunk.is_aligned());
        let used = AtomicUsize::new(size_of::<ChunkHeader>());
        // SAFETY: fresh memory, aligned for a header and at least as large.
        unsafe { chunk.write(ChunkHeader { used, bytes, previous: chunks.last }) };
        chunks.last = chunk;
        self.allocated.fetch_add(bytes, Ordering::Relaxed);
        chunk
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let mut chunk = self.chunks.lock().last;
        let mut freed = 0;
        while !chunk.is_null() {
            // SAFETY: the list holds each chunk once, each allocated in `add_chunk` by its size,
            // and nobody else can use the arena any more.
            unsafe {
                let bytes = (*chunk).bytes;
                let previous = (*chunk).previous;
                ptr::drop_in_place(chunk);
                if bytes == CHUNK_BYTES_MAX {
                    chunk::give(NonNull::new_unchecked(chunk.cast()));
                } else {
                    dealloc(chunk.cast(), chunk_layout(bytes));
                }
                chunk = previous;
                freed += bytes;
            }
        }
        debug_assert_eq!(freed, self.bytes(), "every chunk is in the list");
    }
}

fn chunk_layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGN).expect("no chunk is larger than the address space")
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "arena_tests.rs"]
mod tests;
