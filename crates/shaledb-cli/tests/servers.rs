//! `shale bench` with a database server beside Shale, as a user runs it. `./test` builds the
//! server's driver, names its folder by SHALE_PEERS and runs this; without them there is nothing
//! to run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn bench(dir: &Path, engines: &str, args: &str) -> Vec<serde_json::Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_shale"))
        .current_dir(dir)
        .arg("bench")
        .args(args.split(' '))
        .args(["--engines", engines, "--memory", "64M", "--memtable", "1M"])
        .args(["--run", "run", "--db", "db", "--keep"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) = (output.stdout.escape_ascii(), output.stderr.escape_ascii());
    assert!(output.status.success(), "{out}\n{err}");
    assert!(!dir.join("run/failed.jsonl").exists());
    let text = std::fs::read_to_string(dir.join("run/rows.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What a row of each engine and step must have.
fn check_rows(rows: &[serde_json::Value], engines: &[&str], steps: &[&str]) {
    let (mut seen, mut wanted) = (Vec::new(), Vec::new());
    for row in rows {
        let engine = row["engine"].as_str().unwrap().to_owned();
        let step = row["step"].as_str().unwrap().to_owned();
        let number = |part: &str, name: &str| row[part][name].as_f64().unwrap();
        assert!(row["ops"].as_u64() > Some(0), "{engine} {step}");
        assert!(row["seconds"].as_f64() > Some(0.0));
        if engine == "innodb" {
            assert!(row["version"].as_str().unwrap().contains("MariaDB"));
            // The server's share and the client's are told apart.
            let is_short = matches!(step.as_str(), "drop" | "check");
            assert!(is_short || number("cpu", "seconds") > 0.0, "{step}");
            assert!(is_short || number("cpu", "client_us_per_op") > 0.0);
            assert!(row["rss_bytes"].as_u64() > Some(16 << 20));
            assert!(number("extra", "server_files_bytes") > 1e6);
            assert!(number("close", "seconds") > 0.0 && number("open", "seconds") > 0.0);
            let configuration = row["configuration"].as_array().unwrap();
            assert!(configuration.iter().any(|pair| pair[0] == "innodb_buffer_pool_size"));
        }
        seen.push((engine, step));
    }
    for step in steps {
        let of = |engine: &&str| ((*engine).to_owned(), (*step).to_owned());
        wanted.extend(engines.iter().map(of));
    }
    seen.sort();
    wanted.sort();
    assert_eq!(seen, wanted);
}

/// The numbers of rows of InnoDB's tables after a run, which a look by the server's own statements
/// finds to agree with their indexes.
fn tables(dir: &Path, store: &str) -> serde_json::Value {
    let peers = std::env::var_os("SHALE_PEERS").expect("SHALE_PEERS names the drivers' folder");
    let output = Command::new(PathBuf::from(peers).join("shale-peer-mariadb"))
        .args(["check", "innodb"])
        .arg(dir.join("db").join(store))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", output.stderr.escape_ascii());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

#[test]
#[ignore = "needs MariaDB and its driver: ./test has both"]
fn linkbench_on_shale_and_innodb() {
    let dir = folder();
    let args = "linkbench --maxid1 2k --loops 1 --requests 4k --seconds 600 --keep-tables";
    let rows = bench(dir.path(), "shale,innodb", args);
    check_rows(&rows, &["shale", "innodb"], &["load", "q1"]);
    let of = |engine: &str, step: &str| {
        rows.iter().find(|row| row["engine"] == engine && row["step"] == step).unwrap()
    };
    // Both are given the same rows.
    assert_eq!(of("innodb", "load")["ops"], of("shale", "load")["ops"]);
    let query = of("innodb", "q1");
    assert_eq!(query["ops"].as_u64(), Some(4000));
    assert_eq!(query["latency_us"].as_object().unwrap().len(), 10);
    assert!(query["counted"]["wal_bytes"].as_u64() > Some(0));
    let tables = tables(dir.path(), "innodb-linkbench");
    let loaded = of("innodb", "load")["extra"]["links"].as_f64().unwrap() as u64;
    assert!(tables["linktable"].as_u64() > Some(loaded), "{tables}");
    assert!(tables["nodetable"].as_u64() > Some(1900), "{tables}");
    assert!(tables["visible links"].as_u64() < tables["linktable"].as_u64(), "{tables}");
}

#[test]
#[ignore = "needs MariaDB and its driver: ./test has both"]
fn insert_on_shale_and_innodb() {
    let dir = folder();
    let args = "insert --rows 4000 --inserts 1000 --seconds 1 --steps l.i0,l.x,l.i1,qr100,qp100";
    let rows = bench(dir.path(), "shale,innodb", args);
    check_rows(&rows, &["shale", "innodb"], &["l.i0", "l.x", "l.i1", "qr100", "qp100"]);
    for row in &rows {
        assert_eq!(row["extra"]["table_rows"].as_f64(), Some(4000.0), "{}", row["step"]);
        if row["step"] == "qr100" {
            assert!(row["writer"]["ops"].as_u64() > Some(0));
        }
    }
    let tables = tables(dir.path(), "innodb-insert");
    let all: u64 = tables.as_object().unwrap().values().map(|rows| rows.as_u64().unwrap()).sum();
    assert_eq!(all, 4000, "{tables}");
}

#[test]
#[ignore = "needs MariaDB and its driver: ./test has both"]
fn tpcc_on_innodb() {
    let dir = folder();
    let args = "tpcc --warehouses 1 --shrink 50 --clients 2 --seconds 1";
    let rows = bench(dir.path(), "innodb", args);
    check_rows(&rows, &["innodb"], &["load", "run.c2", "check"]);
    let run = rows.iter().find(|row| row["step"] == "run.c2").unwrap();
    assert!(run["latency_us"]["payment"]["count"].as_u64() > Some(0));
    assert!(run["extra"]["new_orders_per_minute"].as_f64() > Some(0.0));
    let report = std::fs::read_to_string(dir.path().join("run/report.html")).unwrap();
    assert!(report.contains("new_order") && report.contains("no/min"));
    let tables = tables(dir.path(), "innodb-tpcc");
    assert_eq!(tables["stock"].as_u64(), Some(2000), "{tables}");
    assert!(tables["order_line"].as_u64() > Some(600 * 8), "{tables}");
}
