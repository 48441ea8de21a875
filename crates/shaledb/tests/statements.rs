//! What statements of a server need of transactions: inserts that find duplicates, locks that are
//! given up for rows that do not match, and sight of who waits for whom.

use shaledb::{
    Action, Background, Batch, Concurrency, Config, Db, Env, Error, Isolation, LockMode,
    OnConflict, OpenOptions, Operation, ScanOptions, Transaction, TransactionOptions, Tree, Watch,
    WriteOptions,
};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const DONE: WriteOptions = WriteOptions { sync: false };

fn open(background: Background) -> (Db, Tree) {
    let options = OpenOptions { env: Env::memory(), background, read_only: false };
    let config = Config { memory_bytes: 16 << 20, memtable_bytes: 64 << 10, ..Config::default() };
    let db = Db::open_in("/db", config, options).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    (db, tree)
}

fn at(isolation: Isolation) -> TransactionOptions {
    TransactionOptions { isolation, ..TransactionOptions::default() }
}

fn inserted(txn: &mut Transaction, tree: &Tree, key: &[u8], value: &[u8]) -> bool {
    txn.insert(tree, key, value).unwrap().is_none()
}

/// It waits: asking for the same again tells how it went on.
fn waits<T: std::fmt::Debug>(result: shaledb::Result<T>) {
    assert!(matches!(result, Err(Error::LockQueued { .. })), "{result:?}");
}

#[test]
fn an_insert_finds_what_is_committed_and_what_is_its_own() {
    for flushed in [false, true] {
        let (db, tree) = open(Background::Stepped);
        tree.put(b"there", b"1").unwrap();
        tree.put(b"gone", b"1").unwrap();
        tree.delete(b"gone").unwrap();
        tree.put(b"covered", b"1").unwrap();
        tree.delete_range(b"covered", b"covered0").unwrap();
        if flushed {
            tree.flush().unwrap();
        }
        let mut txn = db.begin(TransactionOptions::default()).unwrap();
        assert_eq!(txn.insert(&tree, b"there", b"2").unwrap().unwrap(), b"1");
        assert_eq!(txn.writes(), 0);
        for key in [&b"gone"[..], b"covered", b"new"] {
            assert!(inserted(&mut txn, &tree, key, b"2"));
            assert_eq!(txn.insert(&tree, key, b"3").unwrap().unwrap(), b"2", "its own");
        }
        let before = txn.savepoint();
        txn.delete(&tree, b"there").unwrap();
        assert!(inserted(&mut txn, &tree, b"there", b"2"));
        txn.rollback_to(before).unwrap();
        assert_eq!(txn.insert(&tree, b"there", b"2").unwrap().unwrap(), b"1");
        txn.delete_range(&tree, b"n", b"o").unwrap();
        assert!(inserted(&mut txn, &tree, b"new", b"4"));
        txn.commit(DONE).unwrap();
        assert_eq!(tree.get(b"there").unwrap().unwrap(), b"1");
        assert_eq!(tree.get(b"gone").unwrap().unwrap(), b"2");
        assert_eq!(tree.get(b"new").unwrap().unwrap(), b"4");
    }
}

#[test]
fn a_large_value_is_inserted_and_found() {
    let (db, tree) = open(Background::Stepped);
    let large = vec![7; 300_000];
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    assert!(inserted(&mut txn, &tree, b"large", &large));
    txn.commit(DONE).unwrap();
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    assert_eq!(txn.insert(&tree, b"large", b"").unwrap().unwrap(), large);
    let too_long = vec![0; (64 << 10) + 1];
    assert!(matches!(txn.insert(&tree, &too_long, b""), Err(Error::InvalidArgument(_))));
}

