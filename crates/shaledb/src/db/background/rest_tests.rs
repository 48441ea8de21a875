use super::*;
use crate::base::config::Config;
use crate::base::stats::Counter;
use crate::compaction::idle::IDLE_AFTER_NANOS;
use crate::db::{Background, Db, OpenOptions};
use crate::fs::Env;
use crate::fs::mem::{MemClock, MemFs};
use std::sync::Arc;

fn world() -> (Db, Arc<MemClock>) {
    let clock = Arc::new(MemClock::new());
    let env = Env { fs: Arc::new(MemFs::new()), clock: clock.clone() };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    let config = Config { background_threads: 5, ..Config::default() };
    (Db::open_in("/db", config, options).unwrap(), clock)
}

/// How many merges may run after `nanos` more, in which so many reads come.
fn merges_max(db: &Db, clock: &MemClock, nanos: u64, reads: u64) -> usize {
    let core = db.core();
    core.recorder.add(Counter::Gets, reads);
    clock.advance(nanos);
    let now = core.env.clock.now_nanos();
    core.merges_max(&mut core.sched.lock(), now)
}

#[test]
fn half_of_the_threads_merge_while_users_only_read() {
    let (db, clock) = world();
    let tree = db.tree_or_create("t").unwrap();
    tree.put(b"a", b"1").unwrap();
    assert_eq!(merges_max(&db, &clock, IDLE_AFTER_NANOS, 1000), 5, "the write was just now");
    assert_eq!(merges_max(&db, &clock, IDLE_AFTER_NANOS, 1000), 3);
    assert_eq!(merges_max(&db, &clock, IDLE_AFTER_NANOS, 1), 5, "nobody reads");
    assert_eq!(merges_max(&db, &clock, IDLE_AFTER_NANOS, 1000), 3);
    // Somebody waits for a merge.
    db.core().sched.waiting_while(|| {
        assert_eq!(merges_max(&db, &clock, IDLE_AFTER_NANOS, 1000), 5);
    });
    assert_eq!(merges_max(&db, &clock, IDLE_AFTER_NANOS, 1000), 3);
    tree.put(b"b", b"1").unwrap();
    assert_eq!(merges_max(&db, &clock, 1, 1000), 5);
    assert_eq!(merges_max(&db, &clock, IDLE_AFTER_NANOS, 1000), 3);
    // A bulk load writes too.
    let mut ingest = tree.ingest().unwrap();
    ingest.add(b"c", b"1").unwrap();
    ingest.finish().unwrap();
    assert_eq!(merges_max(&db, &clock, 1, 1000), 5);
    assert_eq!(merges_max(&db, &clock, IDLE_AFTER_NANOS, 1000), 3);
    // A flush waits for a thread.
    let id = *db.core().trees.load().by_id.keys().next().unwrap();
    db.core().sched.lock().flush.insert(id);
    assert_eq!(merges_max(&db, &clock, IDLE_AFTER_NANOS, 1000), 5);
}

#[test]
fn a_merge_rests_as_long_as_it_works() {
    let (db, clock) = world();
    let core = db.core();
    db.tree_or_create("t").unwrap();
    let id = *core.trees.load().by_id.keys().next().unwrap();
    let mut rests = Rests::new(core.env.clock.now_nanos());
    let mut rest = |worked, reads| {
        let before = rests.nanos;
        core.recorder.add(Counter::ScanSteps, reads);
        clock.advance(worked);
        core.rest(id, &mut rests);
        (rests.nanos - before) / 1_000_000
    };
    // So far nobody has read, nor looked for how long nobody has written.
    assert_eq!(rest(3_000_000, 0), 0);
    assert_eq!(rest(IDLE_AFTER_NANOS, 1000), 10, "not longer");
    assert_eq!(rest(3_000_000, 1000), 3);
    assert_eq!(rest(5_000_000, 1000), 5, "begun before the last write");
    assert_eq!(rest(1_000_000, 1000), 0, "not after each step");
    assert_eq!(rest(1_500_000, 1000), 2, "of both");
    let level0 = |tables| core.sched.lock().debts.entry(id).or_default().level0_tables = tables;
    level0(9);
    assert_eq!(rest(3_000_000, 1000), 0, "each read looks into nine tables");
    level0(8);
    assert_eq!(rest(3_000_000, 1000), 3);
    rest(IDLE_AFTER_NANOS, 0);
    assert_eq!(rest(IDLE_AFTER_NANOS, 0), 0, "nobody reads");
    db.tree_or_create("t").unwrap().put(b"a", b"1").unwrap();
    assert_eq!(rest(30_000_000, 100_000), 0, "somebody writes");
}
