//! Room for a write: whoever writes waits while memtables or levels are behind, and while merges
//! make room near the limit on space. What has no room is refused.

use crate::base::error::{Error, Result};
use crate::base::key::Kind;
use crate::base::stats::{Counter, Timed};
use crate::base::sync::atomic::Ordering::Relaxed;
use crate::db::core::{Core, OWED_NANOS, STOP};
use crate::fs::ledger::Admitted;
use crate::wal::OpIter;
use crate::write::ops::Ops;
use crate::write::space;
use crate::write::throttle::{Cause, WAIT_NANOS_MAX};
use std::time::Duration;

/// How long a writer waits at once for background work to get somewhere.
const WAIT: Duration = Duration::from_millis(20);

/// Room that a write has: to be kept until it is made.
#[must_use]
pub(crate) struct Room {
    _admitted: Option<Admitted>,
}

/// Whether all of these are deletes.
fn are_deletes(ops: &Ops) -> bool {
    let is_delete = |kind| matches!(kind, Kind::Delete | Kind::RangeDelete);
    OpIter::new(ops.bytes(), 1).all(|op| is_delete(op.kind))
}

impl Core {
    /// Waits until a write may go on: not at all, a little, or until a flush or a merge has made
    /// room. An error of background work that keeps room from being made ends the wait.
    pub fn wait_for_room(&self, ops: &Ops) -> Result<Room> {
        let price = self.throttle.price.load(Relaxed);
        if price != 0 {
            self.wait_for_turn(ops.bytes().len() as u64, price)?;
        }
        if !self.space().is_limited() {
            return Ok(Room { _admitted: None });
        }
        let bytes = space::cost(ops.bytes().len() as u64, ops.count().into());
        self.admit(bytes, &|| are_deletes(ops)).map(|admitted| Room { _admitted: Some(admitted) })
    }

    fn wait_for_turn(&self, bytes: u64, price: u64) -> Result<()> {
        let cause = self.throttle.cause();
        if price == STOP {
            return self.stall(cause, || self.wait_for_flush());
        }
        let now = self.env.clock.now_nanos();
        let cost = (u128::from(bytes) * u128::from(price) / 1024) as u64;
        let until = self.throttle.charge(now, cost);
        if until > now + OWED_NANOS {
            let nanos = (until - now).min(WAIT_NANOS_MAX);
            self.stall(cause, || self.env.clock.sleep_nanos(nanos));
        }
        Ok(())
    }

    /// Waits, and counts how long.
    fn stall<T>(&self, cause: Cause, wait: impl FnOnce() -> T) -> T {
        let started = self.env.clock.now_nanos();
        self.stalled.begin(started);
        let outcome = wait();
        let now = self.env.clock.now_nanos();
        self.stalled.end(now);
        let nanos = now - started;
        let counter = match cause {
            Cause::Memtables => Counter::StallMemtableNanos,
            Cause::Level0 => Counter::StallLevel0Nanos,
            Cause::Debt => Counter::StallDebtNanos,
            Cause::Space => Counter::StallSpaceNanos,
        };
        self.recorder.add_all([(counter, nanos), (Counter::Stalls, 1)]);
        self.recorder.time(Timed::Stall, nanos);
        outcome
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
            drop(self.sched.wait_for_progress(state, WAIT));
        }
        Ok(())
    }

    /// Counts a write of so many bytes, in all files and of that in tables, in what the files may
    /// take. Waits while work that may make room for it is under way, and refuses it then.
    pub fn admit(
        &self,
        (bytes, tables): (u64, u64),
        are_deletes: &dyn Fn() -> bool,
    ) -> Result<Admitted> {
        let space = self.space();
        if let Some(admitted) = space.admit(bytes, tables, false) {
            return Ok(admitted);
        }
        // The limit may have been lifted since.
        if tables > space::commit_most(space.limit()) {
            return Err(space.refusal(bytes));
        }
        let deletes = are_deletes();
        self.stall(Cause::Space, || self.admit_later((bytes, tables), deletes))
    }

    /// Waits while there is work under way that may make room.
    fn admit_later(&self, (bytes, tables): (u64, u64), deletes: bool) -> Result<Admitted> {
        let space = self.space();
        let _waits = self.sched.wait_for_room();
        let wanted = self.room_now();
        self.ask_for_room(wanted);
        self.sched.waiting_while(|| {
            loop {
                if let Some(admitted) = space.admit(bytes, tables, deletes) {
                    return Ok(admitted);
                }
                self.check_writable()?;
                // Looked at first: what ends after this look has made its room before the next.
                let is_under_way = self.makes_room();
                if let Some(admitted) = space.admit(bytes, tables, deletes) {
                    return Ok(admitted);
                }
                if is_under_way && self.await_room()? {
                    continue;
                }
                if !self.ask_for_room(wanted) {
                    return Err(space.refusal(bytes));
                }
                if !self.stepped {
                    drop(self.sched.wait_for_progress(self.sched.lock(), WAIT));
                }
            }
        })
    }

    /// Waits for background work to get somewhere; false if there is none to wait for.
    fn await_room(&self) -> Result<bool> {
        if !self.stepped {
            drop(self.sched.wait_for_progress(self.sched.lock(), WAIT));
            return Ok(true);
        }
        let Some(job) = self.next_job() else { return Ok(false) };
        match self.run_job(job) {
            Err(Error::Closed) => Err(Error::Closed),
            // It is tried again later.
            Err(error) if error.is_without_room() => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// Refuses a write that has no room now, for whoever writes it later, with others.
    pub fn foresee(&self, bytes: u64, operations: u64, is_delete: bool) -> Result<()> {
        let (bytes, _) = space::cost(bytes, operations);
        self.foresee_on_disk(bytes, is_delete)
    }

    /// As [`Core::foresee`], of so many bytes of a file that users pay for.
    pub fn foresee_file(&self, bytes: u64) -> Result<()> {
        self.foresee_on_disk(bytes, false)
    }

    fn foresee_on_disk(&self, bytes: u64, is_delete: bool) -> Result<()> {
        if !self.space().is_limited() {
            return Ok(());
        }
        self.admit((bytes, 0), &|| is_delete).map(drop)
    }
}
