//! What can be run, by the names of db_bench.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How many keys one multi-get has.
pub(super) const MULTI_KEYS: u64 = 100;

/// How many numbers have a prefix in common: the prefix is all of the key's number but its last
/// seven bits.
pub(super) const PREFIX_ROWS: u64 = 128;

/// What to run, in the manner of db_bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub enum Benchmark {
    /// Write all keys in ascending order, into a new database
    Fillseq,
    /// Write keys in random order, into a new database
    Fillrandom,
    /// Write all keys once in random order, into a new database
    Filluniquerandom,
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
    /// Look a random key up with a chance of --read-share, else write one, at --write-rate
    Readrandomwriterandom,
    /// Look 100 random keys up by one call
    Multireadrandom,
    /// Seek a random key and read --scan-rows pairs from there
    Scanrandom,
    /// Read all pairs of a random prefix of the keys, at most 128
    Prefixscan,
    /// Look up keys that are not there and lie between those that are
    Readmissing,
    /// Read a random key and write it, in a transaction that locks it
    Updaterandom,
    /// Delete random keys
    Deleterandom,
    /// Flush, then wait until no compaction is due
    #[serde(rename = "wait_idle")]
    #[value(name = "wait_idle")]
    WaitIdle,
}

impl Benchmark {
    /// The name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::Fillseq => "fillseq",
            Benchmark::Fillrandom => "fillrandom",
            Benchmark::Filluniquerandom => "filluniquerandom",
            Benchmark::Overwrite => "overwrite",
            Benchmark::Readrandom => "readrandom",
            Benchmark::Readseq => "readseq",
            Benchmark::Seekrandom => "seekrandom",
            Benchmark::Readwhilewriting => "readwhilewriting",
            Benchmark::Readrandomwriterandom => "readrandomwriterandom",
            Benchmark::Multireadrandom => "multireadrandom",
            Benchmark::Scanrandom => "scanrandom",
            Benchmark::Prefixscan => "prefixscan",
            Benchmark::Readmissing => "readmissing",
            Benchmark::Updaterandom => "updaterandom",
            Benchmark::Deleterandom => "deleterandom",
            Benchmark::WaitIdle => "wait_idle",
        }
    }

    /// Whether it writes rows, and not in the order of their keys.
    pub fn writes_in_no_order(self) -> bool {
        let is_fill = self.is_fill() && self != Benchmark::Fillseq;
        is_fill
            || matches!(
                self,
                Benchmark::Overwrite
                    | Benchmark::Readwhilewriting
                    | Benchmark::Readrandomwriterandom
                    | Benchmark::Updaterandom
            )
    }

    /// Whether it begins with a new database.
    pub fn is_fill(self) -> bool {
        matches!(self, Benchmark::Fillseq | Benchmark::Fillrandom | Benchmark::Filluniquerandom)
    }
}
