//! A run of the lab as a start: which of its rows.

use crate::exit::{Exit, Failure, Outcome};
use shaledb_lab::report::read::{ROWS, Run, read};
use shaledb_lab::run::row::Row;
use shaledb_lab::stores::engine::Level;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The name of Shale in rows.
const SHALE: &str = "shale";
/// What `--from` takes.
const TAKES: &str = "--from takes a database, the folder of a run of `shale bench`, or the lines \
                     that `shale bench kv --json` prints";

/// A row, and what was there before its step.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) row: Row,
    /// The levels before the step, if they are known.
    pub(super) before: Option<Vec<Level>>,
    /// Which row, in words.
    pub(super) name: String,
}

/// Whether a path is of a run, as against a database.
pub(super) fn is_run(path: &Path) -> bool {
    path.is_file() || path.join(ROWS).is_file()
}

/// The row of Shale of this step and setting; without a step the last one that wrote.
pub(super) fn choose(path: &Path, step: Option<&str>, setting: Option<&str>) -> Outcome<Chosen> {
    let no_report =
        |why: String| Failure::new(Exit::BadInput, format!("{why}. {TAKES}: docs/results.md"));
    if !begins_as_rows(path)? {
        return Err(no_report(format!("{} is no report of a run", path.display())));
    }
    let run = read(path).map_err(|error| no_report(error.to_string()))?;
    let rows: Vec<&Row> = run.rows.iter().filter(|row| row.engine == SHALE).collect();
    if rows.is_empty() {
        let engines = names(run.rows.iter().map(|row| row.engine.as_str()));
        return Err(no_report(format!(
            "{} has no row of Shale, only of {engines}",
            path.display()
        )));
    }
    let settings = names(rows.iter().map(|row| row.setting.as_str()));
    let of_setting: Vec<&Row> = match setting {
        Some(name) => rows.into_iter().filter(|row| row.setting == name).collect(),
        None if settings.contains(',') => {
            return Err(Failure::usage(format!(
                "{} has rows of Shale with several settings: {settings}. Name one: --setting NAME",
                path.display()
            )));
        }
        None => rows,
    };
    let steps = names(of_setting.iter().map(|row| row.step.as_str()));
    let found = match (setting, step) {
        (Some(name), _) if of_setting.is_empty() => {
            return Err(Failure::usage(format!(
                "--setting {name}: {} has no row of Shale with it, only with {settings}",
                path.display()
            )));
        }
        (_, Some(step)) => of_setting.iter().rfind(|row| row.step == step).ok_or_else(|| {
            Failure::usage(format!(
                "--step {step}: {} has no row of Shale of it. Its steps are {steps}",
                path.display()
            ))
        })?,
        (_, None) => of_setting
            .iter()
            .rfind(|row| row.counted.user_bytes > 0)
            .or(of_setting.last())
            .ok_or_else(|| no_report(format!("{} has no row", path.display())))?,
    };
    if found.seconds <= 0.0 {
        return Err(no_report(format!(
            "{}: the row of step `{}` says nothing of how long it took",
            path.display(),
            found.step
        )));
    }
    Ok(Chosen {
        row: (*found).clone(),
        before: before(&of_setting, found),
        name: name(&run, found),
    })
}

/// Whether a run's rows begin as objects of JSON do: a large file of something else is not read.
fn begins_as_rows(path: &Path) -> Outcome<bool> {
    let file = if path.is_dir() { path.join(ROWS) } else { path.to_owned() };
    let wrong = |error: &std::io::Error| Failure::file("read", &file, error);
    let mut start = Vec::new();
    let opened = File::open(&file).map_err(|error| wrong(&error))?;
    opened.take(64).read_to_end(&mut start).map_err(|error| wrong(&error))?;
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    // An empty file is told by who reads it.
    Ok(first.is_none_or(|byte| *byte == b'{'))
}

/// Names, each once, as they come.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let mut once: Vec<String> = Vec::new();
    for name in all.map(|name| format!("`{name}`")) {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once.join(", ")
}

/// The levels that the step found: those at the end of the step before it in its repeat.
fn before(rows: &[&Row], row: &Row) -> Option<Vec<Level>> {
    if row.live_bytes.and_then(|bytes| i64::try_from(bytes).ok()) == Some(row.live_grown_bytes)
        || row.step.starts_with("fill")
    {
        return Some(Vec::new());
    }
    let earlier = rows.iter().filter(|other| {
        other.repeat == row.repeat && other.workload == row.workload && other.started < row.started
    });
    earlier.max_by_key(|other| other.started).map(|other| other.counted.levels.clone())
}

fn name(run: &Run, row: &Row) -> String {
    let setting = match row.setting.as_str() {
        "" => String::new(),
        setting => format!(" with `{setting}`"),
    };
    let alike = run.rows.iter().filter(|other| {
        [&other.engine, &other.step, &other.setting] == [&row.engine, &row.step, &row.setting]
    });
    let repeat = match alike.count() {
        0 | 1 => String::new(),
        count => format!(", repeat {} of {count}", row.repeat + 1),
    };
    format!("step `{}`{setting} of {}{repeat}", row.step, run.name)
}
