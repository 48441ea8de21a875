//! The parameters of the db_bench pattern.

use super::benchmark::{Benchmark, MULTI_KEYS, PREFIX_ROWS};
use super::data::Data;
use crate::generate::{Keys, NUMBER_BYTES, Random, Values};
use crate::options::{Skew, ValueBytes, key_bytes, part, positive, seconds, share};
use crate::run::row::Row;
use crate::units::parse_some;
use crate::workloads::linkbench::distributions::Zipf;
use crate::workloads::planned::{PlannedStep, planned};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// The parameters of the db_bench pattern.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct KvOptions {
    /// What to run, in this order, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "fillseq,overwrite,wait_idle,readrandom,seekrandom,readseq,\
                         readwhilewriting",
        hide_possible_values = false
    )]
    pub benchmarks: Vec<Benchmark>,

    /// How many keys the database has (k, M, G: thousands)
    #[arg(long, default_value = "1M", value_parser = parse_some)]
    pub num: u64,

    /// Operations of each benchmark, all threads together [default: --num, of multireadrandom,
    /// scanrandom and prefixscan as many as look at --num keys]
    #[arg(long, value_parser = parse_some)]
    pub ops: Option<u64>,

    /// The most seconds that a benchmark runs; fills always complete
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub duration: Option<f64>,

    /// Seconds that a benchmark runs before anything is measured; fills never do
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = seconds)]
    pub warm_up: u64,

    /// Bytes of a key
    #[arg(long, default_value = "20", value_parser = key_bytes)]
    pub key_bytes: usize,

    /// What values look like
    #[arg(long, value_enum, default_value = "half")]
    #[serde(default)]
    pub data: Data,

    /// Bytes of a value, or the least and the most, evenly spread; rows of links and json have
    /// sizes of their own
    #[arg(long, default_value = "100-400", value_name = "MIN-MAX")]
    pub value_bytes: ValueBytes,

    /// The share of its size that a value of half compresses to
    #[arg(long, default_value = "0.5", value_parser = share)]
    pub compressibility: f64,

    /// Client threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: u64,

    /// The rate of the writer of readwhilewriting, in MiB per second
    #[arg(long, default_value = "10", value_name = "MB/S", value_parser = positive)]
    pub rate_limit: f64,

    /// The share of reads of readrandomwriterandom, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = part)]
    #[serde(default = "read_share")]
    pub read_share: f64,

    /// The rate of the writes of readrandomwriterandom, in MiB per second [default: as fast as they
    /// go]
    #[arg(long, value_name = "MB/S", value_parser = positive)]
    #[serde(default)]
    pub write_rate: Option<f64>,

    /// How the keys of random benchmarks spread, but for those of fills: `uniform`, or `zipf:0.9`,
    /// in which the key of rank r is met in proportion to r^-0.9
    #[arg(long, value_name = "SKEW", default_value = "uniform")]
    #[serde(default)]
    pub skew: Skew,

    /// After each benchmark, wait in the same process until no compaction is due; what that took is
    /// in the row's idle_ figures
    #[arg(long)]
    #[serde(default)]
    pub idle_after: bool,

    /// How many pairs scanrandom reads from where it seeks (k, M, G: thousands)
    #[arg(long, value_name = "ROWS", default_value = "1000", value_parser = parse_some)]
    #[serde(default = "scan_rows")]
    pub scan_rows: u64,
}

/// Of plans that were made before there was such an option.
fn scan_rows() -> u64 {
    1000
}

fn read_share() -> f64 {
    0.5
}

impl KvOptions {
    /// The steps as a plan has them; the second overwrite is called `overwrite (2)`.
    pub fn planned(&self) -> Vec<PlannedStep> {
        planned(self.benchmarks.iter().map(|step| (step.name().to_owned(), step.is_fill())))
    }

    /// Checks that the parameters fit together.
    ///
    /// # Errors
    ///
    /// There is readmissing, and no key lies between those that are there.
    pub fn check(&self) -> Result<(), String> {
        if self.benchmarks.contains(&Benchmark::Readmissing) && self.key_bytes <= NUMBER_BYTES {
            return Err(format!(
                "--key-bytes: keys of {} bytes have none between them, which readmissing looks \
                 up. Give them at least {}",
                self.key_bytes,
                NUMBER_BYTES + 1
            ));
        }
        Ok(())
    }

    /// Operations of a benchmark, all threads together; `None` if the rows there are end it.
    pub(super) fn ops(&self, benchmark: Benchmark) -> Option<u64> {
        let keys_of_one = match benchmark {
            Benchmark::WaitIdle => return None,
            Benchmark::Readseq => return self.ops,
            _ if benchmark.is_fill() => return Some(self.num),
            Benchmark::Multireadrandom => MULTI_KEYS,
            Benchmark::Scanrandom => self.scan_rows,
            Benchmark::Prefixscan => PREFIX_ROWS,
            _ => 1,
        };
        Some(self.ops.unwrap_or_else(|| self.num.div_ceil(keys_of_one)))
    }

