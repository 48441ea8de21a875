//! Memory in whole pages, taken from the system and given back to it.
//!
//! What an allocator is given back it mostly keeps, in arenas of their own for many threads, and
//! what one thread frees another may not get. For memory that comes and goes in large amounts (the
//! chunks of memtables, the blocks of the cache) that doubled what a process takes (measured in
//! docs/decisions/0006-memory.md). [`Pages`] is a mapping; [`Buffer`] a part of one, or a vector,
//! behind one pointer, so that whoever reads it need not ask which.

use std::alloc::{Layout, handle_alloc_error};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// Buffers of at least this size are mapped, where that is left to [`Buffer`]. An allocator that
/// maps by itself what is large (glibc from 128 KiB on) raises the bound to the size of what is
/// freed, and keeps twice as much for each of its arenas from then on.
const MAP_BYTES_MIN: usize = 1 << 17;

/// Memory mapped from the system: zeros at first, given back when dropped.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: plain memory that only its owner can reach.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps `bytes` (more than 0), rounded up to whole pages, at a multiple of `align`, a power of
    /// two. Aborts if there is no memory, as an allocation does.
    pub fn map(bytes: usize, align: usize) -> Pages {
        assert!(bytes > 0 && align.is_power_of_two());
        let bytes = Pages::round_up(bytes);
        match system::map(bytes, align) {
            Some(start) => Pages { start, bytes },
            None => match Layout::from_size_align(bytes, align) {
                Ok(layout) => handle_alloc_error(layout),
                Err(_) => panic!("more memory was asked for than there are addresses"),
            },
        }
    }

    /// The size of a mapping for so many bytes.
    pub fn round_up(bytes: usize) -> usize {
        bytes.next_multiple_of(system::page_bytes())
    }

    /// Asks the kernel to back the memory by huge pages. A hint.
    pub fn ask_huge(&self) {
        system::ask_huge(self.start, self.bytes);
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives up the mapping without unmapping it.
    pub fn into_raw(self) -> (NonNull<u8>, usize) {
        let pages = ManuallyDrop::new(self);
        (pages.start, pages.bytes)
    }

    /// Takes over what [`Pages::into_raw`] gave up.
    ///
    /// # Safety
    /// The two are from one call of it, and nobody else uses the memory from now on.
    pub unsafe fn from_raw(start: NonNull<u8>, bytes: usize) -> Pages {
        Pages { start, bytes }
    }

    /// Cuts the mapping into buffers of `bytes` each; what is left at the end is not used. It is
    /// unmapped when the last of them is dropped.
    pub fn split(self, bytes: usize) -> Vec<Buffer> {
        let pages = Arc::new(self);
        let count = pages.bytes / bytes.max(1);
        let part = |index: usize| Buffer {
            // SAFETY: index * bytes + bytes <= the mapping's length.
            start: unsafe { pages.start.add(index * bytes) },
            len: bytes,
            capacity: bytes,
            pages: Some(Arc::clone(&pages)),
        };
        (0..count).map(part).collect()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and nobody can use it any more.
        unsafe { system::unmap(self.start, self.bytes) };
    }
}

/// Bytes of its own: a vector's, or a part of [`Pages`].
pub struct Buffer {
    start: NonNull<u8>,
    len: usize,
    /// All of these are initialized if they are of pages.
    capacity: usize,
    /// `None`: of a vector.
    pages: Option<Arc<Pages>>,
}

// SAFETY: it owns its bytes as a vector does: parts of pages do not overlap.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// How many bytes of memory it takes.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The same memory with another length, if it is large enough, else other memory: of
    /// [`Pages`] of its own if it is large, and of a vector no more than asked for. The content is
    /// anything.
    pub fn resized(mut self, len: usize) -> Buffer {
        if self.pages.is_some() && len <= self.capacity {
            self.len = len;
            return self;
        }
        if len > self.capacity && len >= MAP_BYTES_MIN {
            // A little more, since what comes next is likely to be about as long.
            let bytes = len.next_multiple_of(MAP_BYTES_MIN / 2);
            let mut parts = Pages::map(bytes, 1).split(bytes);
            return parts.swap_remove(0).resized(len);
        }
        if self.pages.is_some() {
            return Buffer::from(vec![0; len]);
        }
        let mut vec = self.into_vec();
        vec.truncate(len);
        vec.reserve_exact(len - vec.len());
        vec.resize(len, 0);
        Buffer::from(vec)
    }

    fn into_vec(self) -> Vec<u8> {
        let buffer = ManuallyDrop::new(self);
        debug_assert!(buffer.pages.is_none());
        // SAFETY: the parts of a vector, which `From` took, and nobody else uses now.
        unsafe { Vec::from_raw_parts(buffer.start.as_ptr(), buffer.len, buffer.capacity) }
    }

    /// Gives the whole pages inside back to the system; they are zeros from now on.
    pub fn give_back(&mut self) {
        if self.pages.is_some() {
            // SAFETY: the bytes are ours alone, and zeros are as good as what is there.
            unsafe { system::give_back(self.start, self.capacity) };
        }
    }
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer::from(Vec::new())
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(vec: Vec<u8>) -> Buffer {
        let mut vec = ManuallyDrop::new(vec);
        let (len, capacity) = (vec.len(), vec.capacity());
        let start = NonNull::from(vec.as_mut_slice()).cast();
        Buffer { start, len, capacity, pages: None }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `len` initialized bytes of ours begin there.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.pages.is_none() {
            // SAFETY: as in `into_vec`.
            drop(unsafe { Vec::from_raw_parts(self.start.as_ptr(), self.len, self.capacity) });
        }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} of {} bytes)", self.len, self.capacity)
    }
}

