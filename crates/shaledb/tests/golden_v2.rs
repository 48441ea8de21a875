//! A database with a log of version 2, checked in: transactions in two phases, decided and not.
//!
//! `tests/golden/v2` was written by this file, with `SHALE_GOLDEN_WRITE=1` set and `v2` absent. It is
//! never written again: see `tests/golden.rs`.

use shaledb::{Background, Config, Db, OpenOptions, TransactionOptions, TreeConfig, WriteOptions};
use std::fs;
use std::path::{Path, PathBuf};

fn v2() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v2")
}

fn open(dir: &Path) -> Db {
    let options = OpenOptions { background: Background::Stepped, ..OpenOptions::default() };
    Db::open_in(dir, Config::default(), options).unwrap()
}

fn write(dir: &Path) {
    let db = open(dir);
    let small = TreeConfig { blob_bytes: 4096, ..TreeConfig::default() };
    let (a, b) = (db.create_tree("a", small).unwrap(), db.tree_or_create("b").unwrap());
    for key in ["1", "2", "3"] {
        a.put(key.as_bytes(), b"plain").unwrap();
    }
    for name in ["committed", "rolled back", "undecided"] {
        let mut txn = db.begin(TransactionOptions::default()).unwrap();
        txn.put(&a, name.as_bytes(), b"value").unwrap();
        txn.put(&a, format!("{name}, large").as_bytes(), &[7; 5_000]).unwrap();
        txn.put(&b, name.as_bytes(), b"other").unwrap();
        match name {
            "committed" => txn.delete_range(&a, b"1", b"3").unwrap(),
            "undecided" => txn.delete(&a, b"3").unwrap(),
            _ => {}
        }
        let prepared = txn.prepare(name.as_bytes()).unwrap();
        match name {
            "committed" => prepared.commit(WriteOptions::SYNC).unwrap(),
            "rolled back" => prepared.rollback(WriteOptions::SYNC).unwrap(),
            _ => {}
        }
    }
    b.put_with(b"last", b"one", WriteOptions::SYNC).unwrap();
    drop((a, b));
    db.close().unwrap();
}

fn keys(db: &Db, tree: &str) -> Vec<String> {
    let tree = db.tree(tree).unwrap();
    let rows = tree.scan::<&[u8]>(..).unwrap().map(|row| row.unwrap().0);
    rows.map(|key| String::from_utf8(key).unwrap()).collect()
}

#[test]
fn version_2_holds_what_it_held() {
    if std::env::var_os("SHALE_GOLDEN_WRITE").is_some() && !v2().exists() {
        write(&v2());
        let _ = fs::remove_file(v2().join("LOCK"));
    }
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(v2()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    // The second time it has been opened by this program.
    for _ in 0..2 {
        let db = open(dir.path());
        let names: Vec<Vec<u8>> =
            db.prepared().unwrap().iter().map(|prepared| prepared.xid().to_vec()).collect();
        assert_eq!(names, [b"undecided"]);
        assert_eq!(keys(&db, "a"), ["3", "committed", "committed, large"]);
        assert_eq!(keys(&db, "b"), ["committed", "last"]);
        let large = db.tree("a").unwrap().get(b"committed, large").unwrap();
        assert_eq!(large.unwrap(), [7; 5_000]);
        db.flush().unwrap();
    }
    let db = open(dir.path());
    db.prepared().unwrap().pop().unwrap().commit(WriteOptions::SYNC).unwrap();
    drop(db);
    let db = open(dir.path());
    let all = ["committed", "committed, large", "undecided", "undecided, large"];
    assert_eq!(keys(&db, "a"), all);
    assert_eq!(keys(&db, "b"), ["committed", "last", "undecided"]);
    assert_eq!(db.tree("a").unwrap().get(b"undecided, large").unwrap().unwrap(), [7; 5_000]);
    assert!(db.prepared().unwrap().is_empty());
    assert!(db.verify(&mut |_| ()).unwrap().damage.is_empty());
}
