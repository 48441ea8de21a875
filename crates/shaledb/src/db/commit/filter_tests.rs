//! Tests of who begins the filter of a memtable.

use crate::base::config::Config;
use crate::base::error::Result;
use crate::base::key::SEQ_MAX;
use crate::base::sync::Arc;
use crate::db::{Background, Db, OpenOptions, Tree};
use crate::fs::Env;
use crate::fs::mem::{MemClock, MemFs};
use crate::memtable::Memtable;

fn open() -> Result<(Db, Tree)> {
    let options =
        OpenOptions { env: Env::memory(), background: Background::Stepped, read_only: false };
    let db = Db::open_in("/db", Config::default(), options)?;
    let tree = filled(&db)?;
    Ok((db, tree))
}

fn filled(db: &Db) -> Result<Tree> {
    let tree = db.tree_or_create("t")?;
    for number in 0..2_000u32 {
        tree.put(&number.to_be_bytes(), b"value")?;
    }
    Ok(tree)
}

fn active(tree: &Tree) -> Arc<Memtable> {
    Arc::clone(&tree.inner.state.load().active)
}

/// All rows are there, and in a memtable.
fn check(tree: &Tree) -> Result<()> {
    for number in 0..2_000u32 {
        assert!(tree.get(&number.to_be_bytes())?.is_some(), "row {number}");
    }
    assert!(active(tree).count() >= 2_000);
    Ok(())
}

#[test]
fn a_reader_begins_a_filter_where_nobody_writes() -> Result<()> {
    let (_db, tree) = open()?;
    let before = active(&tree).bytes();
    for number in 0..10_000u32 {
        assert!(tree.get(&[number.to_be_bytes(), [7; 4]].concat())?.is_none());
    }
    assert!(active(&tree).bytes() > before && !active(&tree).wants_filter());
    check(&tree)
}

#[test]
fn the_next_write_begins_a_filter_that_is_wanted() -> Result<()> {
    let (_db, tree) = open()?;
    let memtable = active(&tree);
    let mut number = 0u64;
    while !memtable.wants_filter() {
        assert!(memtable.get(&number.to_le_bytes(), SEQ_MAX).is_none() && number < 1 << 20);
        number += 1;
    }
    let before = memtable.bytes();
    tree.put(b"one more", b"value")?;
    assert!(memtable.bytes() > before && !memtable.wants_filter());
    assert!(tree.get(b"one more")?.is_some());
    check(&tree)
}

/// It reads what it inserts itself, without the leader's lock: a filter that a reader began beside
/// it would miss rows.
#[test]
fn a_follower_begins_filters_when_it_refreshes() -> Result<()> {
    let fs = MemFs::new();
    let env = || Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
    let options = OpenOptions { env: env(), background: Background::Stepped, read_only: false };
    let db = Db::open_in("/db", Config::default(), options)?;
    let tree = filled(&db)?;
    let follower = Db::open_follower_in("/db", Config::default(), env())?;
    let followed = follower.tree("t")?;
    for number in 0..10_000u32 {
        assert!(followed.get(&[number.to_be_bytes(), [7; 4]].concat())?.is_none());
    }
    assert!(active(&followed).wants_filter());
    tree.put(b"!", b"before all others")?;
    follower.refresh()?;
    assert!(!active(&followed).wants_filter());
    tree.put(b" ", b"before all others")?;
    follower.refresh()?;
    for number in 0..10_000u32 {
        assert!(followed.get(&[number.to_be_bytes(), [7; 4]].concat())?.is_none());
    }
    assert!(followed.get(b"!")?.is_some() && followed.get(b" ")?.is_some());
    check(&followed)
}
