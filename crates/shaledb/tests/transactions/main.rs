//! Transactions as a user has them: own writes, savepoints, locks, waiting, conflicts, deadlocks.

use shaledb::fs::mem::MemFs;
use shaledb::{
    Background, Concurrency, Config, Db, Env, Error, Isolation, LockMode, LockingScan, OnConflict,
    OpenOptions, ScanOptions, SyncPolicy, Transaction, TransactionOptions, Tree, WriteOptions,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

mod closing;
mod locked;
mod ranges;
mod scan_again;
mod scans;
mod views;

fn open() -> (Db, Tree) {
    let db = open_on(&MemFs::new());
    let tree = db.tree_or_create("t").unwrap();
    (db, tree)
}

fn open_on(fs: &MemFs) -> Db {
    open_with(fs, SyncPolicy::OnRequest)
}

fn open_with(fs: &MemFs, sync: SyncPolicy) -> Db {
    let env = Env { fs: Arc::new(fs.clone()), ..Env::memory() };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    let memtable_bytes = 64 << 10;
    let config = Config { memory_bytes: 16 << 20, memtable_bytes, sync, ..Config::default() };
    Db::open_in("/db", config, options).unwrap()
}

const DONE: WriteOptions = WriteOptions { sync: false };

fn at(isolation: Isolation) -> TransactionOptions {
    TransactionOptions { isolation, ..TransactionOptions::default() }
}

fn optimistic(isolation: Isolation) -> TransactionOptions {
    TransactionOptions { concurrency: Concurrency::Optimistic, ..at(isolation) }
}

fn rows(txn: &mut Transaction, tree: &Tree) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let scan = txn.scan(tree, ScanOptions::default()).unwrap();
    scan.map(|row| row.unwrap()).collect()
}

fn keys(txn: &mut Transaction, scan: &mut shaledb::LockingScan) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while scan.next(txn).unwrap() {
        found.push(scan.key().to_vec());
    }
    found
}

#[test]
fn own_writes_are_read_and_others_see_them_at_once_at_commit() {
    let (db, tree) = open();
    let other = db.tree_or_create("other").unwrap();
    for key in ["a", "b", "c", "d"] {
        tree.put(key.as_bytes(), b"0").unwrap();
    }
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    txn.put(&tree, b"b", b"1").unwrap();
    txn.put(&tree, b"bb", b"1").unwrap();
    txn.delete(&tree, b"c").unwrap();
    txn.put(&other, b"x", b"1").unwrap();
    let found = txn.multi_get(&tree, &["a", "b", "bb", "c", "e"]).unwrap();
    let found: Vec<Option<&[u8]>> = found.iter().map(|value| value.as_deref()).collect();
    assert_eq!(found, [Some(&b"0"[..]), Some(b"1"), Some(b"1"), None, None]);
    let before = txn.scan(&tree, ScanOptions::default()).unwrap();
    txn.delete_range(&tree, b"a", b"c").unwrap();
    txn.put(&tree, b"aa", b"2").unwrap();
    let keys: Vec<Vec<u8>> = rows(&mut txn, &tree).into_keys().collect();
    assert_eq!(keys, [b"aa".to_vec(), b"d".to_vec()]);
    let mut scan = txn.scan(&tree, ScanOptions::default()).unwrap();
    scan.seek_last().unwrap();
    assert_eq!(scan.key(), b"d");
    scan.prev().unwrap();
    assert_eq!(scan.key(), b"aa");
    assert_eq!(before.count(), 4, "a scan shows what was when it was made");
    assert_eq!(tree.scan::<&[u8]>(..).unwrap().count(), 4);
    assert_eq!(txn.writes(), 6);
    txn.commit(WriteOptions::SYNC).unwrap();
    let keys: Vec<Vec<u8>> = tree.scan::<&[u8]>(..).unwrap().map(|row| row.unwrap().0).collect();
    assert_eq!(keys, [b"aa".to_vec(), b"d".to_vec()]);
    assert_eq!(other.get(b"x").unwrap().unwrap(), b"1");
}

