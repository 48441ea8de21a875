//! Two stores that must answer alike: the same random operations through a workload's interface on
//! both, each answer compared. One of them is as a rule the engine in memory, which is plainly
//! right ([`crate::stores::model`]), behind the tables of key-value engines; the other one has
//! tables of its own, such as a database server. What is measured doing something else would be
//! measured wrongly.

mod bytes;
mod same;
mod graph;
mod oltp;
mod sales;
mod pairs;

pub use graph::graph;
pub use oltp::oltp;
pub use pairs::pairs;
pub use sales::sales;

#[cfg(test)]
#[path = "agreement_tests.rs"]
mod tests;
