//! The flags of a run, the same for every engine.

use crate::setup::{Durability, Setup};
use crate::units::{parse_bytes, parse_count};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;

/// What to run, in the manner of db_bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub enum Benchmark {
    /// Write all keys in ascending order, into a new database
    Fillseq,
    /// Write keys in random order, into a new database
    Fillrandom,
    /// Write random keys of an existing database
    Overwrite,
    /// Look random keys up
    Readrandom,
    /// Read all pairs in order
    Readseq,
    /// Seek a random key, then read the 10 pairs that follow
    Seekrandom,
    /// Look random keys up while one more thread writes at --rate-limit
    Readwhilewriting,
    /// Delete random keys
    Deleterandom,
    /// Flush, then wait until no compaction is due
    Settle,
}

impl Benchmark {
    /// The name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::Fillseq => "fillseq",
            Benchmark::Fillrandom => "fillrandom",
            Benchmark::Overwrite => "overwrite",
            Benchmark::Readrandom => "readrandom",
            Benchmark::Readseq => "readseq",
            Benchmark::Seekrandom => "seekrandom",
            Benchmark::Readwhilewriting => "readwhilewriting",
            Benchmark::Deleterandom => "deleterandom",
            Benchmark::Settle => "settle",
        }
    }

    /// Whether it begins with a new database.
    pub fn is_fill(self) -> bool {
        matches!(self, Benchmark::Fillseq | Benchmark::Fillrandom)
    }
}

/// The least and the most bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueBytes {
    /// The least.
    pub least: usize,
    /// The most.
    pub most: usize,
}

impl FromStr for ValueBytes {
    type Err = String;

    /// Reads `100-400` or `400`.
    fn from_str(text: &str) -> Result<ValueBytes, String> {
        let (least, most) = text.split_once('-').unwrap_or((text, text));
        let least = parse_bytes(least)? as usize;
        let most = parse_bytes(most)? as usize;
        if least > most {
            return Err(format!("`{text}`: the first size is the larger one"));
        }
        if most > 64 << 20 {
            return Err(format!("`{text}`: values of a benchmark have at most 64 MiB"));
        }
        Ok(ValueBytes { least, most })
    }
}

impl std::fmt::Display for ValueBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.least, self.most)
    }
}

/// The codec of the small levels, of those in the middle and of the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodecNames {
    /// Level 0 and the two below it that are in use.
    pub small: String,
    /// Between the small levels and the last.
    pub middle: String,
    /// The last level.
    pub last: String,
}

impl FromStr for CodecNames {
    type Err = String;

    /// Reads `lz4` (everywhere) or `none,lz4,zstd:3`.
    fn from_str(text: &str) -> Result<CodecNames, String> {
        let names: Vec<&str> = text.split(',').map(str::trim).collect();
        let (small, middle, last) = match names[..] {
            [all] => (all, all, all),
            [small, middle, last] => (small, middle, last),
            _ => {
                return Err(format!(
                    "`{text}`: name one codec, or three for the small levels, the middle and the \
                     last, such as none,lz4,zstd:3"
                ));
            }
        };
        for name in [small, middle, last] {
            let known = match name.split_once(':') {
                None => matches!(name, "none" | "lz4" | "zlib" | "zstd"),
                Some(("zlib", level)) => level.parse().is_ok_and(|n: u8| (1..=9).contains(&n)),
                Some(("zstd", level)) => {
                    level.parse().is_ok_and(|n: i8| (-5..=19).contains(&n) && n != 0)
                }
                Some(_) => false,
            };
            if !known {
                return Err(format!(
                    "`{name}` is none of none, lz4, zlib:1 to zlib:9, zstd:-5 to zstd:19"
                ));
            }
        }
        Ok(CodecNames { small: small.to_owned(), middle: middle.to_owned(), last: last.to_owned() })
    }
}

