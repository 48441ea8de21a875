//! Online builds while writers go on, on a crashing and a failing disk: a tree is complete or not
//! there, and what it has is what the source says.

use crate::Case;
use shaledb::fs::mem::{Call, CrashMode, Fault, MemFs};
use shaledb::{Batch, BuildOptions, Db, Env, Error, OnlineBuild, OpenOptions, ScanOptions, Tree};
use shaledb::{TransactionOptions, TreeConfig, WriteOptions};
use shaledb_sim::fault::faults_of;
use shaledb_sim::settings::{exhaustive, seeds, small};
use shaledb_sim::world::{PATH, open_db};
use std::collections::BTreeSet;
use std::sync::Arc;

const ROWS: u32 = 400;
const INDEX: &str = "by_value";

/// Changes rows and their entries at random, each change one batch, or one transaction.
struct Writer {
    state: u64,
    db: Db,
    source: Tree,
    index: Option<Tree>,
}

fn entry(value: &[u8], key: &[u8]) -> Vec<u8> {
    [value, key].concat()
}

impl Writer {
    fn random(&mut self, below: u32) -> u32 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.state >> 33) as u32 % below
    }

    fn write(&mut self) -> shaledb::Result<()> {
        let key = self.random(ROWS).to_be_bytes();
        let (kind, sync) = (self.random(8), self.random(10) == 0);
        let value = vec![b'a' + self.random(20) as u8; 20 + self.random(200) as usize];
        let old = self.source.get(&key)?.map(|value| value.to_vec());
        let goes = old.map(|old| entry(&old, &key));
        let new = (kind > 2).then(|| entry(&value, &key));
        if kind % 2 == 0 {
            let mut txn = self.db.begin(Default::default())?;
            match &new {
                Some(_) => txn.put(&self.source, &key, &value)?,
                None => txn.delete(&self.source, &key)?,
            }
            if let Some(index) = &self.index {
                goes.iter().try_for_each(|goes| txn.delete(index, goes))?;
                new.iter().try_for_each(|new| txn.put(index, new, b"v"))?;
            }
            if kind == 4 {
                txn.rollback();
                return Ok(());
            }
            return txn.commit(WriteOptions { sync });
        }
        let mut batch = Batch::new();
        match &new {
            Some(_) => batch.put(&self.source, &key, &value),
            None => batch.delete(&self.source, &key),
        };
        if let Some(index) = &self.index {
            goes.iter().for_each(|goes| batch.delete(index, goes));
            new.iter().for_each(|new| batch.put(index, new, b"v"));
        }
        self.db.write(&batch, WriteOptions { sync })
    }

    fn writes(&mut self, count: u32) -> shaledb::Result<()> {
        (0..count).try_for_each(|_| self.write())
    }
}

fn options() -> BuildOptions {
    BuildOptions { memory_bytes: 8 << 10, ..BuildOptions::default() }
}

/// Rows that are there before the build.
fn start(db: &Db, seed: u64) -> shaledb::Result<Writer> {
    let source = db.tree_or_create("source")?;
    let mut writer = Writer { state: seed * 2 + 1, db: db.clone(), source, index: None };
    writer.writes(600)?;
    db.flush()?;
    writer.writes(100)?;
    db.sync()?;
    Ok(writer)
}

fn begin(writer: &mut Writer) -> shaledb::Result<OnlineBuild> {
    begin_with(writer, options())
}

fn begin_with(writer: &mut Writer, options: BuildOptions) -> shaledb::Result<OnlineBuild> {
    let build = writer.source.build_online(INDEX, TreeConfig::default(), options)?;
    writer.index = Some(build.tree().clone());
    Ok(build)
}

/// As `build`, by a caller that has sorted the entries.
fn build_in_order(db: &Db, writer: &mut Writer) -> shaledb::Result<()> {
    let mut build = begin_with(writer, BuildOptions { memory_bytes: 0, ..options() })?;
    writer.writes(60)?;
    db.flush()?;
    let snapshot = build.snapshot();
    let mut entries = BTreeSet::new();
    let of_snapshot = ScanOptions { snapshot: Some(&snapshot), ..ScanOptions::default() };
    for row in writer.source.scan_with(of_snapshot)? {
        let (key, value) = row?;
        entries.insert(entry(&value, &key));
    }
    for (number, entry) in entries.iter().enumerate() {
        if number % 40 == 0 {
            writer.writes(15)?;
        }
        build.add(entry, b"v")?;
    }
    db.flush()?;
    db.wait_idle()?;
    writer.writes(10)?;
    build.finish()?;
    writer.writes(20)
}

