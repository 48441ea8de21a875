//! Followers of a database that is written meanwhile: what they show is what the database was at
//! one moment, never before what it was when they looked, and never before what they have shown.

use crate::Case;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shaledb::fs::mem::{Call, CrashMode, Fault, MemClock, MemFs};
use shaledb::fs::{DirEntry, Env, Fs, Lock, ReadFile, WriteFile};
use shaledb::{Config, Db, ScanOptions, Snapshot, WriteOptions};
use shaledb_sim::crash::record;
use shaledb_sim::model::{Model, Moment, tree_name};
use shaledb_sim::ops::Generator;
use shaledb_sim::settings::{seeds, small};
use shaledb_sim::world::{PATH, World, state_hash};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Something that happens before a call to the disk.
type Hook = Box<dyn FnMut() + Send>;

/// A disk on which something happens before every call that reads.
#[derive(Clone)]
struct Hooked {
    fs: MemFs,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl Hooked {
    fn new(fs: MemFs) -> Hooked {
        Hooked { fs, hook: Arc::default() }
    }

    fn set(&self, hook: Option<Hook>) {
        *self.hook.lock().unwrap() = hook;
    }

    /// Not while it runs: what it does may read, too.
    fn happen(&self) {
        let hook = self.hook.lock().unwrap().take();
        if let Some(mut hook) = hook {
            // Another process is no thread of this one, and none that holds what this one does.
            let panicked = std::thread::scope(|scope| scope.spawn(&mut hook).join());
            panicked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.set(Some(hook));
        }
    }
}

/// A follower changes nothing.
fn refused<T>() -> shaledb::Result<T> {
    panic!("a follower tried to change the disk")
}

struct HookedFile {
    file: Arc<dyn ReadFile>,
    fs: Hooked,
}

impl ReadFile for HookedFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> shaledb::Result<()> {
        self.fs.happen();
        self.file.read_at(offset, buf)
    }
    fn len(&self) -> shaledb::Result<u64> {
        self.fs.happen();
        self.file.len()
    }
    fn prefetch(&self, offset: u64, bytes: u64) {
        self.file.prefetch(offset, bytes);
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
}

impl Fs for Hooked {
    fn create(&self, _: &Path) -> shaledb::Result<Box<dyn WriteFile>> {
        refused()
    }
    fn append(&self, _: &Path) -> shaledb::Result<Box<dyn WriteFile>> {
        refused()
    }
    fn open(&self, path: &Path) -> shaledb::Result<Arc<dyn ReadFile>> {
        self.happen();
        Ok(Arc::new(HookedFile { file: self.fs.open(path)?, fs: self.clone() }))
    }
    fn rename(&self, _: &Path, _: &Path) -> shaledb::Result<()> {
        refused()
    }
    fn remove(&self, _: &Path) -> shaledb::Result<()> {
        refused()
    }
    fn remove_dir(&self, _: &Path) -> shaledb::Result<()> {
        refused()
    }
    fn link(&self, _: &Path, _: &Path) -> shaledb::Result<()> {
        refused()
    }
    fn list(&self, dir: &Path) -> shaledb::Result<Vec<DirEntry>> {
        self.happen();
        self.fs.list(dir)
    }
    fn exists(&self, path: &Path) -> shaledb::Result<bool> {
        self.happen();
        self.fs.exists(path)
    }
    fn create_dir_all(&self, _: &Path) -> shaledb::Result<()> {
        refused()
    }
    fn sync_dir(&self, _: &Path) -> shaledb::Result<()> {
        refused()
    }
    fn lock(&self, _: &Path) -> shaledb::Result<Box<dyn Lock>> {
        refused()
    }
    fn free_bytes(&self, dir: &Path) -> shaledb::Result<u64> {
        self.fs.free_bytes(dir)
    }
    fn allocated_bytes(&self, path: &Path) -> shaledb::Result<u64> {
        self.fs.allocated_bytes(path)
    }
}

/// A follower, and the moment that it shows.
struct Watch {
    db: Db,
    hooked: Hooked,
    moment: Moment,
    seq: u64,
    kept: Vec<(Snapshot, Moment)>,
}

impl Watch {
    fn open(fs: &MemFs, config: &Config) -> Watch {
        let hooked = Hooked::new(fs.clone());
        let env = Env { fs: Arc::new(hooked.clone()), clock: Arc::new(MemClock::new()) };
        let db = Db::open_follower_in(PATH, config.clone(), env).unwrap();
        Watch { db, hooked, moment: 0, seq: 0, kept: Vec::new() }
    }

