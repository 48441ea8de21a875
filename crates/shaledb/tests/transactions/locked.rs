//! Keys that are locked one by one, and looked up together.

use crate::{DONE, at, keys, open, open_on, optimistic};
use shaledb::fs::mem::MemFs;
use shaledb::{
    Background, Concurrency, Config, Db, Env, Error, Isolation, LockMode, OnConflict, OpenOptions,
    ScanOptions, Transaction, TransactionOptions, Tree, WriteOptions,
};
use std::time::Duration;

/// What is found together, which is what locking reads find one by one.
fn found(txn: &mut Transaction, tree: &Tree, keys: &[&str]) -> Vec<Option<String>> {
    let text = |value: shaledb::Value| String::from_utf8(value.into_vec()).unwrap();
    let many = txn.multi_get_locked(tree, keys).unwrap();
    let many: Vec<Option<String>> = many.into_iter().map(|value| value.map(text)).collect();
    for (key, value) in keys.iter().zip(&many) {
        let one = txn.get_for_share(tree, key.as_bytes()).unwrap().map(text);
        assert_eq!(one, *value, "{key}");
    }
    many
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|value| (!value.is_empty()).then(|| (*value).to_owned())).collect()
}

/// In a deep level, in level 0, in a memtable, deleted in each, by a range, large, not there.
#[test]
fn locked_keys_are_found_wherever_they_are() {
    let (db, tree) = open();
    let large = "x".repeat(100_000);
    for key in ["deep", "deep 0", "deep gone", "range", "deep mem"] {
        tree.put(key.as_bytes(), b"deep").unwrap();
    }
    tree.put(b"large", large.as_bytes()).unwrap();
    tree.compact().unwrap();
    for key in ["deep 0", "zero", "zero gone"] {
        tree.put(key.as_bytes(), b"zero").unwrap();
    }
    tree.delete(b"deep gone").unwrap();
    tree.flush().unwrap();
    for key in ["mem", "deep mem"] {
        tree.put(key.as_bytes(), b"mem").unwrap();
    }
    tree.delete(b"zero gone").unwrap();
    tree.delete_range(b"range", b"rangf").unwrap();
    let keys = [
        "deep",
        "zero gone",
        "deep 0",
        "none",
        "deep gone",
        "range",
        "mem",
        "zero",
        "deep mem",
        "large",
        "mem",
    ];
    let expected = ["deep", "", "zero", "", "", "", "mem", "zero", "mem", &large, "mem"];
    for options in
        [at(Isolation::ReadCommitted), at(Isolation::Serializable), TransactionOptions::default()]
    {
        for mode in [LockMode::Shared, LockMode::Exclusive] {
            let mut txn = db.begin(options).unwrap();
            for key in keys {
                txn.lock(&tree, key.as_bytes(), mode).unwrap();
            }
            assert_eq!(found(&mut txn, &tree, &keys), some(&expected));
            // Some become one lock of a range.
            txn.escalate_locks().unwrap();
            assert_eq!(found(&mut txn, &tree, &keys), some(&expected));
            assert!(found(&mut txn, &tree, &[]).is_empty());
        }
    }
}

