//! A process that may have few files open. A binary of its own, with one test: the limit is the
//! whole process's.

#[path = "common/small.rs"]
mod small;

use shaledb::Db;
use small::small;
use std::fs;

/// Sets the limit of open files; answers with the one before.
fn limit_files(files: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is valid for the call.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    let before = std::mem::replace(&mut limit.rlim_cur, files);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    before
}

/// The names of the files that are open, but for the directory in which they are.
fn open_files() -> Vec<String> {
    let entries = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let names = entries.filter_map(|path| fs::read_link(path).ok());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

const ROWS: u32 = 20_000;

fn value(number: u32) -> Vec<u8> {
    // What does not compress.
    let bytes = if number.is_multiple_of(1000) { 5000 } else { 300 };
    let mut state = u64::from(number) + 1;
    let step = |_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..bytes).map(step).collect()
}

fn check(db: &Db) {
    let tree = db.tree("t").unwrap();
    for number in (0..ROWS).step_by(25) {
        let found = tree.get(&number.to_be_bytes()).unwrap();
        assert!(found.as_deref() == Some(&value(number)[..]), "{number}");
    }
}

#[test]
fn few_open_files_are_enough() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Db::open(&path, small()).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    for number in 0..ROWS {
        tree.put(&number.to_be_bytes(), &value(number)).unwrap();
    }
    drop(tree);
    db.compact().unwrap();
    db.close().unwrap();
    let count = |end: &str, names: &[String]| names.iter().filter(|n| n.ends_with(end)).count();
    let files: Vec<String> = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let tables = count(".table", &files);
    assert!(tables > 70, "{tables} tables");

    // It takes a part of what there is.
    let before = limit_files(64);
    let db = Db::open(&path, small()).unwrap();
    check(&db);
    let open = count(".table", &open_files());
    assert!((4..=16).contains(&open), "{open} of {tables} tables are open");
    db.compact().unwrap();
    db.close().unwrap();
    limit_files(before);

    // It gives back what it has taken when there is no more.
    let db = Db::open(&path, small()).unwrap();
    let few = open_files().len() as u64 + 8;
    limit_files(few);
    check(&db);
    let tree = db.tree("t").unwrap();
    for number in 0..ROWS / 4 {
        tree.put(&number.to_be_bytes(), &value(number)).unwrap();
    }
    drop(tree);
    db.flush().unwrap();
    db.compact().unwrap();
    check(&db);
    db.close().unwrap();

    // Where nothing can be closed it is told what to do.
    let held: Vec<fs::File> = std::iter::from_fn(|| fs::File::open(dir.path()).ok()).collect();
    let refused = Db::open(&path, small()).unwrap_err().to_string();
    assert!(refused.contains("raise the limit (ulimit -n)"), "{refused}");
    drop(held);
    limit_files(before);
    let db = Db::open(&path, small()).unwrap();
    check(&db);
    assert!(db.verify(&mut |_| ()).unwrap().damage.is_empty());
}
