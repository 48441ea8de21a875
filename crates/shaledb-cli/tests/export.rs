//! `export`, and that `import` reads back what it wrote.

mod common;

use common::{done, run};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
use std::path::Path;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn store(path: &Path, rows: &Rows) {
    let db = shaledb::Db::open(path, shaledb::Config::default()).unwrap();
    let tree = db.tree_or_create("default").unwrap();
    for (key, value) in rows {
        tree.put(key, value).unwrap();
    }
    db.close().unwrap();
}

fn stored(path: &Path) -> Rows {
    let db = shaledb::Db::open_read_only(path, shaledb::Config::default()).unwrap();
    let tree = db.tree("default").unwrap();
    let rows = tree.scan::<&[u8]>(..).unwrap();
    rows.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

/// What is likely to be taken for something else.
const PIECES: [&str; 24] = [
    "",
    "a",
    "b",
    "7",
    ",",
    "\"",
    "\"\"",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\\",
    "\\x41",
    "\\n",
    " ",
    "\0",
    "null",
    "{\"a\":1}",
    "\u{feff}",
    "\u{e9}",
    "\u{1f600}",
    "#",
    ";",
    "'",
];

fn text(random: &mut Pcg64) -> Vec<u8> {
    let pieces = random.random_range(0..6);
    (0..pieces).flat_map(|_| PIECES[random.random_range(0..PIECES.len())].bytes()).collect()
}

fn bytes(random: &mut Pcg64) -> Vec<u8> {
    let mut bytes = text(random);
    for _ in 0..random.random_range(0..4) {
        bytes.insert(random.random_range(0..=bytes.len()), random.random());
    }
    bytes
}

fn seeds() -> std::ops::Range<u64> {
    match std::env::var("SHALE_SEED") {
        Ok(seed) => {
            let seed = seed.parse().unwrap();
            seed..seed + 1
        }
        Err(_) => 0..6,
    }
}

/// Exports and imports, and compares.
fn there_and_back(rows: &Rows, file: &str, export: &[&str], import: &[&str], story: &str) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    store(&dir.join("db"), rows);
    done(dir, &[&["export", "db", file], export].concat());
    let ran = run(dir, &[&["import", "new", file], import].concat());
    let text = std::fs::read(dir.join(file)).unwrap();
    assert_eq!(ran.code, Some(0), "{story}: {}{}", ran.err, text.escape_ascii());
    assert_eq!(stored(&dir.join("new")), *rows, "{story}: {}", text.escape_ascii());
}

#[test]
fn any_bytes_come_back() {
    for seed in seeds() {
        let mut random = Pcg64::seed_from_u64(seed);
        let rows: Rows = (0..200).map(|_| (bytes(&mut random), bytes(&mut random))).collect();
        let story = format!("SHALE_SEED={seed}");
        there_and_back(&rows, "f.ndjson", &[], &[], &story);
        there_and_back(&rows, "f.json.zst", &["--hex"], &[], &story);
        there_and_back(&rows, "f.csv", &["--hex"], &[], &story);
        there_and_back(&rows, "f.tsv.gz", &["--hex"], &[], &story);
        there_and_back(&rows, "f.txt", &[], &["--escaped"], &story);
    }
}

#[test]
fn any_text_comes_back_from_csv() {
    for seed in seeds() {
        let mut random = Pcg64::seed_from_u64(seed);
        let rows: Rows = (0..300).map(|_| (text(&mut random), text(&mut random))).collect();
        let story = format!("SHALE_SEED={seed}");
        there_and_back(&rows, "f.csv", &[], &[], &story);
        let delimiter = ["--delimiter", ";"];
        there_and_back(&rows, "f.csv.zst", &delimiter, &delimiter, &story);
        let plain: Rows = rows
            .into_iter()
            .filter(|(key, value)| {
                ![key, value].iter().any(|text| text.iter().any(|b| b"\t\r\n".contains(b)))
            })
            .collect();
        assert!(!plain.is_empty(), "{story}");
        there_and_back(&plain, "f.tsv", &[], &[], &story);
    }
}

/// CSV in, CSV out: the rows of the file, by their keys.
#[test]
fn a_table_comes_back_as_it_was() {
    for seed in seeds() {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut rows = BTreeMap::new();
        for number in 0..100 {
            let key = format!("{number:03}");
            rows.insert(key, [0; 3].map(|_| String::from_utf8(text(&mut random)).unwrap()));
        }
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["z", "id", "a b", "x,y"]).unwrap();
        for (key, [first, second, third]) in &rows {
            writer.write_record([first, key, second, third]).unwrap();
        }
        let file = writer.into_inner().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        std::fs::write(dir.join("in.csv"), &file).unwrap();
        done(dir, &["import", "db", "in.csv", "--key", "id"]);
        done(dir, &["export", "db", "out.csv", "--key", "id"]);
        let out = std::fs::read(dir.join("out.csv")).unwrap();
        assert!(out == file, "SHALE_SEED={seed}: {} {}", file.escape_ascii(), out.escape_ascii());
    }
}

