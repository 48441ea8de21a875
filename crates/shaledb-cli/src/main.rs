//! The `shale` command: import, read, inspect, verify, repair and measure Shale databases.
//!
//! One file per family of commands; [`args`] is what the user may say, [`exit`] how a command ends.

mod exit;
mod allocator;
mod screen;
mod signals;
mod bench;
mod row_flags;
mod target;
mod reader;
mod simulate;
mod args;
mod demo;
mod inspect;
mod open;
mod admin;
mod export;
mod import;
mod advise;
mod read;
mod repair;
mod write;

use args::{Action, Shale};
use clap::{CommandFactory, Parser};
use exit::{Exit, Failure, Outcome};
use std::process::ExitCode;

/// Measured beside others in docs/decisions/0018-memory.md. Not on Windows' C runtime, where it
/// cannot be built.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What is freed goes back to the system at once, unless a database has much memory
/// ([`allocator`]), and a block of 16 KiB takes no page more than that (which would be there for
/// blocks to begin at different places in a page).
#[cfg(not(target_env = "msvc"))]
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static ALLOCATOR_SETTINGS: &[u8] = b"dirty_decay_ms:0,muzzy_decay_ms:0,cache_oblivious:false\0";

fn main() -> ExitCode {
    let arguments = match Shale::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    start_log(arguments.verbose);
    let json = arguments.json;
    match run(arguments) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(json),
    }
}

/// Says what is wrong with the command line, as a JSON object if it asks for JSON; or prints the
/// help or the version.
fn refuse(error: &clap::Error) -> ExitCode {
    let json =
        std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json");
    if !json || !error.use_stderr() {
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8));
    }
    let text = error.render().to_string();
    let what = text.split("\n\nUsage:").next().unwrap_or_default();
    let what = what.split("\n\nFor more information").next().unwrap_or_default();
    Failure::usage(what.strip_prefix("error: ").unwrap_or(what).trim()).report(true)
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
        Action::Export(options) => export::export(&options, json),
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
        Action::Simulate(options) => simulate::simulate(&options, json),
        Action::Advise(options) => advise::advise(&options, json),
        Action::Demo(options) => demo::demo(&options, json),
        Action::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Shale::command(), "shale", &mut text);
            screen::out(&text)?;
            Ok(Exit::Done)
        }
    }
}
