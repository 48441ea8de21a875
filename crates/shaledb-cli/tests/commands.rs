//! The commands, as a user runs them: the real binary on real folders.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn shale(dir: &Path, arguments: &[&str]) -> Output {
    shale_with(dir, arguments, b"")
}

fn shale_with(dir: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_shale"))
        .current_dir(dir)
        .args(arguments)
        .env_remove("SHALE_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input closes the pipe early.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command that must succeed and gives what it printed.
fn done(dir: &Path, arguments: &[&str]) -> String {
    let output = shale(dir, arguments);
    assert_eq!(code(&output), 0, "{arguments:?}: {}", err(&output));
    out(&output).to_owned()
}

#[test]
fn put_get_scan_delete() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (key, value) in [("b", "two"), ("a", "one"), ("c/1", "x"), ("c/2", "y"), ("d", "")] {
        done(dir, &["put", "db", key, value]);
    }
    assert_eq!(done(dir, &["get", "db", "a", "b"]), "one\ntwo\n");
    assert_eq!(done(dir, &["scan", "db"]), "a\tone\nb\ttwo\nc/1\tx\nc/2\ty\nd\t\n");
    assert_eq!(done(dir, &["scan", "db", "--prefix", "c/", "--reverse"]), "c/2\ty\nc/1\tx\n");
    assert_eq!(done(dir, &["scan", "db", "--from", "b", "--to", "c/2", "--keys-only"]), "b\nc/1\n");
    assert_eq!(done(dir, &["scan", "db", "--limit", "2", "--count"]), "2\n");
    done(dir, &["delete", "db", "a"]);
    // They are durable when the command ends, and no flag says otherwise.
    for command in [&["put", "db", "b", "two"][..], &["delete", "db", "b"]] {
        assert_eq!(code(&shale(dir, &[command, &["--no-sync"]].concat())), 2);
    }
    done(dir, &["delete", "db", "--prefix", "c/"]);
    assert_eq!(done(dir, &["scan", "db", "--keys-only"]), "b\nd\n");
    done(dir, &["delete", "db", "--from", "b", "--to", "c"]);
    assert_eq!(done(dir, &["scan", "db", "--keys-only"]), "d\n");
    let missing = shale(dir, &["get", "db", "a"]);
    assert_eq!(code(&missing), 1);
    let missing = shale(dir, &["--json", "get", "db", "a", "d"]);
    assert_eq!(code(&missing), 1);
    assert_eq!(
        out(&missing),
        "{\"found\":false,\"key\":\"a\"}\n{\"found\":true,\"key\":\"d\",\"value\":\"\"}\n"
    );
}

#[test]
fn any_bytes_are_keys_and_values() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, &["put", "db", "\\x00\\xff\\\\", "tab\\tnewline\\n"]);
    assert_eq!(done(dir, &["scan", "db"]), "\\x00\\xff\\\\\ttab\\tnewline\\n\n");
    assert_eq!(done(dir, &["scan", "db", "--hex", "--keys-only"]), "00ff5c\n");
    assert_eq!(done(dir, &["get", "db", "--hex", "00ff5c"]), "746162096e65776c696e650a\n");
    done(dir, &["put", "db", "--raw", "a\\b", "as it is\\"]);
    assert_eq!(done(dir, &["get", "db", "--raw", "a\\b"]), "as it is\\");
    let json = done(dir, &["scan", "db", "--json", "--limit", "1"]);
    assert_eq!(json, "{\"key_hex\":\"00ff5c\",\"value\":\"tab\\tnewline\\n\"}\n");
    let wrong = shale(dir, &["get", "db", "a\\b"]);
    assert_eq!(code(&wrong), 2);
    assert!(err(&wrong).contains("--raw"), "{}", err(&wrong));
}

