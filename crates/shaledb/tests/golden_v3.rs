//! Databases with tables of versions 2 and 3, checked in: tables with a compression dictionary, as it
//! is and compressed.
//!
//! `tests/golden/v3` and `v4` were written by this file, with `SHALE_GOLDEN_WRITE=1` set and the
//! folder absent; `v3` by the release whose tables were of version 2. They are never written again:
//! see `tests/golden.rs`.

use shaledb::inspect::{Inspection, open};
use shaledb::repair::{RepairOptions, repair};
use shaledb::{Background, Codec, Codecs, Config, Db, OpenOptions, TreeConfig};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn open_db(dir: &Path) -> Db {
    let options = OpenOptions { background: Background::Stepped, ..OpenOptions::default() };
    Db::open_in(dir, Config::default(), options).unwrap()
}

fn expected() -> Rows {
    let row = |number: u32| {
        let noise = number.wrapping_mul(2_654_435_761);
        let value = format!(
            "{{\"id\":{number},\"user\":\"{noise:08x}\",\"status\":\"active\",\"currency\":\"EUR\",\
             \"comment\":\"nothing of note, as in all the others\"}}"
        );
        (format!("order/{number:06}").into_bytes(), value.into_bytes())
    };
    (0..1200).map(row).collect()
}

fn write(dir: &Path) {
    let db = open_db(dir);
    let codecs = Codecs::all(Codec::Zstd(3));
    let config =
        TreeConfig { codecs, dictionary: true, block_bytes: 1024, ..TreeConfig::default() };
    let tree = db.create_tree("orders", config).unwrap();
    let mut ingest = tree.ingest().unwrap();
    for (key, value) in &expected() {
        ingest.add(key, value).unwrap();
    }
    ingest.finish().unwrap();
    db.close().unwrap();
    let _ = fs::remove_file(dir.join("LOCK"));
}

/// A copy of the checked-in database, which opening would change.
fn copy(name: &str) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(golden(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
    }
    to
}

fn check(db: &Db) {
    let tree = db.tree("orders").unwrap();
    assert!(tree.config().dictionary);
    let rows = tree.scan::<&[u8]>(..).unwrap().map(|row| row.unwrap());
    let rows: Rows = rows.map(|(key, value)| (key, value.to_vec())).collect();
    assert!(rows == expected());
    let verified = db.verify(&mut |_| ()).unwrap();
    assert!(verified.damage.is_empty(), "{verified:?}");
}

#[test]
fn version_2_of_tables_opens_and_holds_what_it_held() {
    opens_and_holds("v3", 2);
}

#[test]
fn version_3_of_tables_opens_and_holds_what_it_held() {
    if std::env::var_os("SHALE_GOLDEN_WRITE").is_some() && !golden("v4").exists() {
        write(&golden("v4"));
    }
    opens_and_holds("v4", 3);
}

fn opens_and_holds(name: &str, version: u32) {
    let mut tables = 0;
    for entry in fs::read_dir(golden(name)).unwrap() {
        if let Inspection::Table(table) = open(&entry.unwrap().path()).unwrap() {
            assert_eq!(table.version, version);
            assert!(table.dictionary_bytes > 0 && table.damage.is_empty());
            assert!(table.codecs.iter().any(|total| total.codec == "zstd+dictionary"));
            tables += 1;
        }
    }
    assert!(tables > 0);
    let dir = copy(name);
    for _ in 0..2 {
        let db = open_db(dir.path());
        check(&db);
        db.compact().unwrap();
        check(&db);
        db.close().unwrap();
    }
    let (from, to) = (copy(name), tempfile::tempdir().unwrap());
    let report = repair(from.path(), to.path(), &RepairOptions::default(), &mut |_| ()).unwrap();
    assert!(report.is_clean(), "{report}");
    check(&open_db(to.path()));
}
