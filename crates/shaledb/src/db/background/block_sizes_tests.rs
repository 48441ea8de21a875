use super::*;
use crate::compaction::policy::auto::Window;
use crate::compaction::policy::candidates::Cost;
use crate::db::core::{Learned, LevelReads};
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
    open_with(env, block_bytes, Config { memtable_bytes: 1 << 20, ..Config::default() })
}

/// Without a codec, whose measured speed would decide what is chosen while nobody reads.
fn open_with(env: &Env, block_bytes: u32, config: Config) -> (Db, Tree) {
    let tree =
        TreeConfig { codecs: Codecs::all(Codec::None), block_bytes, ..TreeConfig::default() };
    let config = Config { tree, ..config };
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

/// Chooses as if each second so many bytes of the last level were scanned, and so many of its blocks
/// were read by look-ups, where blocks of each size are so
/// many times as large as of the largest, and lets come of it what does.
fn read(db: &Db, tree: &Tree, (scanned, apart): (f64, f64), ratios: [f64; 3]) {
    let mut reads = [LevelReads::default(); LEVELS];
    let cost = |ratio| Cost { ratio, compress: 1.0, decompress: 0.2 };
    let choose = |reads: &[LevelReads; LEVELS]| {
        let loads = {
            let learned = &mut tree.inner.levels.lock().learned;
            learned.studied_sizes(LAST, SizeCosts(ratios.map(cost)));
            (0..30).for_each(|_| _ = learned.look(reads, 1.0));
            learned.loads()
        };
        db.core().choose_block_sizes(&tree.inner, &loads, (&price(), 1e4));
    };
    for _ in 0..20 {
        reads[LAST] = LevelReads { bytes: scanned + apart * block_bytes(tree) as f64, apart };
        choose(&reads);
        // Meanwhile tables are studied, and it may be seen that nobody reads.
        db.wait_idle().unwrap();
    }
    choose(&reads);
}

#[test]
fn blocks_become_what_reads_want() {
    let (db, tree) = open(&Env::memory(), 0);
    fill(&tree, 40_000);
    db.compact().unwrap();
    let (scans, look_ups) = ((1e9, 0.0), (0.0, 1e5));
    let (alike, but_4) = ([1.0, 1.0, 1.0], [1.2, 1.0, 1.0]);
    let cases = [
        (look_ups, alike, 4),
        (scans, alike, 16),
        (look_ups, but_4, 8),
        (look_ups, alike, 4),
        (scans, alike, 16),
    ];
    // On a busy machine what was measured may have asked for small ones before.
    read(&db, &tree, scans, alike);
    for (at, (reads, ratios, kib)) in cases.into_iter().enumerate() {
        // Much later.
        tree.inner.levels.lock().learned = Learned::default();
        let written = db.stats().compact_bytes;
        read(&db, &tree, reads, ratios);
        let (found, has) = (db.stats(), block_bytes(&tree));
        let level = found.trees[0].levels.last().unwrap();
        assert_eq!(level.block_bytes, kib << 10, "case {at}: {found}");
        assert!(has > kib * 900 && has <= kib << 10, "case {at}: blocks have {has} bytes");
        let written = (found.compact_bytes - written) as f64 / level.bytes as f64;
        assert!((0.9..1.3).contains(&written), "case {at}: written {written} times");
    }
    let shown = db.stats().to_string();
    assert!(shown.contains("level 6: blocks of 16 KiB, since smaller ones would cost"), "{shown}");
    assert!(db.verify(&mut |_| ()).unwrap().damage.is_empty());
}

#[test]
fn near_the_limit_on_space_blocks_stay_large() {
    let small = Config { memtable_bytes: 64 << 10, table_bytes: 256 << 10, ..Config::default() };
    let (db, tree) = open_with(&Env::memory(), 0, small);
    fill(&tree, 40_000);
    db.compact().unwrap();
    let limit = db.stats().space_used;
    db.set_space_limit(limit + limit * 3 / 10).unwrap();
    let before = db.stats().compact_bytes;
    let (look_ups, alike) = ((0.0, 1e5), [1.0, 1.0, 1.0]);
    read(&db, &tree, look_ups, alike);
    let shown = db.stats().to_string();
    assert_eq!(db.stats().compact_bytes, before, "{shown}");
    assert!(shown.contains("level 6: blocks of 16 KiB, since the limit on space"), "{shown}");
    db.set_space_limit(10 * limit).unwrap();
    read(&db, &tree, look_ups, alike);
    assert!(block_bytes(&tree) < 5 << 10, "{}", block_bytes(&tree));
    // Nor does what reads have asked for hold there.
    let written = || db.core().table_options(&tree.inner, LAST).block_bytes;
    assert_eq!(written(), 4 << 10);
    let used = db.stats().space_used;
    db.set_space_limit(used + used * 3 / 10).unwrap();
    assert_eq!(written(), 16 << 10);
    let picked = db.core().pick_settings(&tree.inner, db.core().pick_space()).codecs.blocks;
    assert_eq!((picked.of(LAST).0, picked.chosen.rewrites()), (16 << 10, None));
    assert_eq!(tree.inner.level_codecs().blocks.of(LAST).0, 4 << 10);
}

#[test]
fn large_rows_are_not_rewritten() {
    let env = Env::memory();
    for bytes in [6_000, 10_000, 20_000] {
        let (db, tree) = open(&env, 0);
        for number in 0..1000u64 {
            let value = number.to_le_bytes().repeat(bytes / 8);
            tree.put(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), &value).unwrap();
        }
        db.compact().unwrap();
        db.close().unwrap();
        let (db, tree) = open(&env, 0);
        read(&db, &tree, (0.0, 1e5), [1.0, 1.0, 1.0]);
        let found = db.stats();
        assert!(found.compact_bytes == 0 || bytes == 6_000, "{bytes}: {found}");
        // Two of the smallest may have been in a block.
        assert!(found.compact_bytes <= 11 << 20, "{bytes}: {found}");
    }
}

