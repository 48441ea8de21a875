//! One database on the simulated disk, and the model beside it: made, opened, left as a crash
//! leaves it, recovered.
//!
//! Background work is stepped by the program, so that one thread and one seed decide everything.

use crate::data::{self, Value};
use crate::model::{Commit, Model, Moment, tree_name};
use crate::outcome::{Failure, Outcome, wrong};
use crate::scan::OpenScan;
use shaledb::db::{Background, OpenOptions};
use shaledb::fs::Env;
use shaledb::fs::mem::{Image, MemClock, MemFs};
use shaledb::{Config, Db, Error, ScanOptions, Snapshot, Tree};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Where the database is on its disk.
pub const PATH: &str = "/db";

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
    pub(crate) config: Config,
    clock: Arc<MemClock>,
    db: Option<Db>,
    pub(crate) trees: BTreeMap<u8, Tree>,
    pub(crate) snapshots: BTreeMap<u8, (Snapshot, Moment)>,
    pub(crate) scans: BTreeMap<u8, OpenScan>,
    pub(crate) crash_points: Vec<CrashPoint>,
    pub(crate) checkpoints: u32,
    /// Whether the last transaction wrote to runs of its own.
    pub(crate) spilled: bool,
    /// Whether operations are printed as they are run: `SHALE_TRACE` is set.
    pub(crate) trace: bool,
}

/// More steps of background work than any program can owe.
const STEPS_MAX: u32 = 100_000;

/// Opens the database of a disk with stepped background work.
pub fn open_db(fs: &MemFs, path: &str, config: &Config) -> shaledb::Result<Db> {
    open_at(fs, path, config, Arc::new(MemClock::new()))
}

fn open_at(fs: &MemFs, path: &str, config: &Config, clock: Arc<MemClock>) -> shaledb::Result<Db> {
    let env = Env { fs: Arc::new(fs.clone()), clock };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    Db::open_in(path, config.clone(), options)
}

/// The hash of all that a database holds, as [`Model::hash`] counts it.
pub fn state_hash(db: &Db) -> shaledb::Result<u64> {
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
        let left_of_runs = |fs: &MemFs| match fs.files().into_iter().find(|(path, _)| is_run(path))
        {
            Some((path, _)) => wrong(format!("{} is left of a transaction", path.display())),
            None => Ok(()),
        };
        // What is prepared has its runs until it is decided.
        if db.prepared()?.is_empty() {
            left_of_runs(&fs)?;
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
        world.roll_back_prepared()?;
        left_of_runs(&world.fs)?;
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

    /// Ends all scans.
    pub fn end_scans(&mut self) {
        self.scans.clear();
    }

    /// Whether the database is open: it is not after a failed
    /// [`Op::Reopen`](crate::ops::Op::Reopen).
    pub fn is_open(&self) -> bool {
        self.db.is_some()
    }

    /// Lets so much time pass that everything that waits to be tried again is due.
    pub fn wait(&self) {
        self.clock.advance(60_000_000_000);
    }

    /// Checks that the files of the database take no more than they may, and no more than the
    /// engine says.
    pub fn keeps_limit(&self) -> Outcome<()> {
        let limit = self.config.space_limit;
        let Some(db) = self.db.as_ref().filter(|_| limit > 0) else { return Ok(()) };
        let files = self.fs.files();
        let found: u64 =
            files.iter().filter(|(path, _)| path.starts_with(PATH)).map(|(_, bytes)| bytes).sum();
        let used = db.stats().space_used;
        if found > limit || found > used {
            return wrong(format!("the files take {found} bytes of {limit}, counted are {used}"));
        }
        Ok(())
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
        self.open()?;
        self.roll_back_prepared()
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