#[test]
fn what_scan_prints_import_reads() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, &["put", "db", "\\x80\\t", "\\n\\xff"]);
    done(dir, &["put", "db", "plain", "text"]);
    let lines = done(dir, &["scan", "db"]);
    let import = ["import", "db2", "-", "--format", "kv", "--escaped"];
    assert_eq!(code(&shale_with(dir, &import, lines.as_bytes())), 0);
    assert_eq!(done(dir, &["scan", "db2"]), lines);
    let lines = done(dir, &["scan", "db", "--json"]);
    let import = ["import", "db3", "-", "--format", "json", "--sorted"];
    let output = shale_with(dir, &import, lines.as_bytes());
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert_eq!(done(dir, &["scan", "db3", "--json"]), lines);
}

#[test]
fn files_of_each_format() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("p.csv"), "id,name\r\n1,Ann\r\n2,\"B,\nb\"\r\n").unwrap();
    std::fs::write(dir.join("p.tsv"), "id\tname\n1\tAnn \"x\"\n").unwrap();
    std::fs::write(dir.join("p.jsonl"), "{\"u\":{\"id\":7},\"t\":\"x\"}\n\n").unwrap();
    std::fs::write(dir.join("p.txt"), "k\tv\tw\n").unwrap();
    done(dir, &["import", "db", "p.csv", "--key", "id", "--tree", "csv"]);
    assert_eq!(
        done(dir, &["scan", "db", "--tree", "csv"]),
        "1\t{\"id\":\"1\",\"name\":\"Ann\"}\n2\t{\"id\":\"2\",\"name\":\"B,\\\\nb\"}\n"
    );
    done(dir, &["import", "db", "p.tsv", "--key", "name,id", "--value", "id", "--tree", "tsv"]);
    assert_eq!(done(dir, &["scan", "db", "--tree", "tsv"]), "Ann \"x\"/1\t1\n");
    done(dir, &["import", "db", "p.jsonl", "--key", "u.id,t", "--tree", "json"]);
    assert_eq!(
        done(dir, &["scan", "db", "--tree", "json"]),
        "7/x\t{\"u\":{\"id\":7},\"t\":\"x\"}\n"
    );
    let report = done(dir, &["--json", "import", "db", "p.txt"]);
    assert!(report.starts_with("{\"records\":1,\"bytes\":4,\"bad_lines\":0,"), "{report}");
    assert_eq!(done(dir, &["get", "db", "k"]), "v\\tw\n");
    assert_eq!(done(dir, &["trees", "db"]), "csv\ndefault\njson\ntsv\n");
    done(dir, &["trees", "db", "--drop", "csv"]);
    assert_eq!(code(&shale(dir, &["scan", "db", "--tree", "csv"])), 6);
}

#[test]
fn bad_lines_stop_or_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("p.csv"), "id,name\n1,Ann\n2\n3,Cy\n").unwrap();
    let stopped = shale(dir, &["import", "db", "p.csv", "--key", "id"]);
    assert_eq!(code(&stopped), 7);
    let text = err(&stopped);
    assert!(text.contains("line 3") && text.contains("1 records before it"), "{text}");
    assert_eq!(done(dir, &["scan", "db", "--keys-only"]), "1\n");
    let counted = shale(dir, &["import", "db", "p.csv", "--key", "id", "--skip-bad"]);
    assert_eq!(code(&counted), 0);
    assert!(out(&counted).contains("1 bad line skipped"), "{}", out(&counted));
    assert_eq!(done(dir, &["scan", "db", "--keys-only"]), "1\n3\n");
    let unsorted =
        shale_with(dir, &["import", "db", "-", "--format", "kv", "--sorted"], b"b\t1\na\t2\n");
    assert_eq!(code(&unsorted), 7);
    assert!(err(&unsorted).contains("line 2"), "{}", err(&unsorted));
    assert_eq!(done(dir, &["scan", "db", "--keys-only"]), "1\n3\n");
    let column = shale(dir, &["import", "db", "p.csv", "--key", "nome"]);
    assert_eq!(code(&column), 2);
    assert!(err(&column).contains("the columns are `id`, `name`"), "{}", err(&column));
}

