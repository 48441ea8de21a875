//! Tests of when a memtable is sealed since scans pass what is dead in it.

use crate::base::config::Config;
use crate::base::error::Result;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering::Relaxed;
use crate::db::{Background, Db, OpenOptions, ScanOptions, Tree};
use crate::db::{Isolation, LockMode, TransactionOptions, WriteOptions};
use crate::fs::Env;
use crate::read::Scan;
use crate::write::dead::worth;

/// Lists, with so many keys each that came and went, and rows between them.
const LISTS: u32 = 20;
const GONE: u32 = 50;
const ROWS: u32 = 5;

/// After so many scans of all lists the most that they cost is lost in any case.
const SCANS_MOST: usize = 200;

fn open() -> Result<(Db, Tree)> {
    let options =
        OpenOptions { env: Env::memory(), background: Background::Stepped, read_only: false };
    let db = Db::open_in("/db", Config::default(), options)?;
    let tree = db.tree_or_create("index")?;
    Ok((db, tree))
}

fn key(list: u32, time: u32) -> Vec<u8> {
    [list.to_be_bytes(), time.to_be_bytes()].concat()
}

/// As an index on when rows were changed: old keys go, new ones come.
fn fill(tree: &Tree) -> Result<()> {
    for time in 0..ROWS + GONE {
        for list in 0..LISTS {
            tree.put(&key(list, time), b"")?;
            if time >= ROWS {
                tree.delete(&key(list, time - ROWS))?;
            }
        }
    }
    Ok(())
}

/// Scans until a commit seals, as often as it may take; answers how often it took.
fn scans_until_sealed(tree: &Tree, mut scan: impl FnMut() -> Result<()>) -> Result<Option<usize>> {
    let active = || Arc::as_ptr(&tree.inner.state.load().active);
    let before = active();
    for scans in 1..=SCANS_MOST {
        scan()?;
        tree.put(b"other", b"")?;
        if active() != before {
            return Ok(Some(scans));
        }
    }
    Ok(None)
}

fn forward(scan: &mut Scan) -> Result<u32> {
    scan.seek_first()?;
    let mut rows = 0;
    while scan.valid() {
        rows += 1;
        scan.next()?;
    }
    Ok(rows)
}

fn backward(scan: &mut Scan) -> Result<u32> {
    scan.seek_last()?;
    let mut rows = 0;
    while scan.valid() {
        rows += 1;
        scan.prev()?;
    }
    Ok(rows)
}

fn sealed_for_scans(db: &Db) -> u64 {
    db.stats().counters["memtables_sealed_for_scans"]
}

fn step_all(db: &Db) -> Result<()> {
    while db.step()? {}
    Ok(())
}

/// Each list in a scan of its own.
fn each_list(tree: &Tree, all: fn(&mut Scan) -> Result<u32>) -> Result<()> {
    for list in 0..LISTS {
        assert_eq!(all(&mut tree.scan_prefix(&list.to_be_bytes())?)?, ROWS);
    }
    Ok(())
}

/// It is sealed, and after the flush scans have nothing to pass.
fn check_sealed(kind: &str, scan: impl Fn(&mut Db, &Tree) -> Result<()>) -> Result<()> {
    let (mut db, tree) = open()?;
    fill(&tree)?;
    let scans = scans_until_sealed(&tree, || scan(&mut db, &tree))?;
    // 2000 dead entries are passed, of 2100; by a locking scan, which looks ahead, twice.
    assert!(scans.is_some_and(|scans| (25..80).contains(&scans)), "{kind}: {scans:?}");
    assert_eq!(sealed_for_scans(&db), 1, "{kind}");
    step_all(&db)?;
    let state = tree.inner.state.load_full();
    assert!(state.sealed.is_empty() && state.version.tables().count() == 1, "{kind}");
    let again = scans_until_sealed(&tree, || scan(&mut db, &tree))?;
    assert_eq!((again, sealed_for_scans(&db)), (None, 1), "{kind}");
    Ok(())
}

#[test]
fn a_memtable_whose_dead_entries_are_passed_again_and_again_is_sealed() -> Result<()> {
    check_sealed("forward", |_, tree| each_list(tree, forward))?;
    check_sealed("backward", |_, tree| each_list(tree, backward))?;
    check_sealed("one scan", |_, tree| {
        let mut scan = tree.scan::<&[u8]>(..)?;
        scan.seek_last()?;
        scan.prev()?;
        forward(&mut scan).map(drop)
    })
}

