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
    assert!(page.contains("Waiting to be written"));
    for other in ["src=\"", "<link rel=\"stylesheet", "@import", "url(http"] {
        assert!(!page.contains(other), "the page needs nothing else: {other}");
    }
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
    // For the rest of the time writers and merges share two cores, and nobody waits for his turn.
    assert!(number(&value, "slowed_share") > 0.05);
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
    let cases: [(&[&str], &str); 12] = [
        (&["--size", "20 cats", "--write", "1MB/s"], "`20 cats` is not a size"),
        (&["--size", "1GB", "--write", "1MB"], "`1MB` is not a rate"),
        (
            &["--size", "1GB", "--write", "1MB/s", "--skew", "zipf:3"],
            "`3` is not an exponent from 0 to 2",
        ),
        (&["--size", "1GB", "--write", "1MB/s", "--inserts", "120%"], "the share of inserts: 1.2"),
        (&["--size", "1GB", "--write", "1MB/s", "--retention", "9d"], "retention: only rows"),
        (&["--size", "1GB", "--write", "1MB/s", "--ratio", "0.5"], "--ratio 0.5"),
        (&["--size", "1GB", "--write", "1MB/s", "--device", "20kiops"], "no rate of bytes"),
        (&["--size", "1GB", "--write", "1MB/s", "--memory", "1MB"], "`memory_bytes`"),
        (&["--size", "1GB", "--write", "1MB/s", "--codecs", "lz5"], "lz5"),
        (&["--size", "0", "--write", "1MB/s", "--skew", "zipf:0.9"], "no rows are there"),
        (&["--size", "1TB", "--write", "1MB/s", "--space-limit", "100GB"], "the limit on space"),
        (&["--size", "1GB", "--write", "1MB/s", "--ratio", "inf"], "--ratio inf"),
    ];
    for (arguments, part) in cases {
        let all: Vec<&str> = ["simulate"].iter().chain(arguments).copied().collect();
        let ran = run(Path::new("."), &all);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
    }
}

/// Hours without a write, a skew over few rows, rows that all go, more reads than there are: each
/// ends soon and says so.
#[test]
fn odd_loads_come_to_an_end() {
    let night = figures(&["--write", "0-1:20MB/s"]);
    assert!(number(&night["totals"], "written") > 0.0);
    let ask = ["--json", "simulate", "--size", "100GB", "--write", "18-24:5MB/s", "--for", "90d"];
    let days: Value = serde_json::from_str(&done(Path::new("."), &ask)).unwrap();
    assert!(days["sentences"].to_string().contains("was run"), "{}", days["sentences"]);
    let gone = figures(&["--write", "10MB/s", "--deletes", "60%", "--skew", "zipf:0.9"]);
    assert!(number(&gone, "end_bytes") < 1e9, "{}", gone["end_bytes"]);
    let reads = figures(&["--write", "1MB/s", "--reads", "5M"]);
    assert!(reads["sentences"].to_string().contains("Of the reads only"), "{}", reads["sentences"]);
    let (cores, device) = (number(&reads, "cores"), &reads["samples"][59]["device_share"]);
    assert!(cores <= 8.8 && device.as_f64().unwrap() <= 1.1, "{cores} {device}");
}

/// Where nothing is written, no byte of it is written any number of times.
#[test]
fn nothing_written_has_no_amplification() {
    let value = figures(&["--write", "0MB/s"]);
    assert!(value["write_amp"].is_null(), "{}", value["write_amp"]);
    assert!(!value["sentences"].to_string().contains("Each byte"), "{}", value["sentences"]);
}

/// A load of new rows that cannot be kept makes no more of them than were written.
#[test]
fn what_was_not_written_is_not_there() {
    let ask = [
        "--json",
        "simulate",
        "--size",
        "1TB",
        "--write",
        "400MB/s",
        "--device",
        "100MB/s",
        "--inserts",
        "100%",
        "--for",
        "1y",
    ];
    let value: Value = serde_json::from_str(&done(Path::new("."), &ask)).unwrap();
    let most = 1e12 + 100e6 * 365.0 * 86_400.0;
    assert!(number(&value, "end_bytes") < most, "{}", value["end_bytes"]);
    assert!(value["sentences"].to_string().contains("The load falls behind: 400 MB/s is wanted"));
}

