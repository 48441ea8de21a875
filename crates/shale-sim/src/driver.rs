//! One database on the simulated disk, and the model beside it: runs a program's operations on both
//! and compares every answer.
//!
//! Background work is stepped by the program, so that one thread and one seed decide everything.

use crate::answers::OpenScan;
use crate::data::{self, Value};
use crate::model::{Change, Commit, Model, Moment, tree_name};
use crate::ops::{Op, ingested};
use shale::db::{Background, OpenOptions};
use shale::fs::Env;
use shale::fs::mem::{Image, MemClock, MemFs};
use shale::{
    Batch, Config, Db, Error, ScanOptions, Snapshot, SyncPolicy, Transaction, TransactionOptions,
    Tree, WriteOptions,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Where the database is on its disk.
pub const PATH: &str = "/db";

/// Why a run ended early.
#[derive(Debug)]
pub enum Failure {
    /// The engine returned an error.
    Engine(Error),
    /// The engine gave a wrong answer.
    Wrong(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Engine(error) => write!(f, "error: {error}"),
            Failure::Wrong(what) => write!(f, "wrong: {what}"),
        }
    }
}

/// The result of what compares the engine with the model.
pub type Outcome<T> = std::result::Result<T, Failure>;

pub(crate) fn wrong<T>(what: impl Into<String>) -> Outcome<T> {
    Err(Failure::Wrong(what.into()))
}

/// A moment at which the power may go, and what must be there then.
#[derive(Debug)]
pub struct CrashPoint {
    /// The disk.
    pub image: Image,
    /// The newest moment known to be durable.
    pub low: Moment,
    /// The newest moment begun.
    pub high: Moment,
}

/// A database, its disk and its model.
pub struct World {
    /// The disk.
    pub fs: MemFs,
    /// What the database should hold.
    pub model: Model,
    /// A hash of all answers the engine gave.
    pub history: u64,
    /// A commit that failed: it may be there or not.
    pub doubt: Option<Commit>,
    config: Config,
    clock: Arc<MemClock>,
    db: Option<Db>,
    pub(crate) trees: BTreeMap<u8, Tree>,
    pub(crate) snapshots: BTreeMap<u8, (Snapshot, Moment)>,
    pub(crate) scans: BTreeMap<u8, OpenScan>,
    crash_points: Vec<CrashPoint>,
    checkpoints: u32,
    /// Whether the last transaction wrote to runs of its own.
    spilled: bool,
    /// Whether operations are printed as they are run: `SHALE_TRACE` is set.
    trace: bool,
}

/// More steps of background work than any program can owe.
const STEPS_MAX: u32 = 100_000;

/// Opens the database of a disk with stepped background work.
pub fn open_db(fs: &MemFs, path: &str, config: &Config) -> shale::Result<Db> {
    open_at(fs, path, config, Arc::new(MemClock::new()))
}

fn open_at(fs: &MemFs, path: &str, config: &Config, clock: Arc<MemClock>) -> shale::Result<Db> {
    let env = Env { fs: Arc::new(fs.clone()), clock };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    Db::open_in(path, config.clone(), options)
}

/// The hash of all that a database holds, as [`Model::hash`] counts it.
pub fn state_hash(db: &Db) -> shale::Result<u64> {
    let mut hash = 0u64;
    for name in db.tree_names() {
        hash = hash.wrapping_add(data::tree_hash(&name));
        let mut scan = db.tree(&name)?.scan_with(ScanOptions::default())?;
        scan.seek_first()?;
        while scan.valid() {
            hash = hash.wrapping_add(data::entry_hash(&name, scan.key(), scan.value()?));
            scan.next()?;
        }
    }
    Ok(hash)
}

impl World {
    /// A new database on an empty disk.
    pub fn create(config: &Config) -> Outcome<World> {
        World::create_on(MemFs::new(), config)
    }

    /// A new database on this disk.
    pub fn create_on(fs: MemFs, config: &Config) -> Outcome<World> {
        let mut world = World::closed(fs, config, Model::new());
        world.open()?;
        Ok(world)
    }