#[test]
fn rows_of_many_lengths_are_rewritten_once() {
    let (db, tree) = open(&Env::memory(), 0);
    for number in 0..8000u64 {
        let repeats = if number % 50 == 0 { 2500 } else { 36 };
        let value = number.to_le_bytes().repeat(repeats);
        tree.put(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), &value).unwrap();
    }
    db.compact().unwrap();
    let all = db.stats().trees[0].levels.last().unwrap().bytes;
    let before = db.stats().compact_bytes;
    read(&db, &tree, (0.0, 1e5), [1.0, 1.0, 1.0]);
    let once = db.stats().compact_bytes;
    assert!(once - before <= 2 * all, "{}", db.stats());
    read(&db, &tree, (0.0, 1e5), [1.0, 1.0, 1.0]);
    assert_eq!(db.stats().compact_bytes, once, "{}", db.stats());
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
    db.core().choose_block_sizes(&tree.inner, &loads, (&price(), 1e4));
    assert_eq!(known(), None, "nor read");
    loads[LAST].read = 1e6;
    db.core().choose_block_sizes(&tree.inner, &loads, (&price(), 1e4));
    let SizeCosts([small, _, large]) = known().expect("it is large enough to tell");
    assert!(small.ratio > large.ratio && small.ratio < 1.03 * large.ratio, "{small:?} {large:?}");
    assert!(!tree.inner.levels.lock().learned.is_unknown_of_sizes(LAST));
}

#[test]
fn what_is_set_stays() {
    let (db, tree) = open(&Env::memory(), 2048);
    fill(&tree, 10_000);
    db.compact().unwrap();
    let mut loads = [LevelLoad::default(); LEVELS];
    loads[LAST].read = 1e9;
    assert!(!db.core().choose_block_sizes(&tree.inner, &loads, (&price(), 1e4)));
    assert!((1024..=2048).contains(&block_bytes(&tree)), "{}", block_bytes(&tree));
    let shown = db.stats().to_string();
    assert!(!shown.contains("blocks of"), "{shown}");
}
