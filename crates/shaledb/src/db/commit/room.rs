//! Room for a write: whoever writes waits while memtables or levels are behind.

use crate::base::error::Result;
use crate::base::stats::{Counter, Timed};
use crate::base::sync::atomic::Ordering::Relaxed;
use crate::db::core::{Core, STOP};
use crate::write::throttle::{Cause, WAIT_NANOS_MAX};
use std::time::Duration;

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
}
