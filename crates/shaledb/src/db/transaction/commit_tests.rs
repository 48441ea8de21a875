use super::Scope;
use crate::base::sync::atomic::Ordering;
use crate::db::testing::Surprise;
use crate::fs::Env;
use crate::{Background, Concurrency, Config, Db, OpenOptions, TransactionOptions, WriteOptions};
use std::sync::{Arc, mpsc};

/// What is in the log when the database is closed has its large value, and is not refused.
#[test]
fn a_large_value_of_a_commit_that_meets_a_close_stays() {
    let clock = Arc::new(Surprise::default());
    let env = Env { clock: clock.clone(), ..Env::memory() };
    let config = Config { memory_bytes: 8 << 20, memtable_bytes: 64 << 10, ..Config::default() };
    let open = || {
        let (env, background) = (env.clone(), Background::Stepped);
        Db::open_in("/db", config.clone(), OpenOptions { env, background, read_only: false })
    };
    let db = open().unwrap();
    let tree = db.tree_or_create("t").unwrap();
    tree.put(b"before", b"").unwrap();
    let concurrency = Concurrency::Optimistic;
    let options = TransactionOptions { concurrency, ..TransactionOptions::default() };
    let mut txn = db.begin(options).unwrap();
    txn.put(&tree, b"large", &vec![7; 2 << 20]).unwrap();
    // Enough for the commit to look at the clock when it has been made and not yet synced.
    for n in 0..100u8 {
        txn.put(&tree, &[n], &[7; 1000]).unwrap();
    }
    let before = db.core().visible.load(Ordering::Acquire);
    let (closes, closing) = mpsc::channel();
    let other = db.clone();
    clock.arm(move || {
        let core = other.core().clone();
        if core.visible.load(Ordering::Acquire) == before {
            return false;
        }
        let other = other.clone();
        closes.send(std::thread::spawn(move || other.close())).unwrap();
        while !core.closed.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        true
    });
    let made = txn.commit(WriteOptions::SYNC);
    assert!(clock.has_come(), "it was closed meanwhile");
    closing.recv().unwrap().join().unwrap().unwrap();
    // A handle is the last to go.
    drop((tree, db));
    let db = open().unwrap();
    let value = db.tree("t").unwrap().get(b"large").unwrap();
    assert!(value.is_some_and(|value| value == vec![7; 2 << 20]));
    made.unwrap();
}

/// Those who wait for a row have it before the sync that the commit asks for, which they share.
#[test]
fn rows_are_free_before_the_sync() {
    for concurrency in [Concurrency::Pessimistic, Concurrency::Optimistic] {
        let clock = Arc::new(Surprise::default());
        let env = Env { clock: clock.clone(), ..Env::memory() };
        let options = OpenOptions { env, background: Background::Stepped, read_only: false };
        let db = Db::open_in("/db", Config::default(), options).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        let options = TransactionOptions { concurrency, ..TransactionOptions::default() };
        let mut txn = db.begin(options).unwrap();
        txn.put(&tree, b"k", b"first").unwrap();
        let (other, of_other) = (db.clone(), tree.clone());
        // What has been made and not yet synced.
        clock.arm(move || {
            let core = other.core();
            let visible = core.visible.load(Ordering::Acquire);
            if core.durable.load(Ordering::Acquire) >= visible {
                return false;
            }
            let Ok(mut second) = other.begin(TransactionOptions {
                lock_timeout: std::time::Duration::ZERO,
                ..TransactionOptions::default()
            }) else {
                return false;
            };
            let found = second.get_for_update(&of_other, b"k");
            found.is_ok_and(|value| value.is_some_and(|value| value == *b"first"))
        });
        txn.commit(WriteOptions::SYNC).unwrap();
        assert!(clock.has_come(), "{concurrency:?}: the row is locked during the sync");
        let core = db.core();
        assert_eq!(core.durable.load(Ordering::Acquire), core.visible.load(Ordering::Acquire));
    }
}

/// What is committed during the check is found, whether a flush takes it from the memtables before
/// these are looked into or after.
#[test]
fn a_flush_between_the_looks_of_a_check_hides_no_change() {
    let background = Background::Stepped;
    let options = OpenOptions { env: Env::memory(), background, read_only: false };
    let db = Db::open_in("/db", Config::default(), options).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let concurrency = Concurrency::Optimistic;
    for flushes_first in [false, true] {
        let options = TransactionOptions { concurrency, ..TransactionOptions::default() };
        let mut txn = db.begin(options).unwrap();
        txn.get_for_update(&tree, b"k").unwrap();
        txn.put(&tree, b"other", b"").unwrap();
        let core = db.core();
        let since = core.visible.load(Ordering::Acquire);
        let batch = txn.batch().unwrap();
        let come = std::cell::Cell::new(false);
        let check = |scope, since| {
            let mut is_first = false;
            match scope {
                Scope::All => is_first = !come.replace(true),
                Scope::Memtables if flushes_first => core.run_flush(&[&tree.inner]).unwrap(),
                Scope::Memtables => {}
            }
            let found = txn.check_all(scope, since);
            if is_first {
                found.clone().unwrap();
                tree.put(b"k", b"changed").unwrap();
                core.seal(&mut core.leader.lock(), [&*tree.inner]);
            }
            found
        };
        let touched = txn.touched();
        let mut committed = false;
        let done = core.store_large(&batch, |ops| {
            core.commit_checked(ops, &touched, since, &check, &mut |_| {
                committed = true;
                Ok(())
            })
        });
        assert!(matches!(done, Err(crate::Error::Conflict { .. })), "{done:?}");
        assert!(!committed);
    }
}