#[test]
fn exit_codes_say_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert_eq!(code(&shale(dir, &["scan", "nothing"])), 6);
    assert!(!dir.join("nothing").exists(), "reading makes no database");
    assert_eq!(code(&shale(dir, &["scan"])), 2);
    assert_eq!(code(&shale(dir, &["import", "db", "nofile.csv", "--key", "id"])), 3);
    assert!(!dir.join("db").exists(), "a wrong input makes no database");
    done(dir, &["put", "db", "k", "v"]);
    let json = shale(dir, &["--json", "scan", "db", "--tree", "x"]);
    assert_eq!(code(&json), 6);
    assert!(err(&json).starts_with("{\"code\":6,\"error\":"), "{}", err(&json));

    let db = shaledb::Db::open(dir.join("db"), shaledb::Config::default()).unwrap();
    let locked = shale(dir, &["put", "db", "k", "w"]);
    assert_eq!(code(&locked), 5, "{}", err(&locked));
    db.close().unwrap();
    assert_eq!(done(dir, &["get", "db", "k"]), "v\n");
}

#[test]
fn a_wrong_command_line_is_json_too() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let wrong: [(&[&str], &str); 5] = [
        (&["--json", "scan"], "<DB>"),
        (&["scan", "db", "--json", "--limits", "3"], "--limits"),
        (&["--json", "frobnicate"], "frobnicate"),
        (&["import", "--json", "db", "f", "--format", "xml"], "xml"),
        (&["--json"], "requires a subcommand"),
    ];
    for (arguments, what) in wrong {
        let ran = shale(dir, arguments);
        assert_eq!((code(&ran), out(&ran)), (2, ""), "{arguments:?}");
        let text = err(&ran);
        assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
        let error: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(error["code"], 2);
        let error = error["error"].as_str().unwrap();
        assert!(error.contains(what) && !error.contains("Usage:"), "{arguments:?}: {error}");
    }
    assert!(err(&shale(dir, &["scan"])).contains("Usage:"), "people get the usage");
    assert!(done(dir, &["--json", "--help"]).contains("Exit codes"));
    // Behind `--` it is no flag.
    assert!(err(&shale(dir, &["get", "db", "--what", "--", "--json"])).contains("Usage:"));
}

#[test]
fn nothing_to_measure_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (kind, flag) in [
        ("kv", "--num"),
        ("kv", "--ops"),
        ("kv", "--key-bytes"),
        ("linkbench", "--maxid1"),
        ("linkbench", "--requests"),
        ("insert", "--rows"),
        ("insert", "--inserts"),
        ("sysbench", "--rows"),
        ("tpcc", "--warehouses"),
    ] {
        let ran = shale(dir, &["bench", kind, flag, "0", "--run", "run"]);
        assert_eq!(code(&ran), 2, "{kind} {flag}: {}", err(&ran));
        assert!(err(&ran).contains(flag), "{kind} {flag}: {}", err(&ran));
    }
    assert!(!dir.join("run").exists());
}

#[test]
fn a_workload_of_servers_is_not_begun_on_another_engine() {
    let dir = tempfile::tempdir().unwrap();
    for engines in ["shale", "innodb,rocksdb"] {
        let ran = shale(dir.path(), &["bench", "tpcc", "--engines", engines, "--run", "run"]);
        assert_eq!(code(&ran), 2, "{}", err(&ran));
        let name = engines.rsplit(',').next().unwrap();
        assert!(err(&ran).contains("--engines") && err(&ran).contains(name), "{}", err(&ran));
    }
    assert!(!dir.path().join("run").exists());
}

