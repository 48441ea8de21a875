//! Scans that lock what they find, and the gaps between.

use super::*;

#[test]
fn a_locking_scan_locks_rows_and_gaps() {
    let (db, tree) = open();
    for key in ["b", "d", "f"] {
        tree.put(key.as_bytes(), b"0").unwrap();
    }
    let mut a = db.begin(TransactionOptions::default()).unwrap();
    let options = || ScanOptions { upper: Some(b"e".to_vec()), ..ScanOptions::default() };
    let mut scan = a.scan_locking(&tree, options(), LockMode::Exclusive).unwrap();
    assert_eq!(keys(&mut a, &mut scan), [b"b", b"d"]);
    for (key, free) in [("a", false), ("b", false), ("c", false), ("dd", false), ("e", true)] {
        let mut b = db.begin(TransactionOptions::default()).unwrap();
        assert_eq!(b.put(&tree, key.as_bytes(), b"").is_ok(), free, "{key}");
    }
    // Plain reads are not held up, and another may lock a gap that has no rows.
    let mut b = db.begin(TransactionOptions::default()).unwrap();
    assert_eq!(rows(&mut b, &tree).len(), 3);
    let gap = ScanOptions { prefix: Some(b"c".to_vec()), ..ScanOptions::default() };
    let mut scan = b.scan_locking(&tree, gap, LockMode::Exclusive).unwrap();
    assert_eq!(keys(&mut b, &mut scan), Vec::<Vec<u8>>::new());
    b.rollback();
    // At read committed only the rows are locked.
    a.rollback();
    let mut a = db.begin(at(Isolation::ReadCommitted)).unwrap();
    let mut scan = a.scan_locking(&tree, options(), LockMode::Shared).unwrap();
    assert_eq!(keys(&mut a, &mut scan).len(), 2);
    for (key, free) in [("a", true), ("b", false), ("c", true), ("d", false), ("e", true)] {
        let mut b = db.begin(TransactionOptions::default()).unwrap();
        assert_eq!(b.put(&tree, key.as_bytes(), b"").is_ok(), free, "{key}");
    }
}

#[test]
fn a_long_locking_scan_locks_gaps_ahead_but_not_far_and_waits_for_none_of_them() {
    let (db, tree) = open();
    let key = |n: u32| (n * 2).to_be_bytes();
    for n in 0..1_000 {
        tree.put(&key(n), b"").unwrap();
    }
    let refused = |txn: &mut Transaction, place: u32| {
        let result = txn.put(&tree, &place.to_be_bytes(), b"new");
        assert!(matches!(result, Ok(()) | Err(Error::LockTimeout { .. })), "{result:?}");
        result.is_err()
    };
    let options = TransactionOptions { lock_timeout: Duration::ZERO, ..Default::default() };
    let mut txn = db.begin(options).unwrap();
    let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Shared).unwrap();
    for n in 0..800 {
        assert!(scan.next(&mut txn).unwrap());
        assert_eq!(scan.key(), key(n));
    }
    let mut other = db.begin(options).unwrap();
    for n in 0..800 {
        assert!(refused(&mut other, n * 2 + 1) || n == 799, "before row {}", n + 1);
    }
    let free = (800..1_000).filter(|n| !refused(&mut other, n * 2 + 1)).count();
    assert!((136..=200).contains(&free), "{free} gaps are free");
    // It goes on up to what the other has written, and no further.
    let mut last = 799;
    let refusal = loop {
        match scan.next(&mut txn) {
            Ok(there) => assert!(there && scan.key() == key(last + 1)),
            Err(error) => break error,
        }
        last += 1;
    };
    assert!(matches!(refusal, Error::LockTimeout { .. }), "{refusal}");
    assert!(refused(&mut db.begin(options).unwrap(), last * 2 - 1));
    other.commit(WriteOptions::default()).unwrap();
    let rest = keys(&mut txn, &mut scan).len();
    assert_eq!(rest, 999 - last as usize + free, "with what the other has added");
    for n in 0..999 {
        assert!(refused(&mut db.begin(options).unwrap(), n * 2 + 1));
    }
    // Backwards it is as ever.
    assert!(scan.prev(&mut txn).unwrap());
    assert!(scan.prev(&mut txn).unwrap() && scan.next(&mut txn).unwrap());
}

#[test]
fn a_scan_that_skips_locked_rows_finds_the_others_in_both_directions() {
    let (db, tree) = open();
    for key in ["a", "b", "c", "d", "e"] {
        tree.put(key.as_bytes(), b"0").unwrap();
    }
    let mut other = db.begin(TransactionOptions::default()).unwrap();
    other.delete(&tree, b"a").unwrap();
    other.put(&tree, b"c", b"1").unwrap();
    other.put(&tree, b"cc", b"new").unwrap();
    other.put(&tree, b"e", b"1").unwrap();
    for backward in [false, true] {
        let mut txn = db.begin(TransactionOptions::default()).unwrap();
        let mut scan =
            txn.scan_locking(&tree, ScanOptions::default(), LockMode::Exclusive).unwrap();
        scan.skip_locked();
        let mut found = Vec::new();
        while if backward { scan.prev(&mut txn) } else { scan.next(&mut txn) }.unwrap() {
            found.push(scan.key().to_vec());
        }
        found.sort();
        assert_eq!(found, [b"b", b"d"]);
        // What it has shown is locked, what lies between is not.
        let mut third = db.begin(TransactionOptions::default()).unwrap();
        third.set_lock_timeout(std::time::Duration::ZERO);
        assert!(third.put(&tree, b"b", b"").is_err());
        third.put(&tree, b"bb", b"").unwrap();
    }
    drop(other);
}

#[test]
fn a_locking_scan_waits_for_rows_that_are_being_written_and_finds_them() {
    for backward in [false, true] {
        let (db, tree) = open();
        for key in ["b", "d", "f"] {
            tree.put(key.as_bytes(), b"0").unwrap();
        }
        let mut writer = db.begin(TransactionOptions::default()).unwrap();
        writer.put(&tree, b"c", b"new").unwrap();
        writer.delete(&tree, b"d").unwrap();
        let mut txn = db.begin(TransactionOptions::default()).unwrap();
        let mut scan =
            txn.scan_locking(&tree, ScanOptions::default(), LockMode::Exclusive).unwrap();
        let mut found = Vec::new();
        let mut writer = Some(writer);
        loop {
            let moved = if backward { scan.prev(&mut txn) } else { scan.next(&mut txn) };
            match moved {
                Ok(true) => {
                    let new = scan.key() == b"c";
                    assert_eq!(scan.value(), if new { &b"new"[..] } else { b"0" });
                    found.push(scan.key().to_vec());
                }
                Ok(false) => break,
                Err(Error::LockWait { .. }) => writer.take().unwrap().commit(DONE).unwrap(),
                Err(error) => panic!("{error}"),
            }
        }
        assert!(writer.is_none(), "it had to wait");
        if backward {
            found.reverse();
        }
        assert_eq!(found, [b"b", b"c", b"f"], "backward {backward}");
    }
}
