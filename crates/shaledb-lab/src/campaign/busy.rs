//! Threads that burn CPU while a driver runs its step: what other programs on a busy machine do.
//! They are the campaign's, so that they are in no figure of the driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// How much is computed between two looks at whether to go on.
const ROUND: u64 = 10_000;

/// Threads that are busy until this is dropped.
pub(super) struct Busy {
    stop: Arc<AtomicBool>,
    /// How many rounds each thread has done.
    rounds: Vec<Arc<AtomicU64>>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    /// Begins.
    pub(super) fn new(threads: u32) -> Busy {
        let mut busy = Busy { stop: Arc::default(), rounds: Vec::new(), threads: Vec::new() };
        for _ in 0..threads {
            let (stop, rounds) = (busy.stop.clone(), Arc::<AtomicU64>::default());
            busy.rounds.push(rounds.clone());
            busy.threads.push(std::thread::spawn(move || burn(&stop, &rounds)));
        }
        busy
    }
}

fn burn(stop: &AtomicBool, rounds: &AtomicU64) {
    let mut number = 1u64;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..ROUND {
            // Registers only: the caches are left to others.
            number = std::hint::black_box(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        }
        rounds.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It has nothing to fail at.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_works_until_it_is_told_to_stop() {
        let busy = Busy::new(2);
        let rounds = busy.rounds.clone();
        while rounds.iter().any(|rounds| rounds.load(Ordering::Relaxed) < 3) {
            std::thread::yield_now();
        }
        drop(busy);
        let done = |rounds: &[Arc<AtomicU64>]| -> Vec<u64> {
            rounds.iter().map(|rounds| rounds.load(Ordering::Relaxed)).collect()
        };
        assert_eq!(done(&rounds), done(&rounds));
        // Whoever worked has let go of its share.
        assert!(rounds.iter().all(|rounds| Arc::strong_count(rounds) == 1));
        assert!(Busy::new(0).threads.is_empty());
    }
}