#[test]
fn the_second_of_two_inserters_waits_and_then_finds_or_inserts() {
    for (commits, isolation) in [
        (true, Isolation::ReadCommitted),
        (false, Isolation::ReadCommitted),
        (true, Isolation::Serializable),
        (false, Isolation::RepeatableRead),
    ] {
        let (db, tree) = open(Background::Stepped);
        let mut first = db.begin(at(isolation)).unwrap();
        let mut second = db.begin(at(isolation)).unwrap();
        assert!(inserted(&mut first, &tree, b"k", b"first"));
        waits(second.insert(&tree, b"k", b"second"));
        if commits {
            first.commit(DONE).unwrap();
            assert_eq!(second.insert(&tree, b"k", b"second").unwrap().unwrap(), b"first");
        } else {
            first.rollback();
            assert!(inserted(&mut second, &tree, b"k", b"second"));
        }
        // What was found is locked, so that the statement can go on with it.
        let mut third = db.begin(at(isolation)).unwrap();
        waits(third.get_for_update(&tree, b"k"));
        second.commit(DONE).unwrap();
        assert!(third.get_for_update(&tree, b"k").unwrap().is_some());
    }
}

#[test]
fn a_key_that_came_after_the_snapshot_is_found_or_a_conflict() {
    for on_conflict in [OnConflict::Error, OnConflict::Latest] {
        let (db, tree) = open(Background::Stepped);
        let options = TransactionOptions { on_conflict, ..TransactionOptions::default() };
        let mut txn = db.begin(options).unwrap();
        assert!(txn.get(&tree, b"k").unwrap().is_none());
        tree.put(b"k", b"1").unwrap();
        match (on_conflict, txn.insert(&tree, b"k", b"2")) {
            (OnConflict::Error, Err(Error::Conflict { .. })) => {}
            (OnConflict::Latest, Ok(Some(value))) => assert_eq!(value, b"1"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn of_two_optimistic_inserters_one_is_refused_at_commit() {
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]
    {
        let (db, tree) = open(Background::Stepped);
        let options = TransactionOptions { concurrency: Concurrency::Optimistic, ..at(isolation) };
        let mut first = db.begin(options).unwrap();
        let mut second = db.begin(options).unwrap();
        assert!(inserted(&mut first, &tree, b"k", b"first"));
        assert!(inserted(&mut second, &tree, b"k", b"second"));
        first.commit(DONE).unwrap();
        assert_eq!(second.insert(&tree, b"k", b"").unwrap().unwrap(), b"second");
        assert!(matches!(second.commit(DONE), Err(Error::Conflict { .. })), "{isolation:?}");
        assert_eq!(tree.get(b"k").unwrap().unwrap(), b"first");
    }
}

#[test]
fn of_threads_that_insert_the_same_keys_one_each_wins() {
    const THREADS: usize = 4;
    const KEYS: u32 = 300;
    let (db, tree) = open(Background::Threads);
    let wins: Vec<AtomicUsize> = (0..KEYS).map(|_| AtomicUsize::new(0)).collect();
    let start = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, tree, wins, start) = (&db, &tree, &wins, &start);
            scope.spawn(move || {
                start.wait();
                for key in 0..KEYS {
                    let isolation = if thread % 2 == 0 {
                        Isolation::ReadCommitted
                    } else {
                        Isolation::RepeatableRead
                    };
                    let mut txn = db.begin(at(isolation)).unwrap();
                    let value = [thread as u8; 100];
                    match txn.insert(tree, &key.to_be_bytes(), &value).unwrap() {
                        // Every third winner gives it up again, so that another one gets it.
                        None if (key as usize + thread).is_multiple_of(3) => txn.rollback(),
                        None => {
                            txn.commit(DONE).unwrap();
                            wins[key as usize].fetch_add(1, Ordering::Relaxed);
                        }
                        Some(other) => assert_ne!(other[0], thread as u8),
                    }
                }
            });
        }
    });
    for (key, wins) in (0..KEYS).zip(&wins) {
        assert_eq!(wins.load(Ordering::Relaxed), 1, "key {key}");
        assert!(tree.contains(&key.to_be_bytes()).unwrap());
    }
}

