//! What transactions are made of, as values and pure deciders: locks, the wait-for graph, the
//! writes of one transaction that nobody else sees yet, and what an optimistic one has read.
//!
//! Nothing here knows a database: how these parts act together is in `db/transaction`, and why they
//! are as they are in docs/decisions/0006-transactions.md.

pub mod locks;
pub mod reads;
pub mod write_set;

pub use locks::deadlock;
pub use locks::{
    About, Interrupt, KeysMark, Live, Lock, LockTable, Mode, Owner, Refusal, Span, TxnId, Wait,
    Writers,
};
pub use write_set::runs;
