//! What a database tells and refuses once it is closed.

use crate::optimistic;
use shaledb::{Config, Db, Env, Error, Isolation, OpenOptions, TransactionOptions, WriteOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// Who observes waits may be gone when the database is closed, while somebody waits.
#[test]
fn nobody_is_told_of_waits_after_the_close() {
    let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    let db = Db::open_in("/db", Config::default(), options).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let (closed, told, late) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
        Arc::new(AtomicU32::new(0)),
    );
    let (is_closed, tells, tells_late) = (closed.clone(), told.clone(), late.clone());
    db.observe_lock_waits(move |_, _| {
        tells.fetch_add(1, SeqCst);
        tells_late.fetch_add(u32::from(is_closed.load(SeqCst)), SeqCst);
    })
    .unwrap();
    let mut holder = db.begin(TransactionOptions::default()).unwrap();
    holder.put(&tree, b"k", b"1").unwrap();
    let lock_timeout = Duration::from_secs(60);
    let options = TransactionOptions { lock_timeout, ..TransactionOptions::default() };
    let mut waiter = db.begin(options).unwrap();
    let waits = std::thread::spawn(move || waiter.put(&tree, b"k", b"2"));
    while told.load(SeqCst) == 0 {
        std::thread::yield_now();
    }
    db.close().unwrap();
    closed.store(true, SeqCst);
    let refused = waits.join().unwrap();
    assert!(matches!(refused, Err(Error::Interrupted { .. } | Error::Closed)), "{refused:?}");
    assert_eq!(late.load(SeqCst), 0);
}

/// What was read for update is as it was when the transaction ends, also if that has written
/// nothing.
#[test]
fn an_optimistic_read_for_update_is_checked_without_a_write() {
    let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    let db = Db::open_in("/db", Config::default(), options).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]
    {
        for writes in [false, true] {
            let mut txn = db.begin(optimistic(isolation)).unwrap();
            let mut plain = db.begin(optimistic(isolation)).unwrap();
            txn.get_for_update(&tree, b"k").unwrap();
            plain.get(&tree, b"k").unwrap();
            if writes {
                let point = txn.savepoint();
                txn.put(&tree, b"other", b"").unwrap();
                txn.rollback_to(point).unwrap();
            }
            tree.put(b"k", b"changed").unwrap();
            let done = txn.commit(WriteOptions::default());
            assert!(
                matches!(done, Err(Error::Conflict { .. })),
                "{isolation:?} {writes}: {done:?}"
            );
            plain.commit(WriteOptions::default()).unwrap();
        }
        let mut txn = db.begin(optimistic(isolation)).unwrap();
        txn.get_for_update(&tree, b"k").unwrap();
        tree.put(b"other", b"changed").unwrap();
        txn.commit(WriteOptions::default()).unwrap();
    }
}
