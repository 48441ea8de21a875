//! Tests of what reads find while tables are ingested.

use super::*;
use crate::base::config::Config;
use crate::base::sync::atomic::Ordering;
use crate::db::{Background, Db, OpenOptions};
use crate::fs::Env;
use crate::read;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

#[test]
fn a_state_before_a_bulk_load_gets_nothing_that_is_committed_after_it() -> Result<()> {
    let background = Background::Stepped;
    let options = OpenOptions { env: Env::memory(), background, ..OpenOptions::default() };
    let db = Db::open_in("/db", Config::default(), options)?;
    let tree = db.tree_or_create("t")?;
    for is_empty in [true, false] {
        if !is_empty {
            tree.put(b"before", b"")?;
        }
        // A reader comes so far, and loads the visible number late.
        let state = tree.inner.state.load_full();
        let mut ingest = tree.ingest()?;
        ingest.add(b"loaded", b"")?;
        ingest.finish()?;
        tree.put(b"put", b"")?;
        let core = db.core();
        let seq = core.visible.load(Ordering::Acquire);
        let has = |key: &[u8]| Ok(read::get(&state, key, seq, &**core)?.is_some());
        assert_eq!([has(b"before")?, has(b"loaded")?, has(b"put")?], [!is_empty, false, false]);
        for key in [&b"loaded"[..], b"put"] {
            assert!(tree.contains(key)?);
            tree.delete(key)?;
        }
        tree.compact()?;
    }
    Ok(())
}

/// All tables of a bulk load have one number. What a merge makes of the older of them and of
/// flushes is older than the newer of them.
#[test]
fn a_merge_in_level_0_stays_behind_the_rest_of_a_bulk_load() -> Result<()> {
    let background = Background::Stepped;
    let options = OpenOptions { env: Env::memory(), background, ..OpenOptions::default() };
    let config = Config { memtable_bytes: 4 << 20, table_bytes: 64 << 10, ..Config::default() };
    let db = Db::open_in("/db", config, options)?;
    let tree = db.tree_or_create("t")?;
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut value = |mark: u8| {
        let mut value = vec![0; 1000];
        random.fill(&mut value[..]);
        value[0] = mark;
        value
    };
    let key = |at: u8| [at];
    for at in 0..84 {
        tree.put(&key(at), &value(0))?;
    }
    tree.compact()?;
    for round in 1..4 {
        for at in (0..84).filter(|at| at % 4 != round % 4) {
            tree.put(&key(at), &value(round))?;
        }
        tree.flush()?;
    }
    let mut ingest = tree.ingest()?;
    for at in 0..84 {
        ingest.add(&key(at), &value(9))?;
    }
    ingest.finish()?;
    let tables = || tree.inner.state.load().version.levels[0].tables().len();
    assert_eq!(tables(), 5);
    let mut merged = false;
    loop {
        for at in 0..84 {
            let found = tree.get(&key(at))?.unwrap();
            assert_eq!(found[0], 9, "{at}");
        }
        merged = merged || tables() == 2;
        if !db.step()? {
            break;
        }
    }
    assert!(merged, "one of the run was merged with flushes");
    Ok(())
}
