//! Back-pressure as it is in force: what `write::throttle` decided, in a form that a writer can
//! read with one load, and the waiting itself.
//!
//! A slowed writer pays for each byte in time. The price is collected in a common account, so that
//! many small writes make one short sleep now and then instead of each sleeping too long.

use super::core::{Core, TreeCore};
use super::sched::TreeDebt;
use crate::base::error::Result;
use crate::base::stats::{Counter, Timed};
use crate::base::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use crate::compaction::score;
use crate::write::throttle::{self, Cause, Pressure, Verdict, WAIT_NANOS_MAX};
use std::time::Duration;

/// What a writer may be ahead of its account before it sleeps: shorter sleeps than this cost more
/// than they slow.
const AHEAD_NANOS: u64 = 1_000_000;

/// Marks a full stop in `price`.
const STOP: u64 = u64::MAX;

#[derive(Debug, Default)]
pub(crate) struct ThrottleState {
    /// Nanoseconds per KiB; 0 for none, `STOP` for a stop.
    price: AtomicU64,
    cause: AtomicU8,
    /// Up to which moment the account is paid, in clock nanoseconds.
    paid_until: AtomicU64,
    /// Bytes per second of late, smoothed.
    flush_rate: AtomicU64,
    compaction_rate: AtomicU64,
}

impl ThrottleState {
    pub fn note_flush(&self, bytes: u64, nanos: u64) {
        smooth(&self.flush_rate, bytes, nanos);
    }

    pub fn note_compaction(&self, bytes: u64, nanos: u64) {
        smooth(&self.compaction_rate, bytes, nanos);
    }

    fn set(&self, verdict: Verdict) {
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
    fn charge(&self, now: u64, cost: u64) -> u64 {
        // Many threads must not run up an account that outlives its cause: nobody waits longer.
        let latest = now + WAIT_NANOS_MAX;
        let mut paid = self.paid_until.load(Relaxed);
        loop {
            let from = paid.max(now.saturating_sub(AHEAD_NANOS));
            let until = (from + cost.min(WAIT_NANOS_MAX)).min(latest);
            // A writer whose look at the clock is older than others' takes nothing back.
            match self.paid_until.compare_exchange_weak(paid, until.max(paid), Relaxed, Relaxed) {
                Ok(_) => return until,
                Err(now) => paid = now,
            }
        }
    }

    fn cause(&self) -> Cause {
        let cause = usize::from(self.cause.load(Relaxed));
        Cause::ALL.get(cause).copied().unwrap_or(Cause::Memtables)
    }
}

fn smooth(rate: &AtomicU64, bytes: u64, nanos: u64) {
    if bytes < 1 << 16 || nanos == 0 {
        return;
    }
    let now = (u128::from(bytes) * 1_000_000_000 / u128::from(nanos)) as u64;
    let old = rate.load(Relaxed);
    rate.store(if old == 0 { now } else { old - old / 4 + now / 4 }, Relaxed);
}

impl Core {
    /// Waits until a write of `bytes` may go on: not at all, a little, or until a flush has made
    /// room. An error of background work that keeps room from being made ends the wait.
    pub fn wait_for_room(&self, bytes: u64) -> Result<()> {
        let price = self.throttle.price.load(Relaxed);
        if price == 0 {
            return Ok(());
        }
        let started = self.env.clock.now_nanos();
        let cause = self.throttle.cause();
        if price == STOP {
            self.wait_for_flush()?;
        } else {
            let cost = (u128::from(bytes) * u128::from(price) / 1024) as u64;
            let until = self.throttle.charge(started, cost);
            if until <= started {
                return Ok(());
            }
            self.env.clock.sleep_nanos((until - started).min(WAIT_NANOS_MAX));
        }
        let nanos = self.env.clock.now_nanos() - started;
        let counter = match cause {
            Cause::Memtables => Counter::StallMemtableNanos,
            Cause::Level0 => Counter::StallLevel0Nanos,
            Cause::Debt => Counter::StallDebtNanos,
        };
        self.recorder.add_all([(counter, nanos), (Counter::Stalls, 1)]);
        self.recorder.time(Timed::Stall, nanos);
        Ok(())
    }

    /// Waits until memtables take less than they may. While flushes fail, the write is refused
    /// with the reason instead, so that nobody hangs on a full disk.
    fn wait_for_flush(&self) -> Result<()> {
        while self.throttle.price.load(Relaxed) == STOP {
            self.check_writable()?;
            if self.stepped {
                // With nothing to do, the wait for the next try after a failure is left to time.
                if let Some(job) = self.next_job() {
                    self.run_job(job)?;
                    continue;
                }
            }
            let state = self.sched.lock();
            if let Some(error) = &state.flush_failure.error {
                return Err(error.clone());
            }
            self.sched.wake_worker();
            if self.stepped {
                return Ok(());
            }
            drop(self.sched.wait_for_progress(state, Duration::from_millis(20)));
        }
        Ok(())
    }

    /// Works out a tree's debt after its tables have changed.
    pub fn note_debt(&self, tree: &TreeCore) {
        let shape = tree.state.load().version.shape();
        let settings = self.pick_settings(tree);
        let debt = score::debt(&shape, &settings);
        let (soft, hard) = score::debt_limits(&shape, &settings);
        let mut state = self.sched.lock();
        state.debts.insert(
            tree.id,
            TreeDebt { level0_tables: debt.level0_tables, bytes: debt.bytes, soft, hard },
        );
    }

    /// The bytes of all memtables, and how many are sealed.
    pub fn memtable_bytes(&self) -> (u64, usize) {
        let trees = self.trees.load();
        let mut bytes = 0;
        let mut sealed = 0;
        for tree in trees.by_id.values() {
            let state = tree.state.load();
            bytes += state.active.bytes() as u64;
            bytes += state.sealed.iter().map(|memtable| memtable.bytes() as u64).sum::<u64>();
            sealed += state.sealed.len();
        }
        (bytes, sealed)
    }

    /// Once no write has come for a while, what is kept for the next memtable goes back too.
    pub fn give_back_chunks(&self) {
        if self.chunks.bytes() == 0 {
            return;
        }
        let now = self.env.clock.now_nanos();
        let quiet = {
            let mut state = self.sched.lock();
            self.sched.is_quiet(&mut state, now)
        };
        if quiet {
            self.chunks.clear();
            self.update_pressure();
        }
    }

    /// Works out anew how much writers are slowed.
    pub fn update_pressure(&self) {
        let (memtable_bytes, sealed) = self.memtable_bytes();
        self.tables.memory.set_memtables(memtable_bytes + self.chunks.bytes());
        let mut pressure = Pressure {
            memtable_bytes,
            memtable_limit: self.settings.memtables_bytes_max,
            sealed,
            flush_rate: self.throttle.flush_rate.load(Relaxed),
            compaction_rate: self.throttle.compaction_rate.load(Relaxed) / 4,
            ..Pressure::default()
        };
        for debt in self.sched.lock().debts.values() {
            pressure.level0_tables = pressure.level0_tables.max(debt.level0_tables);
            pressure.debt_bytes += debt.bytes;
            pressure.debt_soft = pressure.debt_soft.max(debt.soft);
            pressure.debt_hard = pressure.debt_hard.max(debt.hard);
        }
        let verdict = throttle::delay(&pressure);
        // With nothing to flush there is nothing to wait for.
        let verdict = match verdict {
            Verdict::Stop { .. } if sealed == 0 => Verdict::None,
            other => other,
        };
        self.throttle.set(verdict);
    }
}

#[cfg(test)]
#[path = "throttle_state_tests.rs"]
mod tests;
