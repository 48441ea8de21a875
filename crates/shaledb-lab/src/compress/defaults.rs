//! A workload's parameters as its own command has them by default.

use clap::{Args, FromArgMatches};

/// See the module.
pub(super) fn defaults<A: Args + FromArgMatches>() -> Result<A, String> {
    let command = A::augment_args(clap::Command::new("defaults"));
    A::from_arg_matches(&command.get_matches_from(["defaults"])).map_err(|error| error.to_string())
}
