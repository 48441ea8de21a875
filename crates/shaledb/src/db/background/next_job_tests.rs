//! Tests of whose turn it is.

use super::*;
use crate::base::config::Config;
use crate::base::error::Result;
use crate::compaction::plan::Reason;
use crate::db::{Background, Db, OpenOptions, Tree};
use crate::fs::Env;
use crate::version::TreeId;

fn world() -> Result<(Db, [Tree; 2])> {
    let options =
        OpenOptions { env: Env::memory(), background: Background::Stepped, read_only: false };
    let db = Db::open_in("/db", Config::default(), options)?;
    let trees = [db.tree_or_create("a")?, db.tree_or_create("b")?];
    Ok((db, trees))
}

/// Tables in level 0 that overlap.
fn fill(tree: &Tree, tables: usize) -> Result<()> {
    for _ in 0..tables {
        tree.put(b"a", b"")?;
        tree.put(b"z", b"")?;
        tree.flush()?;
    }
    Ok(())
}

/// The tree of the next compaction, and why; it is done.
fn next(db: &Db) -> Result<Option<(TreeId, Reason)>> {
    let core = db.core();
    loop {
        let Some(job) = core.next_job() else { return Ok(None) };
        let chosen = match &job {
            Job::Compact(tree, plan) => Some((tree.id, plan.reason)),
            _ => None,
        };
        core.run_job(job)?;
        if chosen.is_some() {
            return Ok(chosen);
        }
    }
}

#[test]
fn a_tree_that_always_has_work_keeps_no_other_waiting() -> Result<()> {
    for order in [[0, 1], [1, 0]] {
        let (db, trees) = world()?;
        let [busy, other] = order.map(|at| &trees[at]);
        fill(other, 20)?;
        fill(busy, 20)?;
        for _ in 0..3 {
            if next(&db)?.is_some_and(|(id, _)| id == other.id()) {
                break;
            }
            fill(busy, 20)?;
        }
        let left = other.inner.state.load().version.levels[0].tables().len();
        assert!(left < 20, "{order:?}: {left} tables");
    }
    Ok(())
}

#[test]
fn what_is_due_comes_before_what_an_idle_time_is_good_for() -> Result<()> {
    for order in [[0, 1], [1, 0]] {
        let (db, trees) = world()?;
        let [resting, due] = order.map(|at| &trees[at]);
        fill(resting, 2)?;
        fill(due, 20)?;
        let core = db.core();
        core.sched.lock().idle_wanted += 1;
        core.sched.want_looks([resting.id(), due.id()].into_iter());
        assert_eq!(next(&db)?.map(|(id, _)| id), Some(due.id()));
        let mut rested = false;
        while let Some((id, reason)) = next(&db)? {
            rested |= (id, reason) == (resting.id(), Reason::Idle);
        }
        assert!(rested, "the other had its turn");
        assert!(core.sched.lock().is_idle());
    }
    Ok(())
}

#[test]
fn many_trees_are_looked_at_some_at_a_time() -> Result<()> {
    let (db, [_, last]) = world()?;
    for n in 0..100 {
        db.tree_or_create(&format!("of many {n}"))?;
    }
    fill(&last, 20)?;
    while next(&db)?.is_some() {}
    let core = db.core();
    let mut state = core.sched.lock();
    state.look.extend(core.trees.load().by_id.keys());
    let mut laps = 0;
    loop {
        let before = state.look.len();
        match core.next_job_in(&mut state) {
            Next::Nothing => break,
            Next::LookOn => laps += 1,
            Next::Job(_) => panic!("there is nothing to do"),
        }
        assert!(before - state.look.len() <= TREES_AT_ONCE, "{before} {}", state.look.len());
    }
    drop(state);
    assert!(laps >= 3 && core.sched.lock().look.is_empty(), "{laps}");
    // The one that has something to do is found, wherever it is.
    fill(&last, 20)?;
    core.sched.want_looks(core.trees.load().by_id.keys().copied());
    assert_eq!(next(&db)?.map(|(id, _)| id), Some(last.id()));
    Ok(())
}

#[test]
fn trees_that_are_to_be_looked_at_again_do_not_keep_others_from_their_turn() -> Result<()> {
    let (db, _) = world()?;
    for n in 0..300 {
        db.tree_or_create(&format!("of many {n}"))?;
    }
    let last = db.tree_or_create("the last")?;
    fill(&last, 20)?;
    // What is no compaction is done before.
    db.core().sched.lock().look.clear();
    while next(&db)?.is_some() {}
    let core = db.core();
    let mut state = core.sched.lock();
    for lap in 0.. {
        assert!(lap <= 12, "it has not had its turn");
        // As the end of each snapshot may do.
        state.look.extend(core.trees.load().by_id.keys());
        match core.next_job_in(&mut state) {
            Next::Job(Job::Compact(tree, _)) if tree.id == last.id() => break,
            Next::Job(_) => panic!("there is nothing else to do"),
            Next::Nothing | Next::LookOn => {}
        }
    }
    Ok(())
}

/// Whoever copies a tree in rounds may take his time for one.
#[test]
fn a_tree_whose_compactions_are_held_keeps_nobody_waiting() -> Result<()> {
    let (db, [tree, _]) = world()?;
    let tracker = tree.track_changes("changes", std::time::Duration::ZERO)?;
    let round = tracker.begin_round(true)?;
    fill(tracker.tree(), 20)?;
    let core = db.core();
    core.sched.lock().idle_wanted += 1;
    core.sched.want_looks([tree.id(), tracker.tree().id()].into_iter());
    while db.step()? {}
    assert!(core.sched.lock().is_idle(), "what is held cannot be done now");
    core.sched.lock().idle_wanted -= 1;
    db.wait_idle()?;
    drop(round);
    assert!(!core.sched.lock().is_idle(), "it is due again");
    db.wait_idle()?;
    Ok(())
}
