//! RocksDB behind the same benchmarks as Shale: `shale-peer-rocksdb --benchmarks fillseq,...` takes
//! the flags of `shale bench kv` and prints the same rows.

mod engine;
mod stats;

use clap::Parser;
use engine::RocksDb;
use shale_lab::options::BenchOptions;
use std::process::ExitCode;

/// Measure RocksDB by the benchmarks of `shale bench kv`
#[derive(Parser)]
#[command(name = "shale-peer-rocksdb", version)]
struct Command {
    #[command(flatten)]
    options: BenchOptions,
}

fn main() -> ExitCode {
    let command = Command::parse();
    match shale_lab::bench::run::<RocksDb>(&command.options) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