impl std::fmt::Display for CodecNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.small == self.middle && self.middle == self.last {
            f.write_str(&self.small)
        } else {
            write!(f, "{},{},{}", self.small, self.middle, self.last)
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.01..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}` is not a share from 0.01 to 1")),
    }
}

pub(crate) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err(format!("`{text}` is not a number above 0")),
    }
}

/// The flags of `bench kv`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct BenchOptions {
    /// What to run, in this order, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "fillseq,overwrite,settle,readrandom,seekrandom,readseq,readwhilewriting",
        hide_possible_values = false
    )]
    pub benchmarks: Vec<Benchmark>,

    /// How many keys the database has (k, M, G: thousands)
    #[arg(long, default_value = "1M", value_parser = parse_count)]
    pub num: u64,

    /// Operations of each benchmark, all threads together [default: --num]
    #[arg(long, value_parser = parse_count)]
    pub ops: Option<u64>,

    /// The longest a benchmark may run, in seconds; fills always complete
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub duration: Option<f64>,

    /// The size of a key
    #[arg(long, default_value = "20")]
    pub key_bytes: usize,

    /// The size of a value, or the least and the most, evenly spread
    #[arg(long, default_value = "100-400", value_name = "MIN-MAX")]
    pub value_bytes: ValueBytes,

    /// The share of its size that a value compresses to
    #[arg(long, default_value = "0.5", value_parser = share)]
    pub compressibility: f64,

    /// Client threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: u64,

    /// How fast readwhilewriting writes, in MB (2^20) per second
    #[arg(long, default_value = "10", value_name = "MB/S", value_parser = positive)]
    pub rate_limit: f64,

    /// One codec, or three: small levels, middle, last
    #[arg(long, default_value = "none,lz4,zstd:3")]
    pub codecs: CodecNames,

    /// The bound on cache, memtables, indexes and filters together (K, M, G: powers of 1024)
    #[arg(long, default_value = "1280M", value_parser = parse_bytes)]
    pub memory: u64,

    /// The size of a memtable
    #[arg(long, default_value = "64M", value_parser = parse_bytes)]
    pub memtable: u64,

    /// Filter bits per key
    #[arg(long, default_value_t = 10)]
    pub filter_bits: u8,

    /// The size of a data block before compression
    #[arg(long, default_value = "16K", value_parser = parse_bytes)]
    pub block_bytes: u64,

    /// Threads for flush and compaction
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub background_threads: u32,

    /// Sync the log at every write
    #[arg(long)]
    pub sync: bool,

    /// Where chance begins; the same seed does the same work
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// The folder to work in, made if it is missing [default: a new one under /var/tmp]
    #[arg(long, value_name = "PATH")]
    pub db: Option<PathBuf>,

    /// Keep the database at the end
    #[arg(long)]
    pub keep: bool,

    /// Also append one JSON line per benchmark to this file; - prints JSON lines only
    #[arg(long, value_name = "FILE")]
    pub json_to: Option<PathBuf>,
}

impl BenchOptions {
    /// Operations of a benchmark over all keys.
    pub fn ops_or_num(&self) -> u64 {
        self.ops.unwrap_or(self.num)
    }

    /// What the engine is given.
    pub fn setup(&self) -> Setup {
        Setup {
            memory: self.memory,
            memtable: self.memtable,
            codecs: self.codecs.clone(),
            filter_bits: self.filter_bits,
            block_bytes: self.block_bytes,
            background_threads: self.background_threads,
            durability: if self.sync { Durability::Power } else { Durability::Process },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: BenchOptions,
    }

    #[test]
    fn defaults_and_lists() {
        let command = Command::parse_from(["x", "--benchmarks", "fillseq,settle", "--num", "2k"]);
        assert_eq!(command.options.benchmarks, [Benchmark::Fillseq, Benchmark::Settle]);
        assert_eq!(command.options.num, 2000);
        assert_eq!(command.options.value_bytes, ValueBytes { least: 100, most: 400 });
        assert_eq!(command.options.codecs.to_string(), "none,lz4,zstd:3");
        assert_eq!(command.options.memory, 1280 << 20);
    }

    #[test]
    fn wrong_flags_are_refused() {
        for wrong in [
            ["x", "--codecs", "none,lz4"],
            ["x", "--codecs", "snappy"],
            ["x", "--codecs", "zstd:20"],
            ["x", "--value-bytes", "400-100"],
            ["x", "--benchmarks", "fillsequence"],
            ["x", "--compressibility", "2"],
            ["x", "--threads", "0"],
        ] {
            assert!(Command::try_parse_from(wrong).is_err(), "{wrong:?}");
        }
    }
}
