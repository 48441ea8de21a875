//! Rows of a run, from a file of JSON lines or from a run's folder.

use crate::problem::{Kind, Problem};
use crate::run::row::{Row, SCHEMA};
use crate::stores::engine::Result;
use serde_json::Value;
use std::fs;
use std::io::ErrorKind::NotFound;
use std::path::Path;

/// The file of a run's folder that holds its rows.
pub const ROWS: &str = "rows.jsonl";

/// The file of a run's folder that says what was planned.
pub const PLAN: &str = "plan.json";

/// The file of a run's folder that lists the steps that failed.
pub const FAILED: &str = "failed.jsonl";

/// The rows of one run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The file's or folder's name.
    pub name: String,
    /// Its rows, as they were written.
    pub rows: Vec<Row>,
    /// What was planned, if it is a folder.
    pub plan: Option<Value>,
    /// What was odd about the files.
    pub warnings: Vec<String>,
}

/// Reads a file of rows, or `rows.jsonl` and `plan.json` of a folder.
///
/// # Errors
///
/// A file cannot be read; a line is not a row (the last one may be cut off: then the run was
/// interrupted, which is a warning); a row has another schema; there is no row.
pub fn read(path: &Path) -> Result<Run> {
    let folder = path.is_dir();
    let file = if folder { path.join(ROWS) } else { path.to_owned() };
    let text = fs::read_to_string(&file).map_err(|error| {
        let kind = if error.kind() == NotFound { Kind::Missing } else { Kind::Io };
        Problem::new(kind, format!("could not read the rows of {}: {error}", file.display()))
    })?;
    let mut run = Run { name: name(path), ..Run::default() };
    for (at, line) in text.split_inclusive('\n').enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let whole = line.ends_with('\n');
        match parse(line) {
            Ok(row) => run.rows.push(row),
            Err(Wrong::NotJson(_)) if !whole => run.warnings.push(format!(
                "{} line {} is cut off: the run was interrupted there",
                file.display(),
                at + 1
            )),
            Err(wrong) => {
                return Err(format!("{} line {}: {}", file.display(), at + 1, wrong.text()).into());
            }
        }
    }
    if run.rows.is_empty() {
        return Err(format!(
            "{} has no rows, because no step of the run has ended",
            file.display()
        )
        .into());
    }
    if folder {
        let failures = failures(path, &run.rows);
        run.warnings.extend(failures);
    }
    let plan = path.join(PLAN);
    if folder && plan.is_file() {
        let read = fs::read(&plan).map_err(|error| error.to_string());
        match read.and_then(|text| serde_json::from_slice(&text).map_err(|e| e.to_string())) {
            Ok(value) => run.plan = Some(value),
            Err(error) => {
                run.warnings.push(format!("{} was left out: {error}", plan.display()));
            }
        }
    }
    Ok(run)
}

/// The steps that failed, unless they did well when they were tried again.
fn failures(folder: &Path, rows: &[Row]) -> Vec<String> {
    let Ok(text) = fs::read_to_string(folder.join(FAILED)) else { return Vec::new() };
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut said = Vec::new();
    for line in lines {
        let word = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let repeat = line["repeat"].as_u64().unwrap_or_default();
        let parts = ["workload", "step", "engine", "setting"].map(word);
        let done = rows.iter().any(|row| {
            [&row.workload, &row.step, &row.engine, &row.setting] == parts.each_ref()
                && u64::from(row.repeat) == repeat
        });
        let [workload, step, engine, setting] = parts;
        let dot = if setting.is_empty() { "" } else { "." };
        let why = word("why");
        let why = why.lines().next().unwrap_or_default();
        let text = format!("{workload} {step} failed on {engine}{dot}{setting}: {why}");
        if !done && !said.contains(&text) {
            said.push(text);
        }
    }
    said
}

/// The last part of a path; of `.` that of where it leads.
fn name(path: &Path) -> String {
    let full = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    full.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy()).into()
}

/// Why a line is not a row.
enum Wrong {
    NotJson(String),
    /// A line of what a report tells programs.
    Told(String),
    Schema(Option<u64>),
    Field(String),
}

