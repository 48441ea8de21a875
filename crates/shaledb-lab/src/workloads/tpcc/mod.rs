//! The pattern of TPC-C over SQL: warehouses that take orders, payments and deliveries, in nine
//! tables and five transactions. It follows the standard (revision 5.11) in tables, proportions and
//! random numbers, but not in its rules of measuring: nobody thinks or types, so rates are no tpmC.
//!
//! ```text
//! load       --warehouses with their rows, in tables with their secondary indexes
//! run.cN     the five transactions in the standard's mix, by N clients
//! check      the standard's conditions of consistency; the step fails if one does not hold
//! wait_idle  flushes and waits until no compaction is due
//! ```
//!
//! - [`step`], [`options`]: what a plan says. [`scale`]: how much there is of everything.
//! - [`rows`]: the tables, and rows to be loaded. [`chance`]: names, texts, uneven numbers.
//! - [`input`]: what a transaction is given.
//! - [`store`]: what a store must do; database servers do it. [`null`]: one that does nothing.
//! - [`load`], [`clients`]: the clients. [`mod@work`]: who does what in a step.

pub mod step;
pub mod scale;
pub mod rows;
pub mod options;
pub mod chance;
pub mod input;
pub mod store;
pub mod null;
pub mod load;
pub mod clients;
pub mod work;

pub use options::TpccOptions;
pub use step::Step;

#[cfg(test)]
#[path = "tpcc_tests.rs"]
mod tests;