#[test]
fn objects_come_back_as_lines() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let lines = "{\"id\":1.10,\"z\":1,\"a\":18446744073709551617}\n{\"id\":2,\"n\":{\"q\":null}}\n";
    std::fs::write(dir.join("in.json"), lines).unwrap();
    done(dir, &["import", "db", "in.json", "--key", "id"]);
    done(dir, &["export", "db", "out.json", "--key", "id"]);
    assert_eq!(std::fs::read_to_string(dir.join("out.json")).unwrap(), lines);
    // Neither the key nor a field is lost in silence.
    let ran = run(dir, &["export", "db", "f.csv", "--key", "id"]);
    assert_eq!(ran.code, Some(7));
    assert!(ran.err.contains("key 2") && ran.err.contains("`n`"), "{}", ran.err);
    let ran = run(dir, &["export", "db", "f.json", "--key", "z"]);
    assert_eq!(ran.code, Some(7));
    assert!(ran.err.contains("the key would be lost"), "{}", ran.err);
    assert!(!dir.join("f.csv").exists() && !dir.join("f.csv.partial").exists());
}

#[test]
fn what_a_format_cannot_say_ends_the_export() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows: Rows = [(b"a".to_vec(), b"x\ty".to_vec()), (b"b".to_vec(), b"\xff".to_vec())].into();
    store(&dir.join("db"), &rows);
    for (file, key, why) in [("f.csv", "key b", "--hex"), ("f.tsv", "key a", "--format csv")] {
        let ran = run(dir, &["--json", "export", "db", file]);
        assert_eq!(ran.code, Some(7), "{}", ran.err);
        assert!(ran.err.contains(key) && ran.err.contains(why), "{}", ran.err);
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), 1, "only the database is there");
    }
    std::fs::write(dir.join("there.csv"), "mine").unwrap();
    let ran = run(dir, &["export", "db", "there.csv", "--hex"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(std::fs::read(dir.join("there.csv")).unwrap(), b"mine");
    let said = done(dir, &["export", "db", "there.csv", "--hex", "--force"]);
    assert!(said.starts_with("2 records"), "{said}");
    assert_eq!(
        std::fs::read(dir.join("there.csv")).unwrap(),
        b"key_hex,value_hex\n61,780979\n62,ff\n"
    );
    let out = done(dir, &["export", "db", "-", "--format", "kv", "--from", "b"]);
    assert_eq!(out, "b\t\\xff\n");
    let first = ["export", "db", "-", "--format", "csv", "--no-header", "--to", "b"];
    assert_eq!(done(dir, &first), "a,x\ty\n");
}

/// What is no file, or has another name, is not replaced by one.
#[test]
#[cfg(unix)]
fn links_and_devices_stay_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, &["put", "db", "k", "v"]);
    std::fs::write(dir.join("real.csv"), "old").unwrap();
    std::os::unix::fs::symlink("real.csv", dir.join("link.csv")).unwrap();
    assert_ne!(run(dir, &["export", "db", "link.csv"]).code, Some(0));
    done(dir, &["export", "db", "link.csv", "--force"]);
    assert!(std::fs::symlink_metadata(dir.join("link.csv")).unwrap().is_symlink());
    assert!(std::fs::read_to_string(dir.join("real.csv")).unwrap().contains("k,v"));
    std::os::unix::fs::symlink("nowhere.csv", dir.join("lost.csv")).unwrap();
    assert_ne!(run(dir, &["export", "db", "lost.csv", "--force"]).code, Some(0));
    std::os::unix::fs::symlink("/dev/null", dir.join("null")).unwrap();
    done(dir, &["export", "db", "null", "--format", "csv"]);
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    std::fs::write(dir.join("new.csv.partial"), "mine").unwrap();
    let refused = run(dir, &["export", "db", "new.csv"]);
    assert!(refused.code == Some(2) && refused.err.contains("new.csv.partial"), "{}", refused.err);
    assert_eq!(std::fs::read_to_string(dir.join("new.csv.partial")).unwrap(), "mine");
    done(dir, &["export", "db", "new.csv", "--force"]);
    assert!(!dir.join("new.csv.partial").exists());
    let to_pipe = done(dir, &["export", "db", "/dev/stdout", "--format", "csv"]);
    assert!(to_pipe.contains("k,v"), "{to_pipe}");
    assert_eq!(run(dir, &["export", "db", "db"]).code, Some(2));
}
