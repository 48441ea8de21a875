//! A clock that a test moves.

use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::fs::Clock;

/// A clock that moves when it is looked at or slept on, and never otherwise.
#[derive(Debug, Default)]
pub struct MemClock {
    nanos: AtomicU64,
}

/// How far one look moves the clock.
pub(super) const LOOK_NANOS: u64 = 100;

impl MemClock {
    /// A clock at 0.
    pub fn new() -> MemClock {
        MemClock::default()
    }

    /// Moves the clock forward.
    pub fn advance(&self, nanos: u64) {
        self.nanos.fetch_add(nanos, Ordering::SeqCst);
    }
}

impl Clock for MemClock {
    fn now_nanos(&self) -> u64 {
        self.nanos.fetch_add(LOOK_NANOS, Ordering::SeqCst)
    }

    fn thread_cpu_nanos(&self) -> u64 {
        self.now_nanos()
    }

    fn sleep_nanos(&self, nanos: u64) {
        self.advance(nanos);
    }
}
