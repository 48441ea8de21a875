//! Random writers beside a build, on a crashing and a failing disk.

use super::writer::{CHANGES, INDEX, Writer, begin, check, fill, rows, start, writer};
use crate::Case;
use shaledb::Db;
use shaledb::fs::mem::{Call, CrashMode, Fault, MemFs};
use shaledb_sim::fault::faults_of;
use shaledb_sim::settings::{exhaustive, seeds, small};
use shaledb_sim::world::{PATH, open_db};

/// Builds the tree, with writes, flushes and compactions in between.
fn build(db: &Db, writer: &mut Writer) -> shaledb::Result<()> {
    let mut build = begin(writer)?;
    writer.writes(60)?;
    db.flush()?;
    writer.end_move()?;
    let mut failed = Ok(());
    fill(&mut build, &mut |rows| {
        if rows % 40 == 0 && failed.is_ok() {
            failed = writer.writes(15);
        }
        if rows == 120 && failed.is_ok() {
            failed = db.flush().and_then(|()| db.wait_idle());
        }
    })?;
    failed?;
    for round in 0..4 {
        writer.writes(30 / (round + 1))?;
        if round == 1 {
            db.flush()?;
            db.wait_idle()?;
        }
        build.catch_up()?;
        // As it was when the round began, or with one name of two rows.
        writer.writes(writer.state as u32 % 3)?;
    }
    writer.end_move()?;
    build.finish()?;
    writer.changes = None;
    Ok(())
}

/// Opens what a crash has left; the tree is right or not there.
pub fn recover(fs: &MemFs, label: &str) -> bool {
    let db = open_db(fs, PATH, &small()).unwrap_or_else(|error| panic!("{label}: {error}"));
    let there = check(&db, label);
    let runs = fs.files().into_iter().filter(|(path, _)| path.extension() == Some("run".as_ref()));
    assert_eq!(runs.count(), 0, "{label}: a build leaves no runs");
    there
}

#[test]
fn a_unique_tree_built_beside_writers_has_what_the_source_says() {
    for seed in seeds(40) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let fs = MemFs::new();
        let db = open_db(&fs, PATH, &small()).unwrap();
        let mut writer = start(&db, seed).unwrap();
        build(&db, &mut writer).unwrap();
        assert!(check(&db, "after the build"), "it is there");
        let found = rows(&db.tree("source").unwrap());
        let model = writer.rows.iter().map(|(key, row)| (key.to_be_bytes().to_vec(), row.encode()));
        assert!(found == model.collect::<Vec<_>>(), "the source is as the model");
        let index = db.tree(INDEX).unwrap();
        index.compact().unwrap();
        check(&db, "after a compaction on request");
        drop((db, writer, index));
        assert!(recover(&fs, "after an open"));
    }
}

/// The writers' part is compacted time and again before the build goes on.
#[test]
fn changes_survive_their_compaction() {
    for seed in seeds(6) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let fs = MemFs::new();
        let db = open_db(&fs, PATH, &small()).unwrap();
        let mut writer = start(&db, seed).unwrap();
        let mut build = begin(&mut writer).unwrap();
        fill(&mut build, &mut |_| ()).unwrap();
        for _ in 0..25 {
            writer.writes(150).unwrap();
            db.flush().unwrap();
            db.wait_idle().unwrap();
        }
        let tables = |db: &Db| {
            let trees = db.stats().trees;
            let levels = &trees.iter().find(|tree| tree.name == CHANGES).unwrap().levels;
            levels.iter().filter(|level| level.level > 0).map(|level| level.tables).sum::<u64>()
        };
        assert!(tables(&db) > 0, "the changes were compacted");
        writer.end_move().unwrap();
        assert!(build.catch_up().unwrap() > 100);
        assert_eq!(tables(&db), 0, "changes that were taken are gone");
        assert_eq!(build.catch_up().unwrap(), 0);
        build.finish().unwrap();
        assert!(check(&db, "after the build"));
    }
}

#[test]
fn a_crash_leaves_the_whole_unique_tree_or_none() {
    let (mut crashes, mut there) = (0, 0);
    for seed in seeds(2) {
        let fs = MemFs::new();
        let db = open_db(&fs, PATH, &small()).unwrap();
        let mut writer = start(&db, seed).unwrap();
        fs.keep_images(Some(if exhaustive() { 1 } else { 3 }));
        build(&db, &mut writer).unwrap();
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
    assert!(there > 0 && crashes > 2 * there, "{crashes} crashes, {there} with the tree");
}

#[test]
fn a_failing_call_gives_an_error_and_the_whole_unique_tree_or_none() {
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
                let struck = faults.iter().filter(|fault| one_fault(&fs, seed, call, nth, **fault));
                let count = struck.count();
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
fn one_fault(start: &MemFs, seed: u64, call: Call, nth: u64, fault: Fault) -> bool {
    let label = format!("SHALE_SEED={seed}, {call:?} {nth} {fault:?}");
    let _case = Case::new(label.clone());
    let fs = start.crash_clone(0, CrashMode::Kept);
    let db = open_db(&fs, PATH, &small()).unwrap();
    let mut writer = writer(&db, seed).unwrap();
    fs.fail(call, nth, fault, nth.is_multiple_of(2));
    let result = build(&db, &mut writer);
    let struck = fs.faults_struck() > 0;
    fs.clear_faults();
    assert!(result.is_ok() || struck, "{label}: {result:?}");
    if let Err(error) = result {
        assert!(!error.is_corruption(), "{label}: {error}");
    }
    drop((db, writer));
    recover_any(&fs.crash_clone(seed, CrashMode::Torn), &label);
    recover_any(&fs, &label);
    struck
}

/// As [`recover`], where the source may have a name twice, since a writer was stopped: then there
/// is no tree.
fn recover_any(fs: &MemFs, label: &str) {
    let db = open_db(fs, PATH, &small()).unwrap_or_else(|error| panic!("{label}: {error}"));
    if db.tree(INDEX).is_ok() {
        check(&db, label);
    }
    assert!(db.tree(CHANGES).is_err(), "{label}: changes are left");
}