#[test]
fn what_was_committed_since_the_snapshot_is_found_and_own_writes_on_top() {
    let (db, tree) = open();
    for key in ["a", "b", "c", "d", "e"] {
        tree.put(key.as_bytes(), b"0").unwrap();
    }
    tree.compact().unwrap();
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    txn.take_snapshot().unwrap();
    let mut other = db.begin(TransactionOptions::default()).unwrap();
    other.put(&tree, b"a", b"1").unwrap();
    other.delete(&tree, b"b").unwrap();
    other.put(&tree, b"new", b"1").unwrap();
    assert!(matches!(txn.lock(&tree, b"a", LockMode::Shared), Err(Error::LockQueued { .. })));
    other.commit(DONE).unwrap();
    let keys = ["a", "b", "c", "d", "e", "new"];
    for key in &keys[..5] {
        txn.lock(&tree, key.as_bytes(), LockMode::Shared).unwrap();
    }
    txn.lock(&tree, b"new", LockMode::Shared).unwrap();
    assert_eq!(found(&mut txn, &tree, &keys), some(&["1", "", "0", "0", "0", "1"]));
    let before = txn.savepoint();
    txn.put(&tree, b"c", b"mine").unwrap();
    txn.delete(&tree, b"d").unwrap();
    assert_eq!(found(&mut txn, &tree, &keys), some(&["1", "", "mine", "", "0", "1"]));
    // What was locked before the savepoint and after it stays locked.
    txn.lock(&tree, b"f", LockMode::Shared).unwrap();
    txn.rollback_to(before).unwrap();
    assert_eq!(found(&mut txn, &tree, &keys), some(&["1", "", "0", "0", "0", "1"]));
    assert_eq!(found(&mut txn, &tree, &["f"]), some(&[""]));
    // Plain reads see the snapshot as before.
    let plain = txn.multi_get(&tree, &["a", "b", "new"]).unwrap();
    assert_eq!(plain[0].as_deref(), Some(&b"0"[..]));
    assert!(plain[1].is_some() && plain[2].is_none());
}

/// What has spilled is among the own writes.
#[test]
fn own_writes_that_have_spilled_are_found() {
    let (db, tree) = open();
    let options = TransactionOptions { memory_bytes: 1, ..TransactionOptions::default() };
    let mut txn = db.begin(options).unwrap();
    for n in 0..2_000u32 {
        txn.put(&tree, format!("{n:05}").as_bytes(), n.to_string().as_bytes()).unwrap();
    }
    assert_eq!(found(&mut txn, &tree, &["00000", "01999", "00777"]), some(&["0", "1999", "777"]));
}

/// The lock that a read with the same mode takes: it waits for the same, and makes the same wait.
#[test]
fn a_lock_is_that_of_the_read() {
    let (db, tree) = open();
    let none = TransactionOptions { lock_timeout: Duration::ZERO, ..at(Isolation::ReadCommitted) };
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]
    {
        for mode in [LockMode::Shared, LockMode::Exclusive] {
            let mut shown = Vec::new();
            for looks_up in [false, true] {
                let mut txn = db.begin(at(isolation)).unwrap();
                match (looks_up, mode) {
                    (false, _) => txn.lock(&tree, b"k", mode).unwrap(),
                    (true, LockMode::Shared) => drop(txn.get_for_share(&tree, b"k").unwrap()),
                    (true, LockMode::Exclusive) => drop(txn.get_for_update(&tree, b"k").unwrap()),
                }
                let mut other = db.begin(none).unwrap();
                let shared = other.lock(&tree, b"k", LockMode::Shared);
                assert_eq!(shared.is_ok(), mode == LockMode::Shared);
                let exclusive = other.lock(&tree, b"k", LockMode::Exclusive);
                assert!(matches!(exclusive, Err(Error::LockTimeout { .. })));
                assert!(other.put(&tree, b"k", b"1").is_err());
                drop(other);
                let locks = db.locks(10).unwrap();
                shown.push(locks.into_iter().map(|lock| lock.text).collect::<Vec<_>>());
                assert_eq!(txn.unlock(&tree, b"k").unwrap(), isolation == Isolation::ReadCommitted);
            }
            assert_eq!(shown[0], shown[1]);
            assert_eq!(shown[0].len(), 1);
        }
    }
}

#[test]
fn a_lock_is_upgraded_and_falls_back() {
    let (db, tree) = open();
    let (mut a, mut b) = (
        db.begin(at(Isolation::ReadCommitted)).unwrap(),
        db.begin(at(Isolation::ReadCommitted)).unwrap(),
    );
    a.lock(&tree, b"k", LockMode::Shared).unwrap();
    a.lock(&tree, b"k", LockMode::Exclusive).unwrap();
    assert!(matches!(b.lock(&tree, b"k", LockMode::Shared), Err(Error::LockQueued { .. })));
    assert!(!a.unlock(&tree, b"k").unwrap(), "it is shared again");
    b.lock(&tree, b"k", LockMode::Shared).unwrap();
    // Each waits for the other to let go of what it holds shared.
    assert!(matches!(a.lock(&tree, b"k", LockMode::Exclusive), Err(Error::LockQueued { .. })));
    let error = b.lock(&tree, b"k", LockMode::Exclusive).unwrap_err();
    assert!(matches!(error, Error::Deadlock(_)), "{error}");
    assert!(matches!(b.lock(&tree, b"k", LockMode::Shared), Err(Error::RolledBack(_))));
    assert!(matches!(b.multi_get_locked(&tree, &["k"]), Err(Error::RolledBack(_))));
    a.lock(&tree, b"k", LockMode::Exclusive).unwrap();
    a.put(&tree, b"k", b"1").unwrap();
    a.commit(DONE).unwrap();
}

