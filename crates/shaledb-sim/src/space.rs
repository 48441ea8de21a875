//! A limit on space: after every operation the files take no more than they may; what is refused
//! changes nothing; deletes are not refused, and make room.

use crate::data::{KEYS, Value};
use crate::model::{Change, Commit};
use crate::ops::{Op, SNAPSHOTS};
use crate::outcome::{Failure, Outcome};
use crate::world::World;
use shaledb::Config;
use shaledb::fs::mem::CrashMode;

/// What came of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Operations that were refused.
    pub refused: u64,
    /// Of these, puts and the like that were made later, when there was room again.
    pub made_later: u64,
    /// Operations that only delete.
    pub deletes: u64,
}

/// Whether an operation only deletes.
fn only_deletes(op: &Op) -> bool {
    let is_delete = |change: &Change| !matches!(change, Change::Put(..));
    matches!(op.commit(), Some(Commit::Batch(changes)) if changes.iter().all(is_delete))
        && matches!(op, Op::Write(..))
        || matches!(op, Op::Drop(_) | Op::Renew(_))
}

/// Whether an operation may be refused for want of room.
fn may_be_refused(op: &Op) -> bool {
    matches!(
        op,
        Op::Write(..)
            | Op::Transaction(..)
            | Op::PutReader(..)
            | Op::Ingest(..)
            | Op::Compact(_)
            | Op::CompactRange(..)
    )
}

/// Runs a program in a database with a limit on space.
pub fn run_limited(program: &[Op], config: &Config) -> Outcome<Tally> {
    assert!(config.space_limit > 0, "there is a limit");
    let mut world = World::create(config)?;
    let mut tally = Tally::default();
    // Snapshots keep what was deleted.
    let mut pinned = 0u32;
    for (index, op) in program.iter().enumerate() {
        let wrong = |what: String| Failure::Wrong(format!("operation {index} `{op}`: {what}"));
        pinned |= u32::from(matches!(op, Op::Snapshot(_) | Op::OpenScan(..)));
        tally.deletes += u64::from(only_deletes(op));
        let refused = match world.step(op) {
            Ok(()) => continue,
            Err(Failure::Engine(error)) if error.is_space_limit() => error,
            Err(failure) => return Err(wrong(failure.to_string())),
        };
        tally.refused += 1;
        world.doubt = None;
        if !may_be_refused(op) || only_deletes(op) && pinned == 0 {
            return Err(wrong(format!("it is refused: {refused}")));
        }
        let checked = world.check().and_then(|()| world.keeps_limit());
        checked.map_err(|failure| wrong(format!("after {refused}: {failure}")))?;
        if tally.refused % 8 == 0 {
            pinned = 0;
            tally.made_later += u64::from(make_room(&mut world, op).map_err(|failure| {
                wrong(format!("when room was made after {refused}: {failure}"))
            })?);
        }
    }
    finish(world, config)?;
    Ok(tally)
}

/// Ends what keeps old versions, deletes most rows, and makes the operation again: now it is not
/// refused, if it is one commit of a few values. Answers whether it is.
fn make_room(world: &mut World, op: &Op) -> Outcome<bool> {
    let ends = (0..SNAPSHOTS).map(Op::Release);
    world.run(&ends.collect::<Vec<_>>())?;
    world.end_scans();
    delete_all(world)?;
    world.wait();
    match op {
        Op::Write(..) | Op::PutReader(..) => world.step(op).map(|()| true),
        _ => Ok(false),
    }
}

/// Deletes all rows one by one, in batches.
fn delete_all(world: &mut World) -> Outcome<()> {
    for tree in world.model.trees(world.model.now()) {
        let keys: Vec<u32> = (0..KEYS).collect();
        for some in keys.chunks(20) {
            let changes = some.iter().map(|&key| Change::Delete(tree, key)).collect();
            world.step(&Op::Write(changes, false))?;
        }
    }
    world.check()
}

/// In the end the database can be filled again, and is right after a close and after a crash.
fn finish(mut world: World, config: &Config) -> Outcome<()> {
    world.run(&[Op::Check, Op::Idle, Op::Verify, Op::Check, Op::Reopen, Op::Check])?;
    let (low, high) = (world.model.durable(), world.model.now());
    let (disk, model) = world.kill();
    for (seed, mode) in [(1, CrashMode::Torn), (2, CrashMode::Lost)] {
        let mut world = World::recover(disk.crash_clone(seed, mode), config, &model, low, high)?;
        world.keeps_limit()?;
        make_room(&mut world, &Op::Sync)?;
        let Some(tree) = world.model.trees(world.model.now()).into_iter().next() else { continue };
        for key in 0..100 {
            let value = Value { number: 2 * key + 1, bytes: 4_000 };
            world.step(&Op::Write(vec![Change::Put(tree, key, value)], false))?;
        }
        world.check()?;
    }
    Ok(())
}
