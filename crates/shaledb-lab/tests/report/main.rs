//! The reports: texts against golden files (SHALE_BLESS=1 writes them anew), JSON against its
//! documentation, comparisons that find what was changed and nothing else, and the page in a browser.

mod browser;
mod page;
mod samples;

use clap::Parser;
use samples::{Engine, INNODB, ROCKSDB, SHALE, folder, rows};
use serde_json::Value;
use shaledb_lab::report::{self, ReportOptions};
use shaledb_lab::run::row::Row;
use std::collections::BTreeSet;
use std::path::Path;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    report: ReportOptions,
}

/// `shale bench report` with these words, in a folder: what it prints and how many regressions.
fn report(dir: &Path, words: &[&str], json: bool) -> (String, usize) {
    let runs = words.iter().map(|word| match dir.join(word) {
        path if path.exists() => path.to_string_lossy().into_owned(),
        _ => (*word).to_owned(),
    });
    let command = Command::parse_from(std::iter::once("report".to_owned()).chain(runs));
    let mut out = Vec::new();
    let regressions = report::run(&command.report, json, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), regressions)
}

fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("SHALE_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for (at, (line, other)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, other, "{name} line {}", at + 1);
    }
    assert_eq!(text.lines().count(), expected.lines().count(), "{name}");
}

const ALL: [Engine; 3] = [SHALE, ROCKSDB, INNODB];

/// Rows with everything slower by a share, in the steps of a name.
fn slower(mut rows: Vec<Row>, step: &str, engine: &str, share: f64) -> Vec<Row> {
    for row in rows.iter_mut().filter(|row| row.step == step && row.engine == engine) {
        row.rate *= 1.0 - share;
        for interval in &mut row.intervals {
            interval.rate *= 1.0 - share;
            interval.written_bytes = (interval.written_bytes as f64 * (1.0 - share)) as u64;
        }
        row.cpu.us_per_op /= 1.0 - share;
        for latency in row.latency_us.values_mut() {
            latency.us.p99 /= 1.0 - share;
        }
    }
    rows
}

#[test]
fn one_run_as_text() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path(), "run", &rows(&ALL, 4, 1));
    golden("run.txt", &report(dir.path(), &["run"], false).0);
    folder(dir.path(), "single", &rows(&[SHALE], 1, 1)[..3]);
    golden("single.txt", &report(dir.path(), &["single"], false).0);
    let (text, _) = report(dir.path(), &["run", "--base", "innodb"], false);
    assert!(text.contains("Ratios: innodb.16k = 1"), "{text}");
}

#[test]
fn one_run_as_json_lines() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path(), "run", &rows(&ALL, 4, 1));
    let (text, _) = report(dir.path(), &["run"], true);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), samples::STEPS.len() * ALL.len());
    let line = &lines[1];
    assert_eq!((&line["schema"], &line["kind"]), (&2.into(), &"folded".into()));
    assert_eq!((&line["step"], &line["engine"]), (&"load".into(), &"rocksdb".into()));
    let rates: Vec<f64> = rows(&ALL, 4, 1)
        .iter()
        .filter(|row| row.step == "load" && row.engine == "rocksdb")
        .map(|row| row.rate)
        .collect();
    let low = rates.iter().copied().fold(f64::MAX, f64::min);
    assert_eq!(line["figures"]["rate"]["count"], 4);
    assert!((line["figures"]["rate"]["low"].as_f64().unwrap() - low).abs() < 1e-6);
    let ratio = line["ratios"]["rate"].as_f64().unwrap();
    assert!((0.5..0.8).contains(&ratio), "{ratio}");
    assert_eq!(lines[0]["ratios"], serde_json::json!({}), "the base has none");
}

#[test]
fn a_regression_is_found_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path(), "before", &rows(&ALL, 8, 1));
    folder(dir.path(), "after", &slower(rows(&ALL, 8, 2), "l.i1", "shale", 0.1));
    let (text, regressions) = report(dir.path(), &["before", "after"], false);
    golden("regressed.txt", &text);
    // Rate, CPU and the p99 of both kinds of operation.
    assert_eq!(regressions, 4, "{text}");
    let (text, regressions) = report(dir.path(), &["after", "before"], false);
    assert!(text.contains("improved") && regressions == 0, "{text}");
    let (json, _) = report(dir.path(), &["before", "after"], true);
    let changes: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["kind"] == "change")
        .collect();
    let regressed = changes.iter().filter(|change| change["verdict"] == "regressed");
    assert!(regressed.clone().all(|change| change["step"] == "l.i1"));
    assert_eq!(regressed.count(), 4);
}

#[test]
fn four_repeats_show_a_regression() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path(), "before", &rows(&ALL, 4, 1));
    folder(dir.path(), "after", &slower(rows(&ALL, 4, 2), "l.i1", "shale", 0.2));
    let (text, regressions) = report(dir.path(), &["before", "after"], false);
    assert_eq!(regressions, 4, "{text}");
    assert!(text.contains("means of 4 and 4"), "{text}");
}

#[test]
fn what_was_nothing_can_regress() {
    let dir = tempfile::tempdir().unwrap();
    let with = |name: &str, read: fn(usize) -> f64, seed: u64| {
        let mut rows = rows(&[SHALE], 3, seed);
        for (at, row) in rows.iter_mut().filter(|row| row.step == "l.i1").enumerate() {
            row.io.read_kb_per_op = read(at);
        }
        folder(dir.path(), name, &rows);
    };
    with("before", |_| 0.0, 1);
    with("after", |at| 5.0 + at as f64 / 10.0, 2);
    with("once", |at| if at == 1 { 5.0 } else { 0.0 }, 3);
    assert_eq!(report(dir.path(), &["before", "after"], false).1, 1);
    assert_eq!(report(dir.path(), &["before", "once"], false).1, 0);
    let (text, regressions) = report(dir.path(), &["after", "before"], false);
    assert!(text.contains("improved") && regressions == 0, "{text}");
}

