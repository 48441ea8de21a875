//! RocksDB behind the workloads of the lab: a driver that `shale bench --engines rocksdb` starts.
//! It also shows `shale advise` the rows of a database that is there.

mod stats;
mod cursor;
mod database;
mod engine;
mod browse;

use engine::RocksDb;
use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(shaledb_lab::browse::WORD) {
        return shaledb_lab::browse::main(browse::Folder::open);
    }
    shaledb_lab::driver::main_kv::<RocksDb>()
}
