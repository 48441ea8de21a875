use super::*;
use crate::base::config::LEVELS;
use crate::base::sync::atomic::Ordering::Relaxed;
use crate::compaction::policy::auto::{Price, Window};
use crate::compaction::policy::chosen::{Choice, Chosen};
use crate::db::core::{LevelReads, TreeDictionary};
use crate::fs::Clock;
use crate::table::TableDictionary;
use crate::table::meta::Why;
use crate::table::write::SMALL_TABLE_BYTES;
use crate::{Background, Codecs, Config, Db, Env, OpenOptions, Tree, TreeConfig};

/// Rows of noise between names that all rows have: each block stores these once, which is a large
/// part of a small one.
fn fill(tree: &Tree, rows: u64, names: u64) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state >> 24
    };
    let bytes = |number: u64| number.to_be_bytes()[3..].to_vec();
    let names: Vec<String> = (0..names).map(|_| format!("{:010x}", next())).collect();
    for _ in 0..rows {
        let key = [bytes(next()), bytes(next())].concat();
        let noise = |name: &String| [name.as_bytes(), &bytes(next()), &bytes(next())].concat();
        let value: Vec<u8> = names.iter().flat_map(noise).collect();
        tree.put(&key, &value).unwrap();
    }
}

/// Tells no CPU time, so that codecs cost what they usually do.
struct NoCpu(Arc<dyn Clock>);

impl Clock for NoCpu {
    fn now_nanos(&self) -> u64 {
        self.0.now_nanos()
    }

    fn thread_cpu_nanos(&self) -> u64 {
        0
    }

    fn sleep_nanos(&self, nanos: u64) {
        self.0.sleep_nanos(nanos);
    }
}

fn memory() -> Env {
    let env = Env::memory();
    Env { clock: Arc::new(NoCpu(env.clock.clone())), ..env }
}

fn open(env: &Env) -> (Db, Tree) {
    open_with(env, Codecs::all(Codec::Zstd(3)))
}

fn open_with(env: &Env, codecs: Codecs) -> (Db, Tree) {
    let tree = TreeConfig { codecs, block_bytes: 0, ..TreeConfig::default() };
    let config = Config { memtable_bytes: 1 << 20, tree, ..Config::default() };
    let options =
        OpenOptions { env: env.clone(), background: Background::Stepped, read_only: false };
    let db = Db::open_in("/db", config, options).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    (db, tree)
}

/// Names that all rows have, of which blocks gain by a dictionary if they are small.
fn filled(env: &Env) -> (Db, Tree) {
    let (db, tree) = open(env);
    fill(&tree, 60_000, 15);
    db.compact().unwrap();
    (db, tree)
}

/// Chooses as if so many bytes of the last level were read each second, and so many blocks of it by
/// look-ups, for long enough that it is rewritten.
fn read(db: &Db, tree: &Tree, scanned: f64, apart: f64) {
    let window = Window { dilation: 1.0, user_read_nanos: 0.3, ..Window::default() };
    let price = Price { window, ..Price::default() };
    let mut reads = [LevelReads::default(); LEVELS];
    for _ in 0..20 {
        let (blocks, bytes) = tree.inner.state.load().version.levels[LAST].blocks();
        let bytes = scanned + apart * (bytes / blocks) as f64;
        reads[LAST] = LevelReads { bytes, apart };
        let loads = {
            let learned = &mut tree.inner.levels.lock().learned;
            (0..30).for_each(|_| _ = learned.look(&reads, 1.0));
            learned.loads()
        };
        db.core().choose_block_sizes(&tree.inner, &loads, (&price, 1e4));
        db.wait_idle().unwrap();
    }
}

/// The dictionary that the tree has, the one that would be tried, and what is chosen.
fn state(tree: &Tree) -> (Option<u32>, Option<u32>, u32) {
    let levels = tree.inner.levels.lock();
    let tried = levels.learned.to_try().0.map(|own| own.id());
    let blocks = tree.inner.level_codecs().blocks.of(LAST).0;
    (levels.learned.dictionary().id(), tried, blocks)
}