#[test]
fn runs_without_a_difference_have_no_regression() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path(), "before", &rows(&ALL, 5, 3));
    for seed in 4..8 {
        let name = format!("after{seed}");
        folder(dir.path(), &name, &rows(&ALL, 5, seed));
        let (text, regressions) = report(dir.path(), &["before", &name, "--all"], false);
        assert_eq!(regressions, 0, "{text}");
    }
}

#[test]
fn few_repeats_are_compared_by_their_intervals() {
    let dir = tempfile::tempdir().unwrap();
    let some = |seed| rows(&[SHALE], 1, seed);
    folder(dir.path(), "before", &some(1));
    folder(dir.path(), "after", &slower(some(2), "overwrite", "shale", 0.2));
    let (text, regressions) = report(dir.path(), &["before", "after", "--all"], false);
    golden("intervals.txt", &text);
    assert!(regressions >= 1, "{text}");
}

#[test]
fn what_makes_runs_incomparable_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let mut later = rows(&ALL[..2], 1, 1);
    later.retain(|row| row.step != "drop");
    for row in later.iter_mut().filter(|row| row.engine == "shale" && row.step == "load") {
        row.version = "1.3.0".to_owned();
        row.parameters = serde_json::json!({ "linkbench": { "maxid1": 7 } });
        row.configuration[0].1 = "4096".to_owned();
    }
    folder(dir.path(), "before", &rows(&ALL[..1], 1, 1));
    folder(dir.path(), "after", &later);
    let (text, _) = report(dir.path(), &["before", "after"], false);
    for part in [
        "version of shale was 1.2.3, is 1.3.0 (linkbench load on shale)",
        "the parameter linkbench.maxid1 was 200000, is 7 (linkbench load on shale)",
        "block_bytes of shale was 16384, is 4096 (linkbench load on shale)",
        "linkbench load on rocksdb (2 clients) is in the later run only",
        "linkbench drop on shale (1 clients) is in the first run only",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn sentences_are_silent_without_figures() {
    let bare = |engine: &str, rate: f64| Row {
        schema: shaledb_lab::run::row::SCHEMA,
        workload: "kv".to_owned(),
        step: "readrandom".to_owned(),
        engine: engine.to_owned(),
        rate,
        ..Row::default()
    };
    let rows = [bare("shale", 1000.0), bare("other", 10.0)];
    let steps = report::fold::fold(&rows);
    let sentences = report::explain::explain(&steps[0], "shale");
    assert!(sentences.is_empty(), "{sentences:?}");
}

#[test]
fn sentences_need_rates_that_lie_apart() {
    // The same medians and costs; but once the repeats of both engines overlap.
    let with = |rates: [f64; 3]| {
        let mut all = rows(&[SHALE, ROCKSDB], 3, 1);
        all.retain(|row| row.step == "l.i1");
        for row in all.iter_mut().filter(|row| row.engine == "rocksdb") {
            row.rate = rates[row.repeat as usize];
        }
        report::explain::explain(&report::fold::fold(&all)[0], "shale")
    };
    let speaks = |rates| with(rates).iter().any(|text| text.contains("of the rate of shale"));
    assert!(speaks([15_000.0, 16_000.0, 17_000.0]));
    assert!(!speaks([15_000.0, 16_000.0, 30_000.0]));
}

#[test]
fn a_step_that_is_one_operation_has_a_time() {
    let mut all = rows(&[SHALE, ROCKSDB], 3, 1);
    all.retain(|row| row.step == "drop");
    for row in all.iter_mut().filter(|row| row.engine == "rocksdb") {
        row.rate /= 40.0;
    }
    let sentences = report::explain::explain(&report::fold::fold(&all)[0], "shale");
    assert!(sentences[0].starts_with("rocksdb took 40"), "{sentences:?}");
    assert!(sentences[0].contains(" times as long as shale; beside that: CPU"), "{sentences:?}");
}

/// The paths of all fields; names that a run chooses are `*`, elements of lists `[]`.
fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    let free = ["latency_us", "extra", "cpu.engine_seconds"].contains(&at);
    match value {
        Value::Object(_) if at == "parameters" => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = if free { "*" } else { name };
                let path = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
                found.insert(path.clone());
                paths(value, &path, found);
            }
        }
        Value::Array(items) if at != "configuration" && at != "notes" => {
            items.iter().for_each(|item| paths(item, &format!("{at}[]"), found));
        }
        _ => {}
    }
}

#[test]
fn every_field_is_documented() {
    let mut fields = BTreeSet::new();
    for row in rows(&ALL, 1, 1) {
        paths(&serde_json::to_value(row).unwrap(), "", &mut fields);
    }
    assert!(fields.contains("writer.latency.p99") && fields.contains("intervals[].levels[].jobs"));
    let text = include_str!("../../../../docs/results.md");
    let part = text.split("## Fields of a row").nth(1).unwrap().split("\n## ").next().unwrap();
    let documented: BTreeSet<String> = part
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect();
    let missing: Vec<&String> = fields.difference(&documented).collect();
    assert!(missing.is_empty(), "docs/results.md does not document {missing:?}");
    let gone: Vec<&String> = documented.difference(&fields).collect();
    assert!(gone.is_empty(), "docs/results.md documents what there is not: {gone:?}");
    let version = format!("schema {}", shaledb_lab::run::row::SCHEMA);
    assert!(text.contains(&version), "docs/results.md is of another schema than {version}");
}
