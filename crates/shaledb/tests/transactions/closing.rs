//! What a database tells and refuses once it is closed.

use shaledb::{Config, Db, Env, Error, OpenOptions, TransactionOptions};
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