/// Builds the index, with writes, flushes and compactions in between.
fn build(db: &Db, writer: &mut Writer) -> shaledb::Result<()> {
    let mut build = begin(writer)?;
    writer.writes(60)?;
    db.flush()?;
    let mut rows = 0;
    build.fill(|key, value, entries| {
        rows += 1;
        if rows % 40 == 0 {
            writer.writes(15)?;
        }
        if rows == 120 {
            db.flush()?;
            db.wait_idle()?;
        }
        entries.add(&entry(value, key), b"v")
    })?;
    writer.writes(30)?;
    db.wait_idle()?;
    writer.writes(10)?;
    build.finish()?;
    writer.writes(20)
}

/// How the index is built.
type Way = fn(&Db, &mut Writer) -> shaledb::Result<()>;

fn keys(tree: &Tree) -> shaledb::Result<BTreeSet<Vec<u8>>> {
    tree.scan::<&[u8]>(..)?.map(|row| row.map(|(key, _)| key.to_vec())).collect()
}

/// Compares the index with the source; answers whether there is an index.
fn check(db: &Db, label: &str) -> bool {
    let source = db.tree("source").unwrap();
    let index = match db.tree(INDEX) {
        Ok(index) => index,
        Err(Error::NoSuchTree(_)) => return false,
        Err(error) => panic!("{label}: {error}"),
    };
    let rows = source.scan::<&[u8]>(..).unwrap().map(|row| row.unwrap());
    let wanted: BTreeSet<Vec<u8>> = rows.map(|(key, value)| entry(&value, &key)).collect();
    let found = keys(&index).unwrap();
    assert_eq!(found.len(), wanted.len(), "{label}: entries");
    assert!(found == wanted, "{label}: the index has other entries than the source");
    for key in found.iter().step_by(7) {
        assert!(index.contains(key).unwrap(), "{label}: a get finds what a scan does");
    }
    let damage = db.verify(&mut |_| {}).unwrap().damage;
    assert!(damage.is_empty(), "{label}: {damage:?}");
    true
}

/// Opens what a crash has left; the index is right or not there, and can then be built.
fn recover(fs: &MemFs, label: &str) -> bool {
    let db = open_db(fs, PATH, &small()).unwrap_or_else(|error| panic!("{label}: {error}"));
    let there = check(&db, label);
    if !there {
        let files =
            fs.files().into_iter().filter(|(path, _)| path.extension() == Some("run".as_ref()));
        assert_eq!(files.count(), 0, "{label}: an unfinished build leaves no files");
    }
    there
}

#[test]
fn a_tree_built_beside_writers_has_what_the_source_says() {
    for seed in seeds(40) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let fs = MemFs::new();
        let db = open_db(&fs, PATH, &small()).unwrap();
        let mut writer = start(&db, seed).unwrap();
        let way = if seed % 2 == 0 { build } else { build_in_order };
        way(&db, &mut writer).unwrap();
        assert!(check(&db, "after the build"), "it is there");
        writer.writes(200).unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        check(&db, "once all is compacted");
        let index = db.tree(INDEX).unwrap();
        index.compact().unwrap();
        check(&db, "after a compaction on request");
        drop((db, writer, index));
        assert!(recover(&fs, "after an open"));
    }
}

/// The writers' part is compacted down to the last level, time and again: no delete may go there
/// before the rows come that it deletes, and what is there must make room for them.
#[test]
fn deletes_stay_until_what_they_delete_has_come() {
    for seed in seeds(6) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let fs = MemFs::new();
        let db = open_db(&fs, PATH, &small()).unwrap();
        let mut writer = start(&db, seed).unwrap();
        let mut build = begin(&mut writer).unwrap();
        build.fill(|key, value, entries| entries.add(&entry(value, key), b"v")).unwrap();
        for _ in 0..40 {
            writer.writes(150).unwrap();
            db.flush().unwrap();
            db.wait_idle().unwrap();
        }
        let trees = db.stats().trees;
        let levels = &trees.iter().find(|tree| tree.name == INDEX).unwrap().levels;
        let deep = levels.iter().filter(|level| level.level > 0).map(|level| level.tables);
        assert!(deep.sum::<u64>() > 0, "the writers' part was compacted: {levels:?}");
        build.finish().unwrap();
        check(&db, "after the build");
        db.tree(INDEX).unwrap().compact().unwrap();
        check(&db, "after a compaction on request");
        drop((db, writer));
        assert!(recover(&fs, "after an open"));
    }
}

