//! Dictionaries that the engine makes by itself: of a whole tree, where they pay, renewed when the
//! data changes, left out when it no longer pays, and known after an open.

use shaledb::fs::DirEntry;
use shaledb::inspect::{Inspection, open_in};
use shaledb::repair::{RepairOptions, repair};
use shaledb::{
    Background, Codec, Codecs, Config, Db, Env, OpenOptions, Result, Tree, TreeConfig, TreeStats,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn open(env: &Env, tree: TreeConfig) -> Result<Db> {
    let config = Config { memtable_bytes: 256 << 10, tree, ..Config::default() };
    // The order of jobs is the same each time.
    let background = Background::Stepped;
    Db::open_in("/db", config, OpenOptions { env: env.clone(), background, read_only: false })
}

fn zstd(block_bytes: u32) -> TreeConfig {
    TreeConfig { codecs: Codecs::all(Codec::Zstd(3)), block_bytes, ..TreeConfig::default() }
}

fn mixed(number: u64) -> u64 {
    let state = number.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (state ^ state >> 29).wrapping_mul(0x94d0_49bb_1331_11eb) >> 20
}

/// A document; most of it is as in all others of its kind.
fn document(kind: &str, number: u64) -> Vec<u8> {
    let noise = mixed(number);
    format!(
        "{{\"{kind}_number\":{noise},\"customer\":{{\"name\":\"{kind}-{}\",\"city\":\"Berlin\"}},\
         \"state\":\"shipped by {kind}\",\"amount\":{}}}",
        noise % 1009,
        noise % 97
    )
    .into_bytes()
}

/// Text of another kind.
fn letter(number: u64) -> Vec<u8> {
    let noise = mixed(number);
    format!(
        "Dear Sir or Madam, I write to you for the {}th time, as my parcel has still not come. It \
         was sent from {} on the {}th of this month. I remain yours faithfully, reader {noise:x}{:x}{:x}",
        noise % 89,
        ["Leeds", "Hull", "York"][(noise % 3) as usize],
        noise % 28,
        mixed(noise),
        mixed(noise + 1)
    )
    .into_bytes()
}

fn noise(number: u64) -> Vec<u8> {
    (0..12).flat_map(|at| mixed(number * 12 + at).to_le_bytes()).collect()
}

fn fill(tree: &Tree, count: u64, of: impl Fn(u64) -> Vec<u8>) -> Result<()> {
    (0..count).try_for_each(|n| tree.put(&mixed(n).to_be_bytes(), &of(n)))
}

fn stats(db: &Db) -> TreeStats {
    db.stats().trees[0].clone()
}

/// The tables with a dictionary: their bytes, those of the dictionary, and where they are.
fn tables_with_one(env: &Env) -> Vec<(u64, u64, PathBuf)> {
    let entries = env.fs.list(Path::new("/db")).unwrap().into_iter();
    let table = |entry: DirEntry| {
        let path = Path::new("/db").join(&entry.name);
        let Ok(Inspection::Table(table)) = open_in(env, &path) else { return None };
        (table.dictionary_bytes > 0).then_some((entry.bytes, table.dictionary_bytes, path))
    };
    entries.filter_map(table).collect()
}

/// The first bytes of a file.
fn begin_of(env: &Env, path: &Path, bytes: u64) -> Vec<u8> {
    let mut begin = vec![0; bytes as usize];
    env.fs.open(path).unwrap().read_at(0, &mut begin).unwrap();
    begin
}

/// The dictionaries in tables, with how many tables have each.
fn in_tables(env: &Env) -> BTreeMap<Vec<u8>, u64> {
    let mut found = BTreeMap::new();
    for (_, dictionary_bytes, path) in tables_with_one(env) {
        *found.entry(begin_of(env, &path, dictionary_bytes)).or_default() += 1;
    }
    found
}

/// A tree of documents. The second time all tables are written with what the first ones have shown.
fn written_twice(env: &Env) -> Result<(Db, Tree)> {
    let db = open(env, zstd(4096))?;
    let tree = db.tree_or_create("t")?;
    for _ in 0..2 {
        fill(&tree, 20_000, |n| document("order", n))?;
        db.wait_idle()?;
    }
    Ok((db, tree))
}

fn check(tree: &Tree, count: u64, of: impl Fn(u64) -> Vec<u8>) -> Result<()> {
    for number in (0..count).step_by(37) {
        assert_eq!(tree.get(&mixed(number).to_be_bytes())?.as_deref(), Some(&of(number)[..]));
    }
    Ok(())
}

#[test]
fn one_dictionary_serves_all_tables_and_is_known_after_an_open() -> Result<()> {
    let env = Env::memory();
    let (db, _) = written_twice(&env)?;
    let before = stats(&db).dictionary.expect("documents have much in common");
    assert!(before.saves_percent.unwrap() > 5.0 && before.bytes > 1000, "{before}");
    assert!(db.verify(&mut |_| ())?.damage.is_empty());
    db.close()?;

    let db = open(&env, zstd(4096))?;
    let tree = db.tree_or_create("t")?;
    assert_eq!(stats(&db).dictionary, None, "nobody has asked the tables yet");
    let had = in_tables(&env);
    fill(&tree, 2000, |n| document("order", n + 50_000))?;
    db.flush()?;
    db.wait_idle()?;
    let dictionary = stats(&db).dictionary.unwrap();
    assert_eq!((dictionary.bytes, dictionary.changes), (before.bytes, 0));
    let has = in_tables(&env);
    assert!(has.keys().all(|dictionary| had.contains_key(dictionary)));
    check(&tree, 2000, |n| document("order", n + 50_000))
}

#[test]
fn data_that_changes_gets_another_one_and_noise_gets_none() -> Result<()> {
    let env = Env::memory();
    let db = open(&env, zstd(4096))?;
    let tree = db.tree_or_create("t")?;
    fill(&tree, 20_000, |n| document("order", n))?;
    db.wait_idle()?;
    let first = stats(&db).dictionary.unwrap();
    // The same keys: nothing is left of the old data.
    for _ in 0..2 {
        fill(&tree, 20_000, letter)?;
        db.wait_idle()?;
    }
    let second = stats(&db).dictionary.unwrap();
    assert!(second.changes > first.changes && second.saves_percent.unwrap() > 5.0, "{second}");
    check(&tree, 20_000, letter)?;
    for _ in 0..3 {
        fill(&tree, 20_000, noise)?;
        db.wait_idle()?;
    }
    assert_eq!(stats(&db).dictionary, None, "it saves nothing of noise");
    db.compact()?;
    assert_eq!(in_tables(&env), BTreeMap::new());
    check(&tree, 20_000, noise)
}

#[test]
fn a_tree_of_a_few_megabytes_gains_as_a_large_one_does() -> Result<()> {
    let ratio = |count: u64, dictionary: bool| -> Result<f64> {
        let env = Env::memory();
        let db = open(&env, TreeConfig { dictionary, ..zstd(4096) })?;
        let tree = db.tree_or_create("t")?;
        fill(&tree, count, |n| document("order", n))?;
        db.compact()?;
        let raw: u64 = (0..count).map(|n| 8 + document("order", n).len() as u64).sum();
        Ok(raw as f64 / stats(&db).levels.iter().map(|level| level.bytes).sum::<u64>() as f64)
    };
    let mut gains = Vec::new();
    for count in [15_000, 150_000] {
        gains.push(ratio(count, true)? / ratio(count, false)?);
    }
    assert!(gains[0] > 1.05 && gains[0] > 0.95 * gains[1], "{gains:?}");
    Ok(())
}

#[test]
fn where_the_engine_chooses_the_codec_it_chooses_the_dictionary() -> Result<()> {
    let env = Env::memory();
    let db = open(&env, TreeConfig { block_bytes: 4096, ..TreeConfig::default() })?;
    let tree = db.tree_or_create("t")?;
    fill(&tree, 40_000, |n| document("order", n))?;
    db.wait_idle()?;
    let stats = stats(&db);
    let last = stats.levels.last().unwrap();
    assert!(last.dictionary && last.codec.starts_with("zstd"), "{stats}");
    assert!(stats.to_string().contains("with the tree's dictionary, since "), "{stats}");
    assert!(!in_tables(&env).is_empty());
    assert!(db.verify(&mut |_| ())?.damage.is_empty());
    check(&tree, 40_000, |n| document("order", n))
}

#[test]
fn a_copy_that_is_damaged_is_repaired_by_that_of_another_table() -> Result<()> {
    let env = Env::memory();
    let (db, tree) = written_twice(&env)?;
    // A second table, with the same dictionary.
    (0..2000).try_for_each(|n: u64| {
        tree.put(format!("later/{n:06}").as_bytes(), &document("order", n))
    })?;
    db.flush()?;
    db.close()?;
    let mut with_one = tables_with_one(&env);
    with_one.sort();
    assert!(with_one.len() >= 2 && in_tables(&env).len() == 1, "{with_one:?}");
    let (bytes, _, path) = with_one.pop().unwrap();
    let mut content = begin_of(&env, &path, bytes);
    content[100] ^= 1;
    env.fs.remove(&path)?;
    env.fs.create(&path)?.append(&content)?;
    let (from, to) = (Path::new("/db"), Path::new("/repaired"));
    let options = RepairOptions { env: env.clone(), ..RepairOptions::default() };
    let report = repair(from, to, &options, &mut |_| ())?;
    assert!(report.to_string().contains("the dictionary"), "{report}");
    let options = OpenOptions { env, ..OpenOptions::default() };
    let db = Db::open_in(to, Config::default(), options)?;
    let tree = db.tree("t")?;
    check(&tree, 20_000, |n| document("order", n))?;
    assert_eq!(tree.scan::<&[u8]>(..)?.count(), 22_000);
    Ok(())
}
