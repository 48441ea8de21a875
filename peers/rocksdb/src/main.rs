//! RocksDB behind the workloads of the lab: a driver that `shale bench --engines rocksdb` starts.

mod stats;
mod cursor;
mod database;
mod engine;

use engine::RocksDb;
use std::process::ExitCode;

fn main() -> ExitCode {
    shaledb_lab::driver::main_kv::<RocksDb>()
}
