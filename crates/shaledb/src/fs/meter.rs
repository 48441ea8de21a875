//! Measuring what calls cost: [`crate::base::activity`] says which, this looks at the clocks.
//!
//! A look at the CPU clock of a thread is a call of the system (230 ns where this was written; the
//! wall clock is read in 30 ns without one). What two looks cost by themselves is found out at the
//! start and taken off.
//!
//! A look at the CPU clock is also a good moment for the system to let another thread run: on a
//! busy machine, one in eight such looks was seen to end a thread's turn. The call that follows
//! finds the caches cold and costs ten times what it else does; so another one is taken.

use super::Clock;
use crate::base::activity::Activity;
use crate::base::stats::{Counter, Recorder, Sample, Timed};
use std::sync::Arc;

/// Switching to another thread and back takes longer than this many nanoseconds.
const SWITCH_NANOS: u64 = 4_000;

/// How often an empty call is measured at the start; the median counts.
const CALIBRATIONS: usize = 33;

/// Measures sampled calls of one database.
pub struct Meter {
    clock: Arc<dyn Clock>,
    recorder: Arc<Recorder>,
    /// What an empty call seems to take.
    empty_wall: u64,
    empty_cpu: u64,
    /// A look at the CPU clock that takes longer was interrupted.
    look_nanos_max: u64,
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meter")
    }
}

/// A call under measurement.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    wall: u64,
    cpu: Option<u64>,
}

/// Ends a call when it is dropped.
#[derive(Debug)]
pub struct Scope<'a> {
    meter: &'a Meter,
    activity: Activity,
    started: Option<Started>,
}

/// A read or a write of background work, in large pieces: each one is measured.
#[derive(Debug)]
pub struct Storage<'a> {
    meter: &'a Meter,
    wall: u64,
    cpu: u64,
}

impl Storage<'_> {
    /// Ends a write of so many bytes, or a sync.
    pub fn wrote(self, bytes: u64) {
        self.end([
            (Counter::TableWriteBytes, bytes),
            (Counter::TableWriteNanos, 0),
            (Counter::TableWriteCpuNanos, 0),
        ]);
    }

    /// Ends a read of so many bytes.
    pub fn read(self, bytes: u64) {
        self.end([
            (Counter::TableReadBytes, bytes),
            (Counter::TableReadNanos, 0),
            (Counter::TableReadCpuNanos, 0),
        ]);
    }

    fn end(self, mut counts: [(Counter, u64); 3]) {
        let clock = &self.meter.clock;
        counts[1].1 = clock.now_nanos().saturating_sub(self.wall);
        counts[2].1 = clock.thread_cpu_nanos().saturating_sub(self.cpu);
        self.meter.recorder.add_all(counts);
    }
}

impl Drop for Scope<'_> {
    #[inline]
    fn drop(&mut self) {
        self.meter.end(self.activity, self.started.take());
    }
}

impl Meter {
    /// Measures by `clock` into `recorder`.
    pub fn new(clock: Arc<dyn Clock>, recorder: Arc<Recorder>) -> Meter {
        let mut costs = [const { Vec::new() }; 3];
        for _ in 0..CALIBRATIONS {
            let looked = clock.now_nanos();
            let cpu = clock.thread_cpu_nanos();
            let wall = clock.now_nanos();
            costs[0].push(wall.saturating_sub(looked));
            costs[1].push(clock.now_nanos().saturating_sub(wall));
            costs[2].push(clock.thread_cpu_nanos().saturating_sub(cpu));
        }
        let [look, empty_wall, empty_cpu] = costs.map(|mut costs| {
            costs.sort_unstable();
            costs[CALIBRATIONS / 2]
        });
        let look_nanos_max = SWITCH_NANOS + 2 * look;
        Meter { clock, recorder, empty_wall, empty_cpu, look_nanos_max }
    }

    /// Where it records.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Begins a call. Next to nothing unless this is one to measure.
    #[inline]
    pub fn begin(&self, activity: Activity) -> Option<Started> {
        let sample = self.recorder.sample(activity)?;
        self.start_or_postpone(activity, sample)
    }

    /// As [`Meter::begin`], and adds 1 to a counter.
    #[inline]
    pub fn begin_and_count(&self, activity: Activity, counter: Counter) -> Option<Started> {
        let sample = self.recorder.sample_and_count(activity, counter)?;
        self.start_or_postpone(activity, sample)
    }

    /// As [`Meter::begin_and_count`], for a call that ends where its scope does: a large result is
    /// not moved for it.
    #[inline]
    pub fn scope(&self, activity: Activity, counter: Counter) -> Scope<'_> {
        Scope { meter: self, activity, started: self.begin_and_count(activity, counter) }
    }

    #[cold]
    fn start_or_postpone(&self, activity: Activity, sample: Sample) -> Option<Started> {
        let started = self.start(sample);
        if started.is_none() {
            self.recorder.postpone(activity);
            self.recorder.put_back(activity, 1);
        }
        started
    }

    /// Begins a call that a countdown taken from the recorder has come to; with it, how many calls
    /// it is to the next.
    #[cold]
    pub fn begin_taken(&self, activity: Activity) -> (Option<Started>, u32) {
        let (sample, due) = self.recorder.sample_taken(activity);
        let started = self.start(sample);
        if started.is_none() {
            self.recorder.postpone(activity);
            return (None, 1);
        }
        (started, due)
    }

    /// Ends a call that went well; one that failed is not worth counting.
    #[inline]
    pub fn end(&self, activity: Activity, started: Option<Started>) {
        if let Some(started) = started {
            self.finish(activity, &started);
        }
    }

    /// Begins what background work does with storage.
    pub fn storage(&self) -> Storage<'_> {
        Storage { meter: self, wall: self.clock.now_nanos(), cpu: self.clock.thread_cpu_nanos() }
    }

    /// Nanoseconds by the wall clock.
    pub fn now_nanos(&self) -> u64 {
        self.clock.now_nanos()
    }

    /// Begins a call that chance has chosen; `None` if the next one is to be taken instead.
    #[cold]
    fn start(&self, sample: Sample) -> Option<Started> {
        if !sample.cpu {
            return Some(Started { wall: self.clock.now_nanos(), cpu: None });
        }
        let looked = self.clock.now_nanos();
        let cpu = self.clock.thread_cpu_nanos();
        let wall = self.clock.now_nanos();
        let undisturbed = wall.saturating_sub(looked) <= self.look_nanos_max;
        undisturbed.then_some(Started { wall, cpu: Some(cpu) })
    }

    #[cold]
    fn finish(&self, activity: Activity, started: &Started) {
        let nanos = self.clock.now_nanos().saturating_sub(started.wall);
        let wall = nanos.saturating_sub(self.empty_wall);
        if let Some(timed) = Timed::of(activity) {
            self.recorder.time(timed, wall);
        }
        // A call that a look made longer is not to be counted by both clocks.
        let look = if started.cpu.is_some() { self.empty_cpu } else { 0 };
        let short = wall < SWITCH_NANOS + look;
        let cpu = match started.cpu {
            Some(start) if !short => {
                let cpu = self.clock.thread_cpu_nanos().saturating_sub(start);
                // No thread uses more CPU than time goes by.
                cpu.saturating_sub(self.empty_cpu).min(wall)
            }
            _ => wall,
        };
        self.recorder.spent(activity, cpu, started.cpu.is_some(), short);
    }
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;
