//! `shale bench` as a whole: processes that are stopped, killed and resumed.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn shale(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shale"));
    command.current_dir(dir).args(args).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A run of which the second step goes on for ever.
fn start(dir: &Path) -> Child {
    let args = [
        "bench",
        "kv",
        "--engines",
        "shale",
        "--memory",
        "64M",
        "--memtable",
        "1M",
        "--num",
        "2k",
        "--run",
        "run",
        "--db",
        "db",
        "--keep",
        "--benchmarks",
        "fillseq,readrandom,wait_idle",
        "--ops",
        "1000G",
        "--duration",
        "1000000",
    ];
    let mut child = shale(dir, &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until(|| {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        rows(dir).len() == 1 && driver(&child).is_some()
    });
    child
}

fn rows(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join("run/rows.jsonl")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The driver that a campaign started.
fn driver(campaign: &Child) -> Option<u32> {
    let path = format!("/proc/{0}/task/{0}/children", campaign.id());
    std::fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
}

fn wait_until(mut done: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited for two minutes in vain");
}

fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Whoever inherited it may not have waited for it yet: then it is a zombie.
    stat.is_empty() || stat.contains(") Z ")
}

/// Makes the plan's second step short, so that it can be done at last.
fn shorten(dir: &Path) {
    let file = dir.join("run/plan.json");
    let plan = std::fs::read_to_string(&file).unwrap();
    let short = plan.replace("\"ops\": 1000000000000", "\"ops\": 500");
    assert_ne!(short, plan);
    std::fs::write(file, short).unwrap();
}

fn resumed(dir: &Path) -> Output {
    shorten(dir);
    shale(dir, &["bench", "resume", "run"]).output().unwrap()
}

fn assert_complete(dir: &Path, output: &Output) {
    assert!(output.status.success(), "{}", text(&output.stderr));
    let steps: Vec<String> = rows(dir)
        .iter()
        .map(|row| {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            row["step"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(steps, ["fillseq", "readrandom", "wait_idle"]);
}

#[test]
fn a_campaign_that_is_killed_takes_its_driver_along_and_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let mut campaign = start(dir.path());
    let driver = driver(&campaign).unwrap();
    campaign.kill().unwrap();
    campaign.wait().unwrap();
    wait_until(|| is_gone(driver));
    let output = resumed(dir.path());
    assert_complete(dir.path(), &output);
    // The step that was killed left the store as nobody knows: it is filled again.
    assert!(text(&output.stdout).contains("again"), "{}", text(&output.stdout));
}

#[test]
fn a_driver_that_is_killed_is_a_failed_step() {
    let dir = tempfile::tempdir().unwrap();
    let campaign = start(dir.path());
    let driver = driver(&campaign).unwrap();
    let kill = Command::new("kill").args(["-9", &driver.to_string()]).status().unwrap();
    assert!(kill.success());
    let output = campaign.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(9));
    let said = text(&output.stderr);
    assert!(said.contains("readrandom of shale failed: ended by signal 9"), "{said}");
    assert!(said.contains("shale bench resume run"), "{said}");
    assert_complete(dir.path(), &resumed(dir.path()));
}

#[test]
fn ctrl_c_keeps_what_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let campaign = start(dir.path());
    let driver = driver(&campaign).unwrap();
    let id = campaign.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = campaign.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(text(&output.stderr).contains("To continue: shale bench resume run"));
    assert!(is_gone(driver) && rows(dir.path()).len() == 1);
    assert_complete(dir.path(), &resumed(dir.path()));
}

#[test]
fn the_engine_that_does_nothing_shows_the_client() {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "--json",
        "bench",
        "kv",
        "--engines",
        "null,shale",
        "--num",
        "2k",
        "--memory",
        "64M",
        "--memtable",
        "1M",
        "--benchmarks",
        "fillseq,readrandom",
        "--repeats",
        "2",
        "--run",
        "run",
    ];
    let output = shale(dir.path(), &args).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    let rows: Vec<serde_json::Value> =
        shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 8, "{shown}");
    assert_eq!((&rows[0]["engine"], &rows[0]["step"]), (&"null".into(), &"fillseq".into()));
    assert!(rows[1]["configuration"].as_array().is_some_and(|settings| !settings.is_empty()));
    assert!(rows.iter().all(|row| row["cpu"]["client_us_per_op"].as_f64() > Some(0.0)));
}

#[test]
fn wrong_plans_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let said = |code: i32, args: &[&str]| {
        let args: Vec<&str> = ["bench"].iter().chain(args).copied().collect();
        let output = shale(dir.path(), &args).env("SHALE_PEERS", "/none").output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        said
    };
    let new = ["--run", "run", "--db", "db"];
    let kv = |code, flags: &[&str]| said(code, &[&["kv"], flags, &new].concat());
    let missing = kv(9, &["--engines", "rocksdb"]);
    assert!(missing.contains("cargo xtask peers rocksdb"), "{missing}");
    assert!(kv(2, &["--engines", "oracle"]).contains("there is no engine"));
    assert!(kv(8, &["--num", "1000000G"]).contains("--ignore-space"));
    assert!(kv(2, &["--base", "rocksdb"]).contains("--base: `rocksdb` is not measured"));
    assert!(kv(2, &["--memory", "64M", "--memtable", "64M"]).contains("--memtable"));
    assert!(kv(2, &["--duration", "1e20"]).contains("--duration"));
    let nothing = said(6, &["resume", "elsewhere"]);
    assert!(nothing.contains("not the folder of a run"), "{nothing}");
    said(6, &["report", "elsewhere"]);
    assert!(!dir.path().join("run").exists() && !dir.path().join("db").exists());
}

#[test]
fn choices_in_a_cell_are_measured_and_set_beside_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let flags = "bench compress --matrix --data json --write-rates 2 --short storage --read-shares \
                 0.5 --choices none;zstd:3 --scale 0.01 --seconds 1 --run run";
    let args: Vec<&str> = flags.split_whitespace().collect();
    let output = shale(dir.path(), &args).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    let cell = "json, 2 MB/s, storage short, 50 % reads";
    let line = shown.lines().find(|line| line.starts_with(cell));
    let words: Vec<&str> = line.unwrap_or_else(|| panic!("{shown}")).split_whitespace().collect();
    assert!(words.contains(&"zstd:3") && words.ends_with(&["-", "-"]), "{shown}");
    let rows: Vec<serde_json::Value> =
        rows(dir.path()).iter().map(|row| serde_json::from_str(row).unwrap()).collect();
    assert_eq!(rows.len(), 4, "a fill and a step of each choice");
    for row in &rows {
        assert_eq!(row["parameters"]["setup"]["device_bound"], 60 << 20);
        assert!(row["extra"]["idle_size_bytes"].as_f64() > Some(0.0), "{row}");
    }
    assert!(rows[2]["latency_us"]["get"]["count"].as_u64() > Some(100), "{}", rows[2]);
    let page = std::fs::read_to_string(dir.path().join("run/report.html")).unwrap();
    assert!(page.contains("\"cells\":{") && page.contains(cell));
}
