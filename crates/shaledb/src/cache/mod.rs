//! The block cache and the arbiter of memory.
//!
//! [`Cache`] holds shared values by (file, offset), and beside them compressed ones; a [`Slot`]
//! finds one again without a look-up. [`Memory`] divides one budget between memtables, the indexes
//! and filters of tables, work under way ([`Lease`]), and the cache, which gets what they leave.
//!
//! The share of the compressed tier: a `sampler` sees the uses of some blocks, a `simulation` tells
//! what became of them under each share, and [`share`] decides.

mod place;
mod frames;
mod packed;
mod simulation;
pub mod share;
mod sampler;
#[allow(clippy::module_inception, reason = "the cache is what the module is about")]
mod cache;
mod memory;
#[cfg(test)]
mod simulation_tests;

pub use cache::{Cache, Tiers};
pub use frames::Slot;
pub use memory::{Lease, Memory};
pub use place::{CacheKey, Weigh, allocated};
pub use simulation::Tally;