#[test]
fn a_database_that_is_there_is_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..20_000u64)
        .map(|row| {
            let noise = row.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("{noise:020}\tvalue {row} of no special note, {noise:x}{noise:x}\n")
        })
        .collect();
    std::fs::write(folder.path().join("rows.tsv"), &rows).unwrap();
    done(folder.path(), &["import", "there.db", "rows.tsv", "--format", "kv"]);
    done(folder.path(), &["compact", "there.db"]);
    let ask = ["--json", "simulate", "--from", "there.db", "--write", "10kB/s", "--for", "1h"];
    let value: Value = serde_json::from_str(&done(folder.path(), &ask)).unwrap();
    let (key, row) = (number(&value, "key_bytes"), rows.len() as f64 / 20_000.0 - 2.0);
    assert!((key - 20.0).abs() < 0.1, "{key}");
    assert!((number(&value, "value_bytes") + key - row).abs() < 1.0, "{row}: {value}");
    let said = value["sentences"].to_string();
    assert!(said.contains("It began with the tables of the tree `default`"), "{said}");
    let first = &value["samples"][0]["levels"][6];
    let tables: u64 = std::fs::read_dir(folder.path().join("there.db"))
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|name| name == "table"))
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert_eq!(first.as_f64(), Some(tables as f64), "nothing was merged so soon");
    let compacted = done(folder.path(), &[&ask[..], &["--compacted"]].concat());
    assert!(!compacted.contains("It began with the tables"), "{compacted}");

    // Rows that are in the log only.
    done(folder.path(), &["put", "new.db", "key", "value"]);
    let new = ["simulate", "--from", "new.db", "--write", "1kB/s", "--for", "1h"];
    let ran = run(folder.path(), &new);
    assert!(ran.code == Some(2) && ran.err.contains("shale compact new.db"), "{}", ran.err);
    done(folder.path(), &["compact", "new.db"]);
    done(folder.path(), &new);

    let no_tree =
        run(folder.path(), &["simulate", "--from", "there.db", "--tree", "x", "--write", "1kB/s"]);
    assert!(no_tree.code == Some(6) && no_tree.err.contains("`x`"), "{}", no_tree.err);
    let nothing = run(folder.path(), &["simulate", "--from", "nowhere", "--write", "1kB/s"]);
    assert!(nothing.code == Some(6) && nothing.err.contains("nowhere"), "{}", nothing.err);
}

/// What a codec would save is told by the rows, whatever codec the tables have.
#[test]
fn a_database_without_compression_is_not_incompressible() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..60_000u64)
        .map(|row| {
            let noise = row.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("{noise:020}\tvalue {row} of no special note at all, {noise:x}\n")
        })
        .collect();
    std::fs::write(folder.path().join("rows.tsv"), &rows).unwrap();
    let foreseen: Vec<f64> = ["none", "lz4", "zstd:3"]
        .into_iter()
        .map(|codec| {
            let import = ["import", codec, "rows.tsv", "--format", "kv", "--codecs", codec];
            done(folder.path(), &[&import[..], &["--no-dictionary"]].concat());
            done(folder.path(), &["compact", codec]);
            // Long enough that all of it is written anew.
            let ask = "--json simulate --write 1MB/s --for 1h --codecs zstd:3 --from";
            let ask: Vec<&str> = ask.split(' ').chain([codec]).collect();
            let value: Value = serde_json::from_str(&done(folder.path(), &ask)).unwrap();
            number(&value, "space_bytes")
        })
        .collect();
    let like = |space: f64| (0.8..1.25).contains(&(space / foreseen[2]));
    assert!(like(foreseen[0]) && like(foreseen[1]), "{foreseen:?}");
}

