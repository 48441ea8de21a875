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

/// As of a join of a table with itself: each scan has locked gaps ahead up to the last row. When
/// both have passed there, a wait frees nothing of it.
#[test]
fn two_locking_scans_of_one_tree_keep_what_they_have_passed() {
    let (db, tree) = open();
    let key = |n: u32| (n * 2).to_be_bytes();
    for n in 0..1_000 {
        tree.put(&key(n), b"").unwrap();
    }
    tree.put(b"zz", b"").unwrap();
    let options = TransactionOptions { lock_timeout: Duration::ZERO, ..Default::default() };
    let mut other = db.begin(options).unwrap();
    other.put(&tree, b"zz", b"new").unwrap();
    let upper = || Some(key(1_000).to_vec());
    for from in (900..990).step_by(10) {
        let mut txn = db.begin(TransactionOptions::default()).unwrap();
        let all = ScanOptions { upper: upper(), ..Default::default() };
        let mut outer = txn.scan_locking(&tree, all, LockMode::Exclusive).unwrap();
        for _ in 0..from {
            assert!(outer.next(&mut txn).unwrap());
        }
        let lower = Some(key(from).to_vec());
        let rest = ScanOptions { lower, upper: upper(), ..Default::default() };
        let mut inner = txn.scan_locking(&tree, rest, LockMode::Exclusive).unwrap();
        for _ in from..1_000 {
            assert!(inner.next(&mut txn).unwrap());
        }
        assert!(outer.next(&mut txn).unwrap());
        assert_eq!((outer.key(), inner.key()), (&key(from)[..], &key(999)[..]));
        let waits = txn.put(&tree, b"zz", b"mine");
        assert!(matches!(waits, Err(Error::LockQueued { .. })), "{waits:?}");
        for n in 1..1_000u32 {
            let put = db.begin(options).unwrap().put(&tree, &(n * 2 - 1).to_be_bytes(), b"new");
            assert!(matches!(put, Err(Error::LockTimeout { .. })), "{from}: before row {n}");
        }
    }
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
                Err(Error::LockQueued { .. }) => writer.take().unwrap().commit(DONE).unwrap(),
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

/// All rows that a scan comes to; `meanwhile` is called when it waits.
fn walk(
    txn: &mut Transaction,
    scan: &mut LockingScan,
    backward: bool,
    meanwhile: &mut dyn FnMut(),
) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        match if backward { scan.prev(txn) } else { scan.next(txn) } {
            Ok(true) => found.push(String::from_utf8_lossy(scan.key()).into_owned()),
            Ok(false) => return found,
            Err(Error::LockQueued { .. }) => meanwhile(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn at_read_committed(db: &Db) -> Transaction {
    db.begin(at(Isolation::ReadCommitted)).unwrap()
}

#[test]
fn at_read_committed_a_locking_scan_waits_for_new_rows_and_shows_them() {
    for (backward, commits) in [(false, true), (false, false), (true, true), (true, false)] {
        let (db, tree) = open();
        for key in ["b", "d", "f"] {
            tree.put(key.as_bytes(), b"0").unwrap();
        }
        let mut writers: Vec<Transaction> = Vec::new();
        for key in ["a", "c", "g"] {
            let mut writer = at_read_committed(&db);
            writer.put(&tree, key.as_bytes(), b"new").unwrap();
            writers.push(writer);
        }
        if !backward {
            writers.reverse();
        }
        let mut txn = at_read_committed(&db);
        let mut scan =
            txn.scan_locking(&tree, ScanOptions::default(), LockMode::Exclusive).unwrap();
        // While it waits for one, others come; where it has been it does not look again.
        let mut added = vec!["e", "ee"];
        let mut found = walk(&mut txn, &mut scan, backward, &mut || {
            if let Some(key) = added.pop() {
                tree.put(key.as_bytes(), b"new").unwrap();
            }
            let writer = writers.pop().expect("it waits no more often");
            if commits {
                writer.commit(DONE).unwrap();
            }
        });
        assert!(writers.is_empty(), "it has waited for all");
        if backward {
            found.reverse();
        }
        // Backward it is before them by the time that the second is added.
        let expected = match (backward, commits) {
            (false, true) => "a b c d e ee f g",
            (false, false) => "b d e ee f",
            (true, true) => "a b c d e ee f g",
            (true, false) => "b d e ee f",
        };
        let late = if backward { "e " } else { "" };
        assert_eq!(found.join(" "), expected.replacen(late, "", 1), "{backward} {commits}");
        // It has locked what it has shown, and nothing else.
        let mut other = at_read_committed(&db);
        other.set_lock_timeout(Duration::ZERO);
        for key in ["a", "b", "c", "d", "e", "ee", "f", "g", "h"] {
            let refused = other.put(&tree, key.as_bytes(), b"").is_err();
            assert_eq!(refused, found.iter().any(|row| row == key), "{key}");
        }
        drop(txn);
    }
}

#[test]
fn a_locking_scan_does_not_wait_for_what_it_does_not_come_to() {
    let (db, tree) = open();
    for key in ["b", "d"] {
        tree.put(key.as_bytes(), b"0").unwrap();
    }
    let mut writer = at_read_committed(&db);
    for key in ["a", "c", "e"] {
        writer.put(&tree, key.as_bytes(), b"new").unwrap();
    }
    let mut never = || panic!("it waits");
    // Bounds, the first row, a scan that skips, one that only shows what others have locked.
    let bounded = |lower: &str, upper: &str| ScanOptions {
        lower: Some(lower.as_bytes().to_vec()),
        upper: Some(upper.as_bytes().to_vec()),
        ..ScanOptions::default()
    };
    for backward in [false, true] {
        let mut txn = at_read_committed(&db);
        for (lower, upper, rows) in [("aa", "c", "b"), ("cc", "e", "d"), ("f", "g", "")] {
            let mut scan =
                txn.scan_locking(&tree, bounded(lower, upper), LockMode::Shared).unwrap();
            assert_eq!(walk(&mut txn, &mut scan, backward, &mut never).join(""), rows);
        }
        let (lower, upper) = if backward { ("a", "e") } else { ("b", "f") };
        let mut scan = txn.scan_locking(&tree, bounded(lower, upper), LockMode::Shared).unwrap();
        assert!(if backward { scan.prev(&mut txn) } else { scan.next(&mut txn) }.unwrap());
        assert_eq!(scan.key(), if backward { b"d" } else { b"b" });
        for skips in [false, true] {
            let mut scan =
                txn.scan_locking(&tree, ScanOptions::default(), LockMode::Shared).unwrap();
            if skips {
                scan.skip_locked();
            } else {
                scan.peek_locked(true);
            }
            assert_eq!(walk(&mut txn, &mut scan, backward, &mut never).len(), 2);
        }
        // Without a wait it is refused where it comes to one, and stays where it was.
        txn.set_lock_timeout(Duration::ZERO);
        let mut scan = txn.scan_locking(&tree, bounded("b", "z"), LockMode::Shared).unwrap();
        let step = |scan: &mut LockingScan, txn: &mut Transaction| {
            if backward { scan.prev(txn) } else { scan.next(txn) }
        };
        if !backward {
            assert!(scan.next(&mut txn).unwrap());
        }
        for _ in 0..2 {
            let refused = step(&mut scan, &mut txn);
            assert!(matches!(refused, Err(Error::LockTimeout { .. })), "{refused:?}");
        }
    }
    // Nor for its own, many as there are, and for reads of others.
    let mut txn = at_read_committed(&db);
    for n in 0..2_000u32 {
        txn.put(&tree, format!("m{n:05}").as_bytes(), b"").unwrap();
    }
    let mut reader = at_read_committed(&db);
    reader.get_for_update(&tree, b"m").unwrap();
    let mut scan = txn.scan_locking(&tree, bounded("f", "z"), LockMode::Exclusive).unwrap();
    assert_eq!(walk(&mut txn, &mut scan, false, &mut never).len(), 2_000);
    let mut scan = txn.scan_locking(&tree, bounded("f", "z"), LockMode::Exclusive).unwrap();
    assert_eq!(walk(&mut txn, &mut scan, true, &mut never).len(), 2_000);
    // Another finds the end of all that it has written from either side.
    for backward in [false, true] {
        let mut other = at_read_committed(&db);
        other.set_lock_timeout(Duration::ZERO);
        let mut scan = other.scan_locking(&tree, bounded("f", "z"), LockMode::Shared).unwrap();
        let refused = if backward { scan.prev(&mut other) } else { scan.next(&mut other) };
        let key = if backward { "m01999" } else { "m00000" };
        assert!(refused.unwrap_err().to_string().contains(key));
    }
    writer.rollback();
}

#[test]
fn at_read_committed_a_locking_scan_shows_what_was_committed_before_it_came() {
    for (backward, flushes, skips) in
        [(false, false, false), (true, true, false), (false, true, true), (true, false, true)]
    {
        let (db, tree) = open();
        for key in ["b", "d", "f"] {
            tree.put(key.as_bytes(), b"0").unwrap();
        }
        let mut txn = at_read_committed(&db);
        let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Shared).unwrap();
        if skips {
            scan.skip_locked();
        }
        assert!(if backward { scan.prev(&mut txn) } else { scan.next(&mut txn) }.unwrap());
        for key in ["a", "c", "g"] {
            tree.put(key.as_bytes(), b"new").unwrap();
        }
        if flushes {
            db.flush().unwrap();
        }
        tree.put(b"e", b"new").unwrap();
        let found = walk(&mut txn, &mut scan, backward, &mut || panic!("it waits"));
        assert_eq!(found.join(" "), if backward { "e d c b a" } else { "c d e f g" });
    }
}

#[test]
fn at_read_committed_a_locking_scan_leaves_the_place_of_a_row_that_was_deleted_free() {
    for backward in [false, true] {
        let (db, tree) = open();
        for key in ["b", "d", "f"] {
            tree.put(key.as_bytes(), b"0").unwrap();
        }
        let mut writer = at_read_committed(&db);
        writer.delete(&tree, b"d").unwrap();
        let mut writer = Some(writer);
        let mut txn = at_read_committed(&db);
        // The lock of a row that an earlier call relies on stays, deleted or not.
        txn.get_for_update(&tree, b"f").unwrap();
        txn.delete(&tree, b"f").unwrap();
        let mut scan =
            txn.scan_locking(&tree, ScanOptions::default(), LockMode::Exclusive).unwrap();
        let found = walk(&mut txn, &mut scan, backward, &mut || {
            writer.take().expect("it waits once").commit(DONE).unwrap();
        });
        assert_eq!(found, ["b"], "backward {backward}");
        let mut other = at_read_committed(&db);
        other.set_lock_timeout(Duration::ZERO);
        for (key, free) in [("b", false), ("d", true), ("f", false)] {
            assert_eq!(other.put(&tree, key.as_bytes(), b"").is_ok(), free, "{key} {backward}");
        }
    }
}
