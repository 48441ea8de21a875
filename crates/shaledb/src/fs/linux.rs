//! Calls of Linux that the standard library does not offer.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Has the system read `bytes` bytes from `offset` on, which will be needed soon. A failure does
/// not matter and is not looked at.
pub(super) fn will_need(file: &File, offset: u64, bytes: u64) {
    advise(file, offset, bytes, libc::POSIX_FADV_WILLNEED);
}

/// Lets go of pages that nobody will need soon, but for those that are still to be written. A
/// failure does not matter and is not looked at.
pub(super) fn wont_need(file: &File, offset: u64, bytes: u64) {
    advise(file, offset, bytes, libc::POSIX_FADV_DONTNEED);
}

fn advise(file: &File, offset: u64, bytes: u64, advice: libc::c_int) {
    let (offset, bytes) = (offset as libc::off64_t, bytes as libc::off64_t);
    // SAFETY: the descriptor is open; the call touches no memory of ours.
    unsafe {
        libc::posix_fadvise64(file.as_raw_fd(), offset, bytes, advice);
    }
}

/// Has the device begin to write what is in memory of `bytes` bytes from `offset` on. A failure
/// does not matter and is not looked at: a sync tells of it.
pub(super) fn write_back(file: &File, offset: u64, bytes: u64) {
    let (offset, bytes) = (offset as libc::off64_t, bytes as libc::off64_t);
    // SAFETY: the descriptor is open; the call touches no memory of ours.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, bytes, libc::SYNC_FILE_RANGE_WRITE);
    }
}

/// Sees to space on the disk for `bytes` bytes from `offset` on. The file gets as long; no byte of
/// it changes, and those that come to it are zeros.
pub(super) fn allocate(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let (offset, bytes) = (offset as libc::off64_t, bytes as libc::off64_t);
    // SAFETY: the descriptor is open; the call touches no memory of ours.
    if unsafe { libc::fallocate64(file.as_raw_fd(), 0, offset, bytes) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The number of the kind of the file system that the file is on.
pub(super) fn file_system(file: &File) -> Option<u32> {
    // SAFETY: all zeros is a valid statfs, a plain structure of integers.
    let mut answer: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open and the pointer is valid for the call.
    let done = unsafe { libc::fstatfs(file.as_raw_fd(), &mut answer) } == 0;
    // The field's width and sign differ between systems; the numbers have 32 bits.
    done.then_some(answer.f_type as u32)
}
