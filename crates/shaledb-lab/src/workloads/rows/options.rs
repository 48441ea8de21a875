//! What a plan says of a user's rows.

use crate::run::row::Row;
use crate::workloads::planned::{PlannedStep, Start, name_of, named};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All rows are written, in the order of the file.
    Load,
    /// What the load left to be merged or written is done.
    WaitIdle,
    /// Rows are looked up by their keys.
    Get,
}

const NAMES: [(&str, Step); 3] =
    [("load", Step::Load), ("wait_idle", Step::WaitIdle), ("get", Step::Get)];

/// The rows, and what is done with them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowsOptions {
    /// The file of rows, in the order in which they are loaded.
    pub file: PathBuf,
    /// Rows in it.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Bytes of the longest key.
    pub key_bytes_max: u64,
    /// Whether a key may come again, which replaces its row.
    pub repeats: bool,
    /// How many rows are looked up.
    pub gets: u64,
}

impl RowsOptions {
    /// The steps: load, wait_idle, get.
    pub fn planned(&self) -> Vec<PlannedStep> {
        let start = |step| if step == Step::Load { Start::Fresh } else { Start::Continue };
        NAMES
            .iter()
            .map(|&(name, step)| PlannedStep { name: name.to_owned(), start: start(step) })
            .collect()
    }

    /// The step of a plan's name.
    ///
    /// # Errors
    ///
    /// There is no such step.
    pub fn step(&self, name: &str) -> Result<Step, String> {
        named(&NAMES, name).ok_or_else(|| format!("the rows workload has no step `{name}`"))
    }

    /// Bytes of all keys and values.
    pub fn data_bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the live data after a step that found `before` of them; those of replaced rows
    /// count as live, for nobody knows how many they are.
    pub fn live_bytes(&self, row: &Row, before: u64) -> u64 {
        before.saturating_add_signed(row.live_grown_bytes)
    }
}

impl Step {
    /// Its name in a plan.
    pub fn name(self) -> &'static str {
        name_of(&NAMES, &self)
    }
}
