//! A simulated world for Shale: programs of random operations, a model that knows the right
//! answers, and drivers that run the one against the other through crashes and faults.
//!
//! Everything follows from one seed. A failing test prints its seed; `SHALE_SEED=<seed>` runs that
//! seed and nothing else.

pub mod data;
pub mod model;
pub mod ops;
pub mod text;
pub mod shrink;
pub mod settings;
pub mod outcome;
mod scan;
pub mod world;
mod answers;
mod driver;
pub mod crash;
pub mod fault;
pub mod space;
pub mod history;
pub mod corrupt;
