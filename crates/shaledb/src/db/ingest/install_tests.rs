//! Tests of what reads find while tables are ingested.

use super::*;
use crate::base::config::Config;
use crate::base::sync::atomic::Ordering;
use crate::db::{Background, Db, OpenOptions};
use crate::fs::Env;
use crate::read;

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
