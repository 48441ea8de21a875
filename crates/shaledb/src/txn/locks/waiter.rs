//! Who waits, and where he is told what has become of his request.

use super::deadlock::{Report, Waiting};
use super::live::Seen;
use super::lock::TxnId;
use crate::base::rank;
use crate::base::sync::{Arc, Condvar, Mutex};
use std::collections::BTreeMap;
use std::ops::Range;

/// What has become of a request.
#[derive(Debug, Default)]
pub(super) enum Outcome {
    #[default]
    Open,
    Granted(Option<std::sync::Arc<[u8]>>),
    Deadlock(Arc<Report>),
}

/// Where a transaction that waits is told, and what others may know of it.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) outcome: Mutex<Outcome, { rank::LOCK_OUTCOME }>,
    pub(super) wake: Condvar,
    pub(super) seen: Seen,
}

impl AsRef<Seen> for Slot {
    fn as_ref(&self) -> &Seen {
        &self.seen
    }
}

impl Slot {
    pub(super) fn tell(&self, outcome: Outcome) {
        let mut slot = self.outcome.lock();
        debug_assert!(matches!(*slot, Outcome::Open), "a request is decided once");
        *slot = outcome;
        drop(slot);
        self.wake.notify_all();
    }
}

/// One who waits, or has been told just now that he need not any more.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) shards: Range<usize>,
    pub(super) waiting: Waiting,
    pub(super) slot: Arc<Slot>,
}

/// Who waits, where, and for what.
pub(super) type Waits = BTreeMap<TxnId, Waiter>;
