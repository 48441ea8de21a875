//! The `shale` command: import, read, inspect, verify, repair and measure Shale databases.
//!
//! One file per family of commands; [`args`] is what the user may say, [`exit`] how a command ends.

mod admin;
mod args;
mod bench;
mod demo;
mod exit;
mod import;
mod inspect;
mod open;
mod read;
mod repair;
mod screen;
mod text;
mod write;

use args::{Action, Shale};
use clap::{CommandFactory, Parser};
use exit::{Exit, Outcome};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Shale::parse();
    start_log(arguments.verbose);
    let json = arguments.json;
    match run(arguments) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(json),
    }
}

/// What the engine has to say goes to the standard error; `SHALE_LOG` chooses more finely.
fn start_log(verbose: bool) {
    let default = if verbose { "info" } else { "warn" };
    let filter = tracing_subscriber::EnvFilter::try_from_env("SHALE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .init();
}

fn run(arguments: Shale) -> Outcome<Exit> {
    let json = arguments.json;
    match arguments.action {
        Action::Import(options) => import::import(&options, json),
        Action::Get(options) => read::get(&options, json),
        Action::Scan(options) => read::scan(&options, json),
        Action::Put(options) => write::put(&options, json),
        Action::Delete(options) => write::delete(&options, json),
        Action::Trees(options) => admin::trees(&options, json),
        Action::Stats(options) => admin::stats(&options, json),
        Action::Inspect(options) => inspect::inspect(&options, json),
        Action::Verify(options) => admin::verify(&options, json),
        Action::Compact(options) => admin::compact(&options, json),
        Action::Checkpoint(options) => admin::checkpoint(&options, json),
        Action::Repair(options) => repair::repair(&options, json),
        Action::Bench { kind } => bench::bench(kind, json),
        Action::Demo(options) => demo::demo(&options, json),
        Action::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Shale::command(), "shale", &mut text);
            screen::out(&text)?;
            Ok(Exit::Done)
        }
    }
}
