//! What one client thread does. No virtual call, no allocation and no shared cache line per
//! operation: the loops are generic over the engine's handle.

use super::benchmark::{Benchmark, MULTI_KEYS, PREFIX_ROWS};
use super::draw::Draw;
use super::options::KvOptions;
use crate::generate::{Keys, Random, Values};
use crate::run::pace::{Client, Did, Pace};
use crate::stores::engine::{Handle, Result};
use crate::workloads::linkbench::distributions::Shuffle;
use std::time::Duration;

/// Sequential reads are timed by this many rows, since one row costs less than the clock.
const ROWS_TIMED: u64 = 100;

/// How many pairs follow a seek.
const SEEK_NEXTS: u64 = 10;

/// The kind of all operations, and of the reads where there are writes too.
const KIND: usize = 0;

/// The kind of writes where there are reads too.
const WRITE: usize = 1;

/// A client of a benchmark.
pub(super) struct KvClient<'a, H> {
    handle: H,
    options: &'a KvOptions,
    benchmark: Benchmark,
    thread: u64,
    keys: Keys,
    /// The keys where prefixes end.
    ends: Keys,
    /// The keys of one multi-get.
    many: Vec<Vec<u8>>,
    values: Values,
    random: Random,
    draw: Draw,
    seed: u64,
}

impl<'a, H: Handle> KvClient<'a, H> {
    pub(super) fn new(
        handle: H,
        options: &'a KvOptions,
        benchmark: Benchmark,
        values: &Values,
        seed: u64,
        thread: u64,
    ) -> KvClient<'a, H> {
        let keys = Keys::new(options.key_bytes);
        let numbers = match benchmark {
            // None after the last key: such a one is outside of what tables cover, and what is to
            // answer is the filter.
            Benchmark::Readmissing => options.num.saturating_sub(1),
            _ => options.num,
        };
        KvClient {
            handle,
            options,
            benchmark,
            thread,
            ends: keys.clone(),
            keys: match benchmark {
                Benchmark::Readmissing => Keys::between(options.key_bytes),
                _ => keys,
            },
            many: vec![vec![0; options.key_bytes]; MULTI_KEYS as usize],
            values: values.clone().started_at(thread),
            random: Random::named(seed, benchmark.name(), thread),
            draw: Draw::new(options.skew_of(benchmark), numbers.max(1), seed),
            seed,
        }
    }

    /// The one that writes beside the readers of readwhilewriting.
    pub(super) fn writer(
        handle: H,
        options: &'a KvOptions,
        values: &Values,
        seed: u64,
    ) -> KvClient<'a, H> {
        let thread = options.threads;
        let random = Random::named(seed, "writer", thread);
        let client = KvClient::new(handle, options, Benchmark::Overwrite, values, seed, thread);
        KvClient { random, ..client }
    }

    /// Each thread fills a range of its own; `place` says which key comes when.
    fn fill(&mut self, place: impl Fn(u64) -> u64, pace: &mut Pace<'_>) -> Result<()> {
        let (num, threads) = (self.options.num, self.options.threads);
        let mut next = num / threads * self.thread + self.thread.min(num % threads);
        while pace.begin() {
            let key = self.keys.key(place(next));
            let value = self.values.next(&mut self.random);
            self.handle.put(0, key, value)?;
            // A fill on an engine that does nothing may go on beyond the last key.
            next = if next + 1 < num { next + 1 } else { 0 };
            pace.end(KIND, written(key.len() + value.len()));
        }
        Ok(())
    }

    fn write_random(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        while pace.begin() {
            let key = self.keys.key(self.draw.number(&mut self.random));
            let value = self.values.next(&mut self.random);
            self.handle.put(0, key, value)?;
            pace.end(KIND, written(key.len() + value.len()));
        }
        Ok(())
    }

    /// Reads with a chance of `--read-share`, else writes. The writes have a schedule of their own:
    /// one that is late through reads counts from the end of the last of them, one that is late
    /// through writes from when it was due.
    fn read_and_write(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        let (share, rate) = (self.options.read_share, self.options.writes_per_second());
        let (start, mut writes) = (pace.last(), 0u64);
        let mut read_end = start;
        while pace.begin() {
            let key = self.keys.key(self.draw.number(&mut self.random));
            if self.random.unit() < share {
                let mut bytes = 0;
                let found = self.handle.get(0, key, &mut |value| bytes = value.len())?;
                let read = if found { (key.len() + bytes) as u64 } else { 0 };
                pace.end(KIND, Did { read, found, ..Did::default() });
                read_end = pace.last();
                continue;
            }
            if let Some(rate) = rate {
                let due = start + Duration::from_secs_f64(writes as f64 / rate);
                if !pace.wait_until(due, read_end) {
                    break;
                }
            }
            let value = self.values.next(&mut self.random);
            self.handle.put(0, key, value)?;
            pace.end(WRITE, written(key.len() + value.len()));
            writes += 1;
        }
        Ok(())
    }

    fn delete_random(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        while pace.begin() {
            let key = self.keys.key(self.draw.number(&mut self.random));
            self.handle.delete(0, key)?;
            pace.end(KIND, written(key.len()));
        }
        Ok(())
    }

    fn read_random(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        while pace.begin() {
            let key = self.keys.key(self.draw.number(&mut self.random));
            let mut bytes = 0;
            let found = self.handle.get(0, key, &mut |value| bytes = value.len())?;
            let read = if found { (key.len() + bytes) as u64 } else { 0 };
            pace.end(KIND, Did { read, found, ..Did::default() });
        }
        Ok(())
    }

    fn multi_read_random(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        while pace.begin() {
            for key in &mut self.many {
                key.copy_from_slice(self.keys.key(self.draw.number(&mut self.random)));
            }
            let (many, mut bytes) = (&self.many, 0);
            let there = self.handle.multi_get(0, many, &mut |at, value| {
                bytes += many[at].len() + value.len();
            })?;
            pace.end(KIND, Did { read: bytes as u64, found: there > 0, ..Did::default() });
        }
        Ok(())
    }

    fn scan_prefix(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        while pace.begin() {
            let number = self.draw.number(&mut self.random);
            let first = number - number % PREFIX_ROWS;
            let (from, to) = (self.keys.key(first), self.ends.key(first + PREFIX_ROWS));
            let mut bytes = 0;
            let mut row = |key: &[u8], value: &[u8]| {
                bytes += key.len() + value.len();
                true
            };
            let rows = if from < to {
                self.handle.scan_range(0, from, to, &mut row)?
            } else {
                // Short keys whose last number this is: there is none for the end.
                self.handle.scan(0, from, PREFIX_ROWS, &mut row)?
            };
            pace.end(KIND, Did { read: bytes as u64, found: rows > 0, ..Did::default() });
        }
        Ok(())
    }

    fn update_random(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        while pace.begin() {
            let key = self.keys.key(self.draw.number(&mut self.random));
            let value = self.values.next(&mut self.random);
            let mut read = 0;
            let found = self.handle.update(0, key, &mut |old, new| {
                read = old.map_or(0, |old| key.len() + old.len());
                new.extend_from_slice(value);
            })?;
            let written = (key.len() + value.len()) as u64;
            pace.end(KIND, Did { written, read: read as u64, found, ..Did::default() });
        }
        Ok(())
    }

    /// Seeks a random key and reads so many pairs.
    fn scan_random(&mut self, rows: u64, pace: &mut Pace<'_>) -> Result<()> {
        while pace.begin() {
            let key = self.keys.key(self.draw.number(&mut self.random));
            let mut bytes = 0;
            let rows = self.handle.scan(0, key, rows, &mut |key, value| {
                bytes += key.len() + value.len();
                true
            })?;
            pace.end(KIND, Did { read: bytes as u64, found: rows > 0, ..Did::default() });
        }
        Ok(())
    }

    /// Without a number of operations, each thread reads everything.
    fn read_in_order(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        if !pace.begin() {
            return Ok(());
        }
        let mut rows = 0;
        let mut read = 0;
        self.handle.scan(0, b"", pace.left().unwrap_or(u64::MAX), &mut |key, value| {
            read += (key.len() + value.len()) as u64;
            rows += 1;
            if rows < ROWS_TIMED {
                return true;
            }
            pace.end_many(KIND, rows, Did { read, found: true, ..Did::default() });
            (rows, read) = (0, 0);
            !pace.over()
        })?;
        if rows > 0 {
            pace.end_many(KIND, rows, Did { read, found: true, ..Did::default() });
        }
        Ok(())
    }
}

