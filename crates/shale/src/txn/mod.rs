//! What transactions are made of, as values and pure deciders: locks, the wait-for graph, the
//! writes of one transaction that nobody else sees yet, and what an optimistic one has read.
//!
//! Nothing here knows a database: how these parts act together is in `db/transaction`, and why they
//! are as they are in docs/decisions/0006-transactions.md.

pub mod deadlock;
pub mod holders;
pub mod interrupt;
pub mod live;
pub mod lock;
pub mod locks;
pub mod observer;
pub mod reads;
pub mod refusal;
pub mod runs;
pub mod shard;
pub mod tree_locks;
pub mod writes;

pub use interrupt::Interrupt;
pub use live::{About, Live};
pub use lock::{Lock, Mode, Span, TxnId};
pub use locks::{KeysMark, LockTable, Owner, Wait};
pub use refusal::Refusal;
pub use shard::writers::Writers;
