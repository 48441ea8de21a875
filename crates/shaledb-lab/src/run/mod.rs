//! One step of a workload, from its clients' loop to the row that comes of it.
//!
//! - [`row`]: everything that a report shows of a step.
//! - [`pace`]: a client's loop.
//! - [`work`]: what a workload gives of a step, and how far it is.
//! - `series`, `meter`: what is measured meanwhile.
//! - [`step`]: the step.

pub mod row;
pub mod pace;
pub mod work;
mod series;
mod meter;
pub mod step;
