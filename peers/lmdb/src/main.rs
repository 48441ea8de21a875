//! LMDB behind the workloads of the lab: a driver that `shale bench` starts.

mod engine;

use engine::Lmdb;
use std::process::ExitCode;

fn main() -> ExitCode {
    shaledb_lab::driver::main_kv::<Lmdb>()
}
