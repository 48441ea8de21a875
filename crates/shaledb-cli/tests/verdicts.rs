//! Exit codes of commands that nobody reads, and of those for which there is no room.

mod common;

use common::{done, run, run_with};
use std::path::Path;
use std::process::{Command, Stdio};

/// The exit code of a command whose outputs are closed.
fn unread(dir: &Path, arguments: &[&str]) -> i32 {
    let closed = || std::io::pipe().unwrap().1;
    let mut command = Command::new(env!("CARGO_BIN_EXE_shale"));
    command.current_dir(dir).args(arguments).stdin(Stdio::null());
    command.stdout(closed()).stderr(closed()).status().unwrap().code().unwrap()
}

/// What was found is told by the code, whoever reads the rest of it.
#[test]
fn codes_are_the_same_if_nobody_reads() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let lines: String = (0..5000).map(|at| format!("key {at:06}\tvalue {at} {at}\n")).collect();
    let import = ["import", "db", "-", "--format", "kv", "--codecs", "lz4"];
    assert_eq!(run_with(dir, &import, lines.as_bytes()).code, Some(0));
    done(dir, &["compact", "db"]);
    let files = std::fs::read_dir(dir.join("db")).unwrap().flatten().map(|file| file.path());
    let table = files.into_iter().find(|file| file.extension().is_some_and(|end| end == "table"));
    let table = table.unwrap();
    assert_eq!(unread(dir, &["verify", "db"]), 0);
    assert_eq!(unread(dir, &["get", "db", "missing"]), 1);
    assert_eq!(unread(dir, &["scan", "nothing"]), 6);
    let lines = "bad\nbad\nbad\nk\tv\n";
    std::fs::write(dir.join("rows.txt"), lines).unwrap();
    let skips = ["import", "db", "rows.txt", "--format", "kv", "--skip-bad"];
    assert_eq!(unread(dir, &skips), 0);
    assert_eq!(done(dir, &["get", "db", "k"]), "v\n");
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let file = table.to_str().unwrap();
    let commands: [&[&str]; 5] = [
        &["verify", "db"],
        &["--json", "verify", "db"],
        &["inspect", file],
        &["inspect", "db"],
        &["repair", "db", "repaired"],
    ];
    for command in commands {
        let expected = run(dir, command).code.unwrap();
        let _ = std::fs::remove_dir_all(dir.join("repaired"));
        assert_eq!(unread(dir, command), expected, "{command:?}");
        let _ = std::fs::remove_dir_all(dir.join("repaired"));
    }
    assert_eq!(run(dir, &["verify", "db"]).code, Some(4));
}

#[test]
fn a_limit_on_space_is_kept_by_commands_that_write() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows: String = (0..40_000).map(|row| format!("{row:08}\t{:x}\n", row * 7919)).collect();
    std::fs::write(dir.join("rows.txt"), rows).unwrap();
    let import = ["import", "db", "rows.txt", "--format", "kv", "--codecs", "none"];
    done(dir, &[&import[..], &["--space-limit", "1G"]].concat());
    std::fs::write(dir.join("value"), vec![7; 3 << 20]).unwrap();
    for write in [
        &["put", "db", "key", "--file", "value", "--space-limit", "3M"][..],
        &["compact", "db", "--space-limit", "100k"],
        &["delete", "db", "key", "--space-limit", "100k"],
        &["checkpoint", "db", "copy", "--space-limit", "100k"],
    ] {
        let refused = run(dir, write);
        assert_ne!(refused.code, Some(0), "{write:?}");
        assert!(refused.err.contains("limit"), "{write:?}: {}", refused.err);
    }
    assert_eq!(run(dir, &["get", "db", "key"]).code, Some(1));
    done(dir, &["put", "db", "key", "--file", "value", "--space-limit", "1G"]);
}

#[test]
fn a_database_that_does_not_open_is_verified_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let db = shaledb::Db::open(dir.join("db"), shaledb::Config::default()).unwrap();
    for name in ["one", "two"] {
        let tree = db.tree_or_create(name).unwrap();
        tree.put(b"key", b"value").unwrap();
        tree.compact().unwrap();
    }
    db.close().unwrap();
    let mut tables: Vec<_> = std::fs::read_dir(dir.join("db"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "table"))
        .collect();
    tables.sort();
    let [missing, flipped] = &tables[..] else { panic!("{tables:?}") };
    std::fs::remove_file(missing).unwrap();
    let mut bytes = std::fs::read(flipped).unwrap();
    bytes[10] ^= 1;
    std::fs::write(flipped, bytes).unwrap();
    let text = run(dir, &["verify", "db"]);
    assert_eq!(text.code, Some(4), "{}", text.err);
    let json = run(dir, &["--json", "verify", "db"]);
    assert_eq!(json.code, Some(4), "{}", json.err);
    let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(report["opens"], false, "{report}");
    std::fs::remove_file(dir.join("db/CURRENT")).unwrap();
    let lost = run(dir, &["verify", "db"]);
    assert_eq!(lost.code, Some(4), "{}", lost.err);
    assert!(lost.out.contains("manifest: lost") || lost.out.contains("CURRENT"), "{}", lost.out);
    assert_eq!(run(dir, &["verify", "nothing"]).code, Some(6));
    for path in [missing, flipped] {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(text.out.contains(name), "{name}: {}", text.out);
        let damage = report["damage"].as_array().unwrap();
        assert!(damage.iter().any(|file| file["name"] == name), "{name}: {report}");
    }
}

#[test]
fn a_full_device_has_a_code_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert_eq!(run(dir, &["put", "db", "key", "value"]).code, Some(0));
    let full = run(dir, &["get", "db", "key", "--output", "/dev/full"]);
    assert_eq!(full.code, Some(8), "{}", full.err);
    for args in [&["scan", "db"][..], &["export", "db", "-", "--format", "kv"]] {
        let device = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_shale"));
        let ran = command.args(args).current_dir(dir).stdout(device).output().unwrap();
        assert_eq!(ran.status.code(), Some(8), "{args:?}");
    }
}
