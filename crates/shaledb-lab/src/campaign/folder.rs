//! The files of a run's folder: what is to be done, what is done, what failed.

use super::plan::{Plan, SCHEMA};
use crate::problem::{Kind, Problem};
use crate::run::row::Row;
use crate::stores::engine::Result;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind::NotFound;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// The plan of a run's folder.
///
/// # Errors
///
/// There is none, it cannot be read, or a newer version wrote it.
pub fn read_plan(folder: &Path) -> Result<Plan> {
    let file = folder.join("plan.json");
    let text = std::fs::read(&file).map_err(|error| {
        let read = Problem::file("read", &file, &error);
        let kind = if error.kind() == NotFound { Kind::Missing } else { read.kind };
        Problem::new(kind, format!("{} is not the folder of a run: {read}", folder.display()))
    })?;
    let value: serde_json::Value = serde_json::from_slice(&text)
        .map_err(|error| format!("{} is not a plan: {error}", file.display()))?;
    if value["schema"].as_u64().is_none_or(|schema| schema > u64::from(SCHEMA)) {
        return Err(format!(
            "{} has schema {}, but this `shale` reads {SCHEMA}. Use the version that wrote it",
            file.display(),
            value["schema"]
        )
        .into());
    }
    serde_json::from_value(value)
        .map_err(|error| format!("{} is not a plan: {error}", file.display()).into())
}

/// A line of `failed.jsonl`.
#[derive(Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) workload: String,
    pub(super) step: String,
    pub(super) engine: String,
    pub(super) setting: String,
    pub(super) repeat: u32,
    pub(super) why: String,
}

/// What identifies a row in a run: workload, setting, engine, step, repeat.
pub(super) type Key = (String, String, String, String, u32);

pub(super) fn key_of(row: &Row) -> Key {
    let text = |text: &String| text.clone();
    (text(&row.workload), text(&row.setting), text(&row.engine), text(&row.step), row.repeat)
}

/// A line at the end of a file, on disk when this returns.
pub(super) fn append(path: &Path, line: &str) -> Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| {
            file.write_all(format!("{line}\n").as_bytes())?;
            // A pipe or a terminal cannot be synced.
            let _ = file.sync_data();
            Ok(())
        })
        .map_err(|error| Problem::file("write", path, &error).into())
}

/// For how long a lock is asked for: who has ended may have left it to a process that is about to
/// end, or has just been started and lets go of it at once.
const LOCK_TRIES: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Locks a folder as long as what is given is open. If another process has it locked, the error
/// says `busy`.
pub(super) fn lock(folder: &Path, busy: impl FnOnce() -> String) -> Result<File> {
    let failed = |error| Problem::file("lock", folder, &error);
    let file = File::open(folder).map_err(failed)?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(failed(error).into()),
        }
    }
    Err(Problem::new(Kind::Busy, busy()).into())
}

/// The rows of a file. A last line that is cut off, as by a loss of power, is cut off for good.
pub(super) fn read_rows(path: &Path) -> Result<Vec<Row>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Problem::file("read", path, &error).into()),
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    if whole < text.len() {
        let file = OpenOptions::new().write(true).open(path);
        file.and_then(|file| file.set_len(whole as u64))
            .map_err(|error| Problem::file("write", path, &error))?;
    }
    text[..whole]
        .lines()
        .enumerate()
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| {
                format!("{}: line {} is not a row of results: {error}", path.display(), at + 1)
                    .into()
            })
        })
        .collect()
}
