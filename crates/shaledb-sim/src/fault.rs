//! Faults: a program is run with one call of the disk failing. Errors are right, wrong answers are
//! not; after a full disk has space again work goes on; after a crash everything durable is there.

use crate::ops::Op;
use crate::outcome::{Failure, Outcome};
use crate::world::{World, state_hash};
use shaledb::fs::mem::{Call, CrashMode, Fault, MemFs};
use shaledb::{Config, Error};

/// One fault to inject.
#[derive(Clone, Copy, Debug)]
pub struct Injection {
    /// The kind of call that fails.
    pub call: Call,
    /// Which of these calls, counted from 1.
    pub nth: u64,
    /// How it fails.
    pub fault: Fault,
    /// Whether later calls of the kind succeed.
    pub once: bool,
}

/// What came of an injection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcomes {
    /// The program never got to that call.
    NotReached,
    /// The engine coped by itself.
    Hidden,
    /// An error was reported; the program went on after it.
    WentOn,
    /// An error was reported and writes were refused until the database was opened again.
    Refused,
    /// The database could not be created.
    NotCreated,
}

/// The ways in which each kind of call can fail.
pub fn faults_of(call: Call) -> &'static [Fault] {
    match call {
        Call::Append => &[Fault::Io, Fault::Full, Fault::Short, Fault::ShortFull],
        Call::Sync => &[Fault::Io, Fault::Full, Fault::ReportOne],
        Call::Create => &[Fault::Io, Fault::Full, Fault::NoHandle],
        Call::Link | Call::CreateDir => &[Fault::Io, Fault::Full],
        Call::Open | Call::List | Call::SyncDir => &[Fault::Io, Fault::NoHandle],
        _ => &[Fault::Io],
    }
}

/// Runs a program with a fault.
pub fn run(program: &[Op], config: &Config, injection: Injection) -> Outcome<Outcomes> {
    let fs = MemFs::new();
    fs.fail(injection.call, injection.nth, injection.fault, injection.once);
    let mut world = match World::create_on(fs.clone(), config) {
        Ok(world) => world,
        Err(Failure::Engine(error)) => {
            expected(&fs, &error)?;
            return not_created(fs, config);
        }
        Err(wrong) => return Err(wrong),
    };
    let mut outcome = Outcomes::Hidden;
    for (index, op) in program.iter().enumerate() {
        match world.step(op) {
            Ok(()) => {}
            Err(Failure::Engine(error)) => {
                let describe = |failure| describe_error(failure, index, op, &error);
                if outcome != Outcomes::Hidden {
                    return Err(describe(Failure::Wrong("a second error, without a fault".into())));
                }
                expected(&fs, &error).map_err(describe)?;
                fs.clear_faults();
                outcome = check_after_error(&mut world, injection, &error).map_err(describe)?;
                if outcome == Outcomes::Refused {
                    break;
                }
            }
            Err(failure) => {
                return Err(Failure::Wrong(format!("at operation {index} `{op}`: {failure}")));
            }
        }
    }
    if fs.faults_struck() == 0 {
        return Ok(Outcomes::NotReached);
    }
    fs.clear_faults();
    finish(world, config, injection, outcome)?;
    Ok(outcome)
}

fn describe_error(failure: Failure, index: usize, op: &Op, error: &Error) -> Failure {
    Failure::Wrong(format!("after operation {index} `{op}` failed ({error}): {failure}"))
}

/// An error may be reported only after a fault, and a fault is no damage.
fn expected(fs: &MemFs, error: &Error) -> Outcome<()> {
    if fs.faults_struck() == 0 || error.is_corruption() {
        return Err(Failure::Wrong(format!("an error that no fault explains: {error}")));
    }
    Ok(())
}

/// Whether an error says what a fault has done, and nothing else.
fn is_of(fault: Fault, error: &Error) -> bool {
    match (fault, error) {
        (Fault::Full | Fault::ShortFull, error) => error.is_disk_full(),
        (Fault::NoHandle, Error::Io { .. }) => error.to_string().contains("ulimit"),
        (_, Error::Io { source, .. }) => source.to_string() == "injected fault",
        _ => false,
    }
}

/// A database that could not be created can be created once the fault is gone, also after a crash.
fn not_created(fs: MemFs, config: &Config) -> Outcome<Outcomes> {
    fs.clear_faults();
    let torn = fs.crash_clone(1, CrashMode::Torn);
    for disk in [fs, torn] {
        World::create_on(disk, config)?.run(&[Op::Create(0), Op::Check])?;
    }
    Ok(Outcomes::NotCreated)
}

