//! `shale bench linkbench` as a user runs it: each step a process of its own on the same store.

use std::process::{Command, Stdio};

#[test]
fn a_small_graph_is_loaded_queried_and_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_shale"))
        .current_dir(dir.path())
        .args(["bench", "linkbench", "--engines", "shale,null", "--memory", "64M"])
        .args(["--memtable", "1M", "--maxid1", "2k", "--loops", "2", "--requests", "3k"])
        .args(["--seconds", "600", "--range-limit", "100", "--run", "run", "--db", "db"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), output.stderr.escape_ascii());
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("load") && out.contains("q2") && out.contains("drop"), "{out}");
    assert!(out.contains("Ratios: shale = 1") && out.contains("run/report.html"), "{out}");
    assert_eq!(out.contains("built for debugging"), cfg!(debug_assertions), "{out}");
    let page = std::fs::read_to_string(dir.path().join("run/report.html")).unwrap();
    assert!(page.contains("<title>Shale lab: run</title>") && page.contains("getlinklist"));

    let text = std::fs::read_to_string(dir.path().join("run/rows.jsonl")).unwrap();
    let rows: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |engine: &str, step: &str| {
        let row = rows.iter().find(|row| row["engine"] == engine && row["step"] == step);
        row.unwrap_or_else(|| panic!("no {step} of {engine}: {text}"))
    };
    assert_eq!(rows.len(), 8);
    for engine in ["shale", "null"] {
        let load = of(engine, "load");
        assert_eq!(load["extra"]["nodes"], 2000.0);
        let loaded: f64 = ["nodes", "links", "counts"]
            .map(|table| load["extra"][table].as_f64().unwrap())
            .iter()
            .sum();
        assert_eq!(load["ops"].as_f64().unwrap(), loaded);
        for step in ["q1", "q2"] {
            let query = of(engine, step);
            assert_eq!(
                (query["ops"].as_u64(), query["unit"].as_str()),
                (Some(3000), Some("transaction"))
            );
            assert_eq!(query["latency_us"].as_object().unwrap().len(), 10);
            assert_eq!(query["parameters"]["linkbench"]["maxid1"], 2000);
        }
        assert!(of(engine, "drop")["extra"]["drop_seconds"].as_f64().unwrap() >= 0.0);
    }
    let live = |engine, step| of(engine, step)["live_bytes"].as_u64().unwrap();
    assert!(live("shale", "load") > 1_000_000 && live("shale", "load") == live("null", "load"));
    assert!(live("shale", "q2") > live("shale", "load") && live("shale", "drop") == 0);
    let load = of("shale", "load");
    let space_amp = load["size_bytes"].as_f64().unwrap() / live("shale", "load") as f64;
    assert!((load["counted"]["space_amp"].as_f64().unwrap() - space_amp).abs() < 1e-9);
    assert!(!dir.path().join("db").exists(), "it was made for the run");
    // Engines are given the same rows.
    assert_eq!(of("shale", "load")["ops"], of("null", "load")["ops"]);
    let found = of("shale", "q1")["found"].as_u64().unwrap();
    assert!((1500..3000).contains(&found), "{found}");
}
