//! Asks the processor to load memory that is about to be searched, so that the misses of a binary
//! search overlap instead of following one another.

/// Bytes of a cache line, as far as this module cares.
const LINE_BYTES: usize = 64;
/// The most lines asked for at once: about what a core can have under way.
const LINES_MAX: usize = 16;

/// Begins to load up to 1 KiB spread over `bytes`. Changes nothing but time.
#[inline]
pub(super) fn spread(bytes: &[u8]) {
    let lines = bytes.len() / LINE_BYTES + 1;
    let stride = lines.div_ceil(LINES_MAX) * LINE_BYTES;
    let mut at = 0;
    while at < bytes.len() {
        line(&bytes[at]);
        at += stride;
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn line(byte: &u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: SSE is part of x86-64, and a prefetch has no effect that a program can observe.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn line(_byte: &u8) {}
