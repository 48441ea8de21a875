//! What can be run, by the names of db_bench.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What to run, in the manner of db_bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
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
            Benchmark::Overwrite => "overwrite",
            Benchmark::Readrandom => "readrandom",
            Benchmark::Readseq => "readseq",
            Benchmark::Seekrandom => "seekrandom",
            Benchmark::Readwhilewriting => "readwhilewriting",
            Benchmark::Deleterandom => "deleterandom",
            Benchmark::WaitIdle => "wait_idle",
        }
    }

    /// Whether it begins with a new database.
    pub fn is_fill(self) -> bool {
        matches!(self, Benchmark::Fillseq | Benchmark::Fillrandom)
    }
}