#[test]
fn an_exclusive_lock_of_what_has_changed_is_a_conflict_as_the_read_is() {
    let (db, tree) = open();
    let error = TransactionOptions::default();
    let latest = TransactionOptions { on_conflict: OnConflict::Latest, ..error };
    for options in [error, latest] {
        let mut txn = db.begin(options).unwrap();
        txn.take_snapshot().unwrap();
        tree.put(b"k", b"1").unwrap();
        txn.lock(&tree, b"k", LockMode::Shared).unwrap();
        let locked = txn.lock(&tree, b"k", LockMode::Exclusive);
        let read = txn.get_for_update(&tree, b"k").map(drop);
        assert_eq!(locked.is_ok(), options == latest);
        assert_eq!(format!("{locked:?}"), format!("{read:?}"));
    }
}

#[test]
fn an_optimistic_one_notes_what_it_locks() {
    let (db, tree) = open();
    tree.put(b"a", b"1").unwrap();
    let mut txn = db.begin(optimistic(Isolation::RepeatableRead)).unwrap();
    txn.lock(&tree, b"a", LockMode::Shared).unwrap();
    txn.put(&tree, b"b", b"1").unwrap();
    tree.put(b"a", b"2").unwrap();
    let values = txn.multi_get_locked(&tree, &["a", "b"]).unwrap();
    assert_eq!(values[0].as_deref(), Some(&b"1"[..]), "its snapshot");
    assert!(matches!(txn.commit(DONE), Err(Error::Conflict { .. })));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "each key is locked")]
fn what_is_looked_up_without_a_lock_is_a_mistake_of_the_caller() {
    let (db, tree) = open();
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    txn.lock(&tree, b"a", LockMode::Shared).unwrap();
    let _ = txn.multi_get_locked(&tree, &["a", "b"]);
}

#[test]
fn misuse_is_refused() {
    let ((db, tree), (_other, foreign)) = (open(), open());
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    let refused = txn.lock(&foreign, b"a", LockMode::Shared);
    assert!(matches!(refused, Err(Error::InvalidArgument(_))));
    let refused = txn.multi_get_locked(&foreign, &["a"]);
    assert!(matches!(refused, Err(Error::InvalidArgument(_))));
    db.drop_tree("t").unwrap();
    assert!(matches!(txn.lock(&tree, b"a", LockMode::Shared), Err(Error::NoSuchTree(_))));
    assert!(matches!(txn.multi_get_locked(&tree, &["a"]), Err(Error::NoSuchTree(_))));
}

