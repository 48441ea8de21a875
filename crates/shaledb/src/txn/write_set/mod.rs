//! The writes of one transaction that nobody else sees yet: in memory, and beyond that in runs.

mod deletes;
pub mod runs;
mod spare;
mod set;

pub use set::{Each, EachEntry, EachNewest, Mark, WriteSet, Written, write_bytes};