/// The dictionaries of the last level's tables, and bytes of a block on average.
fn has(tree: &Tree) -> (Vec<Option<u32>>, u64) {
    let version = &tree.inner.state.load().version;
    let tables = version.levels[LAST].tables();
    let (blocks, bytes) = version.levels[LAST].blocks();
    // Of a small table the smaller form is kept.
    let large = tables.iter().filter(|table| table.meta.raw_bytes >= SMALL_TABLE_BYTES);
    let own = large.map(|table| table.dictionary().unwrap().map(|own| own.id()));
    (own.collect(), bytes / blocks)
}

#[test]
fn look_ups_get_small_blocks_with_a_dictionary() {
    let (db, tree) = filled(&memory());
    let (before, files) = (state(&tree), db.stats().space_used);
    assert!(before.0.is_none() && before.1.is_some() && before.2 == 16 << 10, "{before:?}");
    read(&db, &tree, 0.0, 1e5);
    let after = state(&tree);
    assert_eq!((after.0, after.2), (before.1, 4 << 10), "what was tried is the tree's now");
    let (own, block) = has(&tree);
    assert!(own.iter().all(|own| *own == after.0) && block < 5 << 10, "{own:?} {block}");
    let grown = db.stats().space_used as f64 / files as f64;
    assert!(grown < 1.04, "{grown}");
    // Scans want large blocks, which it does not pay in; it is remembered.
    read(&db, &tree, 4e9, 0.0);
    let scanned = state(&tree);
    assert_eq!(scanned, (None, before.1, 16 << 10));
    let (own, block) = has(&tree);
    // The first table that was written tells that.
    assert!(own.iter().any(Option::is_none) && block > 12 << 10, "{own:?} {block}");
    read(&db, &tree, 0.0, 1e5);
    assert_eq!(state(&tree).0, before.1, "the same one comes back");
    assert!(db.verify(&mut |_| ()).unwrap().damage.is_empty());
}

#[test]
fn what_is_only_read_is_tried_as_well() {
    let env = memory();
    let (db, _) = filled(&env);
    db.close().unwrap();
    let (db, tree) = open(&env);
    assert!(matches!(tree.inner.levels.lock().learned.dictionary(), TreeDictionary::NotLookedFor));
    read(&db, &tree, 0.0, 1e5);
    let (own, _, block) = state(&tree);
    assert!(own.is_some() && block == 4 << 10, "{own:?} {block}");
}

#[test]
fn none_is_kept_where_none_pays() {
    let env = memory();
    let (db, tree) = open(&env);
    fill(&tree, 200_000, 1);
    db.compact().unwrap();
    assert_eq!(state(&tree), (None, None, 16 << 10));
    assert!(tree.inner.levels.lock().learned.to_try().1.1 > 0, "it was looked for");
}

#[test]
fn a_chosen_codec_uses_what_small_blocks_need() {
    let env = memory();
    let (db, tree) = open_with(&env, Codecs::default());
    let choose = |dictionary| {
        let mut chosen = Chosen::default();
        let why = Why::CpuFree;
        chosen.0 = [Some(Choice { codec: Codec::Zstd(9), dictionary, why }); LEVELS];
        tree.inner.chosen.store(chosen.pack(), Relaxed);
    };
    choose(false);
    fill(&tree, 60_000, 15);
    db.compact().unwrap();
    choose(false);
    read(&db, &tree, 0.0, 1e5);
    let (own, _, block) = state(&tree);
    assert!(own.is_some() && block == 4 << 10, "{own:?} {block}");
    let options = db.core().table_options(&tree.inner, LAST);
    assert!(
        matches!(&options.dictionary, TableDictionary::Given(given) if Some(given.id()) == own)
    );
    let tables = has(&tree).0;
    assert!(tables.iter().all(|has| *has == own), "{tables:?} {own:?}");
}
