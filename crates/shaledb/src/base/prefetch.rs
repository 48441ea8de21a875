//! Asks the processor to load memory that is about to be read, so that the misses of a binary
//! search, or of a chain of pointers, overlap with other work instead of being waited for.

/// Bytes of a cache line, as far as this module cares.
const LINE_BYTES: usize = 64;
/// The most lines asked for at once: about what a core can have under way.
const LINES_MAX: usize = 16;

/// Begins to load up to 1 KiB spread over `bytes`. Changes nothing but time.
#[inline]
pub fn spread(bytes: &[u8]) {
    let lines = bytes.len() / LINE_BYTES + 1;
    let stride = lines.div_ceil(LINES_MAX) * LINE_BYTES;
    let mut at = 0;
    while at < bytes.len() {
        line(&raw const bytes[at]);
        at += stride;
    }
}

/// Begins to load a value and the two counters before it, which an `Arc` has there if the value is
/// not aligned to more than these take.
#[inline]
pub fn counted<T>(value: *const T) {
    let counters = 2 * size_of::<usize>();
    let first = value.cast::<u8>().wrapping_sub(counters);
    let in_line = first.addr() % LINE_BYTES;
    let bytes = in_line + counters + size_of::<T>();
    for at in (0..bytes).step_by(LINE_BYTES).take(LINES_MAX) {
        line(first.wrapping_sub(in_line).wrapping_add(at));
    }
}

/// Begins to load the cache line at `pointer`, which may be any address.
#[inline]
pub fn line<T>(pointer: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: SSE is part of x86-64, and a prefetch has no effect that a program can observe.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(pointer.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = pointer;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn any_address_may_be_asked_for() {
        let bytes = vec![1u8; 5000];
        for length in [0, 1, 63, 64, 65, 1024, 1025, 5000] {
            spread(&bytes[..length]);
        }
        for address in [0, 8, usize::MAX] {
            line(std::ptr::without_provenance::<u64>(address));
            counted(std::ptr::without_provenance::<[u64; 16]>(address));
        }
        counted(Arc::as_ptr(&Arc::new([0u64; 16])));
    }
}