impl Wrong {
    fn text(&self) -> String {
        match self {
            Wrong::NotJson(error) => format!("this is not JSON ({error})"),
            Wrong::Told(kind) => format!(
                "this is a line of `shale bench report --json` ({kind}), not a row. Name the run's \
                 folder, or its {ROWS}"
            ),
            Wrong::Schema(Some(schema)) if *schema > u64::from(SCHEMA) => format!(
                "the row has schema {schema}, this `shale` reads schema {SCHEMA}. Use the version \
                 that wrote it, or a newer one"
            ),
            Wrong::Schema(Some(schema)) => format!(
                "the row has schema {schema}, this `shale` reads schema {SCHEMA}. An older \
                 version wrote it: measure again"
            ),
            Wrong::Schema(None) => {
                "the object has no `schema`, so it is not a row of results".into()
            }
            Wrong::Field(error) => {
                format!("the row does not have the fields of its schema: {error}")
            }
        }
    }
}

fn parse(line: &str) -> std::result::Result<Row, Wrong> {
    let value: Value =
        serde_json::from_str(line).map_err(|error| Wrong::NotJson(error.to_string()))?;
    // The schema is looked at first: fields of another one would only confuse.
    let schema = value.get("schema").and_then(Value::as_u64);
    if schema != Some(u64::from(SCHEMA)) {
        return Err(Wrong::Schema(schema));
    }
    if let Some(kind) = value.get("kind").and_then(Value::as_str) {
        return Err(Wrong::Told(kind.to_owned()));
    }
    serde_json::from_value(value).map_err(|error| Wrong::Field(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.jsonl");
        fs::write(&path, text).unwrap();
        read(&path).unwrap_err().to_string()
    }

    fn line() -> String {
        let row = Row { schema: SCHEMA, engine: "shale".to_owned(), ..Row::default() };
        serde_json::to_string(&row).unwrap() + "\n"
    }

    #[test]
    fn other_schemas_are_named() {
        let newer = line().replace("\"schema\":2", "\"schema\":3,\"new\":[]");
        assert!(
            refusal(&newer).contains("line 1: the row has schema 3, this `shale` reads schema 2")
        );
        assert!(refusal(&newer).contains("newer"));
        assert!(refusal("{\"schema\":1}\n").contains("An older version wrote it"));
        let folded = "{\"schema\":2,\"kind\":\"folded\",\"engine\":\"shale\"}\n";
        assert!(refusal(folded).contains("line 1: this is a line of `shale bench report --json`"));
        assert!(refusal("{\"a\":1}\n").contains("no `schema`"));
        assert!(refusal("{\"schema\":2,\"ops\":\"many\"}\n").contains("fields of its schema"));
        assert!(
            refusal(&format!("{}{{\"sch\n{}", line(), line())).contains("line 2: this is not JSON")
        );
        assert!(refusal("").contains("no rows"));
    }

    #[test]
    fn a_folder_of_an_interrupted_run() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(ROWS), format!("{}\n{}{{\"sche", line(), line())).unwrap();
        fs::write(dir.path().join(PLAN), "{\"steps\":[\"load\"]}").unwrap();
        let run = read(dir.path()).unwrap();
        assert_eq!(run.rows.len(), 2);
        assert!(run.warnings[0].ends_with("line 4 is cut off: the run was interrupted there"));
        assert_eq!(run.plan.unwrap()["steps"][0], "load");
        let failed = "{\"workload\":\"kv\",\"step\":\"fill\",\"engine\":\"lmdb\",\"setting\":\"a\",\
                      \"repeat\":1,\"why\":\"no space\\nleft\"}\n";
        let done = "{\"workload\":\"\",\"step\":\"\",\"engine\":\"shale\",\"setting\":\"\",\"repeat\":0}\n";
        fs::write(dir.path().join(FAILED), failed.repeat(2) + done).unwrap();
        let warnings = read(dir.path()).unwrap().warnings;
        assert_eq!(warnings[1..], ["kv fill failed on lmdb.a: no space"]);
        fs::remove_file(dir.path().join(FAILED)).unwrap();
        fs::write(dir.path().join(PLAN), "{").unwrap();
        assert!(read(dir.path()).unwrap().warnings[1].contains("plan.json was left out"));
        assert!(read(&dir.path().join("none")).unwrap_err().to_string().contains("none"));
    }

    #[test]
    fn fields_of_a_later_minor_version_are_no_trouble() {
        // A field may be added without a new schema; older rows lack it, newer ones have more.
        let row = parse("{\"schema\":2,\"ops\":7,\"added\":1}").map_err(|wrong| wrong.text());
        assert_eq!(row.unwrap().ops, 7);
    }
}