#[test]
fn rows_that_do_not_match_are_unlocked() {
    let (db, tree) = open(Background::Stepped);
    for key in [b"a", b"b", b"c", b"d"] {
        tree.put(key, b"1").unwrap();
    }
    let mut txn = db.begin(at(Isolation::ReadCommitted)).unwrap();
    txn.get_for_share(&tree, b"a").unwrap(); // an earlier statement
    txn.put(&tree, b"b", b"2").unwrap();
    let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Exclusive).unwrap();
    let mut unlocked = Vec::new();
    while scan.next(&mut txn).unwrap() {
        let key = scan.key().to_vec();
        if key != b"d" && txn.unlock(&tree, &key).unwrap() {
            unlocked.push(key);
        }
    }
    assert_eq!(unlocked, [b"c".to_vec()], "others rely on `a`, `b` is written, `d` matches");
    let mut other = db.begin(at(Isolation::ReadCommitted)).unwrap();
    other.set_lock_timeout(Duration::ZERO);
    for key in [b"a", b"b", b"d"] {
        let refused = other.get_for_update(&tree, key);
        assert!(matches!(refused, Err(Error::LockTimeout { .. })), "{refused:?}");
    }
    assert!(other.get_for_update(&tree, b"c").unwrap().is_some());
    // What was undone stays locked where a read has asked for it too.
    txn.get_for_update(&tree, b"x").unwrap();
    let before = txn.savepoint();
    txn.get_for_update(&tree, b"y").unwrap();
    for key in [b"e", b"x", b"y"] {
        txn.put(&tree, key, b"1").unwrap();
    }
    txn.rollback_to(before).unwrap();
    for (key, free) in [(b"e", true), (b"x", false), (b"y", false)] {
        assert!(!txn.unlock(&tree, key).unwrap());
        assert_eq!(other.put(&tree, key, b"2").is_ok(), free, "{key:?}");
    }
    // As what a read alone has locked does at other levels.
    let mut strict = db.begin(at(Isolation::RepeatableRead)).unwrap();
    strict.get_for_update(&tree, b"z").unwrap();
    assert!(!strict.unlock(&tree, b"z").unwrap());
}

#[test]
fn transactions_and_locks_are_seen() {
    let (db, tree) = open(Background::Stepped);
    assert!(db.transactions().unwrap().is_empty() && db.locks(9).unwrap().is_empty());
    let mut holder = db.begin(at(Isolation::ReadCommitted)).unwrap();
    let mut waiter = db.begin(at(Isolation::Serializable)).unwrap();
    let options = TransactionOptions { concurrency: Concurrency::Optimistic, ..Default::default() };
    let idle = db.begin(options).unwrap();
    holder.put(&tree, b"k", b"1").unwrap();
    holder.get_for_share(&tree, b"s").unwrap();
    waits(waiter.get_for_update(&tree, b"k"));
    let all = db.transactions().unwrap();
    let ids: Vec<u64> = all.iter().map(|info| info.id).collect();
    assert_eq!(ids, [holder.id(), waiter.id(), idle.id()]);
    let seen = |info: &shaledb::TransactionInfo| (info.writes, info.keys_locked, info.trees.len());
    assert_eq!(all.iter().map(seen).collect::<Vec<_>>(), [(1, 2, 1), (0, 0, 0), (0, 0, 0)]);
    assert!(all[0].write_bytes > 0 && all[0].trees == ["t"] && all[0].waits_for.is_none());
    assert_eq!(all[0].isolation, "read committed");
    assert_eq!(all[1].waits_for.as_deref(), Some("an exclusive lock on key `k` of tree `t`"));
    assert_eq!(all[1].blockers, [holder.id()]);
    assert!(all[2].optimistic && !all[1].optimistic);
    let mut locks = db.locks(9).unwrap();
    locks.sort_by_key(|lock| (lock.waits, lock.text.clone()));
    let texts: Vec<&str> = locks.iter().map(|lock| lock.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "a lock to write on key `k` of tree `t`",
            "a shared lock on key `s` of tree `t`",
            "an exclusive lock on key `k` of tree `t`",
        ]
    );
    assert_eq!(locks.iter().map(|lock| lock.waits).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(db.locks(2).unwrap().len(), 2);
    let id = holder.id();
    let prepared = holder.prepare(b"order 1").unwrap();
    let all = db.transactions().unwrap();
    assert_eq!((all[0].id, all[0].prepared.as_deref()), (id, Some("order 1")));
    assert_eq!(all[0].keys_locked, 2, "locks stay while it is prepared");
    prepared.commit(DONE).unwrap();
    drop((waiter, idle));
    assert!(db.transactions().unwrap().is_empty() && db.locks(9).unwrap().is_empty());
}

