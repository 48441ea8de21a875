//! Checkpoints on a failing or crashing disk: under its name one is complete or not there, and a
//! second try always works.

use crate::Case;
use shaledb::db::{Background, OpenOptions};
use shaledb::fs::mem::{Call, CrashMode, MemClock, MemFs};
use shaledb::fs::{Env, Fs};
use shaledb::{Config, Db, Error};
use shaledb_sim::fault::faults_of;
use shaledb_sim::ops::Generator;
use shaledb_sim::outcome::{Failure, Outcome};
use shaledb_sim::settings::{exhaustive, seeds, small};
use shaledb_sim::world::{PATH, World, open_db, state_hash};
use std::path::Path;
use std::sync::Arc;

/// Where the checkpoint is made: two directories above it are made for it.
const TO: &str = "/backups/today/copy";
const BESIDE: &str = "/backups/today/copy.unfinished";

/// A disk with a database on it, closed.
struct Start {
    fs: MemFs,
    config: Config,
    hash: u64,
}

impl Start {
    /// What a program leaves, with something in the log.
    fn new(seed: u64) -> Outcome<Start> {
        let config = small();
        let mut world = World::create(&config)?;
        world.run(&Generator::new(seed).program(60))?;
        let hash = state_hash(world.db()?)?;
        world.close()?;
        Ok(Start { fs: world.fs.clone(), config, hash })
    }

    /// The database on a copy of the disk.
    fn open(&self) -> Outcome<(MemFs, Db)> {
        let fs = self.fs.crash_clone(0, CrashMode::Kept);
        let db = open_db(&fs, PATH, &self.config)?;
        Ok((fs, db))
    }

    /// Whether the database at `path` is equal to the one begun with.
    fn same(&self, fs: &MemFs, path: &str) -> Outcome<()> {
        let db = open_db(fs, path, &self.config)?;
        if state_hash(&db)? != self.hash {
            return Err(Failure::Wrong(format!("{path} is not equal to the database")));
        }
        match db.verify(&mut |_| {})?.damage.first() {
            Some(damage) => Err(Failure::Wrong(format!("{path}: {damage}"))),
            None => Ok(()),
        }
    }

    /// What may be there after a failure or crash; then makes the checkpoint if it is not there.
    fn check(&self, fs: &MemFs) -> Outcome<()> {
        self.same(fs, PATH)?;
        if fs.exists(Path::new(BESIDE))? {
            let refused = open_db(fs, BESIDE, &self.config);
            let refusal = refused.map(drop).unwrap_err().to_string();
            assert!(refusal.contains("make `copy` again"), "{refusal}");
        }
        if !fs.exists(Path::new(TO))? {
            open_db(fs, PATH, &self.config)?.checkpoint(TO)?;
            assert!(!fs.exists(Path::new(BESIDE))?);
            // What was reported as made survives whatever else does.
            self.same(&fs.crash_clone(0, CrashMode::Lost), TO)?;
        }
        self.same(fs, TO)
    }
}

#[test]
fn a_failing_call_leaves_no_half_checkpoint() {
    let (mut failed, mut made) = (0, 0);
    for seed in seeds(2) {
        let start = Start::new(seed).unwrap_or_else(|failure| panic!("{failure}"));
        let (fs, db) = start.open().unwrap_or_else(|failure| panic!("{failure}"));
        let before = fs.counts();
        db.checkpoint(TO).unwrap();
        for call in Call::ALL {
            for nth in 1..=fs.counts().of(call) - before.of(call) {
                for &fault in faults_of(call) {
                    for once in [true, false] {
                        let label = format!("SHALE_SEED={seed}, {call:?} {nth} {fault:?} {once}");
                        let _case = Case::new(label.clone());
                        let fail = |fs: &MemFs| fs.fail(call, nth, fault, once);
                        match try_one(&start, fail) {
                            Ok(true) => made += 1,
                            Ok(false) => failed += 1,
                            Err(failure) => panic!("{label}: {failure}"),
                        }
                    }
                }
            }
        }
    }
    assert!(failed > 50, "{failed} failed, {made} were made");
}

/// Makes a checkpoint with a fault set; answers whether it was made all the same.
fn try_one(start: &Start, fail: impl Fn(&MemFs)) -> Outcome<bool> {
    let (fs, db) = start.open()?;
    fail(&fs);
    let outcome = db.checkpoint(TO);
    fs.clear_faults();
    if let Err(error) = &outcome
        && error.is_corruption()
    {
        return Err(Failure::Wrong(format!("a fault is no damage: {error}")));
    }
    // What is there when the machine stops now, and what a user finds who tries again.
    for (seed, mode) in [(1, CrashMode::Torn), (2, CrashMode::Torn), (0, CrashMode::Lost)] {
        start.check(&fs.crash_clone(seed, mode))?;
    }
    drop(db);
    start.check(&fs)?;
    Ok(outcome.is_ok())
}