#[test]
fn a_folder_of_other_files_becomes_no_database() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::create_dir(dir.join("home")).unwrap();
    std::fs::write(dir.join("home/thesis.txt"), "years of work").unwrap();
    std::fs::write(dir.join("in.txt"), "a\tb\n").unwrap();
    let writes: [&[&str]; 2] = [&["put", "home", "k", "v"], &["import", "home", "in.txt"]];
    for arguments in writes {
        let ran = shale(dir, arguments);
        assert_eq!(code(&ran), 2, "{}", err(&ran));
        assert!(err(&ran).contains("thesis.txt"), "{}", err(&ran));
        assert_eq!(std::fs::read_dir(dir.join("home")).unwrap().count(), 1);
    }
    // An empty folder will do, and the root of a file system, and what a crash left of a start.
    std::fs::create_dir_all(dir.join("disk/lost+found")).unwrap();
    std::fs::write(dir.join("disk/LOCK"), "").unwrap();
    std::fs::write(dir.join("disk/CURRENT.tmp"), "").unwrap();
    done(dir, &["put", "disk", "k", "v"]);
    done(dir, &["put", "disk", "l", "v"]);
    assert_eq!(done(dir, &["get", "disk", "k"]), "v\n");
}

#[test]
fn large_values_pass_through_files() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let value: Vec<u8> =
        (0..5_000_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(dir.join("in"), &value).unwrap();
    done(dir, &["put", "db", "big", "--file", "in"]);
    done(dir, &["get", "db", "big", "--output", "out"]);
    assert!(std::fs::read(dir.join("out")).unwrap() == value);
    // On the standard output is the value and nothing else.
    for more in [&[][..], &["--json"]] {
        let printed = shale(dir, &[&["get", "db", "big", "--output", "-"], more].concat());
        assert!(code(&printed) == 0 && printed.stdout == value, "{more:?}: {}", err(&printed));
    }
    let told = done(dir, &["get", "db", "big", "--output", "out", "--json"]);
    assert_eq!(told, "{\"bytes\":5000000,\"output\":\"out\"}\n");
    assert!(done(dir, &["verify", "db"]).starts_with("ok"));
    let blob = std::fs::read_dir(dir.join("db"))
        .unwrap()
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().ends_with(".blob"))
        .unwrap();
    let shown = done(dir, &["inspect", blob.path().to_str().unwrap()]);
    assert!(shown.contains("5,000,000 bytes") && shown.contains("every byte checked"), "{shown}");
    // Damage is told from trouble with the output.
    let mut bytes = std::fs::read(blob.path()).unwrap();
    bytes[3_000_000] ^= 1;
    std::fs::write(blob.path(), bytes).unwrap();
    let damaged = shale(dir, &["get", "db", "big", "--output", "out"]);
    assert_eq!(code(&damaged), 4, "{}", err(&damaged));
    assert!(err(&damaged).contains(".blob is damaged at byte"), "{}", err(&damaged));
    assert!(std::fs::read(dir.join("out")).unwrap() == value, "what was there stays");
    assert!(!dir.join("out.partial").exists());
    let refused = shale(dir, &["get", "db", "big", "--output", "no/such/folder/out"]);
    assert_eq!(code(&refused), 3, "{}", err(&refused));
}

/// A database with tables in it, and the path of one of them.
fn with_tables(dir: &Path) -> std::path::PathBuf {
    let lines: String = (0..5000).map(|at| format!("key {at:06}\tvalue {at} {at}\n")).collect();
    let import = ["import", "db", "-", "--format", "kv", "--codecs", "lz4"];
    assert_eq!(code(&shale_with(dir, &import, lines.as_bytes())), 0);
    done(dir, &["compact", "db"]);
    let table = std::fs::read_dir(dir.join("db"))
        .unwrap()
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().ends_with(".table"));
    table.unwrap().path()
}

