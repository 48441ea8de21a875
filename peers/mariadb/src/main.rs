//! MariaDB behind the workloads of the lab: a driver that `shale bench` starts.
//!
//! The server is our own, on a data directory and a socket that nobody else uses, started before a
//! step and stopped after it; or one whose address was given. `shale-peer-mariadb check FOLDER`
//! starts it once more on what a step left and compares tables with their indexes.

mod settings;
mod server;
mod sql;
mod metrics;
mod store;
mod graph;
mod oltp;
mod pairs;
mod sales;
mod tpcc_tables;
mod tpcc;
mod check;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tpcc_tests;

use std::path::PathBuf;
use std::process::ExitCode;
use store::MariaDb;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => shaledb_lab::driver::main_sql::<MariaDb>(),
        [command, engine, folder] if command == "check" => {
            match check::check(engine, &PathBuf::from(folder)) {
                Ok(found) => {
                    println!("{found}");
                    ExitCode::SUCCESS
                }
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::FAILURE
                }
            }
        }
        _ => {
            eprintln!("usage: shale-peer-mariadb [check ENGINE FOLDER]");
            ExitCode::from(2)
        }
    }
}
