//! What one client thread does. No virtual call, no allocation and no shared cache line per
//! operation: the loops are generic over the engine's handle.

use crate::engine::{Handle, Result};
use crate::generate::{Keys, Random, Values};
use crate::measure::{Counter, Latencies};
use crate::options::{BenchOptions, Benchmark};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How many pairs follow a seek.
const SEEK_NEXTS: u64 = 10;

/// Sequential reads are timed by this many rows, since one row costs less than the clock.
const ROWS_TIMED: u64 = 100;

/// The share of one thread.
pub(super) struct Job<'a> {
    pub(super) options: &'a BenchOptions,
    pub(super) benchmark: Benchmark,
    pub(super) thread: u64,
    pub(super) threads: u64,
    pub(super) ops: u64,
    pub(super) deadline: Option<Instant>,
    pub(super) stop: &'a AtomicBool,
    pub(super) counter: &'a Counter,
    pub(super) values: &'a Values,
}

/// What one thread did.
#[derive(Default)]
pub(super) struct Done {
    pub(super) ops: u64,
    pub(super) found: u64,
    /// Bytes of keys and values that were written.
    pub(super) written: u64,
    /// Bytes of keys and values that were read.
    pub(super) read: u64,
    pub(super) latencies: Latencies,
}

impl Job<'_> {
    /// Does the benchmark on one handle.
    pub(super) fn run<H: Handle>(&self, handle: &mut H) -> Result<Done> {
        match self.benchmark {
            Benchmark::Fillseq => self.fill_in_order(handle),
            Benchmark::Fillrandom | Benchmark::Overwrite => self.write_random(handle),
            Benchmark::Readrandom | Benchmark::Readwhilewriting => self.read_random(handle),
            Benchmark::Readseq => self.read_in_order(handle),
            Benchmark::Seekrandom => self.seek_random(handle),
            Benchmark::Deleterandom => self.delete_random(handle),
            Benchmark::Settle => Ok(Done::default()),
        }
    }

    fn random(&self, what: &str) -> Random {
        Random::named(self.options.seed, what, self.thread)
    }

    fn values(&self) -> Values {
        self.values.clone().started_at(self.thread)
    }

    fn over(&self, now: Instant) -> bool {
        self.stop.load(Ordering::Relaxed) || self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// Repeats `op` and times it: one look at the clock per operation.
    fn repeat(
        &self,
        done: &mut Done,
        mut op: impl FnMut(u64, &mut Done) -> Result<()>,
    ) -> Result<()> {
        let mut last = Instant::now();
        for at in 0..self.ops {
            op(at, done)?;
            let now = Instant::now();
            done.latencies.record(now - last);
            last = now;
            done.ops = at + 1;
            self.counter.set(done.ops);
            if self.over(now) {
                break;
            }
        }
        Ok(())
    }

    fn fill_in_order<H: Handle>(&self, handle: &mut H) -> Result<Done> {
        let mut done = Done::default();
        let mut keys = Keys::new(self.options.key_bytes);
        let mut values = self.values();
        let mut random = self.random(self.benchmark.name());
        // Each thread fills a range of its own, in order.
        let first = self.options.num / self.threads * self.thread
            + self.thread.min(self.options.num % self.threads);
        self.repeat(&mut done, |at, done| {
            let key = keys.key(first + at);
            let value = values.next(&mut random);
            done.written += (key.len() + value.len()) as u64;
            handle.put(0, key, value)
        })?;
        Ok(done)
    }

    fn write_random<H: Handle>(&self, handle: &mut H) -> Result<Done> {
        let mut done = Done::default();
        let mut keys = Keys::new(self.options.key_bytes);
        let mut values = self.values();
        let mut random = self.random(self.benchmark.name());
        self.repeat(&mut done, |_, done| {
            let key = keys.key(random.below(self.options.num));
            let value = values.next(&mut random);
            done.written += (key.len() + value.len()) as u64;
            handle.put(0, key, value)
        })?;
        Ok(done)
    }

    fn read_random<H: Handle>(&self, handle: &mut H) -> Result<Done> {
        let mut done = Done::default();
        let mut keys = Keys::new(self.options.key_bytes);
        let mut random = self.random(self.benchmark.name());
        self.repeat(&mut done, |_, done| {
            let key = keys.key(random.below(self.options.num));
            let mut bytes = 0;
            if handle.get(0, key, &mut |value| bytes = value.len())? {
                done.found += 1;
                done.read += (key.len() + bytes) as u64;
            }
            Ok(())
        })?;
        Ok(done)
    }

    fn seek_random<H: Handle>(&self, handle: &mut H) -> Result<Done> {
        let mut done = Done::default();
        let mut keys = Keys::new(self.options.key_bytes);
        let mut random = self.random(self.benchmark.name());
        self.repeat(&mut done, |_, done| {
            let key = keys.key(random.below(self.options.num));
            let mut bytes = 0;
            let rows = handle.scan(0, key, SEEK_NEXTS + 1, &mut |key, value| {
                bytes += key.len() + value.len();
                true
            })?;
            done.found += u64::from(rows > 0);
            done.read += bytes as u64;
            Ok(())
        })?;
        Ok(done)
    }

    fn read_in_order<H: Handle>(&self, handle: &mut H) -> Result<Done> {
        let mut done = Done::default();
        // --ops is shared by the threads; without it, each thread reads everything.
        let rows = if self.options.ops.is_some() { self.ops } else { u64::MAX };
        let mut last = Instant::now();
        let mut seen = 0u64;
        let mut bytes = 0usize;
        handle.scan(0, b"", rows, &mut |key, value| {
            bytes += key.len() + value.len();
            seen += 1;
            if !seen.is_multiple_of(ROWS_TIMED) {
                return true;
            }
            let now = Instant::now();
            done.latencies.record((now - last) / ROWS_TIMED as u32);
            last = now;
            self.counter.set(seen);
            !self.over(now)
        })?;
        self.counter.set(seen);
        done.ops = seen;
        done.found = seen;
        done.read = bytes as u64;
        Ok(done)
    }

    fn delete_random<H: Handle>(&self, handle: &mut H) -> Result<Done> {
        let mut done = Done::default();
        let mut keys = Keys::new(self.options.key_bytes);
        let mut random = self.random(self.benchmark.name());
        self.repeat(&mut done, |_, done| {
            let key = keys.key(random.below(self.options.num));
            done.written += key.len() as u64;
            handle.delete(0, key)
        })?;
        Ok(done)
    }

    /// The writer beside the readers: it keeps to a schedule, and a write that begins late because
    /// an earlier one took long counts from when it was due (no coordinated omission). That this
    /// thread overslept is not the engine's fault and is not counted.
    pub(super) fn write_at_rate<H: Handle>(&self, handle: &mut H) -> Result<Done> {
        const NAP: Duration = Duration::from_micros(200);
        let mut done = Done::default();
        let mut keys = Keys::new(self.options.key_bytes);
        let mut values = self.values();
        let mut random = Random::named(self.options.seed, "writer", self.thread);
        let bytes_per_second = self.options.rate_limit * f64::from(1 << 20);
        let start = Instant::now();
        let mut woken = start;
        while !self.stop.load(Ordering::Relaxed) {
            let due = start + Duration::from_secs_f64(done.written as f64 / bytes_per_second);
            let mut now = Instant::now();
            if due > now {
                std::thread::sleep((due - now).max(NAP));
                now = Instant::now();
                woken = now;
                if self.over(now) {
                    break;
                }
            }
            let key = keys.key(random.below(self.options.num));
            let value = values.next(&mut random);
            let bytes = (key.len() + value.len()) as u64;
            handle.put(0, key, value)?;
            let end = Instant::now();
            done.latencies.record(end.saturating_duration_since(due.max(woken)));
            done.written += bytes;
            done.ops += 1;
            self.counter.set(done.ops);
        }
        Ok(done)
    }
}
