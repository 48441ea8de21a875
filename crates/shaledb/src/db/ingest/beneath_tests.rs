//! Tests of where a build's rows come to lie, and what is ingested meanwhile.

use super::*;
use crate::base::config::{Config, TreeConfig};
use crate::db::{Background, BuildOptions, Db, OnlineBuild, OpenOptions, Tree};
use crate::fs::Env;

/// A build in a database of its own, whose background is stepped.
fn begin() -> Result<(Db, OnlineBuild)> {
    let background = Background::Stepped;
    let options = OpenOptions { env: Env::memory(), background, ..OpenOptions::default() };
    let db = Db::open_in("/db", Config::default(), options)?;
    let source = db.tree_or_create("source")?;
    let build = source.build_online("built", TreeConfig::default(), BuildOptions::default())?;
    Ok((db, build))
}

fn load(tree: &Tree, value: &[u8]) -> Result<()> {
    let mut ingest = tree.ingest()?;
    ingest.add(b"k", value)?;
    ingest.finish().map(drop)
}

fn tables(tree: &Tree) -> Vec<usize> {
    let version = tree.inner.state.load().version.clone();
    version.levels.iter().map(|level| level.tables().len()).collect()
}

#[test]
fn what_is_ingested_at_the_end_of_a_build_stays_out_of_its_way() -> Result<()> {
    let (db, mut build) = begin()?;
    let tree = build.tree().clone();
    let mut levels = vec![0; LAST + 1];
    {
        let _held = db.core().hold_compactions(&tree.inner)?;
        load(&tree, b"first")?;
        levels[0] = 1;
        assert_eq!(tables(&tree), levels, "the last level stays free for what comes beneath");
    }
    build.add(b"k", b"oldest")?;
    build.add(b"l", b"oldest")?;
    build.finish()?;
    levels[LAST] = 1;
    assert_eq!(tables(&tree), levels);
    assert_eq!(&tree.get(b"k")?.unwrap()[..], b"first");
    load(&tree, b"second")?;
    assert_eq!(&tree.get(b"k")?.unwrap()[..], b"second");
    tree.compact()?;
    assert_eq!(&tree.get(b"k")?.unwrap()[..], b"second");
    assert_eq!(&tree.get(b"l")?.unwrap()[..], b"oldest");
    Ok(())
}

#[test]
fn what_was_ingested_during_a_build_makes_room() -> Result<()> {
    let (_db, mut build) = begin()?;
    let tree = build.tree().clone();
    load(&tree, b"newer")?;
    let mut levels = vec![0; LAST + 1];
    levels[LAST] = 1;
    assert_eq!(tables(&tree), levels);
    build.add(b"k", b"older")?;
    build.finish()?;
    levels[LAST - 1] = 1;
    assert_eq!(tables(&tree), levels);
    assert_eq!(&tree.get(b"k")?.unwrap()[..], b"newer");
    tree.compact()?;
    assert_eq!(&tree.get(b"k")?.unwrap()[..], b"newer");
    Ok(())
}

#[test]
fn what_was_ingested_into_each_level_during_a_build_is_merged_for_room() -> Result<()> {
    let (_db, mut build) = begin()?;
    let tree = build.tree().clone();
    for number in 1..=LAST {
        load(&tree, format!("value {number}").as_bytes())?;
    }
    let mut levels = vec![1; LAST + 1];
    levels[0] = 0;
    assert_eq!(tables(&tree), levels);
    tree.delete(b"l")?;
    build.add(b"k", b"oldest")?;
    build.add(b"l", b"oldest")?;
    build.add(b"m", b"oldest")?;
    build.finish()?;
    for _ in 0..2 {
        assert_eq!(&tree.get(b"k")?.unwrap()[..], format!("value {LAST}").as_bytes());
        assert!(tree.get(b"l")?.is_none());
        assert_eq!(&tree.get(b"m")?.unwrap()[..], b"oldest");
        tree.compact()?;
    }
    Ok(())
}
