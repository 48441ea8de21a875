//! What to report, and how.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// What to report, and how.
#[derive(Args, Clone, Debug)]
pub struct ReportOptions {
    /// Files of rows, or folders of runs; with two or more, each later one is compared with the
    /// first
    #[arg(required = true, value_name = "FILE|FOLDER", value_hint = ValueHint::AnyPath)]
    pub runs: Vec<PathBuf>,

    /// The engine (or engine.setting) that the others are compared with [default: shale, or the
    /// first]
    #[arg(long, value_name = "ENGINE")]
    pub base: Option<String>,

    /// Write a page of HTML with charts to this file; it needs no other file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Exit with code 10 if a later run regressed
    #[arg(long)]
    pub fail_on_regression: bool,

    /// The share of the reported changes that may be chance (false discovery rate)
    #[arg(long, default_value_t = 0.05, value_parser = share, value_name = "SHARE")]
    pub alpha: f64,

    /// The least change that is reported, as a share
    #[arg(long, default_value_t = 0.02, value_parser = share, value_name = "SHARE")]
    pub least_change: f64,

    /// Show all compared figures, not only those that changed
    #[arg(long)]
    pub all: bool,

    /// Of one run, also print the whole configuration of every engine
    #[arg(long)]
    pub configuration: bool,
}

fn share(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err(format!("`{text}` is not a share between 0 and 1, such as 0.05")),
    }
}