#[test]
fn scans_of_transactions_count() -> Result<()> {
    for isolation in [Isolation::RepeatableRead, Isolation::ReadCommitted, Isolation::Serializable]
    {
        let options = TransactionOptions { isolation, ..TransactionOptions::default() };
        check_sealed("transaction", |db, tree| {
            let mut txn = db.begin(options)?;
            let mut scan = txn.scan(tree, ScanOptions::default())?;
            assert!(backward(&mut scan)? >= LISTS * ROWS);
            Ok(())
        })?;
        check_sealed("bound again", |db, tree| {
            let mut txn = db.begin(options)?;
            let mut scan = txn.scan(tree, ScanOptions::default())?;
            for list in 0..LISTS {
                let (lower, upper) = (list.to_be_bytes(), (list + 1).to_be_bytes());
                txn.scan_again(tree, &mut scan, &lower, Some(&upper))?;
                assert_eq!(forward(&mut scan)?, ROWS);
            }
            Ok(())
        })?;
        check_sealed("locking", |db, tree| {
            let mut txn = db.begin(options)?;
            let mut scan = txn.scan_locking(tree, ScanOptions::default(), LockMode::Shared)?;
            let mut rows = 0;
            while scan.next(&mut txn)? {
                rows += 1;
            }
            assert!(rows >= LISTS * ROWS);
            Ok(())
        })?;
    }
    Ok(())
}

/// A flush would keep for it what is dead.
#[test]
fn an_old_snapshot_keeps_a_memtable_from_being_sealed() -> Result<()> {
    let (db, tree) = open()?;
    tree.put(b"first", b"")?;
    let old = db.snapshot();
    fill(&tree)?;
    assert_eq!(scans_until_sealed(&tree, || each_list(&tree, forward))?, None);
    let memtable = tree.inner.state.load().active.clone();
    assert!(memtable.dead_passed().load(Relaxed) < worth(memtable.count()), "it was counted anew");
    drop(old);
    let young = db.snapshot();
    // It is waited for twice as much each time that it was in vain.
    let sealed = || scans_until_sealed(&tree, || each_list(&tree, forward));
    assert!(sealed()?.is_some() || sealed()?.is_some());
    assert_eq!(sealed_for_scans(&db), 1);
    drop(young);
    step_all(&db)?;
    each_list(&tree, forward)
}

/// One that waits for its flush is enough.
#[test]
fn a_memtable_is_not_sealed_while_flushes_are_behind() -> Result<()> {
    let (db, tree) = open()?;
    for times in 1..3 {
        fill(&tree)?;
        assert_eq!(scans_until_sealed(&tree, || each_list(&tree, forward))?.is_some(), times == 1);
    }
    step_all(&db)?;
    let sealed = || scans_until_sealed(&tree, || each_list(&tree, forward));
    assert!(sealed()?.is_some() || sealed()?.is_some());
    assert_eq!(sealed_for_scans(&db), 2);
    Ok(())
}

#[test]
fn scans_of_what_is_alive_seal_nothing() -> Result<()> {
    let (db, tree) = open()?;
    for number in 0..2_000u32 {
        tree.put(&number.to_be_bytes(), b"")?;
    }
    let scans = scans_until_sealed(&tree, || {
        let mut scan = tree.scan::<&[u8]>(..)?;
        assert!(forward(&mut scan)? >= 2_000 && backward(&mut scan)? >= 2_000);
        Ok(())
    })?;
    assert_eq!((scans, sealed_for_scans(&db)), (None, 0));
    Ok(())
}

/// A flush keeps them, for what is in tables.
#[test]
fn deletes_of_what_is_in_tables_seal_nothing() -> Result<()> {
    let (db, tree) = open()?;
    for number in 0..2_000u32 {
        tree.put(&number.to_be_bytes(), b"")?;
    }
    tree.flush()?;
    for number in 0..2_000u32 {
        tree.delete(&number.to_be_bytes())?;
    }
    let scans = scans_until_sealed(&tree, || {
        let mut scan = tree.scan::<&[u8]>(..)?;
        assert!(forward(&mut scan)? <= 1 && backward(&mut scan)? <= 1);
        Ok(())
    })?;
    assert_eq!((scans, sealed_for_scans(&db)), (None, 0));
    Ok(())
}

/// What a transaction has deleted itself no flush drops.
#[test]
fn what_a_transaction_hides_from_itself_does_not_count() -> Result<()> {
    let (db, tree) = open()?;
    for number in 0..2_000u32 {
        tree.put(&number.to_be_bytes(), b"")?;
    }
    let mut txn = db.begin(TransactionOptions::default())?;
    for number in 0..2_000u32 {
        txn.delete(&tree, &number.to_be_bytes())?;
    }
    let scans = scans_until_sealed(&tree, || {
        let mut scan = txn.scan(&tree, ScanOptions::default())?;
        assert!(forward(&mut scan)? <= 1 && backward(&mut scan)? <= 1);
        Ok(())
    })?;
    assert_eq!((scans, sealed_for_scans(&db)), (None, 0));
    txn.commit(WriteOptions::default())?;
    let scans = scans_until_sealed(&tree, || {
        assert_eq!(forward(&mut tree.scan::<&[u8]>(..)?)?, 1);
        Ok(())
    })?;
    assert!(scans.is_some());
    Ok(())
}
