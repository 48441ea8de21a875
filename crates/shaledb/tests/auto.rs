//! Codecs that the engine chooses, in a whole database: what is in the last level at rest is as
//! small as it can be, whatever came first, and an open rewrites nothing.

use shaledb::{Background, Config, Db, Env, OpenOptions, Result, Stats, Tree};

fn open(env: &Env) -> Result<Db> {
    let config = Config { memtable_bytes: 256 << 10, ..Config::default() };
    Db::open_in("/db", config, OpenOptions { env: env.clone(), ..OpenOptions::default() })
}

/// A line of a log: most of it repeats that of another.
fn line(number: u32) -> String {
    format!(
        "{{\"time\":\"2026-11-{:02}T10:00:00Z\",\"level\":\"info\",\"service\":\"orders\",\
         \"message\":\"request has been answered\",\"status\":200,\"user\":{}}}",
        number % 28 + 1,
        u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 100_000
    )
}

/// Bytes that nothing makes smaller.
fn noise(number: u32) -> Vec<u8> {
    let mut state = u64::from(number) + 1;
    let next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as u8
    };
    std::iter::repeat_with(next).take(200).collect()
}

fn fill(tree: &Tree, of: impl Fn(u32) -> Vec<u8>) -> Result<()> {
    (0..20_000u32).try_for_each(|n| tree.put(&n.wrapping_mul(2_654_435_761).to_be_bytes(), &of(n)))
}

/// Of the last level: its ratio, its codec and the reason.
fn last(stats: &Stats) -> (f64, String, &'static str) {
    let level = stats.trees[0].levels.last().expect("the tree has tables");
    (level.ratio, level.codec.clone(), level.codec_why)
}

#[test]
fn a_row_that_came_first_decides_nothing() -> Result<()> {
    let env = Env::memory();
    let db = open(&env)?;
    let tree = db.tree_or_create("t")?;
    tree.put(b"first", b"1")?;
    db.flush()?;
    db.wait_idle()?;
    fill(&tree, |number| line(number).into_bytes())?;
    db.wait_idle()?;
    let (ratio, codec, why) = last(&db.stats());
    assert!(ratio > 3.0 && codec.starts_with("zstd:"), "{ratio} {codec}, since {why}");
    Ok(())
}

#[test]
fn noise_is_stored_as_it_is_and_an_open_leaves_it_alone() -> Result<()> {
    let env = Env::memory();
    let db = open(&env)?;
    fill(&db.tree_or_create("t")?, noise)?;
    db.wait_idle()?;
    let (ratio, codec, why) = last(&db.stats());
    assert_eq!((codec.as_str(), why), ("none", "the data does not become smaller"), "{ratio}");
    db.close()?;

    let db = open(&env)?;
    db.wait_idle()?;
    let stats = db.stats();
    assert_eq!((stats.compact_bytes, stats.flush_bytes), (0, 0), "{stats}");
    Ok(())
}

#[test]
fn tables_say_what_was_chosen_and_stay_sound() -> Result<()> {
    let env = Env::memory();
    let db = open(&env)?;
    let tree = db.tree_or_create("t")?;
    fill(&tree, |number| line(number).into_bytes())?;
    db.wait_idle()?;
    assert!(db.verify(&mut |_| ())?.damage.is_empty());
    let stats = db.stats();
    let shown = stats.to_string();
    assert!(shown.contains("choice of codecs: "), "{shown}");
    assert!(shown.contains("since there is CPU to spare for fewer bytes"), "{shown}");
    Ok(())
}

#[test]
fn an_open_goes_on_with_what_was_chosen() -> Result<()> {
    let env = Env::memory();
    let open = || {
        let config = Config { memtable_bytes: 256 << 10, ..Config::default() };
        let background = Background::Stepped;
        Db::open_in("/db", config, OpenOptions { env: env.clone(), background, read_only: false })
    };
    let db = open()?;
    let tree = db.tree_or_create("t")?;
    for _ in 0..2 {
        fill(&tree, |number| line(number).into_bytes())?;
        db.wait_idle()?;
    }
    db.close()?;
    let db = open()?;
    let (_, codec, why) = last(&db.stats());
    assert!(codec.starts_with("zstd:") && !why.starts_with("nothing is measured"), "{codec} {why}");
    Ok(())
}
