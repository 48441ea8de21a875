use super::*;
use crate::compaction::policy::LAST;
use crate::compaction::policy::auto::Window;
use crate::db::core::LevelReads;
use crate::{Codecs, Config, Db, Env, OpenOptions, Tree, TreeConfig};

/// Nothing is short, and a byte that is read takes some time.
fn price() -> Price {
    let window = Window { dilation: 1.0, user_read_nanos: 0.3, ..Window::default() };
    Price { window, ..Price::default() }
}

/// Rows of noise, which no size of blocks makes smaller.
fn fill(tree: &Tree, rows: u64) {
    for number in 0..rows {
        let mut noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key = noise.to_be_bytes();
        let mut value = Vec::new();
        while value.len() < 200 {
            noise = noise.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            value.extend_from_slice(&(noise >> 16).to_be_bytes()[2..]);
        }
        tree.put(&key, &value).unwrap();
    }
}

fn open(env: &Env, block_bytes: u32) -> (Db, Tree) {
    let tree = TreeConfig { codecs: Codecs::all(Codec::Lz4), block_bytes, ..TreeConfig::default() };
    let config = Config { memtable_bytes: 1 << 20, tree, ..Config::default() };
    let options = OpenOptions { env: env.clone(), ..OpenOptions::default() };
    let db = Db::open_in("/db", config, options).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    (db, tree)
}

/// Bytes of a block of the last level on average.
fn block_bytes(tree: &Tree) -> u64 {
    let version = &tree.inner.state.load().version;
    let (blocks, bytes) = version.levels[LAST].blocks();
    bytes / blocks.max(1)
}

/// Chooses as if each second so much of the last level were read, and lets come of it what does.
fn read(db: &Db, tree: &Tree, each_second: LevelReads, is_done: impl Fn() -> bool) {
    let mut reads = [LevelReads::default(); LEVELS];
    reads[LAST] = each_second;
    for _ in 0..100 {
        let loads = {
            let learned = &mut tree.inner.levels.lock().learned;
            (0..30).for_each(|_| _ = learned.look(&reads, 1.0));
            learned.loads()
        };
        // In between it is seen that nobody reads.
        db.core().choose_block_sizes(&tree.inner, &loads, &price());
        db.wait_idle().unwrap();
        if is_done() {
            return;
        }
    }
    panic!("blocks have {} bytes", block_bytes(tree));
}

#[test]
fn blocks_become_what_reads_want() {
    let (db, tree) = open(&Env::memory(), 0);
    fill(&tree, 40_000);
    db.compact().unwrap();
    let of_last = || {
        let found = db.stats();
        let level = found.trees[0].levels.last().unwrap();
        (level.block_bytes >> 10, level.block_why, found.to_string())
    };
    // Whole scans, and nothing else.
    let scans = LevelReads { bytes: 1e9, apart: 0.0 };
    read(&db, &tree, scans, || block_bytes(&tree) > 12 << 10);
    let (kib, why, shown) = of_last();
    assert_eq!((kib, why), (16, "smaller ones would cost more than they give"), "{shown}");
    assert!(shown.contains("level 6: blocks of 16 KiB, since smaller ones would cost"), "{shown}");
    // Look-ups, and nothing else.
    let look_ups = LevelReads { bytes: 1e9, apart: 1e9 / 16e3 };
    read(&db, &tree, look_ups, || block_bytes(&tree) < 4200);
    let (kib, why, shown) = of_last();
    assert_eq!((kib, why), (4, "reads want single rows of them"), "{shown}");
    assert!(db.verify(&mut |_| ()).unwrap().damage.is_empty());
}

#[test]
fn a_level_that_is_only_read_is_looked_at_once() {
    let env = Env::memory();
    let (db, tree) = open(&env, 0);
    fill(&tree, 40_000);
    db.compact().unwrap();
    db.close().unwrap();
    let (db, tree) = open(&env, 0);
    let known = || tree.inner.levels.lock().learned.blocks(LAST).0;
    assert_eq!(known(), None, "nothing was written");
    let mut loads = [LevelLoad::default(); LEVELS];
    db.core().choose_block_sizes(&tree.inner, &loads, &price());
    assert_eq!(known(), None, "nor read");
    loads[LAST].read = 1e6;
    db.core().choose_block_sizes(&tree.inner, &loads, &price());
    let SizeCosts([small, _, large]) = known().expect("it is large enough to tell");
    assert!(small.ratio > large.ratio && small.ratio < 1.03 * large.ratio, "{small:?} {large:?}");
    assert!(!tree.inner.levels.lock().learned.is_unknown_of_sizes(LAST));
    assert!(tree.inner.levels.lock().learned.is_unknown_of_sizes(3), "it has no tables");
}

#[test]
fn what_is_set_stays() {
    let (db, tree) = open(&Env::memory(), 2048);
    fill(&tree, 10_000);
    db.compact().unwrap();
    let mut loads = [LevelLoad::default(); LEVELS];
    loads[LAST].read = 1e9;
    assert!(!db.core().choose_block_sizes(&tree.inner, &loads, &price()));
    assert!((1024..=2048).contains(&block_bytes(&tree)), "{}", block_bytes(&tree));
    let shown = db.stats().to_string();
    assert!(!shown.contains("blocks of"), "{shown}");
}
