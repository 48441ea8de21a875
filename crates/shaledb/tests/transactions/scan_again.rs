//! Scans that are made anew of other bounds: each equals one that is new.

use super::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shaledb::Scan;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn walk(scan: &mut Scan, backward: bool) -> Rows {
    let mut found = Vec::new();
    if backward { scan.seek_last() } else { scan.seek_first() }.unwrap();
    while scan.valid() {
        found.push((scan.key().to_vec(), scan.value().unwrap().to_vec()));
        if backward { scan.prev() } else { scan.next() }.unwrap();
    }
    found
}

fn key(rng: &mut Pcg64Mcg) -> Vec<u8> {
    format!("{:03}", rng.random_range(0..300)).into_bytes()
}

/// What a transaction, others and the background do between two scans.
fn change(rng: &mut Pcg64Mcg, db: &Db, trees: &[Tree], txn: &mut Transaction) {
    let tree = &trees[rng.random_range(0..trees.len())];
    let (one, value) = (key(rng), key(rng).repeat(rng.random_range(1..40)));
    match rng.random_range(0..24) {
        0..=4 => txn.put(tree, &one, &value).unwrap(),
        5..=6 => txn.delete(tree, &one).unwrap(),
        7 => {
            let savepoint = txn.savepoint();
            txn.put(tree, &one, &value).unwrap();
            txn.delete(tree, &key(rng)).unwrap();
            txn.rollback_to(savepoint).unwrap();
        }
        8 if rng.random_range(0..3) == 0 => {
            txn.delete_range(tree, &one, &[&one[..], b"a"].concat()).unwrap();
        }
        // Keys of others are locked by nobody here.
        9..=11 => tree.put(&[&one[..], b"x"].concat(), &value).unwrap(),
        12 => db.flush().unwrap(),
        13 if rng.random_range(0..3) == 0 => db.compact().unwrap(),
        14 => txn.begin_statement().unwrap(),
        _ => {}
    }
}

#[test]
fn a_scan_made_again_equals_one_made_anew() {
    let isolations = [Isolation::RepeatableRead, Isolation::ReadCommitted, Isolation::Serializable];
    for seed in 0..60 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let db = open_on(&MemFs::new());
        let trees = ["t", "u"].map(|name| db.tree_or_create(name).unwrap());
        let mut kept: Option<Scan> = None;
        for round in 0..6 {
            for _ in 0..rng.random_range(0..300) {
                let (one, value) = (key(&mut rng), key(&mut rng).repeat(9));
                trees[rng.random_range(0..2)].put(&one, &value).unwrap();
            }
            if rng.random_range(0..2) == 0 {
                db.flush().unwrap();
            }
            let isolation = isolations[rng.random_range(0..3)];
            // Some spill.
            let memory_bytes = if rng.random_range(0..3) == 0 { 2000 } else { 0 };
            let on_conflict = OnConflict::Latest;
            let options = TransactionOptions { memory_bytes, on_conflict, ..at(isolation) };
            let mut txn = db.begin(options).unwrap();
            for step in 0..60 {
                if isolation != Isolation::Serializable || step == 0 {
                    change(&mut rng, &db, &trees, &mut txn);
                }
                let tree = &trees[usize::from(rng.random_range(0..12) == 0)];
                let (lower, to) = (key(&mut rng), key(&mut rng));
                let upper = (rng.random_range(0..6) != 0).then_some(to);
                let new = ScanOptions {
                    lower: Some(lower.clone()),
                    upper: upper.clone(),
                    ..ScanOptions::default()
                };
                let mut new = txn.scan(tree, new).unwrap();
                let scan = match kept.as_mut() {
                    Some(scan) => {
                        txn.scan_again(tree, scan, &lower, upper.as_deref()).unwrap();
                        assert!(!scan.valid());
                        scan
                    }
                    None => kept.insert(txn.scan(tree, ScanOptions::default()).unwrap()),
                };
                if step == 0 && round == 0 {
                    continue;
                }
                let backward = rng.random_range(0..2) == 0;
                let (is, should) = (walk(scan, backward), walk(&mut new, backward));
                assert_eq!(is, should, "seed {seed} round {round} step {step}");
            }
            match rng.random_range(0..3) {
                0 => txn.commit(DONE).unwrap(),
                _ => txn.rollback(),
            }
        }
    }
}

#[test]
fn after_an_error_a_scan_made_again_is_at_no_row() {
    let (db, tree) = open();
    tree.put(b"a", b"1").unwrap();
    let mut txn = db.begin(at(Isolation::Serializable)).unwrap();
    let mut scan = txn.scan(&tree, ScanOptions::default()).unwrap();
    scan.seek_first().unwrap();
    assert!(scan.valid());
    let mut other = db.begin(TransactionOptions::default()).unwrap();
    assert!(other.put(&tree, b"b", b"2").is_err(), "the range is locked");
    other.rollback();
    txn.rollback();
    let mut other = db.begin(TransactionOptions::default()).unwrap();
    other.put(&tree, b"b", b"2").unwrap();
    let options =
        TransactionOptions { lock_timeout: Duration::ZERO, ..at(Isolation::Serializable) };
    let mut txn = db.begin(options).unwrap();
    // As a new scan it locks its range, or fails.
    assert!(txn.scan_again(&tree, &mut scan, b"b", Some(b"c")).is_err());
    assert!(!scan.valid());
    txn.scan_again(&tree, &mut scan, b"a", Some(b"b")).unwrap();
    assert_eq!(walk(&mut scan, false).len(), 1);
    assert!(other.put(&tree, b"a", b"2").is_err(), "the range is locked");
}