/// After an error, with the fault gone: reads are right, and either writes go on or are refused.
fn check_after_error(world: &mut World, injection: Injection, error: &Error) -> Outcome<Outcomes> {
    let doubt = world.doubt.take();
    if !world.is_open() {
        // Closing or opening failed, so there was no commit.
        return Ok(Outcomes::Refused);
    }
    // A full disk is no reason to lose or refuse anything.
    let clean = error.is_disk_full() && injection.call == Call::Append;
    let now = world.model.now();
    let found = state_hash(world.db()?)?;
    let visible = found != world.model.hash(now);
    if visible {
        let Some(commit) = &doubt else {
            return Err(Failure::Wrong("the state has changed without a commit".into()));
        };
        if clean {
            return Err(Failure::Wrong("a write refused for lack of space was made".into()));
        }
        world.model.commit(commit);
        if world.model.hash(now + 1) != found {
            return Err(Failure::Wrong("the failed commit is neither there nor not".into()));
        }
    }
    world.renew_handles()?;
    world.check()?;
    world.wait();
    match world.step(&Op::Sync) {
        Ok(()) => Ok(Outcomes::WentOn),
        Err(Failure::Engine(again @ Error::Poisoned(_))) => {
            if clean {
                let what = format!("a full disk has made writes impossible for good: {again}");
                return Err(Failure::Wrong(what));
            }
            world.doubt = doubt.filter(|_| !visible);
            world.check()?;
            Ok(Outcomes::Refused)
        }
        Err(failure) => Err(failure),
    }
}

/// In the end everything durable is there after a close, a kill and a crash.
fn finish(
    mut world: World,
    config: &Config,
    injection: Injection,
    outcome: Outcomes,
) -> Outcome<()> {
    let doubt = world.doubt.take();
    if outcome != Outcomes::Refused {
        world.wait();
        match world.step(&Op::Idle) {
            Ok(()) => world.wait(),
            // A merge of which a part has failed ends with that error when its last part does.
            Err(Failure::Engine(error)) if is_of(injection.fault, &error) => world.wait(),
            Err(failure) => return Err(failure),
        }
        world.run(&[Op::Check, Op::Idle, Op::Check, Op::Verify])?;
    }
    let low = world.model.durable();
    let (disk, mut model) = world.kill();
    if let Some(doubt) = doubt {
        model.commit(&doubt);
    }
    let high = model.now();
    for (seed, mode) in [(1, CrashMode::Torn), (2, CrashMode::Torn), (3, CrashMode::Lost)] {
        let world = World::recover(disk.crash_clone(seed, mode), config, &model, low, high);
        world.map_err(|failure| Failure::Wrong(format!("after a crash ({mode:?}): {failure}")))?;
    }
    let mut world = World::recover(disk, config, &model, low, high)
        .map_err(|failure| Failure::Wrong(format!("after a kill: {failure}")))?;
    world.run(&[Op::Check, Op::Sync, Op::Idle, Op::Verify, Op::Reopen, Op::Check])
}

/// Runs a program on a disk that is full time and again: each time an operation is refused, what
/// was there is still right, and the operation succeeds once there is a little more space. Answers
/// how often the disk was full.
pub fn run_full(program: &[Op], config: &Config, step_bytes: u64) -> Outcome<u64> {
    let mut world = World::create(config)?;
    let fs = world.fs.clone();
    fs.set_capacity(Some(fs.used_bytes() + step_bytes));
    let mut times = 0;
    for (index, op) in program.iter().enumerate() {
        let wrong = |what: String| Failure::Wrong(format!("operation {index} `{op}`: {what}"));
        let mut tries = 0;
        while let Err(failure) = world.step(op) {
            let Failure::Engine(error @ Error::DiskFull { .. }) = &failure else {
                return Err(wrong(failure.to_string()));
            };
            times += 1;
            tries += 1;
            if tries > TRIES_MAX {
                return Err(wrong(format!("refused again and again: {error}")));
            }
            world.doubt = None;
            if world.is_open() {
                let checked = world.check();
                checked.map_err(|failure| wrong(format!("after {error}: {failure}")))?;
            }
            fs.set_capacity(Some(fs.used_bytes() + (step_bytes << tries)));
            world.wait();
        }
    }
    fs.set_capacity(None);
    world.run(&[Op::Check, Op::Idle, Op::Verify, Op::Check])?;
    let (low, high) = (world.model.durable(), world.model.now());
    let (disk, model) = world.kill();
    World::recover(disk.crash_clone(7, CrashMode::Torn), config, &model, low, high)?.check()?;
    Ok(times)
}

/// How often one operation may be refused while the disk grows from one try to the next.
const TRIES_MAX: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use shaledb::Env;
    use std::io;

    #[test]
    fn an_error_of_another_cause_is_not_of_the_fault() {
        let path = "/db/000001.table".as_ref();
        for fault in [
            Fault::Io,
            Fault::Full,
            Fault::Short,
            Fault::ReportOne,
            Fault::ShortFull,
            Fault::NoHandle,
        ] {
            let fs = MemFs::new();
            fs.fail(Call::Create, 1, fault, true);
            let env = Env { fs: std::sync::Arc::new(fs), ..Env::memory() };
            let injected = env.fs.create(path).err().unwrap();
            assert!(is_of(fault, &injected), "{fault:?}: {injected}");
            assert!(!is_of(fault, &Error::corruption(path, 0, "a block is damaged")));
            assert!(!is_of(fault, &Error::io("read", path, io::Error::other("something else"))));
            assert!(!is_of(fault, &Error::Poisoned(std::sync::Arc::new(injected))));
        }
    }
}