#[test]
fn files_are_inspected() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let table = with_tables(dir);
    let table = table.to_str().unwrap();
    let shown = done(dir, &["inspect", table, "--blocks"]);
    assert!(shown.contains("5,000 entries") && shown.contains("lz4"), "{shown}");
    let keys = done(dir, &["inspect", table, "--keys"]);
    assert_eq!(keys.lines().count(), 5000);
    assert!(keys.starts_with("key 000000\tput\t"), "{keys}");
    let json = done(dir, &["--json", "inspect", table]);
    assert!(json.contains("\"entries\":5000"), "{json}");
    let all = done(dir, &["inspect", "db"]);
    assert!(all.contains("MANIFEST-") && all.contains("default"), "{all}");
    done(dir, &["--json", "inspect", "db"]);
    done(dir, &["inspect", "db/CURRENT"]);
    for entry in std::fs::read_dir(dir.join("db")).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("MANIFEST") || name.ends_with(".wal") {
            let shown = done(dir, &["inspect", entry.path().to_str().unwrap()]);
            assert!(shown.contains("no damage"), "{name}: {shown}");
        }
    }
    assert_eq!(code(&shale(dir, &["inspect", "/etc/passwd"])), 2);
}

#[test]
fn damage_is_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let table = with_tables(dir);
    assert!(done(dir, &["verify", "db"]).starts_with("ok: 1 tables"));
    let mut content = std::fs::read(&table).unwrap();
    content[100] ^= 1;
    std::fs::write(&table, content).unwrap();
    let verify = shale(dir, &["verify", "db"]);
    assert_eq!(code(&verify), 4);
    let name = table.file_name().unwrap().to_str().unwrap();
    assert!(out(&verify).contains(name) && out(&verify).contains("byte 0"), "{}", out(&verify));
    // For programs, each damage with its place.
    let verify = shale(dir, &["--json", "verify", "db"]);
    let report: serde_json::Value = serde_json::from_str(out(&verify)).unwrap();
    let damage = &report["damage"][0];
    assert!(damage["file"].as_str().unwrap().ends_with(name), "{report}");
    assert_eq!((&damage["offset"], &damage["code"]), (&0.into(), &4.into()), "{report}");
    assert!(damage["what"].is_string() && damage["error"].is_string(), "{report}");
    let scan = shale(dir, &["--json", "scan", "db"]);
    let error: serde_json::Value = serde_json::from_str(&err(&scan)).unwrap();
    assert!(error["file"].as_str().unwrap().ends_with(name), "{error}");
    let scan = shale(dir, &["scan", "db"]);
    assert_eq!(code(&scan), 4, "{}", err(&scan));
    assert_eq!(code(&shale(dir, &["inspect", table.to_str().unwrap()])), 4);
}

#[test]
fn a_damaged_database_is_repaired_into_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let table = with_tables(dir);
    let clean = shale(dir, &["repair", "db", "clean"]);
    assert_eq!(code(&clean), 0, "{}", err(&clean));
    assert_eq!(done(dir, &["scan", "clean"]), done(dir, &["scan", "db"]));
    let mut content = std::fs::read(&table).unwrap();
    content[100] ^= 1;
    std::fs::write(&table, &content).unwrap();
    let repair = shale(dir, &["repair", "db", "new"]);
    assert_eq!(code(&repair), 4, "{}", err(&repair));
    let name = table.file_name().unwrap().to_str().unwrap();
    assert!(out(&repair).contains(name), "{}", out(&repair));
    assert!(std::fs::read(&table).unwrap() == content, "the damaged database is not changed");
    // One block of a few hundred rows is lost, and no other row.
    let rows: u64 = done(dir, &["scan", "new", "--count"]).trim().parse().unwrap();
    assert!((3000..5000).contains(&rows), "{rows}");
    assert_eq!(done(dir, &["get", "new", "key 004999"]), "value 4999 4999\n");
    assert!(done(dir, &["verify", "new"]).starts_with("ok"));
    assert_eq!(code(&shale(dir, &["repair", "db", "new"])), 2, "the folder is not empty");
    std::fs::create_dir(dir.join("empty")).unwrap();
    assert_eq!(code(&shale(dir, &["repair", "db", "empty"])), 4);
    assert_eq!(done(dir, &["get", "empty", "key 004999"]), "value 4999 4999\n");
    std::fs::create_dir(dir.join("far")).unwrap();
    std::os::unix::fs::symlink("far", dir.join("link")).unwrap();
    let refused = shale(dir, &["repair", "db", "link"]);
    assert_eq!(code(&refused), 2, "{}", err(&refused));
    assert!(err(&refused).contains("name one that does not exist"), "{}", err(&refused));
    let json = shale(dir, &["--json", "repair", "db", "new2"]);
    assert!(out(&json).contains("\"clean\":false"), "{}", out(&json));
}