    fn closed(fs: MemFs, config: &Config, model: Model) -> World {
        World {
            fs,
            model,
            history: 0,
            doubt: None,
            config: config.clone(),
            clock: Arc::new(MemClock::new()),
            db: None,
            trees: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            scans: BTreeMap::new(),
            crash_points: Vec::new(),
            checkpoints: 0,
            spilled: false,
            trace: std::env::var_os("SHALE_TRACE").is_some(),
        }
    }

    /// Opens what a crash has left on a disk. It must be what the model says of one moment from
    /// `low` to `high`; the model goes back to that moment.
    pub fn recover(
        fs: MemFs,
        config: &Config,
        model: &Model,
        low: Moment,
        high: Moment,
    ) -> Outcome<World> {
        let db = open_db(&fs, PATH, config)?;
        let is_run = |path: &Path| path.extension().is_some_and(|end| end == "run");
        if let Some((path, _)) = fs.files().into_iter().find(|(path, _)| is_run(path)) {
            return wrong(format!("{} is left of a transaction", path.display()));
        }
        let hash = state_hash(&db)?;
        let Some(moment) = model.find(hash, low, high) else {
            return wrong(format!(
                "no moment from {low} to {high} of the commit order is what was found: {}",
                differences(&db, model, low, high)?
            ));
        };
        let mut model = model.clone();
        model.rewind(moment);
        let mut world = World::closed(fs, config, model);
        world.adopt(db)?;
        Ok(world)
    }

    fn open(&mut self) -> Outcome<()> {
        let db = open_at(&self.fs, PATH, &self.config, self.clock.clone())?;
        self.adopt(db)
    }

    fn adopt(&mut self, db: Db) -> Outcome<()> {
        self.db = Some(db);
        self.renew_handles()
    }

    /// Gets a handle to each tree that the model has.
    pub fn renew_handles(&mut self) -> Outcome<()> {
        self.trees.clear();
        for tree in self.model.trees(self.model.now()) {
            self.trees.insert(tree, self.db()?.tree(&tree_name(tree))?);
        }
        Ok(())
    }

    /// Whether the database is open: it is not after a failed [`Op::Reopen`].
    pub fn is_open(&self) -> bool {
        self.db.is_some()
    }

    /// Lets so much time pass that everything that waits to be tried again is due.
    pub fn wait(&self) {
        self.clock.advance(60_000_000_000);
    }

    /// The database.
    pub fn db(&self) -> Outcome<&Db> {
        self.db.as_ref().ok_or(Failure::Engine(Error::Closed))
    }

    /// How many parts of merges were installed before the rest, in the trees that are there, since
    /// the database was opened.
    pub fn early_installs(&self) -> Outcome<u64> {
        let trees = self.db()?.stats().trees;
        Ok(trees.iter().flat_map(|tree| &tree.levels).map(|level| level.early_installs).sum())
    }

    /// The bytes of the tables of all trees.
    pub fn table_bytes(&self) -> Outcome<u64> {
        let trees = self.db()?.stats().trees;
        Ok(trees.iter().flat_map(|tree| &tree.levels).map(|level| level.bytes).sum())
    }

    /// Gives up all handles without closing, as a process that is killed.
    pub fn kill(mut self) -> (MemFs, Model) {
        // Whatever the handles do when they are dropped, they do it to a disk that is gone.
        let fs = self.fs.fork();
        self.fs.crash_after(0);
        self.snapshots.clear();
        self.scans.clear();
        self.trees.clear();
        self.db = None;
        (fs, self.model.clone())
    }

    /// Leaves the database as a process that is killed, on a disk that another goes on with.
    pub fn abandon(mut self) {
        self.snapshots.clear();
        self.scans.clear();
        // Handles close what they are of when they are dropped.
        std::mem::take(&mut self.trees).into_values().for_each(std::mem::forget);
        std::mem::forget(self.db.take());
        self.fs.free_locks();
    }

    /// The moments kept by [`MemFs::keep_images`] since the last call.
    pub fn take_crash_points(&mut self) -> Vec<CrashPoint> {
        std::mem::take(&mut self.crash_points)
    }

