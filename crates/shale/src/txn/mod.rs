//! What transactions are made of, as values and pure deciders: locks, the wait-for graph, the
//! writes of one transaction that nobody else sees yet, and what an optimistic one has read.
//!
//! Nothing here knows a database: how these parts act together is in `db/transaction`, and why they
//! are as they are in docs/decisions/0006-transactions.md.

pub mod deadlock;
pub mod locks;
pub mod observer;
pub mod reads;
pub mod shard;
pub mod writes;

pub use locks::{LockTable, Owner, Refusal, Wait};
pub use observer::WaitObserver;
pub use shard::{Lock, Mode, Span, TxnId};