#[test]
fn a_crash_leaves_the_whole_tree_or_none() {
    let (mut crashes, mut there) = (0, 0);
    for seed in seeds(3) {
        let fs = MemFs::new();
        let db = open_db(&fs, PATH, &small()).unwrap();
        let mut writer = start(&db, seed).unwrap();
        fs.keep_images(Some(if exhaustive() { 1 } else { 3 }));
        let way = if seed % 2 == 0 { build } else { build_in_order };
        way(&db, &mut writer).unwrap();
        for image in fs.take_images() {
            let torn = seed << 20 | image.changes;
            let disks = [
                image.fs.crash_clone(torn, CrashMode::Torn),
                image.fs.crash_clone(0, CrashMode::Lost),
                image.fs.fork(),
            ];
            for (way, disk) in disks.into_iter().enumerate() {
                let label = format!("SHALE_SEED={seed}, before change {}, {way}", image.changes);
                let _case = Case::new(label.clone());
                disk.free_locks();
                there += u32::from(recover(&disk, &label));
                crashes += 1;
            }
        }
    }
    assert!(there > 10 && crashes > 2 * there, "{crashes} crashes, {there} with the tree");
}

#[test]
fn a_failing_call_gives_an_error_and_the_whole_tree_or_none() {
    let mut failed = 0;
    for seed in seeds(1) {
        let fs = MemFs::new();
        let db = open_db(&fs, PATH, &small()).unwrap();
        drop(start(&db, seed).unwrap());
        drop(db);
        for call in Call::ALL {
            let mut nth = 1;
            loop {
                let faults: &[Fault] = faults_of(call);
                let count: usize = [build, build_in_order]
                    .map(|way: Way| {
                        let strikes =
                            |fault: &&Fault| one_fault(&fs, seed, way, call, nth, **fault);
                        faults.iter().filter(strikes).count()
                    })
                    .iter()
                    .sum();
                failed += count;
                if count == 0 {
                    break;
                }
                nth += if exhaustive() { 1 } else { 1 + nth / 4 };
            }
        }
    }
    assert!(failed > 50, "{failed} faults");
}

/// Whether the fault has struck.
fn one_fault(start: &MemFs, seed: u64, way: Way, call: Call, nth: u64, fault: Fault) -> bool {
    let label = format!("SHALE_SEED={seed}, {call:?} {nth} {fault:?}");
    let _case = Case::new(label.clone());
    let fs = start.crash_clone(0, CrashMode::Kept);
    let db = open_db(&fs, PATH, &small()).unwrap();
    let source = db.tree("source").unwrap();
    let mut writer = Writer { state: seed, db: db.clone(), source, index: None };
    fs.fail(call, nth, fault, nth.is_multiple_of(2));
    let result = way(&db, &mut writer);
    let struck = fs.faults_struck() > 0;
    fs.clear_faults();
    assert!(result.is_ok() || struck, "{label}: {result:?}");
    if let Err(error) = result {
        assert!(!error.is_corruption(), "{label}: {error}");
    }
    drop((db, writer));
    recover(&fs.crash_clone(seed, CrashMode::Torn), &label);
    recover(&fs, &label);
    struck
}

#[test]
fn a_build_that_is_given_up_leaves_nothing() {
    let fs = MemFs::new();
    let db = open_db(&fs, PATH, &small()).unwrap();
    let mut writer = start(&db, 5).unwrap();
    db.wait_idle().unwrap();
    let before: BTreeSet<String> = db.tree_names().into_iter().collect();
    let mut build = begin(&mut writer).unwrap();
    let stop = Error::InvalidArgument("enough".to_owned());
    let mut rows = 0;
    let killed = build.fill(|key, value, entries| {
        rows += 1;
        if rows > 150 { Err(stop.clone()) } else { entries.add(&entry(value, key), b"v") }
    });
    assert!(matches!(killed, Err(Error::InvalidArgument(_))) && build.spilled_bytes() > 0);
    drop(build);
    assert_eq!(db.tree_names().into_iter().collect::<BTreeSet<_>>(), before);
    assert!(!recover(
        &{
            drop((db, writer));
            fs
        },
        "given up"
    ));
}