#[test]
fn a_range_is_shown_once_and_a_deadlock_is_remembered() {
    let (db, tree) = open(Background::Stepped);
    assert!(db.last_deadlock().unwrap().is_none());
    let options = TransactionOptions::default();
    let (mut one, mut two) = (db.begin(options).unwrap(), db.begin(options).unwrap());
    one.delete_range(&tree, b"a", b"b").unwrap();
    assert_eq!(db.locks(9).unwrap().len(), 1);
    two.put(&tree, b"c", b"1").unwrap();
    waits(one.put(&tree, b"c", b"2"));
    let refused = two.put(&tree, b"a", b"2");
    assert!(matches!(refused, Err(Error::Deadlock(_))), "{refused:?}");
    let last = db.last_deadlock().unwrap().unwrap();
    assert_eq!((last.count, last.deadlock.victim), (1, two.id()));
    assert_eq!(last.deadlock.waits.len(), 2);
    let ids: Vec<u64> = db.transactions().unwrap().iter().map(|info| info.id).collect();
    assert_eq!(ids, [one.id()], "who was rolled back is gone");
}

#[test]
fn a_change_of_all_rows_finds_room_for_its_locks() {
    let (db, tree) = open(Background::Stepped);
    let rows = 40_000u32;
    let mut load = Batch::new();
    for n in 0..rows {
        load.put(&tree, &n.to_be_bytes(), b"1");
    }
    db.write(&load, DONE).unwrap();
    let mut other = db.begin(at(Isolation::RepeatableRead)).unwrap();
    other.get_for_share(&tree, &(rows / 2).to_be_bytes()).unwrap();
    let mut txn = db.begin(at(Isolation::RepeatableRead)).unwrap();
    let options =
        || ScanOptions { upper: Some((rows / 2).to_be_bytes().to_vec()), ..ScanOptions::default() };
    let mut scan = txn.scan_locking(&tree, options(), LockMode::Exclusive).unwrap();
    while scan.next(&mut txn).unwrap() {
        txn.put(&tree, scan.key(), b"2").unwrap();
    }
    let mut small = db.begin(at(Isolation::ReadCommitted)).unwrap();
    small.set_lock_timeout(Duration::ZERO);
    for n in [0, 1_000, rows / 2 - 1] {
        let refused = small.get_for_share(&tree, &n.to_be_bytes());
        assert!(matches!(refused, Err(Error::LockTimeout { .. })), "{n}: {refused:?}");
    }
    assert!(small.get_for_update(&tree, &(rows - 1).to_be_bytes()).unwrap().is_some());
    txn.commit(DONE).unwrap();
    assert!(small.get_for_update(&tree, &0u32.to_be_bytes()).unwrap().unwrap() == b"2");
    drop((other, small));
    assert!(db.locks(9).unwrap().is_empty());
}

#[test]
fn an_entry_of_a_locked_row_is_written_without_a_lock() {
    let (db, tree) = open(Background::Stepped);
    tree.put(b"row", b"1").unwrap();
    let mut txn = db.begin(at(Isolation::RepeatableRead)).unwrap();
    assert!(!txn.changed_since_snapshot(&tree, b"row").unwrap(), "there is no snapshot");
    assert_eq!(txn.get(&tree, b"row").unwrap().unwrap(), b"1");
    assert!(!txn.changed_since_snapshot(&tree, b"row").unwrap());
    tree.put(b"row", b"2").unwrap();
    tree.put(b"entry", b"2").unwrap();
    for flushed in [false, true] {
        if flushed {
            tree.flush().unwrap();
        }
        assert!(txn.changed_since_snapshot(&tree, b"row").unwrap());
        assert!(txn.changed_since_snapshot(&tree, b"entry").unwrap());
        assert!(!txn.changed_since_snapshot(&tree, b"other").unwrap());
    }
    let mut other = db.begin(at(Isolation::RepeatableRead)).unwrap();
    assert!(other.get_for_update(&tree, b"entry").unwrap().is_some());
    waits(txn.put(&tree, b"entry", b"2"));
    let before = txn.savepoint();
    txn.put_unlocked(&tree, b"entry", b"2").unwrap();
    assert!(txn.has_written(&tree, b"entry").unwrap());
    assert_eq!(txn.get(&tree, b"entry").unwrap().unwrap(), b"2");
    txn.rollback_to(before).unwrap();
    assert!(!txn.has_written(&tree, b"entry").unwrap());
    assert!(txn.get(&tree, b"entry").unwrap().is_none(), "as the snapshot has it");
    txn.put_unlocked(&tree, b"entry", b"3").unwrap();
    assert!(!txn.has_written(&tree, b"row").unwrap());
    txn.commit(DONE).unwrap();
    assert_eq!(tree.get(b"entry").unwrap().unwrap(), b"3");
    let mut late = db.begin(at(Isolation::ReadCommitted)).unwrap();
    assert!(late.put_unlocked(&tree, &[0; 1 << 20], b"").is_err(), "too long a key");
    assert!(late.delete_unlocked(&tree, &[0; 1 << 20]).is_err(), "too long a key");
    waits(late.delete(&tree, b"entry"));
    let locks = db.locks(10).unwrap().len();
    let before = late.savepoint();
    late.delete_unlocked(&tree, b"entry").unwrap();
    assert!(late.get(&tree, b"entry").unwrap().is_none());
    late.rollback_to(before).unwrap();
    assert_eq!(late.get(&tree, b"entry").unwrap().unwrap(), b"3");
    let delete =
        Operation { tree: &tree, action: Action::DeleteUnlocked, key: b"entry", value: b"" };
    assert!(late.apply([delete], None).unwrap().is_none());
    assert_eq!(db.locks(10).unwrap().len(), locks);
    late.commit(DONE).unwrap();
    assert!(tree.get(b"entry").unwrap().is_none());
    drop(other);
}

