//! Transactions larger than the memory that they may take: what they read, undo, commit and leave
//! behind is what a small one would.

mod common;

use common::files;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shaledb::fs::mem::{CrashMode, MemFs};
use shaledb::{
    Db, Error, LockMode, Savepoint, ScanOptions, Transaction, TransactionOptions, Tree,
    WriteOptions,
};
use std::collections::BTreeMap;

const DONE: WriteOptions = WriteOptions { sync: false };

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn open_on(fs: &MemFs) -> Db {
    common::open_on(fs).unwrap()
}

fn small(memory_bytes: u64) -> TransactionOptions {
    TransactionOptions { memory_bytes, ..TransactionOptions::default() }
}

fn rows(tree: &Tree) -> Rows {
    tree.scan::<&[u8]>(..).unwrap().map(|row| row.unwrap()).collect()
}

/// One transaction over two trees, and what it should see of each.
struct Run {
    rng: Pcg64Mcg,
    trees: [Tree; 2],
    seen: [Rows; 2],
    marks: Vec<(Savepoint, [Rows; 2])>,
    /// A scan made earlier, and what it shows.
    scan: Option<(shaledb::Scan, Rows)>,
}

impl Run {
    fn key(&mut self) -> Vec<u8> {
        format!("key{:03}", self.rng.random_range(0..150)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let length = match self.rng.random_range(0..60) {
            0 => 4096 + self.rng.random_range(0..3000),
            _ => self.rng.random_range(0..120),
        };
        (0..length).map(|_| self.rng.random()).collect()
    }

    fn step(&mut self, txn: &mut Transaction) {
        let at = self.rng.random_range(0..2usize);
        let tree = self.trees[at].clone();
        match self.rng.random_range(0..100) {
            0..50 => {
                let (key, value) = (self.key(), self.value());
                txn.put(&tree, &key, &value).unwrap();
                self.seen[at].insert(key, value);
            }
            50..54 => {
                let (key, value) = (self.key(), self.value());
                let found = txn.insert(&tree, &key, &value).unwrap().map(Vec::from);
                assert_eq!(found.as_ref(), self.seen[at].get(&key));
                self.seen[at].entry(key).or_insert(value);
            }
            54..60 => {
                let key = self.key();
                txn.delete(&tree, &key).unwrap();
                self.seen[at].remove(&key);
            }
            60..62 => {
                let (a, b) = (self.key(), self.key());
                let (a, b) = (a.clone().min(b.clone()), a.max(b));
                txn.delete_range(&tree, &a, &b).unwrap();
                self.seen[at].retain(|key, _| *key < a || *key >= b);
            }
            62..66 => self.marks.push((txn.savepoint(), self.seen.clone())),
            66..70 if !self.marks.is_empty() => {
                let place = self.rng.random_range(0..self.marks.len());
                self.marks.truncate(place + 1);
                txn.rollback_to(self.marks[place].0).unwrap();
                self.seen = self.marks[place].1.clone();
            }
            70..80 => {
                let key = self.key();
                let found = txn.get(&tree, &key).unwrap().map(Vec::from);
                assert_eq!(found.as_ref(), self.seen[at].get(&key));
            }
            80..84 => {
                let keys: Vec<Vec<u8>> = (0..10).map(|_| self.key()).collect();
                let found = txn.multi_get(&tree, &keys).unwrap();
                for (key, value) in keys.iter().zip(found) {
                    assert_eq!(value.map(Vec::from).as_ref(), self.seen[at].get(key));
                }
            }
            84..88 => self.check(txn, at),
            88..90 => {
                let all = ScanOptions::default();
                let mut scan = txn.scan_locking(&tree, all, LockMode::Shared).unwrap();
                let mut found = Rows::new();
                while scan.next(txn).unwrap() {
                    found.insert(scan.key().to_vec(), scan.value().to_vec());
                }
                assert_eq!(found, self.seen[at]);
            }
            90..92 => {
                let scan = txn.scan(&tree, ScanOptions::default()).unwrap();
                self.scan = Some((scan, self.seen[at].clone()));
            }
            _ => self.check_scan(),
        }
    }

    /// All rows of a tree, in both directions.
    fn check(&self, txn: &mut Transaction, at: usize) {
        let mut scan = txn.scan(&self.trees[at], ScanOptions::default()).unwrap();
        let (mut back, mut on) = (Rows::new(), Rows::new());
        scan.seek_last().unwrap();
        while scan.valid() {
            back.insert(scan.key().to_vec(), scan.value().unwrap().to_vec());
            scan.prev().unwrap();
        }
        scan.seek_first().unwrap();
        while scan.valid() {
            on.insert(scan.key().to_vec(), scan.value().unwrap().to_vec());
            scan.next().unwrap();
        }
        assert!(back == self.seen[at] && on == self.seen[at]);
    }

    /// A scan shows what was there when it was made, whatever was undone or moved since.
    fn check_scan(&mut self) {
        let Some((scan, shown)) = &mut self.scan else { return };
        scan.seek_first().unwrap();
        let mut found = Rows::new();
        while scan.valid() {
            found.insert(scan.key().to_vec(), scan.value().unwrap().to_vec());
            scan.next().unwrap();
        }
        assert_eq!(found, *shown);
    }
}

#[test]
fn any_program_sees_and_leaves_what_the_model_says() {
    let mut spilled = 0;
    for seed in 0..40 {
        let fs = MemFs::new();
        let db = open_on(&fs);
        let trees = ["a", "b"].map(|name| db.tree_or_create(name).unwrap());
        let mut committed = [Rows::new(), Rows::new()];
        for round in 0..4 {
            let label = format!("seed {seed}, round {round}");
            let rng = Pcg64Mcg::seed_from_u64(seed * 10 + round);
            let (trees, seen) = (trees.clone(), committed.clone());
            let mut run = Run { rng, trees, seen, marks: Vec::new(), scan: None };
            let memory_bytes = [600, 2_000, 20_000][run.rng.random_range(0..3)];
            let mut txn = db.begin(small(memory_bytes)).unwrap();
            for _ in 0..run.rng.random_range(0..600) {
                match run.rng.random_range(0..50) {
                    0 => drop(db.step().unwrap()),
                    _ => run.step(&mut txn),
                }
            }
            run.check(&mut txn, 0);
            run.check(&mut txn, 1);
            spilled += u32::from(txn.spilled_bytes() > 0);
            if run.rng.random_range(0..3) > 0 {
                txn.commit(DONE).unwrap();
                committed = run.seen.clone();
            } else {
                drop(txn);
            }
            run.check_scan();
            drop(run);
            assert_eq!([rows(&trees_of(&db)[0]), rows(&trees_of(&db)[1])], committed, "{label}");
            assert_eq!(files(&fs, ".run"), 0, "{label}");
        }
        assert!(db.verify(&mut |_| {}).unwrap().damage.is_empty());
        db.compact().unwrap();
        let [a, b] = trees_of(&db);
        assert_eq!([rows(&a), rows(&b)], committed, "seed {seed}, compacted");
        drop((a, b, trees));
        db.close().unwrap();
        let before = fs.files().len();
        let db = open_on(&fs);
        let [a, b] = trees_of(&db);
        assert_eq!([rows(&a), rows(&b)], committed, "seed {seed}, opened anew");
        assert!(fs.files().len() <= before + 1, "seed {seed}: {:?}", fs.files());
    }
    assert!(spilled > 60, "{spilled}");
}

fn trees_of(db: &Db) -> [Tree; 2] {
    ["a", "b"].map(|name| db.tree(name).unwrap())
}

/// So many rows that a transaction with 10 kB writes a good number of runs.
fn fill(txn: &mut Transaction, tree: &Tree, from: u32, to: u32) {
    for n in from..to {
        txn.put(tree, &n.to_be_bytes(), &[n as u8; 100]).unwrap();
    }
}

#[test]
fn the_commit_is_one_place_of_the_commit_order_in_all_trees() {
    let db = open_on(&MemFs::new());
    let (a, b) = (db.tree_or_create("a").unwrap(), db.tree_or_create("b").unwrap());
    for n in 0..500u32 {
        a.put(&n.to_be_bytes(), b"old").unwrap();
    }
    let before = db.snapshot();
    let mut txn = db.begin(small(10_000)).unwrap();
    fill(&mut txn, &a, 250, 1_000);
    fill(&mut txn, &b, 0, 700);
    txn.delete_range(&a, &0u32.to_be_bytes(), &100u32.to_be_bytes()).unwrap();
    txn.put(&b, b"large", &[7; 20_000]).unwrap();
    assert!(txn.spilled_bytes() > 0);
    assert_eq!((rows(&a).len(), rows(&b).len()), (500, 0));
    txn.commit(DONE).unwrap();
    let after = db.snapshot();
    assert_eq!(after.seq(), before.seq() + 1);
    let count = |tree: &Tree, snapshot| {
        let options = ScanOptions { snapshot: Some(snapshot), ..ScanOptions::default() };
        tree.scan_with(options).unwrap().count()
    };
    assert_eq!((count(&a, &before), count(&b, &before)), (500, 0));
    assert_eq!((count(&a, &after), count(&b, &after)), (900, 701));
    assert_eq!(b.get(b"large").unwrap().unwrap(), [7; 20_000]);
    assert_eq!(a.get(&300u32.to_be_bytes()).unwrap().unwrap(), [44; 100]);
    // What comes later lies above.
    a.put(&300u32.to_be_bytes(), b"new").unwrap();
    a.put(&50u32.to_be_bytes(), b"new").unwrap();
    for _ in 0..2 {
        assert_eq!(a.get(&300u32.to_be_bytes()).unwrap().unwrap(), b"new");
        assert_eq!(a.get(&50u32.to_be_bytes()).unwrap().unwrap(), b"new");
        assert_eq!((count(&a, &before), count(&b, &before)), (500, 0));
        db.compact().unwrap();
    }
}

#[test]
fn what_is_undone_as_a_whole_takes_no_files() {
    let fs = MemFs::new();
    let db = open_on(&fs);
    let tree = db.tree_or_create("t").unwrap();
    let mut txn = db.begin(small(10_000)).unwrap();
    txn.put(&tree, b"kept", b"1").unwrap();
    for _ in 0..3 {
        let savepoint = txn.savepoint();
        fill(&mut txn, &tree, 0, 3_000);
        txn.put(&tree, b"large", &[7; 20_000]).unwrap();
        assert!(txn.spilled_bytes() > 0 && txn.writes() == 3_002);
        let mut scan = txn.scan(&tree, ScanOptions::default()).unwrap();
        txn.rollback_to(savepoint).unwrap();
        assert_eq!(txn.writes(), 1);
        // At most the run that the first write is in is left, once nobody reads the others.
        scan.seek_first().unwrap();
        assert_eq!(scan.count(), 3_002);
        assert!(files(&fs, ".run") <= 1, "{:?}", fs.files());
        assert_eq!(txn.scan(&tree, ScanOptions::default()).unwrap().count(), 1);
    }
    txn.commit(DONE).unwrap();
    assert_eq!(rows(&tree).into_keys().collect::<Vec<_>>(), [b"kept"]);
    assert_eq!((files(&fs, ".run"), files(&fs, ".blob")), (0, 0), "{:?}", fs.files());
}

#[test]
fn a_full_disk_refuses_a_write_and_no_more() {
    let fs = MemFs::new();
    let db = open_on(&fs);
    let (tree, other) = (db.tree_or_create("t").unwrap(), db.tree_or_create("u").unwrap());
    let mut txn = db.begin(small(10_000)).unwrap();
    fill(&mut txn, &tree, 0, 1_000);
    let savepoint = txn.savepoint();
    fs.set_capacity(Some(fs.used_bytes() + 60_000));
    let random = |n: u32| -> Vec<u8> {
        let mut rng = Pcg64Mcg::seed_from_u64(n.into());
        (0..100).map(|_| rng.random()).collect()
    };
    let mut written = 1_000;
    let error = loop {
        match txn.put(&tree, &(written as u32).to_be_bytes(), &random(written as u32)) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(error.is_disk_full() && written > 1_100, "{written}: {error}");
    let count = |txn: &mut Transaction| txn.scan(&tree, ScanOptions::default()).unwrap().count();
    assert_eq!(count(&mut txn), written);
    txn.rollback_to(savepoint).unwrap();
    assert_eq!(count(&mut txn), 1_000);
    // The commit finds no space either, and leaves nothing.
    fs.set_capacity(Some(fs.used_bytes()));
    txn.put(&other, b"a", b"1").unwrap();
    assert!(txn.commit(DONE).unwrap_err().is_disk_full());
    assert_eq!((rows(&tree).len(), rows(&other).len()), (0, 0));
    assert_eq!(files(&fs, ".run"), 0, "{:?}", fs.files());
    fs.set_capacity(None);
    let mut txn = db.begin(small(10_000)).unwrap();
    fill(&mut txn, &tree, 0, 1_000);
    txn.commit(DONE).unwrap();
    assert_eq!(rows(&tree).len(), 1_000);
    let tables = files(&fs, ".table");
    db.close().unwrap();
    drop((tree, other));
    let db = open_on(&fs);
    assert_eq!((files(&fs, ".table"), rows(&db.tree("t").unwrap()).len()), (tables, 1_000));
}

#[test]
fn a_crash_leaves_nothing_of_what_was_not_committed() {
    let fs = MemFs::new();
    let db = open_on(&fs);
    let tree = db.tree_or_create("t").unwrap();
    let mut txn = db.begin(small(10_000)).unwrap();
    fill(&mut txn, &tree, 0, 1_000);
    txn.put(&tree, b"large", &[7; 20_000]).unwrap();
    fill(&mut txn, &tree, 1_000, 2_000);
    assert!(files(&fs, ".run") > 1 && files(&fs, ".blob") == 1);
    let killed = fs.fork();
    assert!(files(&killed, ".run") > 1);
    let again = open_on(&killed);
    assert_eq!(rows(&again.tree("t").unwrap()).len(), 0);
    assert_eq!((files(&killed, ".run"), files(&killed, ".blob")), (0, 0), "{:?}", killed.files());
}

#[test]
fn conflicts_locks_and_waits_are_those_of_a_small_one() {
    let db = open_on(&MemFs::new());
    let tree = db.tree_or_create("t").unwrap();
    let mut txn = db.begin(small(10_000)).unwrap();
    txn.take_snapshot().unwrap();
    tree.put(&700u32.to_be_bytes(), b"theirs").unwrap();
    fill(&mut txn, &tree, 0, 700);
    let refused = txn.put(&tree, &700u32.to_be_bytes(), b"ours");
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    let lock_timeout = std::time::Duration::ZERO;
    let mut other =
        db.begin(TransactionOptions { lock_timeout, ..TransactionOptions::default() }).unwrap();
    let refused = other.put(&tree, &3u32.to_be_bytes(), b"other");
    assert!(matches!(refused, Err(Error::LockTimeout { .. })), "{refused:?}");
    assert_eq!(txn.writes(), 700);
    txn.commit(DONE).unwrap();
    other.put(&tree, &3u32.to_be_bytes(), b"other").unwrap();
    other.commit(DONE).unwrap();
    assert_eq!(tree.get(&3u32.to_be_bytes()).unwrap().unwrap(), b"other");
    // A tree that is dropped meanwhile.
    let mut txn = db.begin(small(10_000)).unwrap();
    fill(&mut txn, &tree, 0, 700);
    db.drop_tree("t").unwrap();
    assert!(matches!(txn.commit(DONE), Err(Error::NoSuchTree(_))));
}

#[test]
fn large_transactions_are_prepared_and_decided_after_a_crash_too() {
    for commit in [true, false] {
        let fs = MemFs::new();
        let db = open_on(&fs);
        let (a, b) = (db.tree_or_create("a").unwrap(), db.tree_or_create("b").unwrap());
        for n in 0..100u32 {
            a.put(&n.to_be_bytes(), b"old").unwrap();
        }
        let mut txn = db.begin(small(10_000)).unwrap();
        txn.delete_range(&a, &0u32.to_be_bytes(), &50u32.to_be_bytes()).unwrap();
        fill(&mut txn, &a, 90, 600);
        fill(&mut txn, &b, 0, 600);
        txn.put(&b, b"large", &[7; 20_000]).unwrap();
        assert!(txn.spilled_bytes() > 0);
        let prepared = txn.prepare(b"x").unwrap();
        assert!(matches!(
            db.begin(small(0)).unwrap().prepare(b"x"),
            Err(Error::InvalidArgument(_))
        ));
        // Those of the transaction alone are gone; what it is to add to two trees is called so, too.
        assert_eq!((files(&fs, ".run"), files(&fs, ".prepared")), (2, 1));
        db.compact().unwrap();
        drop(prepared);
        // The machine stops: nothing of it was in the log.
        let disk = fs.crash_clone(1, CrashMode::Lost);
        let db = open_on(&disk);
        let (a, b) = (db.tree("a").unwrap(), db.tree("b").unwrap());
        assert_eq!((rows(&a).len(), rows(&b).len()), (100, 0));
        let lock_timeout = std::time::Duration::ZERO;
        let options = TransactionOptions { lock_timeout, ..TransactionOptions::default() };
        for n in [3u32, 95, 599] {
            let refused = db.begin(options).unwrap().put(&a, &n.to_be_bytes(), b"");
            assert!(matches!(refused, Err(Error::LockTimeout { .. })), "{n}: {refused:?}");
        }
        db.begin(options).unwrap().put(&a, &70u32.to_be_bytes(), b"").unwrap();
        let mut found = db.prepared().unwrap();
        assert_eq!(found.len(), 1);
        let found = found.remove(0);
        if commit {
            found.commit(DONE).unwrap();
        } else {
            found.rollback(DONE).unwrap();
        }
        assert!(db.prepared().unwrap().is_empty());
        let expected = if commit { (50 + 500, 601) } else { (100, 0) };
        assert_eq!((rows(&a).len(), rows(&b).len()), expected);
        db.begin(options).unwrap().put(&a, &95u32.to_be_bytes(), b"").unwrap();
        drop((a, b));
        db.close().unwrap();
        let left = disk.files();
        let db = open_on(&disk.crash_clone(1, CrashMode::Lost));
        assert!(db.prepared().unwrap().is_empty());
        let (a, b) = (db.tree("a").unwrap(), db.tree("b").unwrap());
        assert_eq!((rows(&a).len(), rows(&b).len()), expected);
        assert!(db.verify(&mut |_| {}).unwrap().damage.is_empty());
        let blobs = usize::from(commit);
        assert_eq!(files(&disk, ".blob"), blobs, "{left:?}");
    }
}

/// Others wait for that commit, where the order of commits is a binary log's.
#[test]
fn the_commit_of_what_is_prepared_flushes_only_what_came_since() {
    let db = open_on(&MemFs::new());
    let [a, b] = ["a", "b"].map(|name| db.tree_or_create(name).unwrap());
    for tree in [&a, &b] {
        for n in 0..100u32 {
            tree.put(&n.to_be_bytes(), b"old").unwrap();
        }
    }
    let in_memory =
        || db.stats().trees.iter().map(|tree| tree.memtable_entries).collect::<Vec<_>>();
    let mut txn = db.begin(small(10_000)).unwrap();
    fill(&mut txn, &a, 0, 1_000);
    assert!(txn.spilled_bytes() > 0);
    assert_eq!(in_memory(), [100, 100]);
    let prepared = txn.prepare(b"x").unwrap();
    assert_eq!(in_memory(), [0, 100], "its own tree is flushed");
    a.put(b"since", b"").unwrap();
    prepared.commit(DONE).unwrap();
    assert_eq!((in_memory(), rows(&a).len()), (vec![0, 100], 1_001));
}

#[test]
fn a_tree_that_is_dropped_takes_its_part_of_what_is_prepared() {
    let fs = MemFs::new();
    let db = open_on(&fs);
    let (a, b) = (db.tree_or_create("a").unwrap(), db.tree_or_create("b").unwrap());
    let prepare = |name: &[u8], first: u32| {
        let mut txn = db.begin(small(10_000)).unwrap();
        fill(&mut txn, &a, first, first + 300);
        fill(&mut txn, &b, first, first + 300);
        txn.prepare(name).unwrap()
    };
    let (x, y) = (prepare(b"x", 0), prepare(b"y", 1_000));
    db.drop_tree("b").unwrap();
    x.commit(DONE).unwrap();
    assert_eq!(rows(&a).len(), 300);
    db.drop_tree("a").unwrap();
    y.commit(DONE).unwrap();
    assert_eq!((db.prepared().unwrap().len(), files(&fs, ".table")), (0, 0), "{:?}", fs.files());
    drop((a, b));
    db.close().unwrap();
    assert!(open_on(&fs).tree_names().is_empty());
}

#[test]
fn what_was_written_to_a_tree_is_forgotten_in_memory_in_runs_and_at_savepoints() {
    for (memory, spills) in [(1 << 20, false), (10_000, true)] {
        let fs = MemFs::new();
        let db = open_on(&fs);
        let tree = |name: &str| db.tree_or_create(name).unwrap();
        let (a, b, c) = (tree("a"), tree("b"), tree("c"));
        let mut txn = db.begin(small(memory)).unwrap();
        let before = txn.savepoint();
        fill(&mut txn, &b, 0, 300);
        let between = txn.savepoint();
        fill(&mut txn, &a, 0, 300);
        fill(&mut txn, &b, 300, 600);
        assert_eq!(txn.spilled_bytes() > 0, spills);
        db.drop_tree("b").unwrap();
        txn.forget(&b).unwrap();
        fill(&mut txn, &c, 0, 10);
        txn.rollback_to(between).unwrap();
        assert!(txn.get(&a, b"key").unwrap().is_none());
        fill(&mut txn, &a, 300, 305);
        assert!(txn.put(&b, b"x", b"").is_err(), "it is dropped");
        txn.commit(DONE).unwrap();
        assert_eq!((rows(&a).len(), rows(&c).len()), (5, 0));

        // What is forgotten before the drop, and nothing else: another writer's is refused.
        let mut other = db.begin(small(memory)).unwrap();
        fill(&mut other, &c, 0, 300);
        let mut txn = db.begin(small(memory)).unwrap();
        fill(&mut txn, &c, 1_000, 1_300);
        txn.forget(&c).unwrap();
        assert!(txn.prepare(b"nothing").unwrap().commit(DONE).is_ok());
        db.drop_tree("c").unwrap();
        assert!(matches!(other.commit(DONE), Err(Error::NoSuchTree(_))));
        assert!(txn_of(&db, memory, &a, before).is_err(), "a savepoint of another");
        assert_eq!(files(&fs, ".run"), 0, "{:?}", fs.files());
    }
}

fn txn_of(db: &Db, memory: u64, a: &Tree, savepoint: Savepoint) -> shaledb::Result<()> {
    let mut txn = db.begin(small(memory)).unwrap();
    txn.forget(a)?;
    txn.rollback_to(savepoint)
}