#[test]
fn a_commit_is_one_record_and_survives() {
    let fs = MemFs::new();
    let db = open_on(&fs);
    let tree = db.tree_or_create("t").unwrap();
    let large = vec![7u8; 2 << 20];
    for concurrency in [Concurrency::Pessimistic, Concurrency::Optimistic] {
        let mut txn =
            db.begin(TransactionOptions { concurrency, ..TransactionOptions::default() }).unwrap();
        txn.put(&tree, format!("{concurrency:?}").as_bytes(), b"1").unwrap();
        txn.put(&tree, format!("{concurrency:?} large").as_bytes(), &large).unwrap();
        assert_eq!(
            txn.get(&tree, format!("{concurrency:?} large").as_bytes()).unwrap().unwrap(),
            large
        );
        txn.commit(WriteOptions::SYNC).unwrap();
        let mut lost = db.begin(TransactionOptions::default()).unwrap();
        lost.put(&tree, b"lost", b"1").unwrap();
        lost.rollback();
    }
    let fs = fs.crash_clone(1, shaledb::fs::mem::CrashMode::Lost);
    drop((tree, db));
    let db = open_on(&fs);
    let tree = db.tree("t").unwrap();
    for name in ["Pessimistic", "Optimistic"] {
        assert_eq!(tree.get(name.as_bytes()).unwrap().unwrap(), b"1");
        assert_eq!(tree.get(format!("{name} large").as_bytes()).unwrap().unwrap(), large);
    }
    assert!(tree.get(b"lost").unwrap().is_none());
}

#[test]
fn where_every_commit_is_synced_those_of_transactions_are() {
    let fs = MemFs::new();
    let db = open_with(&fs, SyncPolicy::Always);
    let tree = db.tree_or_create("t").unwrap();
    for concurrency in [Concurrency::Pessimistic, Concurrency::Optimistic] {
        for decided in [false, true] {
            let options = TransactionOptions { concurrency, ..TransactionOptions::default() };
            let mut txn = db.begin(options).unwrap();
            let key = format!("{concurrency:?} {decided}");
            txn.put(&tree, key.as_bytes(), b"1").unwrap();
            if decided {
                txn.prepare(b"x").unwrap().commit(DONE).unwrap();
            } else {
                txn.commit(DONE).unwrap();
            }
            let crashed = fs.crash_clone(1, shaledb::fs::mem::CrashMode::Lost);
            let found = open_on(&crashed).tree("t").unwrap().get(key.as_bytes()).unwrap();
            assert!(found.is_some(), "{key}");
        }
    }
}

#[test]
fn savepoints_undo_and_keep_locks() {
    let (db, tree) = open();
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    txn.put(&tree, b"a", b"1").unwrap();
    let first = txn.savepoint();
    txn.put(&tree, b"a", b"2").unwrap();
    txn.put(&tree, b"b", b"2").unwrap();
    let second = txn.savepoint();
    txn.delete_range(&tree, b"a", b"z").unwrap();
    txn.rollback_to(second).unwrap();
    assert_eq!(rows(&mut txn, &tree).len(), 2);
    txn.rollback_to(first).unwrap();
    txn.put(&tree, b"c", b"3").unwrap();
    txn.rollback_to(first).unwrap();
    assert_eq!(txn.get(&tree, b"a").unwrap().unwrap(), b"1");
    assert_eq!(rows(&mut txn, &tree).len(), 1);
    assert!(txn.rollback_to(second).is_err(), "it was given up");
    let mut other = db.begin(TransactionOptions::default()).unwrap();
    let before = other.savepoint();
    assert!(txn.rollback_to(before).is_err(), "it is of another transaction");
    assert!(matches!(other.put(&tree, b"b", b""), Err(Error::LockQueued { .. })));
    txn.commit(DONE).unwrap();
    other.put(&tree, b"b", b"").unwrap();
    assert_eq!(tree.scan::<&[u8]>(..).unwrap().count(), 1);
}

#[test]
fn a_dropped_transaction_leaves_nothing() {
    let (db, tree) = open();
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    txn.put(&tree, b"a", b"1").unwrap();
    drop(txn);
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    txn.put(&tree, b"a", b"2").unwrap();
    assert!(tree.get(b"a").unwrap().is_none());
}

#[test]
fn locks_are_waited_for_in_turn() {
    let (db, tree) = open();
    let mut a = db.begin(TransactionOptions::default()).unwrap();
    let mut b = db.begin(TransactionOptions::default()).unwrap();
    a.put(&tree, b"k", b"a").unwrap();
    let told = b.put(&tree, b"k", b"b").unwrap_err().to_string();
    let wanted = format!("transaction {} blocks", a.id());
    assert!(told.contains(&wanted) && told.contains("key `k` of tree `t`"), "{told}");
    a.commit(DONE).unwrap();
    b.put(&tree, b"k", b"b").unwrap();
    b.commit(DONE).unwrap();
    assert_eq!(tree.get(b"k").unwrap().unwrap(), b"b");
    // Shared locks do not exclude each other.
    let mut a = db.begin(TransactionOptions::default()).unwrap();
    let mut b = db.begin(TransactionOptions::default()).unwrap();
    assert!(a.get_for_share(&tree, b"k").unwrap().is_some());
    assert!(b.get_for_share(&tree, b"k").unwrap().is_some());
    assert!(matches!(b.put(&tree, b"k", b"c"), Err(Error::LockQueued { .. })));
    a.rollback();
    b.put(&tree, b"k", b"c").unwrap();
}

