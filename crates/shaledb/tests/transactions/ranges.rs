//! Many range deletes in one commit.

use super::{DONE, at};
use shaledb::{Background, Batch, Config, Db, Env, Isolation, OpenOptions, Tree};

/// So many deletes, of which each is a part of the one before, or the other way round.
const COUNT: u32 = 3000;

fn options(env: &Env) -> OpenOptions {
    OpenOptions { env: env.clone(), background: Background::Stepped, read_only: false }
}

/// Memtables that would take the square of the number.
fn config() -> Config {
    Config { memory_bytes: 256 << 20, memtable_bytes: 64 << 20, ..Config::default() }
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// The start and the end of what is deleted, or a key that is put.
type Write = (Vec<u8>, Option<Vec<u8>>);

/// Half of the deletes, a put that the larger ones would delete, the other half, and a put of a key
/// that all have deleted.
fn writes(shrink: bool) -> Vec<Write> {
    let mut ends: Vec<u32> = (1..=COUNT).collect();
    if shrink {
        ends.reverse();
    }
    let delete = |end: &u32| (key(0).to_vec(), Some(key(*end).to_vec()));
    let (first, last) = ends.split_at(ends.len() / 2);
    let mut writes: Vec<Write> = first.iter().map(delete).collect();
    writes.push((key(COUNT - 1).to_vec(), None));
    writes.extend(last.iter().map(delete));
    writes.push((key(0).to_vec(), None));
    writes
}

fn rows(tree: &Tree) -> Vec<(u32, Vec<u8>)> {
    let number = |key: &[u8]| u32::from_be_bytes(key.try_into().unwrap());
    let rows = tree.scan::<&[u8]>(..).unwrap();
    rows.map(|row| row.map(|(key, value)| (number(&key), value.to_vec())).unwrap()).collect()
}

/// They take what they need, in a batch, in a transaction, in the log that is read at an open, and
/// in that which a follower reads.
#[test]
fn nested_range_deletes_of_one_commit_take_what_they_need() {
    let env = Env::memory();
    let check = |db: &Db| {
        for (n, shrink) in [false, true, false, true].into_iter().enumerate() {
            let tree = db.tree(&format!("t{n}")).unwrap();
            let stats = db.stats();
            let of_tree = stats.trees.iter().find(|of| of.name == tree.name()).unwrap();
            let bytes = of_tree.memtable_bytes;
            assert!(bytes < u64::from(COUNT) * 400, "tree {n}: {bytes}");
            let mut wanted = vec![(0, b"new".to_vec()), (COUNT, b"old".to_vec())];
            if shrink {
                wanted.insert(1, (COUNT - 1, b"new".to_vec()));
            }
            assert_eq!(rows(&tree), wanted, "tree {n}");
        }
    };
    let db = Db::open_in("/db", config(), options(&env)).unwrap();
    for (n, shrink) in [false, true, false, true].into_iter().enumerate() {
        let tree = db.tree_or_create(&format!("t{n}")).unwrap();
        for row in [0, 1, COUNT - 1, COUNT] {
            tree.put(&key(row), b"old").unwrap();
        }
        let mut batch = Batch::new();
        let mut txn = db.begin(at(Isolation::ReadCommitted)).unwrap();
        for (first, end) in writes(shrink) {
            match (n < 2, end) {
                (true, Some(end)) => batch.delete_range(&tree, &first, &end),
                (true, None) => batch.put(&tree, &first, b"new"),
                (false, Some(end)) => txn.delete_range(&tree, &first, &end).unwrap(),
                (false, None) => txn.put(&tree, &first, b"new").unwrap(),
            }
        }
        db.write(&batch, DONE).unwrap();
        txn.commit(DONE).unwrap();
    }
    check(&db);
    let follower = Db::open_follower_in("/db", config(), env.clone()).unwrap();
    check(&follower);
    drop((db, follower));
    check(&Db::open_in("/db", config(), options(&env)).unwrap());
}