    /// Runs a program.
    pub fn run(&mut self, program: &[Op]) -> Outcome<()> {
        for (index, op) in program.iter().enumerate() {
            self.step(op).map_err(|failure| at(failure, index, op))?;
        }
        Ok(())
    }

    /// Runs one operation and compares its answers. What a program takes for granted and is not
    /// there (after a fault or a crash) makes the operation do nothing.
    pub fn step(&mut self, op: &Op) -> Outcome<()> {
        if !self.possible(op) {
            return Ok(());
        }
        if self.trace {
            println!("{} {op}", self.fs.changes());
        }
        let low = self.model.durable();
        let result = self.execute(op);
        if let Some(commit) = op.commit() {
            match &result {
                Ok(()) => self.model.commit(&commit),
                Err(_) => self.doubt = Some(commit),
            }
        }
        if result.is_ok() && self.makes_durable(op) {
            self.model.synced();
        }
        let high = self.model.now();
        let images = self.fs.take_images();
        self.crash_points.extend(images.into_iter().map(|image| CrashPoint { image, low, high }));
        result
    }

    fn possible(&self, op: &Op) -> bool {
        let has = |tree: &u8| self.trees.contains_key(tree);
        match op {
            Op::Write(changes, _) | Op::Transaction(changes, ..) => {
                changes.iter().all(|change| match change {
                    Change::Put(tree, ..) | Change::Delete(tree, _) => has(tree),
                    Change::DeleteRange(tree, ..) => has(tree),
                })
            }
            Op::Create(tree) => !has(tree),
            Op::PutReader(tree, ..)
            | Op::Ingest(tree, ..)
            | Op::Get(tree, ..)
            | Op::MultiGet(tree, _)
            | Op::Scan(tree, ..)
            | Op::OpenScan(_, tree, ..)
            | Op::Prefix(tree, _)
            | Op::Drop(tree)
            | Op::Renew(tree)
            | Op::Flush(Some(tree))
            | Op::Compact(Some(tree))
            | Op::CompactRange(tree, ..) => has(tree),
            _ => true,
        }
    }

    fn makes_durable(&self, op: &Op) -> bool {
        match op {
            Op::Write(_, sync) => *sync || self.config.sync == SyncPolicy::Always,
            // What was spilled is in tables.
            Op::Transaction(_, _, sync) => {
                *sync || self.spilled || self.config.sync == SyncPolicy::Always
            }
            Op::PutReader(..) => self.config.sync == SyncPolicy::Always,
            Op::Ingest(..) | Op::Create(_) | Op::Drop(_) | Op::Renew(_) => true,
            Op::Flush(None) | Op::Sync | Op::Reopen => true,
            _ => false,
        }
    }

