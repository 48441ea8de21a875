//! The lock table: shards behind mutexes, and those who wait.
//!
//! What nobody disputes costs one shard's mutex. Whoever has to wait takes the one mutex of the
//! waits first, so that beginnings of waits come one after the other and each sees all earlier
//! ones: then a deadlock is found when its last member begins to wait, and not later. Nobody holds
//! a mutex while he waits. Mutexes are taken in this order: waits, a shard (to merge locks, all in
//! their order), a transaction's slot.
//!
//! A range is asked for in one shard after the other. If one refuses, what the others have granted
//! is taken back, and the request waits in all of them: who waits holds nothing of what he waits
//! for. So do a row and the gap before it, which scans ask for together. Who holds many keys gets
//! ranges instead: see `escalate`.
//!
//! Who has nobody to wait beside him (a simulation in one thread) asks with [`Wait::Step`]: the
//! request stays in the queue, and asking for the same again tells what has become of it.

// Each relies on earlier ones only: what is asked for, one shard as a value, a transaction as the
// table knows it, the table, and what is done with it.
mod lock;
pub mod deadlock;
mod interrupt;
mod live;
mod observer;
mod refusal;
mod ask;
mod holders;
mod tree_locks;
mod shard;
mod writers;
mod waiter;
mod cell;
mod chains;
mod owner;
mod table;
mod waits;
mod escalate;
mod release;
mod acquire;
mod views;

pub use ask::Wait;
pub use interrupt::Interrupt;
pub use live::{About, Live};
pub use lock::{Lock, Mode, OwnedSpan, Span, TxnId};
pub use observer::WaitObserver;
pub use owner::{KeysMark, Owner};
pub use refusal::Refusal;
pub use table::LockTable;
pub use writers::Writers;

#[cfg(test)]
#[path = "locks_tests.rs"]
mod tests;