#[test]
fn the_victim_of_a_deadlock_is_rolled_back_and_told_why() {
    let (db, tree) = open();
    let mut a = db.begin(TransactionOptions::default()).unwrap();
    let mut b = db.begin(TransactionOptions::default()).unwrap();
    a.put(&tree, b"x", b"a").unwrap();
    a.put(&tree, b"z", b"a").unwrap();
    b.put(&tree, b"y", b"b").unwrap();
    assert!(matches!(a.put(&tree, b"y", b"a"), Err(Error::LockQueued { .. })));
    let error = b.put(&tree, b"x", b"b").unwrap_err();
    let Error::Deadlock(deadlock) = &error else { panic!("{error:?}") };
    assert_eq!(deadlock.victim, b.id());
    let told = error.to_string();
    for part in [
        format!("transaction {} (2 writes) waits for", a.id()),
        "a lock to write on key `y` of tree `t`".to_owned(),
        format!("transaction {} gave way", b.id()),
    ] {
        assert!(told.contains(&part), "{part} is not in {told}");
    }
    assert!(error.is_retryable());
    assert!(matches!(b.get(&tree, b"x"), Err(Error::RolledBack(_))));
    assert!(matches!(b.commit(DONE), Err(Error::RolledBack(_))));
    a.put(&tree, b"y", b"a").unwrap();
    a.commit(DONE).unwrap();
    assert_eq!(tree.get(b"y").unwrap().unwrap(), b"a");
}

#[test]
fn first_who_commits_wins() {
    for options in [at(Isolation::RepeatableRead), optimistic(Isolation::RepeatableRead)] {
        let (db, tree) = open();
        tree.put(b"k", b"0").unwrap();
        // Of what the snapshot does not show, some is in tables by now.
        for flushed in [false, true] {
            let mut slow = db.begin(options).unwrap();
            assert!(slow.get(&tree, b"k").unwrap().is_some());
            let mut fast = db.begin(options).unwrap();
            fast.put(&tree, b"k", b"fast").unwrap();
            fast.commit(DONE).unwrap();
            if flushed {
                db.flush().unwrap();
                db.compact().unwrap();
            }
            let result = slow.put(&tree, b"k", b"slow").and_then(|()| slow.commit(DONE));
            let error = result.unwrap_err();
            assert!(matches!(error, Error::Conflict { .. }), "{error}");
            assert!(error.to_string().contains("changed key `k` of tree `t`"), "{error}");
        }
        // A range delete, and one that meets a change.
        let mut slow = db.begin(options).unwrap();
        assert!(slow.get(&tree, b"q").unwrap().is_none());
        tree.delete_range(b"p", b"r").unwrap();
        assert!(slow.put(&tree, b"q", b"1").and_then(|()| slow.commit(DONE)).is_err());
        let mut slow = db.begin(options).unwrap();
        assert!(slow.get(&tree, b"q").unwrap().is_none());
        tree.put(b"q", b"1").unwrap();
        assert!(slow.delete_range(&tree, b"p", b"r").and_then(|()| slow.commit(DONE)).is_err());
    }
    // As InnoDB has it.
    let (db, tree) = open();
    tree.put(b"k", b"0").unwrap();
    let options = TransactionOptions { on_conflict: OnConflict::Latest, ..Default::default() };
    let mut slow = db.begin(options).unwrap();
    assert_eq!(slow.get(&tree, b"k").unwrap().unwrap(), b"0");
    tree.put(b"k", b"1").unwrap();
    assert_eq!(slow.get(&tree, b"k").unwrap().unwrap(), b"0");
    assert_eq!(slow.get_for_update(&tree, b"k").unwrap().unwrap(), b"1");
    slow.put(&tree, b"k", b"2").unwrap();
    slow.commit(DONE).unwrap();
    assert_eq!(tree.get(b"k").unwrap().unwrap(), b"2");
}

