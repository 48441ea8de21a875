//! One client thread's loop: when the next operation is due, how long it took, when to stop.
//!
//! The client calls [`Pace::begin`] before each operation and [`Pace::end`] after it. Without a
//! rate, the clock is read once per operation. With a rate, the time of an operation counts from
//! when it was due, even if an earlier one delayed its beginning (no coordinated omission). Time
//! that the thread overslept is not counted, because the engine did not cause it.

use crate::measure::{Counter, Latencies};
use crate::stores::engine::Result;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The shortest sleep of a client with a fixed rate. Several short operations are done at one
/// waking.
const NAP: Duration = Duration::from_micros(200);

/// What one client thread does in a step.
pub trait Client: Send {
    /// Operates until `pace` says that the step is over, or nothing is left to do. An error ends
    /// the step.
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()>;
}

/// What an operation did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Did {
    /// Bytes of keys and values written.
    pub written: u64,
    /// Bytes of keys and values read.
    pub read: u64,
    /// Whether something was found or changed.
    pub found: bool,
    /// By how many bytes the live data grew, with index entries; negative if it shrank. A value
    /// that replaces one of the same kind counts as 0.
    pub grown: i64,
}

impl Did {
    /// Rows or entries of so many bytes were written that were not there before.
    #[inline]
    pub fn added(written: u64) -> Did {
        Did { written, found: true, grown: written as i64, ..Did::default() }
    }
}

/// What the threads of a step share: one per thread, alone on its cache line.
#[derive(Debug, Default)]
pub struct Seen {
    /// Operations done.
    pub ops: Counter,
    /// The longest response time since the last look, in nanoseconds.
    pub longest: AtomicU64,
}

/// The bounds of a client's loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// At most so many operations.
    pub ops: Option<u64>,
    /// Not beyond this moment.
    pub deadline: Option<Instant>,
    /// Operations per second of this client. `None` is as fast as it can.
    pub rate: Option<f64>,
    /// The end of the warm-up: operations that end before it are not counted.
    pub warm: Option<Instant>,
}

/// The loop of one client: its bounds, its clock and its totals. See the module.
pub struct Pace<'a> {
    bounds: Bounds,
    stop: &'a AtomicBool,
    seen: &'a Seen,
    start: Instant,
    /// Operations done, those included that were not counted.
    all: u64,
    /// When the present operation began or was due.
    from: Instant,
    woken: Instant,
    /// What all operations did.
    pub total: Total,
}

/// The sum of a client's operations.
#[derive(Default)]
pub struct Total {
    /// Operations done.
    pub ops: u64,
    /// Those that found or changed something.
    pub found: u64,
    /// Bytes of keys and values written.
    pub written: u64,
    /// Bytes of keys and values read.
    pub read: u64,
    /// By how many bytes the live data grew, the warm-up included.
    pub grown: i64,
    /// Response times by kind of operation; a kind is an index into the step's list of names.
    pub latencies: Vec<Latencies>,
}

impl Total {
    /// Adds the sum of another client.
    pub fn add(&mut self, other: &Total) {
        self.ops += other.ops;
        self.found += other.found;
        self.written += other.written;
        self.read += other.read;
        self.grown += other.grown;
        for (kind, latencies) in other.latencies.iter().enumerate() {
            self.latencies(kind).merge(latencies);
        }
    }

    fn latencies(&mut self, kind: usize) -> &mut Latencies {
        if self.latencies.len() <= kind {
            self.latencies.resize_with(kind + 1, Latencies::new);
        }
        &mut self.latencies[kind]
    }
}

