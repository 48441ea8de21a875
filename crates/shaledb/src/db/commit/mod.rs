//! The path of a write: room for it, its group, the log, sealing.

mod group;
mod log;
mod room;
mod seal;

#[cfg(all(test, not(feature = "shuttle")))]
mod filter_tests;

#[cfg(all(test, not(feature = "shuttle")))]
mod dead_tests;
