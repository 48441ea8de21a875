//! From an operation to a memtable and from a memtable to a table.

pub mod flush;
pub mod ops;
pub mod queue;
pub mod throttle;
pub mod stalled;
pub mod dead;
pub mod level0;
pub mod space;