    fn refresh(&mut self) {
        let seq = self.db.refresh().unwrap();
        assert!(seq >= self.seq, "from {} back to {seq}", self.seq);
        self.seq = seq;
    }

    /// What it shows must be a moment from `low` to `high`.
    fn check(&mut self, model: &Model, low: Moment, high: Moment) {
        let hash = state_hash(&self.db).unwrap();
        let low = low.max(self.moment);
        let found = model.find(hash, low, high);
        self.moment = found.unwrap_or_else(|| {
            let earlier = model.find(hash, 0, high);
            panic!("no moment from {low} to {high} is shown, but {earlier:?}")
        });
    }

    /// What was seen at earlier moments is seen there now.
    fn check_kept(&self, model: &Model) {
        for (snapshot, moment) in &self.kept {
            for tree in model.trees(model.now()) {
                let Ok(handle) = self.db.tree(&tree_name(tree)) else { continue };
                let options = ScanOptions { snapshot: Some(snapshot), ..ScanOptions::default() };
                let rows: Vec<_> =
                    handle.scan_with(options).unwrap().map(|row| row.unwrap()).collect();
                let right = model.snapshot_entries(tree, *moment).into_iter();
                let right: Vec<_> = right.map(|(key, value)| (key, value.fill())).collect();
                assert!(rows == right, "tree {tree} at moment {moment} has {} rows", rows.len());
            }
        }
    }
}

fn verify(db: &Db) {
    let report = db.verify(&mut |_| ()).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
}

/// The writer rests while the follower looks: then it shows all that there is.
#[test]
fn a_follower_shows_all_that_was_committed_and_old_snapshots_stay() {
    for seed in seeds(12) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut world = World::create(&small()).unwrap_or_else(|failure| panic!("{failure}"));
        let mut watch = Watch::open(&world.fs, &small());
        for op in Generator::new(seed).program(150) {
            world.step(&op).unwrap_or_else(|failure| panic!("{failure}"));
            if random.random_range(0..4) != 0 {
                continue;
            }
            watch.refresh();
            let now = world.model.now();
            watch.check(&world.model, now, now);
            match random.random_range(0..8) {
                0 => verify(&watch.db),
                1 => watch.kept.push((watch.db.snapshot(), now)),
                2 => watch.kept.truncate(2),
                3 => watch.check_kept(&world.model),
                _ => {}
            }
        }
        watch.check_kept(&world.model);
    }
}

