//! What fails, or whose tree is gone, leaves no file behind.

mod common;

use common::{files, open_on};
use shaledb::fs::mem::{Call, Fault, MemFs};
use shaledb::{Batch, TransactionOptions, WriteOptions};

const DONE: WriteOptions = WriteOptions { sync: false };

fn manifests(fs: &MemFs) -> usize {
    fs.files().iter().filter(|(path, _)| path.to_string_lossy().contains("MANIFEST")).count()
}

/// Whoever restarts a service tries again and again.
#[test]
fn opens_that_fail_at_the_log_leave_one_manifest() {
    let fs = MemFs::new();
    let db = open_on(&fs).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    for n in 0..200u32 {
        tree.put_with(&n.to_be_bytes(), &[7; 100], WriteOptions::SYNC).unwrap();
    }
    drop(tree);
    db.close().unwrap();
    let logs = fs.files().into_iter().filter(|(path, _)| path.to_string_lossy().ends_with(".wal"));
    let (log, bytes) = logs.max_by_key(|(_, bytes)| *bytes).unwrap();
    assert!(bytes > 10_000 && fs.corrupt(&log, bytes / 2, 1));
    for _ in 0..10 {
        assert!(open_on(&fs).is_err_and(|error| error.is_corruption()));
        assert_eq!(manifests(&fs), 1, "{:?}", fs.files());
    }
    assert!(fs.corrupt(&log, bytes / 2, 1));
    assert_eq!(open_on(&fs).unwrap().tree("t").unwrap().scan::<&[u8]>(..).unwrap().count(), 200);
}

/// Large values, in memory and in tables of their own.
#[test]
fn what_is_prepared_for_a_tree_that_is_dropped_leaves_no_file() {
    for memory_bytes in [1 << 20, 10_000] {
        for commits in [true, false] {
            let fs = MemFs::new();
            let db = open_on(&fs).unwrap();
            let (kept, gone) =
                (db.tree_or_create("kept").unwrap(), db.tree_or_create("gone").unwrap());
            let options = TransactionOptions { memory_bytes, ..TransactionOptions::default() };
            let mut txn = db.begin(options).unwrap();
            for n in 0..4u8 {
                txn.put(&kept, &[n], &[n; 5000]).unwrap();
                txn.put(&gone, &[n], &[n; 5000]).unwrap();
            }
            let prepared = txn.prepare(b"xid").unwrap();
            assert_eq!(files(&fs, ".blob"), 8);
            db.drop_tree("gone").unwrap();
            if commits { prepared.commit(DONE) } else { prepared.rollback(DONE) }.unwrap();
            let left = if commits { 4 } else { 0 };
            let what = format!("{memory_bytes} {commits} {:?}", fs.files());
            assert_eq!((files(&fs, ".blob"), files(&fs, ".run")), (left, 0), "{what}");
            assert_eq!(kept.scan::<&[u8]>(..).unwrap().count(), left);
            db.drop_tree("kept").unwrap();
            drop((kept, gone));
            db.close().unwrap();
            assert_eq!(files(&fs, ".blob"), 0, "{what}");
        }
    }
}

/// The tree goes while the batch waits for its turn: as if it had gone just before the commit.
#[test]
fn a_tree_dropped_before_the_prepare_leaves_no_file() {
    for memory_bytes in [1 << 20, 10_000] {
        let fs = MemFs::new();
        let db = open_on(&fs).unwrap();
        let (kept, gone) = (db.tree_or_create("kept").unwrap(), db.tree_or_create("gone").unwrap());
        let options = TransactionOptions { memory_bytes, ..TransactionOptions::default() };
        let mut txn = db.begin(options).unwrap();
        for n in 0..4u8 {
            txn.put(&kept, &[n], &[n; 5000]).unwrap();
            txn.put(&gone, &[n], &[n; 5000]).unwrap();
        }
        db.drop_tree("gone").unwrap();
        match txn.prepare(b"xid") {
            // What is in memory is refused, as a commit is.
            Err(error) => assert!(matches!(error, shaledb::Error::NoSuchTree(_)), "{error}"),
            Ok(prepared) => prepared.commit(DONE).unwrap(),
        }
        let left = kept.scan::<&[u8]>(..).unwrap().count();
        assert_eq!((files(&fs, ".blob"), files(&fs, ".run")), (left, 0), "{:?}", fs.files());
    }
}

#[test]
fn a_batch_for_a_tree_that_is_dropped_leaves_no_file() {
    let fs = MemFs::new();
    let db = open_on(&fs).unwrap();
    let gone = db.tree_or_create("gone").unwrap();
    let mut batch = Batch::new();
    batch.put(&gone, b"a", &[1; 5000]);
    db.drop_tree("gone").unwrap();
    assert!(db.write(&batch, DONE).is_err());
    assert_eq!(files(&fs, ".blob"), 0);
}

/// The device may have a record that was cut off, with the number that the next one gets in the
/// next file.
#[test]
fn what_was_cut_off_a_log_is_off_the_device_before_the_next_log_begins() {
    let fs = MemFs::new();
    let db = open_on(&fs).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    // As much as a log is worth that is left for the next one, which is made ahead.
    (0..14u8).for_each(|n| tree.put(&[n], &[n; 3000]).unwrap());
    db.sync().unwrap();
    while db.step().unwrap() {}
    fs.keep_trace();
    fs.fail(Call::Append, 1, Fault::ShortFull, true);
    assert!(tree.put(b"b", b"1").unwrap_err().is_disk_full());
    tree.flush().unwrap();
    tree.put_with(b"b", b"2", WriteOptions::SYNC).unwrap();
    let trace = fs.trace();
    let of_old = |line: &&String| line.contains("000003.wal");
    let next = trace.iter().position(|line| line.contains(".wal") && !of_old(&line));
    let next = next.unwrap_or_else(|| panic!("another log begins: {trace:#?}"));
    let synced = trace[..next].iter().filter(of_old).any(|line| line.contains("sync"));
    assert!(synced, "{trace:#?}");
}
