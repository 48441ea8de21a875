//! `shale simulate`: what it says, for people and programs, and what it refuses.

mod common;

use common::{done, run};
use serde_json::Value;
use std::path::Path;

/// So little that it takes a second.
const LITTLE: [&str; 9] = [
    "simulate",
    "--size",
    "2GB",
    "--for",
    "3h",
    "--memory",
    "256MiB",
    "--device",
    "500MB/s,20kiops,1TBW",
];

fn figures(more: &[&str]) -> Value {
    let arguments: Vec<&str> = ["--json"].iter().chain(&LITTLE).chain(more).copied().collect();
    serde_json::from_str(&done(Path::new("."), &arguments)).unwrap()
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name} is a number: {}", value[name]))
}

#[test]
fn it_answers_in_words_with_a_table_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let mut arguments = LITTLE.to_vec();
    arguments.extend(["--write", "5MB/s", "--html", page.to_str().unwrap()]);
    let text = done(folder.path(), &arguments);
    for part in
        ["in the last level this needs", "The device's life is used up after", "falls behind at"]
    {
        assert!(text.replace('\n', " ").contains(part), "{part}: {text}");
    }
    assert!(text.lines().any(|line| line.starts_with("space ")), "{text}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<script type=\"application/json\" id=\"data\">"));
    let without = "http://www.w3.org/2000/svg";
    assert!(!page.replace(without, "").contains("src=\"http"), "the page needs nothing else");
}

#[test]
fn more_is_written_where_more_is_asked_and_a_skew_saves_some() {
    let slow = figures(&["--write", "2MB/s"]);
    let fast = figures(&["--write", "8MB/s"]);
    let skewed = figures(&["--write", "8MB/s", "--skew", "zipf:1.1"]);
    let written = |value: &Value| number(value, "device_written_bytes_per_second");
    assert!(written(&fast) > 3.0 * written(&slow), "{} {}", written(&fast), written(&slow));
    assert!(written(&skewed) < 0.8 * written(&fast));
    assert!(number(&slow, "device_life_days") > number(&fast, "device_life_days"));
    assert_eq!(slow["samples"].as_array().unwrap().len(), 60);
}

#[test]
fn a_load_that_is_too_much_falls_behind_and_says_what_gives() {
    let value = figures(&["--write", "400MB/s", "--cores", "2"]);
    let said = value["sentences"].to_string();
    assert!(said.contains("The load falls behind: 400 MB/s is wanted"), "{said}");
    assert!(number(&value, "slowed_share") > 0.5);
    let most = number(&value["most"], "bytes_per_second");
    assert!((5e6..400e6).contains(&most), "{most}");
}

#[test]
fn a_limit_on_space_is_kept() {
    let limit = 2e9;
    let more = ["--write", "5MB/s", "--inserts", "100%", "--space-limit", "2GB"];
    let value = figures(&more);
    assert!(number(&value, "space_peak_bytes") <= limit, "{}", value["space_peak_bytes"]);
    assert!(value["sentences"].to_string().contains("Puts are refused"), "{}", value["sentences"]);
}

#[test]
fn what_contradicts_itself_is_refused_by_name() {
    let cases: [(&[&str], &str); 9] = [
        (&["--size", "20 cats", "--write", "1MB/s"], "`20 cats` is not a size"),
        (&["--size", "1GB", "--write", "1MB"], "`1MB` is not a rate"),
        (&["--size", "1GB", "--write", "1MB/s", "--skew", "zipf:3"], "the exponent of the skew: 3"),
        (&["--size", "1GB", "--write", "1MB/s", "--inserts", "120%"], "the share of inserts: 1.2"),
        (&["--size", "1GB", "--write", "1MB/s", "--retention", "9d"], "retention: only rows"),
        (&["--size", "1GB", "--write", "1MB/s", "--ratio", "0.5"], "--ratio 0.5"),
        (&["--size", "1GB", "--write", "1MB/s", "--device", "20kiops"], "no rate of bytes"),
        (&["--size", "1GB", "--write", "1MB/s", "--memory", "1MB"], "`memory_bytes`"),
        (&["--size", "1GB", "--write", "1MB/s", "--codecs", "lz5"], "lz5"),
    ];
    for (arguments, part) in cases {
        let all: Vec<&str> = ["simulate"].iter().chain(arguments).copied().collect();
        let ran = run(Path::new("."), &all);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
    }
}