impl<'a> Pace<'a> {
    /// A loop that begins now.
    pub fn new(bounds: Bounds, stop: &'a AtomicBool, seen: &'a Seen) -> Pace<'a> {
        let now = Instant::now();
        let total = Total::default();
        Pace { bounds, stop, seen, start: now, all: 0, from: now, woken: now, total }
    }

    /// Waits until the next operation is due. Returns false if the step is over.
    #[inline]
    pub fn begin(&mut self) -> bool {
        if self.bounds.ops.is_some_and(|ops| self.total.ops >= ops)
            || self.stop.load(Ordering::Relaxed)
        {
            return false;
        }
        match self.bounds.rate {
            // `from` is the end of the operation before: the clock was looked at there.
            None => self.bounds.deadline.is_none_or(|deadline| self.from < deadline),
            Some(rate) => self.wait(rate),
        }
    }

    fn wait(&mut self, rate: f64) -> bool {
        let due = self.start + Duration::from_secs_f64(self.all as f64 / rate);
        self.wait_until(due, due)
    }

    /// Waits until the next operation is due, for a client with a schedule of its own. Its time
    /// counts from then, or from `since` if that is later. Returns false if the step is over.
    pub fn wait_until(&mut self, due: Instant, since: Instant) -> bool {
        loop {
            let now = Instant::now();
            if self.bounds.deadline.is_some_and(|deadline| now >= deadline)
                || self.stop.load(Ordering::Relaxed)
            {
                return false;
            }
            if due <= now {
                break;
            }
            // Short enough to notice that the step is over.
            std::thread::sleep((due - now).clamp(NAP, Duration::from_millis(100)));
            self.woken = Instant::now();
        }
        self.from = due.max(since).max(self.woken);
        true
    }

    /// When the operation before ended; at first, when the loop began.
    pub fn last(&self) -> Instant {
        self.from
    }

    /// Notes the end of an operation of this kind.
    #[inline]
    pub fn end(&mut self, kind: usize, did: Did) {
        self.end_many(kind, 1, did);
    }

    /// Notes the end of `count` operations that were done as one, each of which took its share.
    #[inline]
    pub fn end_many(&mut self, kind: usize, count: u64, did: Did) {
        self.finish(kind, count, count, did);
    }

    /// Notes the end of `count` operations that were done as one, such as the rows of a commit: one
    /// response time, that of the whole. A `count` of 0 is a part of what went before, of which
    /// only the response time is noted.
    #[inline]
    pub fn end_group(&mut self, kind: usize, count: u64, did: Did) {
        self.finish(kind, count, 1, did);
    }

    #[inline]
    fn finish(&mut self, kind: usize, count: u64, parts: u64, did: Did) {
        let now = Instant::now();
        let took = now.saturating_duration_since(self.from) / parts.max(1) as u32;
        self.from = now;
        self.all += count;
        self.total.grown += did.grown;
        if let Some(warm) = self.bounds.warm {
            if now < warm {
                return;
            }
            self.bounds.warm = None;
        }
        self.total.latencies(kind).record_many(took, parts);
        self.total.ops += count;
        self.total.found += if did.found { count } else { 0 };
        self.total.written += did.written;
        self.total.read += did.read;
        self.seen.ops.set(self.total.ops);
        let nanos = took.as_nanos() as u64;
        if nanos > self.seen.longest.load(Ordering::Relaxed) {
            self.seen.longest.store(nanos, Ordering::Relaxed);
        }
    }

    /// Whether the step is over, for a client that is in the middle of a long operation.
    pub fn over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.left() == Some(0)
            || self.bounds.deadline.is_some_and(|deadline| self.from >= deadline)
    }

    /// Operations that are left; `None` if their number is not what ends the step.
    pub fn left(&self) -> Option<u64> {
        self.bounds.ops.map(|ops| ops.saturating_sub(self.total.ops))
    }

    /// Operations done so far.
    pub fn done(&self) -> u64 {
        self.total.ops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_operations_is_kept() {
        let (stop, seen) = (AtomicBool::new(false), Seen::default());
        let bounds = Bounds { ops: Some(3), ..Bounds::default() };
        let mut pace = Pace::new(bounds, &stop, &seen);
        while pace.begin() {
            let found = pace.done() > 0;
            pace.end(1, Did { written: 10, found, ..Did::default() });
        }
        assert_eq!((pace.total.ops, pace.total.found, pace.total.written), (3, 2, 30));
        assert_eq!(pace.total.latencies.len(), 2);
        assert_eq!(seen.ops.get(), 3);
    }

    #[test]
    fn a_late_operation_counts_from_when_it_was_due() {
        let (stop, seen) = (AtomicBool::new(false), Seen::default());
        let bounds = Bounds { ops: Some(20), rate: Some(1000.0), ..Bounds::default() };
        let mut pace = Pace::new(bounds, &stop, &seen);
        while pace.begin() {
            if pace.done() == 0 {
                std::thread::sleep(Duration::from_millis(50));
            }
            pace.end(0, Did::default());
        }
        // Nineteen operations were due while the first slept: the wait of most of them shows.
        let summary = pace.total.latencies[0].summary();
        assert!(summary.p50 > 20_000.0, "{summary:?}");
    }

    #[test]
    fn the_time_to_warm_up_is_not_counted() {
        let (stop, seen) = (AtomicBool::new(false), Seen::default());
        let warm = Some(Instant::now() + Duration::from_millis(20));
        let bounds = Bounds { ops: Some(5), warm, ..Bounds::default() };
        let mut pace = Pace::new(bounds, &stop, &seen);
        let mut done = 0;
        while pace.begin() {
            std::thread::sleep(Duration::from_millis(1));
            done += 1;
            pace.end(0, Did { grown: -3, ..Did::default() });
        }
        assert_eq!((pace.done(), seen.ops.get()), (5, 5));
        assert_eq!(pace.total.grown, -3 * done, "what is not counted is there all the same");
        assert_eq!(pace.total.latencies[0].count(), 5);
        assert!(done > 5, "{done}");
    }

    #[test]
    fn operations_done_as_one_share_their_time() {
        let (stop, seen) = (AtomicBool::new(false), Seen::default());
        let mut pace = Pace::new(Bounds { ops: Some(200), ..Bounds::default() }, &stop, &seen);
        while pace.begin() {
            pace.end_many(0, 100, Did { read: 7, ..Did::default() });
        }
        assert_eq!((pace.done(), pace.total.read), (200, 14));
        assert_eq!(pace.total.latencies[0].count(), 200);
    }

    #[test]
    fn a_group_counts_its_operations_and_takes_its_whole_time() {
        let (stop, seen) = (AtomicBool::new(false), Seen::default());
        let mut pace = Pace::new(Bounds { ops: Some(100), ..Bounds::default() }, &stop, &seen);
        while pace.begin() {
            std::thread::sleep(Duration::from_millis(2));
            pace.end_group(0, 50, Did { written: 1, found: true, ..Did::default() });
            pace.end_group(1, 0, Did { written: 1, found: true, ..Did::default() });
        }
        assert_eq!((pace.total.ops, pace.total.found, pace.total.written), (100, 100, 4));
        assert_eq!((pace.total.latencies[0].count(), pace.total.latencies[1].count()), (2, 2));
        assert!(pace.total.latencies[0].summary().p50 >= 1_990.0);
    }

    #[test]
    fn a_stop_is_noticed() {
        let (stop, seen) = (AtomicBool::new(true), Seen::default());
        let mut pace = Pace::new(Bounds { rate: Some(0.001), ..Bounds::default() }, &stop, &seen);
        assert!(!pace.begin() && pace.over());
    }
}