#[test]
fn an_optimistic_transaction_respects_locks() {
    let (db, tree) = open();
    let mut locker = db.begin(TransactionOptions::default()).unwrap();
    assert!(locker.get_for_update(&tree, b"k").unwrap().is_none());
    let mut txn = db.begin(optimistic(Isolation::Serializable)).unwrap();
    txn.put(&tree, b"k", b"1").unwrap();
    assert!(matches!(txn.commit(DONE), Err(Error::Conflict { .. })));
    locker.put(&tree, b"k", b"2").unwrap();
    locker.commit(DONE).unwrap();
    assert_eq!(tree.get(b"k").unwrap().unwrap(), b"2");
}

#[test]
fn what_an_optimistic_transaction_has_read_must_not_change() {
    let change: [fn(&Tree); 4] = [
        |tree| tree.put(b"k", b"1").unwrap(),
        |tree| tree.delete(b"k").unwrap(),
        |tree| tree.delete_range(b"a", b"z").unwrap(),
        |tree| {
            let mut ingest = tree.ingest().unwrap();
            ingest.add(b"k", b"1").unwrap();
            ingest.finish().unwrap();
        },
    ];
    let read: [fn(&mut Transaction, &Tree); 3] = [
        |txn, tree| drop(txn.get(tree, b"k").unwrap()),
        |txn, tree| drop(rows(txn, tree)),
        |txn, tree| drop(txn.get_for_share(tree, b"k").unwrap()),
    ];
    for (change_index, change) in change.iter().enumerate() {
        for (read_index, read) in read.iter().enumerate() {
            for changed in [false, true] {
                for flushed in [false, true] {
                    let (db, tree) = open();
                    tree.put(b"k", b"0").unwrap();
                    let mut txn = db.begin(optimistic(Isolation::Serializable)).unwrap();
                    read(&mut txn, &tree);
                    txn.put(&tree, b"result", b"").unwrap();
                    if changed {
                        change(&tree);
                    }
                    if flushed {
                        db.flush().unwrap();
                    }
                    let label = format!("{change_index} {read_index} {changed} {flushed}");
                    match txn.commit(DONE) {
                        Ok(()) => assert!(!changed, "{label}"),
                        Err(Error::Conflict { .. }) => assert!(changed, "{label}"),
                        Err(error) => panic!("{label}: {error}"),
                    }
                }
            }
        }
    }
}

#[test]
fn bounds_are_kept() {
    let (db, tree) = open();
    let repeatable = optimistic(Isolation::RepeatableRead);
    let options = TransactionOptions { memory_bytes: 10_000, ..repeatable };
    let mut txn = db.begin(options).unwrap();
    txn.put(&tree, b"a", &[0; 9_000]).unwrap();
    assert!(matches!(txn.put(&tree, b"b", &[0; 9_000]), Err(Error::TransactionFull { .. })));
    txn.commit(DONE).unwrap();
    assert!(tree.contains(b"a").unwrap() && !tree.contains(b"b").unwrap());
    let options = TransactionOptions { memory_bytes: 1 << 40, ..options };
    assert!(db.begin(options).is_err());

    // All locks of the database together may take a sixteenth of its 16 MiB. Every other key is of
    // the other transaction, so that neither can have a range.
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    let mut other = db.begin(TransactionOptions::default()).unwrap();
    let refused = (0u64..).find_map(|n| {
        let txn = if n % 2 == 0 { &mut txn } else { &mut other };
        txn.get_for_update(&tree, &n.to_be_bytes()).err().map(|error| (n, error))
    });
    let Some((count, Error::LocksFull { bytes_max })) = refused else { panic!() };
    assert_eq!(bytes_max, 1 << 20);
    assert!((4_000..12_000).contains(&count), "{count}");
    assert!(txn.put(&tree, &0u64.to_be_bytes(), b"").is_ok(), "what is locked can be written");
}

#[test]
fn misuse_is_refused() {
    let (db, tree) = open();
    let (other, foreign) = open();
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    assert!(txn.put(&foreign, b"a", b"").unwrap_err().to_string().contains("another database"));
    assert!(matches!(txn.put(&tree, &[0; 70_000], b""), Err(Error::InvalidArgument(_))));
    let snapshot = db.snapshot();
    let options = ScanOptions { snapshot: Some(&snapshot), ..ScanOptions::default() };
    assert!(txn.scan(&tree, options).is_err());
    let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Shared).unwrap();
    let mut second = db.begin(TransactionOptions::default()).unwrap();
    assert!(scan.next(&mut second).unwrap_err().to_string().contains("the scan is of"));
    txn.put(&tree, b"a", b"").unwrap();
    db.drop_tree("t").unwrap();
    assert!(matches!(txn.commit(DONE), Err(Error::NoSuchTree(_))));
    drop(other);
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    db.clone().close().unwrap();
    assert!(matches!(txn.get(&tree, b"a"), Err(Error::Closed)));
    assert!(matches!(db.begin(TransactionOptions::default()), Err(Error::Closed)));
}