#[cfg(all(unix, not(miri)))]
mod system {
    use std::ptr::{self, NonNull};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

    /// The size of the machine's pages.
    pub(super) fn page_bytes() -> usize {
        let known = PAGE_BYTES.load(Relaxed);
        if known != 0 {
            return known;
        }
        // SAFETY: the call takes a number and gives one.
        let told = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let bytes = usize::try_from(told).ok().filter(|b| b.is_power_of_two()).unwrap_or(1 << 16);
        PAGE_BYTES.store(bytes, Relaxed);
        bytes
    }

    pub(super) fn map(bytes: usize, align: usize) -> Option<NonNull<u8>> {
        // So much that an aligned part is in it wherever it begins.
        let spare = if align > page_bytes() { align } else { 0 };
        let whole = bytes.checked_add(spare)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: a new mapping at an address of the system's choice touches nothing of ours.
        let start = unsafe { libc::mmap(ptr::null_mut(), whole, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = start.cast::<u8>();
        let head = start.addr().next_multiple_of(align.max(1)) - start.addr();
        if spare == 0 {
            return NonNull::new(start);
        }
        // SAFETY: head <= spare, so all three parts lie in the mapping, at whole pages.
        unsafe {
            let first = start.add(head);
            if head > 0 {
                libc::munmap(start.cast(), head);
            }
            if spare > head {
                libc::munmap(first.add(bytes).cast(), spare - head);
            }
            NonNull::new(first)
        }
    }

    /// # Safety
    /// Mapped by `map` with this length, and no longer used.
    pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's word.
        unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    }

    pub(super) fn ask_huge(_start: NonNull<u8>, _bytes: usize) {
        // SAFETY: a hint on a mapping of ours; nothing depends on whether the kernel follows it.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::madvise(_start.as_ptr().cast(), _bytes, libc::MADV_HUGEPAGE);
        }
    }

    /// # Safety
    /// The range lies in a mapping of `map`, and nobody reads it until it is written again, or
    /// takes zeros for good.
    pub(super) unsafe fn give_back(_start: NonNull<u8>, _bytes: usize) {
        #[cfg(target_os = "linux")]
        {
            let address = _start.as_ptr().addr();
            let first = address.next_multiple_of(page_bytes());
            let end = (address + _bytes) / page_bytes() * page_bytes();
            if first < end {
                // SAFETY: whole pages inside the caller's range.
                unsafe {
                    let at = _start.as_ptr().add(first - address);
                    libc::madvise(at.cast(), end - first, libc::MADV_DONTNEED);
                }
            }
        }
    }
}

/// Where there is no such call, or where it is not simulated.
#[cfg(not(all(unix, not(miri))))]
mod system {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    pub(super) fn page_bytes() -> usize {
        4096
    }

    fn layout(bytes: usize) -> Layout {
        // The largest alignment asked for, so that it need not be kept.
        Layout::from_size_align(bytes, 2 << 20).expect("no mapping is larger than all addresses")
    }

    pub(super) fn map(bytes: usize, align: usize) -> Option<NonNull<u8>> {
        assert!(align <= 2 << 20);
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { alloc_zeroed(layout(bytes)) })
    }

    /// # Safety
    /// Mapped by `map` with this length, and no longer used.
    pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's word.
        unsafe { dealloc(start.as_ptr(), layout(bytes)) };
    }

    pub(super) fn ask_huge(_: NonNull<u8>, _: usize) {}

    pub(super) unsafe fn give_back(_: NonNull<u8>, _: usize) {}
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
