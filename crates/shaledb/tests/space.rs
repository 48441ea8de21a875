//! The limit on space: never exceeded, refused in time, and given back.

use shaledb::{
    Background, Batch, Config, Db, Env, Error, OpenOptions, Result, SpaceState, TransactionOptions,
    Tree, TreeConfig, WriteOptions,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LIMIT: u64 = 8 << 20;

fn config() -> Config {
    Config {
        memory_bytes: 8 << 20,
        memtable_bytes: 64 << 10,
        space_limit: LIMIT,
        tree: TreeConfig { block_bytes: 4096, ..TreeConfig::default() },
        ..Config::default()
    }
}

/// A value that no codec makes smaller.
fn value(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(|_| next()).collect()
}

fn disk_bytes(env: &Env) -> u64 {
    env.fs.list("/db".as_ref()).unwrap().iter().map(|entry| entry.bytes).sum()
}

fn open(env: &Env, config: Config, background: Background) -> Result<Db> {
    Db::open_in("/db", config, OpenOptions { env: env.clone(), background, read_only: false })
}

/// Puts rows until one is refused; answers with their number.
fn fill(tree: &Tree, from: u32) -> u32 {
    for n in from.. {
        match tree.put(&n.to_be_bytes(), &value(n.into(), 1000)) {
            Ok(()) => {}
            Err(error) => {
                assert!(error.is_space_limit(), "{error}");
                return n - from;
            }
        }
    }
    unreachable!()
}

fn keeps_limit(env: &Env, db: &Db) {
    let (used, found, again) = (db.stats().space_used, disk_bytes(env), db.stats().space_used);
    assert!(found <= LIMIT && used <= LIMIT, "{found} {used}");
    // With threads it may have changed in between.
    assert!(used != again || found <= used, "{found} {used}");
}

fn fill_delete_and_fill_again(background: Background) {
    let env = Env::memory();
    let db = open(&env, config(), background).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let first = fill(&tree, 0);
    keeps_limit(&env, &db);
    let share = f64::from(first) * 1004.0 / LIMIT as f64;
    assert!(share > 0.75, "only {share:.2} of the limit is data");
    assert_eq!(db.stats().space_state, SpaceState::Full);
    // Reads go on, and nothing is poisoned.
    for n in (0..first).step_by(97) {
        assert_eq!(tree.get(&n.to_be_bytes()).unwrap().unwrap(), value(n.into(), 1000));
    }
    for round in 0..3 {
        for n in 0..first {
            tree.delete(&n.to_be_bytes()).unwrap();
            if n % 64 == 0 {
                keeps_limit(&env, &db);
            }
        }
        let again = fill(&tree, 0);
        keeps_limit(&env, &db);
        assert!(again as f64 > 0.9 * f64::from(first), "round {round}: {again} of {first}");
    }
    tree.delete_range(b"", &[255; 5]).unwrap();
    let again = fill(&tree, 0);
    assert!(again as f64 > 0.9 * f64::from(first), "after a range delete: {again} of {first}");
    db.drop_tree("t").unwrap();
    let tree = db.tree_or_create("u").unwrap();
    let again = fill(&tree, 0);
    assert!(again as f64 > 0.9 * f64::from(first), "after a drop: {again} of {first}");
    keeps_limit(&env, &db);
    drop(tree);
    db.close().unwrap();
    let db = open(&env, config(), background).unwrap();
    assert_eq!(db.tree("u").unwrap().scan::<&[u8]>(..).unwrap().count(), again as usize);
    keeps_limit(&env, &db);
}

#[test]
fn what_is_full_takes_deletes_and_then_writes_stepped() {
    fill_delete_and_fill_again(Background::Stepped);
}

#[test]
fn what_is_full_takes_deletes_and_then_writes() {
    fill_delete_and_fill_again(Background::Threads);
}