/// A row and its entries: a duplicate, or an error, at any place leaves nothing of it, also no lock
/// but that of what was found. What was written before stays.
#[test]
fn several_operations_are_done_as_a_whole_or_not_at_all() {
    let (db, rows) = open(Background::Stepped);
    let entries = db.tree_or_create("entries").unwrap();
    entries.put(b"taken", b"0").unwrap();
    let insert = Action::Insert(LockMode::Shared);
    let operation = |tree, action, key, value| Operation { tree, action, key, value };
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]
    {
        let mut txn = db.begin(at(isolation)).unwrap();
        txn.put(&rows, b"before", b"1").unwrap();
        let mut other = db.begin(at(isolation)).unwrap();
        other.set_lock_timeout(Duration::ZERO);
        other.get_for_update(&entries, b"locked").unwrap();
        let mut list = vec![
            operation(&rows, Action::Put, &b"before"[..], &b"2"[..]),
            operation(&rows, insert, b"row", b"1"),
            operation(&entries, Action::Put, b"first", b""),
            operation(&entries, insert, b"taken", b"row"),
        ];
        let (place, found) = txn.apply(list.clone(), None).unwrap().unwrap();
        assert_eq!((place, &*found.unwrap()), (3, &b"0"[..]));
        assert_eq!(txn.get(&rows, b"before").unwrap().unwrap(), b"1");
        assert!(txn.get(&rows, b"row").unwrap().is_none());
        assert_eq!(txn.writes(), 1);
        let free = other.insert(&rows, b"row", b"2").is_ok();
        assert_eq!(free, isolation != Isolation::Serializable);
        assert!(other.put(&entries, b"taken", b"").is_err(), "it is locked shared");
        other.rollback();
        let mut other = db.begin(at(isolation)).unwrap();
        other.get_for_update(&entries, b"locked").unwrap();
        txn.set_lock_timeout(Duration::ZERO);
        list[3] = operation(&entries, Action::Delete, b"locked", b"");
        let error = txn.apply(list.clone(), None).unwrap_err();
        assert!(matches!(error, Error::LockTimeout { .. }), "{error}");
        list[3] = operation(&entries, Action::Put, &[0; 1 << 20], b"");
        assert!(txn.apply(list.clone(), None).is_err(), "too long a key");
        assert_eq!(txn.writes(), 1);
        drop(other);
        list[3] = operation(&entries, Action::Delete, b"taken", b"");
        assert_eq!(txn.apply(list.clone(), None).unwrap(), None);
        assert_eq!(txn.get(&rows, b"before").unwrap().unwrap(), b"2");
        assert!(txn.get(&entries, b"taken").unwrap().is_none());
        assert_eq!(txn.writes(), 5);
        txn.rollback();
    }
}

