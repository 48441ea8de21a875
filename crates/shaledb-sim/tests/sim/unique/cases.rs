//! What is a duplicate and what is none; transactions that are prepared.

use super::writer::{Change, INDEX, Row, Writer, begin, check, fill, rows, writer};
use shaledb::fs::mem::{CrashMode, MemFs};
use shaledb::{Db, Error, OnlineBuild, TransactionOptions, Tree};
use shaledb::{WriteOptions, entry_of_row};
use shaledb_sim::settings::small;
use shaledb_sim::world::{PATH, open_db};

/// A database whose source has these rows, each with a name; and a build that has begun.
pub fn named(names: &[(u32, u32)]) -> (MemFs, Db, Writer, OnlineBuild) {
    let fs = MemFs::new();
    let db = open_db(&fs, PATH, &small()).unwrap();
    let mut writer = writer(&db, 1).unwrap();
    for (key, name) in names {
        writer.commit(&named_as(*key, *name), false).unwrap();
    }
    let build = begin(&mut writer).unwrap();
    (fs, db, writer, build)
}

fn named_as(key: u32, name: u32) -> Change {
    vec![(key, Some(Row { name: Some(name), other: Vec::new() }))]
}

/// The name and the rows of a duplicate.
fn duplicate(error: Error) -> (Vec<u8>, [u32; 2]) {
    let Error::Duplicate { tree, key, rows } = error else { panic!("{error}") };
    assert_eq!(tree, INDEX);
    (key, rows.map(|row| u32::from_be_bytes(row.try_into().unwrap())))
}

pub fn gone(db: &Db) {
    assert!(!check(db, "after a duplicate"));
}

#[test]
fn rows_of_the_scan_with_the_same_key_are_a_duplicate() {
    for by_catch_up in [true, false] {
        let (_fs, db, mut writer, mut build) = named(&[(1, 10), (2, 20), (3, 10)]);
        fill(&mut build, &mut |_| ()).unwrap();
        let error = match by_catch_up {
            true => build.catch_up().unwrap_err(),
            false => build.finish().unwrap_err(),
        };
        assert_eq!(duplicate(error.clone()), (b"name\x0010".to_vec(), [1, 3]));
        assert!(error.to_string().contains("by_name"), "{error}");
        if by_catch_up {
            continue;
        }
        gone(&db);
        writer.changes = None;
        writer.commit(&named_as(3, 30), false).unwrap();
        build_alone(&db, &mut writer);
    }
}

fn build_alone(db: &Db, writer: &mut Writer) {
    let mut build = begin(writer).unwrap();
    fill(&mut build, &mut |_| ()).unwrap();
    build.finish().unwrap();
    writer.changes = None;
    assert!(check(db, "built at last"));
}

/// After a failure nothing of the build can be finished.
#[test]
fn a_build_that_has_failed_stays_so() {
    let (_fs, db, _writer, mut build) = named(&[(1, 10), (3, 10)]);
    fill(&mut build, &mut |_| ()).unwrap();
    duplicate(build.catch_up().unwrap_err());
    duplicate(build.catch_up().unwrap_err());
    duplicate(build.add(b"k", b"\0").unwrap_err());
    duplicate(build.finish().unwrap_err());
    gone(&db);
}

#[test]
fn what_is_added_too_late_fails_the_build() {
    let (_fs, db, _writer, mut build) = named(&[(1, 10)]);
    fill(&mut build, &mut |_| ()).unwrap();
    build.catch_up().unwrap();
    assert!(build.add(b"late", b"\0").is_err());
    assert!(build.finish().is_err());
    gone(&db);
}

#[test]
fn what_writers_make_twice_is_a_duplicate_that_fails_the_build_only() {
    // Of a row of the scan and a writer's; of two writers'; before the scan's end and after.
    for (first, later) in [((4, 10), None), ((4, 40), Some((5, 40))), ((1, 40), Some((2, 40)))] {
        let (_fs, db, mut writer, mut build) = named(&[(1, 10), (2, 20)]);
        fill(&mut build, &mut |_| ()).unwrap();
        writer.commit(&named_as(first.0, first.1), true).unwrap();
        build.catch_up().unwrap();
        if let Some((key, name)) = later {
            writer.commit(&named_as(key, name), false).unwrap();
        }
        build.catch_up().unwrap();
        writer.commit(&named_as(7, 70), false).unwrap();
        let (name, rows) = duplicate(build.finish().unwrap_err());
        assert!(name == format!("name\0{}", first.1).into_bytes() && rows[0] < rows[1]);
        gone(&db);
        assert_eq!(rows_of(&db), writer.rows.len(), "the writers' rows are there");
    }
}

pub fn rows_of(db: &Db) -> usize {
    rows(&db.tree("source").unwrap()).len()
}