    fn execute(&mut self, op: &Op) -> Outcome<()> {
        match op {
            Op::Write(changes, sync) => self.write(changes, *sync),
            Op::Transaction(changes, memory_bytes, sync) => {
                self.transaction(changes, *memory_bytes, *sync)
            }
            Op::PutReader(tree, key, value) => {
                let mut bytes = &value.fill()[..];
                let options = WriteOptions { sync: false };
                Ok(self.trees[tree].put_reader(&data::key(*key), &mut bytes, options)?)
            }
            Op::Ingest(tree, keys, first) => self.ingest(*tree, keys, *first),
            Op::Get(tree, key, slot) => self.get(*tree, *key, *slot),
            Op::MultiGet(tree, keys) => self.multi_get(*tree, keys),
            Op::Scan(tree, from, to, slot, moves) => self.scan(*tree, *from, *to, *slot, moves),
            Op::OpenScan(slot, tree, from, to) => self.open_scan(*slot, *tree, *from, *to),
            Op::MoveScan(slot, moves) => self.move_scan(*slot, moves),
            Op::Prefix(tree, key) => self.prefix(*tree, *key),
            Op::Check => self.check(),
            Op::Snapshot(slot) => {
                let snapshot = self.db()?.snapshot();
                self.snapshots.insert(*slot, (snapshot, self.model.now()));
                Ok(())
            }
            Op::Release(slot) => {
                self.snapshots.remove(slot);
                Ok(())
            }
            Op::Create(tree) => {
                let name = tree_name(*tree);
                let handle = self.db()?.create_tree(&name, self.config.tree.clone())?;
                self.trees.insert(*tree, handle);
                Ok(())
            }
            Op::Drop(tree) => {
                self.db()?.drop_tree(&tree_name(*tree))?;
                self.trees.remove(tree);
                Ok(())
            }
            Op::Renew(tree) => {
                let name = tree_name(*tree);
                let create = [(&*name, self.config.tree.clone())];
                self.trees.extend(
                    self.db()?.change_trees(&create, &[&name])?.pop().map(|handle| (*tree, handle)),
                );
                Ok(())
            }
            Op::Flush(None) => Ok(self.db()?.flush()?),
            Op::Flush(Some(tree)) => Ok(self.trees[tree].flush()?),
            Op::Compact(None) => Ok(self.db()?.compact()?),
            Op::Compact(Some(tree)) => Ok(self.trees[tree].compact()?),
            Op::CompactRange(tree, from, to) => {
                Ok(self.trees[tree].compact_range(&data::key(*from), Some(&data::key(*to)))?)
            }
            Op::Sync => Ok(self.db()?.sync()?),
            Op::Step(count) => {
                for _ in 0..*count {
                    self.db()?.step()?;
                }
                Ok(())
            }
            Op::Idle => self.idle(),
            Op::Reopen => self.reopen(),
            Op::Checkpoint => self.checkpoint(),
            Op::Verify => self.verify(),
        }
    }

    fn write(&mut self, changes: &[Change], sync: bool) -> Outcome<()> {
        let mut batch = Batch::new();
        for change in changes {
            match change {
                Change::Put(tree, key, value) => {
                    batch.put(&self.trees[tree], &data::key(*key), &value.fill());
                }
                Change::Delete(tree, key) => batch.delete(&self.trees[tree], &data::key(*key)),
                Change::DeleteRange(tree, from, to) => {
                    batch.delete_range(&self.trees[tree], &data::key(*from), &data::key(*to));
                }
            }
        }
        Ok(self.db()?.write(&batch, WriteOptions { sync })?)
    }

    /// Writes by a transaction; after every few changes it writes as much that it undoes.
    fn transaction(&mut self, changes: &[Change], memory_bytes: u32, sync: bool) -> Outcome<()> {
        let memory_bytes = memory_bytes.into();
        let options = TransactionOptions { memory_bytes, ..TransactionOptions::default() };
        let mut txn = self.db()?.begin(options)?;
        for part in changes.chunks(5) {
            for change in part {
                self.change(&mut txn, change)?;
            }
            let savepoint = txn.savepoint();
            for change in part.iter().rev() {
                let (Change::Put(tree, key, _)
                | Change::Delete(tree, key)
                | Change::DeleteRange(tree, key, _)) = change;
                match change {
                    Change::Put(..) => txn.delete(&self.trees[tree], &data::key(*key))?,
                    _ => txn.put(&self.trees[tree], &data::key(*key), b"undone")?,
                }
            }
            txn.rollback_to(savepoint)?;
        }
        self.spilled = txn.spilled_bytes() > 0;
        Ok(txn.commit(WriteOptions { sync })?)
    }

    fn change(&self, txn: &mut Transaction, change: &Change) -> Outcome<()> {
        let done = match change {
            Change::Put(tree, key, value) => {
                txn.put(&self.trees[tree], &data::key(*key), &value.fill())
            }
            Change::Delete(tree, key) => txn.delete(&self.trees[tree], &data::key(*key)),
            Change::DeleteRange(tree, from, to) => {
                txn.delete_range(&self.trees[tree], &data::key(*from), &data::key(*to))
            }
        };
        Ok(done?)
    }