/// Transfers between accounts from several threads: the sum stays, whoever looks.
#[test]
fn transfers_from_threads_keep_the_sum() {
    const ACCOUNTS: u64 = 8;
    let modes = [
        (Isolation::RepeatableRead, Concurrency::Pessimistic),
        (Isolation::RepeatableRead, Concurrency::Optimistic),
        (Isolation::Serializable, Concurrency::Pessimistic),
        (Isolation::Serializable, Concurrency::Optimistic),
    ];
    for (isolation, concurrency) in modes {
        let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
        let db = Db::open_in("/db", Config::default(), options).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        for account in 0..ACCOUNTS {
            tree.put(&account.to_be_bytes(), &100u64.to_le_bytes()).unwrap();
        }
        let lock_timeout = Duration::from_secs(20);
        let options =
            TransactionOptions { isolation, concurrency, lock_timeout, ..Default::default() };
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let transfer = |txn: &mut Transaction, from: u64, to: u64| -> shaledb::Result<()> {
            for (account, plus) in [(from, false), (to, true)] {
                let key = account.to_be_bytes();
                let before = number(&txn.get(&tree, &key)?.unwrap());
                let after = if plus { before + 1 } else { before.wrapping_sub(1) };
                txn.put(&tree, &key, &after.to_le_bytes())?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                let (db, transfer) = (&db, &transfer);
                scope.spawn(move || {
                    let mut done = 0;
                    while done < 100 {
                        let (from, to) = ((thread + done) % ACCOUNTS, (done * 3 + 1) % ACCOUNTS);
                        if from == to {
                            done += 1;
                            continue;
                        }
                        let mut txn = db.begin(options).unwrap();
                        match transfer(&mut txn, from, to).and_then(|()| txn.commit(DONE)) {
                            Ok(()) => done += 1,
                            Err(error) => assert!(error.is_retryable(), "{error}"),
                        }
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..50 {
                    let mut txn = db.begin(options).unwrap();
                    match txn.scan(&tree, ScanOptions::default()) {
                        Ok(scan) => {
                            let sum = scan
                                .fold(0u64, |sum, row| sum.wrapping_add(number(&row.unwrap().1)));
                            assert_eq!(sum, 100 * ACCOUNTS);
                        }
                        Err(error) => assert!(error.is_retryable(), "{error}"),
                    }
                }
            });
        });
        let sum = tree
            .scan::<&[u8]>(..)
            .unwrap()
            .fold(0u64, |sum, row| sum.wrapping_add(number(&row.unwrap().1)));
        assert_eq!(sum, 100 * ACCOUNTS, "{isolation:?} {concurrency:?}");
    }
}

/// What a transaction may lock is bounded; that keys were made ranges for it is counted.
#[test]
fn the_statistics_count_escalations_of_locks() {
    let (db, tree) = open();
    assert_eq!(db.stats().lock_escalations, 0);
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    for n in 0..20_000u32 {
        txn.put(&tree, &n.to_be_bytes(), b"").unwrap();
    }
    txn.commit(DONE).unwrap();
    let stats = db.stats();
    assert!(stats.lock_escalations > 0);
    let told = format!("locks of keys made ranges: {} times", stats.lock_escalations);
    assert!(stats.to_string().contains(&told), "{stats}");
}

#[test]
fn a_duplicate_met_twice_is_shared() {
    let (db, tree) = open();
    tree.put(b"k", b"0").unwrap();
    let mut a = db.begin(at(Isolation::ReadCommitted)).unwrap();
    let mut b = db.begin(at(Isolation::ReadCommitted)).unwrap();
    for txn in [&mut a, &mut b] {
        for _ in 0..2 {
            assert!(txn.insert_or_share(&tree, b"k", b"1").unwrap().is_some());
        }
    }
    b.rollback();
    // So it is after a scan that had no use for it; what an earlier call has locked stays so.
    let mut c = db.begin(at(Isolation::ReadCommitted)).unwrap();
    for free in [true, false] {
        let asked = if free { a.get_for_share(&tree, b"k") } else { a.get_for_update(&tree, b"k") };
        assert!(asked.unwrap().is_some());
        assert!(a.get_for_update(&tree, b"k").unwrap().is_some());
        assert!(!a.unlock(&tree, b"k").unwrap());
        assert_eq!(c.get_for_share(&tree, b"k").is_ok(), free);
        c.rollback();
        c = db.begin(at(Isolation::ReadCommitted)).unwrap();
    }
}
