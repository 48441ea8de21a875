//! Tests of the account that slowed writers pay into: of real threads, and with the feature `shuttle` in
//! explored interleavings.

use super::*;
use crate::base::sync::Arc;

#[cfg(feature = "shuttle")]
use shuttle::thread;
#[cfg(not(feature = "shuttle"))]
use std::thread;

const NOW: u64 = 1_000_000_000;

/// Each of some threads charges `charges` times; nothing of it may get lost.
fn charges_add_up(threads: u64, charges: u64, cost: u64) {
    let state = Arc::new(WritePrice::default());
    let writers: Vec<_> = (0..threads)
        .map(|_| {
            let state = state.clone();
            thread::spawn(move || (0..charges).map(|_| state.charge(NOW, cost)).max())
        })
        .collect();
    let last = writers.into_iter().filter_map(|writer| writer.join().unwrap()).max();
    let due = NOW - AHEAD_NANOS + threads * charges * cost;
    assert_eq!(state.paid_until.load(Relaxed), due);
    assert_eq!(last, Some(due));
}

#[cfg(not(feature = "shuttle"))]
#[test]
fn charges_of_many_threads_add_up() {
    let cost = 100;
    let charges = WAIT_NANOS_MAX / cost / 8;
    charges_add_up(8, charges, cost);
}

#[cfg(feature = "shuttle")]
#[test]
fn charges_add_up_in_all_interleavings() {
    shuttle::check_random(|| charges_add_up(3, 2, 1_000), 500);
    shuttle::check_dfs(|| charges_add_up(2, 1, 1_000), None);
}

#[cfg(not(feature = "shuttle"))]
#[test]
fn no_account_is_run_up_or_taken_back() {
    let state = WritePrice::default();
    assert_eq!(state.charge(NOW, 10), NOW - AHEAD_NANOS + 10);
    assert_eq!(state.charge(NOW, u64::MAX), NOW - AHEAD_NANOS + 10 + WAIT_NANOS_MAX);
    for _ in 0..3 {
        assert_eq!(state.charge(NOW, u64::MAX), NOW + WAIT_NANOS_MAX);
    }
    // An older look at the clock waits no longer than it may, and leaves the account as it is.
    assert_eq!(state.charge(NOW - 1_000, 10), NOW - 1_000 + WAIT_NANOS_MAX);
    assert_eq!(state.paid_until.load(Relaxed), NOW + WAIT_NANOS_MAX);
    // What was not used in time is not saved up.
    let later = NOW + 10 * WAIT_NANOS_MAX;
    assert_eq!(state.charge(later, 10), later - AHEAD_NANOS + 10);
}
