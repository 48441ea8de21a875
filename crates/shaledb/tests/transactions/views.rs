//! What statements at read committed see, and what ends with the database.

use super::{DONE, at, open, optimistic};
use shaledb::{Error, Isolation, TransactionOptions, WriteOptions};
use std::time::{Duration, Instant};

/// As of InnoDB: the statement's view is taken by its first plain read, so after its locks.
#[test]
fn a_statement_that_has_waited_for_a_lock_reads_what_came_before() {
    let (db, tree) = open();
    tree.put(b"sum", b"0").unwrap();
    let mut other = db.begin(at(Isolation::ReadCommitted)).unwrap();
    other.put(&tree, b"item", b"5").unwrap();
    let mut txn = db.begin(at(Isolation::ReadCommitted)).unwrap();
    txn.begin_statement().unwrap();
    other.commit(DONE).unwrap();
    txn.get_for_update(&tree, b"sum").unwrap();
    assert_eq!(txn.get(&tree, b"item").unwrap().unwrap(), b"5");
    // From then on it is the same.
    tree.put(b"item", b"6").unwrap();
    assert_eq!(txn.get(&tree, b"item").unwrap().unwrap(), b"5");
    assert_eq!(txn.multi_get(&tree, &[b"item"]).unwrap()[0].as_deref(), Some(&b"5"[..]));
    txn.begin_statement().unwrap();
    assert_eq!(txn.get(&tree, b"item").unwrap().unwrap(), b"6");
}

#[test]
fn whoever_waits_for_a_lock_learns_that_the_database_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let db = shaledb::Db::open(dir.path(), shaledb::Config::default()).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let mut holder = db.begin(TransactionOptions::default()).unwrap();
    holder.put(&tree, b"a", b"1").unwrap();
    let waiter = std::thread::spawn({
        let (db, tree) = (db.clone(), tree.clone());
        move || {
            let lock_timeout = Duration::MAX;
            let options = TransactionOptions { lock_timeout, ..TransactionOptions::default() };
            db.begin(options).unwrap().put(&tree, b"a", b"2")
        }
    });
    let until = Instant::now() + Duration::from_secs(60);
    while !db.transactions().unwrap().iter().any(|txn| txn.waits_for.is_some()) {
        assert!(Instant::now() < until, "it comes to wait");
        std::thread::yield_now();
    }
    let closing = db.clone();
    closing.close().unwrap();
    let refused = waiter.join().unwrap();
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
    drop(holder);
}

#[test]
fn an_optimistic_commit_of_which_nothing_is_left_writes_nothing() {
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]
    {
        for options in [WriteOptions::SYNC, DONE] {
            let (db, a) = open();
            let b = db.tree_or_create("b").unwrap();
            let mut txn = db.begin(optimistic(isolation)).unwrap();
            txn.put(&a, b"a", b"1").unwrap();
            let before = txn.savepoint();
            txn.put(&b, b"b", b"1").unwrap();
            txn.rollback_to(before).unwrap();
            txn.forget(&a).unwrap();
            txn.commit(options).unwrap();
            a.put(b"c", b"1").unwrap();
            assert_eq!((a.get(b"a").unwrap(), b.get(b"b").unwrap()), (None, None));
        }
    }
}