/// The rows of a short run of Shale.
fn lab_run(folder: &Path) -> Vec<Value> {
    let flags = "--json bench kv --engines shale --num 60k --ops 90k --memory 64M --memtable 1M \
                 --codecs zstd:3 --no-dictionary --data json --run run --db db --benchmarks \
                 fillrandom,overwrite,readrandom";
    let args: Vec<&str> = flags.split_whitespace().collect();
    let printed = done(folder, &args);
    std::fs::write(folder.join("report.json"), &printed).unwrap();
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// All that is taken is beside what the row says, and the data's compression beside the files.
#[test]
fn a_run_of_the_lab_is_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let rows = lab_run(folder.path());
    let row = &rows[1];
    assert_eq!(row["step"], "overwrite");
    let ask_of = |from: &str, more: &[&str]| -> Value {
        let ask = ["--json", "simulate", "--from", from];
        let ask: Vec<&str> = ask.iter().chain(more).copied().collect();
        serde_json::from_str(&done(folder.path(), &ask)).unwrap()
    };
    let all = ask_of("report.json", &["--for", "1h"]);
    let close = |told: f64, read: f64, what: &str| {
        assert!((told / read - 1.0).abs() < 0.01, "{what}: {told}, in the row {read}");
    };
    let counted = |name: &str| number(&row["counted"], name);
    close(number(&all, "start_bytes"), number(row, "live_bytes"), "live bytes");
    let rate = all["load"]["bytes_per_second"][0].as_f64().unwrap();
    close(rate, counted("user_bytes") / number(row, "seconds"), "the rate");
    let pair = number(&all, "key_bytes") + number(&all, "value_bytes");
    close(pair, counted("user_bytes") / number(row, "ops"), "bytes of a row");
    assert_eq!(number(&all, "key_bytes"), 20.0);
    let said = all["sentences"].to_string();
    assert!(said.contains("as fast as it went"), "{said}");
    for lacking in ["cores", "RAM", "device"] {
        let named = all["from"]["lacking"].as_array().unwrap();
        assert!(named.iter().any(|one| one["what"] == lacking), "{lacking}: {}", all["from"]);
    }

    // Milliseconds after the start what is there is the row's levels: no merge has ended yet.
    let rest = ask_of("report.json", &["--write", "1kB/s", "--for", "0.0001h"]);
    let levels: f64 = row["counted"]["levels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|level| number(level, "bytes"))
        .sum();
    let first: f64 = rest["samples"][0]["levels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bytes| bytes.as_f64().unwrap())
        .sum();
    assert!(rest["sentences"].to_string().contains("It began with the levels of step `overwrite`"));
    close(first, levels, "levels");

    // A folder is as good, and another step another load.
    let step = ["--step", "readrandom", "--reads", "7", "--for", "1h"];
    let read = ask_of("run", &step);
    assert_eq!(read["load"]["reads_per_second"], 7.0);
    assert_eq!(read["load"]["bytes_per_second"][0], 0.0);
}

#[test]
fn what_is_no_report_of_shale_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let row = |engine: &str, step: &str, setting: &str| {
        format!(
            "{{\"schema\":2,\"workload\":\"insert\",\"engine\":\"{engine}\",\"step\":\"{step}\",\
             \"setting\":\"{setting}\",\"seconds\":10.0,\"ops\":9,\
             \"counted\":{{\"user_bytes\":5000000}}}}\n"
        )
    };
    put("text.json", "what is this\n");
    put("peer.json", &row("rocksdb", "load", ""));
    put("two.json", &(row("shale", "load", "lz4") + &row("shale", "load", "none")));
    put("bare.json", &row("shale", "load", ""));
    put("older.json", &row("shale", "load", "").replace("\"schema\":2", "\"schema\":1"));
    let folded = "{\"schema\":2,\"kind\":\"folded\",\"workload\":\"kv\",\"engine\":\"shale\"}\n";
    put("folded.json", folded);
    put("empty.json", "");
    let cases: [(&[&str], i32, &str); 11] = [
        (&["text.json"], 7, "text.json is no report of a run. --from takes a database"),
        (&["peer.json"], 7, "has no row of Shale, only of `rocksdb`"),
        (&["two.json"], 2, "several settings: `lz4`, `none`. Name one: --setting"),
        (&["two.json", "--setting", "zstd"], 2, "--setting zstd: two.json has no row"),
        (&["two.json", "--setting", "lz4", "--step", "x"], 2, "Its steps are `load`"),
        (&["bare.json"], 2, "--size is missing: the run does not have `live_bytes`"),
        (&["older.json"], 7, "An older version wrote it"),
        (&["folded.json"], 7, "this is a line of `shale bench report --json` (folded)"),
        (&["empty.json"], 7, "has no rows"),
        (&["bare.json", "--tree", "t"], 2, "--tree is of a database, and bare.json is a run"),
        (&[".", "--write", "1kB/s", "--step", "load"], 2, "--step and --setting are of a run"),
    ];
    for (arguments, code, part) in cases {
        let all: Vec<&str> = ["simulate", "--from"].iter().chain(arguments).copied().collect();
        let ran = run(folder.path(), &all);
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.err);
    }
    // What is missing is named, with what is taken and the flag.
    let ask = ["simulate", "--from", "bare.json", "--size", "1GB", "--for", "1h"];
    let text = done(folder.path(), &ask).replace('\n', " ");
    for part in ["500 kB/s written", "bytes of a key (20; --key)", "skew (uniform; --skew)"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