/// The writer goes on between any two calls that the follower makes.
#[test]
fn a_follower_shows_one_moment_whatever_the_writer_does_meanwhile() {
    for seed in seeds(16) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let world = World::create(&small()).unwrap_or_else(|failure| panic!("{failure}"));
        let fs = world.fs.clone();
        let world = Arc::new(Mutex::new(world));
        let program = Generator::new(seed).program(250);
        let ops = Arc::new(Mutex::new(program.into_iter()));
        let mut watch = Watch::open(&fs, &small());
        loop {
            let low = world.lock().unwrap().model.now();
            let every = random.random_range(1..12u32);
            let (mut count, mut left) = (0, random.random_range(0..6u32));
            let (writer, program) = (world.clone(), ops.clone());
            watch.hooked.set(Some(Box::new(move || {
                count += 1;
                if count % every == 0 && left > 0 {
                    left -= 1;
                    if let Some(op) = program.lock().unwrap().next() {
                        let done = writer.lock().unwrap().step(&op);
                        done.unwrap_or_else(|failure| panic!("{failure}"));
                    }
                }
            })));
            watch.refresh();
            if random.random_range(0..6) == 0 {
                verify(&watch.db);
            }
            watch.hooked.set(None);
            let held = lock(&world);
            watch.check(&held.model, low, held.model.now());
            watch.check_kept(&held.model);
            if random.random_range(0..4) == 0 && watch.kept.len() < 3 {
                watch.kept.push((watch.db.snapshot(), watch.moment));
            }
            drop(held);
            // Also when nothing happens meanwhile.
            let next = ops.lock().unwrap().next();
            let Some(op) = next else { break };
            let mut world = lock(&world);
            world.step(&op).unwrap_or_else(|failure| panic!("{failure}"));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

/// Between any two changes that the writer makes to the disk, and after it was killed or the power
/// went there, a follower can be opened, and so can the database for reading only.
#[test]
fn a_follower_can_be_opened_at_any_moment_and_after_any_crash() {
    for seed in seeds(4) {
        let program = Generator::new(seed).program(60);
        let recorded = record(&program, &small(), 7).unwrap_or_else(|failure| panic!("{failure}"));
        for point in &recorded.points {
            let changes = point.image.changes;
            let _case = Case::new(format!("SHALE_SEED={seed}, change {changes}"));
            let fs = &point.image.fs;
            let disks = [
                fs.fork(),
                fs.crash_clone(seed ^ changes, CrashMode::Lost),
                fs.crash_clone(seed ^ changes, CrashMode::Torn),
            ];
            for disk in disks {
                let mut watch = match World::recover(
                    disk.fork(),
                    &small(),
                    &recorded.model,
                    point.low,
                    point.high,
                ) {
                    Ok(_) if disk.exists(&Path::new(PATH).join("CURRENT")).unwrap() => {
                        Watch::open(&disk, &small())
                    }
                    // Before there was a database.
                    Ok(_) => continue,
                    Err(failure) => panic!("{failure}"),
                };
                watch.check(&recorded.model, point.low, point.high);
                let left = disk.changes();
                let clock = Arc::new(MemClock::new());
                let env = Env { fs: Arc::new(disk.clone()), clock };
                let options = shaledb::OpenOptions {
                    env,
                    read_only: true,
                    ..shaledb::OpenOptions::default()
                };
                let db = Db::open_in(PATH, small(), options).unwrap();
                let same = state_hash(&db).unwrap() == recorded.model.hash(watch.moment);
                assert!(same, "a follower and one who reads only see different things");
                assert_eq!(disk.changes(), left, "reading has changed something");
            }
        }
    }
}

/// The writer is killed and another goes on; the follower goes on, too.
#[test]
fn a_follower_goes_on_with_the_next_writer() {
    for seed in seeds(10) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let mut world = World::create(&small()).unwrap_or_else(|failure| panic!("{failure}"));
        let mut trees = Default::default();
        let mut watch: Option<Watch> = None;
        for round in 0..5u64 {
            let mut generator = Generator::resuming(seed ^ round << 32, trees);
            for op in generator.program(40) {
                world.step(&op).unwrap_or_else(|failure| panic!("{failure}"));
            }
            let watch = watch.get_or_insert_with(|| Watch::open(&world.fs, &small()));
            watch.refresh();
            let now = world.model.now();
            watch.check(&world.model, now, now);
            // Killed: all that it wrote is there, and another takes its place on the same disk.
            let (fs, model) = (world.fs.clone(), world.model.clone());
            world.abandon();
            world = World::recover(fs, &small(), &model, now, now)
                .unwrap_or_else(|failure| panic!("{failure}"));
            watch.refresh();
            watch.check(&world.model, now, now);
            trees = world.model.trees(now);
        }
    }
}

/// A read that fails leaves what was seen, and the next refresh makes up for it.
#[test]
fn a_refresh_that_fails_changes_nothing() {
    let mut failed = 0;
    for seed in seeds(10) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut world = World::create(&small()).unwrap_or_else(|failure| panic!("{failure}"));
        let mut watch = Watch::open(&world.fs, &small());
        for op in Generator::new(seed).program(120) {
            world.step(&op).unwrap_or_else(|failure| panic!("{failure}"));
            if random.random_range(0..3) != 0 {
                continue;
            }
            let call = [Call::Read, Call::Open, Call::Stat, Call::List][random.random_range(0..4)];
            world.fs.fail(call, random.random_range(1..12), Fault::Io, true);
            let refreshed = watch.db.refresh();
            world.fs.clear_faults();
            if refreshed.is_err() {
                failed += 1;
                watch.check(&world.model, watch.moment, watch.moment);
                // Who begins anew does not find the number of a load that was compacted since.
                watch.seq = 0;
            }
            watch.refresh();
            let now = world.model.now();
            watch.check(&world.model, now, now);
        }
    }
    assert!(failed > 50, "only {failed} refreshes failed");
}

