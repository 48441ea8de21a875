//! Crashes: one run of a program keeps an image of the disk before each of its changes; each image
//! is then crashed in several ways, recovered and compared with the model.

use crate::model::Model;
use crate::ops::{Generator, Op};
use crate::outcome::{Failure, Outcome};
use crate::world::{CrashPoint, PATH, World, open_db};
use shaledb::Config;
use shaledb::fs::mem::{CrashMode, MemFs};

/// A run and the moments at which it may have crashed.
pub struct Recorded {
    /// The whole history.
    pub model: Model,
    /// The moments, in order.
    pub points: Vec<CrashPoint>,
    /// How many changes the run made to its disk.
    pub changes: u64,
    /// See [`World::early_installs`].
    pub early_installs: u64,
    /// Operations refused for want of room.
    pub refused: u64,
}

/// Runs a program and keeps a crash point before every `every`-th change.
pub fn record(program: &[Op], config: &Config, every: u64) -> Outcome<Recorded> {
    let fs = MemFs::new();
    fs.keep_images(Some(every));
    let mut world = World::create_on(fs, config)?;
    let refused = world.run_in_room(program)?;
    let mut points = world.take_crash_points();
    // The last moment of all: everything has returned.
    let (low, high) = (world.model.durable(), world.model.now());
    let image = shaledb::fs::mem::Image { changes: world.fs.changes(), fs: world.fs.fork() };
    points.push(CrashPoint { image, low, high });
    let (changes, early_installs) = (world.fs.changes(), world.early_installs()?);
    Ok(Recorded { model: world.model.clone(), points, changes, early_installs, refused })
}

impl Recorded {
    /// Crashes at each point, in every way; how writes are torn follows from the program's
    /// `seed`.
    pub fn examine(&self, seed: u64, config: &Config, deep: u64, tally: &mut Tally) -> Outcome<()> {
        self.points.iter().try_for_each(|point| {
            let torn = seed * 1_000_003 + point.image.changes;
            examine(&self.model, point, config, torn, deep, tally)
        })
    }
}

/// What became of the crashes looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Crashes recovered from.
    pub crashes: u64,
    /// Of these, inside the recovery from another.
    pub nested: u64,
    /// Of these, after which some commit was missing that had been made.
    pub shortened: u64,
}

/// Crashes at one point in every way, and checks what is recovered. `seed` decides how writes are
/// torn; one in `deep` recoveries is followed by more work and further crashes.
fn examine(
    model: &Model,
    point: &CrashPoint,
    config: &Config,
    seed: u64,
    deep: u64,
    tally: &mut Tally,
) -> Outcome<()> {
    let fs = &point.image.fs;
    let disks = [
        ("all unsynced lost", fs.crash_clone(seed, CrashMode::Lost)),
        ("torn", fs.crash_clone(seed, CrashMode::Torn)),
        ("torn otherwise", fs.crash_clone(!seed, CrashMode::Torn)),
        ("killed", fs.fork()),
    ];
    for (index, (how, disk)) in disks.into_iter().enumerate() {
        let deep = (seed + index as u64).is_multiple_of(deep);
        let before = disk.fork();
        recovered(model, point, config, disk, deep.then_some(seed), tally)
            .map_err(|failure| describe_crash(failure, point, how))?;
        if deep {
            nested(model, point, config, before, seed, tally)
                .map_err(|failure| describe_crash(failure, point, how))?;
        }
    }
    Ok(())
}

fn describe_crash(failure: Failure, point: &CrashPoint, how: &str) -> Failure {
    Failure::Wrong(format!("crash before change {}, {how}: {failure}", point.image.changes))
}

/// Opens a crashed disk and compares; with a seed, works on and crashes again.
fn recovered(
    model: &Model,
    point: &CrashPoint,
    config: &Config,
    disk: MemFs,
    work_on: Option<u64>,
    tally: &mut Tally,
) -> Outcome<()> {
    let mut world = World::recover(disk, config, model, point.low, point.high)?;
    world.keeps_limit()?;
    tally.crashes += 1;
    tally.shortened += u64::from(world.model.now() < point.high);
    let Some(seed) = work_on else { return Ok(()) };
    world.check()?;
    let mut work = Generator::resuming(seed, world.model.trees(world.model.now()));
    world.run_in_room(&work.program(12))?;
    world.run(&[Op::Sync, Op::Idle, Op::Verify, Op::Check])?;
    // What is there now is all durable, whatever the first crash left unsynced.
    let now = world.model.now();
    let (disk, model) = world.kill();
    let mut world =
        World::recover(disk.crash_clone(seed, CrashMode::Torn), config, &model, now, now)?;
    world.check()?;
    world.reopen()?;
    world.check()
}

/// Crashes inside the recovery as well.
fn nested(
    model: &Model,
    point: &CrashPoint,
    config: &Config,
    disk: MemFs,
    seed: u64,
    tally: &mut Tally,
) -> Outcome<()> {
    disk.keep_images(Some(1));
    drop(open_db(&disk, PATH, config)?);
    for image in disk.take_images() {
        let mode = if image.changes % 2 == 0 { CrashMode::Torn } else { CrashMode::Lost };
        let disk = image.fs.crash_clone(seed ^ image.changes, mode);
        World::recover(disk, config, model, point.low, point.high).map_err(|failure| {
            let at = image.changes;
            Failure::Wrong(format!("crash again before change {at} of the recovery: {failure}"))
        })?;
        tally.crashes += 1;
        tally.nested += 1;
    }
    Ok(())
}