/// What a row requires is looked for where it is in the list: what the row itself has written before
/// is there, what it writes later is not. A key that is required is locked shared, there or not.
#[test]
fn what_a_row_requires_is_there_or_nothing_is_done() {
    let (db, rows) = open(Background::Stepped);
    let parents = db.tree_or_create("parents").unwrap();
    parents.put(b"7", &[7; 100_000]).unwrap();
    parents.put(b"gone", b"").unwrap();
    let operation = |tree, action, key, value| Operation { tree, action, key, value };
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]
    {
        let mut txn = db.begin(at(isolation)).unwrap();
        txn.take_snapshot().unwrap();
        parents.put(b"late", b"").unwrap();
        let put = operation(&rows, Action::Put, &b"row"[..], &b"1"[..]);
        let required = |key| operation(&parents, Action::Require, key, b"");
        let of = |key| [put, required(key)];
        assert_eq!(txn.apply(of(b"7"), None).unwrap(), None);
        assert_eq!(txn.apply(of(b"late"), None).unwrap(), None, "the newest, not the snapshot's");
        assert_eq!(txn.writes(), 2);
        assert_eq!(txn.apply(of(b"none"), None).unwrap(), Some((1, None)));
        assert_eq!(txn.writes(), 2);
        txn.delete(&parents, b"gone").unwrap();
        assert_eq!(txn.apply(of(b"gone"), None).unwrap(), Some((1, None)));
        let own = operation(&rows, Action::Require, &b"self"[..], b"");
        let itself = operation(&rows, Action::Put, &b"self"[..], &b"1"[..]);
        assert_eq!(txn.apply([own, itself], None).unwrap(), Some((0, None)));
        let mut watch = Watch { tree: &rows, changed: false };
        assert_eq!(txn.apply([itself, own], Some(&mut watch)).unwrap(), None);
        let mut other = db.begin(at(isolation)).unwrap();
        other.set_lock_timeout(Duration::ZERO);
        assert!(other.get_for_share(&parents, b"7").is_ok());
        for key in [&b"7"[..], b"late", b"none"] {
            assert!(other.put(&parents, key, b"").is_err(), "{key:?}");
        }
        drop(other);
        txn.rollback();
        parents.delete(b"late").unwrap();
    }
    let mut other = db.begin(at(Isolation::ReadCommitted)).unwrap();
    other.delete(&parents, b"7").unwrap();
    let mut txn = db.begin(at(Isolation::ReadCommitted)).unwrap();
    txn.set_lock_timeout(Duration::ZERO);
    let required = operation(&parents, Action::Require, &b"7"[..], b"");
    assert!(matches!(txn.apply([required], None), Err(Error::LockTimeout { .. })));
}

/// What others have changed since the snapshot is found, and entries that stay are written then.
#[test]
fn entries_follow_a_row_that_was_changed_since_the_snapshot() {
    let (db, rows) = open(Background::Stepped);
    let entries = db.tree_or_create("entries").unwrap();
    rows.put(b"row", b"0").unwrap();
    let on_conflict = OnConflict::Latest;
    let options = TransactionOptions { on_conflict, ..at(Isolation::RepeatableRead) };
    let mut txn = db.begin(options).unwrap();
    txn.take_snapshot().unwrap();
    let list = [
        Operation { tree: &rows, action: Action::Put, key: b"row", value: b"2" },
        Operation { tree: &entries, action: Action::PutIfChanged, key: b"entry", value: b"row" },
    ];
    let mut watch = Watch { tree: &rows, changed: false };
    assert_eq!(txn.apply(list, Some(&mut watch)).unwrap(), None);
    assert!(!watch.changed && !txn.has_written(&entries, b"entry").unwrap());
    // Not through this transaction's lock: writes outside of transactions ask for none.
    rows.put(b"row", b"1").unwrap();
    assert_eq!(txn.apply(list, None).unwrap(), None);
    assert!(!txn.has_written(&entries, b"entry").unwrap(), "it was not asked");
    assert_eq!(txn.apply(list, Some(&mut watch)).unwrap(), None);
    assert!(watch.changed && txn.has_written(&entries, b"entry").unwrap());
    // What an earlier part of the row has found counts.
    let more = [Operation { key: b"other", ..list[1] }];
    assert_eq!(txn.apply(more, Some(&mut watch)).unwrap(), None);
    assert!(txn.has_written(&entries, b"other").unwrap());
}

