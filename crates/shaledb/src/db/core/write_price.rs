//! Back-pressure that applies now: what `write::throttle` decided, in a form that a writer can
//! read with one load.
//!
//! A slowed writer pays for each byte in time. The price is collected in a common account, so that
//! many small writes make one short sleep now and then instead of each sleeping too long.

use crate::base::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use crate::write::throttle::{Cause, Verdict, WAIT_NANOS_MAX, smoothed};

/// What a writer may have saved up in the account, in nanoseconds.
const AHEAD_NANOS: u64 = 1_000_000;

/// What it may owe before it sleeps, in nanoseconds. So few writes sleep, and the system wakes few
/// threads: a sleep of some microseconds takes 60 and more, and on busy cores now and then
/// milliseconds.
pub(crate) const OWED_NANOS: u64 = 8_000_000;

/// Marks a full stop in `price`.
pub(crate) const STOP: u64 = u64::MAX;

#[derive(Debug, Default)]
pub(crate) struct WritePrice {
    /// Nanoseconds per KiB; 0 for none, `STOP` for a stop.
    pub price: AtomicU64,
    cause: AtomicU8,
    /// Up to which moment the account is paid, in clock nanoseconds.
    paid_until: AtomicU64,
    /// Bytes per second of late, smoothed.
    pub flush_rate: AtomicU64,
    pub compaction_rate: AtomicU64,
}

impl WritePrice {
    pub fn note_flush(&self, bytes: u64, nanos: u64) {
        smooth(&self.flush_rate, bytes, nanos);
    }

    pub fn note_compaction(&self, bytes: u64, nanos: u64) {
        smooth(&self.compaction_rate, bytes, nanos);
    }

    pub fn set(&self, verdict: Verdict) {
        if let Verdict::Slow { nanos_per_byte, .. } = verdict {
            assert!(nanos_per_byte.is_finite() && nanos_per_byte > 0.0, "{nanos_per_byte}");
        }
        let (price, cause) = match verdict {
            Verdict::None => (0, None),
            Verdict::Slow { nanos_per_byte, cause } => {
                (((nanos_per_byte * 1024.0) as u64).clamp(1, STOP - 1), Some(cause))
            }
            Verdict::Stop { cause } => (STOP, Some(cause)),
        };
        if let Some(cause) = cause {
            self.cause.store(cause as u8, Relaxed);
        }
        self.price.store(price, Relaxed);
    }

    /// Charges a write of `cost` nanoseconds at `now` to the account; answers up to when the
    /// account is paid then.
    pub fn charge(&self, now: u64, cost: u64) -> u64 {
        // Many threads must not run up an account that outlives its cause: nobody waits longer.
        let latest = now + WAIT_NANOS_MAX;
        let mut paid = self.paid_until.load(Relaxed);
        loop {
            let from = paid.max(now.saturating_sub(AHEAD_NANOS));
            let until = (from + cost.min(WAIT_NANOS_MAX)).min(latest);
            debug_assert!(until <= now + WAIT_NANOS_MAX, "no write waits longer");
            // A writer whose look at the clock is older than others' takes nothing back.
            match self.paid_until.compare_exchange_weak(paid, until.max(paid), Relaxed, Relaxed) {
                Ok(_) => return until,
                Err(now) => paid = now,
            }
        }
    }

    pub fn cause(&self) -> Cause {
        let cause = usize::from(self.cause.load(Relaxed));
        Cause::ALL.get(cause).copied().unwrap_or(Cause::Memtables)
    }
}

fn smooth(rate: &AtomicU64, bytes: u64, nanos: u64) {
    rate.store(smoothed(rate.load(Relaxed), bytes, nanos), Relaxed);
}

#[cfg(test)]
#[path = "write_price_tests.rs"]
mod tests;
