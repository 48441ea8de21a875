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

    /// The engine (or engine.setting) that others are set against [default: shale if it is there,
    /// else the first]
    #[arg(long, value_name = "ENGINE")]
    pub base: Option<String>,

    /// Write one page of HTML that needs nothing else, with charts
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Exit with code 10 if a later run regressed
    #[arg(long)]
    pub fail_on_regression: bool,

    /// Of the changes that are called, the share that may be chance
    #[arg(long, default_value_t = 0.05, value_parser = share, value_name = "SHARE")]
    pub alpha: f64,

    /// The least change that counts, as a share
    #[arg(long, default_value_t = 0.02, value_parser = share, value_name = "SHARE")]
    pub least_change: f64,

    /// Show all figures that were compared, not only those that changed
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
