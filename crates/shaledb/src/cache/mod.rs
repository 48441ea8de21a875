//! The block cache and the arbiter of memory.
//!
//! [`Cache`] holds shared values by (file, offset); a [`Slot`] finds one again without a look-up.
//! [`Memory`] divides one budget between memtables, the indexes and filters of tables, work
//! under way ([`Lease`]), and the cache, which gets what they leave.

mod frames;
mod steps;
#[allow(clippy::module_inception, reason = "the cache is what the module is about")]
mod cache;
mod memory;

pub use cache::{Cache, CacheKey, Weigh};
pub use frames::Slot;
pub use memory::{Lease, Memory};
