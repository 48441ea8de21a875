//! The insert benchmark: rows with three secondary indexes go into a table in the order of its
//! primary key, so that each secondary index is written at random; then queries run beside a writer
//! with a fixed rate.
//!
//! ```text
//! l.i0      loads --rows rows, without secondary indexes
//! l.i       the same with the three secondary indexes there from the start
//! l.x       creates the secondary indexes: read, sort, write in order
//! l.i1      inserts, --rows-per-commit rows to a commit; each commit is followed by a second one
//!           that deletes as many of the oldest rows, so that the table keeps its size
//! l.i2      the same with a tenth of the rows to a commit
//! qrN       range queries for --seconds, beside N inserts (and deletes) per second and client
//! qpN       point queries by primary key, the same way
//! wait_idle flushes and waits until no compaction is due
//! ```
//!
//! Each client has a table of its own, from which the oldest rows go and to whose end the new ones
//! come; in a query step a client is one connection that queries and one that writes.
//!
//! - [`step`], [`options`]: what a plan says.
//! - [`purchase`]: a row; [`rows`]: rows made of chance.
//! - [`store`]: what a store must do.
//! - [`over_kv`]: key-value engines do it; [`null`]: one that does nothing.
//! - [`size`]: the size that compressibility predicts.
//! - `clients`: the clients. [`mod@work`]: who does what in a step.

pub mod purchase;
pub mod store;
pub mod over_kv;
pub mod null;
pub mod step;
pub mod options;
pub mod rows;
pub mod size;
mod clients;
pub mod work;

pub use options::InsertOptions;
pub use step::Step;

#[cfg(test)]
#[path = "insert_tests.rs"]
mod tests;