#[test]
fn copies_and_statistics() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    with_tables(dir);
    done(dir, &["checkpoint", "db", "copy"]);
    done(dir, &["delete", "db", "--prefix", "key"]);
    assert_eq!(done(dir, &["scan", "db", "--count"]), "0\n");
    assert_eq!(done(dir, &["--json", "scan", "copy", "--count"]), "{\"count\":5000}\n");
    assert!(done(dir, &["stats", "copy"]).contains("level"));
    let stats = done(dir, &["--json", "stats", "copy"]);
    assert!(stats.starts_with('{') && stats.contains("\"trees\""), "{stats}");
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    for (group, name) in [("cpu", "get"), ("cpu", "compaction"), ("codec_cpu", "read_decompress")] {
        for field in ["seconds", "error_seconds", "us_per_call", "samples", "every"] {
            assert!(stats[group][name][field].is_number(), "{group} {name} {field}: {stats}");
        }
    }
    let again = shale(dir, &["checkpoint", "db", "copy"]);
    assert_ne!(code(&again), 0);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    with_tables(dir);
    let mut child = Command::new(env!("CARGO_BIN_EXE_shale"))
        .current_dir(dir)
        .args(["scan", "db"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0);
    assert_eq!(err(&output), "");
}

#[test]
fn the_bench_and_the_demo_run() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows = done(
        dir,
        &[
            "--json",
            "bench",
            "kv",
            "--num",
            "2k",
            "--db",
            "work",
            "--memory",
            "64M",
            "--memtable",
            "1M",
            "--run",
            "run",
            "--benchmarks",
            "fillrandom,fillseq,overwrite,wait_idle,readrandom,seekrandom,readseq,readwhilewriting,\
             multireadrandom,scanrandom,prefixscan,readmissing,updaterandom,deleterandom",
        ],
    );
    assert_eq!(rows.lines().count(), 14, "{rows}");
    assert!(rows.lines().all(|row| row.starts_with("{\"schema\":2,\"workload\":\"kv\"")));
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        let seconds = row["cpu"]["engine_seconds"].as_object().unwrap();
        assert!(
            ["write", "get", "flush", "read_decompress"].iter().all(|n| seconds.contains_key(*n))
        );
    }
    std::fs::write(dir.join("lines"), "one\ntwo\n".repeat(500)).unwrap();
    let shown = done(dir, &["demo", "lines", "--dir", "demo", "--keep"]);
    assert!(shown.contains("the default, auto") && shown.contains("10,000 comparisons"), "{shown}");
    assert_eq!(done(dir, &["get", "demo/auto", "line/000000000001"]), "one\n");
    let json = done(dir, &["--json", "demo", "lines", "--dir", "demo2"]);
    assert!(json.contains("\"raw_bytes\""), "{json}");
    assert!(!dir.join("demo2").exists());
}