/// What is prepared is not shown; a bulk load below newer rows of the log is.
#[test]
fn prepared_transactions_and_bulk_loads() {
    let fs = MemFs::new();
    let db = shaledb_sim::world::open_db(&fs, PATH, &small()).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    tree.put(b"a", b"old").unwrap();
    tree.put(b"z", b"1").unwrap();
    let watch = Watch::open(&fs, &small());
    let seen = watch.db.tree("t").unwrap();
    // The load flushes `a`, goes below what comes after it, and replaces `a`.
    let mut load = tree.ingest().unwrap();
    load.add(b"a", b"loaded").unwrap();
    load.finish().unwrap();
    tree.put(b"z", b"2").unwrap();
    assert_eq!(seen.get(b"a").unwrap().unwrap(), b"old");
    watch.db.refresh().unwrap();
    assert_eq!(seen.get(b"a").unwrap().unwrap(), b"loaded");
    assert_eq!(seen.get(b"z").unwrap().unwrap(), b"2");
    for (memory_bytes, xid) in [(0, b"small"), (100, b"large")] {
        let options = shaledb::TransactionOptions { memory_bytes, ..Default::default() };
        let mut txn = db.begin(options).unwrap();
        for n in 0..20u32 {
            txn.put(&tree, &[&xid[..], &n.to_be_bytes()].concat(), b"more than it may").unwrap();
        }
        let prepared = txn.prepare(xid).unwrap();
        watch.db.refresh().unwrap();
        assert_eq!(seen.scan_prefix(xid).unwrap().count(), 0, "it is not decided");
        prepared.commit(WriteOptions::SYNC).unwrap();
        assert_eq!(seen.scan_prefix(xid).unwrap().count(), 0, "it has not looked");
        watch.db.refresh().unwrap();
        assert_eq!(seen.scan_prefix(xid).unwrap().count(), 20);
    }
    let mut txn = db.begin(shaledb::TransactionOptions::default()).unwrap();
    txn.put(&tree, b"undone", b"").unwrap();
    txn.prepare(b"undone").unwrap().rollback(WriteOptions::SYNC).unwrap();
    watch.db.refresh().unwrap();
    assert!(!seen.contains(b"undone").unwrap());
    assert!(watch.db.begin(Default::default()).unwrap().put(&seen, b"a", b"1").is_err());
    assert!(matches!(seen.put(b"a", b"1"), Err(shaledb::Error::ReadOnly)));
    db.drop_tree("t").unwrap();
    assert!(seen.contains(b"a").unwrap(), "its files are held");
    watch.db.refresh().unwrap();
    assert!(matches!(seen.get(b"a"), Err(shaledb::Error::NoSuchTree(_))));
}