    fn ingest(&mut self, tree: u8, keys: &[u32], first: Value) -> Outcome<()> {
        let mut ingest = self.trees[&tree].ingest()?;
        for (key, value) in ingested(keys, first) {
            ingest.add(&data::key(key), &value.fill())?;
        }
        let count = ingest.finish()?;
        if count != keys.len() as u64 {
            return wrong(format!("{count} entries ingested of {}", keys.len()));
        }
        Ok(())
    }

    /// Runs all background work.
    pub fn idle(&mut self) -> Outcome<()> {
        let mut steps = 0;
        while self.db()?.step()? {
            steps += 1;
            if steps == STEPS_MAX {
                return wrong("the background work does not end");
            }
        }
        Ok(self.db()?.wait_idle()?)
    }

    /// Closes the database.
    pub fn close(&mut self) -> Outcome<()> {
        self.snapshots.clear();
        self.scans.clear();
        self.trees.clear();
        match self.db.take() {
            Some(db) => Ok(db.close()?),
            None => Ok(()),
        }
    }

    /// Closes and opens the database.
    pub fn reopen(&mut self) -> Outcome<()> {
        self.close()?;
        self.open()
    }

    fn verify(&mut self) -> Outcome<()> {
        match self.db()?.verify(&mut |_| {})?.damage.first() {
            Some(damage) => wrong(format!("verify found damage: {damage}")),
            None => Ok(()),
        }
    }

    fn checkpoint(&mut self) -> Outcome<()> {
        // A name that no crash or fault has left half a checkpoint under.
        let path = loop {
            self.checkpoints += 1;
            let path = format!("/checkpoint{}", self.checkpoints);
            if !shale::fs::Fs::exists(&self.fs, Path::new(&path))? {
                break path;
            }
        };
        self.db()?.checkpoint(Path::new(&path))?;
        // A checkpoint that was reported as made survives a crash, whatever else does.
        let disk = self.fs.crash_clone(0, shale::fs::mem::CrashMode::Lost);
        let copy = open_db(&disk, &path, &self.config)?;
        if state_hash(&copy)? != self.model.hash(self.model.now()) {
            return wrong("the checkpoint is not equal to the database");
        }
        drop(copy);
        for (file, _) in self.fs.files() {
            if file.starts_with(&path) {
                shale::fs::Fs::remove(&self.fs, &file)?;
            }
        }
        Ok(shale::fs::Fs::remove_dir(&self.fs, Path::new(&path))?)
    }
}

fn at(failure: Failure, index: usize, op: &Op) -> Failure {
    match failure {
        Failure::Wrong(what) => Failure::Wrong(format!("at operation {index} `{op}`: {what}")),
        engine => engine,
    }
}

/// What is different from the two ends of the moments allowed, for a message.
fn differences(db: &Db, model: &Model, low: Moment, high: Moment) -> Outcome<String> {
    let mut lines = Vec::new();
    let names = db.tree_names();
    for moment in [low, high] {
        let right: Vec<String> = model.trees(moment).into_iter().map(tree_name).collect();
        if names != right {
            lines.push(format!("trees {names:?}, at moment {moment} {right:?}"));
        }
        for tree in model.trees(moment) {
            let Ok(handle) = db.tree(&tree_name(tree)) else { continue };
            let mut found = BTreeMap::new();
            let mut scan = handle.scan_with(ScanOptions::default())?;
            scan.seek_first()?;
            while scan.valid() {
                found.insert(scan.key().to_vec(), scan.value()?.to_vec());
                scan.next()?;
            }
            let right: BTreeMap<Vec<u8>, Value> = model.entries(tree, moment).into_iter().collect();
            for key in 0..data::KEYS {
                let bytes = data::key(key);
                let (found, right) = (found.get(&bytes), right.get(&bytes));
                if found.cloned() != right.map(|value| value.fill()) {
                    let found = found.map(|value| value.len());
                    let right = right.map(Value::to_string);
                    lines.push(format!(
                        "tree {tree} key {key}: {found:?} bytes, at moment {moment} {right:?}"
                    ));
                }
            }
        }
    }
    lines.truncate(20);
    Ok(lines.join("; "))
}