/// The end fails at a full disk. Who has written to the tree commits nevertheless, until the build
/// is dropped.
#[test]
fn a_failing_end_fails_no_writer() {
    let mut failed = 0;
    for nth in 1..12 {
        let fs = MemFs::new();
        let db = open_db(&fs, PATH, &small()).unwrap();
        let mut writer = start(&db, 7).unwrap();
        let mut build = begin(&mut writer).unwrap();
        build.fill(|key, value, entries| entries.add(&entry(value, key), b"v")).unwrap();
        let mut txn = db.begin(Default::default()).unwrap();
        txn.put(&writer.source, b"late", b"row").unwrap();
        txn.put(build.tree(), &entry(b"row", b"late"), b"v").unwrap();
        fs.fail(Call::Append, nth, Fault::Full, true);
        let ended = build.try_finish();
        let struck = fs.faults_struck() > 0;
        fs.clear_faults();
        txn.commit(WriteOptions { sync: true }).unwrap();
        if ended.is_err() {
            assert!(struck && build.try_finish().is_err(), "it stays so");
            failed += 1;
        }
        drop(build);
        assert_eq!(check(&db, "a full disk"), ended.is_ok(), "write {nth}");
    }
    assert!(failed > 0);
}

/// Of a part of the rows no tree is made: not if the scan was ended, nor if an entry could not be
/// added, even if whoever gives entries goes on.
#[test]
fn a_build_of_a_part_cannot_be_finished() {
    type Fill = fn(&mut OnlineBuild) -> bool;
    let fills: [Fill; 4] = [
        |build| {
            let stop = Error::InvalidArgument("enough".to_owned());
            build.fill(|_, _, _| Err(stop.clone())).is_err()
        },
        |build| {
            build
                .fill(|_, _, entries| {
                    let _ = entries.add(&[b'k'; 70_000], b"");
                    Ok(())
                })
                .is_err()
        },
        |build| build.add(&[b'k'; 70_000], b"").is_err() && build.fill(|_, _, _| Ok(())).is_err(),
        |build| {
            let mut fill = || build.fill(|_, _, _| panic!("on purpose"));
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut fill)).is_err()
        },
    ];
    for fill in fills {
        let fs = MemFs::new();
        let db = open_db(&fs, PATH, &small()).unwrap();
        let mut writer = start(&db, 5).unwrap();
        let mut build = begin(&mut writer).unwrap();
        assert!(fill(&mut build));
        assert!(build.add(b"k", b"").is_err(), "it stays so");
        assert!(build.finish().is_err());
        assert!(!check(&db, "a part"), "there is no tree");
    }
}

#[test]
fn a_build_waits_for_who_holds_locks_also_if_prepared() {
    let fs = MemFs::new();
    let db = open_db(&fs, PATH, &small()).unwrap();
    let mut writer = start(&db, 6).unwrap();
    let options = BuildOptions { writers_wait: std::time::Duration::from_millis(5), ..options() };
    let refused = |source: &Tree| {
        let error = source.build_online(INDEX, TreeConfig::default(), options).unwrap_err();
        assert!(matches!(error, Error::LockTimeout { .. }), "{error}");
        assert!(error.to_string().contains(INDEX), "{error}");
    };
    let mut txn = db.begin(Default::default()).unwrap();
    txn.put(&writer.source, b"a row", b"its value").unwrap();
    refused(&writer.source);
    txn.prepare(b"x").unwrap();
    refused(&writer.source);
    drop(db);
    writer.db = open_again(&fs, &mut writer);
    refused(&writer.source);
    writer.db.prepared().unwrap().remove(0).commit(WriteOptions::default()).unwrap();
    let db = writer.db.clone();
    build(&db, &mut writer).unwrap();
    assert!(check(&db, "after the prepared one has ended"));
}