/// Children are added to parents that are locked and then looked up together, while others remove
/// parents without children: from threads, beside flushes and compactions.
#[test]
fn nobody_becomes_an_orphan() {
    const PARENTS: u64 = 32;
    let options = OpenOptions {
        env: Env::memory(),
        background: Background::Threads,
        ..OpenOptions::default()
    };
    let config = Config { memory_bytes: 8 << 20, memtable_bytes: 64 << 10, ..Config::default() };
    let db = Db::open_in("/db", config, options).unwrap();
    let (parents, children) =
        (db.tree_or_create("parents").unwrap(), db.tree_or_create("children").unwrap());
    let name = |parent: u64| format!("{:03}", parent % PARENTS).into_bytes();
    let options = TransactionOptions {
        on_conflict: OnConflict::Latest,
        concurrency: Concurrency::Pessimistic,
        lock_timeout: Duration::from_secs(20),
        ..TransactionOptions::default()
    };
    let add = |txn: &mut Transaction, round: u64| -> shaledb::Result<()> {
        txn.take_snapshot()?;
        // Parents come and go after it.
        std::thread::sleep(Duration::from_micros(200));
        let wanted: Vec<Vec<u8>> = (0..4).map(|n| name(round * 7 + n * 5)).collect();
        for parent in &wanted {
            txn.lock(&parents, parent, LockMode::Shared)?;
        }
        let there = txn.multi_get_locked(&parents, &wanted)?;
        for (parent, there) in wanted.iter().zip(there) {
            let child = [parent.as_slice(), &round.to_be_bytes()].concat();
            if there.is_some() {
                txn.put(&children, &child, &[7; 200])?;
            }
        }
        Ok(())
    };
    let remove = |txn: &mut Transaction, round: u64| -> shaledb::Result<()> {
        let parent = name(round * 11);
        if txn.get_for_update(&parents, &parent)?.is_none() {
            return txn.put(&parents, &parent, &[7; 500]);
        }
        let prefix = Some(parent.clone());
        let scan = ScanOptions { prefix, ..ScanOptions::default() };
        let mut scan = txn.scan_locking(&children, scan, LockMode::Exclusive)?;
        // Each third is removed with its children, others only without.
        let own = keys(txn, &mut scan);
        if round.is_multiple_of(3) {
            own.iter().try_for_each(|child| txn.delete(&children, child))?;
        }
        if round.is_multiple_of(3) || own.is_empty() {
            txn.delete(&parents, &parent)?;
        }
        Ok(())
    };
    type Act<'a> = &'a (dyn Fn(&mut Transaction, u64) -> shaledb::Result<()> + Sync);
    std::thread::scope(|scope| {
        for (thread, act) in [(0, &add as Act<'_>), (1, &add), (2, &remove), (3, &remove)] {
            let db = &db;
            scope.spawn(move || {
                for round in 0..600 {
                    let mut txn = db.begin(options).unwrap();
                    let done = act(&mut txn, round * 4 + thread).and_then(|()| txn.commit(DONE));
                    assert!(done.as_ref().is_err_and(Error::is_retryable) || done.is_ok());
                }
            });
        }
    });
    let rows = |tree: &Tree| {
        let all = tree.scan::<&[u8]>(..).unwrap().map(|row| row.unwrap().0);
        all.collect::<Vec<Vec<u8>>>()
    };
    let there = rows(&parents);
    for child in rows(&children) {
        assert!(there.iter().any(|parent| child.starts_with(parent)), "{child:?} is an orphan");
    }
}

/// Who has locked without writing does not count, nor does another tree.
#[test]
fn a_tree_is_locked_until_the_last_writer_has_ended() {
    let fs = MemFs::new();
    let db = open_on(&fs);
    let (tree, other) = (db.tree_or_create("t").unwrap(), db.tree_or_create("other").unwrap());
    let mut reader = db.begin(at(Isolation::RepeatableRead)).unwrap();
    reader.get_for_share(&tree, b"shared").unwrap();
    let mut scan = reader.scan_locking(&tree, ScanOptions::default(), LockMode::Shared).unwrap();
    assert!(!scan.next(&mut reader).unwrap());
    assert!(!tree.is_locked().unwrap());
    let mut of_other = db.begin(at(Isolation::RepeatableRead)).unwrap();
    of_other.put(&other, b"a", b"1").unwrap();
    assert!(!tree.is_locked().unwrap() && other.is_locked().unwrap());
    reader.get_for_update(&tree, b"read").unwrap();
    assert!(tree.is_locked().unwrap());
    reader.rollback();
    assert!(!tree.is_locked().unwrap());

    let mut ranges = db.begin(at(Isolation::RepeatableRead)).unwrap();
    ranges.delete_range(&tree, b"x", b"y").unwrap();
    assert!(tree.is_locked().unwrap());
    ranges.rollback();
    assert!(!tree.is_locked().unwrap());

    let mut keys = db.begin(at(Isolation::RepeatableRead)).unwrap();
    keys.insert(&tree, b"a", b"1").unwrap();
    keys.prepare(b"p").unwrap();
    assert!(tree.is_locked().unwrap());
    drop((of_other, tree, other));
    db.close().unwrap();
    let db = open_on(&fs);
    let (tree, other) = (db.tree("t").unwrap(), db.tree("other").unwrap());
    assert!(tree.is_locked().unwrap() && !other.is_locked().unwrap());
    db.prepared().unwrap().pop().unwrap().commit(WriteOptions::SYNC).unwrap();
    assert!(!tree.is_locked().unwrap());
}

/// What has been read, and gaps, are free then; what has been written is not: the same is locked
/// after a crash.
#[test]
fn what_is_prepared_can_let_go_of_what_it_has_read() {
    for keys in [3, 3000] {
        let fs = MemFs::new();
        let db = open_on(&fs);
        let tree = db.tree_or_create("t").unwrap();
        let key = |kind: &str, n: u32| format!("{kind}{n:04}").into_bytes();
        for n in 0..keys {
            tree.put(&key("r", n), b"0").unwrap();
        }
        let options =
            TransactionOptions { lock_timeout: Duration::ZERO, ..at(Isolation::RepeatableRead) };
        let mut txn = db.begin(options).unwrap();
        let gap = ScanOptions {
            lower: Some(b"g".into()),
            upper: Some(b"h".into()),
            ..Default::default()
        };
        let mut scan = txn.scan_locking(&tree, gap, LockMode::Exclusive).unwrap();
        assert!(!scan.next(&mut txn).unwrap());
        for n in 0..keys {
            txn.get_for_update(&tree, &key("r", n)).unwrap();
            txn.put(&tree, &key("w", n), b"1").unwrap();
        }
        // The keys of many become ranges.
        assert!(keys < 1000 || txn.escalate_locks().unwrap());
        txn.get_for_share(&tree, b"s").unwrap();
        txn.delete_range(&tree, b"x", b"y").unwrap();
        // Read, and then written.
        txn.put(&tree, &key("r", 1), b"1").unwrap();
        let prepared = txn.prepare(b"p").unwrap();
        let puts = |key: &[u8]| {
            let mut other = db.begin(options).unwrap();
            let done = other.put(&tree, key, b"2");
            other.rollback();
            match done {
                Ok(()) => true,
                Err(Error::LockTimeout { .. }) => false,
                Err(error) => panic!("{error}"),
            }
        };
        let read = [key("r", 0), key("r", 2), b"g1".to_vec(), b"s".to_vec()];
        let written = [key("w", 0), key("w", keys - 1), key("r", 1), b"x1".to_vec()];
        assert!(!read.iter().chain(&written).any(|key| puts(key)));
        prepared.release_reads().unwrap();
        assert!(read.iter().all(|key| puts(key)));
        assert!(!written.iter().any(|key| puts(key)));
        prepared.clone().commit(WriteOptions::SYNC).unwrap();
        assert!(written.iter().all(|key| puts(key)));
        let again = prepared.release_reads();
        assert!(matches!(again, Err(Error::InvalidArgument { .. })), "{again:?}");
    }
}

/// Who waits for what is let go of goes on.
#[test]
fn who_waits_for_what_was_read_goes_on_when_it_is_prepared() {
    let fs = MemFs::new();
    let db = open_on(&fs);
    let tree = db.tree_or_create("t").unwrap();
    let mut txn = db.begin(at(Isolation::RepeatableRead)).unwrap();
    txn.get_for_update(&tree, b"r").unwrap();
    txn.put(&tree, b"w", b"1").unwrap();
    let mut other = db.begin(at(Isolation::RepeatableRead)).unwrap();
    let queued = other.put(&tree, b"r", b"2");
    assert!(matches!(queued, Err(Error::LockQueued { .. })), "{queued:?}");
    let prepared = txn.prepare(b"p").unwrap();
    let queued = other.put(&tree, b"r", b"2");
    assert!(matches!(queued, Err(Error::LockQueued { .. })), "{queued:?}");
    prepared.release_reads().unwrap();
    other.put(&tree, b"r", b"2").unwrap();
    other.commit(WriteOptions::default()).unwrap();
    prepared.commit(WriteOptions::default()).unwrap();
    assert_eq!(tree.get(b"r").unwrap().unwrap(), b"2");
}
