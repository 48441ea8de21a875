use super::{Activity, Clock, Meter, Recorder, Sample};
use crate::base::stats::Timed;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Each look takes its time, on both clocks.
#[derive(Default)]
struct SlowClock {
    wall: AtomicU64,
    cpu: AtomicU64,
    /// How long other threads run at the next look at the CPU clock.
    switch: AtomicU64,
}

impl SlowClock {
    fn work(&self, nanos: u64) {
        self.wall.fetch_add(nanos, Relaxed);
        self.cpu.fetch_add(nanos, Relaxed);
    }
}

impl Clock for SlowClock {
    fn now_nanos(&self) -> u64 {
        self.work(30);
        self.wall.load(Relaxed)
    }

    fn thread_cpu_nanos(&self) -> u64 {
        self.work(230);
        self.wall.fetch_add(self.switch.swap(0, Relaxed), Relaxed);
        self.cpu.load(Relaxed)
    }

    fn sleep_nanos(&self, nanos: u64) {
        self.wall.fetch_add(nanos, Relaxed);
    }
}

/// What one call is said to have used and to have taken.
fn measured(look: bool, work: impl FnOnce(&SlowClock)) -> (u64, u64) {
    let (clock, recorder) = (Arc::new(SlowClock::default()), Arc::new(Recorder::new()));
    let meter = Meter::new(clock.clone(), recorder.clone());
    let started = meter.start(Sample { cpu: look });
    work(&clock);
    meter.end(Activity::Get, started);
    let totals = recorder.totals();
    (totals.cpu(Activity::Get).nanos_per_call().round() as u64, totals.max(Timed::Get))
}

#[test]
fn the_looks_themselves_are_taken_off() {
    for nanos in [1, 500, 3_999] {
        assert_eq!(measured(false, |clock| clock.work(nanos)), (nanos, nanos));
    }
    for nanos in [5_000, 1_000_000] {
        assert_eq!(measured(true, |clock| clock.work(nanos)), (nanos, nanos));
    }
}

/// Each call is told by one of the two clocks.
#[test]
fn short_calls_are_told_by_the_wall_clock_alone_and_long_ones_by_the_other() {
    assert_eq!(measured(true, |clock| clock.work(500)), (0, 500));
    assert_eq!(measured(true, |clock| clock.work(4_200)), (0, 4_200));
    assert_eq!(measured(false, |clock| clock.work(4_000)), (0, 4_000));
}

#[test]
fn a_wait_is_no_cpu() {
    let call = |clock: &SlowClock| {
        clock.work(700);
        clock.sleep_nanos(100_000);
    };
    assert_eq!(measured(true, call), (700, 100_700));
}

#[test]
fn a_call_that_is_only_timed_costs_no_look_at_the_cpu() {
    let (clock, recorder) = (Arc::new(SlowClock::default()), Arc::new(Recorder::new()));
    let meter = Meter::new(clock.clone(), recorder.clone());
    let started = meter.start(Sample { cpu: false });
    let before = clock.cpu.load(Relaxed);
    meter.end(Activity::Get, started);
    assert_eq!(clock.cpu.load(Relaxed) - before, 30);
    meter.end(Activity::Get, None);
    assert_eq!(recorder.totals().samples(Timed::Get), 1);
}

/// A look that let others run is not followed by a measurement: the next call's CPU is taken.
#[test]
fn a_call_after_a_switch_of_threads_is_passed_over() {
    let (clock, recorder) = (Arc::new(SlowClock::default()), Arc::new(Recorder::new()));
    let meter = Meter::new(clock.clone(), recorder.clone());
    clock.switch.store(3_000_000, Relaxed);
    let mut calls = 0;
    while clock.switch.load(Relaxed) > 0 {
        calls += 1;
        let started = meter.begin(Activity::Get);
        // Those that were only timed.
        meter.end(Activity::Get, started);
    }
    assert!(calls > 1);
    let timed = recorder.totals().samples(Timed::Get);
    let started = meter.begin(Activity::Get);
    assert!(started.is_some_and(|started| started.cpu.is_some()));
    clock.work(5_000);
    meter.end(Activity::Get, started);
    let totals = recorder.totals();
    assert_eq!((totals.max(Timed::Get), totals.samples(Timed::Get)), (5_000, timed + 1));
    // And chance rules again.
    let calls = (0..10_000).filter_map(|_| meter.begin(Activity::Get));
    let (cpu, wall): (Vec<_>, Vec<_>) = calls.partition(|started| started.cpu.is_some());
    assert!(cpu.len() < wall.len() && !cpu.is_empty(), "{} and {}", cpu.len(), wall.len());
}
