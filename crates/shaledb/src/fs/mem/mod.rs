//! The disk in memory: files and names, and which of them are durable.
//!
//! It promises what a real disk promises, and no more: appended bytes are durable after a sync of
//! the file, names after a sync of their directory. The feature `fault` adds what the simulator and
//! tests need: `MemFs::crash_clone` is the disk as it may look after a power loss; `MemFs::fail`,
//! `MemFs::set_capacity` and `MemFs::crash_after` make calls fail; `MemFs::trace_hash` tells
//! whether two runs made the same calls. Everything is a function of the calls made and the seeds
//! given.

mod call;
mod content;
mod disk;
#[cfg(feature = "fault")]
mod crash;
#[cfg(feature = "fault")]
mod fault;
#[cfg(not(feature = "fault"))]
mod no_fault;
mod mem_fs;
#[cfg(feature = "fault")]
mod control;
#[cfg(feature = "fault")]
mod clock;

#[cfg(feature = "fault")]
pub use self::{
    call::Call,
    clock::MemClock,
    control::Image,
    crash::CrashMode,
    fault::{Counts, Fault, Pause},
};
pub use mem_fs::MemFs;

#[cfg(test)]
#[path = "mem_tests.rs"]
mod tests;