/// Two who insert what is there, and leave it, do not wait for each other; who changes it waits for
/// both.
#[test]
fn a_duplicate_is_locked_shared_by_who_leaves_it_as_it_is() {
    let (db, tree) = open(Background::Stepped);
    tree.put(b"a", b"1").unwrap();
    tree.put(b"w", b"1").unwrap();
    let begin = || {
        let mut txn = db.begin(at(Isolation::ReadCommitted)).unwrap();
        txn.set_lock_timeout(Duration::ZERO);
        txn
    };
    let refused = |result: shaledb::Result<()>| {
        assert!(matches!(result, Err(Error::LockTimeout { .. })), "{result:?}");
    };
    let (mut one, mut two, mut three) = (begin(), begin(), begin());
    for txn in [&mut one, &mut two] {
        assert_eq!(txn.insert_or_share(&tree, b"a", b"2").unwrap().unwrap(), b"1");
    }
    assert!(three.get_for_share(&tree, b"a").unwrap().is_some());
    refused(three.insert(&tree, b"a", b"3").map(drop));
    // It is kept: nobody gives it up who meets it again, nor by going back.
    assert!(!one.unlock(&tree, b"a").unwrap());
    let before = two.savepoint();
    two.rollback_to(before).unwrap();
    one.rollback();
    three.rollback();
    let mut three = begin();
    refused(three.put(&tree, b"a", b"3"));
    two.put(&tree, b"a", b"2").unwrap();
    // What one has written, or locked to write, stays so.
    two.delete(&tree, b"w").unwrap();
    assert!(two.insert_or_share(&tree, b"w", b"2").unwrap().is_none());
    for key in [b"a", b"w"] {
        assert_eq!(two.insert_or_share(&tree, key, b"3").unwrap().unwrap(), b"2");
        refused(three.get_for_share(&tree, key).map(drop));
    }
    // So does what ON DUPLICATE KEY UPDATE has found; a new one is as ever.
    tree.put(b"b", b"1").unwrap();
    let before = two.savepoint();
    assert!(two.insert(&tree, b"b", b"2").unwrap().is_some());
    assert!(two.insert_or_share(&tree, b"n", b"2").unwrap().is_none());
    refused(three.insert_or_share(&tree, b"n", b"2").map(drop));
    two.rollback_to(before).unwrap();
    refused(three.get_for_share(&tree, b"b").map(drop));
    // What was undone of a row that a duplicate has kept out is free.
    assert!(three.insert_or_share(&tree, b"n", b"2").unwrap().is_none());
}

/// Those who wait for one who inserts the same go on together when it is there, and one after the
/// other when it is not.
#[test]
fn who_waits_for_a_duplicate_shares_it() {
    for commits in [true, false] {
        let (db, tree) = open(Background::Stepped);
        let begin = || db.begin(at(Isolation::ReadCommitted)).unwrap();
        let (mut first, mut one, mut two) = (begin(), begin(), begin());
        assert!(first.insert_or_share(&tree, b"a", b"1").unwrap().is_none());
        waits(one.insert_or_share(&tree, b"a", b"2"));
        waits(two.insert_or_share(&tree, b"a", b"3"));
        if commits {
            first.commit(DONE).unwrap();
            for txn in [&mut one, &mut two] {
                assert_eq!(txn.insert_or_share(&tree, b"a", b"2").unwrap().unwrap(), b"1");
            }
            continue;
        }
        first.rollback();
        let mut refused = 0;
        loop {
            match one.insert_or_share(&tree, b"a", b"2") {
                Ok(existing) => {
                    assert!(existing.is_none());
                    break;
                }
                Err(error) => {
                    assert!(matches!(error, Error::LockQueued { .. }), "{error}");
                    refused += 1;
                    assert!(refused < 3);
                    waits(two.insert_or_share(&tree, b"a", b"3"));
                }
            }
        }
        waits(two.insert_or_share(&tree, b"a", b"3"));
        one.commit(DONE).unwrap();
        assert_eq!(two.insert_or_share(&tree, b"a", b"3").unwrap().unwrap(), b"2");
    }
}