/// A decision names no tree: what it commits may be of one that the follower does not know.
#[test]
fn prepared_writes_to_a_tree_that_was_made_meanwhile() {
    let fs = MemFs::new();
    let db = shaledb_sim::world::open_db(&fs, PATH, &small()).unwrap();
    let old = db.tree_or_create("old").unwrap();
    let watch = Watch::open(&fs, &small());
    for name in ["t", "u"] {
        watch.db.refresh().unwrap();
        let new = db.tree_or_create(name).unwrap();
        let mut txn = db.begin(shaledb::TransactionOptions::default()).unwrap();
        txn.put(&old, name.as_bytes(), b"1").unwrap();
        txn.put(&new, name.as_bytes(), b"1").unwrap();
        let prepared = txn.prepare(b"xid").unwrap();
        if name == "u" {
            watch.db.refresh().unwrap();
        }
        prepared.commit(WriteOptions::SYNC).unwrap();
        watch.db.refresh().unwrap();
        for tree in ["old", name] {
            let seen = watch.db.tree(tree).unwrap();
            assert!(seen.contains(name.as_bytes()).unwrap(), "{tree} has what {name} has");
        }
    }
}

/// What is prepared takes memory until it is decided.
#[test]
fn what_is_prepared_counts_in_a_followers_memory() {
    let fs = MemFs::new();
    let config = Config { memory_bytes: 256 << 20, ..small() };
    let db = shaledb_sim::world::open_db(&fs, PATH, &config).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    for n in 0..12u8 {
        let options = shaledb::TransactionOptions { memory_bytes: 8 << 20, ..Default::default() };
        let mut txn = db.begin(options).unwrap();
        for row in 0..1000u16 {
            txn.put(&tree, &[&[n][..], &row.to_be_bytes()].concat(), &[n; 1000]).unwrap();
        }
        let _ = txn.prepare(&[n]).unwrap();
    }
    let env = Env { fs: Arc::new(Hooked::new(fs)), clock: Arc::new(MemClock::new()) };
    let config = Config { memory_bytes: 8 << 20, ..small() };
    let refused = Db::open_follower_in(PATH, config, env);
    assert!(refused.as_ref().is_err_and(|error| error.to_string().contains("log")), "{refused:?}");
}

/// The writer removes files that the follower has never read.
#[test]
fn files_that_the_writer_has_removed_are_read() {
    let fs = MemFs::new();
    let db = shaledb_sim::world::open_db(&fs, PATH, &small()).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let write = |text: &[u8]| {
        for n in 0..500u32 {
            tree.put(&n.to_be_bytes(), text).unwrap();
        }
        tree.put(b"large", &text.repeat(5_000)).unwrap();
    };
    write(b"old");
    db.compact().unwrap();
    tree.put(b"large in the log", &b"old".repeat(5_000)).unwrap();
    let watch = Watch::open(&fs, &small());
    let files = |end: &str| {
        let files = fs.files().into_iter().map(|(path, _)| path);
        files.filter(|path| path.extension().is_some_and(|ext| ext == end)).collect::<Vec<_>>()
    };
    let before = [files("table"), files("blob")].concat();
    assert_eq!(before.len(), 3);
    write(b"new");
    tree.delete(b"large in the log").unwrap();
    db.compact().unwrap();
    assert!(before.iter().all(|path| !fs.exists(path).unwrap()), "all are gone");
    let seen = watch.db.tree("t").unwrap();
    for n in 0..500u32 {
        assert_eq!(seen.get(&n.to_be_bytes()).unwrap().unwrap(), b"old");
    }
    assert!(seen.get(b"large").unwrap().unwrap() == b"old".repeat(5_000)[..]);
    assert!(seen.get(b"large in the log").unwrap().unwrap() == b"old".repeat(5_000)[..]);
    verify(&watch.db);
    watch.db.refresh().unwrap();
    assert_eq!(seen.get(&7u32.to_be_bytes()).unwrap().unwrap(), b"new");
    assert!(!seen.contains(b"large in the log").unwrap());
}
