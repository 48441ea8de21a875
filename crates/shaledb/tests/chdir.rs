//! A process that changes its directory keeps the databases that it has opened by relative paths.
//! A binary of its own, with one test: the directory is the whole process's.

#[path = "common/small.rs"]
mod small;

use shaledb::Db;
use shaledb::repair::{RepairOptions, repair};
use small::small;
use std::collections::BTreeMap;
use std::env::set_current_dir;
use std::fs;
use std::path::Path;

const NAME: &str = "people.db";
const ROWS: u32 = 3000;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn value(number: u32, what: &str) -> Vec<u8> {
    let bytes = if number.is_multiple_of(100) { 5000 } else { 50 };
    format!("{what} {number} ").into_bytes().into_iter().cycle().take(bytes).collect()
}

fn fill(db: &Db, what: &str) {
    let tree = db.tree_or_create("people").unwrap();
    for number in 0..ROWS {
        tree.put(&key(number), &value(number, what)).unwrap();
    }
}

fn check(db: &Db, what: &str) {
    let tree = db.tree("people").unwrap();
    for number in 0..ROWS {
        let found = tree.get(&key(number)).unwrap();
        assert_eq!(found.as_deref(), Some(&value(number, what)[..]), "{number}");
    }
    let report = db.verify(&mut |_| ()).unwrap();
    assert!(report.damage.is_empty(), "{report:?}");
}

/// The files of a directory with their contents.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn a_relative_path_is_that_of_the_open() {
    let root = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| root.path().join(name));
    fs::create_dir(&a).unwrap();
    fs::create_dir(&b).unwrap();

    // A database of the same name is where the process goes.
    set_current_dir(&b).unwrap();
    let other = Db::open(NAME, small()).unwrap();
    fill(&other, "other");
    other.close().unwrap();
    let before = files(&b.join(NAME));

    set_current_dir(&a).unwrap();
    let db = Db::open(NAME, small()).unwrap();
    assert_eq!(db.path(), Path::new(NAME), "as it was given");
    fill(&db, "first");
    set_current_dir(&b).unwrap();
    fill(&db, "second");
    db.flush().unwrap();
    db.compact().unwrap();
    check(&db, "second");
    // Where the process is now.
    db.checkpoint("copy.db").unwrap();
    db.close().unwrap();
    assert!(before == files(&b.join(NAME)), "the other database is as it was");
    assert_eq!(fs::read_dir(&a).unwrap().count(), 1);

    // Tables are opened when they are read.
    for open in [Db::open, Db::open_read_only, Db::open_follower] {
        set_current_dir(&a).unwrap();
        let db = open(Path::new(NAME), small()).unwrap();
        set_current_dir("/").unwrap();
        check(&db, "second");
        db.close().unwrap();
    }

    // A follower goes on to the files that the writer makes.
    set_current_dir(&a).unwrap();
    let db = Db::open(NAME, small()).unwrap();
    let follower = Db::open_follower(NAME, small()).unwrap();
    set_current_dir(&b).unwrap();
    fill(&db, "third");
    db.flush().unwrap();
    follower.refresh().unwrap();
    check(&follower, "third");
    drop(follower);
    db.close().unwrap();

    // A repair reads while its caller is told of it, who may go elsewhere.
    set_current_dir(&a).unwrap();
    let options = RepairOptions { config: small(), ..RepairOptions::default() };
    let report = repair(Path::new(NAME), Path::new("saved.db"), &options, &mut |_| {
        set_current_dir("/").unwrap();
    });
    assert!(report.unwrap().is_clean());
    for (path, what) in
        [(b.join("copy.db"), "second"), (b.join(NAME), "other"), (a.join("saved.db"), "third")]
    {
        check(&Db::open(path, small()).unwrap(), what);
    }
    set_current_dir("/").unwrap();
}
