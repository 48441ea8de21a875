//! Two-phase commit on a disk that crashes and fails: what was prepared is prepared, what was
//! decided is decided, and all of it is a moment of the commit order.

use crate::Case;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shaledb::fs::Env;
use shaledb::fs::mem::{Call, CrashMode, MemFs};
use shaledb::repair::{RepairOptions, repair};
use shaledb::{Batch, Concurrency, Db, Error, Transaction, TransactionOptions, Tree, WriteOptions};
use shaledb_sim::fault::faults_of;
use shaledb_sim::settings::{exhaustive, seeds, small};
use shaledb_sim::world::{PATH, open_db};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The rows of both trees, and what is prepared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub rows: Rows,
    pub prepared: BTreeMap<Vec<u8>, Vec<Write>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Write {
    Put(usize, Vec<u8>, Vec<u8>),
    Delete(usize, Vec<u8>),
    DeleteRange(usize, Vec<u8>, Vec<u8>),
}

impl State {
    pub fn apply(&mut self, writes: &[Write]) {
        for write in writes.iter().cloned() {
            match write {
                Write::Put(tree, key, value) => drop(self.rows.insert((tree, key), value)),
                Write::Delete(tree, key) => drop(self.rows.remove(&(tree, key))),
                Write::DeleteRange(tree, start, end) => {
                    self.rows.retain(|row, _| row.0 != tree || row.1 < start || row.1 >= end);
                }
            }
        }
    }

    pub fn decide(&mut self, xid: &[u8], commit: bool) {
        let writes = self.prepared.remove(xid).unwrap();
        if commit {
            self.apply(&writes);
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Write(Vec<Write>, bool),
    Prepare(Vec<u8>, Vec<Write>, Concurrency),
    /// The same, pessimistic, without a sync.
    PrepareLazily(Vec<u8>, Vec<Write>),
    Decide(Vec<u8>, bool, bool),
    Sync,
    Flush,
    Compact,
    Background,
    Reopen,
}

/// A program. The keys of different transactions differ, so that none waits.
fn program(seed: u64, length: usize) -> Vec<Step> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut open: Vec<Vec<u8>> = Vec::new();
    let mut steps = Vec::new();
    for number in 0..length {
        let place = rng.random_range(0..8u8);
        let mut writes = |first: u8| {
            let mut writes = Vec::new();
            for n in 0..rng.random_range(1..6u8) {
                let (tree, key) = (usize::from(n % 2), vec![first, rng.random_range(0..4u8)]);
                let length = [10, 500, 3_000, 6_000][rng.random_range(0..4)];
                writes.push(match rng.random_range(0..8) {
                    0 => Write::Delete(tree, key),
                    1 => Write::DeleteRange(tree, key, vec![first, 9]),
                    _ => Write::Put(tree, key, vec![number as u8; length]),
                });
            }
            writes
        };
        steps.push(match place {
            0..=1 => Step::Write(writes(0), number % 3 == 0),
            2..=3 => {
                let xid = format!("x{number}").into_bytes();
                let concurrency = if number % 2 == 0 {
                    Concurrency::Pessimistic
                } else {
                    Concurrency::Optimistic
                };
                open.push(xid.clone());
                Step::Prepare(xid, writes(number as u8 + 1), concurrency)
            }
            4..=5 if !open.is_empty() => {
                let xid = open.remove(number % open.len());
                Step::Decide(xid, number % 3 > 0, number % 4 == 0)
            }
            6 if number % 3 == 0 => Step::Compact,
            6 => Step::Flush,
            7 if number % 3 == 0 => Step::Reopen,
            _ => Step::Background,
        });
    }
    steps
}

/// What was, moment by moment.
pub(super) struct World {
    pub fs: MemFs,
    pub db: Option<(Db, [Tree; 2])>,
    pub moments: Vec<State>,
    /// The last moment known to be durable.
    pub durable: usize,
}

impl World {
    pub fn create(fs: MemFs) -> shaledb::Result<World> {
        let mut world = World { fs, db: None, moments: vec![State::default()], durable: 0 };
        world.open()?;
        Ok(world)
    }

    fn open(&mut self) -> shaledb::Result<()> {
        let db = open_db(&self.fs, PATH, &small())?;
        let trees = [db.tree_or_create("a")?, db.tree_or_create("b")?];
        self.db = Some((db, trees));
        Ok(())
    }

    pub fn now(&self) -> &State {
        self.moments.last().unwrap()
    }

