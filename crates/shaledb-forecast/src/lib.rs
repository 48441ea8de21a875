//! What Shale will cost with much data, for long, on a machine that is not here.
//!
//! The engine's own decisions, taken from `shaledb`, run on a model of files: which compaction is
//! due, where its output is cut, how much writers are slowed, which codec a level has, what is left
//! of a limit on space, what is done at rest. The model says what tables hold ([`keys`],
//! [`content`]), how long work takes ([`scenario::Work`]), and who gets how much of cores and
//! device ([`rates`]). docs/simulate.md says how far it can be trusted.

pub mod keys;
pub mod content;
pub mod existing;
pub mod scenario;
pub mod memtable;
pub mod tree;
pub mod sums;
pub mod outcome;
pub mod policy;
pub mod rates;
pub mod running;
pub mod run;
pub mod growth;
pub mod foresee;

pub use existing::Existing;
pub use foresee::{Bottleneck, Effort, Forecast, Most, Stretch, foresee};
pub use keys::Skew;
pub use outcome::{Sample, Totals};
pub use scenario::{Device, Load, Machine, Order, Scenario, USUAL_WORK, Work, costs_of_ratio};