/// Opens the database after a crash.
fn open_again(fs: &MemFs, writer: &mut Writer) -> Db {
    let fs = fs.crash_clone(0, CrashMode::Kept);
    let db = open_db(&fs, PATH, &small()).unwrap();
    writer.source = db.tree("source").unwrap();
    db
}

#[test]
fn a_prepared_writer_of_the_new_tree_may_end_after_the_build() {
    let fs = MemFs::new();
    let db = open_db(&fs, PATH, &small()).unwrap();
    let mut writer = start(&db, 7).unwrap();
    let mut built = begin(&mut writer).unwrap();
    let (key, index) = (7u32.to_be_bytes(), built.tree().clone());
    let old = writer.source.get(&key).unwrap().map(|value| value.to_vec());
    let mut txn = db.begin(Default::default()).unwrap();
    txn.put(&writer.source, &key, b"new").unwrap();
    if let Some(old) = &old {
        txn.delete(&index, &entry(old, &key)).unwrap();
    }
    txn.put(&index, &entry(b"new", &key), b"v").unwrap();
    txn.prepare(b"x").unwrap();
    built.fill(|key, value, entries| entries.add(&entry(value, key), b"v")).unwrap();
    built.finish().unwrap();
    check(&db, "while it is prepared");
    drop(index);
    writer.db = open_again(&fs, &mut writer);
    check(&writer.db, "while it is prepared, after a crash");
    writer.db.prepared().unwrap().remove(0).commit(WriteOptions::default()).unwrap();
    assert!(check(&writer.db, "after its commit"));
    drop(db);
}

/// Of an unfinished build nothing is left, but what a prepared transaction has for other trees
/// stays: in the log, and in tables if it did not fit its memory.
#[test]
fn a_prepared_writer_of_an_unfinished_tree_keeps_the_rest() {
    for memory_bytes in [1 << 20, 1 << 10] {
        let fs = MemFs::new();
        let db = open_db(&fs, PATH, &small()).unwrap();
        let mut writer = start(&db, 8).unwrap();
        let built = begin(&mut writer).unwrap();
        let options = TransactionOptions { memory_bytes, ..Default::default() };
        let mut txn = db.begin(options).unwrap();
        for n in ROWS..ROWS + 100 {
            txn.put(&writer.source, &n.to_be_bytes(), &[b'x'; 100]).unwrap();
            txn.put(built.tree(), &entry(&[b'x'; 100], &n.to_be_bytes()), b"v").unwrap();
        }
        txn.prepare(b"x").unwrap();
        let mut disk = fs.crash_clone(0, CrashMode::Kept);
        for _ in 0..2 {
            writer.db = open_db(&disk, PATH, &small()).unwrap();
            writer.source = writer.db.tree("source").unwrap();
            disk = disk.crash_clone(0, CrashMode::Kept);
            assert!(!check(&writer.db, "the build has not ended"), "there is no index");
        }
        writer.db.prepared().unwrap().remove(0).commit(WriteOptions::default()).unwrap();
        let count = keys(&writer.source).unwrap().range(ROWS.to_be_bytes().to_vec()..).count();
        assert_eq!(count, 100, "rows of the source are committed");
        let db = writer.db.clone();
        build(&db, &mut writer).unwrap();
        assert!(check(&db, "built anew"));
        drop(built);
    }
}

#[test]
fn a_checkpoint_and_a_reader_have_no_unfinished_tree() {
    let fs = MemFs::new();
    let db = open_db(&fs, PATH, &small()).unwrap();
    let mut writer = start(&db, 9).unwrap();
    let built = begin(&mut writer).unwrap();
    writer.writes(200).unwrap();
    db.flush().unwrap();
    db.checkpoint("/copy").unwrap();
    let copy = open_db(&fs, "/copy", &small()).unwrap();
    assert!(!check(&copy, "a checkpoint of the time of a build"));
    let rows = keys(&copy.tree("source").unwrap()).unwrap();
    assert!(rows == keys(&writer.source).unwrap(), "the source is there");
    let env = Env { fs: Arc::new(fs.crash_clone(0, CrashMode::Kept)), ..Env::memory() };
    let options = OpenOptions { env, read_only: true, ..OpenOptions::default() };
    let reader = Db::open_in(PATH, small(), options).unwrap();
    assert!(!check(&reader, "a reader after a crash"));
    drop(built);
}