    /// Does a step; the state that it leads to is noted before, since a crash may find it.
    pub fn step(&mut self, step: &Step) -> shaledb::Result<()> {
        let mut next = self.now().clone();
        match step {
            Step::Write(writes, _) => next.apply(writes),
            Step::Prepare(xid, writes, _) | Step::PrepareLazily(xid, writes) => {
                next.prepared.insert(xid.clone(), writes.clone());
            }
            Step::Decide(xid, commit, _) => next.decide(xid, *commit),
            _ => {}
        }
        let moves = next != *self.now();
        if moves {
            self.moments.push(next);
        }
        self.run(step)?;
        if matches!(
            step,
            Step::Write(_, true)
                | Step::Prepare(..)
                | Step::Decide(_, _, true)
                | Step::Sync
                | Step::Reopen
        ) {
            self.durable = self.moments.len() - 1;
        }
        Ok(())
    }

    fn run(&mut self, step: &Step) -> shaledb::Result<()> {
        let Some((db, trees)) = &self.db else { return Err(Error::Closed) };
        match step {
            Step::Write(writes, sync) => {
                let mut batch = Batch::new();
                for write in writes {
                    match write {
                        Write::Put(tree, key, value) => batch.put(&trees[*tree], key, value),
                        Write::Delete(tree, key) => batch.delete(&trees[*tree], key),
                        Write::DeleteRange(tree, start, end) => {
                            batch.delete_range(&trees[*tree], start, end);
                        }
                    }
                }
                db.write(&batch, WriteOptions { sync: *sync })
            }
            Step::Prepare(xid, writes, concurrency) => {
                begin(db, trees, writes, *concurrency)?.prepare(xid).map(drop)
            }
            Step::PrepareLazily(xid, writes) => {
                let txn = begin(db, trees, writes, Concurrency::Pessimistic)?;
                txn.prepare_with(xid, WriteOptions::default()).map(drop)
            }
            Step::Decide(xid, commit, sync) => decide(db, xid, *commit, *sync),
            Step::Sync => db.sync(),
            Step::Flush => db.flush(),
            Step::Compact => db.compact(),
            Step::Background => db.step().map(drop),
            Step::Reopen => {
                if let Some((db, trees)) = self.db.take() {
                    drop(trees);
                    db.close()?;
                }
                self.open()
            }
        }
    }
}

/// A transaction with these writes. A pessimistic one with more than two does not fit its memory.
fn begin(
    db: &Db,
    trees: &[Tree; 2],
    writes: &[Write],
    concurrency: Concurrency,
) -> shaledb::Result<Transaction> {
    // So that all but its last write goes to runs, and the prepare to tables.
    let spills = concurrency == Concurrency::Pessimistic && writes.len() > 2;
    let memory_bytes = u64::from(spills);
    let options = TransactionOptions { concurrency, memory_bytes, ..TransactionOptions::default() };
    let mut txn = db.begin(options)?;
    writes.iter().try_for_each(|write| match write {
        Write::Put(tree, key, value) => txn.put(&trees[*tree], key, value),
        Write::Delete(tree, key) => txn.delete(&trees[*tree], key),
        Write::DeleteRange(tree, start, end) => txn.delete_range(&trees[*tree], start, end),
    })?;
    Ok(txn)
}

pub(super) fn decide(db: &Db, xid: &[u8], commit: bool, sync: bool) -> shaledb::Result<()> {
    let found = db.prepared()?.into_iter().find(|prepared| prepared.xid() == xid);
    let prepared = found.expect("it is prepared");
    let options = WriteOptions { sync };
    if commit { prepared.commit(options) } else { prepared.rollback(options) }
}

/// Rows by tree and key.
pub(super) type Rows = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

/// What a database holds, and what is prepared.
pub(super) fn found(db: &Db) -> (Rows, Vec<Vec<u8>>) {
    let mut rows = BTreeMap::new();
    for (index, name) in ["a", "b"].iter().enumerate() {
        let Ok(tree) = db.tree(name) else { continue };
        for row in tree.scan::<&[u8]>(..).unwrap() {
            let (key, value) = row.unwrap();
            rows.insert((index, key), value);
        }
    }
    let prepared = db.prepared().unwrap().iter().map(|p| p.xid().to_vec()).collect();
    (rows, prepared)
}

#[track_caller]
pub(super) fn same(db: &Db, state: &State, label: &str) {
    let (rows, prepared) = found(db);
    assert!(rows == state.rows, "{label}: the rows differ");
    assert_eq!(prepared, state.prepared.keys().cloned().collect::<Vec<_>>(), "{label}");
}

/// Opens what is on a disk: it must be a moment from `low` on. Then what is prepared is locked, can
/// be decided, and the decisions last. Answers which moment it was.
pub(super) fn recover(fs: &MemFs, moments: &[State], low: usize, label: &str) -> usize {
    recover_and(fs, moments, low, label, CrashMode::Lost)
}

/// As [`recover`], with this crash in the end.
fn recover_and(fs: &MemFs, moments: &[State], low: usize, label: &str, end: CrashMode) -> usize {
    let db = open_db(fs, PATH, &small()).unwrap_or_else(|error| panic!("{label}: {error}"));
    let (rows, prepared) = found(&db);
    let is = |state: &&State| state.rows == rows && state.prepared.keys().eq(prepared.iter());
    let Some(at) = (low..moments.len()).rfind(|at| is(&&moments[*at])) else {
        panic!("{label}: no moment from {low} to {} is what was found", moments.len() - 1);
    };
    let mut state = moments[at].clone();
    let lock_timeout = std::time::Duration::ZERO;
    let options = TransactionOptions { lock_timeout, ..TransactionOptions::default() };
    for writes in state.prepared.values() {
        let (Write::Put(tree, key, _)
        | Write::Delete(tree, key)
        | Write::DeleteRange(tree, key, _)) = &writes[0];
        let tree = db.tree(["a", "b"][*tree]).unwrap();
        let refused = db.begin(options).unwrap().put(&tree, key, b"");
        assert!(matches!(refused, Err(Error::LockTimeout { .. })), "{label}: {refused:?}");
    }
    db.flush().unwrap();
    same(&db, &state, label);
    for (index, xid) in prepared.iter().enumerate() {
        decide(&db, xid, index % 2 == 0, true).unwrap();
        state.decide(xid, index % 2 == 0);
    }
    same(&db, &state, label);
    drop(db);
    let after = fs.crash_clone(1, end);
    let db = open_db(&after, PATH, &small()).unwrap_or_else(|error| panic!("{label}: {error}"));
    same(&db, &state, label);
    assert!(db.verify(&mut |_| {}).unwrap().damage.is_empty(), "{label}");
    at
}

/// Runs a program and crashes after changes of the disk, about `each` of them a step (all of them
/// if it is to be exhaustive); tells of every disk that is left, as a crash of the machine leaves it
/// (in these ways in turn) and as one of the process does, of the world, and of the moment that is
/// durable at least.
pub(super) fn crash_at_each_step(
    seed: u64,
    program: &[Step],
    each: usize,
    modes: [CrashMode; 2],
    left: &mut dyn FnMut(&MemFs, &World, usize, &str),
) {
    let fs = MemFs::new();
    let mut world = World::create(fs.clone()).unwrap();
    fs.keep_images(Some(1));
    for (at, step) in program.iter().enumerate() {
        let low = world.durable;
        world.step(step).unwrap();
        let images = fs.take_images();
        let stride = if exhaustive() { 1 } else { (images.len() / each).max(1) };
        for (index, image) in images.iter().enumerate().step_by(stride) {
            let change = image.changes;
            for disk in [image.fs.crash_clone(seed ^ change, modes[index % 2]), image.fs.fork()] {
                let label = format!("SHALE_SEED={seed}, step {at} {step:?}, change {change}");
                let _case = Case::new(label.clone());
                left(&disk, &world, low, &label);
            }
        }
    }
}

/// Runs a program again and again, and each time another call of the disk fails: about `each` of a
/// kind, in all ways. Tells of the disk and of the world after it; answers how often a step failed.
pub(super) fn fail_each_call(
    seed: u64,
    program: &[Step],
    each: u64,
    after: &mut dyn FnMut(&MemFs, World, &str),
) -> usize {
    let whole = MemFs::new();
    let mut world = World::create(whole.clone()).unwrap();
    let before = whole.counts();
    program.iter().try_for_each(|step| world.step(step)).unwrap();
    let mut failed = 0;
    for call in Call::ALL {
        let count = whole.counts().of(call) - before.of(call);
        let stride = if exhaustive() { 1 } else { (count / each).max(1) };
        for nth in (1..=count).step_by(stride as usize) {
            for &fault in faults_of(call) {
                let label = format!("SHALE_SEED={seed}, {call:?} {nth} {fault:?}");
                let _case = Case::new(label.clone());
                let fs = MemFs::new();
                let mut world = World::create(fs.clone()).unwrap();
                fs.fail(call, nth, fault, true);
                failed += usize::from(program.iter().any(|step| world.step(step).is_err()));
                fs.clear_faults();
                after(&fs, world, &label);
            }
        }
    }
    failed
}

#[test]
fn a_crash_at_any_point_leaves_a_moment_of_the_commit_order() {
    let (mut crashes, mut undecided) = (0, 0);
    for seed in seeds(6) {
        let modes = [CrashMode::Torn, CrashMode::Lost];
        crash_at_each_step(seed, &program(seed, 40), 4, modes, &mut |disk, world, low, label| {
            recover(disk, &world.moments, low, label);
            crashes += 1;
            undecided += u64::from(!world.now().prepared.is_empty());
        });
    }
    assert!(undecided > 20 && crashes > undecided, "{crashes} crashes, {undecided}");
}

#[test]
fn a_failing_call_loses_nothing_that_was_prepared_or_decided() {
    let mut failed = 0;
    for seed in seeds(3) {
        failed += fail_each_call(seed, &program(seed + 100, 30), 4, &mut |fs, world, label| {
            let (moments, low) = (world.moments.clone(), world.durable);
            let crashed = fs.crash_clone(seed, CrashMode::Torn);
            let killed = fs.fork();
            drop(world);
            recover(&crashed, &moments, low, label);
            // What a failed sync has lost is in the page cache for as long as the machine runs, and
            // no later sync brings it to the disk.
            recover_and(&killed, &moments, low, label, CrashMode::Kept);
        });
    }
    assert!(failed > 20, "{failed} failed");
}

#[test]
fn checkpoints_and_repairs_have_what_is_prepared() {
    for seed in seeds(6) {
        let label = format!("SHALE_SEED={seed}");
        let mut world = World::create(MemFs::new()).unwrap();
        let mut steps = program(seed + 200, 30);
        steps.push(Step::Prepare(
            b"last".to_vec(),
            vec![
                Write::Put(0, b"zz".to_vec(), vec![1; 9_000]),
                Write::Put(1, b"zz".to_vec(), vec![2; 9]),
                Write::DeleteRange(0, vec![0], vec![1]),
            ],
            Concurrency::Pessimistic,
        ));
        steps.iter().try_for_each(|step| world.step(step)).unwrap();
        let (db, trees) = world.db.take().unwrap();
        db.checkpoint("/copy").unwrap();
        drop(trees);
        db.close().unwrap();
        let mut state = world.moments.last().unwrap().clone();
        let env = Env { fs: Arc::new(world.fs.clone()), ..Env::memory() };
        let options = RepairOptions { config: small(), env };
        let (from, to) = (Path::new(PATH), Path::new("/repaired"));
        let report = repair(from, to, &options, &mut |_| ()).unwrap();
        assert!(report.is_clean(), "{label}: {report}");
        let names: Vec<Vec<u8>> = state.prepared.keys().cloned().collect();
        for path in ["/copy", "/repaired", PATH] {
            let db = open_db(&world.fs, path, &small()).unwrap();
            same(&db, &state, &format!("{label} {path}"));
        }
        for xid in &names {
            state.decide(xid, true);
        }
        for path in ["/copy", "/repaired", PATH] {
            let db = open_db(&world.fs, path, &small()).unwrap();
            for xid in &names {
                decide(&db, xid, true, false).unwrap();
            }
            db.compact().unwrap();
            same(&db, &state, &format!("{label} {path}, decided"));
        }
    }
}

/// An undecided transaction holds back no logs: it is logged again.
#[test]
fn logs_do_not_pile_up_behind_what_is_prepared() {
    let fs = MemFs::new();
    let mut world = World::create(fs.clone()).unwrap();
    let writes = vec![Write::Put(0, b"kept".to_vec(), vec![7; 2_000])];
    world.step(&Step::Prepare(b"old".to_vec(), writes, Concurrency::Pessimistic)).unwrap();
    let mut logs_max = 0;
    for n in 0..600u32 {
        let key = n.to_be_bytes().to_vec();
        let last = n == 599;
        world.step(&Step::Write(vec![Write::Put(1, key, vec![1; 3_000])], last)).unwrap();
        // The last moment is all that counts.
        world.moments.drain(..world.moments.len() - 1);
        world.durable = 0;
        world.step(&Step::Background).unwrap();
        let is_log = |path: &Path| path.extension().is_some_and(|name| name == "wal");
        let logs = fs.files().into_iter().filter(|(path, _)| is_log(path));
        logs_max = logs_max.max(logs.map(|(_, bytes)| bytes).sum::<u64>());
    }
    assert!(logs_max < 24 * small().memtable_bytes, "{logs_max} bytes of logs");
    // The first place of the prepare is long gone.
    recover(&fs.crash_clone(3, CrashMode::Lost), &world.moments, world.durable, "logged again");
    recover(&fs.fork(), &world.moments, world.durable, "logged again");
}
