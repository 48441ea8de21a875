//! Locks that stand for rows, for who reads a row to write it.

use crate::stores::engine::{Failure, Result};
use std::sync::{Mutex, MutexGuard};

/// How many latches there are; far more than clients, so that two rows seldom share one.
const LATCHES: usize = 4096;

/// Locks that stand for rows: a row's number chooses one. They make a read and the write that
/// follows from it one step among the clients of this process, the same way for every engine.
pub struct Latches(Vec<Latch>);

#[derive(Default)]
#[repr(align(64))]
struct Latch(Mutex<()>);

/// What a client is told that waits for a latch whose holder came to an end.
const PANICKED: &str = "a client panicked while it wrote a row";

impl Latches {
    /// All free.
    pub(crate) fn new() -> Latches {
        Latches((0..LATCHES).map(|_| Latch::default()).collect())
    }

    /// Which latch stands for a row.
    #[inline]
    pub fn of(&self, table: u32, id: u64) -> usize {
        let mixed = (id ^ u64::from(table) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize % LATCHES
    }

    /// Takes one latch; whoever holds it takes no other.
    ///
    /// # Errors
    ///
    /// A thread that held the latch panicked.
    #[inline]
    pub fn one(&self, latch: usize) -> Result<MutexGuard<'_, ()>> {
        self.0[latch].0.lock().map_err(|_| Failure::from(PANICKED))
    }

    /// Takes the latches that `latches` names, which it sorts; it lets all that `held` had go
    /// first. All of a transaction's latches are taken at once and in order, so there is no
    /// deadlock.
    ///
    /// # Errors
    ///
    /// A thread that held one of the latches panicked.
    pub fn take<'s>(
        &'s self,
        latches: &mut Vec<usize>,
        held: &mut Vec<MutexGuard<'s, ()>>,
    ) -> Result<()> {
        held.clear();
        latches.sort_unstable();
        latches.dedup();
        for &latch in latches.iter() {
            held.push(self.one(latch)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn rows_are_spread_over_all_latches() {
        let latches = Latches::new();
        let mut seen = vec![0u32; LATCHES];
        (0..400_000u64).for_each(|id| seen[latches.of((id % 2) as u32, id / 2)] += 1);
        assert!(seen.iter().all(|&count| (20..400).contains(&count)), "{seen:?}");
    }

    #[test]
    fn a_latch_keeps_others_out_and_several_are_taken_in_any_order() {
        let latches = Latches::new();
        let count = AtomicU64::new(0);
        std::thread::scope(|threads| {
            for thread in 0..4usize {
                let (latches, count) = (&latches, &count);
                threads.spawn(move || {
                    let mut held = Vec::new();
                    for round in 0..500usize {
                        let mut wanted = vec![7, (thread + round) % 5, round % 3];
                        latches.take(&mut wanted, &mut held).unwrap();
                        // A lost update, if two were here at once.
                        let seen = count.load(Ordering::Relaxed);
                        std::thread::yield_now();
                        count.store(seen + 1, Ordering::Relaxed);
                        held.clear();
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 2000);
    }
}
