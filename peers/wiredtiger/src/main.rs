//! WiredTiger behind the workloads of the lab: a driver that `shale bench` starts.

mod api;
mod engine;

use engine::WiredTiger;
use std::process::ExitCode;

fn main() -> ExitCode {
    shaledb_lab::driver::main_kv::<WiredTiger>()
}