#[test]
fn runs_are_reported_and_a_regression_may_be_an_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows = |first: u32| -> String {
        let row = |repeat: u32| {
            format!(
                "{{\"schema\":2,\"workload\":\"kv\",\"step\":\"overwrite\",\"engine\":\"shale\",\
                 \"repeat\":{repeat},\"rate\":{}}}\n",
                first + repeat
            )
        };
        (0..8).map(row).collect()
    };
    std::fs::write(dir.join("before"), rows(1000)).unwrap();
    std::fs::write(dir.join("after"), rows(800)).unwrap();
    assert!(done(dir, &["bench", "report", "before"]).contains("kv overwrite"));
    let text = done(dir, &["bench", "report", "before", "after"]);
    assert!(text.contains("1 regressed"), "{text}");
    let fail = ["bench", "report", "before", "after", "--fail-on-regression"];
    assert_eq!(code(&shale(dir, &fail)), 10);
    done(dir, &["bench", "report", "after", "before", "--fail-on-regression"]);
    let lines = done(dir, &["--json", "bench", "report", "before", "after", "--html", "page.html"]);
    assert!(lines.lines().all(|line| line.starts_with("{\"schema\":2,\"kind\":")), "{lines}");
    assert!(std::fs::read_to_string(dir.join("page.html")).unwrap().contains("uPlot"));
    std::fs::write(dir.join("newer"), "{\"schema\":3}\n").unwrap();
    let refused = shale(dir, &["bench", "report", "newer"]);
    assert!(err(&refused).contains("newer line 1: the row has schema 3"), "{}", err(&refused));
    assert_eq!(code(&refused), 9);
}

#[test]
fn completions_and_help() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for shell in ["bash", "zsh", "fish"] {
        assert!(done(dir, &["completions", shell]).contains("checkpoint"), "{shell}");
    }
    assert!(done(dir, &["--help"]).contains("Exit codes"));
    assert!(done(dir, &["import", "--help"]).contains("Examples"));
}

#[test]
fn a_database_that_is_in_use_is_read_as_of_now() {
    let dir = tempfile::tempdir().unwrap();
    let db = shaledb::Db::open(dir.path().join("db"), shaledb::Config::default()).unwrap();
    let tree = db.tree_or_create("default").unwrap();
    tree.put(b"a", b"one").unwrap();
    let output = shale(dir.path(), &["get", "db", "a"]);
    assert_eq!((code(&output), out(&output)), (0, "one\n"), "{}", err(&output));
    assert!(err(&output).contains("note: another process has db open"), "{}", err(&output));
    assert_eq!(done(dir.path(), &["scan", "db", "--count"]), "1\n");
    assert!(done(dir.path(), &["stats", "db"]).contains("tree default"));
    let text = done(dir.path(), &["verify", "db"]);
    assert!(
        text.starts_with("ok: 0 tables with 0 entries") && text.contains("1 records"),
        "{text}"
    );
    let output = shale(dir.path(), &["put", "db", "a", "two"]);
    assert_eq!(code(&output), 5, "{}", err(&output));
    assert_eq!(tree.get(b"a").unwrap().unwrap(), b"one");
}

#[test]
fn missing_blobs_are_listed_by_verify() {
    let dir = tempfile::tempdir().unwrap();
    let db = shaledb::Db::open(dir.path().join("db"), shaledb::Config::default()).unwrap();
    let tree = db.tree_or_create("default").unwrap();
    let large = vec![7; 4 << 20];
    tree.put(b"in a table", &large).unwrap();
    db.compact().unwrap();
    tree.put(b"in the log", &large).unwrap();
    drop(tree);
    db.close().unwrap();
    let text = done(dir.path(), &["verify", "db"]);
    assert!(text.contains("2 blob files"), "{text}");
    assert!(done(dir.path(), &["stats", "db"]).contains("2 blob files"));
    for entry in std::fs::read_dir(dir.path().join("db")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "blob") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let output = shale(dir.path(), &["verify", "db"]);
    assert_eq!((code(&output), out(&output).matches("DAMAGED").count()), (4, 2), "{output:?}");
}
