//! Transactions: the parts of `txn` put together over a database. Reads are in `read`, locks in
//! `lock_calls`, several writes as a whole in `apply`, scans that lock in `locking_scan`, the
//! commit in `commit`.

mod options;
mod txn;
mod lock_calls;
mod read;
mod spill;
mod write;
mod apply;
mod commit;
mod locking_scan;

pub use apply::{Action, Operation, Watch};
pub use locking_scan::LockingScan;
pub use options::{Concurrency, Isolation, LockMode, OnConflict, TransactionOptions};
pub use txn::{Savepoint, Transaction};