    /// Bytes of all keys and values.
    pub fn data_bytes(&self) -> u64 {
        self.num * self.pair_bytes() as u64
    }

    /// Bytes of the live keys and values after a step that found `before` of them. Who writes
    /// random keys does not know which were there: it is as many as chance lets expect.
    pub fn live_bytes(&self, row: &Row, before: u64) -> u64 {
        let (before, all) = (before as f64, self.data_bytes() as f64);
        let (step, num) = (self.step(&row.step), self.num.max(1));
        let skew = step.as_ref().map_or(Skew::Uniform, |step| self.skew_of(*step));
        // The share of all keys that so many random ones leave out.
        let missed = |keys: u64| match skew {
            Skew::Zipf(exponent) => Zipf::new(num, exponent).missed(keys as f64),
            Skew::Uniform => (1.0 - 1.0 / num as f64).powf(keys as f64),
        };
        let put = |keys: u64| all - (all - before).max(0.0) * missed(keys);
        let live = match step {
            Ok(Benchmark::Fillseq | Benchmark::Filluniquerandom) => row.counted.user_bytes as f64,
            Ok(Benchmark::Fillrandom | Benchmark::Overwrite | Benchmark::Updaterandom) => {
                put(row.ops)
            }
            Ok(Benchmark::Readrandomwriterandom) => {
                put(row.latency_us.get("put").map_or(0, |latency| latency.count))
            }
            Ok(Benchmark::Readwhilewriting) => put(row.writer.as_ref().map_or(0, |all| all.ops)),
            Ok(Benchmark::Deleterandom) => before * missed(row.ops),
            Ok(
                Benchmark::Readrandom
                | Benchmark::Readseq
                | Benchmark::Seekrandom
                | Benchmark::Multireadrandom
                | Benchmark::Scanrandom
                | Benchmark::Prefixscan
                | Benchmark::Readmissing
                | Benchmark::WaitIdle,
            )
            | Err(_) => before,
        };
        live as u64
    }

    /// The mean bytes of a key and its value.
    pub fn pair_bytes(&self) -> f64 {
        self.key_bytes as f64 + self.data.mean_bytes(self.value_bytes)
    }

    /// The step of a plan's name.
    ///
    /// # Errors
    ///
    /// There is no such step.
    pub fn step(&self, name: &str) -> Result<Benchmark, String> {
        let benchmark = name.split(' ').next().unwrap_or(name);
        Benchmark::from_str(benchmark, false)
            .map_err(|_| format!("the kv workload has no step `{name}`"))
    }

    /// How the random keys of a benchmark spread.
    pub fn skew_of(&self, benchmark: Benchmark) -> Skew {
        if benchmark.is_fill() { Skew::Uniform } else { self.skew }
    }

    /// The values of a run.
    pub(super) fn values(&self, seed: u64) -> Values {
        self.data.values(seed, self.value_bytes, self.compressibility)
    }

    /// So many bytes, or some more, of keys in order with their values, as a run with this seed has
    /// them. Values that were not written in the order of their keys lie beside others than those
    /// that they were drawn after, with which they may have much in common.
    pub fn sample(&self, seed: u64, in_order: bool, bytes: usize) -> Vec<u8> {
        let (mut keys, mut values) = (Keys::new(self.key_bytes), self.values(seed));
        let mut random = Random::named(seed, "sample", 0);
        let (mut drawn, mut sum) = (Vec::new(), 0);
        while sum < bytes {
            let value = values.next(&mut random).to_vec();
            sum += self.key_bytes + value.len();
            drawn.push(value);
        }
        if !in_order {
            random.shuffle(&mut drawn);
        }
        let mut sample = Vec::with_capacity(sum);
        for (number, value) in (0..).zip(&drawn) {
            sample.extend_from_slice(keys.key(number));
            sample.extend_from_slice(value);
        }
        sample
    }

    /// Writes per second of the writer of readwhilewriting.
    pub(super) fn writer_rate(&self) -> f64 {
        self.rate_limit * f64::from(1 << 20) / self.pair_bytes()
    }

    /// Writes per second of one client of readrandomwriterandom; `None` if they have no rate.
    pub(super) fn writes_per_second(&self) -> Option<f64> {
        let rate = self.write_rate?;
        Some(rate * f64::from(1 << 20) / self.pair_bytes() / self.threads.max(1) as f64)
    }
}