#[test]
fn a_crash_leaves_no_half_checkpoint() {
    let (mut crashes, mut half, mut whole) = (0, 0, 0);
    for seed in seeds(3) {
        let start = Start::new(seed).unwrap_or_else(|failure| panic!("{failure}"));
        let (fs, db) = start.open().unwrap_or_else(|failure| panic!("{failure}"));
        fs.keep_images(Some(1));
        db.checkpoint(TO).unwrap();
        for image in fs.take_images() {
            let torn = if exhaustive() { 20 } else { 4 };
            let mut disks: Vec<MemFs> = (0..torn)
                .map(|torn| image.fs.crash_clone(torn ^ (seed << 8), CrashMode::Torn))
                .collect();
            disks.push(image.fs.crash_clone(0, CrashMode::Lost));
            disks.push(image.fs.fork());
            for (way, disk) in disks.into_iter().enumerate() {
                let label = format!("SHALE_SEED={seed}, before change {}, {way}", image.changes);
                let _case = Case::new(label.clone());
                crashes += 1;
                half += u32::from(disk.exists(Path::new(BESIDE)).unwrap());
                whole += u32::from(disk.exists(Path::new(TO)).unwrap());
                start.check(&disk).unwrap_or_else(|failure| panic!("{label}: {failure}"));
            }
        }
    }
    assert!(half > 20 && whole > 0 && crashes > half + whole, "{crashes} {half} {whole}");
}

#[test]
fn an_unfinished_checkpoint_is_replaced_but_nothing_else_is() {
    let start = Start::new(1).unwrap_or_else(|failure| panic!("{failure}"));
    let (fs, db) = start.open().unwrap_or_else(|failure| panic!("{failure}"));
    fs.create_dir_all(Path::new(BESIDE)).unwrap();
    fs.create(Path::new("/backups/today/copy.unfinished/notes.txt")).unwrap();
    let refusal = db.checkpoint(TO).unwrap_err().to_string();
    assert!(refusal.contains("notes.txt") && refusal.contains("another name"), "{refusal}");
    assert!(fs.exists(Path::new("/backups/today/copy.unfinished/notes.txt")).unwrap());
    assert!(!fs.exists(Path::new(TO)).unwrap());

    // Somebody else is making it.
    db.checkpoint("/other/copy").unwrap();
    fs.create_dir_all(Path::new("/other/second.unfinished")).unwrap();
    let lock = fs.lock(Path::new("/other/second.unfinished/LOCK")).unwrap();
    assert!(matches!(db.checkpoint("/other/second"), Err(Error::Locked { .. })));
    drop(lock);
    db.checkpoint("/other/second").unwrap();
    assert!(matches!(db.checkpoint("/other/x.unfinished"), Err(Error::InvalidArgument(_))));
    assert!(matches!(db.checkpoint("/"), Err(Error::InvalidArgument(_))));

    // An empty directory of the name is taken; one that is not is refused, and stays.
    fs.create_dir_all(Path::new("/other/empty")).unwrap();
    db.checkpoint("/other/empty").unwrap();
    assert!(db.checkpoint("/other/empty").is_err());
    for path in ["/other/copy", "/other/second", "/other/empty"] {
        start.same(&fs, path).unwrap_or_else(|failure| panic!("{path}: {failure}"));
    }
}

#[test]
fn directories_made_for_a_new_database_are_durable() {
    let fs = MemFs::new();
    let open = |fs: &MemFs| {
        let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
        let options = OpenOptions { env, background: Background::Stepped, read_only: false };
        Db::open_in("/a/b/c/db", small(), options)
    };
    // A try that fails, and one that is killed right after it has made them.
    fs.fail(Call::SyncDir, 2, shaledb::fs::mem::Fault::Io, true);
    assert!(open(&fs).is_err());
    assert!(!fs.exists(Path::new("/a")).unwrap());
    let killed = fs.fork();
    killed.create_dir_all(Path::new("/a/b/c/db")).unwrap();
    for fs in [fs, killed] {
        open(&fs).unwrap().tree_or_create("t").unwrap();
        let disk = fs.crash_clone(0, CrashMode::Lost);
        assert_eq!(open(&disk).unwrap().tree_names(), ["t"]);
    }
}
