//! LinkBench: a social graph of nodes, links and counts of links, loaded and then queried.
//!
//! ```text
//! load    loads --maxid1 nodes with their links (4.3 for a node, two types) and counts
//! q1..qN  ten operations in LinkBench's proportions, --loops times --seconds each
//! drop    drops all tables
//! ```
//!
//! The published workload file gives all numbers. Where its program does something else than the
//! file says, this follows the file: the data of links repeats motifs of 128 bytes (the program
//! always takes 512), 30 % of the range queries ask for older links if a list was cut (the program:
//! 0.3 %), writes in the uncorrelated order have a shape of 0.741 (the program takes that of the
//! reads, 0.8), the geometric distribution begins at 1, and a node's links, shared by its types,
//! are as many as the distribution says.
//!
//! - [`step`], [`options`]: what a plan says.
//! - [`distributions`]: Zipf, log-normal, geometric numbers, links per node, shuffled ids.
//! - [`motif`]: data that compresses as LinkBench's does.
//! - [`graph`]: the rows and what a store must do with them. [`null`]: one that does nothing.
//! - [`over_kv`]: key-value engines do it.
//! - [`choice`]: which operation, which nodes and links.
//! - [`load`], [`query`]: the clients. [`mod@work`]: who does what in a step.

pub mod step;
pub mod options;
pub mod distributions;
pub mod motif;
pub mod graph;
pub mod null;
pub mod over_kv;
pub mod choice;
pub mod load;
pub mod query;
pub mod work;
#[cfg(test)]
mod fit;

pub use options::LinkbenchOptions;
pub use step::Step;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
