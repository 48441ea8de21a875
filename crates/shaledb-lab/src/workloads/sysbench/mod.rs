//! The sysbench pattern: eight tables `sbtest(id, k, c, pad)` with an index on `k`; steps that
//! write come before those that only read, so that these find the store as writes leave it.
//!
//! ```text
//! load             the rows of all tables in the order of id, then the index of each
//! update-index     update sbtest set k = k + 1 where id = ?
//! update-nonindex  update sbtest set c = ? where id = ?
//! read-write       begin; 10 x select c where id = ?; select c, select sum(k), select c order by
//!                  c,
//!                  select distinct c order by c, each where id between ? and ? + range - 1; then
//!                  the two updates, and delete where id = ? and insert of the same id; commit
//! read-only.N      begin; the selects of read-write with ranges of N rows; commit
//! point-query      select c where id = ?
//! select           select pad where id = ?
//! insert           insert of a new id; it comes last, since it grows the data
//! wait_idle        flushes and waits until no compaction is due
//! ```
//!
//! Each statement of a kind takes a table of its own choice, each id is chosen by `--distribution`.
//! Each step but the load is repeated for each number of clients.
//!
//! - [`step`], [`options`]: what a plan says.
//! - [`rows`], [`ids`]: texts and ids, made of chance.
//! - [`store`]: what a store must do.
//! - [`over_kv`]: key-value engines do it; [`null`]: one that does nothing.
//! - `clients`: the clients. [`mod@work`]: who does what in a step.

pub mod rows;
pub mod store;
pub mod over_kv;
pub mod null;
pub mod ids;
pub mod step;
pub mod options;
mod clients;
pub mod work;

pub use ids::Distribution;
pub use options::SysbenchOptions;
pub use step::Step;

#[cfg(test)]
#[path = "sysbench_tests.rs"]
mod tests;
