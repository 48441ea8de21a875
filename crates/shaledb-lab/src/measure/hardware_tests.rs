//! The counters count, threads that begin later included.

use super::*;
use perf_event::events::Software;

fn work() -> u64 {
    (0..20_000_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n))
}

#[test]
fn threads_that_begin_later_are_counted() {
    // The system's clock of each task, in nanoseconds, stands for a counter of the processor.
    let clock = linux::Kind::Software(Software::TASK_CLOCK);
    let Some(mut counters) = Counters::start_events(&[std::process::id()], [clock; 3]) else {
        return;
    };
    let spent = std::thread::spawn(|| {
        work();
        crate::measure::thread_cpu_seconds()
    });
    let spent = spent.join().unwrap();
    let counts = counters.counts().unwrap();
    assert!(counts.cycles >= spent * 0.9e9, "{counts:?}, {spent} s");
}

#[test]
fn instructions_are_counted() {
    let Some(mut counters) = Counters::start(&[std::process::id()]) else { return };
    work();
    let counts = counters.counts().unwrap();
    assert!(counts.instructions > 20_000_000.0 && counts.cycles > 1e6, "{counts:?}");
}
