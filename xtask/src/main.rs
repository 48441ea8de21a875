//! Tasks of the developers: `cargo xtask --help`.
//!
//! Only `peers` installs anything; the others name what is missing, with the command that brings
//! it.

mod command;
mod assets;
mod savings;
mod install;
mod peers;
mod step;
mod table;
mod compare;
mod roofline;
mod plan;
mod validate;
mod tools;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Tasks of the developers of Shale",
    bin_name = "cargo xtask"
)]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure Shale beside RocksDB: the same work, step by step in turns, and a table of ratios
    Compare(compare::CompareOptions),
    /// Measure what the parts of writes and reads cost on this machine, and how close Shale is to
    /// their sum
    Roofline(roofline::RooflineOptions),
    /// Draw what today's policies lead to, as `shale simulate` foresees it for fixed scenarios,
    /// beside those of another commit
    Plan(plan::PlanOptions),
    /// Overwrite data of several sizes, codecs and skews on a device of a known rate, and show what
    /// was measured beside what `shale simulate` foresaw
    Validate(validate::ValidateOptions),
    /// Build the drivers of the peers that `shale bench --engines` runs, after installing the
    /// Debian packages that they need
    Peers {
        /// Which, such as rocksdb [default: all that there are]
        names: Vec<String>,
    },
    /// Build the C library in release and install it: libraries, header, pkg-config file
    InstallC {
        /// Where lib/ and include/ are
        #[arg(long, default_value = "/usr/local")]
        prefix: PathBuf,
    },
    /// Get the plotting library of the reports as it was published, and put it in its place
    Assets {
        /// Only compare: fail if what is here is not as published
        #[arg(long)]
        check: bool,
    },
    /// Draw the picture of the README (docs/savings.svg) from the tables of docs/savings.md
    Savings,
    /// What every change has to pass besides ./test: format, lints, documentation
    Ci,
    /// Run the unit tests of the files with `unsafe` under Miri (needs a nightly toolchain)
    Miri {
        /// Only tests whose name contains one of these [default: memtable]
        filters: Vec<String>,
    },
    /// Explore the interleavings of threads with shuttle
    Shuttle {
        /// Only tests whose name contains one of these [default: all that use shuttle]
        filters: Vec<String>,
    },
    /// Run the tests with threads under ThreadSanitizer (needs a nightly toolchain)
    Tsan {
        /// Only tests whose name contains one of these [default: stress, builds, cache, memtable,
        /// write]
        filters: Vec<String>,
    },
    /// Fuzz every target in turn (needs cargo-fuzz and a nightly toolchain)
    Fuzz {
        /// Seconds for each target
        #[arg(default_value_t = 60)]
        seconds: u64,
        /// Only this target
        #[arg(long)]
        target: Option<String>,
    },
    /// The long tests: every crash point and fault of the simulator, not a sample
    Long {
        /// Only tests whose name contains one of these [default: all]
        filters: Vec<String>,
    },
}

fn main() -> ExitCode {
    let outcome = match Command::parse().task {
        Task::Compare(options) => compare::run(&options),
        Task::Roofline(options) => roofline::roofline(&options),
        Task::Plan(options) => plan::plan(&options),
        Task::Validate(options) => validate::validate(&options),
        Task::Peers { names } => peers::peers(&names),
        Task::InstallC { prefix } => install::install(&prefix),
        Task::Assets { check } => assets::run_assets(check),
        Task::Savings => savings::savings(),
        Task::Ci => tools::ci(),
        Task::Miri { filters } => tools::miri(&filters),
        Task::Shuttle { filters } => tools::shuttle(&filters),
        Task::Tsan { filters } => tools::tsan(&filters),
        Task::Fuzz { seconds, target } => tools::fuzz(seconds, target.as_deref()),
        Task::Long { filters } => tools::long(&filters),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