fn written(bytes: usize) -> Did {
    Did { written: bytes as u64, ..Did::default() }
}

impl<H: Handle> Client for KvClient<'_, H> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        match self.benchmark {
            Benchmark::Fillseq => self.fill(|number| number, pace),
            Benchmark::Filluniquerandom => {
                let shuffle = Shuffle::new(self.seed, "filluniquerandom", self.options.num);
                self.fill(|number| shuffle.to(number), pace)
            }
            Benchmark::Readrandomwriterandom => self.read_and_write(pace),
            Benchmark::Fillrandom | Benchmark::Overwrite => self.write_random(pace),
            Benchmark::Readrandom | Benchmark::Readwhilewriting | Benchmark::Readmissing => {
                self.read_random(pace)
            }
            Benchmark::Readseq => self.read_in_order(pace),
            Benchmark::Seekrandom => self.scan_random(SEEK_NEXTS + 1, pace),
            Benchmark::Multireadrandom => self.multi_read_random(pace),
            Benchmark::Scanrandom => self.scan_random(self.options.scan_rows, pace),
            Benchmark::Prefixscan => self.scan_prefix(pace),
            Benchmark::Updaterandom => self.update_random(pace),
            Benchmark::Deleterandom => self.delete_random(pace),
            // The step has a client of its own for it.
            Benchmark::WaitIdle => Ok(()),
        }
    }
}
