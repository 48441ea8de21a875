//! What is answered to who asks for a lock and does not get it.

use super::deadlock::Report;
use super::lock::TxnId;
use crate::base::sync::Arc;

/// Why a lock was not granted.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// Others were in the way for as long as was to be waited, among them this one.
    Timeout {
        /// A transaction that is in the way; 0 if it has just ended.
        holder: TxnId,
    },
    /// The request waits: ask again when others have gone on.
    Queued {
        /// A transaction that is in the way.
        holder: TxnId,
    },
    /// It was not to wait any longer; this one was in the way.
    Interrupted {
        /// A transaction that is in the way; 0 if it has just ended.
        holder: TxnId,
    },
    /// This transaction is to be rolled back, or some would wait for ever.
    Deadlock(Arc<Report>),
    /// The table may take no more memory.
    Full {
        /// What it takes, and may take, in bytes.
        bytes_max: u64,
    },
}