#[test]
fn a_key_that_moves_is_no_duplicate_whatever_the_order() {
    // Whether the scan sees it before, and where rounds come in between.
    for case in 0..32 {
        let has = |bit: u32| case & 1 << bit != 0;
        let (_fs, db, mut writer, mut build) = named(&[(1, 10), (2, 20)]);
        if has(0) {
            fill(&mut build, &mut |_| ()).unwrap();
        }
        let steps = match has(1) {
            // It leaves the one row and then comes to the other, or the other way round.
            true => [(1, 30), (2, 10)],
            false => [(2, 10), (1, 30)],
        };
        writer.commit(&named_as(steps[0].0, steps[0].1), has(2)).unwrap();
        if has(0) && has(3) {
            build.catch_up().unwrap();
        }
        writer.commit(&named_as(steps[1].0, steps[1].1), has(2)).unwrap();
        if !has(0) {
            fill(&mut build, &mut |_| ()).unwrap();
        }
        if has(4) {
            build.catch_up().unwrap();
        }
        build.finish().unwrap();
        writer.changes = None;
        assert!(check(&db, &format!("case {case}")));
        let (value, _) = (db.tree(INDEX).unwrap().get(b"name\x0010").unwrap().unwrap(), ());
        assert_eq!(value[..5], [4, 0, 0, 0, 2], "it is the second row's");
    }
}

#[test]
fn what_is_rolled_back_or_prepared_counts_when_it_is_decided() {
    for commit in [true, false] {
        let (_fs, db, mut writer, mut build) = named(&[(1, 10), (2, 20)]);
        let mut txn = db.begin(Default::default()).unwrap();
        writer.put_in(&mut txn, &named_as(4, 10)).unwrap();
        let prepared = txn.prepare(b"x").unwrap();
        fill(&mut build, &mut |_| ()).unwrap();
        build.catch_up().unwrap();
        match commit {
            true => prepared.commit(WriteOptions::default()).unwrap(),
            false => prepared.rollback(WriteOptions::default()).unwrap(),
        }
        let result = build.finish();
        writer.changes = None;
        if commit {
            assert_eq!(duplicate(result.unwrap_err()), (b"name\x0010".to_vec(), [1, 4]));
            gone(&db);
        } else {
            result.unwrap();
            assert!(check(&db, "after the rollback"));
        }
    }
}

#[test]
fn the_end_waits_for_what_is_prepared() {
    let (_fs, db, mut writer, mut build) = named(&[(1, 10), (2, 20)]);
    fill(&mut build, &mut |_| ()).unwrap();
    let mut txn = db.begin(Default::default()).unwrap();
    writer.put_in(&mut txn, &named_as(4, 40)).unwrap();
    let prepared = txn.prepare(b"x").unwrap();
    let error = build.finish().unwrap_err();
    assert!(matches!(error, Error::LockTimeout { .. }), "{error}");
    gone(&db);
    // It has written to what is gone: its row cannot be committed without its entry.
    assert!(prepared.commit(WriteOptions::default()).is_ok() || rows_of(&db) == 2);
    writer.changes = None;
}

/// Of an unfinished build nothing is left, but what a prepared transaction has for other trees
/// stays: in the log, and in tables if it did not fit its memory.
#[test]
fn a_prepared_writer_of_unfinished_changes_keeps_the_rest() {
    for memory_bytes in [1 << 20, 1 << 10] {
        let (fs, db, writer, build) = named(&[(1, 10), (2, 20)]);
        let options = TransactionOptions { memory_bytes, ..Default::default() };
        let mut txn = db.begin(options).unwrap();
        for n in 100..200 {
            let row = Row { name: Some(n), other: vec![b'x'; 100] };
            writer.put_in(&mut txn, &vec![(n, Some(row))]).unwrap();
        }
        txn.prepare(b"x").unwrap();
        let mut disk = fs.crash_clone(0, CrashMode::Kept);
        for _ in 0..2 {
            let db = open_db(&disk, PATH, &small()).unwrap();
            gone(&db);
            disk = disk.crash_clone(0, CrashMode::Kept);
        }
        let db = open_db(&disk, PATH, &small()).unwrap();
        db.prepared().unwrap().remove(0).commit(WriteOptions::default()).unwrap();
        assert_eq!(rows_of(&db), 102);
        let mut writer = super::writer::writer(&db, 2).unwrap();
        build_alone(&db, &mut writer);
        drop(build);
    }
}

#[test]
fn what_is_no_entry_of_a_row_fails_the_build() {
    type Write = fn(&Tree) -> shaledb::Result<()>;
    let writes: [Write; 4] = [
        |changes| changes.put(b"k", b"\0"),
        |changes| changes.put(&entry_of_row(b"k", b"r"), b"\x01x"),
        |changes| changes.put(&entry_of_row(b"k", b"r"), b"\x05x"),
        |changes| changes.delete_range(b"a", b"b"),
    ];
    for write in writes {
        let (_fs, db, _writer, mut build) = named(&[(1, 10)]);
        fill(&mut build, &mut |_| ()).unwrap();
        write(build.tree()).unwrap();
        let error = build.catch_up().unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
        assert!(build.finish().is_err());
        gone(&db);
    }
    let (_fs, db, _writer, mut build) = named(&[]);
    assert!(build.add(b"k", b"\x05x").is_err(), "the value tells no row");
    assert!(build.finish().is_err());
    gone(&db);
}
