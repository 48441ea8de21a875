//! One step of a workload, from its clients' loop to the row that comes of it.
//!
//! - [`row`]: everything that a report shows of a step.
//! - [`pace`]: a client's loop.
//! - [`spec`]: what a step is, and how far it is. `series`, `meter`: what is measured meanwhile.
//! - [`step`]: the step. [`work`]: what a workload gives it.

pub mod row;
pub mod pace;
pub mod spec;
mod series;
mod meter;
pub mod step;
pub mod work;
