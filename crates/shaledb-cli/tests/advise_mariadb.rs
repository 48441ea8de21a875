//! `shale advise --mariadb` beside a real server, where the programs of one are installed: what a
//! few rows of a table foresee, beside what all of them take.

mod common;

use common::{done, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server of the test's own.
struct Server {
    child: Child,
    folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

impl Server {
    /// `None` where there is no MariaDB.
    fn start() -> Option<Server> {
        let (install, server) = (program("mariadb-install-db")?, program("mariadbd")?);
        program("mariadb")?;
        let folder = tempfile::tempdir().unwrap();
        let data = format!("--datadir={}", folder.path().join("data").display());
        let installed = Command::new(install)
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
        let child = Command::new(server)
            .args(["--no-defaults", "--user=root", "--skip-networking", "--skip-log-bin"])
            .arg(data)
            .arg(format!("--socket={}", folder.path().join("s").display()))
            .args(["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Server { child, folder };
        while !server.sql("SELECT 1").status.success() {
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "the server ended: {ended:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(server)
    }

    fn sql(&self, sql: &str) -> std::process::Output {
        Command::new("mariadb")
            .args(["--no-defaults", "--user=root", "--socket"])
            .arg(self.folder.path().join("s"))
            .args(["--execute", sql])
            .output()
            .unwrap()
    }

    fn advised(&self, table: &str, sample: &str) -> Value {
        let socket = self.folder.path().join("s");
        let ask = ["--json", "advise", "--user", "root", "--table", table, "--sample", sample];
        let more = ["--codecs", "none,zstd:3", "--block-bytes", "16K", "--mariadb"];
        let all = [&ask[..], &more, &[socket.to_str().unwrap()]].concat();
        serde_json::from_str(&done(Path::new("."), &all)).unwrap()
    }
}

const TABLES: &str = "
    CREATE DATABASE d; USE d;
    CREATE TABLE numbers (a INT, b INT UNSIGNED, data VARCHAR(200), at DATETIME NULL,
        twice INT AS (a * 2) VIRTUAL, PRIMARY KEY (a, b), KEY (at)) CHARACTER SET latin1;
    INSERT INTO numbers (a, b, data, at) SELECT CAST(seq DIV 2 AS SIGNED) - 20000, seq,
        CONCAT(MD5(seq), REPEAT('x', seq MOD 40)), '2024-01-01' + INTERVAL seq SECOND
        FROM seq_1_to_30000;
    CREATE TABLE names (name VARCHAR(60) PRIMARY KEY, b BLOB);
    INSERT INTO names SELECT CONCAT('user-', MD5(seq)), RANDOM_BYTES(30) FROM seq_1_to_20000;
    CREATE TABLE moments (at DATETIME(6) PRIMARY KEY, v VARCHAR(100));
    INSERT INTO moments SELECT '2024-01-01' + INTERVAL 10000 * seq MICROSECOND, MD5(seq)
        FROM seq_1_to_20000;
    CREATE TABLE ids (id UUID PRIMARY KEY, a INET6, d DECIMAL(12,2) NOT NULL);
    INSERT INTO ids SELECT UUID(), '2001:db8::1', seq / 7 FROM seq_1_to_2000;
    CREATE TABLE floats (f FLOAT PRIMARY KEY);
    INSERT INTO floats VALUES (16777215), (16777214);
    CREATE TABLE capitals (k CHAR(26) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, v TEXT);
    INSERT INTO capitals SELECT CONCAT(CHAR(65 + seq MOD 26), CHAR(65 + seq DIV 26 MOD 26),
        CHAR(65 + seq DIV 676 MOD 26)), MD5(seq) FROM seq_1_to_17576;
    CREATE TABLE far (id BIGINT PRIMARY KEY, v VARCHAR(100));
    INSERT INTO far SELECT seq, MD5(seq) FROM seq_1_to_20000;
    INSERT INTO far VALUES (1 << 62, 'x');
    CREATE TABLE two (a INT, b INT, v VARCHAR(100), PRIMARY KEY (a, b));
    INSERT INTO two SELECT seq MOD 2, seq, MD5(seq) FROM seq_1_to_20000;
    CREATE TABLE `few.rows` (a INT PRIMARY KEY, b TEXT);
    INSERT INTO `few.rows` VALUES (1, 'it''s\\t\\\\\\n'), (2, NULL);
    CREATE TABLE none (a INT PRIMARY KEY);
    CREATE TABLE heap (a INT, b TEXT); INSERT INTO heap SELECT seq, MD5(seq) FROM seq_1_to_40000;
    CREATE VIEW looks AS SELECT * FROM names;
    ANALYZE TABLE numbers, names, heap;";

#[test]
fn a_few_ranges_of_a_table_foresee_all_of_it() {
    let Some(server) = Server::start() else {
        eprintln!("no MariaDB is installed: nothing is tested");
        return;
    };
    let made = server.sql(TABLES);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut numbers = Value::Null;
    for (table, rows) in [("d.numbers", 30_000.0), ("d.names", 20_000.0)] {
        let some = server.advised(table, "256K");
        let all = server.advised(table, "256M");
        assert_eq!((&some["seen"], &all["seen"]), (&"spread".into(), &"all".into()), "{table}");
        assert_eq!((some["rows"].as_f64(), all["rows"].as_f64()), (Some(rows), Some(rows)));
        assert_eq!((&some["order"], &all["order"]), (&"ascending".into(), &"ascending".into()));
        let share = some["sample_share"].as_f64().unwrap();
        assert!(share > 0.03 && share < 0.3, "{table}: {share} was read");
        let choices = some["choices"].as_array().unwrap().iter();
        for (some, all) in choices.zip(all["choices"].as_array().unwrap()) {
            let size = |of: &Value| of["size_bytes"].as_f64().unwrap();
            let (off, bound) = (size(some) / size(all) - 1.0, some["size_bound"].as_f64().unwrap());
            assert!(off.abs() < bound.max(0.03), "{table}: {off}, {bound}: {some:#} {all:#}");
            assert!(bound < 0.10, "{table}: {bound}");
        }
        if table == "d.numbers" {
            numbers = all;
        }
    }
    let words = numbers["words"].to_string();
    assert!(words.contains("Its 1 other indexes are not counted"), "{words}");
    // An int and an int; a byte of NULL bits, a time, a length, and the text.
    let bytes = numbers["sample_bytes"].as_f64().unwrap();
    let text: f64 = (1..=30_000).map(|seq| f64::from(32 + seq % 40)).sum();
    assert_eq!(bytes, text + 30_000.0 * (8.0 + 1.0 + 5.0 + 1.0));

    // A hundred rows a second have a hundred keys.
    let moments = server.advised("d.moments", "256K");
    assert_eq!(moments["rows"].as_f64(), Some(20_000.0));
    assert_eq!(moments["distinct_rows"].as_f64(), Some(20_000.0));
    // Keys of capital letters, which come before all others by their bytes; a row far behind the
    // others; and a column of two values.
    for (table, rows, seen) in
        [("capitals", 17_576.0, "spread"), ("far", 20_001.0, "spread"), ("two", 20_000.0, "head")]
    {
        let some = server.advised(&format!("d.{table}"), "256K");
        assert_eq!((some["rows"].as_f64(), &some["seen"]), (Some(rows), &seen.into()), "{table}");
        let share = some["sample_share"].as_f64().unwrap();
        assert!(share > 0.03 && share < 0.7, "{table}: {share} was read");
    }
    // 16 bytes of a key; a byte for NULL, an address, a decimal.
    let ids = server.advised("d.ids", "256K");
    assert_eq!(ids["sample_bytes"], 2000 * (16 + 1 + 16 + 6));
    assert_eq!((&ids["order"], &ids["distinct_rows"]), (&"ascending".into(), &2000.0.into()));
    let floats = server.advised("d.floats", "256K");
    assert_eq!(floats["distinct_rows"], 2.0);
    assert!(floats["words"].to_string().contains("prints as another row's"), "{floats}");

    let few = server.advised("d.few.rows", "256K");
    assert_eq!(few["sample_rows"], 2);
    assert_eq!(few["sample_bytes"], 2 * (4 + 1) + 1 + 7);
    let heap = server.advised("d.heap", "256K");
    assert_eq!(heap["seen"], "head");
    assert!(heap["words"].to_string().contains("it has no primary key"), "{}", heap["words"]);

    let socket = server.folder.path().join("s");
    let refused = |table: &str, user: &str| {
        let ask = ["advise", "--user", user, "--table", table, "--mariadb"];
        let ran = run(Path::new("."), &[&ask[..], &[socket.to_str().unwrap()]].concat());
        (ran.code, ran.err)
    };
    for (table, user, code, part) in [
        ("d.none", "root", 7, "d.none: the table has no rows"),
        ("d.looks", "root", 2, "d.looks is a view"),
        ("d.nix", "root", 6, "no table d.nix"),
        ("names", "root", 2, "name it as DATABASE.TABLE"),
        ("d.names", "nobody", 9, "Access denied for user 'nobody'"),
    ] {
        let (told, err) = refused(table, user);
        assert!(told == Some(code) && err.contains(part), "{table}: {told:?} {err}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let ask = ["advise", "--mariadb", "/nowhere/socket", "--table", "d.t"];
    let ran = Command::new(env!("CARGO_BIN_EXE_shale")).args(ask).env("PATH", "").output().unwrap();
    let err = String::from_utf8_lossy(&ran.stderr);
    assert!(
        err.contains("`mariadb`, which is not in the PATH") && err.contains("Install"),
        "{err}"
    );
    for (ask, part) in [
        (&["advise", "--mariadb", "s"][..], "--table"),
        (&["advise", "--table", "d.t", "a.csv"], "--mariadb"),
        (&["advise", "a.csv", "--mariadb", "s", "--table", "d.t"], "cannot be used with"),
        (&["advise", "--mariadb", "s", "--table", "d.t", "--check"], "cannot be used with"),
        (&["advise"], "SOURCE"),
    ] {
        let ran = run(Path::new("."), ask);
        assert!(ran.code == Some(2) && ran.err.contains(part), "{ask:?}: {}", ran.err);
    }
}
