//! The bound on memory, as the system sees it: resident memory of a process with `memory_bytes` set
//! is within a tenth and 32 MB of it.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::process::{Command, Stdio};

const MEMORY: u64 = 40 << 20;
const RESIDENT_MAX: u64 = MEMORY + MEMORY / 10 + (32 << 20);

/// Runs a workload, each step of which is a process of its own. Each must stay within the bound,
/// and one of them must have used what it was given.
fn stays_within_the_bound(workload: &str) {
    let dir = tempfile::tempdir().unwrap();
    let common = "--engines shale --memory 40M --memtable 2560K --background-threads 2 --run run \
                  --db db --json-to rows";
    let args = workload.split_whitespace().chain(common.split_whitespace());
    let mut command = Command::new(env!("CARGO_BIN_EXE_shale"));
    command.current_dir(dir.path()).arg("bench").args(args).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = std::fs::read_to_string(dir.path().join("rows")).unwrap();
    let mut most = 0;
    for line in rows.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let peak = row["rss_peak_bytes"].as_u64().unwrap();
        let step = &row["step"];
        assert!(peak <= RESIDENT_MAX, "{step}: {} MB of {} MB", peak >> 20, RESIDENT_MAX >> 20);
        most = most.max(peak);
    }
    assert!(most > MEMORY / 2, "{} MB is too little to tell anything", most >> 20);
}

#[test]
fn fills_overwrites_and_reads_stay_within_the_bound() {
    stays_within_the_bound(
        "kv --num 600k --benchmarks fillrandom,overwrite,readrandom --duration 4 --codecs lz4",
    );
}

#[test]
fn linkbench_stays_within_the_bound() {
    stays_within_the_bound("linkbench --maxid1 60k --seconds 4 --loops 1 --clients 4 --warm-up 0");
}
